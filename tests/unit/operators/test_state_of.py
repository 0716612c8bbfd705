"""
Windows that can see whether an export is paused: by a list that only the live sandbox has, or by a function.

``history`` of the sandbox has only what changed something: the pause of a paused export is not in it.
"""

from __future__ import annotations

import signal
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.errors import (
    WorkspaceError,
    WorkspaceInputError,
    WorkspaceNotAppliedError,
    WorkspaceRequestError,
)
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.version_compat import AirflowFailException, TaskDeferred
from tests.endpoints import SCRIPT, AddProject, ListBatchExports, ReadProject, scripted
from tests.interruptions import Interruptions, kill
from tests.task_instance import Killed
from tests.windows import Airflow, Window, opened, sweep

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = [pytest.mark.parametrize("sandbox", ["live"], indirect=True), pytest.mark.usefixtures("no_waits")]
FIRST, SECOND, THIRD = SEED.batch_export_ids[:3]
LIST = "tests.endpoints.ListBatchExports"


@pytest.fixture(autouse=True)
def airflow(monkeypatch: pytest.MonkeyPatch, connect: Connect) -> Airflow:
    connect(max_attempts=2, read_timeout=1)
    return Airflow(monkeypatch)


def paused(export: str) -> bool | None:
    with WorkspaceHook() as hook:
        rows = hook.client.rows(ListBatchExports(organization_id=SEED.organization_id))
        return {row.id: row.paused for row in rows}[export]


def pause_by_hand(export: str) -> None:
    with WorkspaceHook() as hook:
        hook.pause_batch_export(batch_export_id=export)


def show(*states: Any) -> None:
    SCRIPT[:] = states


@pytest.mark.parametrize(
    "state_of", [ListBatchExports, LIST, "tests.endpoints.ListExportsByCursor", "tests.endpoints.ListFewExports"]
)
def test_a_window_proves_that_its_exports_are_paused_and_running(
    sandbox: SandboxServer, airflow: Airflow, state_of: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    pause_by_hand(SECOND)
    window = opened(FIRST, SECOND, state_of=state_of)
    first, second = sorted(airflow.leases(), key=lambda lease: str(lease["batch_export_id"]))
    assert first["state_of"] == (state_of if isinstance(state_of, str) else LIST)
    assert (first["seen"], first["paused_before"]) == ("paused", False)
    assert (second["seen"], second["paused_before"]) == ("paused", True)
    assert first["seen_at"] >= first["since"]
    looks = sum(request["path"].endswith("/batch_exports/") for request in sandbox.requests())
    assert looks == 2, "one before and one after the pauses, for both"
    assert "s of max_length were over" in capsys.readouterr().out
    window.work()
    assert window.close().items() >= {"resumed": [FIRST], "left_paused": [SECOND]}.items()
    assert (paused(FIRST), paused(SECOND)) == (False, True)
    assert airflow.lease_keys() == []


@pytest.mark.parametrize("before", [False, True], ids=["running before", "paused before"])
@pytest.mark.parametrize("second", [LIST, None, "tests.endpoints.scripted"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_last_window_leaves_an_export_as_it_was_before_the_first(
    *, before: bool, second: str | None, order: tuple[int, int]
) -> None:
    """Also if the other window cannot see it."""
    show(None)
    if before:
        pause_by_hand(FIRST)
    windows = [opened(FIRST, run_id="a", state_of=LIST), opened(FIRST, run_id="b", state_of=second)]
    windows[order[0]].close()
    assert paused(FIRST)
    windows[order[1]].close()
    assert paused(FIRST) is before


@pytest.mark.parametrize("before", [False, True])
def test_a_retry_does_not_take_its_own_pause_for_an_earlier_one(
    monkeypatch: pytest.MonkeyPatch, airflow: Airflow, connect: Connect, *, before: bool
) -> None:
    """Nor does ``open``, which somebody clears alone."""
    connect(consistency_time=0)
    if before:
        pause_by_hand(FIRST)
    window = Window(FIRST, state_of=LIST)
    window.open()
    Interruptions(monkeypatch).after("/pause/")
    with pytest.raises(Killed):
        window.pause()
    window.open()
    window.pause()
    window.open()
    window.pause()
    (lease,) = airflow.leases()
    assert lease["paused_before"] is before
    assert window.close()["left_paused"] == ([FIRST] if before else [])


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("closes", [False, True])
def test_a_window_that_pauses_during_the_look_is_no_earlier_pause(
    monkeypatch: pytest.MonkeyPatch, moment: str, *, closes: bool
) -> None:
    window, others = Window(FIRST, state_of=LIST), []

    def open_other() -> None:
        others.append(opened(FIRST, run_id="other", state_of=LIST))
        if closes:
            others[0].close()

    window.open()
    getattr(Interruptions(monkeypatch), moment)("/batch_exports/?", open_other)
    window.pause()
    assert paused(FIRST)
    window.close()
    if not closes:
        assert paused(FIRST)
        others[0].close()
    assert not paused(FIRST)


def test_close_takes_the_pause_of_a_window_that_opens_for_no_failure(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, connect: Connect
) -> None:
    connect(consistency_time=0)
    window, others = opened(FIRST, state_of=LIST), []
    Interruptions(monkeypatch).after("/unpause/", lambda: others.append(opened(FIRST, run_id="other", state_of=LIST)))
    assert window.close()["resumed"] == [FIRST]
    assert paused(FIRST)
    before = len(sandbox.requests())
    others.append(opened(FIRST, run_id="third", state_of=LIST))
    assert len(sandbox.requests()) - before == 4, (
        "two pauses, a look before and a look after: no wait for another state"
    )
    for other in others:
        other.close()
    assert not paused(FIRST)


def test_close_waits_for_a_pause_without_an_answer_before_it_looks(sandbox: SandboxServer, airflow: Airflow) -> None:
    show("running", "paused")
    window = Window(FIRST, state_of=scripted)
    window.open()
    sandbox.inject("reset_after", operation="pause_batch_export", times=2)
    with pytest.raises(WorkspaceRequestError, match="no complete response"):
        window.pause()
    with pytest.raises(TaskDeferred) as deferred:
        window.close()
    show("running")
    airflow.edit(airflow.lease_keys()[0], late_pause_until="2020-01-01T00:00:00.000Z")
    assert window.close({"status": "over", "state": deferred.value.trigger.state})["resumed"] == [FIRST]  # type: ignore[attr-defined]


@pytest.mark.parametrize("before", [False, True])
def test_the_sweep_says_what_it_saw(airflow: Airflow, *, before: bool) -> None:
    if before:
        pause_by_hand(FIRST)
    opened(FIRST, state_of=LIST)
    airflow.end("run", "its run is over")
    if before:
        (row,) = sweep()["windows"]
        assert (row["left_paused"], row["seen"]) == ([FIRST], {})
    else:
        with pytest.raises(AirflowFailException, match=f"resumed {FIRST}; seen running {FIRST}"):
            sweep()
    assert paused(FIRST) is before


# What contradicts, and what proves nothing


def test_a_pause_that_does_not_show_is_an_error(airflow: Airflow) -> None:
    show("running")
    window = Window(FIRST, state_of=scripted)
    window.open()
    says = (
        r"^\[export-differs\] The service says that PauseBatchExport was done, but "
        "tests.endpoints.scripted showed the export running for"
    )
    with pytest.raises(WorkspaceNotAppliedError, match=says):
        window.pause()
    assert [(lease["state"], lease["seen"]) for lease in airflow.leases()] == [("paused", "running")]
    assert window.close()["resumed"] == [FIRST]


def test_a_resume_that_does_not_show_is_an_error_until_it_does(airflow: Airflow) -> None:
    show("running", "paused")
    window = opened(FIRST, state_of=scripted)
    with pytest.raises(WorkspaceRequestError, match=f"STILL PAUSED.*showed the export paused for 2 s.*{FIRST}"):
        window.close()
    assert [(lease["state"], lease["seen"]) for lease in airflow.leases()] == [("closing", "paused")]
    show("running")
    assert window.close()["resumed"] == [FIRST]
    assert airflow.lease_keys() == []


def test_a_list_that_is_late_is_read_again() -> None:
    """It shows the pause late, and the resume."""
    show("running", "running", "paused")
    window = opened(FIRST, state_of=scripted)
    show("paused", "running")
    assert window.close()["resumed"] == [FIRST]


class Cell:
    """A cell of a table, like those of pandas: it has no truth, and this one no text."""

    def __eq__(self, _: object) -> Any:
        return self

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise ValueError("The truth value is ambiguous")

    __str__ = __repr__ = __bool__  # type: ignore[assignment]


class Text(str):
    """A text that is no plain one."""

    __slots__ = ()


@pytest.mark.parametrize(
    "shown",
    [None, "Paused", True, [], Cell(), Text("paused"), ValueError("no such export"), SystemExit(3), Event().wait],
)
def test_what_is_unknown_proves_nothing(
    airflow: Airflow, shown: Any, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """And it stops nobody's resume."""
    connect(total_timeout=2)
    show(shown)
    window = opened(FIRST, SECOND, THIRD, state_of=scripted)
    assert [(lease["seen"], lease["paused_before"]) for lease in airflow.leases()] == [("unknown", False)] * 3
    window.work()
    assert sorted(window.close()["resumed"]) == [FIRST, SECOND, THIRD]
    assert "tests.endpoints.scripted shows no state, so nothing is proven" in caplog.text


def test_all_exports_are_resumed_before_one_is_looked_at() -> None:
    show("running", "running", "running", "paused")
    window = opened(FIRST, SECOND, THIRD, state_of=scripted)
    show(lambda: "paused" if any(map(paused, (FIRST, SECOND, THIRD))) else "running")
    assert sorted(window.close()["resumed"]) == [FIRST, SECOND, THIRD]


def test_a_retry_after_a_killed_look_sends_no_second_resume(sandbox: SandboxServer, connect: Connect) -> None:
    connect(consistency_time=0)
    show("running", "paused")
    window = opened(FIRST, state_of=scripted)
    signal.signal(signal.SIGUSR1, lambda *_: kill())
    show(lambda: signal.raise_signal(signal.SIGUSR1))
    with pytest.raises(Killed):
        window.close()
    show("running")
    assert window.close()["resumed"] == [FIRST]
    assert sum("/unpause/" in request["path"] for request in sandbox.requests()) == 1


def test_each_window_of_a_sweep_stands_for_itself(airflow: Airflow, monkeypatch: pytest.MonkeyPatch) -> None:
    show("running", "paused")
    opened(FIRST, run_id="a")
    opened(SECOND, run_id="b", state_of=scripted)
    opened(THIRD, run_id="c")
    Interruptions(monkeypatch).before("/unpause/", {}.popitem)
    for run_id in "abc":
        airflow.end(run_id, "its run is over")
    show(SystemExit(3))
    with pytest.raises(WorkspaceError, match=f"(?s)STILL PAUSED.*{FIRST}.*resumed {SECOND}; seen unknown"):
        sweep()
    assert [paused(export) for export in (FIRST, SECOND, THIRD)] == [True, False, False]


def test_a_sweep_that_cannot_import_it_resumes_all_the_same(airflow: Airflow) -> None:
    """A class of a Dag file has a name that only the tasks of its Dag know."""
    opened(FIRST, state_of=LIST)
    airflow.edit(airflow.lease_keys()[0], state_of="unusual_prefix_0_dag.ListBatchExports")
    airflow.end("run", "its run is over")
    with pytest.raises(AirflowFailException, match=f"resumed {FIRST}; seen unknown {FIRST}"):
        sweep()
    assert not paused(FIRST)


@pytest.mark.parametrize(
    ("state_of", "says"),
    [
        ("tests.endpoints.Nothing", "state_of: 'tests.endpoints.Nothing' cannot be imported here"),
        ("json.decoder", "state_of must be a class that @endpoint decorates or a function, or its name"),
        ("json.JSONDecoder", "state_of must be a class that @endpoint decorates or a function, or its name"),
        (ReadProject, "ReadProject: field 'id' is required"),
        (AddProject, "AddProject: field 'name' is required"),
        ("airflow_provider_workspace.api.operations.PauseBatchExport",
         "state_of must read, and PauseBatchExport writes"),
    ],
)  # fmt: skip
def test_what_shows_no_state_is_refused_before_pausing(
    sandbox: SandboxServer, airflow: Airflow, state_of: Any, says: str
) -> None:
    with pytest.raises(AirflowFailException, match=says):
        Window(FIRST, state_of=state_of).open()
    assert airflow.lease_keys() == sandbox.requests() == []


@pytest.mark.parametrize("state_of", [lambda *_: None, "ListBatchExports", 5, ["a.b"], "a. b"])
def test_what_has_no_name_is_refused_in_the_dag_file(state_of: Any) -> None:
    with pytest.raises(WorkspaceInputError, match="state_of must be a class or function of a module, or its name such"):
        Window(FIRST, state_of=state_of)
