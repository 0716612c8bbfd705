"""Random rosters: correct rows, or an error that names the line."""

from __future__ import annotations

import codecs
import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.procedures import roster_files
from airflow_provider_workspace.procedures.roster import check_roster
from airflow_provider_workspace.procedures.roster_files import read_roster
from tests.robustness.values import NASTY_TEXTS, texts

# One folder for all examples; each rewrites the file.
ANY = settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])

CELLS = (
    *(text for text in NASTY_TEXTS if text != "\ud800"),
    "ada@example.com",
    "=1+1",
    '=HYPERLINK("http://evil.example")',
    "+1",
    "-1",
    "@SUM(A1)",
    "\u200fada@example.com",
    "ada@example.com\u200b",
    "ada@xn--mnchen-3ya.example",
    "ada@पंचायत.भारत",
    'say "hello"',
    "two\nlines",
    "two\r\nlines",
    "a;b\tc,d",
    "x" * 140_000,
)  # fmt: skip
# Before Python 3.11 the csv module does not support NUL.
TAKES_NUL = sys.version_info >= (3, 11)
cells = (st.sampled_from(CELLS) | st.text(max_size=20)).filter(lambda cell: TAKES_NUL or "\0" not in cell)
columns = st.lists(
    st.sampled_from(["email", "target_email", "first_name", "level", "message", "private_project_access"]),
    min_size=1, max_size=4,
)  # fmt: skip
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "cp437")


def attempt(path: Path) -> list[Any] | None:
    """Read and check a roster; return its rows, or check the message of its error."""
    try:
        rows = list(read_roster(None, str(path)))
        checked = check_roster(rows)
    except WorkspaceInputError as error:
        text = str(error)
        text.encode()
        assert str(path) in text
        assert text.endswith("Nothing was sent.")
        assert text.isprintable(), text
        assert len(text) < 1000
        return None
    assert len(checked.rows) + len(checked.invalid) + len(checked.duplicates) + checked.blank == len(rows)
    return rows


@ANY
@given(names=columns, rows=st.lists(st.lists(cells, max_size=5), max_size=5), data=st.data())
def test_a_csv_file_is_read_as_written(
    tmp_path: Path, names: list[str], rows: list[list[str]], data: st.DataObject
) -> None:
    # The header determines the delimiter, which a single column does not show.
    delimiter = data.draw(st.sampled_from(",;\t")) if len(names) > 1 else ","
    encoding = data.draw(st.sampled_from(ENCODINGS))
    written = io.StringIO(newline="")
    # Before Python 3.13 a lone \\r is quoted only if it is part of the line terminator.
    quoting = csv.QUOTE_ALL if any("\r" in cell for row in rows for cell in row) else csv.QUOTE_MINIMAL
    line_end = data.draw(st.sampled_from(["\n", "\r\n"]))
    writer = csv.writer(written, delimiter=delimiter, lineterminator=line_end, quoting=quoting)
    writer.writerow(names)
    writer.writerows(rows)
    path = tmp_path / "roster.csv"
    path.write_bytes(written.getvalue().encode(encoding, "replace"))
    found = attempt(path)
    if found is None or encoding not in ("utf-8", "utf-8-sig") or data.draw(st.booleans()):
        return
    meant = [row[0] if any(cell.strip() for cell in row) else "" for row in rows]
    assert names[0] == "private_project_access" or [row.get(names[0], "") for row in found] == meant


@ANY
@given(content=st.binary(max_size=200), suffix=st.sampled_from([".csv", ".json", ".jsonl"]))
def test_any_bytes_are_rows_or_a_workspace_error(tmp_path: Path, content: bytes, suffix: str) -> None:
    path = tmp_path / f"roster{suffix}"
    path.write_bytes(content)
    attempt(path)


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
    indent=st.sampled_from([None, 0, 7]),
    chunk=st.integers(1, 9),
    encoding=st.sampled_from(ENCODINGS),
)
def test_a_json_array_is_read_as_by_the_json_module(
    tmp_path: Path, rows: list[Any], indent: int | None, chunk: int, encoding: str
) -> None:
    """Reading in pieces gives the same rows, wherever a piece ends."""
    text = json.dumps(rows, indent=indent)
    path = tmp_path / "roster.json"
    path.write_bytes(text.encode(encoding))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(roster_files, "CHUNK", chunk)
        found = attempt(path)
    if found is not None:
        assert json.dumps(found) == json.dumps(rows)
    else:
        assert encoding not in ("utf-8", "utf-8-sig", "latin-1", "cp1252", "cp437")


@ANY
@given(rows=rows_of_json, at=st.integers(0, 400), junk=st.sampled_from(["", ",", "]", "}", "[", '"', "x", "\x00", "1"]))
def test_a_damaged_json_array_is_a_workspace_error(tmp_path: Path, rows: list[Any], at: int, junk: str) -> None:
    """It is refused exactly if it is no JSON."""
    text = json.dumps(rows)
    damaged = text[: at % (len(text) + 1)] + junk + text[at % (len(text) + 1) + 1 :]
    path = tmp_path / "roster.json"
    path.write_text(damaged)
    found = attempt(path)
    try:
        whole = json.loads(damaged, object_pairs_hook=roster_files.reject_repeated_keys)
    except ValueError:
        whole = None
    assert json.dumps(found) == json.dumps(whole if isinstance(whole, list) else None)


@ANY
@given(value=rows_of_json | texts | rows_of_json.map(json.dumps) | st.integers() | st.none() | st.just(b"[]"))
def test_any_xcom_value_is_rows_or_a_workspace_error(value: Any) -> None:
    try:
        rows = list(read_roster(value, defaults={"level": 1}))
        check_roster(rows)
    except WorkspaceInputError as error:
        assert str(error).endswith("Nothing was sent.")  # noqa: PT017 - one of two good ends


@ANY
@given(
    path=texts
    | st.integers()
    | st.sampled_from(["\x00.csv", "a/" * 3000 + ".csv", ".csv", "/.json", "x\ud800.csv", ["a.csv"]])
)
def test_any_path_is_read_or_a_workspace_error(path: Any) -> None:
    with pytest.raises(WorkspaceInputError, match=r"Nothing was sent\.$"):
        list(read_roster(None, path))


OF_NUL = "has the unknown column 'e\\x00m\\x00" if TAKES_NUL else "line 1: line contains NUL"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.csv", b"email,email\na@example.com,b@example.com\n", "has the column 'email' more than once"),
        ("a.csv", b"email,target_email\na@example.com,b@example.com\n", "both columns 'email' and 'target_email'"),
        ("a.csv", "email\nada@example.com\n".encode("utf-16"), "is not in UTF-8 (byte 0)"),
        ("a.csv", "email\nada@example.com\n".encode("utf-16-le"), OF_NUL),
        ("a.csv", codecs.BOM_UTF8, "is empty: expected a header"),
        ("a.csv", b"email\n" + b"x" * 2_000_000, "line 2 is longer than 1,000,000 characters"),
        ("a.csv", b"x" * 2_000_000, "line 1 is longer than 1,000,000 characters"),
        ("a.csv", b"email,message\na@example.com," + b"x" * 200_000, "line 2: field larger than field limit"),
        ("a.csv", b"email,private_project_access\na@example.com," + b"[" * 90_000, "row 2: private_project_access"),
        ("a.json", b"[" * 100_000, "row 1 is nested too deeply"),
        ("a.json", b'["a@example.com" "b@example.com"]', "expected a comma or the end of the array after row 1"),
        ("a.json", b'["a@example.com"] []', "unexpected text after the array"),
        ("a.json", b'["a@example.com", {"email": "a", "email": "b"}]', "row 2: the key 'email' is repeated"),
        ("a.json", b'["' + b"x" * 2_000_000 + b'"]', "row 1 is not JSON, or longer than 1,000,000 characters"),
        ("a.json", b"", "the file is not JSON"),
        ("a.jsonl", b'{"email": "a", "email": "b"}', "line 1: the key 'email' is repeated"),
        ("a.jsonl", b'"a@example.com"\n' + b"[" * 100_000, "line 2: JSON that is nested too deeply"),
    ],
)  # fmt: skip
def test_errors_name_the_line(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(WorkspaceInputError) as caught:
        list(read_roster(None, str(path)))
    assert says in str(caught.value)
    assert str(caught.value).isprintable()
