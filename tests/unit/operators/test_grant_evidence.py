"""The file about each temporary access that ended: what it says, and that it is never half, twice or missing."""

from __future__ import annotations

import json
import os
import re
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import ObjectStoragePath
from airflow.sdk.execution_time import task_runner

from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.access import WorkspaceEndAccessOperator, WorkspaceGrantAccessOperator
from airflow_provider_workspace.operators.sweep import WorkspaceSweepOperator
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.audit import effects, writes
from tests.grant_notes import variable
from tests.task_instance import Killed, Question, Task, task_instance
from tests.variables import Variables, install

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Clock, Connect

pytestmark = pytest.mark.parametrize("sandbox", ["live"], indirect=True)

MINA, ADA = "mina.member@example.com", "ada@example.com"
HOUR = 3600.0
UNTIL = "2026-09-01T12:00:00Z"


@pytest.fixture(autouse=True)
def notes(monkeypatch: pytest.MonkeyPatch, connect: Connect) -> Variables:
    connect(consistency_time=1, max_attempts=1)
    return install(monkeypatch)


def note_over(sandbox: SandboxServer, notes: Variables, email: str = MINA, **fields: Any) -> str:
    """Note a grant that is over, and return the key of its Variable."""
    place = {"service": sandbox.url, "organization_id": SEED.organization_id, "user_email": email, "then": 1}
    key, notes.values[key] = variable(**{**place, "until": UNTIL, **fields})  # type: ignore[misc]
    return key  # type: ignore[has-type, no-any-return]


def set_level(level: int) -> None:
    with WorkspaceHook() as hook:
        hook.update_member(user_uuid=SEED.member_uuid, level=level)


def sweep(folder: Any, **arguments: Any) -> Any:
    task = WorkspaceSweepOperator(task_id="sweep", kinds=["grants"], evidence=folder, **arguments)
    return task.execute({"ti": task_instance()})["grants"]


def grant_notes(notes: Variables) -> list[str]:
    return [key for key in notes.values if key.startswith("workspace_grant.")]


def files(folder: Path) -> list[Path]:
    """Return every file in a folder, also hidden ones and parts."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def give_with_approval(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Max ask for access of Mina, and Ruth approve it."""
    question = Question(refreshes=False)
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", question, raising=False)
    task = Task(question, started_by="max")

    def operator() -> WorkspaceGrantAccessOperator:
        terms = {"user_email": MINA, "level": 8, "length": HOUR, "reason": "audit"}
        return WorkspaceGrantAccessOperator(task_id="grant", require_approval=True, **terms)

    approve = task.ask(operator())
    task.answer(operator(), approve, at=datetime.now(timezone.utc))


def test_the_file_says_who_asked_approved_gave_and_ended_and_what_proves_it(
    sandbox: SandboxServer, notes: Variables, monkeypatch: pytest.MonkeyPatch, clock: Clock, tmp_path: Path
) -> None:
    give_with_approval(monkeypatch)
    (key,) = grant_notes(notes)
    noted = json.loads(notes.values[key])
    clock.advance(HOUR + 1)
    (ended,) = sweep(tmp_path / "ended")["ended"]
    (path,) = files(tmp_path)
    assert ended["evidence"] == str(path)
    assert re.fullmatch(r"\d{8}T\d{6}Z-[0-9a-f]{12}-[0-9a-f]{12}\.json", path.name)
    assert MINA not in path.name
    record = json.loads(path.read_text())
    proof = record.pop("proof")
    times = {name: record.pop(name) for name in ("approved_at", "noted_at", "given_at", "ended_at")}
    assert record == {
        "user_email": MINA,
        "user_uuid": SEED.member_uuid,
        "service": sandbox.url,
        "organization_id": SEED.organization_id,
        "level": 8,
        "then": 1,
        "reason": "audit",
        "requested_by": "max",
        "approved_by": "ruth (1)",
        "given_by": f"{noted['dag_id']} / {noted['run_id']} / grant",
        "agreed_until": noted["until"],
        "until": noted["until"],
        "ended_early_by": "",
        "ended_by": "dag / run / task / -1",
        "variable": key,
    }
    assert times["approved_at"].endswith("Z")
    assert times["noted_at"] == noted["since"]
    assert times["given_at"] == noted["given_at"]
    assert times["noted_at"] <= times["given_at"] < record["until"]
    assert record["until"] < proof["lists_read_at"] <= times["ended_at"]
    (sent,) = proof["sent"]
    assert sent.startswith(f"UpdateMember: member {MINA}: level: 8 -> 1")
    assert proof["level"] == 1
    assert proof["has_invite"] is False
    assert proof["members_read"] > 1


def test_who_was_invited_or_ended_early_has_a_file_too(
    sandbox: SandboxServer, notes: Variables, tmp_path: Path
) -> None:
    task = WorkspaceGrantAccessOperator(task_id="grant", user_email=ADA, level=8, until="2999-01-01", reason="audit")
    task.execute({"ti": task_instance()})
    end = WorkspaceEndAccessOperator(task_id="end", user_email=ADA, evidence=str(tmp_path), dry_run=True)
    end.execute({"ti": task_instance()})
    assert files(tmp_path) == []
    end = WorkspaceEndAccessOperator(task_id="end", user_email=ADA, evidence=str(tmp_path))
    (row,) = end.execute({"ti": task_instance()})["ended"]
    (path,) = files(tmp_path)
    record = json.loads(path.read_text())
    assert row["evidence"] == str(path)
    assert record["agreed_until"] == "2999-01-01T23:59:59.000Z"
    assert record["until"] < "2999"
    assert record["ended_early_by"] == "run run of Dag dag"
    assert (record["proof"]["level"], record["proof"]["has_invite"], record["then"]) == (None, False, None)
    assert record["proof"]["sent"][0].startswith(f"DeleteInvite: invite {ADA}")
    assert (grant_notes(notes), effects(sandbox)[-1]) == ([], "delete_invite")


def test_without_a_folder_nothing_changes_and_a_dry_run_writes_nothing(
    sandbox: SandboxServer, notes: Variables, tmp_path: Path
) -> None:
    set_level(8)
    note_over(sandbox, notes)
    assert len(sweep(tmp_path, dry_run=True)["ended"]) == 1
    assert files(tmp_path) == []
    (ended,) = sweep(None)["ended"]
    assert "evidence" not in ended
    assert (files(tmp_path), grant_notes(notes)) == ([], [])


@pytest.mark.parametrize("moment", ["before the link", "after the link", "before the note is deleted"])
def test_a_kill_loses_no_file_and_makes_no_second_one(
    sandbox: SandboxServer, notes: Variables, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, moment: str
) -> None:
    set_level(8)
    note_over(sandbox, notes)
    link = os.link

    def kill(*arguments: Any) -> None:
        if moment == "after the link":
            link(*arguments)
        raise Killed

    with monkeypatch.context() as patch:
        if moment == "before the note is deleted":
            patch.setattr(notes, "delete", kill)
        else:
            patch.setattr(os, "link", kill)
        with pytest.raises(Killed):
            sweep(tmp_path)
    assert len(grant_notes(notes)) == 1
    before = {path: path.read_bytes() for path in files(tmp_path)}
    assert len(before) == (0 if moment == "before the link" else 1)
    (ended,) = sweep(tmp_path)["ended"]
    (path,) = files(tmp_path)
    assert ended["evidence"] == str(path)
    assert path.read_bytes() == before.get(path, path.read_bytes()), "the file of the killed try stays"
    assert (grant_notes(notes), effects(sandbox)) == ([], ["update_member"] * 2)
    sent = json.loads(path.read_text())["proof"]["sent"]
    assert len(sent) == (0 if moment == "before the link" else 1)


@pytest.mark.parametrize("obstacle", ["no folder", "file", "of another", "unreadable", "disk full"])
def test_a_file_that_cannot_be_written_leaves_the_note_and_is_red(
    sandbox: SandboxServer, notes: Variables, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, obstacle: str
) -> None:
    set_level(8)
    key = note_over(sandbox, notes)
    note_over(sandbox, notes, "grace.analyst@example.com", run_id="other", until="2026-09-01T13:00:00Z")
    folder = tmp_path / "ended"
    message = ""
    with monkeypatch.context() as patch:
        if obstacle == "no folder":
            folder.write_text("a file")
            message = "is not a folder"
        elif obstacle == "disk full":
            patch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
            message = "No space left on device"
        else:
            folder.mkdir()
            path = folder / name_of(notes, key, tmp_path / "elsewhere")
            text = (tmp_path / "elsewhere" / path.name).read_text()
            broken = {"file": "{}", "unreadable": "\udcff", "of another": text.replace(key, "workspace_grant.x.y")}
            path.write_bytes(broken[obstacle].encode(errors="surrogateescape"))
            message = (
                "Save the file with the encoding"
                if obstacle == "unreadable"
                else "Move .* elsewhere, then run this again"
            )
        with pytest.raises(
            (WorkspaceError, AirflowFailException),
            match=rf"\[access-not-ended\] .*{MINA}: The access is ended, but .*{message}",
        ):
            sweep(folder)
    assert key in grant_notes(notes)
    with WorkspaceHook() as hook:
        levels = {one.user.email: one.level for one in hook.list_members() if one.user}
    assert levels[MINA] == 1, "the access itself is ended"
    if obstacle in ("no folder", "disk full"):
        assert len(grant_notes(notes)) == 2
        folder.unlink(missing_ok=True) if folder.is_file() else None
        assert len(sweep(folder)["ended"]) == 2
        assert (len(files(folder)), grant_notes(notes)) == (2, [])
    else:
        assert grant_notes(notes) == [key], "the other one is ended"


def name_of(notes: Variables, key: str, folder: Path) -> str:
    """Return the name that the file of a grant gets, by ending it elsewhere; its note is put back."""
    values = dict(notes.values)
    for other in [other for other in notes.values if other != key]:
        notes.values.pop(other)
    sweep(folder)
    set_level(8)
    notes.values.update(values)
    (path,) = files(folder)
    return path.name


@pytest.mark.parametrize("folder", ["relative/folder", 7])
def test_a_folder_that_workers_do_not_share_is_refused_before_anything_is_sent(
    sandbox: SandboxServer, notes: Variables, folder: Any
) -> None:
    note_over(sandbox, notes)
    with pytest.raises(AirflowFailException, match="grants: evidence must be the URL of an object store"):
        sweep(folder)
    assert (writes(sandbox), len(grant_notes(notes))) == ([], 1)


@pytest.mark.usefixtures("memory")
def test_an_object_store_gets_the_files_too(sandbox: SandboxServer, notes: Variables) -> None:
    folder = ObjectStoragePath("memory://evidence/ended")
    for number in range(2):
        set_level(8)
        note_over(sandbox, notes, run_id=f"run-{number}", until=f"2026-09-01T12:0{number}:00Z")
        (ended,) = sweep(folder if number else str(folder))["ended"]
        assert json.loads(ObjectStoragePath(ended["evidence"]).read_text())["user_email"] == MINA
    assert len(list(folder.iterdir())) == 2


def test_organizations_that_end_side_by_side_keep_all_files(
    sandbox: SandboxServer, notes: Variables, tmp_path: Path
) -> None:
    emails = [f"guest-{number}@example.com" for number in range(30)]
    with WorkspaceHook() as hook:
        hook.create_invites([{"target_email": email, "level": 8} for email in emails])
    for email in emails:
        note_over(sandbox, notes, email, then=None)
    assert len(sweep(tmp_path)["ended"]) == 30
    records = [json.loads(path.read_text()) for path in files(tmp_path)]
    assert sorted(record["user_email"] for record in records) == sorted(emails)
    assert all(not record["proof"]["has_invite"] for record in records)


def test_a_reason_of_100_kb_is_refused_before_anything_is_sent(sandbox: SandboxServer, notes: Variables) -> None:
    task = WorkspaceGrantAccessOperator(task_id="grant", user_email=MINA, level=8, length=HOUR, reason="x" * 100_000)
    with pytest.raises(
        AirflowFailException, match=r"reason has 100000 characters, and at most 4000 are noted. Shorten it"
    ) as red:
        task.execute({"ti": task_instance()})
    assert len(str(red.value)) < 200
    assert (sandbox.requests(), grant_notes(notes)) == ([], [])


def test_an_error_about_200_people_names_few_and_the_log_has_all(
    sandbox: SandboxServer, notes: Variables, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(200):
        note_over(sandbox, notes, f"guest-{number}@example.com", workspace_conn_id="unknown")
    with pytest.raises(
        AirflowFailException, match=r"200 grants could not be ended.*… and 179 more: see the log"
    ) as red:
        sweep(None)
    assert str(red.value).count("@example.com: ") == 21
    assert len(set(re.findall(r"guest-\d+@example\.com: Connection", caplog.text))) == 200
