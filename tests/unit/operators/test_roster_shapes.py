"""Rows that slipped, and rows that ``where`` leaves out: nobody loses or keeps access because of them in green."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

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


def test_a_leaver_without_access_whom_another_row_names_is_left_to_people() -> None:
    rows = [{"email": "mia@example.com", "Status": status} for status in ("left", "back")]
    plan = leave(rows, columns={"Status": None}, where={"Status": "left"})
    assert [change["action"] for change in plan["changes"]] == ["differs"]


# Ages of leavers

AGE = {"before": "90d"}


@pytest.mark.parametrize("source", ["rows", "file"])
def test_one_age_alone_removes_nobody(sandbox: SandboxServer, write: Any, source: str) -> None:
    rows = [{"email": NOAH, "last_login": None, "joined_at": "2026-11-27"}]
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
    ]
    where: dict[str, Any] = {"last_login": AGE, "joined_at": AGE}
    with pytest.raises(AirflowFailException, match=r"1 row without a time in 'last_login' and 'joined_at' would be"):
        leave(rows, columns=columns, where=where)
    plan = leave(rows, columns=columns, where={**where, "Status": "x"})
    assert (plan["counts"]["remove"], len(sandbox.effects("delete_member"))) == (1, 1)


def test_the_example_of_the_guide_removes_inactive_people_and_nobody_who_joined_today(sandbox: SandboxServer) -> None:
    guide = Path(__file__).resolve().parents[3] / "docs" / "guides" / "rosters.md"
    code = guide.read_text().partition("### Inactive people\n")[2].partition("```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {}
    exec(code.partition("WorkspaceSyncMembersOperator(")[0], names)  # noqa: S102 - the code of the guide
    rows = names["members"].execute({})
    (new,) = [row for row in rows if row["user.email"] == "mina.member@example.com"]
    new |= {"last_login": None, "joined_at": datetime.now(timezone.utc).isoformat()}
    arguments = code.partition('task_id="remove_inactive",\n    leavers=members.output,')[2].rstrip().rstrip(")")
    plan = leave(rows, **eval(f"dict({arguments})"))  # noqa: S307
    assert [change["name"] for change in plan["changes"] if change["action"] == "remove"] == [f"member {NOAH}"]
    assert len(sandbox.effects()) == 1
