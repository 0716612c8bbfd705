"""The model of the status page in a JavaScript engine: from what Airflow answers to headline and rows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from py_mini_racer import MiniRacer

from airflow_provider_workspace.ui import plugin
from tests.leases import PREFIX, SWEEP, iso, lease, variable
from tests.leases import swept as swept_at

MODEL = Path(plugin.__file__).with_name("static") / "model.js"
NOW = 1_790_000_000
HOUR = 3600
SECOND = "0190c0de-0000-4000-8000-0000000000e2"
LEASE = {"since": NOW - HOUR, "until": NOW + HOUR, "paused_at": NOW - HOUR}
OTHER = {**LEASE, "run_id": "manual__2", "batch_export_id": SECOND}
LATE = {**OTHER, "until": NOW - 1}
FORBIDDEN = {"reason": {"status": 403, "message": "Forbidden"}}
DOWN = {"reason": {"status": None, "message": "network"}}
NOTHING = "No window holds an export and nobody waits, as far as your role sees"
UNSEEN = "not visible to your role, or deleted"

View = Callable[..., Any]


@pytest.fixture(scope="module")
def model() -> MiniRacer:
    """The module; the engine runs scripts, which export nothing."""
    engine = MiniRacer()
    engine.eval(re.sub(r"^export ", "", MODEL.read_text(), flags=re.MULTILINE))
    return engine


@pytest.fixture
def view(model: MiniRacer) -> View:
    """Return what the page shows for some answers; the others are empty lists."""

    def view_of(**answers: Any) -> Any:
        rows = {"value": {"rows": [], "total": 0}}
        empty = {name: {"value": []} for name in ("variables", "tasks", "runs")}
        empty |= dict.fromkeys(("sweeps", "campaigns", "waits"), rows)
        return model.call("view", empty | answers, NOW * 1000)

    return view_of


def variables(*leases: dict[str, Any], sweep: str | None = None, **more: str) -> dict[str, Any]:
    values = dict(variable(lease(**fields)) for fields in leases) | more
    if sweep is not None:
        values[SWEEP] = sweep
    return {"value": [{"key": key, "value": value} for key, value in values.items()]}


def swept(fields: dict[str, Any], state: str, why: str = "") -> str:
    return swept_at(lease(**fields), state, why, at=NOW - 60)


def task(task_id: str, state: str | None, of: dict[str, Any] = LEASE, **fields: Any) -> dict[str, Any]:
    run_id = lease(**of)["run_id"]
    place = {"dag_id": "nightly", "dag_run_id": run_id, "task_id": task_id, "map_index": -1}
    return {"id": f"{run_id} {task_id}", "try_number": 1, "state": state, **place, **fields}


def seen(*tasks: dict[str, Any], run: str = "running") -> dict[str, Any]:
    runs = [{"dag_id": one["dag_id"], "dag_run_id": one["dag_run_id"], "state": run} for one in tasks[:1]]
    return {"tasks": {"value": [*tasks]}, "runs": {"value": runs}}


ABANDONED = variables(LEASE, sweep=swept(LEASE, "abandoned", "its run is over"))


@pytest.mark.parametrize(
    ("answers", "headline", "bad"),
    [
        ({}, NOTHING, False),
        ({"variables": variables(LEASE, OTHER)}, "2 held by windows", False),
        ({"variables": variables(LEASE, LATE)}, "1 past the latest end · 1 held by windows", True),
        ({"variables": variables(LEASE, sweep=swept(LEASE, "open"))}, "1 held by windows", False),
        ({"variables": ABANDONED}, "1 abandoned (last sweep)", True),
        ({"variables": variables({**LATE, "resumed_at": NOW})}, "1 just resumed", False),
        ({"variables": variables(LEASE, **{f"{PREFIX}broken": "{"})}, "1 unreadable · 1 held by windows", True),
        # Absence is not known to be the end of a run.
        ({"variables": variables(LEASE), "tasks": FORBIDDEN, "runs": FORBIDDEN}, "1 held by windows", False),
        ({"variables": variables(LEASE), **seen(task("window.close", "skipped"))}, "1 held by windows", False),
        # Viewer and User
        ({"variables": FORBIDDEN}, "Not visible to your role: paused exports", False),
        (
            {"variables": DOWN, "waits": FORBIDDEN},
            "Airflow did not answer: paused exports · Not visible to your role: waits",
            True,
        ),
        ({"waits": {"reason": {"status": 401, "message": ""}}}, "Log in again: waits", True),
    ],
)
def test_headline(view: View, answers: dict[str, Any], headline: str, bad: object) -> None:
    assert view(**answers)["summary"] == {"text": headline, "bad": bad}


@pytest.mark.parametrize(
    ("answers", "lines", "close"),
    [
        ({}, [f"its run and tasks: {UNSEEN}"], None),
        ({"tasks": FORBIDDEN, "runs": FORBIDDEN}, ["Not visible to your role: the states of its tasks"], None),
        ({"tasks": DOWN, "runs": DOWN}, ["Airflow did not answer: the states of its tasks"], None),
        (seen(task("window.close", None)), ["run running", "window.close not begun"], None),
        (seen(task("work", "running")), ["run running", "work running", f"window.close: {UNSEEN}"], None),
        (
            seen(task("window.close", "skipped"), task("work", "success"), run="failed"),
            ["run failed", "window.close skipped"],
            "window.close",
        ),
        (seen(task("window.close", None, OTHER)), [f"its run and tasks: {UNSEEN}"], None),
        (seen(task("window.close", None, map_index=0)), ["run running", f"window.close: {UNSEEN}"], None),
    ],
)
def test_what_was_seen_of_the_run_and_its_tasks(
    view: View, answers: dict[str, Any], lines: list[str], close: object
) -> None:
    (row,) = view(variables=variables(LEASE), **answers)["windows"]["rows"]
    assert (row["lines"], row["close"] and row["close"]["task_id"], row["failed"]) == (lines, close, [])


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "Paused"),
        ({"paused_at": None}, "Not paused yet"),
        ({"paused_at": None, "refused": "no"}, "Pause refused"),
        ({"paused_at": None, "late_pause_until": NOW}, "Pausing, no answer yet"),
        ({"state": "closing"}, "Resume begun, not confirmed"),
        ({"state": "closing", "resumed_at": NOW}, "Resumed"),
        ({"until": NOW - HOUR}, "Paused"),
    ],
)
def test_state_of_an_export_follows_from_its_lease(view: View, changes: dict[str, Any], state: str) -> None:
    (row,) = view(variables=variables(LEASE | changes))["windows"]["rows"]
    (export,) = row["exports"]
    assert (export["shown"][0], row["verdict"]) == (state, None)


@pytest.mark.parametrize(
    ("sweep", "at", "verdict"),
    [
        *((sweep, None, None) for sweep in (None, "", "[1]", "null")),
        (iso(NOW), NOW * 1000, None),
        (json.dumps({"at": iso(NOW), "windows": {}}), NOW * 1000, None),
        (swept(OTHER, "abandoned"), (NOW - 60) * 1000, None),
        (
            swept(LEASE, "abandoned", "its run is over"),
            (NOW - 60) * 1000,
            {"state": "abandoned", "why": "its run is over"},
        ),
    ],
)
def test_verdicts_are_those_of_the_last_sweep(view: View, sweep: str | None, at: int | None, verdict: Any) -> None:
    shown = view(variables=variables(LEASE, sweep=sweep))["windows"]
    (row,) = shown["rows"]
    assert (shown["sweep"]["at"], row["verdict"]) == (at, verdict)


def test_urgent_windows_come_first_then_the_oldest_each_with_its_exports(view: View) -> None:
    newer = {**LEASE, "run_id": "manual__3", "since": NOW}
    second = {**LEASE, "batch_export_id": SECOND}
    late = {**LATE, "run_id": "manual__4", "since": NOW}
    rows = view(variables=variables(newer, LEASE, late, second))["windows"]["rows"]
    shown = [(row["run_id"], len(row["exports"])) for row in rows]
    assert shown == [("manual__4", 1), ("manual__1", 2), ("manual__3", 1)]


def test_failed_work_and_campaigns_show_their_reason(view: View) -> None:
    failed = task("work", "failed", reason="No space left (OSError)")
    campaigns = {"value": {"rows": [{"task": failed, "progress": None}], "cut": False}}
    shown = view(variables=variables(LEASE), **seen(failed, task("window.close", "running")), campaigns=campaigns)
    ((work,),) = [row["failed"] for row in shown["windows"]["rows"]]
    assert [work["reason"], shown["campaigns"]["rows"][0]["task"]["reason"]] == ["No space left (OSError)"] * 2


ERROR = {"event": "Task failed with exception", "level": "error"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            [{**ERROR, "error_detail": [{"exc_type": "OSError", "exc_value": "No space left"}]}, ERROR],
            "No space left (OSError)",
        ),
        ([{**ERROR, "error_detail": [{"exc_type": "KeyboardInterrupt", "exc_value": ""}]}], "KeyboardInterrupt"),
        ([{"event": "begins", "level": "info"}, {"event": "killed", "level": "error"}], "killed"),
        ([{"event": "begins"}], "the log names no reason"),
        (["a line that is not parsed"], "the log names no reason"),
        (None, "the log names no reason"),
    ],
)
def test_reason_is_the_last_error_of_the_log(model: MiniRacer, content: Any, reason: str) -> None:
    assert model.call("reasonIn", {"value": {"content": content}}) == reason


def test_cut_lists_say_so(view: View) -> None:
    one = task("invite", "success", operator="WorkspaceInvitesSettledSensor", rendered_fields={})
    shown = view(
        campaigns={"value": {"rows": [{"task": one, "progress": None}], "cut": True}},
        waits={"value": {"rows": [one], "total": 201}},
    )
    assert shown["campaigns"]["notes"] == ["Older ones are not listed."]
    assert shown["waits"]["notes"] == ["The first 1 of 201."]
    assert view()["campaigns"]["notes"] == view()["waits"]["notes"] == []


@pytest.mark.parametrize(
    ("value", "read"), [('{"rows": 1}', {"rows": 1}), ({"rows": 1}, {"rows": 1}), ("{", None), (None, None)]
)
def test_values_are_json_or_were_parsed_before(model: MiniRacer, value: Any, read: Any) -> None:
    """Airflow's API may return an XCom as text or as a value."""
    assert model.call("parsed", value) == read


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("{", "its JSON"),
        ("null", "its JSON"),
        ('"text"', "dag_id"),
        ("[]", "dag_id"),
        (LEASE | {"since": None}, "since"),
    ],
)
def test_a_lease_that_is_not_usable_says_why(view: View, value: Any, what: str) -> None:
    text = value if isinstance(value, str) else variable(lease(**value))[1]
    windows = view(variables={"value": [{"key": "workspace_lease.x", "value": text}]})["windows"]
    (note,) = windows["notes"]
    assert note.startswith(f"The Variable workspace_lease.x holds no lease ({what}")
    assert (windows["rows"], windows["urgent"]) == ([], True)
