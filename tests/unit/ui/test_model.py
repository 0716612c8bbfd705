"""The model of the status page in a JavaScript engine: from what Airflow answers to headline and rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.api.levels import describe_level
from tests.grant_notes import PREFIX as GRANTS
from tests.grant_notes import grant
from tests.leases import PREFIX, SWEEP, iso, lease, variable
from tests.leases import swept as swept_at
from tests.unit.ui.conftest import NOW, View

if TYPE_CHECKING:
    from py_mini_racer import MiniRacer

HOUR = 3600
SECOND = "0190c0de-0000-4000-8000-0000000000e2"
RESUME = "python -m airflow_provider_workspace resume"
LEASE = {"since": NOW - HOUR, "until": NOW + HOUR, "paused_at": NOW - HOUR}
RESUMED = {"state": "closing", "resumed_at": NOW, "closer": "window.close#1"}
OTHER = {**LEASE, "run_id": "manual__2", "batch_export_id": SECOND}
LATE = {**OTHER, "until": NOW - 1}
FORBIDDEN = {"reason": {"status": 403, "message": "Forbidden"}}
EXPIRED = {"reason": {"status": 401, "message": "Unauthorized"}}
DOWN = {"reason": {"status": None, "message": "network"}}
NOTHING = "No window holds an export, as far as your role sees"
PAUSED = "1 export paused, for 1 h 0 min"
UNSEEN = "not visible to your role, or deleted"


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
    index = fields.get("map_index", -1)
    return {"id": f"{run_id} {task_id} {index}", "try_number": 1, "state": state, **place, **fields}


def seen(*tasks: dict[str, Any], run: str = "running") -> dict[str, Any]:
    runs = [{"dag_id": one["dag_id"], "dag_run_id": one["dag_run_id"], "state": run} for one in tasks[:1]]
    return {"tasks": {"value": [*tasks]}, "runs": {"value": runs}}


ABANDONED = variables(LEASE, sweep=swept(LEASE, "abandoned", "its run is over"))


@pytest.mark.parametrize(
    ("answers", "headline", "bad"),
    [
        ({}, NOTHING, False),
        ({"variables": variables(LEASE, OTHER)}, "2 exports paused, for 1 h 0 min", False),
        ({"variables": variables(LEASE, LATE)},
         f"1 export stuck: past the latest end, for under 1 min · {PAUSED}", True),
        ({"variables": variables(LEASE, sweep=swept(LEASE, "open"))}, PAUSED, False),
        ({"variables": ABANDONED}, "1 export stuck: abandoned (last sweep), for 1 min", True),
        ({"variables": variables(LATE, sweep=swept(LATE, "overdue"))},
         "1 export stuck: overdue (last sweep), for under 1 min", True),
        ({"variables": variables(LEASE), **seen(task("window.close", "up_for_retry", end_date=iso(NOW - 120)))},
         "1 export stuck: its closing task failed, for 2 min", True),
        ({"variables": variables({**LATE, **RESUMED})}, "1 export just resumed, for under 1 min", False),
        ({"variables": variables(LEASE | {"paused_at": None})}, "1 export about to be paused, for 1 h 0 min", False),
        ({"variables": variables(LEASE, **{f"{PREFIX}broken": "{"})}, f"unreadable leases: 1 · {PAUSED}", False),
        ({"variables": variables(sweep=swept(LEASE, "open"), **{variable(lease(**LEASE))[0]: "{"})},
         "unreadable leases: 1", False),
        ({"variables": variables(sweep=swept(LEASE, "abandoned"), **{variable(lease(**LEASE))[0]: "{"})},
         "unreadable leases: 1", True),
        # Absence is not known to be the end of a run.
        ({"variables": variables(LEASE), "tasks": FORBIDDEN, "runs": FORBIDDEN}, PAUSED, False),
        ({"variables": variables(LEASE), **seen(task("window.close", "skipped"))}, PAUSED, False),
        # Viewer and User
        ({"variables": FORBIDDEN}, "Not visible to your role: paused exports, temporary access", False),
        ({"variables": DOWN, "waits": FORBIDDEN},
         "Airflow did not answer: paused exports, temporary access · Not visible to your role: waits", True),
        ({"waits": EXPIRED, "variables": EXPIRED, "health": EXPIRED}, "Log in again: the session is over", True),
    ],
)  # fmt: skip
def test_headline(view: View, answers: dict[str, Any], headline: str, bad: object) -> None:
    shown = view(**answers)
    assert (shown["summary"]["text"], shown["summary"]["bad"]) == (headline, bad)
    assert "Log in again" not in json.dumps({**shown, "summary": ""})


HEALTHY = {name: {"status": "healthy"} for name in ("scheduler", "triggerer", "dag_processor")}
BEAT = {"latest_scheduler_heartbeat": iso(NOW - 600)}
NO_SCHEDULER = HEALTHY | {"scheduler": {"status": "unhealthy", **BEAT}}


def at(seconds: float) -> str:
    """Return what a sweep notes if no window is open."""
    return json.dumps({"at": iso(seconds)})


# The last five-minute sweeps of a Dag, one of them started by hand, before a pause of an hour.
SWEEPS = [
    task("sweep", "success", dag_run_id=run_id, run_after=iso(NOW - ago), end_date=iso(NOW - ago + 1))
    for run_id, ago in (("scheduled__3", 660), ("manual__9", 700), ("scheduled__2", 960), ("scheduled__1", 4560))
]
SWEEP_DAG = "workspace_sweep"
NO_DAG = f"No sweep can be started from here: add the Dag {SWEEP_DAG}."


@pytest.mark.parametrize(
    ("answers", "last", "bad", "obstacle"),
    [
        # A first day, on which there is nothing to end, is no alarm.
        ({}, "no sweep has run", [], NO_DAG),
        ({"variables": variables(LEASE)}, "no sweep has run", ["no sweep has run"], NO_DAG),
        ({"variables": variables(**{f"{GRANTS}x": "{"})}, "no sweep has run", ["no sweep has run"], NO_DAG),
        ({"variables": FORBIDDEN}, "Not visible to your role: the last sweep", [], NO_DAG),
        ({"variables": variables(sweep=at(NOW - 240))}, "last sweep 4 min ago", [], NO_DAG),
        ({"variables": variables(sweep=at(NOW - 3660))}, "last sweep 1 h 1 min ago", ["last sweep 1 h 1 min ago"],
         NO_DAG),
        ({"sweeps": SWEEPS}, "last successful sweep 10 min ago, every 5 min",
         ["last successful sweep 10 min ago, every 5 min"], ""),
        ({"sweeps": SWEEPS, "variables": variables(sweep=at(NOW - 599))}, "last sweep 9 min ago, every 5 min", [], ""),
        ({"sweeps": [task("sweep", "running")]}, "the first sweep has not ended", [], ""),
        # A sweep that failed may have failed before it swept.
        ({"sweeps": [task("sweep", "failed", run_after=iso(NOW), end_date=iso(NOW), dag_run_id="manual__1"), *SWEEPS]},
         "last successful sweep 10 min ago, every 5 min", ["last successful sweep 10 min ago, every 5 min"], ""),
        ({"sweeps": [task("sweep", "failed")]}, "no sweep has succeeded", ["no sweep has succeeded"], ""),
        ({"dags": {"value": {SWEEP_DAG: {"value": {"is_paused": True}}}}}, "no sweep has run", [],
         f"Dag {SWEEP_DAG} is paused: unpause it."),
        ({"dags": {"value": {SWEEP_DAG: {"value": {"is_paused": False}}}}}, "no sweep has run", [], ""),
        ({"dags": {"value": {SWEEP_DAG: {"reason": {"status": 404}}}}}, "no sweep has run", [], NO_DAG),
        ({"dags": {"value": {SWEEP_DAG: FORBIDDEN}}}, "no sweep has run", [],
         "Not visible to your role: it may not read Dags. An Airflow administrator can grant it."),
        ({"sweeps": SWEEPS[1:2], "dags": {"value": {"nightly": {"value": {"is_paused": True}}}}},
         "last successful sweep 11 min ago", [], "Dag nightly is paused: unpause it."),
        ({"sweeps": SWEEPS[1:2], "dags": {"value": {"nightly": {"value": {"is_paused": True, "is_stale": True}}}}},
         "last successful sweep 11 min ago", [], "The file of Dag nightly is gone: add it again."),
        ({"sweeps": SWEEPS[1:2], "health": {"value": NO_SCHEDULER}}, "last successful sweep 11 min ago",
         ["scheduler down, last seen 10 min ago"], "The scheduler is down, so no Dag runs."),
        ({"sweeps": SWEEPS[1:2], "health": DOWN}, "last successful sweep 11 min ago",
         ["Airflow did not answer: health"], ""),
        ({"sweeps": SWEEPS[1:2], "health": {"value": HEALTHY | {"triggerer": {"status": None}}}},
         "last successful sweep 11 min ago", ["triggerer down"], ""),
    ],
)  # fmt: skip
def test_health_says_what_is_down_and_how_old_the_last_sweep_is(
    view: View, answers: dict[str, Any], last: str, bad: list[str], obstacle: str
) -> None:
    rows = {"value": {"rows": answers.get("sweeps", [])}}
    shown = view(**{"health": {"value": HEALTHY}, **answers, "sweeps": rows})["health"]
    assert shown["parts"][-1]["text"] == last
    assert ([part["text"] for part in shown["parts"] if part["bad"]], shown["obstacle"]) == (bad, obstacle)


@pytest.mark.parametrize(
    ("answers", "lines", "close"),
    [
        ({}, [f"its run and tasks: {UNSEEN}"], None),
        ({"tasks": FORBIDDEN, "runs": FORBIDDEN}, ["Not visible to your role: the states of its tasks"], None),
        ({"tasks": DOWN, "runs": DOWN}, ["Airflow did not answer: the states of its tasks"], None),
        (seen(task("window.close", None)), ["run running", "window.close not begun"], None),
        (seen(task("work", "running")), ["run running", "work running", f"window.close: {UNSEEN}"], None),
        (seen(task("window.close", "skipped"), task("work", "success"), run="failed"),
         ["run failed", "window.close skipped"], "window.close"),
        (seen(task("window.close", None, OTHER)), [f"its run and tasks: {UNSEEN}"], None),
        (seen(task("window.close", None, map_index=0)), ["run running", f"window.close: {UNSEEN}"], None),
    ],
)  # fmt: skip
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
        (RESUMED, "Resumed"),
        (RESUMED | {"closer": None}, "Resume begun, not confirmed"),
        (RESUMED | {"state": "paused"}, "Paused"),
        (RESUMED | {"paused_at": NOW + 1}, "Resume begun, not confirmed"),
        ({"until": NOW - HOUR}, "Paused"),
    ],
)
def test_state_of_an_export_follows_from_its_lease(view: View, changes: dict[str, Any], state: str) -> None:
    (row,) = view(variables=variables(LEASE | changes))["windows"]["rows"]
    (export,) = row["exports"]
    assert (export["shown"][0], row["verdict"]) == (state, None)


@pytest.mark.parametrize(
    ("sweep", "verdict"),
    [
        *((sweep, None) for sweep in (None, "", "[1]", "null", iso(NOW), json.dumps({"at": iso(NOW), "windows": {}}))),
        (swept(OTHER, "abandoned"), None),
        (swept(LEASE, "abandoned", "its run is over"), "abandoned: its run is over"),
    ],
)
def test_verdicts_are_those_of_the_last_sweep(view: View, sweep: str | None, verdict: Any) -> None:
    (row,) = view(variables=variables(LEASE, sweep=sweep))["windows"]["rows"]
    assert row["verdict"] == verdict


@pytest.mark.parametrize(
    ("fields", "answers", "cause"),
    [
        (LEASE, {}, None),
        (LATE, {}, "Past its latest end, and no sweep has said why."),
        (LATE, {"variables": variables(LATE, sweep=swept(LATE, "overdue since 2026-09-21T12:20:00.000Z"))},
         "Past its latest end, and no sweep has said why."),
        (LEASE, {"variables": ABANDONED}, "The last sweep said: abandoned: its run is over"),
        (LEASE, seen(task("window.close", "failed", reason="[still-paused] 1 export")),
         "failed: [still-paused] 1 export"),
        (LEASE, seen(task("window.close", "failed")), "failed"),
        # What the task said says more than what the sweep saw of it.
        (LEASE, {"variables": ABANDONED, **seen(task("window.close", "failed", reason="[still-paused] 1 export"))},
         "failed: [still-paused] 1 export"),
    ],
)  # fmt: skip
def test_a_stuck_window_says_why_first(view: View, fields: Any, answers: dict[str, Any], cause: str | None) -> None:
    (row,) = view(**{"variables": variables(fields), **answers})["windows"]["rows"]
    assert (row["cause"] and row["cause"]["said"]) == cause


WORK = {**LEASE, "work_task_ids": ["load", "check"]}
MAPPED = {**WORK, "map_index": 1}


@pytest.mark.parametrize(
    ("fields", "answers", "work"),
    [
        (WORK, {}, None),
        (LEASE, seen(task("load", "success")), None),
        (WORK, seen(task("load", "success"), task("check", None)), "Work not over"),
        (WORK, seen(task("load", "failed"), task("check", "upstream_failed")), "Work over"),
        (MAPPED, seen(task("load", "success", map_index=1), task("load", "running", map_index=0)), "Work over"),
        (WORK, seen(task("load", "running"), run="failed"), "Work over"),
    ],
)
def test_work_that_is_over_is_told_apart(view: View, fields: Any, answers: dict[str, Any], work: str | None) -> None:
    (row,) = view(variables=variables(fields), **answers)["windows"]["rows"]
    assert (row["work"] and row["work"][0]) == work


@pytest.mark.parametrize(
    ("load", "headline"),
    [("running", PAUSED), ("failed", "1 export stuck: its closing task failed, for 1 h 0 min")],
)
def test_a_window_whose_work_goes_on_is_not_stuck_though_its_closing_task_was_marked(
    view: View, load: str, headline: str
) -> None:
    marked = seen(task("window.close", "failed"), task("load", load), task("check", "success"))
    assert view(variables=variables(WORK), **marked)["windows"]["headline"] == [headline]


@pytest.mark.parametrize(
    ("owner", "dag", "owners", "line"),
    [
        ("ops", {"value": {"owners": ["ops", "data-team"], "is_paused": True}}, ["ops", "data-team"],
         "its Dag is paused"),
        ("airflow", {"value": {"owners": ["airflow"], "is_stale": True}}, [], "the file of its Dag is gone"),
        ("airflow", {"reason": {"status": 404}}, [], "its Dag is deleted"),
        (None, {"reason": {"status": 403}}, [], f"its run and tasks: {UNSEEN}"),
    ],
)  # fmt: skip
def test_a_window_says_whom_to_ask_and_what_is_wrong_with_its_dag(
    view: View, owner: str | None, dag: dict[str, Any], owners: list[str], line: str
) -> None:
    (row,) = view(variables=variables({**LEASE, "owner": owner}), dags={"value": {"nightly": dag}})["windows"]["rows"]
    assert (row["owners"], row["lines"][0]) == (owners, line)


def test_labels_name_exports_and_organizations(view: View) -> None:
    labels = json.dumps({lease()["batch_export_id"]: "Orders to S3", "organization": "Northwind"})
    waiting = task("wait", "deferred", operator="WorkspaceInvitesSettledSensor")
    invite = {"task": task("invite", "queued"), "progress": {"organization_id": "organization"}}
    sync = task("members", "awaiting_input", **SYNC)
    labelled = ("organization", "Northwind")
    shown = view(
        variables=variables(LEASE, OTHER, workspace_labels=labels),
        waits={"value": {"rows": [{**waiting, "rendered_fields": {"organization_id": "organization"}}]}},
        campaigns={"value": {"rows": [invite]}},
        questions={"value": {"rows": [asked(sync, f"Change {name}?") for name in labelled], "total": 2}},
    )
    rows = shown["windows"]["rows"]
    assert [row["exports"][0].get("name") for row in rows] == ["Orders to S3", None]
    assert [row["what"] for row in shown["questions"]["rows"]] == ["Change Northwind?", "Change Northwind?"]
    named = [*rows, *shown["waits"]["rows"], *shown["invites"]["rows"]]
    assert [row["organization"] for row in named] == ["Northwind"] * 4
    assert shown["invites"]["rows"][0]["waits"] == "Waits for a worker."
    for wrong in ("{", "[1]", '"Northwind"', "null"):
        windows = view(variables=variables(LEASE, workspace_labels=wrong))["windows"]
        (note,) = windows["notes"]
        assert note.endswith(" are missing: the Variable workspace_labels is no JSON object. Correct it.")
        assert [row["organization"] for row in windows["rows"]] == ["organization"]


def test_urgent_windows_come_first_then_the_oldest_each_with_its_exports(view: View) -> None:
    newer = {**LEASE, "run_id": "manual__3", "since": NOW}
    second = {**LEASE, "batch_export_id": SECOND}
    late = {**LATE, "run_id": "manual__4", "since": NOW}
    rows = view(variables=variables(newer, LEASE, late, second))["windows"]["rows"]
    shown = [(row["run_id"], len(row["exports"])) for row in rows]
    assert shown == [("manual__4", 1), ("manual__1", 2), ("manual__3", 1)]


def asked(of: dict[str, Any], subject: str = "Change Northwind (organization)?") -> dict[str, Any]:
    """Return a question of a task, as Airflow lists it."""
    return {"task_instance": of, "subject": subject, "created_at": iso(NOW - 60)}


HITL = {"classpath": "airflow.providers.standard.triggers.hitl.HITLTrigger"}
SYNC = {"operator": "WorkspaceSyncMembersOperator"}


@pytest.mark.parametrize(
    "waiting", [{"state": "awaiting_input"}, {"state": "deferred", "trigger": HITL}], ids=["3.3", "before"]
)
def test_what_waits_for_a_person_says_so(view: View, waiting: dict[str, Any]) -> None:
    """In a window, which is not over, as a campaign and in a section; other questions and waits are none of these."""
    sync = task("load", **SYNC, **waiting)
    other_question = {**sync, "id": "2", "operator": "HITLOperator"}
    other_wait = {**sync, "id": "3", "state": "deferred", "trigger": None}
    campaign = {"task": sync, "progress": {"again_at": iso(NOW + HOUR)}}
    questions = [asked(other_question), asked(other_wait), asked(sync)]
    shown = view(
        variables=variables(WORK, workspace_labels='{"organization": "Northwind"}'),
        **seen(sync, task("check", "success"), task("window.close", None)),
        campaigns={"value": {"rows": [campaign]}},
        questions={"value": {"rows": questions, "total": 4}},
    )
    (window,) = shown["windows"]["rows"]
    assert [question["asked_at"] for question in window["asking"]] == [iso(NOW - 60)] * 2
    assert window["work"] == ["Somebody must answer", "warn"]
    (row,) = shown["questions"]["rows"]
    assert row["what"] == "Change Northwind (organization)?"
    assert row["task"]["asked_at"] == iso(NOW - 60)
    (invite,) = shown["invites"]["rows"]
    assert invite["asks"]
    assert invite["again"] is None
    assert shown["invites"]["headline"] == ["campaigns running: 1"]
    assert "waiting for a person: 1" in shown["summary"]["text"]
    assert shown["questions"]["notes"] == ["The latest 3 of 4 questions of all Dags were searched."]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"state": "failed", "reason": "no (OSError)"}, "failed: no (OSError)"),
        ({"state": "failed"}, "failed"),
        ({"state": "up_for_retry", "reason": "STILL PAUSED"}, "failed, and is tried again: STILL PAUSED"),
        ({"state": "running", "try_number": 2, "reason": "STILL PAUSED"}, "failed before: STILL PAUSED"),
        ({"state": "running", "try_number": 2, "reason": "the log names no reason"}, None),
        ({"state": "running"}, None),
    ],
)
def test_the_last_try_that_failed_says_why(view: View, model: MiniRacer, fields: dict[str, Any], said: Any) -> None:
    close = task("window.close", **fields)
    (row,) = view(variables=variables(LEASE), **seen(close))["windows"]["rows"]
    # Of a window that is stuck, it is the cause, which comes first.
    first = [row["cause"]] if row["urgent"] else []
    assert [one["said"] for one in [*first, *row["failed"]]] == ([said] if said else [])
    assert bool(model.call("failedTry", close)) == ("reason" in fields or fields["state"] == "failed")
    sweeps = {"value": {"rows": [close]}}
    assert view(sweeps=sweeps)["health"]["parts"][-1]["failure"] == (said or "")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (60, "Goes on"),
        (-60, "Goes on now"),
        (-9060, "Should have gone on (triggerer down)"),
    ],
)
def test_a_campaign_that_is_late_says_so_and_why(view: View, seconds: int, text: str) -> None:
    one = {"task": task("invite", "deferred"), "progress": {"again_at": iso(NOW + seconds)}}
    health = {"value": HEALTHY | {"triggerer": {"status": None}}}
    shown = view(campaigns={"value": {"rows": [one]}}, health=health, variables=variables(LATE))
    (row,) = shown["invites"]["rows"]
    assert (row["again"]["text"], row["again"]["late"]) == (text, seconds < -120)
    assert shown["windows"]["rows"][0]["lines"][0] == "triggerer down", "the guard resumes at the latest end"


def test_failed_work_and_campaigns_show_their_reason(view: View) -> None:
    failed = task("work", "failed", reason="No space left (OSError)")
    campaigns = {"value": {"rows": [{"task": failed, "progress": None}], "cut": False}}
    shown = view(variables=variables(LEASE), **seen(failed, task("window.close", "running")), campaigns=campaigns)
    ((work,),) = [row["failed"] for row in shown["windows"]["rows"]]
    assert [work["reason"], shown["invites"]["rows"][0]["task"]["reason"]] == ["No space left (OSError)"] * 2


@pytest.mark.parametrize(
    ("progress", "title"),
    [
        ({"needs_person": [{}] * 20, "needs_person_rows": 25}, "Rows to look at: 20 of 25"),
        ({"needs_person": [{}] * 20}, "Rows to look at: 20"),  # of an earlier release
        ({"needs_person": [{}], "needs_person_rows": 1}, "Rows to look at: 1"),
        ({"needs_person": []}, None),
    ],
)
def test_rows_to_look_at_that_are_cut_say_so(view: View, progress: dict[str, Any], title: str | None) -> None:
    campaign = {"task": task("invite", "success"), "progress": progress}
    (row,) = view(campaigns={"value": {"rows": [campaign], "cut": False}})["invites"]["rows"]
    assert (row["people"] and row["people"]["title"]) == title


INVITES = "WorkspaceCreateInvitesOperator"
GRANT = "WorkspaceGrantAccessOperator"
APPLY = "WorkspaceApplyOrganizationOperator"


def tried(state: str, ago: int, operator: str = INVITES, run: str = "1", **fields: Any) -> dict[str, Any]:
    """Return a task that ended some seconds ago; further fields are its rendered arguments."""
    one = task("task", state, operator=operator, end_date=iso(NOW - ago), rendered_fields=fields)
    return {**one, "id": f"{run} {ago} {fields}", "dag_run_id": run}


def failures(*tasks: dict[str, Any], total: int | None = None) -> dict[str, Any]:
    rows = [one for one in tasks if one["state"] == "failed"]
    successes = [one for one in tasks if one["state"] == "success"]
    return {"value": {"rows": rows, "successes": successes, "total": total or len(rows)}}


@pytest.mark.parametrize(
    ("tasks", "headline"),
    [
        ([], NOTHING),
        ([tried("failed", 60)], "failed: 1 bulk invite"),
        ([tried("failed", 60), tried("failed", 90), tried("success", 120)], "failed: 1 bulk invite"),
        ([tried("failed", 60), tried("success", 30)], NOTHING),
        # An older green run hides no failure, and a later one for somebody else settles none.
        ([tried("failed", 60), tried("success", 120)], "failed: 1 bulk invite"),
        ([tried("failed", 60, GRANT, user_email="ada@example.com"),
          tried("success", 30, GRANT, user_email="mina@example.com")], "failed: 1 grant"),
        ([tried("failed", 60, GRANT), tried("success", 30, GRANT, user_email="mina@example.com")], "failed: 1 grant"),
        ([tried("failed", 60, organization_id="a"), tried("failed", 50, organization_id="b"),
          tried("success", 30, organization_id="b")], "failed: 1 bulk invite"),
        ([tried("failed", 60, APPLY, organization="a"), tried("failed", 50, APPLY, organization="b"),
          tried("success", 30, APPLY, organization="b")], "failed: 1 organization file"),
        # It failed before its arguments were rendered.
        ([tried("failed", 60), tried("success", 30, organization_id="b")], NOTHING),
        ([{**tried("failed", 60), "map_index": 1}, tried("success", 30)], "failed: 1 bulk invite"),
        ([{**tried("failed", 60, "WorkspaceSyncMembersOperator"), "task_id": "sync"},
          {**tried("failed", 70, "WorkspaceApplyDecisionsOperator"), "task_id": "apply"},
          {**tried("failed", 80, "WorkspaceDecideAccessOperator"), "task_id": "decide"},
          {**tried("failed", 90, "WorkspaceSweepOperator"), "task_id": "sweep"}],
         "failed: 1 member sync, 2 access reviews, 1 sweep"),
    ],
)  # fmt: skip
def test_what_failed_and_has_not_succeeded_since_is_in_the_headline(
    view: View, tasks: list[dict[str, Any]], headline: str
) -> None:
    summary = view(failed=failures(*tasks))["summary"]
    assert (summary["text"], summary["bad"]) == (headline, headline != NOTHING)
    assert summary["parts"][0]["section"] == ("failed" if summary["bad"] else "")


def test_a_failure_is_shown_with_cause_and_run(view: View) -> None:
    fields = {"organization_id": "organization", "user_email": "ada@example.com"}
    latest = tried("failed", 60, GRANT, "2", **fields)
    latest["reason"] = "[level-too-low] WorkspaceScopeError: The key may not, until 2026-11-26T10:20:30.123Z"
    before = tried("failed", 90, GRANT, "1", **fields)
    variables_ = variables(workspace_labels='{"organization": "Northwind"}')
    shown = view(failed=failures(before, latest, total=3), variables=variables_)["failed"]
    (row,) = shown["rows"]
    assert row["cause"] == "[level-too-low] The key may not, until 2026-11-26 10:20 UTC"
    assert (row["problem"], row["task"]["dag_run_id"], row["times"]) == ("level-too-low", "2", 2)
    assert (row["who"], row["organization"]) == ("ada@example.com", "Northwind")
    assert row["others"] == []
    assert shown["notes"] == ["Older ones are not listed."]


def reviewed(task_id: str, ago: int, run: str = "1", **fields: Any) -> dict[str, Any]:
    """Return a task of an access review that failed."""
    return {**tried("failed", ago, "WorkspaceDecideAccessOperator", run), "task_id": task_id, **fields}


def applied(task_id: str, ago: int, **fields: Any) -> dict[str, Any]:
    """Return a task of an organization file that failed."""
    return {**tried("failed", ago, APPLY, **fields), "task_id": task_id}


REFUSED = "[api-key-refused] ListMembers returned 401: the API key is wrong (AirflowFailException)"


@pytest.mark.parametrize(
    ("tasks", "rows", "headline"),
    [
        # A group fails as one, by the task that failed first; what failed with it has its own message.
        ([reviewed("review.close_review", 10, reason="[review-incomplete] Access was not reviewed"),
          reviewed("review.decide", 60, reason="[review-ended] Start a new run")],
         [("review.decide", "review-ended", [("review.close_review", "[review-incomplete] Access was not reviewed")])],
         "failed: 1 access review"),
        # Other groups, other instances of a mapped one, and tasks without a group are others.
        ([reviewed("eu.decide", 60), reviewed("us.decide", 50), reviewed("us.decide", 40, map_index=1),
          reviewed("decide", 30), reviewed("close_review", 20)],
         [("close_review", "", []), ("decide", "", []), ("us.decide", "", []), ("us.decide", "", []),
          ("eu.decide", "", [])],
         "failed: 5 access reviews"),
        # In an author's own group, so are those for another organization, and those that no group of ours has.
        ([applied("all.eu", 60, organization="eu"), applied("all.us", 50, organization="us"),
          applied("all.us", 40, organization="us", workspace_conn_id="other"),
          {**tried("failed", 30), "task_id": "all.staff"}, {**tried("failed", 20), "task_id": "all.guests"},
          reviewed("all.decide", 12, rendered_fields={"organization_id": "eu"}),
          reviewed("all.decide_us", 10, rendered_fields={"organization_id": "us"})],
         [("all.decide_us", "", []), ("all.decide", "", []), ("all.guests", "", []), ("all.staff", "", []),
          ("all.us", "", []), ("all.us", "", []), ("all.eu", "", [])],
         "failed: 2 access reviews, 2 bulk invites, 3 organization files"),
        ([applied("file.plan", 60, organization="eu"), applied("file.members", 50, organization="eu")],
         [("file.plan", "", [("file.members", "")])],
         "failed: 1 organization file"),
        # A key that was revoked stops every task of its connection.
        ([{**tried("failed", 60, workspace_conn_id="a"), "reason": REFUSED},
          {**tried("failed", 50, "WorkspaceSweepOperator", workspace_conn_id="a"), "task_id": "sweep",
           "reason": REFUSED.replace("Members", "Invites")},
          {**tried("failed", 40, workspace_conn_id="b"), "reason": REFUSED}],
         [("task", "api-key-refused", []), ("sweep", "api-key-refused", [("task", "")])],
         "failed: 2 bulk invites, 1 sweep"),
        # The same words are one cause; a log without a problem says nothing of another one.
        ([reviewed("a.decide", 60, reason="[file-missing] There is no file 'x'"),
          reviewed("b.decide", 50, reason="[file-missing] There is no file 'x'"),
          reviewed("c.decide", 40, reason="its log cannot be read"),
          reviewed("d.decide", 30, reason="its log cannot be read")],
         [("d.decide", "", []), ("c.decide", "", []), ("b.decide", "file-missing", [("a.decide", "")])],
         "failed: 4 access reviews"),
    ],
)  # fmt: skip
def test_a_run_of_a_group_and_a_cause_have_one_row(
    view: View, tasks: list[dict[str, Any]], rows: list[Any], headline: str
) -> None:
    shown = view(failed=failures(*tasks))
    listed = [
        (row["task"]["task_id"], row["problem"], [(one["task"]["task_id"], one["cause"]) for one in row["others"]])
        for row in shown["failed"]["rows"]
    ]
    assert (listed, shown["summary"]["text"]) == (rows, headline)


def test_the_page_asks_for_successes_since_the_first_failure_of_each_task(model: MiniRacer) -> None:
    other = {**tried("failed", 30), "dag_id": "other"}
    asked_for = model.call("laterSuccesses", [tried("failed", 60), tried("failed", 90, user_email="x"), other])
    where = [(one["dag_ids"], one["task_ids"], one["state"]) for one in asked_for]
    assert where == [(["other"], ["task"], ["success"]), (["nightly"], ["task"], ["success"])]
    assert [one["end_date_gte"] for one in asked_for] == [iso(NOW - 30), iso(NOW - 90)]
    many = [{**tried("failed", number), "dag_id": str(number)} for number in range(30)]
    assert len(model.call("laterSuccesses", many)) == 20


def test_failures_of_tasks_that_were_not_asked_for_are_not_listed(view: View) -> None:
    many = [{**tried("failed", number), "id": str(number), "dag_id": str(number)} for number in range(30)]
    shown = view(failed=failures(*many))["failed"]
    assert (len(shown["rows"]), shown["notes"]) == (20, ["Older ones are not listed."])


@pytest.mark.parametrize("windows", ["null", "[]", '"text"', '{"x": null}', "3"])
def test_a_record_of_the_sweep_that_holds_no_windows_stops_nothing(view: View, windows: str) -> None:
    sweep = f'{{"at": "{iso(NOW - 60)}", "windows": {windows}}}'
    shown = view(variables=variables(LEASE, sweep=sweep))
    assert shown["health"]["parts"][-1]["text"] == "last sweep 1 min ago"
    assert [row["verdict"] for row in shown["windows"]["rows"]] == [None]


@pytest.mark.parametrize(
    ("answers", "section", "content"),
    [
        ({"tasks": {"value": [None]}}, "windows", "paused exports"),
        ({"failed": {"value": {"rows": [None], "successes": [], "total": 1}}}, "failed", "failed tasks"),
        ({"questions": {"value": {"rows": [None], "total": 1}}}, "questions", "approvals"),
        ({"campaigns": {"value": {"rows": [None]}}}, "invites", "campaigns"),
        ({"waits": {"value": {"rows": [None], "total": 1}}}, "waits", "waits"),
    ],
)
def test_a_section_that_cannot_be_shown_says_so_and_the_others_are_shown(
    view: View, answers: dict[str, Any], section: str, content: str
) -> None:
    note = json.dumps(grant(until=iso(NOW + HOUR)))
    shown = view(**{"variables": variables(LEASE, **{f"{GRANTS}x": note}), **answers})
    assert shown[section]["problem"]["text"].startswith("This section cannot be shown: TypeError: ")
    assert "Cannot be shown: " in shown["summary"]["text"]
    assert content in shown["summary"]["text"]
    assert shown["summary"]["bad"]
    assert len(shown["grants"]["rows"]) == 1


def test_health_that_cannot_be_shown_stops_no_section(view: View) -> None:
    shown = view(sweeps={"value": {"rows": [None], "total": 1}}, variables=variables(LEASE))
    (part,) = shown["health"]["parts"]
    assert part["text"].startswith("Cannot be shown: the health of Airflow (TypeError")
    assert len(shown["windows"]["rows"]) == 1


ERROR = {"event": "Task failed with exception", "level": "error"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ([{**ERROR, "error_detail": [{"exc_type": "OSError", "exc_value": "No space left"}]}, ERROR],
         "No space left (OSError)"),
        ([{**ERROR, "error_detail": [{"exc_type": "AirflowFailException", "exc_value": "[file-exists] It exists"}]}],
         "[file-exists] It exists"),
        ([{**ERROR, "error_detail": [{"exc_type": "KeyboardInterrupt", "exc_value": ""}]}], "KeyboardInterrupt"),
        ([{"event": "begins", "level": "info"}, {"event": "killed", "level": "error"}], "killed"),
        ([{"event": "begins"}], "the log names no reason"),
        (["a line that is not parsed"], "the log names no reason"),
        ([None], "the log names no reason"),
    ],
)  # fmt: skip
def test_reason_is_the_last_error_of_the_log(model: MiniRacer, content: Any, reason: str) -> None:
    assert model.call("reasonIn", content) == reason


def test_cut_lists_say_so(view: View) -> None:
    one = task("invite", "success", operator="WorkspaceInvitesSettledSensor", rendered_fields={})
    shown = view(
        campaigns={"value": {"rows": [{"task": one, "progress": None}], "cut": True}},
        waits={"value": {"rows": [one], "total": 201}},
    )
    assert shown["invites"]["notes"] == ["Older ones are not listed."]
    assert shown["waits"]["notes"] == ["The first 1 of 201."]
    assert view()["invites"]["notes"] == view()["waits"]["notes"] == []


@pytest.mark.parametrize(
    ("value", "read"), [('{"rows": 1}', {"rows": 1}), ({"rows": 1}, {"rows": 1}), ("{", None), (None, None)]
)
def test_values_are_json_or_were_parsed_before(model: MiniRacer, value: Any, read: Any) -> None:
    """Airflow's API may return an XCom as text or as a value."""
    assert model.call("parsed", value) == read


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("{", "its JSON is"),
        ("null", "its JSON is"),
        ('"text"', "dag_id, "),
        ("[]", "dag_id, "),
        (LEASE | {"since": None}, "since is"),
    ],
)
@pytest.mark.parametrize(
    ("key", "lease_of", "first"),
    [
        ("workspace_lease.window.northwind-1", "The lease of batch export northwind-1", f"run {RESUME} northwind-1"),
        ("workspace_lease.x", "A lease whose Variable names no export", "look in the workspace whether an export is"),
    ],
)
def test_a_lease_that_is_not_usable_says_why(
    view: View, value: Any, what: str, key: str, lease_of: str, first: str
) -> None:
    text = value if isinstance(value, str) else variable(lease(**value))[1]
    windows = view(variables={"value": [{"key": key, "value": text}]})["windows"]
    (note,) = windows["notes"]
    assert note.startswith(f"{lease_of} cannot be read: {what}")
    assert f"If no closing task of its window is left to repair it, {first}" in note
    assert note.endswith(f"then delete the Variable {key}.")
    assert (windows["rows"], windows["urgent"]) == ([], False)


@pytest.mark.parametrize(
    ("ends", "listed", "headline"),
    [
        ((25 * HOUR, HOUR), [False, False], NOTHING),
        ((HOUR, -2 * HOUR), [True, False], "grants that should have ended: 1"),
        ((0, None), [True, True], "grants that should have ended: 1 · unreadable grants: 1"),
        ((), [], NOTHING),
    ],
)
def test_grants_are_listed_in_the_order_of_their_end(view: View, ends: Any, listed: Any, headline: str) -> None:
    notes = [grant(until=end if end is None else iso(NOW + end)) for end in ends]
    values = {f"{GRANTS}{number}": json.dumps(note) for number, note in enumerate(notes)}
    shown = view(variables=variables(workspace_labels='{"organization": "Northwind"}', **values))
    rows = shown["grants"]["rows"]
    assert [row["urgent"] for row in rows] == listed
    assert [row["until"] for row in rows] == sorted(row["until"] for row in rows)
    assert {row["organization"] for row in rows if not row["note"]} <= {"Northwind"}
    assert (shown["summary"]["text"], shown["summary"]["bad"]) == (headline, any(listed))


@pytest.mark.parametrize(
    ("fields", "access"),
    [
        ({"level": 8, "then": 1}, "admin (8), then member (1)"),
        ({"level": 15, "then": None}, "owner (15), then removed"),
        ({"level": 3, "then": 2}, "level 3, then level 2"),
    ],
)
def test_levels_have_the_names_that_messages_have(view: View, fields: dict[str, Any], access: str) -> None:
    note = json.dumps(grant(until=iso(NOW), **fields))
    (row,) = view(variables=variables(**{f"{GRANTS}x": note}))["grants"]["rows"]
    assert row["access"] == access
    assert access.startswith(describe_level(fields["level"]))


def sweeps(**fields: Any) -> dict[str, Any]:
    return {"sweeps": {"value": {"rows": [task("sweep", "success", rendered_fields=fields)]}}}


def swept_later(state: str) -> dict[str, Any]:
    """Return a sweep that began after a grant was over."""
    return {"sweeps": {"value": {"rows": [task("sweep", state, start_date=iso(NOW - 60), end_date=iso(NOW))]}}}


TRIED = "The last run tried, and failed: its log says why."


@pytest.mark.parametrize(
    ("answers", "end"),
    [
        ({}, ("", f"No Dag ends it. {NO_DAG}")),
        (sweeps(kinds=["windows"]), ("", "No Dag ends it. Let the Dag nightly sweep grants, too.")),
        (sweeps(kinds=["windows", "grants"]), ("nightly", "")),
        (sweeps(), ("nightly", "")),
        (swept_later("success"), ("nightly", "")),
        (swept_later("failed"), ("nightly", TRIED)),
        ({"dags": {"value": {SWEEP_DAG: {"value": {"is_paused": False}}}}},
         (SWEEP_DAG, "")),
        ({"dags": {"value": {SWEEP_DAG: {"value": {"is_paused": True}}}}},
         (SWEEP_DAG, f"Dag {SWEEP_DAG} is paused: unpause it.")),
        ({**sweeps(), "dags": {"value": {"nightly": {"value": {"is_stale": True}}}}},
         ("", "No Dag ends it. The file of Dag nightly is gone: add it again.")),
        ({**sweeps(), "health": {"value": NO_SCHEDULER}}, ("nightly", "The scheduler is down, so no Dag runs.")),
    ],
)  # fmt: skip
def test_a_grant_that_should_have_ended_names_what_ends_it(view: View, answers: Any, end: tuple[str, str]) -> None:
    notes = {f"{GRANTS}{hours}": json.dumps(grant(until=iso(NOW + hours * HOUR))) for hours in (-1, 1)}
    shown = view(**{"health": {"value": HEALTHY}, **answers, "variables": variables(**notes)})
    late, other = shown["grants"]["rows"]
    assert (late["end"], other["end"]) == ({"dag": end[0], "text": end[1]}, None)


@pytest.mark.parametrize(
    ("value", "what"), [("{", "its JSON"), ({}, "since"), ({"until": iso(NOW), "level": "8"}, "level")]
)
def test_a_grant_that_is_not_usable_is_named(view: View, value: Any, what: str) -> None:
    text = value if isinstance(value, str) else json.dumps(grant(since="soon", **value))
    ((row,),) = [view(variables=variables(**{"workspace_grant.x": text}))["grants"]["rows"]]
    assert row["note"].startswith(
        "The grant in Variable workspace_grant.x cannot be read, so nothing ends its access: "
    )
    assert (what in row["note"], row["urgent"]) == (True, True)
