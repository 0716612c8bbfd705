"""Roster files in all formats, as spreadsheets write them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.operators.members import WorkspaceSyncMembersOperator
from airflow_provider_workspace.procedures.roster_files import read_roster, rows_of_value
from airflow_provider_workspace.version_compat import AirflowFailException

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

ROSTER = Path(__file__).resolve().parents[3] / "tests" / "data" / "roster.csv"


def write(folder: Path, name: str, content: str | bytes) -> str:
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(file)


@pytest.mark.parametrize(
    ("name", "content", "rows"),
    [
        ("a.csv", "email,level\nada@example.com,1\n", [{"email": "ada@example.com", "level": "1"}]),
        ("a.csv", "\ufeffemail,level\r\nada@example.com,1\r\n", [{"email": "ada@example.com", "level": "1"}]),
        ("a.csv", "email;first_name\nada@example.com;Ada\n", [{"email": "ada@example.com", "first_name": "Ada"}]),
        ("a.CSV", "email\tlevel\nada@example.com\t1\n", [{"email": "ada@example.com", "level": "1"}]),
        ("a.csv", " email , message \na@example.com,\n", [{"email": "a@example.com", "message": ""}]),
        (
            "a.csv",
            'email,private_project_access\na@example.com,"[{""id"": 1}]"\n',
            [{"email": "a@example.com", "private_project_access": [{"id": 1}]}],
        ),
        (
            "a.csv",
            'email,message\na@example.com,"Hello, ""Ada""\nand welcome"\n',
            [{"email": "a@example.com", "message": 'Hello, "Ada"\nand welcome'}],
        ),
        ("a.csv", "email,level\na@example.com\n", [{"email": "a@example.com"}]),
        ("a.json", '[{"email": "a@example.com"}, "b@example.com"]', [{"email": "a@example.com"}, "b@example.com"]),
        (
            "a.jsonl",
            '{"email": "a@example.com"}\n\n"b@example.com"\n',
            [{"email": "a@example.com"}, {}, "b@example.com"],
        ),
    ],
)
def test_roster_files_are_read(tmp_path: Path, name: str, content: str, rows: list[Any]) -> None:
    assert list(read_roster(None, write(tmp_path, name, content))) == rows


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.csv", "email,levl\na@example.com,1\n", "has the unknown column 'levl' (did you mean 'level'?)"),
        ("a.csv", "email,colour\na@example.com,1\n", "known columns: email, target_email, first_name, level"),
        ("a.csv", "first_name\nAda\n", "has no column 'email'; its columns are first_name"),
        ("a.csv", "", "is empty: expected a header such as email,first_name,level"),
        (
            "a.csv",
            "email\nj\xfcrgen@example.com\n".encode("latin-1"),
            'is not in UTF-8 (byte 7): save it as "CSV UTF-8"',
        ),
        (
            "a.csv",
            "email,private_project_access\na@example.com,x\n",
            "row 2: private_project_access must be a JSON list",
        ),
        ("a.csv", 'email\n"a@example.com\n', "cannot be read: line 2: unexpected end of data"),
        ("a.json", '{"email": "a@example.com"}', "must hold a JSON array of rows"),
        ("a.json", "[", "cannot be read"),
        ("a.xlsx", "", "is not a roster: expected a name that ends in .csv, .json, .jsonl"),
    ],
)
def test_file_errors_name_the_line(tmp_path: Path, name: str, content: str | bytes, says: str) -> None:
    with pytest.raises(WorkspaceInputError) as caught:
        list(read_roster(None, write(tmp_path, name, content)))
    assert says in str(caught.value)
    assert str(caught.value).endswith("Nothing was sent.")


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceInputError, match=r"There is no file '.*' on this worker"):
        list(read_roster(None, str(tmp_path / "none.csv")))


@pytest.mark.parametrize(
    "value", ['["a@example.com"]', ["a@example.com"], ("a@example.com",), {"a@example.com"}, iter(["a@example.com"])]
)
def test_a_list_from_another_task_is_read(value: Any) -> None:
    assert list(read_roster(value)) == ["a@example.com"]


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
    ],
)
def test_value_errors_name_the_row(invites: Any, path: str | None, says: str) -> None:
    with pytest.raises(WorkspaceInputError, match=f"(?i){says}"):
        list(read_roster(invites, path))


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
            list(read_roster(None, str(tmp_path / f"{name}{suffix}")))
    if suffix != ".csv":
        assert len(list(read_roster(None, str(tmp_path / f"link{suffix}")))) == (suffix == ".json")


def test_defaults_fill_missing_cells() -> None:
    rows = read_roster(["a@example.com", {"email": "b@example.com", "level": ""}], defaults={"level": 8})
    assert list(rows) == [{"target_email": "a@example.com", "level": 8}, {"email": "b@example.com", "level": 8}]


@pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner")
@pytest.mark.parametrize("sandbox", ["strict", "lenient"], indirect=True)
class TestInvitingARoster:
    """``WorkspaceCreateInvitesOperator`` with the roster of the examples."""

    def test_invites_everybody_once(self, sandbox: SandboxServer, connect: Connect) -> None:
        connect()
        operator = WorkspaceCreateInvitesOperator(task_id="invite", path=str(ROSTER), on_invalid="skip")
        report = operator.execute({})
        counts = {status: count for status, count in report["counts"].items() if count}
        assert counts == {"rows": 250, "invited": 228, "member": 1, "duplicate": 11, "invalid": 10}
        assert len(report["addresses"]) == 250
        assert len(sandbox.effects("create_invite")) == 228
        json.dumps(report)

        again = operator.execute({})
        assert again["counts"]["invited"] == 0
        assert again["counts"]["already_invited"] == 228
        assert len(sandbox.effects("create_invite")) == 228

    def test_an_invalid_row_fails_before_sending(self, sandbox: SandboxServer, connect: Connect) -> None:
        connect()
        with pytest.raises(AirflowFailException) as caught:
            WorkspaceCreateInvitesOperator(task_id="invite", path=str(ROSTER)).execute({})
        assert (
            "invalid rows (10), or leave them out with on_invalid='skip': row 32 (elo.barksted@example.com.):"
            in str(caught.value)
        )
        assert sandbox.requests() == []

    @pytest.mark.parametrize(
        ("name", "text", "numbers"),
        [
            ("a.csv", "email,level,first_name\n,,\na@example.com,1,Ada\n \t,,\n\nb@example.com,1,\n,,,,\n", [3, 6]),
            ("a.jsonl", '\n"a@example.com"\n\n  \n"b@example.com"\n\n', [2, 5]),
        ],
    )
    def test_blank_rows_are_skipped_and_counted_and_rows_have_the_numbers_of_the_file(
        self, connect: Connect, tmp_path: Path, name: str, text: str, numbers: list[int]
    ) -> None:
        connect()
        path = write(tmp_path, name, text)
        invite = WorkspaceCreateInvitesOperator(task_id="invite", path=path, defaults={"send_email": False})
        report = invite.execute({})
        assert [(entry["row"], entry["status"]) for entry in report["addresses"]] == [
            (number, "invited") for number in numbers
        ]
        assert {key: count for key, count in report["counts"].items() if count} == {
            "rows": 2,
            "invited": 2,
            "blank": 4,
        }
        sync = WorkspaceSyncMembersOperator(task_id="sync", path=path, protected=[], dry_run=True)
        assert sync.execute({})["counts"]["blank"] == 4

    def test_a_row_with_too_many_cells_is_invalid(self, tmp_path: Path, connect: Connect) -> None:
        connect()
        path = write(tmp_path, "a.csv", "email,level\na@example.com,1,surplus\n")
        with pytest.raises(AirflowFailException, match=r"row 2 .*cells beyond the last column"):
            WorkspaceCreateInvitesOperator(task_id="invite", path=path).execute({})


def test_a_repeated_key_in_a_rendered_list_is_refused() -> None:
    with pytest.raises(WorkspaceInputError, match="invites: the key 'email' is repeated in one object"):
        list(read_roster('[{"email": "a@example.com", "email": "b@example.com"}]'))


def test_json_text_of_a_single_address_is_refused() -> None:
    with pytest.raises(WorkspaceInputError, match="protected must be a list of rows or addresses"):
        rows_of_value('"ada@example.com"', "protected")
