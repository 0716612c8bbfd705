"""Rows that slipped, and rows that ``where`` leaves out: nobody loses or keeps access because of them in green."""

from __future__ import annotations

import json
import re
import time
import unicodedata
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_workspace.access.rules.guards import describe_protected
from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.operators.invites import (
    WorkspaceCreateInvitesOperator,
    WorkspaceDeleteInviteOperator,
    WorkspaceListInvitesOperator,
)
from airflow_provider_workspace.operators.members import WorkspaceListMembersOperator, WorkspaceSyncMembersOperator
from airflow_provider_workspace.operators.organization import (
    WorkspaceApplyOrganizationOperator,
    WorkspacePlanOrganizationOperator,
)
from airflow_provider_workspace.procedures.roster_tables import rows_at
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.unit.operators.test_roster_door import invite, leave, organization, plan_of_organization, sync

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer

pytestmark = pytest.mark.usefixtures("no_waits")
ROADS = [sync, invite, leave, organization]
COLUMNS = {"Mail": "email", "*": None}
ACTIVE = {"Status": "Active"}
HEADER = "Last,First,Mail,Status\n"
OTHERS = "Owner,Olive,olive.owner@example.com,Active\nAdmin,Adam,adam.admin@example.com,Active\n"
NOAH = "noah.newton@example.com"


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """Write a roster, and return its path."""

    def write(content: str, name: str = "people.csv") -> str:
        (tmp_path / name).write_text(content)
        return str(tmp_path / name)

    return write


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize(
    ("header", "row", "says"),
    [
        (HEADER, f"Newton, Noah,Noah,{NOAH},Active", "row 4 (noah.newton@example.com): cells beyond the last column"),
        (HEADER, f"Newton, Noah,{NOAH},Active,", "row 4 (noah.newton@example.com): more cells than columns"),
        (HEADER, f"Newton,{NOAH},Active", "row 4 (noah.newton@example.com): fewer cells than columns"),
        (HEADER, f"Newton,Noah,{NOAH}", "row 4 (noah.newton@example.com): fewer cells than columns"),
        (HEADER, f"Newton, Noah,Noah,{NOAH}", "column 'Mail' holds no address, and column 'Status' does"),
        (
            HEADER,
            f'Tester,"Tess,tess@example.com,Active\nNewton,Noah,{NOAH},Active\nFinn,"Fay",fay@example.com,Active',
            "line 6",
        ),
        (
            HEADER,
            f'Tester,"Tess,tess@example.com,Active\nNewton,Noah,{NOAH},Active\nFinn,Fay",fay@example.com,Active',
            "a line break in column 'First', whose first line is 'Tess,tess@example.com,Active'",
        ),
        (
            HEADER,
            f'"Newton,Noah,{NOAH},Active\nFinn",Fay,fay@example.com,Gone',
            "a line break in column 'Last', whose first line is 'Newton,Noah,noah.newton@example.com,Acti",
        ),
    ],
)  # fmt: skip
def test_the_shape_of_a_row_is_judged_before_where(
    sandbox: SandboxServer, write: Any, road: Any, header: str, row: str, says: str
) -> None:
    path = write(header + OTHERS + row + "\n")
    with pytest.raises(AirflowFailException) as caught:
        road(path=path, columns=COLUMNS, where=ACTIVE)
    assert says in str(caught.value)
    assert sandbox.effects() == []


def test_rows_that_end_with_one_more_separator_each_are_read(write: Any) -> None:
    rows = "".join(f"{line},\n" for line in OTHERS.splitlines())
    for header in (HEADER, HEADER.strip() + ",,\n"):
        plan = sync(path=write(header + rows), columns={**COLUMNS, "": None}, where=ACTIVE, dry_run=True)
        assert plan["counts"]["remove"] == 4


def test_a_text_of_several_lines_is_read_where_it_belongs(write: Any) -> None:
    path = write('email,message,Office\nmia@example.com,"Hello\nMia, write to it@example.com","A street\nBerlin"\n')
    report = invite(path=path, columns={"Office": None})
    assert report["counts"]["invited"] == 1


def test_stray_quotation_marks_in_the_header_are_refused(write: Any) -> None:
    path = write(f'email,"Status\n{NOAH},Active\nmina.member@example.com,"\n')
    with pytest.raises(AirflowFailException, match="A line break in the header below 'Status' swallows a row"):
        sync(path=path, columns={"email": "email", "*": None})


def test_a_misshapen_row_with_an_end_may_be_of_somebody_who_should_go(write: Any) -> None:
    path = write(f"Mail,Name,until,Status\n{NOAH},Newton, Noah,2026-01-31,Active\n")
    members: dict[str, Any] = {"columns": {**COLUMNS, "until": "until"}, "where": ACTIVE, "on_invalid": "skip"}
    with pytest.raises(AirflowFailException, match=r"\[access-left\].*row 2 noah.newton@example.com"):
        plan_of_organization(path=path, dry_run=False, **members)


# Fields that are missing


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("form", ["rows", "json", "jsonl"])
def test_a_row_without_the_field_that_where_asks_is_an_error(
    sandbox: SandboxServer, write: Any, road: Any, form: str
) -> None:
    rows = [{"Mail": "mina.member@example.com", "Suspended": False}, {"Mail": NOAH}]
    source = {"rows": rows}
    if form == "json":
        source = {"path": write(json.dumps(rows), "people.json")}
    elif form == "jsonl":
        source = {"path": write("\n".join(map(json.dumps, rows)), "people.jsonl")}
    with pytest.raises(AirflowFailException, match=r"row 2 \(noah.*\): no 'Suspended', which where compares"):
        road(**source, columns=COLUMNS, where={"Suspended": False})
    assert sandbox.effects() == []
    assert "Left out" not in json.dumps(road(**source, columns=COLUMNS, where={"Suspended": [False, None]}))


def test_blank_cells_of_a_csv_file_that_where_leaves_out_are_counted(write: Any) -> None:
    path = write(f"Mail,Status\nmina.member@example.com,Active\n{NOAH},\nfay@example.com,Gone\n")
    table = sync(path=path, columns=COLUMNS, where=ACTIVE, dry_run=True)["table"]
    assert "Left out by where (Status): 2 of 3. 1 row without a value in 'Status'." in table


def test_defaults_say_what_an_absent_field_is() -> None:
    rows = [{"Mail": "grace.analyst@example.com", "Suspended": True}, {"Mail": NOAH}]
    plan = leave(rows, columns=COLUMNS, where={"Suspended": True}, defaults={"suspended": False})
    assert (plan["counts"]["remove"], "Left out by where (Suspended): 1 of 2." in plan["table"]) == (1, True)


# Unicode


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_the_unicode_form_of_cells_and_headers_does_not_matter(write: Any, form: Any) -> None:
    other = "NFD" if form == "NFC" else "NFC"
    text = "Mail,Prénom,État\nolive.owner@example.com,Olive,Activé\nnoah.newton@example.com,Noah,Activé\n"
    path = write(unicodedata.normalize(form, text))
    columns = {"Mail": "email", unicodedata.normalize(other, "Prénom"): "first_name"}
    where = {unicodedata.normalize(other, "État"): unicodedata.normalize(other, "Activé")}
    plan = sync(path=path, columns=columns, where=where, dry_run=True)
    assert "Left out" not in plan["table"]


# What where may mean


@pytest.mark.parametrize("road", ROADS)
def test_a_cure_names_the_values_that_occur(write: Any, road: Any) -> None:
    rows = "".join(f"p{n}@example.com,{flag}\n" for n, flag in enumerate(["Yes", "No", "Yes", "", "Yes"]))
    with pytest.raises(AirflowFailException) as caught:
        road(path=write(f"Mail,Active\n{rows}"), columns=COLUMNS, where={"Active": True})
    assert (
        "where compares Active with True, and row 2 has 'Yes'. Values of Active: 'Yes' (3 rows), 'No' (1 row), "
        "no value (1 row). List in where, as they are written, those that count" in str(caught.value)
    )


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize(
    ("cell", "wanted"),
    [
        ("on-site\u200b", "on-site"),
        ("\ufeffon-site", "on-site"),
        ("\uff4fn-site", "on-site"),
        ("o\u00adn-site", "on-site"),
        ("on\u2011site", ["on-site", None]),
        ("8\u200b", 8),
        ("\uff18", [8, None]),
    ],
)
def test_a_cell_that_looks_like_what_where_asks_is_an_error(
    sandbox: SandboxServer, write: Any, road: Any, cell: str, wanted: object
) -> None:
    path = write(f"Mail,Status\n{NOAH},{cell}\n")
    with pytest.raises(AirflowFailException, match=r"where-unclear.* where compares Status with .*row 2 has"):
        road(path=path, columns=COLUMNS, where={"Status": wanted})
    assert sandbox.effects() == []


def test_many_values_are_not_all_named(write: Any) -> None:
    rows = "".join(f"p{n}@example.com,v{n}\n" for n in range(12))
    with pytest.raises(AirflowFailException, match=r"'v9' \(1 row\), …\. List"):
        sync(path=write(f"Mail,Active\n{rows}"), columns=COLUMNS, where={"Active": True})


# Other rows of the same person

REHIRED = "Work e-mail;Employment;Last day\n"
OLD = "noah.newton@example.com;terminated;2026-01-31\n"
BACK = "Noah.Newton@example.com;active;\n"
HR: dict[str, Any] = {
    "columns": {"Work e-mail": "email", "Last day": "until", "*": None},
    "where": {"Employment": "terminated"},
}


@pytest.mark.parametrize("rows", [OLD + BACK, BACK + OLD, OLD + OLD.replace("2026-01", "2025-03") + BACK])
def test_who_is_back_is_no_leaver_but_left_to_people(sandbox: SandboxServer, write: Any, rows: str) -> None:
    gone = "grace.analyst@example.com;terminated;2026-01-31\n"
    plan = leave(path=write(REHIRED + rows + gone), **HR)
    assert len(sandbox.effects()) == plan["counts"]["remove"] == 1
    (line,) = [change for change in plan["changes"] if "noah" in change["name"].lower()]
    old, back = (2, 3) if rows.startswith(OLD) else (3, 2)
    if "2025" in rows:
        back = 4
    assert line["action"] == "differs"
    assert f"row {old} is leaving, but where leaves out row {back} about the same person" in line["why"]
    # A roster of the same file has them, so they are neither removed nor invited each night.
    sandbox.reset()
    columns = {"Work e-mail": "email", "*": None}
    plan = sync(path=write(REHIRED + rows), columns=columns, where={"Employment": "active"}, owner_level=15)
    assert [change["name"] for change in plan["changes"] if "noah" in change["name"].lower()] == []


@pytest.mark.parametrize("road", [sync, organization])
@pytest.mark.parametrize("then", ["removed", "1"])
def test_an_ended_row_takes_nothing_if_where_leaves_out_another_one(
    sandbox: SandboxServer, write: Any, road: Any, then: str
) -> None:
    others = "".join(
        f"{member}@example.com,contractor,,\n" for member in ("olive.owner", "adam.admin", "grace.analyst")
    )
    ended = f"{NOAH},contractor,2026-01-31,{then}\nliv.invited@example.com,contractor,2026-01-31,removed\n"
    back = f"Noah <{NOAH.upper()}>,employee,,\nmailto:liv.invited@example.com,employee,,\n"
    path = write(f"Mail,Type,until,then,level\n{ended}{back}mina.member@example.com,contractor,,\n{others}")
    columns = {"Mail": "email", "until": "until", "then": "then", "level": "level", "*": None}
    plan = road(path=path, columns=columns, where={"Type": "contractor"}, defaults={"level": 8})
    row = "row 2 has ended, but where leaves out row 4 about the same person: end their access by hand"
    assert row in plan["table"]
    assert "row 3 has ended, but where leaves out row 5" in plan["table"]
    assert {effect["operation"] for effect in sandbox.effects()} <= {"update_member"}
    assert NOAH not in json.dumps([change for change in plan["changes"] if change["action"] in ("change", "remove")])


@pytest.mark.parametrize("odd", [f"Noah <{NOAH}>", f"mailto:{NOAH}", f"\u200b{NOAH}", f"x@example.com; {NOAH}"])
def test_a_row_that_where_leaves_out_may_hold_more_than_an_address(
    sandbox: SandboxServer, write: Any, odd: str
) -> None:
    path = write(f"Mail,Status\n{NOAH},gone\n{odd},active\n")
    plan = leave(path=path, columns=COLUMNS, where={"Status": "gone"})
    assert "row 2 is leaving, but where leaves out row 3" in plan["table"]
    assert sandbox.effects() == []


def test_a_leaver_without_access_whom_another_row_names_is_left_to_people() -> None:
    rows = [{"email": "mia@example.com", "Status": status} for status in ("left", "back")]
    plan = leave(rows, columns={"Status": None}, where={"Status": "left"})
    assert [change["action"] for change in plan["changes"]] == ["differs"]


# Ages of leavers

AGE = {"before": "90d"}


@pytest.mark.parametrize("source", ["rows", "file"])
def test_one_age_alone_removes_nobody(sandbox: SandboxServer, write: Any, source: str) -> None:
    joined_at = datetime.now(timezone.utc) - timedelta(days=1)
    rows = [{"email": NOAH, "last_login": None, "joined_at": joined_at.isoformat()}]
    given: dict[str, Any] = {"rows": rows}
    if source == "file":
        given = {"path": write(json.dumps(rows), "people.json")}
    given["columns"] = {"email": "email", "*": None}
    with pytest.raises(AirflowFailException, match=r"\[joined-unknown\].*'last_login': .* alone also removes who has"):
        leave(**given, where={"last_login": AGE})
    with pytest.raises(AirflowFailException, match="leavers is empty"):
        leave(**given, where={"last_login": AGE, "joined_at": AGE})
    assert sandbox.effects() == []


def test_people_without_any_time_are_no_leavers(sandbox: SandboxServer) -> None:
    columns = {"email": "email", "*": None}
    rows = [
        {"email": NOAH, "last_login": None, "joined_at": "2025-01-01", "Status": "x"},
        {"email": "mina.member@example.com", "last_login": None, "joined_at": None, "Status": "y"},
        {"email": "olive.owner@example.com", "last_login": "2999-01-01", "joined_at": None, "Status": "y"},
    ]
    where: dict[str, Any] = {"last_login": AGE, "joined_at": AGE}
    with pytest.raises(AirflowFailException, match=r"1 row without a time in 'last_login' and 'joined_at' would be"):
        leave(rows, columns=columns, where=where)
    plan = leave(rows, columns=columns, where={**where, "Status": "x"})
    assert (plan["counts"]["remove"], len(sandbox.effects("delete_member"))) == (1, 1)


@pytest.mark.parametrize(
    ("last_login", "message"),
    [({"last_login": None}, "joined-unknown.*No row has a time in 'last_login'"), ({}, "no 'last_login', which where")],
)
def test_an_age_that_is_not_sent_any_more_removes_nobody(
    sandbox: SandboxServer, last_login: dict[str, None], message: str
) -> None:
    others = {"joined_at": "2025-01-01", **last_login}
    rows: list[dict[str, Any]] = [{"email": NOAH, **others}, {"email": "mina.member@example.com", **others}]
    if not last_login:  # another row has the column
        rows.append({"email": "olive.owner@example.com", "last_login": "2999-01-01", "joined_at": "2025-01-01"})
    arguments: dict[str, Any] = {"columns": {"email": "email", "*": None}, "max_removals": None}
    with pytest.raises(AirflowFailException, match=message):
        leave(rows, **arguments, where={"last_login": AGE, "joined_at": AGE})
    assert sandbox.effects() == []
    plan = leave(rows, **arguments, where={"last_login": [AGE, None], "joined_at": AGE})
    assert plan["counts"]["remove"] == 2


def test_the_example_of_the_guide_removes_inactive_people_and_nobody_who_joined_today(sandbox: SandboxServer) -> None:
    guide = Path(__file__).resolve().parents[3] / "docs" / "guides" / "rosters.md"
    code = guide.read_text().partition("### Inactive people\n")[2].partition("```python\n")[2].partition("```")[0]
    arguments = code.partition("leavers=members.output,")[2].partition("    )\n")[0]
    listed = WorkspaceListMembersOperator(task_id="members", fields=["user.email", "last_login", "joined_at"])
    rows = listed.execute({})
    (new,) = [row for row in rows if row["user.email"] == "mina.member@example.com"]
    new |= {"last_login": None, "joined_at": datetime.now(timezone.utc).isoformat()}
    plan = leave(rows, **eval(f"dict({arguments})"))  # noqa: S307 - the code of the guide
    assert [change["name"] for change in plan["changes"] if change["action"] == "remove"] == [f"member {NOAH}"]
    assert len(sandbox.effects()) == 1


# Forms of files and rows

PEOPLE = [{"email": "mia@example.com", "level": "member"}, {"email": "noor@example.com", "level": "admin"}]
GUARDS: dict[str, Any] = {"protected": [], "max_removals": None}
LINES = "\n".join(map(json.dumps, PEOPLE))
NESTED = [{"id": 1, "profile": {"email": "mia@example.com", "status": {"name": "Active"}}},
          {"id": 2, "profile": {"email": "noor@example.com", "status": {"name": "Gone"}}}]  # fmt: skip
SCIM = {"totalResults": 1, "Resources": [{"active": True, "emails": [{"value": "mia@example.com"}]}]}


@pytest.mark.parametrize(
    ("name", "content", "arguments", "invited"),
    [
        ("a.tsv", "email\tfirst, name\nmia@example.com\tMia\n", {"columns": {"first, name": "first_name"}}, 1),
        ("a.ndjson", LINES, {}, 2),
        ("a.json", LINES, {}, 2),
        ("a.json", json.dumps({"data": {"users": PEOPLE}}), {"rows": "data.users"}, 2),
        ("a.json", json.dumps(NESTED), {"columns": {"profile.email": "email", "id": None}}, 2),
        ("a.json", json.dumps(NESTED), {"columns": {"profile.email": "email", "*": None},
                                       "where": {"profile.status.name": "Active"}}, 1),
        ("a.json", json.dumps(SCIM), {"rows": "Resources", "columns": {"emails.0.value": "email", "active": None}}, 1),
        ("a.csv", "Export of it@example.com\n\nemail\nmia@example.com\n", {"skip_rows": 1}, 1),
        ("a.csv", "Title\r\nsep=;\r\nemail;level\r\nmia@example.com;1\r\n", {"skip_rows": 1}, 1),
        ("a.csv", "email,level\nmia@example.com,Editor\nnoor@example.com, viewer \n",
         {"levels": {"editor": "admin", "*": None}}, 2),
        ("a.csv", "email,until,level\nmia@example.com,0000-00-00,-\n", {"no_value": ["-", "0000-00-00"]}, 1),
        ("a.csv", "email,until\nmia@example.com,9999-12-31T23:59:59-12:00\n", {}, 1),
    ],
)  # fmt: skip
def test_what_other_programs_write_is_read(write: Any, name: str, content: str, arguments: Any, invited: int) -> None:
    path = write(content, name)
    task = WorkspaceCreateInvitesOperator(task_id="invite", path=path, **arguments)
    assert task.execute({})["counts"]["invited"] == invited


@pytest.mark.parametrize("as_rows", [lambda names, rows: (names, rows), lambda names, rows: [rows, names]])
def test_rows_are_skipped_after_the_description_of_a_cursor(as_rows: Any) -> None:
    names = [("email", None), ("level", None)]
    rows = [["Export", ""], ["mia@example.com", 1], ["mia@example", 1]]
    operator = WorkspaceCreateInvitesOperator(task_id="invite", invites=as_rows(names, rows), skip_rows=1)
    with pytest.raises(AirflowFailException, match=r"Invalid rows: 1\. .*: row 3 \(mia@example\)"):
        operator.execute({})
    assert invite(as_rows(names, rows[:2]), skip_rows=1)["counts"]["invited"] == 1


@pytest.mark.parametrize("road", ROADS)
def test_no_road_skips_every_row(sandbox: SandboxServer, road: Any) -> None:
    rows: Any = [["mina.member@example.com"], [NOAH]]
    given: dict[str, Any] = {"columns": ["email"], "skip_rows": 2}
    task: Any
    if road is organization:
        file = {"members": given}
        task = WorkspaceApplyOrganizationOperator(task_id="apply", part="members", file=file, roster=rows)
    elif road is invite:
        task = WorkspaceCreateInvitesOperator(task_id="invite", invites=rows, **given)
    else:
        source = {"sync": "roster", "leave": "leavers"}[road.__name__]
        task = WorkspaceSyncMembersOperator(task_id="sync", **{source: rows}, **given, **GUARDS)
    with pytest.raises(AirflowFailException, match=r"skip_rows=2 skips every row \(2 in all\)\. Lower it"):
        task.execute({})
    assert sandbox.effects() == []


@pytest.mark.parametrize("road", ROADS)
def test_each_road_reads_the_format_of_rows(road: Any) -> None:
    rows = {"users": [["a title"], {"mail": "mina.member@example.com", "level": "Editor"}, {"mail": "-"}]}
    given: dict[str, Any] = {"columns": {"mail": "email"}, "rows": "users", "skip_rows": 1, "no_value": ["-"]}
    given["levels"] = {"Editor": "member"}
    if road is organization:
        file = {"members": given}
        task = WorkspaceApplyOrganizationOperator(task_id="apply", part="members", file=file, roster=rows)
        assert "Blank rows, which were skipped: 1." in task.execute({})["table"]
        return
    source = {"invite": "invites", "sync": "roster", "leave": "leavers"}[road.__name__]
    operator = WorkspaceCreateInvitesOperator if road is invite else WorkspaceSyncMembersOperator
    guards: dict[str, Any] = {} if road is invite else GUARDS
    result = operator(task_id="read", **{source: rows}, **guards, **given).execute({})
    assert result["counts"].get("change", 0) == 0
    assert "blank" in json.dumps(result).lower()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"@odata.nextLink": "https://example.com/2"}, "it has 1 row, and '@odata.nextLink' leads to another one"),
        ({"nextPageToken": "2"}, "'nextPageToken' leads to another one"),
        ({"response_metadata": {"next_cursor": "2"}}, "'next_cursor' leads to another one"),
        ({"totalResults": 6, "startIndex": 1}, "'totalResults' is 6"),
        ({"pageInfo": {"hasNextPage": True}}, "'hasNextPage' leads to another one"),
    ],
)
def test_one_page_of_an_answer_is_no_list(more: Any, says: str) -> None:
    for rows, path in (({"users": [NOAH], **more}, "users"), ({"data": {"users": [NOAH], **more}}, "data.users")):
        with pytest.raises(WorkspaceInputError, match=re.escape(says)):
            rows_at(rows, path, "", "roster")


def test_the_last_page_of_an_answer_is_a_list() -> None:
    answer = {
        "users": [NOAH],
        "next": None,
        "count": 1,
        "total": "2",
        "groups": {"count": 7},
        "pageInfo": {"hasNextPage": False},
    }
    assert rows_at(answer, "users", "", "roster") == [NOAH]
    with pytest.raises(AirflowFailException, match="Read all pages in a task"):
        WorkspaceSyncMembersOperator(task_id="sync", roster={**answer, "count": 2}, rows="users", **GUARDS).execute({})


def test_levels_of_a_roster_stand_for_levels_here() -> None:
    rows = [{"email": "mina.member@example.com", "level": "Editor"}, {"email": NOAH, "level": "Viewer"}]
    plan = sync(rows, levels={"EDITOR": "admin", "*": None}, dry_run=True)
    changed = {change["name"]: change["after"] for change in plan["changes"] if change["action"] == "change"}
    assert changed == {"member mina.member@example.com": {"level": 8}}
    assert "job grades" not in sync(rows, levels={"editor": 1, "viewer": 1}, dry_run=True)["table"]


@pytest.mark.parametrize("level", [8, 8.0, Decimal("8.0"), "8.00", " 8 "])
def test_levels_name_numbers_too(level: object) -> None:
    plan = sync([{"email": NOAH, "level": level}], levels={"8": "member"}, dry_run=True)
    assert plan["counts"]["change"] == 0


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize(
    ("level", "levels"), [(8, {"Junior": 1}), ("Owner", {"8": 1}), ("Owner\u200b", {"*": 1, "Owner": 15})]
)
def test_a_level_that_levels_does_not_name_is_no_access_level(
    sandbox: SandboxServer, road: Any, level: object, levels: Any
) -> None:
    with pytest.raises(AirflowFailException, match="not in levels"):
        road([{"email": NOAH, "level": level}], levels=levels)
    assert sandbox.effects() == []


@pytest.mark.parametrize(
    ("levels", "says"),
    [
        ({"8": 1, "8.0": 8}, "levels names '8' twice"),
        ({"Editor": 1, "editor ": 8}, "levels names 'editor' twice"),
        ({8: 1}, "levels: put the key 8 in quotation marks, as in {'8': …}"),
    ],
)
def test_levels_are_named_once_and_as_texts(levels: Any, says: str) -> None:
    with pytest.raises(AirflowFailException, match=re.escape(says)):
        sync([NOAH], levels=levels)


def test_levels_of_a_roster_are_not_those_of_people_in_the_file() -> None:
    plan = plan_of_organization(people=[{"email": NOAH, "level": "admin"}], levels={"Owner": "admin"})
    assert plan["counts"]["change"] == 1


def test_an_end_in_the_year_9999_is_none_but_keeps_a_leaver(write: Any) -> None:
    path = write(f"email,until,then\n{NOAH},9999-12-31 23:59:59+14:00,\n")
    assert "9999" not in sync(path=path, dry_run=True)["table"]
    assert "leaves later: until 9999-12-31" in leave(path=path, dry_run=True)["table"]


@pytest.mark.parametrize(
    ("name", "content", "arguments", "says"),
    [
        ("a.gz", "", {}, "First, unpack it, as with gunzip"),
        ("a.xlsx", "", {}, "First, save it as CSV UTF-8"),
        ("a.doc", "", {}, "First, export it in one of these forms"),
        ("a.json", json.dumps(SCIM), {}, "Name the list that holds them: rows='Resources' (1 rows)"),
        ("a.json", '{"a": 1}', {"rows": "data.users"}, "There is no list at rows='data.users'. If a list is nested"),
        ("a.json", LINES + "\n{", {}, "Extra data"),
        ("a.csv", "email\nmia@example.com\n", {"skip_rows": 9}, "skip_rows=9 skips every row (2 in all). Lower it"),
        ("a.csv", "email\r\nmia@example.com", {"skip_rows": 2}, "skip_rows=2 skips every row (2 in all). Lower it"),
        ("a.csv", "Title\n\n", {"skip_rows": 1}, "The file is empty"),
        ("a.json", json.dumps(PEOPLE), {"skip_rows": 2}, "skip_rows=2 skips every row (2 in all). Lower it"),
        ("a.jsonl", LINES, {"skip_rows": 3}, "skip_rows=3 skips every row (2 in all). Lower it"),
        ("a.jsonl", LINES, {"rows": "users"}, "There is no list at rows='users'"),
        ("a.csv", "email\nmia@example.com\n", {"rows": "users"}, "rows='users' names a list in JSON, and a .csv file"),
        ("a.tsv", "email\nmia@example.com\n", {"rows": "users"}, "rows='users' names a list in JSON, and a .tsv file"),
        ("a.csv", "email\nmia@example.com\n", {"skip_rows": -1}, "skip_rows must be 0 or more, not -1"),
        ("a.csv", "email\nmia@example.com\n", {"levels": {"Editor": "boss"}}, "levels: 'Editor' stands for no level"),
        ("a.csv", "Team of it@example.com\nemail\nmia@example.com\n", {}, "If it is a title, set skip_rows=1"),
        ("a.csv", "email,level\nmia@example.com,Editor\nnoor@example.com,Editor\nnour@example.com,Viewer\n", {},
         "(found 'Editor'; levels=… says what such texts stand for) (and 1 more: row 3 (noor@example.com)); row 4"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_has_a_first_step(
    sandbox: SandboxServer, write: Any, name: str, content: str, arguments: Any, says: str
) -> None:
    with pytest.raises(AirflowFailException) as caught:
        WorkspaceCreateInvitesOperator(task_id="invite", path=write(content, name), **arguments).execute({})
    assert says in str(caught.value)
    assert sandbox.effects() == []


# Protected people of a domain

PARTNERS = ["pia@partner.example", "Paul@PARTNER.example"]


def with_partners(sandbox: SandboxServer) -> None:
    invite([*PARTNERS, "paula@sub.partner.example"])
    assert len(sandbox.effects()) == 3


@pytest.mark.parametrize("road", [sync, organization])
def test_everybody_of_a_domain_is_protected_and_shown(sandbox: SandboxServer, road: Any) -> None:
    with_partners(sandbox)
    plan = road(["olive.owner@example.com"], protected=["*@Partner.Example", "*@nobody.example"])
    removed = {change["name"] for change in plan["changes"] if change["action"] == "remove"}
    assert "invite paula@sub.partner.example" in removed
    assert not removed & {f"invite {address}" for address in PARTNERS}
    shown = {change["name"]: change["why"] for change in plan["changes"] if "*@" in change["name"]}
    assert shown == {
        "person *@partner.example": "protected: 2 of 9 members and invites: paul@partner.example, pia@partner.example",
        "person *@nobody.example": "protected, but matches neither a member nor an invite: check the domain",
    }


def test_a_pattern_that_protects_everybody_is_said() -> None:
    plan = sync(["olive.owner@example.com"], protected=["*@example.com"])
    assert plan["counts"]["remove"] == 0
    assert "*@example.com protects everybody, so nobody can lose access: adam.admin@example.com" in plan["table"]


def test_more_than_a_few_who_are_protected_are_counted() -> None:
    assert describe_protected("*@a.de", [f"{n}@a.de" for n in range(25)], 30).endswith(
        ", … and 5 more: see the list of members"
    )


PATTERNS = [
    *["*@*", "*@example", "*@*.example", "*@", "*@a b.de", "*", "*example.com", "noah.*@example.com"],
    *["n?ah.newton@example.com", "*@example.com,partner.example", "*@example.com;b.example", "*@a.example|b.example"],
]


@pytest.mark.parametrize("road", [sync, leave, organization])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_is_no_pattern_is_refused(sandbox: SandboxServer, road: Any, pattern: str) -> None:
    with pytest.raises(
        AirflowFailException, match=re.escape(f"{pattern!r} is no pattern: write one address, or '*@' and")
    ):
        road([NOAH], protected=[pattern])
    assert sandbox.effects() == []


def test_a_pattern_is_a_text_and_no_cell_of_a_row(sandbox: SandboxServer) -> None:
    with pytest.raises(AirflowFailException, match=re.escape("write '*@partner.example' as a text, not as a cell")):
        leave([NOAH], protected=[{"email": "*@partner.example"}])
    assert sandbox.effects() == []


def test_the_operators_for_one_person_ask_the_same_rule(sandbox: SandboxServer) -> None:
    with_partners(sandbox)
    invites = WorkspaceListInvitesOperator(task_id="list").execute({})
    (pia,) = [row["id"] for row in invites if row["target_email"] == "pia@partner.example"]
    task = WorkspaceDeleteInviteOperator(task_id="withdraw", invite_id=pia, protected=["*@partner.example"])
    with pytest.raises(AirflowFailException, match="is kept: protected"):
        task.execute({})


# Results have a size


@pytest.mark.slow
def test_a_large_plan_fits_into_an_xcom_and_its_approval_still_holds() -> None:
    leavers = [NOAH, *(f"p{number}@example.com" for number in range(1_050))]
    invite([f"p{number}@example.com" for number in range(1_010)])
    plan = leave(leavers, dry_run=True)
    assert len(plan["changes"]) == 1_000
    assert plan["changes_not_shown"] + 1_000 == sum(plan["counts"].values()) == 1_051
    assert len(json.dumps(plan)) < 500_000
    assert {change["action"] for change in plan["changes"]} == {"remove"}
    applied = leave(leavers, approved=plan)
    assert (applied["counts"]["remove"], applied["digests"]) == (1_011, [])
    with pytest.raises(AirflowFailException, match="approved must be a plan"):
        leave(leavers, approved={**plan, "digests": [7]})
    with pytest.raises(AirflowFailException, match=r"\[approval-stale\]"):
        leave([*leavers, "grace.analyst@example.com"], approved=plan)


def test_a_large_report_of_invites_fits_into_an_xcom() -> None:
    report = invite([*(f"p{number}@example.com" for number in range(1_100)), "wrong"], on_invalid="skip", dry_run=True)
    assert (len(report["addresses"]), report["addresses_not_shown"], report["counts"]["rows"]) == (1_000, 101, 1_101)
    assert "wrong" in {row["email"] for row in report["addresses"]}


# The sources of the guide

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "rosters.md"
SOURCES = Path(__file__).resolve().parents[2] / "data" / "sources"
FILES = {
    "Google Workspace": "google_admin.csv",
    "GAM": "gam.csv",
    "Google group": "google_group.csv",
    "Slack": "slack.csv",
    "Entra ID": "entra.csv",
    "Microsoft 365": "microsoft_365.csv",
    "Active Directory": "active_directory.csv",
    "Okta": "okta.csv",
    "BambooHR": "bamboohr.json",
    "Workday": "workday.json",
    "GitHub": "github.json",
    "GitLab": "gitlab.json",
    "Keycloak": "keycloak.json",
    "SCIM": "scim.json",
}
TABLE = GUIDE.read_text().partition("### All sources\n")[2].partition("\n### ")[0]
SOURCE_ROWS = re.findall(r"^\| ([\w ]+?) \| .* \| `([^`]*)` \| [^|]*\|$", TABLE, re.MULTILINE)


def test_each_source_of_the_guide_has_a_file_here() -> None:
    assert [name for name, _ in SOURCE_ROWS] == [*FILES]
    assert {file.name for file in SOURCES.iterdir()} == {*FILES.values()}


@pytest.mark.parametrize(("source", "written"), SOURCE_ROWS)
def test_the_arguments_of_the_guide_read_each_source(source: str, written: str) -> None:
    arguments = eval(f"dict({written})")  # noqa: S307 - the code of the guide
    task = WorkspaceCreateInvitesOperator(task_id="invite", path=str(SOURCES / FILES[source]), **arguments)
    report = task.execute({})
    invited = [(row["email"], row["status"]) for row in report["addresses"]]
    assert invited == [("ada@example.com", "invited"), ("lee@example.com", "invited")]
    assert ("left_out" in report["counts"]) is ("where" in arguments)


def test_a_null_on_the_way_to_a_field_is_no_value() -> None:
    rows = [{"email": "mia@example.com", "user": {"login": "mia"}}, {"email": "noor@example.com", "user": None}]
    report = invite(rows, where={"user.login": "mia"}, columns={"user.login": None})
    assert (report["counts"]["invited"], report["counts"]["left_out"]) == (1, 1)


# Properties: whoever is named somewhere in a source is never removed in green because a row slipped

NAMES = ("olive.owner", "adam.admin", "mina.member", "noah.newton", "grace.analyst")
FORMS = ("csv", "tsv", "json", "jsonl", "rows", "tuples")
FAULTS = ("none", "wide", "short", "comma", "quotes", "missing", "NFD", "blank at the end")
cases = st.tuples(
    st.lists(st.booleans(), min_size=len(NAMES), max_size=len(NAMES)).filter(any),
    st.sampled_from(FORMS),
    st.sampled_from(FAULTS),
    st.integers(0, len(NAMES) - 1),
    st.permutations(["Mail", "Prénom", "État"]),
)


def broken(form: str, header: list[str], lines: list[list[str]], fault: str, place: int) -> str:
    """Return a text of cells in which one row is broken as people and programs break them."""
    line = lines[place]
    if fault == "wide":
        line.append("x")
    elif fault == "short":
        line.pop()
    elif fault == "comma":
        line.insert(header.index("Prénom"), "Newton")
    elif fault == "blank at the end":
        line.insert(header.index("Prénom"), "Newton")
        line.append("")
    separator = "\t" if form == "tsv" else ","
    texts = [separator.join(cells) for cells in (header, *lines)]
    if fault == "quotes":
        position = header.index("Prénom")
        for number, mark in ((place, '"{}'), (min(place + 1, len(lines) - 1), '{}"')):
            cells = list(lines[number])
            cells[position] = mark.format(cells[position])
            texts[number + 1] = separator.join(cells)
    return "\n".join(texts) + "\n"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases)
def test_a_row_that_slipped_never_removes_in_green(sandbox: SandboxServer, tmp_path: Path, case: Any) -> None:
    active, form, fault, place, header = case
    lines: list[list[str]] = []
    for name, is_active in zip(NAMES, active, strict=True):
        cells = {"Mail": f"{name}@example.com", "Prénom": "René", "État": "Activé" if is_active else "Quitté"}
        lines.append([cells[column] for column in header])
    rows: list[dict[str, Any]] = [dict(zip(header, line, strict=True)) for line in lines]
    if fault == "missing":
        del rows[place]["État"]
    given_rows: dict[str, Any] = {}
    if form in ("csv", "tsv"):
        text = broken(form, header, lines, fault, place)
        (tmp_path / f"any.{form}").write_text(unicodedata.normalize("NFD", text) if fault == "NFD" else text)
        given_rows["path"] = str(tmp_path / f"any.{form}")
    elif form in ("json", "jsonl"):
        text = json.dumps(rows) if form == "json" else "\n".join(map(json.dumps, rows))
        (tmp_path / f"any.{form}").write_text(text)
        given_rows["path"] = str(tmp_path / f"any.{form}")
    elif form == "rows":
        given_rows["rows"] = rows
    else:
        given_rows["rows"] = ([[row.get(column) for column in header] for row in rows], [(name, 25) for name in header])
    arguments: dict[str, Any] = {"columns": {"Mail": "email", "*": None}, "where": {"État": "Activé"}, "dry_run": True}
    sandbox.reset()
    try:
        plan = sync(**given_rows, **arguments, owner_level=None, protected=["liv.invited@example.com"])
    except AirflowFailException as error:
        # Nobody would be left, or a row is broken; a sound source is read.
        assert fault != "none" or "no-owner-left" in str(error)  # noqa: PT017
        return
    removed = {change["name"].split()[-1] for change in plan["changes"] if change["action"] == "remove"}
    gone = {f"{name}@example.com" for name, is_active in zip(NAMES, active, strict=True) if not is_active}
    if fault == "missing" and form == "tuples":  # there it is null, which is a value
        gone.add(f"{NAMES[place]}@example.com")
    assert removed <= gone


@pytest.mark.usefixtures("sandbox")
@pytest.mark.parametrize(
    ("leaving", "names_user", "back"),
    [
        ("noah.old@example.com", True, NOAH),
        ("noah.old@example.com", True, "noah.old@example.com"),
        (NOAH, False, "noah.old@example.com"),
    ],
)
def test_a_rehired_leaver_is_known_by_the_user_too(leaving: str, back: str, *, names_user: bool) -> None:
    """Whichever row has the address of before."""
    members = WorkspaceListMembersOperator(task_id="members").execute({})
    (user,) = [member["user"]["uuid"] for member in members if member["user"]["email"] == NOAH]
    left = {"email": leaving, "user_uuid": user if names_user else None, "status": "left"}
    rehired = {"email": back, "user_uuid": user, "status": "active"}
    plan = leave([left, rehired], columns={"status": None}, where={"status": "left"})
    assert (plan["counts"]["remove"], plan["counts"]["differs"]) == (0, 1)


@pytest.mark.parametrize("empty", [None, "", "-"])
def test_defaults_say_what_an_empty_cell_is_that_where_compares(empty: object) -> None:
    rows = [{"email": "adam.admin@example.com", "suspended": "no"}, {"email": NOAH, "suspended": empty}]
    arguments = {"columns": {"suspended": None}, "where": {"suspended": "no"}, "defaults": {"suspended": "no"}}
    plan = sync(rows, no_value=["-"], max_removals=None, dry_run=True, **arguments)
    assert not [row for row in plan["changes"] if row["action"] == "remove" and NOAH in row["name"]]


def test_an_invalid_row_is_about_the_address_in_its_own_column() -> None:
    whole = {"manager": "adam.admin@example.com", "email": "mina.member@example.com", "status": "left"}
    rows = [whole, {"manager": "adam.admin@example.com", "email": NOAH}]
    with pytest.raises(AirflowFailException, match=rf"row 2 \({NOAH}\): no 'status'"):
        leave(rows, columns={"manager": None, "status": None}, where={"status": "left"})


@pytest.mark.parametrize("form", ["csv", "rows"])
def test_a_leaver_whose_last_day_is_no_value_stays_and_blank_ones_are_counted(write: Any, form: str) -> None:
    days = {"grace.analyst@example.com": "2027-01-31", NOAH: "0000-00-00", "adam.admin@example.com": ""}
    rows: Any = [{"email": email, "until": day} for email, day in days.items()]
    path = None
    if form == "csv":
        path = write("email,until\n" + "".join(f"{email},{day}\n" for email, day in days.items()))
        rows = None
    plan = leave(rows, path=path, no_value=["-", "0000-00-00"], dry_run=True)
    assert "Without a last day, so they leave now: 1 row." in plan["table"]
    assert [change["name"] for change in plan["changes"] if change["action"] == "remove"] == [
        "member adam.admin@example.com"
    ]


def test_leavers_without_a_column_of_last_days_have_no_remark() -> None:
    assert "last day" not in leave([{"email": NOAH, "level": "-"}], no_value=["-"], dry_run=True)["table"]


@pytest.mark.parametrize("road", ROADS)
def test_a_list_of_columns_does_not_contradict_the_header(sandbox: SandboxServer, write: Any, road: Any) -> None:
    path = write(f"Mail,Grade,level\n{NOAH},8,1\n")
    says = "'level' is column 3 of the header, and columns=[…] names it at 2"
    with pytest.raises(AirflowFailException, match=re.escape(says)):
        road(path=path, columns=["email", "level", None])
    assert sandbox.effects() == []
    road(path=path, columns=["email", None, "level"])


@pytest.mark.parametrize(
    ("name", "content", "arguments"),
    [
        ("a.csv", f"{NOAH},x\nmia@example.com,y\n", {"columns": ["email", None]}),
        ("a.csv", f'"Newton, Noah",{NOAH}\nx,Mail\nMia,mia@example.com\n', {"columns": {"Mail": "email", "*": None}}),
        (
            "a.csv",
            f"sep=;\nNoah;{NOAH}\nName;email\nMia;mia@example.com\n",
            {"columns": {"Name": None}, "skip_rows": 2},
        ),
        ("a.json", json.dumps([NOAH, "mia@example.com"]), {}),
        (
            "a.json",
            json.dumps([{"email": NOAH}, {"E-Mail": "mina.member@example.com"}, {"email": "mia@example.com"}]),
            {},
        ),
        ("a.json", json.dumps([["Noah", NOAH], ["Mia", "mia@example.com"]]), {"columns": [None, "email"]}),
    ],
)
def test_skip_rows_skips_nobody(sandbox: SandboxServer, write: Any, name: str, content: str, arguments: Any) -> None:
    with pytest.raises(AirflowFailException, match=rf"skip_rows skips row \d, which holds {NOAH}: lower it"):
        invite(path=write(content, name), **{"skip_rows": 1, **arguments})
    assert sandbox.effects() == []


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.csv", "Staff, by hr@example.com\nemail\nmia@example.com\n", "Staff, by hr@example.com"),
        ("a.csv", "\nemail\nmia@example.com\n", ""),
        ("a.json", json.dumps(["a title", "mia@example.com"]), "a title"),
        ("a.json", json.dumps([["a", 1], ["mia@example.com"]]), "a, 1"),
    ],
)
def test_the_first_skipped_row_is_shown(write: Any, name: str, content: str, says: str) -> None:
    report = invite(path=write(content, name), skip_rows=1)
    assert f"Skipped by skip_rows: {says!r}." in json.dumps(report, ensure_ascii=False)


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("photo", ["A" * 100_000, f"{'A' * 60_000} @", "@A" * 50_000])
def test_a_long_cell_of_a_misshapen_row_takes_no_time(write: Any, road: Any, photo: str) -> None:
    path = write(f"Mail,Photo,Name,Status\n,{photo},Newton, Noah,Active\n")
    started = time.monotonic()
    with pytest.raises(AirflowFailException, match=r"row 2.*cells beyond the last column"):
        road(path=path, columns=COLUMNS, where=ACTIVE)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.csv", f"Mail\n{NOAH}\n".encode(), "unknown column 'Mail' (did you mean columns={'Mail': 'email'}?)"),
        ("a.json", b'{"noah": {"email": "x"}, "mia": {}}', "pass list(value.values()) from a task"),
        ("a.csv", b"PK\x03\x04\x14\x00\x06\x00\x08\x00\xb8", "The file is a workbook or an archive, whatever its name"),
        ("a.csv", b"\xd0\xcf\x11\xe0\xa1", "The file is a workbook or an archive, whatever its name"),
        ("a.csv", b"\n<!DOCTYPE html><title>Sign in</title>", "The file is an HTML page, such as a form to sign in"),
    ],
)
def test_a_file_that_is_something_else_has_its_cure(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(AirflowFailException, match=re.escape(says)):
        invite(path=str(tmp_path / name))


def test_a_line_of_json_may_hold_other_separators_of_lines(write: Any) -> None:
    rows = [{"email": "mia@example.com", "message": "Hello\u2028Mia"}, {"email": "noor@example.com"}]
    path = write("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), "people.json")
    assert invite(path=path)["counts"]["invited"] == 2


def report_of_sync(path: str, report_path: str) -> None:
    sync(path=path, report_path=report_path, dry_run=True)


def report_of_leavers(path: str, report_path: str) -> None:
    leave(path=path, report_path=report_path, dry_run=True)


def report_of_invites(path: str, report_path: str) -> None:
    invite(path=path, report_path=report_path)


def report_of_organization(path: str, report_path: str) -> None:
    file = {"members": {"roster": path}}
    WorkspacePlanOrganizationOperator(task_id="plan", file=file, report_path=report_path).execute({})


@pytest.mark.parametrize("road", [report_of_sync, report_of_leavers, report_of_invites, report_of_organization])
@pytest.mark.parametrize(
    "spelling", ["{0}/people.csv", "{0}/../{1}/people.csv", "{0}/link.csv", "file://{0}/people.csv"]
)
def test_a_report_never_overwrites_its_roster(
    sandbox: SandboxServer, write: Any, tmp_path: Path, road: Any, spelling: str
) -> None:
    path = write(f"email\n{NOAH}\n")
    (tmp_path / "link.csv").symlink_to(path)
    with pytest.raises(AirflowFailException, match="report_path is a file that this task reads"):
        road(path, spelling.format(tmp_path, tmp_path.name))
    assert Path(path).read_text() == f"email\n{NOAH}\n"
    assert sandbox.effects() == []
