"""Files and rows as people have them, on each road that takes people: what is read, and what is refused with a cure."""

from __future__ import annotations

import csv
import json
import re
import sqlite3
from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, text

from airflow_provider_workspace.errors import WorkspaceError, WorkspaceInputError
from airflow_provider_workspace.operators.access import WorkspaceGrantAccessOperator
from airflow_provider_workspace.operators.invites import WorkspaceCreateInviteOperator, WorkspaceCreateInvitesOperator
from airflow_provider_workspace.operators.members import WorkspaceSyncMembersOperator
from airflow_provider_workspace.operators.organization import WorkspaceApplyOrganizationOperator
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.sensors.workspace import WorkspaceMembersJoinedSensor
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.audit import effects, writes
from tests.variables import install

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer

pytestmark = pytest.mark.usefixtures("no_waits")

Road = Callable[..., Any]
REFUSED = (WorkspaceInputError, AirflowFailException)
# The seed has Olive Owner (15), Adam Admin (8), Mina, Noah and Grace (1), and Liv with an open invite.
SEEDED = ("olive.owner", "adam.admin", "mina.member", "noah.newton", "grace.analyst", "liv.invited")


def invite(rows: Any = None, path: Any = None, **arguments: Any) -> Any:
    return WorkspaceCreateInvitesOperator(task_id="invite", invites=rows, path=path, **arguments).execute({})


def sync(rows: Any = None, path: Any = None, **arguments: Any) -> Any:
    arguments = {"protected": [], "max_removals": None, **arguments}
    return WorkspaceSyncMembersOperator(task_id="sync", roster=rows, path=path, **arguments).execute({})


def leave(rows: Any = None, path: Any = None, **arguments: Any) -> Any:
    arguments = {"protected": [], "max_removals": None, **arguments}
    return WorkspaceSyncMembersOperator(task_id="leave", leavers=rows, leavers_path=path, **arguments).execute({})


def organization(rows: Any = None, path: Any = None, **members: Any) -> Any:
    file: dict[str, Any] = {"complete": ["members"], "max_removals": None}
    file["members"] = {**({"roster": str(path)} if path else {}), **members}
    return WorkspaceApplyOrganizationOperator(task_id="apply", part="members", file=file, roster=rows).execute({})


def plan_of_organization(rows: Any = None, path: Any = None, *, dry_run: bool = True, **members: Any) -> Any:
    file: dict[str, Any] = {"max_removals": None}
    file["members"] = {**({"roster": str(path)} if path else {}), **members}
    task = WorkspaceApplyOrganizationOperator(task_id="apply", part="members", file=file, roster=rows, dry_run=dry_run)
    return task.execute({})


ROADS = [sync, invite, leave, organization]


def on_roads(mistakes: Sequence[Any], roads: Iterable[Any] = ROADS) -> list[Any]:
    """Return all mistakes on the first road, and the first of them on each other: one function reads for all."""
    first, *others = roads
    return [*((first, *mistake) for mistake in mistakes), *((road, *mistakes[0]) for road in others)]


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], str]:
    """Write a roster, and return its path."""

    def write(text: str, name: str = "people.csv") -> str:
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


# The header


def test_a_first_row_with_an_address_is_a_person(sandbox: SandboxServer, file: Any) -> None:
    """What ``COPY … CSV`` writes: once, the administrator in row 1 was taken for the header, and removed."""
    path = file("adam.admin@example.com,8\nmina.member@example.com,1\nnoah.newton@example.com,1\n")
    for road in (sync, organization):
        road(path=path, columns=["email", "level"])
        assert [one["target"] for one in sandbox.effects("delete_member")] == [SEED.analyst_uuid]
        sandbox.reset()
    leave(path=file("noah.newton@example.com,1\n", "leavers.csv"), columns=["email", "level"])
    assert effects(sandbox) == ["delete_member"]
    assert invite(path=path, columns=["email", "level"])["counts"]["rows"] == 3


@pytest.mark.parametrize(
    "first",
    [
        "adam.admin.example.com,admin",
        ",admin",
        "(null),member",
        "Adam Admin <adam.admin at example.com>,admin",
        "Adam,8",
        "\u02bcadam.admin@example.com,admin",
    ],
)
def test_a_first_row_that_may_be_a_person_is_not_left_out(sandbox: SandboxServer, file: Any, first: str) -> None:
    path = file(f"{first}\nmina.member@example.com,member\n")
    for road in (sync, organization, leave, invite):
        with pytest.raises((AirflowFailException, WorkspaceError), match="row 1"):
            road(path=path, columns=["email", "level"])
    assert "delete_member" not in effects(sandbox)


def test_a_skipped_row_with_an_end_leaves_an_organization_file_red(sandbox: SandboxServer, file: Any) -> None:
    rows = "mina.member@example.com,boss,2020-01-01\nnoah.newton@example.com,1,\n"
    path = file(f"email,level,until\n{rows}")
    with pytest.raises(AirflowFailException, match=r"\[access-left\] .*row 2 mina.member@example.com"):
        WorkspaceApplyOrganizationOperator(
            task_id="apply",
            part="members",
            file={"max_removals": None, "members": {"on_invalid": "skip", "roster": str(path)}},
        ).execute({})
    assert writes(sandbox) == []


def test_a_leaver_one_of_whose_rows_is_skipped_is_left_to_people(sandbox: SandboxServer) -> None:
    noah = "noah.newton@example.com"
    with pytest.raises(AirflowFailException, match=rf"\[access-left\] .*row 2 {noah}"):
        leave([{"email": noah}, {"email": noah, "until": "31.12.2030"}, "grace.analyst@example.com"], on_invalid="skip")
    assert [one["target"] for one in sandbox.effects("delete_member")] == [SEED.analyst_uuid]


@pytest.mark.parametrize("road", ROADS)
def test_a_file_without_a_header_needs_columns(sandbox: SandboxServer, file: Any, road: Road) -> None:
    says = (
        r"No header: row 1 holds an address. Name the 2 columns with columns=\[…\], .*skip_rows=1. File: .*people.csv"
    )
    with pytest.raises(AirflowFailException, match=says):
        road(path=file("adam.admin@example.com,8\nmina.member@example.com,1\n"))
    assert writes(sandbox) == []


@pytest.mark.parametrize(
    ("first", "read"),
    [
        ("Mail,Grade\n", "Row 1 was taken for the header, and left out: 'Mail', 'Grade'."),
        ("mia@example.com,1\n", 1),
        ("mia.example.com,1\n", "row 1 (mia.example.com): the address needs exactly one @"),
        (",1\n", "row 1 (no address): field 'target_email' is required"),
    ],
)
def test_a_header_that_columns_replace_is_said(file: Any, first: str, read: Any) -> None:
    path = file(f"{first}noor@example.com,1\n")
    if isinstance(read, str) and read.startswith("row 1"):
        with pytest.raises(AirflowFailException, match=re.escape(read)):
            sync(path=path, columns=["email", "level"], dry_run=True)
        return
    plan = sync(path=path, columns=["email", "level"], dry_run=True)
    assert plan["counts"]["create"] == (2 if read == 1 else 1)
    if isinstance(read, str):
        assert read in plan["table"]


@pytest.mark.parametrize(
    ("before", "number"),
    [
        ("sep=;\n", 2),
        ("version:v1.0\n", 3),
        ("version:v1.0;;;\n", 3),
        ("\n\n", 4),
        (";;\n", 3),
        ("\nsep=;\n", 4),
        (";;\nsep=;\n", 4),
        ("version: v1.0\n", 3),
    ],
)
def test_what_stands_above_the_header_is_left_out(file: Any, before: str, number: int) -> None:
    """The number is that of the first row, as a spreadsheet shows it."""
    path = file(f"{before}Email;Level;;\nmia@example.com;1;;\n;;;\nnoor@example.com;8;;\n")
    report = invite(path=path)
    assert [(row["row"], row["status"]) for row in report["addresses"]] == [
        (number, "invited"),
        (number + 2, "invited"),
    ]
    assert report["counts"]["blank"] == 1


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_that_of_the_header(file: Any, delimiter: str) -> None:
    path = file(f"Email{delimiter}Until\nnoah.newton@example.com{delimiter}9998-12-31\n")
    assert invite(path=path)["counts"]["member"] == 1
    assert "leaves later" in leave(path=path)["table"]


@pytest.mark.parametrize(
    ("road", "above", "columns", "says"),
    on_roads([
        ("Employee export 2026-11-01\n", None, "Row 1 ('Employee export 2026-11-01') may be a title: delete the lines"),
        ("Employees,,\n,,\n", {"Email": "email", "*": None}, "Row 1 ('Employees') may be a title: delete the lines"),
        ("Employees\n", ["email", "level"], "Row 1 ('Employees') may be a title: delete the lines above the header"),
        ("", {"E-Post": "email"}, "columns={'Department': None} leaves one out"),
    ]),
)  # fmt: skip
def test_a_title_above_the_header_has_a_cure(
    sandbox: SandboxServer, file: Any, road: Road, above: str, columns: Any, says: str
) -> None:
    with pytest.raises(AirflowFailException, match=re.escape(says)):
        road(path=file(f"{above}Email,Level\nnoah.newton@example.com,1\n"), columns=columns)
    assert writes(sandbox) == []


def test_a_column_that_nobody_knows_is_no_title(file: Any) -> None:
    with pytest.raises(
        AirflowFailException, match=r"unknown column 'Work mail'.*columns=\{'Department': None\} leaves"
    ):
        invite(path=file("Work mail\nmia@example.com\n"))


@pytest.mark.parametrize(
    ("road", "text", "says"),
    [*on_roads([
        ("email,level\nmia@example.com,1\nTotal: 120,\n",
         "row 3 (Total: 120): the address contains a blank (it has 'Total: 120' alone: delete it if it is the foo"),
        ("email,level,\nmia@example.com,1,x\n", "unknown field 'cells in a column without a name'"),
        ("email\nmia@example.com\nTotal: 120\n", "(it has 'Total: 120' alone: delete it if it is the footer"),
        ("email,level\nmia@example.com,1\n-- end --,\n", "(it has '-- end --' alone: delete it if it is the footer"),
        ("email\nmia@example.com\n*** END ***\n", "(it has '*** END ***' alone: delete it if it is the footer"),
        ("email\nmia@example.com\n120\n", "(it has '120' alone: delete it if it is the footer"),
        ("email,level\nmia@example.com,1\nTotal,120\n", "(it has 'Total', '120' alone: delete it if it is the footer"),
        ("Name,Email\nAda,ada@example.com\n120 users,\n", "(it has '120 users' alone: delete it if it is the footer"),
        ("Name,Email\nAda Sample,\n", "row 2 (no address): field 'target_email' is required (Name 'Ada Sample')"),
        ("Email,Name\n,Jimmy Page\n", "row 2 (no address): field 'target_email' is required (Name 'Jimmy Page')"),
        ("Employee,Email\n1234,\n", "row 2 (no address): field 'target_email' is required (Employee '1234')"),
        ("Email,Name,Employee\n,Ada,1234\n",
         "row 2 (no address): field 'target_email' is required (Name 'Ada', Employee '1234')"),
        ("Email,mail\nmia_example.com#EXT#@t.example.com,mia@example.com\n",
         "not a mailbox: take the column with the mailbox (column 'mail' holds one)"),
        ("Email,Ends on\nmia@example.com,31.12.2026\n",
         "field 'until' (column 'Ends on'): expected a date such as 2026-12-31, or a time with its zone such as 2026"),
        ("Email,Ends on\nmia@example.com,31.12.2026\n", "2026-12-31T18:00:00Z, not '31.12.2026'"),
        ("Email,Ends on\nmia@example.com,46387\n", "2026-12-31T18:00:00Z, not '46387'"),
        ("Email,Ends on\nmia@example.com,2026-12-31 00:00\n", "not '2026-12-31 00:00'; this time has no zone"),
        ("Email,Ends on\nmia@example.com,#N/A\n", "not '#N/A'"),
        ("Email,Level\nmia@example.com,#REF!\n", "field 'level': expected a whole number"),
    ]), (leave, "Email,Level\nmia@example.com,#REF!\n", "field 'level'")],
)  # fmt: skip
def test_an_invalid_row_is_found_and_corrected(file: Any, road: Road, text: str, says: str) -> None:
    columns = {"Name": None, "Employee": None, "mail": None, "Ends on": "until"}
    header = text.split("\n", maxsplit=1)[0].split(",")
    columns = {name: field for name, field in columns.items() if name in header}
    with pytest.raises(AirflowFailException, match=re.escape(says)):
        road(path=file(text), columns=columns)


# Columns


EVERY_FORM = [
    ("people.csv", "Mail,Last day\nnoah.newton@example.com,9998-12-31\n"),
    ("people.json", '[{"Mail": "noah.newton@example.com", "Last day": "9998-12-31"}]'),
    ("people.jsonl", '{"Mail": "noah.newton@example.com", "Last day": "9998-12-31"}'),
    ("", [{"Mail": "noah.newton@example.com", "Last day": "9998-12-31"}]),
    ("", ([("noah.newton@example.com", "9998-12-31")], [("Mail", 1), ("Last day", 1)])),
]


WRONG_COLUMNS = [
    ({"Mail": "email", "Last day": None, "Ends on": "until"}, None, "no column 'Ends on'. Known columns"),
    ({"Mail": "email"}, None, "unknown column 'Last day'"),
    ({"E-Post": "email"}, None, "no column 'E-Post'; .*unknown columns 'Mail'.*, 'Last day'"),
    ({"*": None}, None, r"no column 'email'. .* With \{'\*': None\}, name each column that counts"),
    ({"Mail": "email", "mail": "message", "*": None}, None, ": columns names 'Mail' and 'mail', which are one"),
    ({"Mail": "email", "*": "until"}, None, r"unknown field 'until' in columns"),
    ({"Mail": "email", "*": None}, {"Status": "active"}, "no column 'Status'"),
    ({"Mail": "email", "*": None}, {"Last day": {"before": "soon"}}, "where compares Last day with a wrong age"),
    ({"Mail": "email", "*": None}, {"Last day": {"after": 1}}, "where compares Last day with something of type di"),
]


@pytest.mark.parametrize(("columns", "where", "says"), WRONG_COLUMNS)
def test_wrong_columns_are_an_error(sandbox: SandboxServer, file: Any, columns: Any, where: Any, says: str) -> None:
    name, content = EVERY_FORM[0]
    with pytest.raises(AirflowFailException, match=says):
        sync(path=file(content, name), columns=columns, where=where)
    assert writes(sandbox) == []


@pytest.mark.parametrize(("road", "name", "content"), on_roads(EVERY_FORM))
def test_a_wrong_column_is_one_error_for_every_form(
    sandbox: SandboxServer, file: Any, road: Road, name: str, content: Any
) -> None:
    columns, _, says = WRONG_COLUMNS[0]
    source = {"path": file(content, name)} if name else {"rows": content}
    with pytest.raises(AirflowFailException, match=says):
        road(**source, columns=columns)
    assert writes(sandbox) == []


@pytest.mark.parametrize("road", [invite, sync, leave, plan_of_organization])
def test_a_column_is_left_out_by_its_place(file: Any, road: Road) -> None:
    columns = ["email", None, "until", None]
    rows = [("mia@example.com", "Sales", "9998-12-31", 8), ("noah.newton@example.com", None, None, 8)]
    lines = "mia@example.com,Sales,9998-12-31,8\nnoah.newton@example.com,,,8\n"
    files = [file(lines, "rows.csv"), file(f"Mail,Dept,Ends,Grade\n{lines}", "header.csv")]
    plans = [road(rows, columns=columns, dry_run=True)]
    if road is not plan_of_organization:  # whose file is no template
        plans.append(road(rows, columns=json.dumps(columns), dry_run=True))
    plans += [road(path=path, columns=columns, dry_run=True) for path in files]
    for plan in plans:
        assert plan["counts"] == plans[0]["counts"]
        text = json.dumps(plan)
        assert "mia@example.com" in text
        assert "Levels come from" not in text


@pytest.mark.parametrize(
    ("road", "row", "columns", "where", "says"),
    on_roads([
        (("mia@example.com", "Sales", 1), ["email", None], None,
         "row 1: 3 columns: pass columns=[…] with a name for each of them, or None to leave it out"),
        (("mia@example.com", "Sales"), ["email", "department"], None, "None leaves out the column at its place"),
        (("mia@example.com", "Sales"), [None, None], None, "no column 'email'"),
        (("mia@example.com", "Sales"), ["email", None], {"Team": "Sales"}, "no column 'Team'. "),
        (("mia@example.com", "Sales"), ["email", None], {"Team": "Sales"},
         "In columns=[…], name the columns of where too; None leaves"),
        ((None, "Sales", "Mia"), ["email", None, "first_name"], None, "(column 2 'Sales', first_name 'Mia')"),
    ]),
)  # fmt: skip
def test_a_list_of_columns_says_how_to_leave_one_out(road: Road, row: Any, columns: Any, where: Any, says: str) -> None:
    with pytest.raises(AirflowFailException, match=re.escape(says)):
        road([row], columns=columns, where=where)


@pytest.mark.parametrize("road", [invite, sync, leave, plan_of_organization])
def test_where_compares_a_column_that_a_list_names(road: Road) -> None:
    rows = [("mia@example.com", "Sales"), ("noor@example.com", "Support")]
    plan = road(rows, columns=["email", "Team"], where={"Team": "Sales"}, dry_run=True)
    assert "noor@example.com" not in json.dumps(plan)
    assert "Left out by where (Team): 1 of 2." in json.dumps(plan)


def test_all_other_columns_may_be_left_out(file: Any) -> None:
    """A job grade is no level, unless columns says so."""
    text = "Employee,Work mail,Level,Manager\n1,mia@example.com,8,noor@example.com\n"
    plan = sync(path=file(text), columns={"Work mail": "email", "*": None}, dry_run=True)
    assert [row["after"] for row in plan["changes"] if row["action"] == "create"] == [{}]
    others = {"Work mail": "email", "Employee": None, "Manager": None}
    said = "Levels come from column 'Level' (8), which columns=… does not name: check that these are access levels"
    assert said in sync(path=file(text), columns=others, dry_run=True)["table"]
    named = sync(path=file(text), columns={**others, "Level": "level"}, dry_run=True)
    assert "Levels come from" not in named["table"]
    assert "Levels come from" not in leave(path=file(text), columns=others, dry_run=True)["table"]


LEVELS_SAID = "Levels come from column 'level' ({}), which columns=… does not name: check that these are access levels"


@pytest.mark.parametrize(("level", "read"), [(8, 8), ("8", 8), ("8.0", 8), ("+8", 8), (8.0, 8), ("member", None)])
def test_where_levels_come_from_is_said_for_rows_and_files(file: Any, level: Any, read: int | None) -> None:
    """Rows of a query have the names of its columns, and nobody sees which of them an author has written."""
    rows = [{"email": "mia@example.com", "level": level}]
    path = file(f"email,level\nmia@example.com,{level}\n")
    said = LEVELS_SAID.format(read)
    for source in ({"rows": rows}, {"path": path}):
        tables = [road(**source, dry_run=True)["table"] for road in (sync, plan_of_organization)]
        tables.append("\n".join(invite(**source, dry_run=True).get("remarks", [])))
        assert [said in table for table in tables] == [read is not None] * 3
        columns = {"email": "email", "level": "level"}
        named = [
            sync(**source, columns=columns, dry_run=True)["table"],
            plan_of_organization(**source, columns=columns),
        ]
        assert "Levels come from" not in str(named)
        assert "Levels come from" not in leave(**source, dry_run=True)["table"]
    assert "Levels come from" not in plan_of_organization(people=rows)["table"]


@pytest.mark.parametrize(("road", "columns"), on_roads([({"": None},), ({"Email": "email", "*": None},)]))
def test_a_column_without_a_name_may_be_left_out(sandbox: SandboxServer, file: Any, road: Road, columns: Any) -> None:
    """The index of pandas."""
    sources = [
        {"path": file(",Email\n0,mia@example.com\n1,noor@example.com\n")},
        {"rows": [{"": 0, "Email": "mia@example.com"}, {"": 1, "Email": "noor@example.com"}]},
    ]
    for source in sources:
        with pytest.raises(AirflowFailException, match=r"a column without a name.*\(columns=\{'': None\} leaves out"):
            road(**source)
        assert "mia@example.com" in json.dumps(road(**source, columns=columns))
        sandbox.reset()


# Where


STATUS = "Email,Status,Active,Grade\nnoah.newton@example.com,suspended,FALSE,7\nmina.member@example.com,active,TRUE,8\n"


@pytest.mark.parametrize(
    "where",
    [
        {"Status": "active"},
        {"status": ["active", "on leave"]},
        {"ACTIVE": True},
        {"Active": "true"},
        {"Grade": 8},
        {"Grade": "8", "Status": "active"},
        {"Email": "MINA.member@example.com"},
    ],
)
def test_where_selects_rows_and_the_others_are_counted(sandbox: SandboxServer, file: Any, where: Any) -> None:
    columns = {"Email": "email", "*": None}
    given = {"columns": columns, "where": where}
    rows = [
        {"Email": "noah.newton@example.com", "Status": "suspended", "Active": False, "Grade": 7},
        {"Email": "mina.member@example.com", "Status": "active", "Active": True, "Grade": 8.0},
    ]
    for source in ({"path": file(STATUS)}, {"rows": rows}):
        counts = invite(**source, **given)["counts"]
        assert (counts["rows"], counts["left_out"]) == (1, 1)
        for road in (sync, organization, leave):
            table = road(**source, **given)["table"]
            assert re.search(r"Left out by where \(.*\): 1 of 2\.", table)
            removed = len(sandbox.effects("delete_member"))
            assert removed == (1 if road is leave else 3)
            sandbox.reset()


def test_where_of_an_organization_is_for_rows_that_a_task_passes(sandbox: SandboxServer) -> None:
    rows = [{"email": "mia@example.com", "Status": "active"}, {"email": "noor@example.com", "Status": "suspended"}]
    arguments: dict[str, Any] = {"task_id": "apply", "part": "members", "where": {"Status": "active"}}
    members = {"where": {"Status": "suspended"}}
    WorkspaceApplyOrganizationOperator(file={"members": members}, roster=rows, **arguments).execute({})
    assert [effect["target"] for effect in sandbox.effects()] == ["mia@example.com"]
    with pytest.raises(
        AirflowFailException, match=r"line \d+: members: where: it selects rows of a roster; delete it, or"
    ):
        organization(people=["mia@example.com"], where={"Status": "active"})


def test_where_takes_no_letter_case_and_no_age_for_granted(sandbox: SandboxServer, file: Any) -> None:
    columns = {"Email": "email", "*": None}
    with pytest.raises(
        AirflowFailException,
        match=r"where compares Status with 'Active', and row 3 has 'active'\. Values of Status: 's",
    ):
        sync(path=file(STATUS), columns=columns, where={"Status": "Active"})
    with pytest.raises(AirflowFailException, match=r"The roster is empty \(where leaves out 2 rows\)"):
        sync(path=file(STATUS), columns=columns, where={"Status": "hired"})
    with pytest.raises(
        AirflowFailException, match=r"where compares Status with 'before', and row 2 has 'suspended'\. Val"
    ):
        sync(path=file(STATUS), columns=columns, where={"Status": {"before": "90d"}})
    twice = "Email,Status,status\nmina.member@example.com,active,active\n"
    with pytest.raises(AirflowFailException, match="'Status' and 'status' are one column, which where compares"):
        sync(path=file(twice), columns=columns, where={"Status": "active"})
    assert writes(sandbox) == []
    now = datetime.now(timezone.utc)
    rows = [
        {"Email": "noah.newton@example.com", "Last login": (now - timedelta(days=100)).isoformat()},
        {"Email": "mina.member@example.com", "Last login": now.isoformat()},
    ]
    for row in rows:
        row["Joined"] = "2020-01-01"
    leave(rows, columns=columns, where={"Last login": {"before": "90d"}, "Joined": {"before": "90d"}})
    assert effects(sandbox) == ["delete_member"]


class Scalar:
    """A cell as pandas has it; NumPy is no dependency."""

    __module__ = "numpy"

    def __init__(self, value: Any = 8) -> None:
        self.value = value

    def item(self) -> Any:
        return self.value


def test_the_times_of_numpy_are_times() -> None:
    """Their ``item()`` is a number, of nanoseconds."""

    def as_microseconds(cell: Any, _unit: str) -> Scalar:
        return Scalar(cell.value)

    kind = type("datetime64", (Scalar,), {"__module__": "numpy", "item": lambda _: 10**18, "astype": as_microseconds})
    rows = [{"email": "mia@example.com", "until": kind(datetime(9998, 12, 31, 12, tzinfo=timezone.utc))}]
    assert "until 9998-12-31T12:00:00Z" in sync(rows, dry_run=True)["table"]


ID = "0190c0de-0000-4000-8000-000000000099"
DAY = datetime(2026, 1, 31, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("road", "cell", "wanted", "selects"),
    on_roads([
        (1, True, True),
        (0, True, False),
        ("1", True, True),
        (" TRUE ", True, True),
        (True, 1, True),
        (True, "1", True),
        (1, "true", True),
        (False, 0, True),
        ("false", False, True),
        (True, "TRUE", True),
        (None, False, False),
        (Scalar(value=True), True, True),
        (Scalar(8), 8, True),
        (Scalar("active"), "active", True),
        (8.0, "8", True),
        ("8.0", 8, True),
        ("8", 8.0, True),
        (Decimal("8.00"), 8, True),
        (0.1, Decimal("0.1"), True),
        ("0815", 815, False),
        ("0815", "815", False),
        ("8.0", "8", False),
        (DAY.date(), "2026-01-31", True),
        (DAY, "2026-01-31", True),
        (DAY, "2026-01-31T00:00:00Z", True),
        ("2026-01-31", DAY.date(), True),
        (DAY.date(), "2026-02-01", False),
        (DAY.date(), 20260131, False),
        (float("nan"), None, True),
        (UUID(ID), ID, True),
        ("yes", True, "where compares Flag with True, and row 1 has 'yes'. Values of Flag: 'yes' (1 row), "),
        ("yes", [True, "yes"], True),
        (b"active", "active", "where compares Flag, and row 1 has something of type bytes there: expected a text, num"),
        (["a"], "a", "where compares Flag, and row 1 has something of type list there"),
        ("a", [["a"]], "where compares Flag with something of type list; expected a text, number, boolean or time"),
        (20260131, {"before": "90d"}, "where compares Flag with 'before', and row 1 has 20260131. Values of Flag:"),
        (DAY.date(), {"before": "1d"}, True),
        (None, {"before": "1d"}, True),
        ("2026-01-31 00:00:00.5+00", {"before": "1d"}, True),
        ("2026-01-31 01:00:00+01", DAY, True),
        ("31.01.2026", DAY.date(), "where compares Flag with 2026-01-31, and row 1 has '31.01.2026'. Values of F"),
    ], [sync, invite, leave]),
)  # fmt: skip
def test_where_compares_what_is_plainly_equal(road: Road, cell: Any, wanted: Any, selects: Any) -> None:
    rows = [
        {"email": "mia@example.com", "Flag": cell},
        {"email": "noor@example.com", "Flag": wanted if isinstance(wanted, str) else None},
    ]
    arguments: dict[str, Any] = {"columns": {"email": "email", "*": None}, "where": {"Flag": wanted}, "dry_run": True}
    if isinstance(selects, str):
        with pytest.raises(AirflowFailException, match=re.escape(selects)):
            road(rows, **arguments)
        return
    if not selects and not isinstance(wanted, str):
        with pytest.raises(AirflowFailException, match=r"is empty \(where leaves out 2 rows\)"):
            road(rows, **arguments)
        return
    said = json.dumps(road(rows, **arguments))
    assert ("mia@example.com" in said) == selects


# Addresses


def grant(address: str) -> Any:
    task = WorkspaceGrantAccessOperator(
        task_id="grant", user_email=address, level="admin", length=timedelta(hours=1), reason="on call"
    )
    return task.execute({})


ADDRESS_ROADS: dict[str, Callable[[str], Any]] = {
    "roster": lambda address: sync([address]),
    "invites": lambda address: invite([address]),
    "leavers": lambda address: leave([address]),
    "protected": lambda address: sync(["mia@example.com"], protected=[address]),
    "people": lambda address: organization(people=[address]),
    "protected people": lambda address: organization(people=["mia@example.com"], protected=[address]),
    "emails": lambda address: WorkspaceMembersJoinedSensor(task_id="joined", emails=[address]).execute({}),
    "user_email": grant,
    "target_email": lambda address: WorkspaceCreateInviteOperator(task_id="one", target_email=address).execute({}),
}


@pytest.mark.parametrize(
    ("road", "address", "says"),
    on_roads([
        ("'noah.newton@example.com", "begins with an apostrophe, as a spreadsheet marks a text: delete it"),
        ("noah.newton_example.com#EXT#@tenant.example.com", "the sign-in name of a guest"),
        ("noah.newton@example.com, mina.member@example.com", "the cell holds 2 addresses"),
        ("noah.newton@example.com & mina.member@example.com", "the cell holds 2 addresses"),
        ("noah.newton@example.com&mina.member@example.com", "the cell holds 2 addresses"),
        ("noah.newton@example.com\u3001mina.member@example.com", "the cell holds 2 addresses"),
        ("noah.newton@example.com<noah@example.com>", "the cell holds 2 addresses"),
        ("Noah Newton <noah.newton@example.com>", "more than an address: write noah.newton@example.com alone"),
        ("noah.newton@example.com <Noah.Newton@example.com>", "2 times: write noah.newton@example.com alone"),
        ("noah.newton@example.com (Sales)", "more than an address: write noah.newton@example.com alone"),
        ("mailto:noah.newton@example.com", "more than an address: write noah.newton@example.com alone"),
        ('"noah.newton@example.com"', "more than an address: write noah.newton@example.com alone"),
        ("Noah <noah newton@example.com>", "the address contains a blank"),
        ("noah newton@example.com", "the address contains a blank"),
        ("*noah.newton@example.com", "begins with '*', as a line of a list or a formula: delete it"),
        ("-noah.newton@example.com", "begins with '-', as a line of a list or a formula: delete it"),
        ("=noah.newton@example.com", "begins with '=', as a line of a list or a formula: delete it"),
    ], ADDRESS_ROADS),
)  # fmt: skip
def test_what_is_no_mailbox_is_refused_on_each_road(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, road: str, address: str, says: str
) -> None:
    install(monkeypatch)
    with pytest.raises(REFUSED, match=re.escape(says)):
        ADDRESS_ROADS[road](address)
    assert writes(sandbox) == []


# Ends and cells


@pytest.mark.parametrize(
    ("until", "read"),
    [
        ("9998-12-31 00:00:00+00", "9998-12-31T00:00:00Z"),
        ("9998-12-31 12:00:00.5+0530", "9998-12-31T06:30:00Z"),
        ("9998-12-31 12:00:00 +02:00", "9998-12-31T10:00:00Z"),
        ("9998-12-31 12:00:00-08", "9998-12-31T20:00:00Z"),
        ("9998-12-31 00:00:00 +2", ""),
    ],
)
def test_a_time_of_a_database_has_a_zone_in_rows_and_files(until: str, read: str) -> None:
    row = {"email": "mia@example.com", "until": until}
    yaml = f"members:\n  people:\n    - {{email: mia@example.com, until: {until}}}\n"
    for plan in (lambda: sync([row], dry_run=True), lambda: plan_of_yaml(yaml)):
        if not read:
            with pytest.raises(AirflowFailException, match=r"until.*expected a date such as"):
                plan()
            continue
        table = plan()["table"]
        assert f"until {read}" in table
        hint = "Ends at midnight UTC: 1, the first in row 1 (9998-12-31T00:00:00Z). A day? Write 9998-12-31, which"
        assert (hint in table) == read.endswith("T00:00:00Z")


def plan_of_yaml(text: str) -> Any:
    path = Path("organization.yaml").absolute()
    path.write_text(text)
    return WorkspaceApplyOrganizationOperator(task_id="apply", part="members", file=str(path), dry_run=True).execute({})


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_words_for_no_value_are_no_names(sandbox: SandboxServer) -> None:
    words = ["None", "nan", "#N/A", "#REF!", float("nan"), " NULL ", "N/A", "(null)", "none", "#NUM!", "#DIV/0!", "\\N"]
    rows = [
        {"email": f"p{number}@example.com", "first_name": word, "message": word} for number, word in enumerate(words)
    ]
    names = ["Nan", "Null", "NA", "Nona"]
    invite([*rows, *({"email": f"{name}@example.com", "first_name": name} for name in names)])
    (sent,) = writes(sandbox)
    assert [row.get("first_name") for row in sent["body"]] == [None] * len(words) + names
    assert {row.get("message") for row in sent["body"]} == {None}


class Described(Sequence[Any]):
    """A column as psycopg describes it: a sequence, and no tuple."""

    def __init__(self, name: str) -> None:
        self.values = (name, 25, None)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Any:
        return self.values[index]


@pytest.mark.parametrize("until", [float("nan"), float("inf"), 46387.5])
def test_a_number_that_is_no_end_is_shown(until: float) -> None:
    for road in (sync, invite, leave):
        with pytest.raises(AirflowFailException, match=rf"field 'until': expected a date such as .*, not {until}"):
            road([{"email": "mia@example.com", "until": until}])


DESCRIPTION = [("EMAIL", 25, None, None, None, None, None), ("LEVEL", 23, None, None, None, None, None)]


@pytest.mark.parametrize("rows", [[], ([], DESCRIPTION), (DESCRIPTION, []), [[], [[*DESCRIPTION[0]]]]])
def test_a_query_without_rows_is_an_empty_list(sandbox: SandboxServer, rows: Any) -> None:
    counts = invite(rows)["counts"]
    assert (counts["rows"], counts.get("blank")) == (0, None)
    for road in (sync, organization):
        with pytest.raises(AirflowFailException, match=r"The roster is empty: this would remove everybody"):
            road(rows)
    with pytest.raises(AirflowFailException, match="leavers is empty"):
        leave(rows)
    assert "protected" not in sync(["mia@example.com"], protected=rows, dry_run=True)["table"]
    with pytest.raises(REFUSED, match="emails is empty: expected at least one address"):
        WorkspaceMembersJoinedSensor(task_id="joined", emails=rows).execute({})
    assert writes(sandbox) == []


def test_blank_rows_are_counted(file: Any) -> None:
    path = file("email,level\nnoah.newton@example.com,1\n,\n\n")
    for road in (sync, organization, leave):
        assert "Blank rows, which were skipped: 2." in road(path=path)["table"]
    assert invite(path=path)["counts"]["blank"] == 2


def test_ends_of_collaborators_at_midnight_are_asked_about() -> None:
    person = {"email": "mina.member@example.com", "until": "9998-12-31 00:00:00+00"}
    file = {"projects": [{"name": "North", "dashboards": [{"name": "Sales", "collaborators": [person]}]}]}
    plan = WorkspaceApplyOrganizationOperator(task_id="apply", file=file, dry_run=True).execute({})
    said = (
        "Ends at midnight UTC: 1, the first of collaborator mina.member@example.com of North / Sales "
        "(9998-12-31T00:00:00Z). A day? Write 9998-12-31, which"
    )
    assert said in plan["table"]


NamedRow = namedtuple("NamedRow", ["email", "LEVEL"])  # noqa: PYI024 - as drivers make them
DESCRIBED = [("EMAIL", 25, None), ("LEVEL", 23, None)]
TWO = [("mia@example.com", 8), ("noor@example.com", 1)]


class PyodbcRow:
    """A row of pyodbc is no sequence, and knows the description of its cursor."""

    cursor_description = DESCRIBED

    def __init__(self, cells: Any) -> None:
        self.cells = cells

    def __iter__(self) -> Any:
        return iter(self.cells)


def rows_of_sqlite() -> list[Any]:
    with closing(sqlite3.connect(":memory:")) as database:
        database.row_factory = sqlite3.Row
        return database.execute(
            "SELECT 'mia@example.com' AS email, 8 AS level UNION SELECT 'noor@example.com', 1"
        ).fetchall()


def rows_of_sqlalchemy() -> list[Any]:
    engine = create_engine("sqlite://")
    selected = "SELECT 'mia@example.com' AS email, 8 AS level UNION SELECT 'noor@example.com', 1"
    with engine.connect() as connection:
        rows = [*connection.execute(text(selected))]
    engine.dispose()
    return rows


DRIVERS: dict[str, Callable[[], Any]] = {
    "rows, description": lambda: (TWO, DESCRIBED),
    "description, rows": lambda: (DESCRIBED, TWO),
    "description, rows in XCom": lambda: [[*map(list, DESCRIBED)], [*map(list, TWO)]],
    "rows, names": lambda: (TWO, ["EMAIL", "LEVEL"]),
    "mappings, description": lambda: ([{"EMAIL": email, "LEVEL": level} for email, level in TWO], DESCRIBED),
    "named tuples": lambda: [NamedRow(*row) for row in TWO],
    "pyodbc": lambda: [PyodbcRow(row) for row in TWO],
    "sqlite3": rows_of_sqlite,
    "SQLAlchemy": rows_of_sqlalchemy,
    "SQLAlchemy's mappings": lambda: [row._mapping for row in rows_of_sqlalchemy()],
    "an iterator": lambda: iter([NamedRow(*row) for row in TWO]),
}


@pytest.mark.parametrize("driver", DRIVERS)
def test_rows_of_drivers_are_read_on_each_road(driver: str) -> None:
    rows = DRIVERS[driver]
    assert [row["email"] for row in invite(rows(), dry_run=True)["addresses"]] == [
        "mia@example.com",
        "noor@example.com",
    ]
    for road in (sync, plan_of_organization):
        changes = road(rows(), dry_run=True)["changes"]
        created = {row["name"].split()[-1]: row["after"] for row in changes if row["action"] == "create"}
        assert created == {"mia@example.com": {"level": 8}, "noor@example.com": {"level": 1}}
    assert leave(rows(), dry_run=True)["counts"]["skip"] == 2


def test_rows_that_know_their_names_may_be_named_by_position() -> None:
    for driver in ("named tuples", "pyodbc", "SQLAlchemy"):
        assert invite(DRIVERS[driver](), columns=["email", "level"], dry_run=True)["counts"]["planned"] == 2


def test_a_table_of_pandas_is_refused_with_a_cure() -> None:
    frame = type("DataFrame", (), {"columns": ["email"], "__iter__": lambda _: iter(["email"])})()
    for road in (sync, invite, leave):
        with pytest.raises(
            AirflowFailException, match=r"something of type DataFrame: pass its rows, as df.to_dict\('rec"
        ):
            road(frame)


@pytest.mark.parametrize(("header", "says"), [("Email,Level,,", ""), ("Email,Level,Team,", "3 columns, and columns")])
def test_empty_columns_at_the_end_need_no_names(file: Any, header: str, says: str) -> None:
    path = file(f"{header}\nmia@example.com,1,,\n")
    if says:
        with pytest.raises(AirflowFailException, match=says):
            sync(path=path, columns=["email", "level"], dry_run=True)
    else:
        assert sync(path=path, columns=["email", "level"], dry_run=True)["counts"]["create"] == 1


def test_drivers_have_cells_and_descriptions_of_their_own(sandbox: SandboxServer) -> None:
    invite(([("mia@example.com", Scalar()), ("noor@example.com", 1)], [Described("EMAIL"), Described("LEVEL")]))
    (sent,) = writes(sandbox)
    assert [row["level"] for row in sent["body"]] == [8, 1]


def test_leavers_come_from_a_file(sandbox: SandboxServer, file: Any) -> None:
    path = file("Mail,Ends on\nnoah.newton@example.com,\nmina.member@example.com,9998-12-31\n")
    columns = {"Mail": "email", "Ends on": "until"}
    assert "leaves later" in leave(path=path, columns=columns)["table"]
    assert effects(sandbox) == ["delete_member"]
    for both in ({"rows": ["a@example.com"], "path": path}, {"path": path, "roster": ["a@example.com"]}):
        with pytest.raises(AirflowFailException, match="Give either leavers=… or"):
            leave(**both)


# Properties of the door

NAMES = {"email": ("Email", "E-MAIL", "target email"), "level": ("Level", "LEVEL"), "first_name": ("First name",)}
CELLS = {
    "email": [f"{name}@example.com" for name in SEEDED]
    + ["mia@example.com", "Mia@Example.com", "'noah.newton@example.com", "", " ", "\u200b", "mia", "a@b.de,c@d.de"],
    "level": ["1", "8", "", "admin", "x"],
    "first_name": ["Ada", "", "None", "'"],
    None: ["", "Sales", "Total: 3"],
}
tables = st.permutations([*CELLS]).flatmap(
    lambda fields: st.tuples(
        st.just(fields),
        st.lists(st.tuples(*(st.sampled_from(CELLS[field]) for field in fields)), min_size=1, max_size=6),
        st.sampled_from(["", "\n", "sep=,\n", "version:v1.0\n"]),
        st.booleans(),
    )
)


def as_csv(lines: Sequence[Sequence[str]]) -> str:
    """Return lines of a CSV file, in which only cells with a comma are quoted."""
    texts: list[str] = []
    for line in lines:
        cells = [json.dumps(cell, ensure_ascii=False) if "," in cell else cell for cell in line]
        texts.append(",".join(cells))
    return "\n".join(texts) + "\n"


def addresses_of(changes: Iterable[dict[str, Any]]) -> set[str]:
    """Return the addresses that the lines of a plan end with."""
    return {change["name"].split()[-1] for change in changes}


def planned_for(changes: Iterable[dict[str, Any]]) -> set[str]:
    """Return the addresses of those for whom something is sent."""
    return addresses_of(change for change in changes if change["status"] == "planned")


def changes_of_leavers(**arguments: Any) -> list[dict[str, Any]]:
    """Plan the removal of leavers, and return what it changes; nothing if the list turns out empty."""
    try:
        plan = leave(**arguments)
    except AirflowFailException as error:
        assert "leavers is empty" in str(error)  # noqa: PT017
        return []
    return list(plan["changes"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=tables)
def test_no_row_disappears_and_nobody_is_changed_whom_no_row_names(
    sandbox: SandboxServer, tmp_path: Path, table: Any
) -> None:
    fields, rows, above, has_header = table
    header = [NAMES[field][0] if field else "Department" for field in fields]
    columns: Any = {"Department": None}
    lines = [header, *rows]
    if not has_header and any("@" in cell for cell in rows[0]):
        columns = [field or "message" for field in fields]
        lines = rows
    file = tmp_path / "any.csv"
    file.write_text(above + as_csv(lines))
    arguments: dict[str, Any] = {"path": str(file), "columns": columns, "dry_run": True}
    named = {cell.strip().lower() for row in rows for cell in row}
    sandbox.reset()
    report = invite(**arguments, on_invalid="skip")
    assert len(report["addresses"]) + report["counts"].get("blank", 0) == len(rows)
    assert planned_for(changes_of_leavers(**arguments, on_invalid="skip")) <= named
    try:
        plan = sync(**arguments, owner_level=None, protected=["olive.owner@example.com"])
    except AirflowFailException:
        return
    removed = addresses_of(change for change in plan["changes"] if change["action"] == "remove")
    assert not removed & named
    assert removed <= {f"{name}@example.com" for name in SEEDED}


SPELLINGS = {
    "email": ["Email", "E-MAIL", "e_mail", "Target Email"],
    "level": ["Level", "LEVEL", "level"],
    "first_name": ["First name", "FIRST_NAME"],
    "Status": ["Status", "STATUS", "status"],
    "": ["", " ", "\u200b"],
}
MARKED = {**CELLS, "Status": ["active", "left", ""], "": ["", "0", "x"]}
MARKED["email"] = [*CELLS["email"], "grace.analyst@example.com ", "\u2018adam.admin@example.com", "\u00a0"]
headers = st.permutations([*SPELLINGS]).flatmap(
    lambda fields: st.tuples(*(st.sampled_from(SPELLINGS[f]) for f in fields))
)


def field_of(name: str) -> str:
    return next(field for field, names in SPELLINGS.items() if name in names)


def rows_under(header: Sequence[str]) -> Any:
    row = st.tuples(*(st.sampled_from(MARKED[field_of(name)]) for name in header))
    blank = st.just(("",) * len(header))
    return st.lists(row | row | blank, min_size=1, max_size=6)


def forms_of(header: Sequence[str], rows: Sequence[Sequence[str]], folder: Path) -> list[dict[str, Any]]:
    """Return the same rows as files and as rows of tasks and drivers."""
    mappings = [dict(zip(header, row, strict=True)) for row in rows]
    with (folder / "any.csv").open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    (folder / "any.json").write_text(json.dumps(mappings))
    (folder / "any.jsonl").write_text("\n".join(map(json.dumps, mappings)))
    description = [(name, 25) for name in header]
    sources: list[Any] = [mappings, (rows, description), (description, rows)]
    files = [{"path": str(folder / name)} for name in ("any.csv", "any.json", "any.jsonl")]
    return [*files, *({"rows": source} for source in sources)]


@settings(max_examples=settings.default.max_examples // 3, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=headers.flatmap(lambda header: st.tuples(st.just(header), rows_under(header))), selects=st.booleans())
def test_each_form_of_the_same_rows_says_the_same_of_each_row(
    sandbox: SandboxServer, tmp_path: Path, table: Any, *, selects: bool
) -> None:
    header, rows = table
    arguments: dict[str, Any] = {"columns": {"": None, "Status": None}, "on_invalid": "skip", "dry_run": True}
    if selects:
        arguments["where"] = {"Status": ["active", None]}
    fields = [field_of(name) for name in header]
    email, status = fields.index("email"), fields.index("Status")
    blank = [row for row in rows if not any(map(str.strip, row))]
    left_out = [row for row in rows if selects and row[status] == "left"]
    named = {row[email].strip().lower() for row in rows if row not in left_out}
    results: list[Any] = []
    sandbox.reset()
    for source in forms_of(header, rows, tmp_path):
        report = invite(**source, **arguments)
        counts = report["counts"]
        found_blank, found_left_out = counts.get("blank", 0), counts.get("left_out", 0)
        assert found_left_out == len(left_out)
        assert found_blank >= len(blank)
        assert len(report["addresses"]) + found_blank + found_left_out == len(rows)
        changed = planned_for(changes_of_leavers(**source, **arguments))
        assert changed <= named
        statuses = [(entry["email"], entry["status"]) for entry in report["addresses"]]
        results.append((statuses, counts, changed))
    assert all(result == results[0] for result in results)


# The exports of the guide

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "rosters.md"


@pytest.mark.parametrize(
    ("directory", "created", "removed"),
    [
        ("Entra ID", ["ada@example.com"], 5),
        ("Google Workspace", ["ada@example.com"], 5),
        ("Okta", ["ada@example.com", "lee@example.com"], 5),
        ("An HR system", [], 1),
    ],
)
def test_the_exports_of_the_guide_are_read(tmp_path: Path, directory: str, created: list[str], removed: int) -> None:
    section = GUIDE.read_text().partition(f"### {directory}\n")[2]
    text, written = re.findall(r"```text\n(.*?)```", section, re.DOTALL)[:2]
    arguments = eval(f"dict({written})")  # noqa: S307 - the code of the guide
    argument = "leavers_path" if "leavers_path" in arguments else "path"
    (tmp_path / arguments[argument]).write_text(text)
    arguments[argument] = str(tmp_path / arguments[argument])
    task = WorkspaceSyncMembersOperator(
        task_id="sync", protected=["olive.owner@example.com"], max_removals=None, dry_run=True, **arguments
    )
    plan = task.execute({})
    assert [row["name"].split()[-1] for row in plan["changes"] if row["action"] == "create"] == created
    assert plan["counts"]["remove"] == removed
    assert "Left out by where" in plan["table"]
