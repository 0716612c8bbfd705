"""People from a query: the result of Airflow's operator for SQL, on a real database."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from airflow.providers.common.sql.hooks.sql import DbApiHook
from airflow.providers.common.sql.operators.sql import SQLExecuteQueryOperator

from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.operators.members import WorkspaceSyncMembersOperator
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.audit import effects

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_workspace.sandbox.server import SandboxServer


class Database(DbApiHook):
    """SQLite, whose provider a bare Airflow does not bring."""

    conn_name_attr = "sqlite_conn_id"
    path = ""

    def get_conn(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path)

    def set_autocommit(self, conn: Any, autocommit: Any) -> None:
        """Leave it: SQLite has it since Python 3.12."""


@pytest.fixture
def query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the XCom of a query of a table of people."""
    path = tmp_path / "people.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE people (email TEXT, first_name TEXT, level INTEGER)")
        rows = [("mia@example.com", "Mia", 1), ("noor@example.com", None, 8), (None, None, None)]
        database.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)

    def run(sql: str) -> Any:
        hook = Database()
        hook.path = str(path)
        people = SQLExecuteQueryOperator(task_id="people", sql=sql, conn_id="hr")
        monkeypatch.setattr(SQLExecuteQueryOperator, "get_db_hook", lambda _: hook)
        return json.loads(json.dumps(people.execute({})))  # as XCom keeps it

    return run


def test_people_of_a_query_are_invited(sandbox: SandboxServer, query: Any) -> None:
    rows = query("SELECT email, first_name, level FROM people")
    columns = ["email", "first_name", "level"]
    task = WorkspaceCreateInvitesOperator(task_id="invite", invites=rows, columns=columns)
    counts = task.execute({})["counts"]
    assert (counts["invited"], counts["blank"]) == (2, 1)
    invites = {invite.target_email: (invite.first_name, invite.level) for invite in WorkspaceHook().list_invites()}
    assert invites.items() >= {"mia@example.com": ("Mia", 1), "noor@example.com": ("", 8)}.items()
    assert len(effects(sandbox)) == 2
    addresses = query("SELECT email FROM people WHERE level = 1")
    again = WorkspaceCreateInvitesOperator(task_id="again", invites=addresses).execute({})["counts"]
    assert again["invited"] == 0


def test_an_empty_result_removes_nobody(sandbox: SandboxServer, query: Any) -> None:
    rows = query("SELECT email, level FROM people WHERE email = 'nobody'")
    arguments: dict[str, Any] = {"roster": rows, "columns": ["email", "level"], "protected": []}
    with pytest.raises(AirflowFailException, match="The roster is empty: this would remove everybody"):
        WorkspaceSyncMembersOperator(task_id="sync", **arguments).execute({})
    assert effects(sandbox) == []
