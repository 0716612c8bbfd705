"""People from a query: the result of Airflow's operator for SQL, on a real database, on each road that takes people."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from airflow.providers.common.sql.operators.sql import SQLExecuteQueryOperator

from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.operators.members import WorkspaceSyncMembersOperator
from airflow_provider_workspace.operators.organization import WorkspaceApplyOrganizationOperator
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.audit import effects, writes

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_workspace.sandbox.server import SandboxServer

PROTECTED = ["adam.admin@example.com", "mina.member@example.com", "grace.analyst@example.com"]
COLUMNS = ["email", "first_name", "level"]

pytestmark = pytest.mark.usefixtures("no_waits")


@pytest.fixture
def query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the XCom of a query of a table of people."""
    path = tmp_path / "people.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE people (email TEXT, first_name TEXT, level INTEGER)")
        rows = [("mia@example.com", "Mia", 1), ("noor@example.com", None, 8), (None, None, None)]
        database.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
    monkeypatch.setenv("AIRFLOW_CONN_HR", json.dumps({"conn_type": "sqlite", "host": str(path)}))

    def run(sql: str) -> Any:
        people = SQLExecuteQueryOperator(task_id="people", sql=sql, conn_id="hr")
        return json.loads(json.dumps(people.execute({})))  # as XCom keeps it

    return run


def invite(rows: Any, columns: Any = None) -> Any:
    return WorkspaceCreateInvitesOperator(task_id="invite", invites=rows, columns=columns).execute({})


def sync(rows: Any, columns: Any = None) -> Any:
    task = WorkspaceSyncMembersOperator(
        task_id="sync", roster=rows, columns=columns, protected=PROTECTED, max_removals=2
    )
    return task.execute({})


def leave(rows: Any, columns: Any = None) -> Any:
    task = WorkspaceSyncMembersOperator(task_id="leave", leavers=rows, columns=columns, protected=PROTECTED)
    return task.execute({})


def organization(rows: Any, columns: Any = None, **file: Any) -> Any:
    file = {"members": {"protected": PROTECTED}, "complete": ["members"], "max_removals": 2, **file}
    task = WorkspaceApplyOrganizationOperator(task_id="apply", part="members", file=file, roster=rows, columns=columns)
    return task.execute({})


Road = Callable[..., Any]


@pytest.mark.parametrize("road", [invite, sync, organization])
@pytest.mark.parametrize("form", ["rows", "mappings", "with a description", "each twice", "other names"])
def test_rows_of_every_form_are_the_same_people(sandbox: SandboxServer, query: Any, form: str, road: Road) -> None:
    """Nobody is in the last row, which is blank."""
    rows = query("SELECT email, first_name, level FROM people")
    mappings = [dict(zip(["EMAIL", "first_name", "Level"], row, strict=True)) for row in rows]
    value, columns = mappings, None
    if form == "rows":
        value, columns = rows, COLUMNS
    elif form == "with a description":
        description = [[name, 25, None, None, None, None, None] for name in COLUMNS]
        value = [rows, description]
    elif form == "each twice":
        value = mappings * 2
    elif form == "other names":
        names = ["Work mail", *COLUMNS[1:], "Department"]
        value = [dict(zip(names, [*row, "Sales"], strict=True)) for row in rows[:2]]
        columns = '{"work-mail": "E-Mail", "Department": null}'
    road(value, columns)
    invites = {one.target_email: (one.first_name, one.level) for one in WorkspaceHook().list_invites()}
    assert invites["mia@example.com"] == ("Mia", 1)
    assert invites["noor@example.com"] == ("", 8)
    assert effects(sandbox).count("create_invite") == 2


@pytest.mark.parametrize("road", [invite, sync, leave, organization])
@pytest.mark.parametrize(
    ("sql", "columns", "message"),
    [
        ("SELECT email, level FROM people", None, "Wrong columns: row 1: 2 columns: pass columns=[…] with"),
        ("SELECT email, level FROM people", ["email"], "Wrong columns: row 1: 2 columns: pass columns=[…]"),
        ("SELECT email, level FROM people", ["email", "role"], "Wrong columns: unknown column 'role'"),
        ("SELECT first_name, level FROM people", ["first_name", "level"], "Wrong columns: no column 'email'"),
        ("SELECT email, 'high' FROM people", ["email", "level"],
         "row 1 (mia@example.com): field 'level': expected a whole number"),
        ("SELECT NULL, level FROM people", ["email", "level"], "row 1 (no address): field 'target_email' is required"),
        ("SELECT 7 FROM people", None, "row 1 (no address): field 'target_email': "),
        ("SELECT first_name FROM people WHERE level = 1", None, "row 1 (Mia): the address needs exactly one @"),
    ],
)  # fmt: skip
def test_an_error_names_the_row_and_the_column(
    sandbox: SandboxServer, query: Any, road: Road, sql: str, columns: Any, message: str
) -> None:
    name = {invite: "invites", leave: "leavers"}.get(road, "roster")
    with pytest.raises((WorkspaceInputError, AirflowFailException), match=re.escape(message)) as failed:
        road(query(sql), columns)
    assert "Wrong columns" not in message or f". In: {name}" in str(failed.value)
    assert writes(sandbox) == []


@pytest.mark.parametrize("road", [sync, leave, organization])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT email, level FROM people WHERE email = 'nobody'",
        "SELECT email, level FROM people WHERE email IS NULL",
        "SELECT ' ', NULL FROM people",
    ],
)
def test_a_result_without_people_removes_nobody(sandbox: SandboxServer, query: Any, road: Road, sql: str) -> None:
    with pytest.raises(
        AirflowFailException, match=r"^\[roster-empty\] WorkspaceInputError: (The roster|leavers) is empty"
    ):
        road(query(sql), ["email", "level"])
    assert writes(sandbox) == []


def test_the_roster_of_an_organization_file_has_columns_too(sandbox: SandboxServer, tmp_path: Path) -> None:
    (tmp_path / "team.csv").write_text("Work mail,Department\nmia@example.com,Sales\n")
    columns = {"Work mail": "email", "Department": None}
    members = {"roster": str(tmp_path / "team.csv"), "columns": columns}
    organization(None, members=members, complete=[])
    organization(None, ["email", "first_name"], members=members, complete=[])
    rows = [{"Work mail": "noor@example.com"}]
    organization(rows, members={"columns": columns}, complete=[])
    assert [effect["target"] for effect in sandbox.effects()] == ["mia@example.com", "noor@example.com"]


def test_leavers_of_a_query_are_removed(sandbox: SandboxServer, query: Any) -> None:
    leave(query("SELECT 'noah.newton@example.com', level FROM people WHERE level = 1"), ["email", "level"])
    assert effects(sandbox) == ["delete_member"]


@pytest.mark.parametrize(
    ("members", "rows"), [({}, None), ({"people": ["mia@example.com"]}, []), ({"roster": "people.csv"}, [])]
)
def test_an_organization_has_one_source_of_people(sandbox: SandboxServer, members: Any, rows: Any) -> None:
    with pytest.raises(AirflowFailException, match="line 1: members: give one of roster and people, or neither and"):
        organization(rows, members=members)
    assert sandbox.requests() == []
