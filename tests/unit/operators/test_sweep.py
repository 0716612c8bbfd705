"""The sweep: both kinds in one task, and what one of them cannot end while the other can."""

from __future__ import annotations

import json
from contextlib import closing
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.sweep import WorkspaceSweepOperator
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.audit import effects
from tests.grant_notes import PREFIX as GRANTS
from tests.grant_notes import grant
from tests.leases import PREFIX as LEASES
from tests.leases import digest
from tests.task_instance import Killed
from tests.windows import CLOSE, SWEEP, Airflow, opened

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = pytest.mark.parametrize("sandbox", ["live"], indirect=True)

EXPORT, OTHER, _ = SEED.batch_export_ids
MINA = "mina.member@example.com"
PAUSED, RESUMED, LOWERED = "pause_batch_export", "unpause_batch_export", "update_member"
# What is due: see ``due``.
ABANDONED = r"\[window-abandoned\] windows: Window"
BOTH = ("window", "grant")


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch, connect: Connect) -> Airflow:
    connect(consistency_time=1, max_attempts=1, read_timeout=1)
    return Airflow(monkeypatch)


def due(sandbox: SandboxServer, airflow: Airflow, *what: str, run_id: str = "run") -> None:
    """Leave an abandoned window, the overdue grant of a member, or both."""
    if "window" in what:
        opened(EXPORT, run_id=run_id)
        airflow.end(run_id, "its run is over")
    if "grant" in what:
        note = grant(service=sandbox.url, organization_id=SEED.organization_id, user_email=MINA)
        note |= {"since": "2026-01-01T00:00:00Z", "until": "2026-02-01T00:00:00Z"}
        task = digest(note["dag_id"], note["run_id"], note["task_id"], str(note["map_index"]))
        key = f"{GRANTS}{digest(sandbox.url, SEED.organization_id, MINA)}.{task}"
        airflow.variables.values[key] = json.dumps(note)
        set_level(8)


def set_level(level: int) -> None:
    with closing(WorkspaceHook()) as hook:
        hook.update_member(user_uuid=SEED.member_uuid, level=level)


class Sweep:
    """A task that sweeps, and what it pushes."""

    def __init__(self, **arguments: Any) -> None:
        self.xcoms: dict[str, Any] = {}
        self.task = WorkspaceSweepOperator(task_id="sweep", **arguments)

    def push(self, key: str, value: Any) -> None:
        self.xcoms[key] = json.loads(json.dumps(value))

    def run(self) -> Any:
        ti = SimpleNamespace(dag_id="sweep", run_id="now", task_id="sweep", try_number=1, xcom_push=self.push)
        return self.task.execute({"ti": ti})  # type: ignore[typeddict-item]


def ended(result: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the exports that were resumed, and the people whose access was ended."""
    resumed = [export_id for row in result["windows"]["windows"] for export_id in row["resumed"]]
    return resumed, [row["user_email"] for row in result["grants"]["ended"]]


def test_nothing_due_is_green_on_every_release(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, connect: Connect
) -> None:
    connect()
    for release in ("3.3", "3.1"):
        airflow = Airflow(monkeypatch, release)
        assert Sweep().run() == {
            "windows": {"windows": [], "unreadable": {}},
            "grants": {"ended": [], "left": [], "active": 0},
        }
        assert airflow.swept["windows"] == {}
    assert sandbox.requests() == []


def test_both_kinds_are_ended_by_one_task(sandbox: SandboxServer, airflow: Airflow) -> None:
    due(sandbox, airflow, *BOTH)
    assert ended(Sweep(fail_if_any=False).run()) == ([EXPORT], [MINA])
    assert effects(sandbox) == [PAUSED, LOWERED, RESUMED, LOWERED]
    assert list(airflow.variables.values) == [SWEEP]


def test_an_abandoned_window_fails_the_task_after_the_grants_are_ended(
    sandbox: SandboxServer, airflow: Airflow
) -> None:
    due(sandbox, airflow, *BOTH)
    sweep = Sweep()
    with pytest.raises(AirflowFailException, match=rf"^{ABANDONED} dag / run / {CLOSE} .*: resumed {EXPORT}\.$"):
        sweep.run()
    assert list(sweep.xcoms) == ["return_value"]
    assert ended(sweep.xcoms["return_value"]) == ([EXPORT], [MINA])


@pytest.mark.parametrize("kind", ["windows", "grants"])
def test_only_the_kinds_that_are_named_are_swept(sandbox: SandboxServer, airflow: Airflow, kind: str) -> None:
    due(sandbox, airflow, *BOTH)
    assert list(Sweep(kinds=kind, fail_if_any=False).run()) == [kind]
    assert effects(sandbox)[2:] == ([RESUMED] if kind == "windows" else [LOWERED])
    assert (SWEEP in airflow.variables.values) is (kind == "windows")


def test_a_dry_run_sends_and_writes_nothing(
    sandbox: SandboxServer, airflow: Airflow, capsys: pytest.CaptureFixture[str]
) -> None:
    due(sandbox, airflow, *BOTH)
    noted, sent = dict(airflow.variables.values), effects(sandbox)
    result = Sweep(dry_run=True).run()
    (window,), (lowered,) = result["windows"]["windows"], result["grants"]["ended"]
    assert (window["why"], lowered["user_email"], result["dry_run"]) == ("its run is over", MINA, True)
    assert window["would_resume"] == [EXPORT]
    assert (airflow.variables.values, effects(sandbox)) == (noted, sent)
    said = capsys.readouterr().out
    assert f"Window dag / run / {CLOSE} (abandoned: its run is over): would resume {EXPORT}." in said
    assert f"Would end: {MINA}: member {MINA}: level: 8 -> 1" in said


STILL_PAUSED = r"^\[still-paused\] windows: STILL PAUSED"
NOT_ENDED = r"^\[access-not-ended\] grants:"
# What stands in the way of one kind, whether retries help, and the message.
UNEXPECTED = r"^\[unexpected-error\]"


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_lease_that_a_task_may_not_read_stops_no_other_window(
    sandbox: SandboxServer, airflow: Airflow, *, dry_run: bool
) -> None:
    due(sandbox, airflow, "window")
    (denied,) = airflow.lease_keys()
    opened(OTHER, run_id="other")
    airflow.end("other", "its run is over")
    airflow.variables.denied.add(denied)
    result = Sweep(fail_if_any=False, dry_run=dry_run).run()["windows"]
    (window,) = result["windows"]
    assert window["would_resume" if dry_run else "resumed"] == [OTHER]
    assert "' for this task: Access denied" in result["unreadable"][denied]


def test_a_grant_that_a_task_may_not_read_stops_no_other(sandbox: SandboxServer, airflow: Airflow) -> None:
    due(sandbox, airflow, "grant")
    denied = f"{GRANTS}denied"
    airflow.variables.values[denied] = "{}"
    airflow.variables.denied.add(denied)
    with pytest.raises(AirflowFailException, match=r"1 grant could not be ended\. .* for this task: Access denied"):
        Sweep(kinds=["grants"]).run()
    assert effects(sandbox)[-1] == LOWERED


def test_a_dry_run_shows_the_other_windows_when_airflow_does_not_answer_about_one(
    sandbox: SandboxServer, airflow: Airflow
) -> None:
    due(sandbox, airflow, "window")
    opened(OTHER, run_id="other")
    airflow.end("other", "its run is over")
    variables: Any = airflow.variables
    list_keys, asked = variables.keys, []

    def keys(prefix: str) -> list[str]:
        asked.append(prefix)
        if len(asked) == last:
            raise RuntimeError("no answer")
        found: list[str] = list_keys(prefix)
        return found

    last, variables.keys = 0, keys
    Sweep(kinds=["windows"], dry_run=True).run()
    last = len(asked)  # when the last export is looked at
    asked.clear()
    sweep = Sweep(kinds=["windows"], dry_run=True)
    with pytest.raises(WorkspaceError, match=r"1 batch export\. no answer"):
        sweep.run()
    windows = sweep.xcoms["return_value"]["windows"]["windows"]
    assert [(row["would_resume"], row["failed"]) for row in windows] == [([EXPORT], {}), ([], {OTHER: "no answer"})]


OBSTACLES = [
    (
        "the connection of the window is unknown",
        False,
        r"^\[still-paused\] windows: STILL PAUSED.*Connection 'unknown', which paused",
    ),
    ("the service does not answer the resume", False, STILL_PAUSED),
    ("Variables of windows cannot be listed", False, rf"{UNEXPECTED} windows: RuntimeError: no answer"),
    (
        "the level was changed",
        True,
        rf"{NOT_ENDED} .*{MINA}: .*Set level 1 by hand, or delete the Variable",
    ),
    ("the connection of the grant is unknown", True, rf"{NOT_ENDED} .*Connection 'unknown' does not exist any more"),
    ("the service does not answer the list of members", False, rf"{NOT_ENDED} .*{MINA}: "),
    ("Variables of grants cannot be listed", False, rf"{UNEXPECTED} grants: RuntimeError: no answer"),
]


def block(sandbox: SandboxServer, airflow: Airflow, obstacle: str) -> None:
    values = airflow.variables.values
    if obstacle.endswith("is unknown"):
        prefix = LEASES if "window" in obstacle else GRANTS
        (key,) = [key for key in values if key.startswith(prefix)]
        values[key] = values[key].replace("workspace_default", "unknown")
    elif obstacle == "the level was changed":
        set_level(15)
    elif obstacle.startswith("the service does not answer"):
        sandbox.inject("time_out_before", "unpause_batch_export" if "resume" in obstacle else "list_members", times=9)
    else:
        refused = LEASES if "windows" in obstacle else GRANTS
        variables: Any = airflow.variables
        list_keys = variables.keys

        def refuse_keys(prefix: str) -> list[str]:
            if prefix.startswith(refused):
                raise RuntimeError("no answer")
            found: list[str] = list_keys(prefix)
            return found

        variables.keys = refuse_keys


@pytest.mark.parametrize(("obstacle", "permanent", "message"), OBSTACLES, ids=[row[0] for row in OBSTACLES])
def test_a_kind_that_fails_stops_no_other(
    sandbox: SandboxServer, airflow: Airflow, obstacle: str, *, permanent: bool, message: str
) -> None:
    due(sandbox, airflow, *BOTH)
    block(sandbox, airflow, obstacle)
    sweep = Sweep(fail_if_any=False)
    error = AirflowFailException if permanent else WorkspaceError
    with pytest.raises(error, match=message.replace(" grants", " (WorkspaceError: )?grants") if permanent else message):
        sweep.run()
    if "windows: " in message:
        assert [row["user_email"] for row in sweep.xcoms["return_value"]["grants"]["ended"]] == [MINA]
        assert effects(sandbox)[2:] == [LOWERED]
    else:
        (row,) = sweep.xcoms["return_value"]["windows"]["windows"]
        assert row["resumed"] == [EXPORT]
        assert RESUMED in effects(sandbox)


def test_one_error_names_each_kind(sandbox: SandboxServer, airflow: Airflow) -> None:
    due(sandbox, airflow, *BOTH)
    for obstacle in ("the connection of the window is unknown", "the level was changed"):
        block(sandbox, airflow, obstacle)
    with pytest.raises(WorkspaceError) as red:  # windows may be resumed by a retry
        Sweep().run()
    windows, grants = str(red.value).splitlines()[0], str(red.value).splitlines()[-1]
    assert windows.startswith("[still-paused] windows: STILL PAUSED")
    assert grants.startswith("[access-not-ended] grants: ")
    assert red.value.permanent is False


def test_a_retry_cannot_hide_an_abandoned_window(sandbox: SandboxServer, airflow: Airflow) -> None:
    """A grant that a retry may end, and a window that is closed by then: the task fails at once, with both."""
    due(sandbox, airflow, *BOTH)
    block(sandbox, airflow, "Variables of grants cannot be listed")
    with pytest.raises(
        AirflowFailException, match=rf"^{ABANDONED} .*: resumed {EXPORT}\.\n\[unex.*\] grants: RuntimeError"
    ):
        Sweep().run()


@pytest.mark.parametrize("obstacle", ["killed", "not recorded"])
def test_a_sweep_that_is_cut_off_after_it_resumed_is_told_by_the_next_one(
    sandbox: SandboxServer, airflow: Airflow, monkeypatch: pytest.MonkeyPatch, obstacle: str
) -> None:
    due(sandbox, airflow, "window")
    with monkeypatch.context() as patch:
        written = airflow.variables.set
        keep = {"not recorded": RuntimeError("503"), "killed": Killed()}[obstacle]

        def write(key: str, *rest: Any, **named: Any) -> None:
            if key == SWEEP and not airflow.leases():
                raise keep
            written(key, *rest, **named)

        patch.setattr(airflow.variables, "set", write)
        with pytest.raises((Killed, AirflowFailException), match=ABANDONED if obstacle == "not recorded" else None):
            Sweep().run()
    assert effects(sandbox)[-1] == RESUMED
    told = r"\[window-abandoned\] windows: An earlier sweep was about to close dag / run .* when it was cut off\."
    with pytest.raises(AirflowFailException, match=told):
        Sweep().run()
    assert Sweep().run()["windows"]["windows"] == []


def test_a_sweep_that_cannot_note_what_it_resumes_resumes_it(
    sandbox: SandboxServer, airflow: Airflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    due(sandbox, airflow, "window")
    written = airflow.variables.set

    def write(key: str, *rest: Any, **named: Any) -> None:
        if key == SWEEP:
            raise RuntimeError("503")
        written(key, *rest, **named)

    monkeypatch.setattr(airflow.variables, "set", write)
    with pytest.raises(AirflowFailException, match=rf"{ABANDONED} .* resumed {EXPORT}"):
        Sweep().run()
    with pytest.raises(WorkspaceError, match="note-not-kept"):
        Sweep().run()
    assert effects(sandbox)[-1] == RESUMED


def test_a_lease_that_nobody_repairs_is_named_by_its_problem(sandbox: SandboxServer, airflow: Airflow) -> None:
    due(sandbox, airflow, *BOTH)
    (key,) = [key for key in airflow.variables.values if key.startswith(LEASES)]
    airflow.variables.values[key] = "edited"
    with pytest.raises(
        AirflowFailException, match=rf"^\[lease-unreadable\] windows: The lease of batch export .*'{key}'"
    ):
        Sweep().run()


# How much of a message Airflow's list of logs and most alerts show.
SHOWN = 120


@pytest.mark.parametrize(
    ("obstacle", "cause"),
    [
        ("the connection of the window is unknown", "1 batch export. Connection 'unknown', which paused"),
        ("the service does not answer the resume", "1 batch export. UnpauseBatchExport was sent, but"),
        ("the connection of the grant is unknown", f"1 grant could not be ended. {MINA}: Connection"),
        ("the level was changed", f"1 grant could not be ended. {MINA}: "),
    ],
)
def test_what_is_wrong_stands_in_what_an_alert_shows(
    sandbox: SandboxServer, airflow: Airflow, obstacle: str, cause: str
) -> None:
    due(sandbox, airflow, "window" if "export" in cause else "grant")
    block(sandbox, airflow, obstacle)
    with pytest.raises((AirflowFailException, WorkspaceError)) as failed:
        Sweep().run()
    assert cause in str(failed.value)[:SHOWN]


def test_a_lease_that_names_no_export_has_no_command_with_a_placeholder(airflow: Airflow) -> None:
    airflow.variables.values[f"{LEASES}x"] = "edited"
    with pytest.raises(AirflowFailException, match=r"A lease whose Variable names no export cannot be read") as failed:
        Sweep().run()
    assert "look in the workspace whether an export is paused first" in str(failed.value)
    assert "EXPORT_ID" not in str(failed.value)


def test_an_error_that_quotes_another_begins_with_its_problem(sandbox: SandboxServer, airflow: Airflow) -> None:
    quoted = WorkspaceError("Replace the key.", problem="api-key-refused")

    def refuse_keys(prefix: str) -> list[str]:
        raise WorkspaceError(f"{prefix[:10]}… is not listed: {quoted}")

    due(sandbox, airflow, *BOTH)
    variables: Any = airflow.variables
    variables.keys = refuse_keys
    with pytest.raises(AirflowFailException) as red:
        Sweep().run()
    assert str(red.value).splitlines() == [
        "[api-key-refused] WorkspaceError: windows: workspace_… is not listed: Replace the key.",
        "[api-key-refused] grants: workspace_… is not listed: Replace the key.",
    ]
