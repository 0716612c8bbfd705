"""Rosters and reports in object storage, by ``ObjectStoragePath`` and ``file://`` or ``memory://`` URLs."""

from __future__ import annotations

import csv
import errno
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest
from airflow.sdk import ObjectStoragePath

from airflow_provider_workspace.errors import WorkspaceStorageError
from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.operators.members import WorkspaceSyncMembersOperator
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.audit import writes
from tests.task_instance import TaskInstance

if TYPE_CHECKING:
    from fsspec.implementations.memory import MemoryFileSystem

    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = pytest.mark.usefixtures("no_waits")


@pytest.fixture
def own_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_STORE", '{"conn_type": "generic"}')


def invite(path: Any, ti: Any = None, **arguments: Any) -> Any:
    return WorkspaceCreateInvitesOperator(task_id="invite", path=path, **arguments).execute({"ti": ti} if ti else {})


def sync(ti: Any = None, **arguments: Any) -> Any:
    return WorkspaceSyncMembersOperator(task_id="sync", **arguments).execute({"ti": ti} if ti else {})


@pytest.mark.usefixtures("own_connection")
@pytest.mark.parametrize("kind", ["file://{}", "file://store@{}", "path"])
@pytest.mark.parametrize(
    ("suffix", "content"),
    [
        (".csv", "\ufeffemail;level\nada@example.com;1\n"),
        (".json", '[{"email": "ada@example.com", "level": "1"}]'),
        (".jsonl", '{"email": "ada@example.com", "level": "1"}\n'),
    ],
)
def test_a_url_is_read(
    tmp_path: Path, sandbox: SandboxServer, connect: Connect, kind: str, suffix: str, content: str
) -> None:
    connect()
    file = tmp_path / f"team{suffix}"
    file.write_text(content)
    invite(ObjectStoragePath(f"file://{file}") if kind == "path" else kind.format(file))
    (sent,) = writes(sandbox)
    assert sent["body"] == [{"target_email": "ada@example.com", "level": 1}]


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("file://{0}/none.csv", "There is no file 'file://{0}/none.csv'. Nothing was sent."),
        ("file://{0}/folder.csv", "'file://{0}/folder.csv' is a directory; expected a file"),
        ("file://nobody@{0}/a.csv", "There is no connection 'nobody': create it, or correct"),
        ("nowhere://{0}/a.csv", "nowhere://"),
        ("s3://bucket/a.csv", "s3:// needs an Airflow provider that is not installed"),
        ("file://[{0}/a.csv", "is not a valid URL"),
        ("file://{0}/latin.csv", "Byte 7 is not UTF-8. Save the file with the encoding UTF-8"),
        ("file://{0}/columns.csv", "In: 'file://{0}/columns.csv'"),
        ("file://{0}/a.xlsx", "is not a roster: expected a name that ends in .csv, .tsv, .json, .jsonl, .ndjson"),
    ],
)
def test_a_path_without_a_roster_is_an_error_before_sending(
    tmp_path: Path, sandbox: SandboxServer, connect: Connect, path: str, says: str
) -> None:
    connect()
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "latin.csv").write_bytes("email\nj\xfcrgen@example.com\n".encode("latin-1"))
    (tmp_path / "columns.csv").write_text("first_name\nAda\n")
    with pytest.raises(AirflowFailException) as caught:
        invite(path.format(tmp_path))
    assert says.format(tmp_path) in str(caught.value)
    assert "Nothing was sent." in str(caught.value)
    assert sandbox.requests() == []


class StoreError(OSError):
    """An error of an object store."""


@pytest.mark.parametrize(
    ("raised", "permanent", "says"),
    [
        (PermissionError("Forbidden"), True, "team.csv' cannot be read with the credentials"),
        (StoreError("no route"), False, "The object store failed"),
        (RuntimeError("EndpointConnectionError"), False, "(RuntimeError: EndpointConnectionError)"),
        (StoreError(16, "FileExpired"), True, "The file changed while it was read"),
    ],
)
def test_errors_of_the_store_are_in_the_message(
    monkeypatch: pytest.MonkeyPatch,
    memory: MemoryFileSystem,
    connect: Connect,
    raised: Exception,
    permanent: bool,  # noqa: FBT001
    says: str,
) -> None:
    connect()
    memory.pipe("/team.csv", b"email\nada@example.com\n")

    def info(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr(memory, "info", info)
    with pytest.raises(AirflowFailException if permanent else WorkspaceStorageError) as caught:
        invite("memory://team.csv")
    assert says in str(caught.value)


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("prefix", ["", "file://", "memory://"])
def test_a_report_is_replaced_only_when_it_is_complete(
    sandbox: SandboxServer, connect: Connect, tmp_path: Path, prefix: str
) -> None:
    connect(max_attempts=1)
    rows: dict[str, Any] = {"invites": ["ada@example.com", "=1+1"], "on_invalid": "skip"}
    name = f"{prefix}{tmp_path}/report"
    read = ObjectStoragePath(f"{prefix or 'file://'}{tmp_path}/report.csv").read_text

    def fail() -> None:
        sandbox.inject("status_before", "list_invites", status=401)
        with pytest.raises(AirflowFailException, match="401"):
            invite(None, **rows, report_path=f"{name}.csv")

    fail()
    assert read() == "row,email,status,reason,invite_id\n"
    result = invite(None, **rows, report_path=f"{name}.csv")
    written = [*csv.DictReader(read().splitlines())]
    assert written[1].items() >= {"row": "2", "email": "'=1+1", "status": "invalid"}.items()
    assert [row["email"] for row in result["needs_attention"]] == ["=1+1"]
    fail()
    assert "=1+1" in read(), "the report of an earlier try stays until the new one is complete"
    invite(None, **rows, report_path=f"{name}.json")
    report = json.loads(ObjectStoragePath(f"{prefix or 'file://'}{tmp_path}/report.json").read_text())
    assert [(row["email"], row["status"]) for row in report["addresses"]] == [
        ("ada@example.com", "already_invited"),
        ("=1+1", "invalid"),
    ]


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("{0}/report.xlsx", "expected a name that ends in .csv or .json"),
        ("file://{0}/report", "expected a name that ends in .csv or .json"),
        ("{0}/pipe.csv", "is not a file that this worker may write"),
        (5, "report_path must be the name of a file, not something of type int"),
        ("{0}/none/report.csv", "cannot be written: No such file"),
        ("{0}/nul\0.csv", "embedded null byte"),
        ("{0}/\ud800.csv", "surrogates not allowed"),
        ("file://{0}/none/report.csv", "There is no bucket or folder for the file"),
    ],
)
def test_nothing_is_sent_if_the_report_cannot_be_written(
    tmp_path: Path, sandbox: SandboxServer, connect: Connect, path: Any, says: str
) -> None:
    connect()
    os.mkfifo(tmp_path / "pipe.csv")
    report_path = path.format(tmp_path) if isinstance(path, str) else path
    with pytest.raises(AirflowFailException, match=says):
        invite(None, invites=["ada@example.com"], report_path=report_path)
    with pytest.raises(AirflowFailException, match=says):
        sync(roster=["ada@example.com"], protected=[], report_path=report_path)
    assert sandbox.requests() == []


# XComs and report files of tasks


def rows_of(file: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(file.read_text().splitlines()))


def test_the_report_file_of_invites_has_all_rows(tmp_path: Path, sandbox: SandboxServer, connect: Connect) -> None:
    connect()
    (tmp_path / "team.csv").write_text("email\nada@example.com\nmina.member@example.com\nnobody\n")
    report_path = f"file://{tmp_path}/report.csv"
    result = invite(f"file://{tmp_path}/team.csv", report_path=report_path, on_invalid="skip")
    assert [row["email"] for row in result["needs_attention"]] == ["nobody"]
    assert (result["counts"]["invited"], result["report_path"]) == (1, report_path)
    assert set(result) == {"counts", "needs_attention", "report_path"}
    assert [row["status"] for row in rows_of(tmp_path / "report.csv")] == ["invited", "member", "invalid"]
    assert len(sandbox.effects("create_invite")) == 1


def test_the_xcom_has_all_rows_if_writing_the_report_fails(
    tmp_path: Path, sandbox: SandboxServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect()
    write_bytes = Path.write_bytes

    def write(path: Path, content: bytes) -> None:
        write_bytes(path, content[:1])
        raise OSError(28, "No space left on device")

    (tmp_path / "report.csv").touch()
    monkeypatch.setattr(Path, "write_bytes", write)
    ti = TaskInstance()
    with pytest.raises(WorkspaceStorageError, match="No space left") as caught:
        invite(None, ti, invites=["ada@example.com"], report_path=f"{tmp_path}/report.csv")
    assert "Nothing was sent" not in str(caught.value)
    assert ti.xcoms["report"]["counts"]["invited"] == 1
    assert len(sandbox.effects("create_invite")) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["report.csv"]


def test_a_report_in_a_read_only_folder_is_permanent_and_the_log_says_where_another_lies(
    tmp_path: Path,
    sandbox: SandboxServer,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    connect()
    monkeypatch.chdir(tmp_path)
    assert (
        invite(None, invites=["ada@example.com"], report_path="report.csv")["report_path"] == f"{tmp_path}/report.csv"
    )
    assert f"The whole report is in '{tmp_path}/report.csv'" in capsys.readouterr().out
    monkeypatch.setattr(Path, "write_bytes", Mock(side_effect=OSError(errno.EROFS, "Read-only file system")))
    with pytest.raises(AirflowFailException, match=r"other.csv' cannot be written: Read-only .*Set report_path to"):
        invite(None, invites=["lin@example.com"], report_path="other.csv")
    assert len(sandbox.effects("create_invite")) == 1


def test_the_report_file_of_a_sync_has_all_changes(tmp_path: Path, sandbox: SandboxServer, connect: Connect) -> None:
    connect()
    arguments: Any = {
        "roster": ["ada@example.com", {"email": "mina.member@example.com", "level": 8}],
        "protected": ["olive.owner@example.com"],
        "report_path": f"{tmp_path}/report.csv",
        "max_removals": 4,
    }
    assert set(sync(dry_run=True, **arguments)) == {
        *("pending", "differences", "counts", "planned_for", "needs_attention", "report_path")
    }
    assert {row["status"] for row in rows_of(tmp_path / "report.csv")} == {"planned", "skipped"}

    sandbox.inject("status_before", "update_member", status=400)
    ti = TaskInstance()
    with pytest.raises(AirflowFailException, match="The service refused 1 of "):
        sync(ti, **arguments)
    assert [row["action"] for row in ti.xcoms["report"]["needs_attention"]] == ["change"]
    rows = {row["name"]: row for row in rows_of(tmp_path / "report.csv")}
    assert rows["member mina.member@example.com"]["status"] == "refused"
    assert rows["invite ada@example.com"]["status"] == "invited"
    assert {row["status"] for row in rows.values() if row["action"] == "remove"} == {"done"}
