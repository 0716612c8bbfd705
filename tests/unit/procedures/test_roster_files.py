"""Roster files in all formats, as spreadsheets write them."""

from __future__ import annotations

import codecs
import json
import os
import re
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.files.storage import file_at
from airflow_provider_workspace.procedures import roster_tables
from airflow_provider_workspace.procedures.roster import check_roster
from airflow_provider_workspace.procedures.roster_files import read_roster
from tests.robustness.values import NASTY_TEXTS, texts

NOW = datetime(2026, 11, 26, tzinfo=timezone.utc)


def write(folder: Path, name: str, content: str | bytes) -> str:
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(file)


@pytest.mark.parametrize(
    ("name", "content", "rows"),
    [
        ("a.csv", "email,level\nada@example.com,1\n", [{"target_email": "ada@example.com", "level": "1"}]),
        ("a.csv", "\ufeffemail,level\r\nada@example.com,1\r\n", [{"target_email": "ada@example.com", "level": "1"}]),
        ("a.csv", "email;first_name\nada@example.com;Ada\n",
         [{"target_email": "ada@example.com", "first_name": "Ada"}]),
        ("a.CSV", "email\tlevel\nada@example.com\t1\n", [{"target_email": "ada@example.com", "level": "1"}]),
        ("a.csv", " E-Mail ,First name,MESSAGE\na@example.com, A ,\u00a0\u200b\n",
         [{"target_email": "a@example.com", "first_name": "A"}]),
        ("a.csv", 'email,private_project_access\na@example.com,"[{""id"": 1}]"\n',
         [{"target_email": "a@example.com", "private_project_access": [{"id": 1}]}]),
        ("a.csv", 'email,message\na@example.com,"Hello, ""Ada""\nand welcome"\n',
         [{"target_email": "a@example.com", "message": 'Hello, "Ada"\nand welcome'}]),
        ("a.csv", 'email,message\na@example.com,"a\r\nb\rc"\n',
         [{"target_email": "a@example.com", "message": "a\r\nb\rc"}]),
        ("a.csv", "email,level\na@example.com\n", [{"target_email": "a@example.com"}]),
        ("a.json", '[{"email": "a@example.com"}, "b@example.com"]',
         [{"target_email": "a@example.com"}, {"target_email": "b@example.com"}]),
        ("a.jsonl", '{"email": "a@example.com"}\n\n"b@example.com"\n',
         [{"target_email": "a@example.com"}, {}, {"target_email": "b@example.com"}]),
    ],
)  # fmt: skip
def test_roster_files_are_read(tmp_path: Path, name: str, content: str, rows: list[Any]) -> None:
    assert list(read_roster(None, file_at(write(tmp_path, name, content)))) == rows


# Before Python 3.11 the csv module does not support NUL.
TAKES_NUL = sys.version_info >= (3, 11)
OF_NUL = "unknown column 'e\\x00m\\x00" if TAKES_NUL else "line 1: line contains NUL"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        (
            "a.csv",
            "Firstname,levl,Department,LEVEL,le-vel\nAda,1,Sales,1,1\n",
            "unknown columns 'levl' (did you mean columns={'levl': 'level'}?), 'Department'; "  # noqa: ISC004
            "'LEVEL' and 'le-vel' mean the same. Known columns: email, target_email, firs",
        ),
        ("a.csv", "email" + "".join(f",c{n}" for n in range(30)), "'c28', 'c29'. Known"),
        ("a.csv", "email" + "".join(f",c{n}" for n in range(90)), "'c59'; and 30 more unknown columns. Known"),
        ("a.csv", "", "The file is empty: expected a header such as email,first_name,level. File: "),
        ("a.csv", "email\nj\xfcrgen@example.com\n".encode("latin-1"),
         'with the encoding UTF-8 (in a spreadsheet: "CSV UTF-8")'),
        ("a.csv", 'email\n"a@example.com\n', "cannot be read: line 2: unexpected end of data"),
        ("a.json", '{"email": "a@example.com"}', "must hold a JSON array of rows"),
        ("a.json", "[", "cannot be read"),
        ("a.xlsx", "", "is not a roster: expected a name that ends in .csv, .tsv, .json, .jsonl, .ndjson. First, sa"),
        ("a.csv", b"email,email\na@example.com,b@example.com\n", "'email' and 'email' mean the same"),
        ("a.csv", b"email,target_email\na@example.com,b@example.com\n", "'email' and 'target_email' mean the same"),
        ("a.csv", "email\nada@example.com\n".encode("utf-16"), "Byte 0 is not UTF-8. Save the file with the"),
        ("a.csv", "email\nada@example.com\n".encode("utf-16-le"), OF_NUL),
        ("a.csv", codecs.BOM_UTF8, "is empty: expected a header"),
        ("a.csv", b"email\n" + b"x" * 2_000_000, "line 2: field larger than field limit"),
        ("a.csv", b"email\n" * 4_000_000, "The file is larger than 20 MB. Split it: "),
        ("a.csv", b"email,message\na@example.com," + b"x" * 200_000, "line 2: field larger than field limit"),
        ("a.json", b"[" * 100_000, "JSON that is nested too deeply"),
        ("a.json", b'["a@example.com" "b@example.com"]', "Expecting ',' delimiter: line 1 column 18"),
        ("a.json", b'["a@example.com"] []', "Extra data: line 1 column 19"),
        ("a.json", b'["a@example.com", {"email": "a", "email": "b"}]', "the key 'email' is repeated in one object"),
        ("a.json", b"", "Expecting value: line 1 column 1"),
        ("a.jsonl", b'{"email": "a", "email": "b"}', "line 1: the key 'email' is repeated"),
        ("a.jsonl", b'"a@example.com"\n' + b"[" * 100_000, "line 2: JSON that is nested too deeply"),
    ],
)  # fmt: skip
def test_file_errors_name_the_line(tmp_path: Path, name: str, content: str | bytes, says: str) -> None:
    with pytest.raises(WorkspaceInputError) as caught:
        list(read_roster(None, file_at(write(tmp_path, name, content))))
    assert says in str(caught.value)
    assert str(caught.value).endswith("Nothing was sent.")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "value", ['["a@example.com"]', ["a@example.com"], ("a@example.com",), {"a@example.com"}, iter(["a@example.com"])]
)
def test_a_list_from_another_task_is_read(value: Any) -> None:
    assert list(read_roster(value)) == [{"target_email": "a@example.com"}]


@pytest.mark.parametrize(
    ("invites", "path", "says"),
    [
        (None, None, "Give either invites=… or path=…"),
        ([], "a.csv", "Give either invites=… or path=…"),
        ("{'a': 1}", None, "pass the output of the other task"),
        ("a@example.com", None, "pass the output of the other task"),
        ({"email": "a@example.com"}, None, "invites must be a list"),
        (5, None, "invites must be a list"),
        ('{"email": "a@example.com"}', None, "invites must be a list"),
        ('"ada@example.com"', None, "invites must be a list"),
        (None, ["a.csv"], "path must be the name of a file, not something of type list"),
        (None, 5, "path must be the name of a file, not something of type int"),
        *((None, path, r"Nothing was sent\.$")
         for path in ("x\x00.csv", "x\ud800.csv", "a/" * 3000 + ".csv", ".csv", "")),
        ('[{"email": "a", "email": "b"}]', None, "invites: the key 'email' is repeated in one object"),
        ([{"email": "a@example.com", f"column {n}": 1} | {} for n in range(12)], None, "; …. Known columns: "),
    ],
)  # fmt: skip
def test_value_errors_name_the_row(invites: Any, path: Any, says: str) -> None:
    with pytest.raises(WorkspaceInputError, match=f"(?i){says}"):
        list(read_roster(invites, file_at(path)))


@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl"])
def test_only_regular_files_are_read(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"folder{suffix}").mkdir()
    os.mkfifo(tmp_path / f"pipe{suffix}")  # opening it waits for a writer
    (tmp_path / f"device{suffix}").symlink_to("/dev/zero")
    (tmp_path / f"link{suffix}").symlink_to(
        write(tmp_path, f"real{suffix}", {".json": '["a@b.example"]'}.get(suffix, ""))
    )
    kinds = {"folder": "a directory", "pipe": "a named pipe", "device": "a device or socket"}
    for name, kind in kinds.items():
        with pytest.raises(WorkspaceInputError, match=f"{name}{suffix}' is {kind}; expected a regular file. Nothing"):
            list(read_roster(None, file_at(tmp_path / f"{name}{suffix}")))
    with pytest.raises(WorkspaceInputError, match=r"There is no file '.*' on this worker"):
        list(read_roster(None, file_at(tmp_path / f"none{suffix}")))
    if suffix != ".csv":
        assert len(list(read_roster(None, file_at(tmp_path / f"link{suffix}")))) == (suffix == ".json")


def test_defaults_fill_missing_cells() -> None:
    rows = read_roster(["a@example.com", {"email": "b@example.com", "level": " \u200b"}], defaults={"level": 8})
    assert list(rows) == [{"target_email": name, "level": 8} for name in ("a@example.com", "b@example.com")]


# Any file

# One folder for all examples; each rewrites the file.
ANY = settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])

CELLS = (
    *(text for text in NASTY_TEXTS if text != "\ud800"),
    *("ada@example.com", "=1+1", '=HYPERLINK("http://evil.example")', "+1", "-1", "@SUM(A1)", "\u200fada@example.com"),
    *("ada@example.com\u200b", "ada@xn--mnchen-3ya.example", "ada@पंचायत.भारत", 'say "hello"', "two\nlines"),
    *("two\r\nlines", "a;b\tc,d", "x" * 140_000),
)
cells = (st.sampled_from(CELLS) | st.text(max_size=20)).filter(lambda cell: TAKES_NUL or "\0" not in cell)
columns = st.lists(
    st.sampled_from(["email", "target_email", "first_name", "level", "message", "private_project_access"]),
    min_size=1, max_size=4,
)  # fmt: skip


def attempt(path: Path) -> list[Any] | None:
    """Return the rows of a file, or check the message of its error."""
    try:
        return roster_tables.read_file(file_at(path)).rows
    except WorkspaceInputError as error:
        text = str(error)
        text.encode()
        assert str(path) in text
        assert text.endswith("Nothing was sent.")
        assert text.isprintable(), text
        assert len(text) < 1000
        return None


rows_of_json = st.lists(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | texts | cells,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["email", "target_email", "level"]) | texts, inner, max_size=3)
        ),
        max_leaves=8,
    ),
    max_size=6,
)  # fmt: skip


@ANY
@given(
    rows=rows_of_json,
    at=st.none() | st.integers(0, 400),
    junk=st.sampled_from(["", ",", "]", "}", "[", '"', "x", "\x00", "1"]),
)
def test_a_json_array_is_refused_exactly_if_it_is_damaged(
    tmp_path: Path, rows: list[Any], at: int | None, junk: str
) -> None:
    text = json.dumps(rows)
    damaged = text if at is None else text[: at % (len(text) + 1)] + junk + text[at % (len(text) + 1) + 1 :]
    path = tmp_path / "roster.json"
    path.write_text(damaged)
    found = attempt(path)
    try:
        whole = json.loads(damaged, object_pairs_hook=roster_tables.reject_repeated_keys)
    except ValueError:
        whole = None
    assert json.dumps(found) == json.dumps(whole if isinstance(whole, list) else None)


# Rows of a query

DESCRIPTION = [("EMAIL", "text", None, None, None, None, None), ("LEVEL", "int", None, None, None, None, None)]
ADA = {"target_email": "ada@example.com", "level": 8}
LIN = {"target_email": "lin@example.com"}
OTHERS = {"Work mail": "E-Mail", "Department": None}


@pytest.mark.parametrize(
    ("rows", "columns", "read"),
    [
        ([("ada@example.com", 8), ["lin@example.com", None]], ["email", "level"], [ADA, LIN]),
        ([("ada@example.com", 8), (None, None)], ["EMAIL", "Level"], [ADA, {}]),
        ([("ada@example.com",), ["lin@example.com"], (None,)], None, [{"target_email": "ada@example.com"}, LIN, {}]),
        ([{"EMAIL": "ada@example.com", "LEVEL": 8, "MESSAGE": None}], None, [ADA]),
        (([("ada@example.com", 8)], DESCRIPTION), None, [ADA]),
        ([[["ada@example.com", 8]], DESCRIPTION], None, [ADA]),  # as XCom returns it
        (([], DESCRIPTION), None, []),
        ([["ada@example.com", 8], ["lin@example.com", 8]], ["email", "level"], [ADA, {**ADA, **LIN}]),
        ([{"E-Mail": "ada@example.com", "level": 8}], None, [ADA]),
        ([{"work-mail": "ada@example.com", "LEVEL": 8, "department": "Sales"}], OTHERS, [ADA]),
        ([{"email": "ada@example.com", "stage": 8}], {"Stage": "LEVEL"}, [ADA]),
        (([("ada@example.com", 8)], [("MAIL", 1), ("stage", 1)]), {"mail": "email", "stage": "level"}, [ADA]),
        (([("ada@example.com", 8)], DESCRIPTION), ["email", "level"], [ADA]),
    ],
)  # fmt: skip
def test_rows_of_a_query_are_read(rows: Any, columns: Any, read: list[Any]) -> None:
    assert list(read_roster(rows, columns=columns)) == read


@pytest.mark.parametrize(
    ("rows", "columns", "says"),
    [
        ([("ada@example.com", 8)], None,
         r"Wrong columns: row 1: 2 columns: pass columns=\[…\] with a name for each of them.* In: invites"),
        ([("ada@example.com", 8), ("ada@example.com",)], ["email", "level"], "row 2: 1 columns: pass columns"),
        ([("ada@example.com", 8)], ["mail", "level"], "unknown column 'mail'.*did you mean 'email'"),
        ([("a", "b")], ["email", "EMAIL"], "'email' and 'EMAIL' mean the same"),
        ([("Ada", 8)], ["first_name", "level"], "no column 'email'"),
        ([LIN, {**LIN, "EMAIL": None}], None, "row 2: 'target_email' and 'EMAIL' mean the same"),
        ([LIN, {"levle": 1, "Department": None}], None,
         r"row 2: unknown columns 'levle' \(did .*\), 'Department'"),
        ([ADA], ["email", "level"], r"row 1: a mapping names its columns itself: pass columns=\{…\}, not a list"),
        ([LIN], {"E-Mail": "mail"}, "unknown field 'mail' in columns"),
        (([("a", 1)], DESCRIPTION), {"stage": "message", "level": None}, "Wrong columns: no column 'stage'"),
        (([], DESCRIPTION), ["email"], r"2 columns, and columns=\[…\] names 1"),
    ],
)  # fmt: skip
def test_rows_without_known_columns_are_refused(rows: Any, columns: Any, says: str) -> None:
    with pytest.raises(WorkspaceInputError, match=says):
        read_roster(rows, columns=columns)


@pytest.mark.parametrize(
    ("columns", "read"),
    [
        (["email", "level", "first_name"], [{**ADA, "level": "Sales", "first_name": "8"}]),
        (OTHERS | {"stage": "level"}, [{**ADA, "level": "8"}]),
        (["email", "level"], "3 columns, and columns=[…] names 2"),
        (OTHERS, "unknown column 'Stage'"),
        (OTHERS | {"Stages": "level"}, "no column 'Stages'; unknown column 'Stage' (did you mean"),
    ],
)
def test_columns_are_for_files_too(tmp_path: Path, columns: Any, read: Any) -> None:
    path = write(tmp_path, "a.csv", "Work mail,Department,Stage\nada@example.com,Sales,8\n")
    if isinstance(read, list):
        assert read_roster(None, file_at(path), columns=columns) == read
    else:
        with pytest.raises(WorkspaceInputError, match=re.escape(read)):
            read_roster(None, file_at(path), columns=columns)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"email": None, "first_name": 10**5000}, "int"),
        ({"email": "Mia <mia@.example>"}, "Mia"),
        ({"email": "a_b.example#EXT#@tenant.example.com", "first_name": "@mia"}, "#EXT#"),
    ],
)
def test_an_odd_cell_has_its_reason(row: Any, says: str) -> None:
    (entry,) = check_roster(read_roster([row])).invalid
    assert says in str(entry)


@pytest.mark.parametrize("rows", [list, tuple, iter])
def test_an_invalid_row_has_its_reason_though_no_file_was_read(rows: Any) -> None:
    given = [{"target_email": "mia@example.com"}, {}, {"target_email": "kim@example.com", "level": "boss"}]
    roster = check_roster(rows(given))
    (entry,) = roster.invalid
    assert (entry.row, len(roster.rows), roster.blank) == (3, 1, 1)
    assert entry.reason.endswith("(found 'boss'; levels=… says what such texts stand for)")


def test_rows_that_conflict_and_end_are_told_apart() -> None:
    rows = [{"email": "mia@example.com", "level": level, "until": "2030-01-01"} for level in (1, 8)]
    roster = check_roster(read_roster(rows), NOW)
    assert (len(roster.invalid), roster.with_end) == (2, {1, 2})


def test_a_title_without_rows_below_is_no_title(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceInputError, match="no column 'Mail'"):
        read_roster(None, file_at(write(tmp_path, "title.csv", "Employees")), columns={"Mail": "email"})
