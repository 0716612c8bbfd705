"""Runs and backfills of batch exports, which the sandbox plays on its clock, over HTTP as a client sees them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.sandbox.schedules import Timing
from airflow_provider_workspace.sandbox.seed import SEED
from tests.sandbox.paths import EXPORT as OF_ORGANIZATION

if TYPE_CHECKING:
    import httpx

    from airflow_provider_workspace.sandbox.server import SandboxServer

PROFILES = ("live",)
HOURLY, _, DAILY = SEED.batch_export_ids
EXPORT = f"/api/projects/{SEED.project_id}/batch_exports/{HOURLY}/"
OF_DAYS = f"/api/projects/{SEED.project_id}/batch_exports/{DAILY}/"
RUNS, BACKFILLS = f"{EXPORT}runs/", f"{EXPORT}backfills/"
HOUR = timedelta(hours=1)


def now(sandbox: SandboxServer) -> datetime:
    return datetime.fromisoformat(sandbox.advance_clock(0).replace("Z", "+00:00"))


def go_to(sandbox: SandboxServer, hours: float = 0, minutes: float = 0) -> datetime:
    """Let time pass to the next full hour, and some more, and return this hour."""
    moment = now(sandbox)
    hour = moment.replace(minute=0, second=0, microsecond=0) + HOUR
    sandbox.advance_clock((hour - moment).total_seconds() + hours * 3600 + minutes * 60)
    return hour


def runs(api: httpx.Client, url: str = f"{RUNS}?ordering=data_interval_start") -> list[dict[str, Any]]:
    """All pages."""
    found: list[dict[str, Any]] = []
    following: str | None = url
    while following is not None:
        page: dict[str, Any] = api.get(following).json()
        assert page.keys() == {"next", "previous", "results"}
        found += page["results"]
        following = page["next"]
    return found


def text(moment: datetime) -> str:
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def ask(api: httpx.Client, start: datetime, end: datetime) -> httpx.Response:
    return api.post(BACKFILLS, json={"start_at": text(start), "end_at": text(end)})


def times_exported(sandbox: SandboxServer, start: datetime) -> int:
    exported = sandbox.export_runs(HOURLY)["exported"]
    return [run["interval_start"] for run in exported].count(text(start))


def test_nothing_of_it_is_there_until_it_is_played(sandbox: SandboxServer, api: httpx.Client) -> None:
    for path in (EXPORT, RUNS, BACKFILLS):
        assert (api.get(path).status_code, api.get(path).json()["detail"]) == (404, "Endpoint not found.")
    assert api.post(f"{EXPORT}pause/").status_code == 404
    with pytest.raises(ValueError, match="play_runs"):
        sandbox.fail_runs(HOURLY)
    sandbox.play_runs()
    assert api.get(EXPORT).status_code == 200
    sandbox.reset()
    assert api.get(EXPORT).status_code == 404


def test_an_export_shows_its_schedule_and_its_latest_runs(sandbox: SandboxServer, api: httpx.Client) -> None:
    sandbox.play_runs(history_hours=30)
    export = api.get(EXPORT).json()
    shown = {"interval": "hour", "timezone": "UTC", "offset_day": None, "offset_hour": None, "paused": False}
    assert shown.items() <= export.items()
    created = [run["created_at"] for run in export["latest_runs"]]
    assert len(created) == 10
    assert created == sorted(created, reverse=True)
    sandbox.set_batch_export(DAILY, interval="week", timezone="Europe/Berlin", offset_day=1, offset_hour=6)
    export = api.get(OF_DAYS).json()
    assert [export[name] for name in ("interval", "timezone", "offset_day", "offset_hour")] == [
        "week", "Europe/Berlin", 1, 6,
    ]  # fmt: skip


def test_runs_begin_up_to_15_minutes_after_their_interval(sandbox: SandboxServer, api: httpx.Client) -> None:
    sandbox.play_runs(history_hours=48)
    found = runs(api)
    starts = [datetime.fromisoformat(run["data_interval_start"].replace("Z", "+00:00")) for run in found]
    assert len(starts) >= 46
    assert all(later - earlier == HOUR for earlier, later in pairwise(starts))
    waits = [
        datetime.fromisoformat(run["created_at"].replace("Z", "+00:00")) - start - HOUR
        for run, start in zip(found, starts, strict=True)
    ]
    assert timedelta(minutes=5) < max(waits) <= timedelta(minutes=15)
    assert {run["status"] for run in found[:-1]} == {"Completed"}


def test_runs_are_paged_by_cursor_and_shown_for_seven_days(sandbox: SandboxServer, api: httpx.Client) -> None:
    sandbox.play_runs(history_hours=24 * 10, page_size=50)
    first = api.get(RUNS).json()
    assert len(first["results"]) == 50
    assert "cursor=" in first["next"]
    assert len(runs(api, RUNS)) in (167, 168, 169)
    since = text(now(sandbox) - timedelta(days=9))
    until = text(now(sandbox) - timedelta(days=8))
    assert len(runs(api, f"{RUNS}?start={since}&ordering=data_interval_start")) >= 9 * 24 - 2
    assert len(runs(api, f"{RUNS}?start={since}&end={until}&ordering=-data_interval_start")) in (23, 24, 25)
    assert runs(api, f"{RUNS}?status=Failed") == []


def test_a_backfill_is_shown_once_begun_and_completes_although_a_run_fails(
    sandbox: SandboxServer, api: httpx.Client
) -> None:
    sandbox.play_runs(backfill_seconds=60)
    hour = go_to(sandbox, minutes=30)
    sandbox.fail_runs(HOURLY, interval_start=text(hour - 3 * HOUR))
    answer = ask(api, hour - 4 * HOUR, hour - HOUR)
    assert answer.status_code == 201
    backfill = BACKFILLS + answer.json()["backfill_id"] + "/"
    assert (api.get(backfill).status_code, api.get(BACKFILLS).json()["results"]) == (404, [])
    sandbox.advance_clock(60 + 301)
    shown = api.get(backfill).json()
    assert (shown["status"], shown["progress"]["finished_runs"], shown["progress"]["total_runs"]) == ("Running", 1, 3)
    sandbox.advance_clock(700)
    assert api.get(BACKFILLS).json()["results"][0]["status"] == "Completed"
    of_it = [run["status"] for run in runs(api) if run["backfill"] == shown["id"]]
    assert of_it == ["Completed", "Failed", "Completed"]


def test_the_same_range_is_an_error_while_it_runs_and_exports_twice_later(
    sandbox: SandboxServer, api: httpx.Client
) -> None:
    sandbox.play_runs()
    hour = go_to(sandbox)
    assert ask(api, hour - 2 * HOUR, hour - HOUR).status_code == 201
    assert ask(api, hour - 2 * HOUR, hour - HOUR).status_code == 500
    sandbox.advance_clock(400)
    assert ask(api, hour - 2 * HOUR, hour - HOUR).status_code == 201
    sandbox.advance_clock(400)
    assert times_exported(sandbox, hour - 2 * HOUR) == 2


def test_a_hundred_backfills_run_at_once(sandbox: SandboxServer, api: httpx.Client) -> None:
    sandbox.play_runs()
    hour = go_to(sandbox)
    answers = [ask(api, hour - number * HOUR, hour).status_code for number in range(1, 102)]
    assert answers == [201] * 100 + [429]


@pytest.mark.parametrize(
    ("export", "start_at", "end_at", "status"),
    [
        (EXPORT, "{yesterday}T00:00:00Z", "{yesterday}T05:00:00+02:00", 201),
        (EXPORT, "{yesterday}T00:00:00", "{yesterday}T05:00:00Z", 400),
        (EXPORT, "{yesterday}T05:00:00Z", "{yesterday}T05:00:00Z", 400),
        (EXPORT, "{yesterday}T05:00:00Z", "{tomorrow}T05:00:00Z", 400),
        (EXPORT, "{yesterday}T05:00:00Z", None, 400),
        (OF_DAYS, "{yesterday}", "{today}", 201),
        (OF_DAYS, "{yesterday}T00:00:00Z", "{today}", 400),
        (OF_DAYS, "{yesterday}", "{tomorrow}", 400),
        (OF_DAYS, "soon", "{today}", 400),
    ],
)
def test_the_limits_of_a_backfill_are_checked(
    sandbox: SandboxServer, api: httpx.Client, export: str, start_at: str, end_at: str | None, status: int
) -> None:
    sandbox.play_runs()
    today = now(sandbox)
    dates = {"yesterday": today - timedelta(days=1), "today": today, "tomorrow": today + timedelta(days=1)}
    names = {name: moment.date().isoformat() for name, moment in dates.items()}
    body = {"start_at": start_at.format(**names), "end_at": end_at and end_at.format(**names)}
    assert api.post(f"{export}backfills/", json=body).status_code == status


def test_a_week_begins_on_its_weekday(sandbox: SandboxServer, api: httpx.Client) -> None:
    sandbox.play_runs()
    sandbox.set_batch_export(DAILY, interval="week", offset_day=3)
    wednesday = now(sandbox).date() - timedelta(days=14 + (now(sandbox).isoweekday() - 3) % 7)
    for days, status in ((0, 201), (1, 400)):
        body = {"start_at": str(wednesday + timedelta(days)), "end_at": str(wednesday + timedelta(days=7))}
        assert api.post(f"{OF_DAYS}backfills/", json=body).status_code == status


def test_a_pause_takes_the_run_that_had_not_begun_and_backfill_does_not_bring_it(
    sandbox: SandboxServer, api: httpx.Client
) -> None:
    sandbox.play_runs(jitter_seconds=900)
    hour = go_to(sandbox)  # the run of the last hour is due, and begins later
    assert api.post(f"{EXPORT}pause/").status_code == 200
    sandbox.advance_clock(3 * 3600)
    assert runs(api) == []
    assert sandbox.batch_exports()[0]["paused"]
    assert api.post(f"{OF_ORGANIZATION}unpause/", json={"backfill": True}).status_code == 200
    sandbox.advance_clock(3000)
    found = [run["data_interval_start"] for run in runs(api) if run["backfill"]]
    assert found == [text(hour), text(hour + HOUR), text(hour + 2 * HOUR)]
    assert times_exported(sandbox, hour - HOUR) == 0


@pytest.mark.parametrize("body", [{}, {"backfill": False}])
def test_a_paused_schedule_skips_for_good(sandbox: SandboxServer, api: httpx.Client, body: dict[str, bool]) -> None:
    sandbox.play_runs(jitter_seconds=0)
    hour = go_to(sandbox, minutes=1)
    assert api.post(f"{OF_ORGANIZATION}pause/").json() == {"paused": True}
    assert api.get(EXPORT).json()["paused"]
    sandbox.advance_clock(2 * 3600)
    assert [run["status"] for run in runs(api)] == ["Completed"]  # it was under way, and went on
    assert api.post(f"{EXPORT}unpause/", json=body).json() == {"paused": False}
    go_to(sandbox, minutes=10)
    assert [run["data_interval_start"] for run in runs(api)] == [text(hour - HOUR), text(hour + 2 * HOUR)]
    missing = [interval["interval_start"] for interval in sandbox.export_runs(HOURLY)["missing"]]
    assert missing == [text(hour), text(hour + HOUR)]


def test_a_run_that_was_due_in_a_pause_does_not_begin_after_it(sandbox: SandboxServer, api: httpx.Client) -> None:
    sandbox.play_runs()
    api.post(f"{EXPORT}pause/")
    go_to(sandbox)
    api.post(f"{EXPORT}unpause/")
    sandbox.advance_clock(1000)
    assert runs(api) == []


def test_an_export_is_resumed_although_its_backfill_does_not_start(sandbox: SandboxServer, api: httpx.Client) -> None:
    sandbox.play_runs()
    api.post(f"{EXPORT}pause/")
    go_to(sandbox, hours=2)
    sandbox.fail_backfills()
    answers = [api.post(f"{EXPORT}unpause/", json={"backfill": True}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [500, 200]
    assert not api.get(EXPORT).json()["paused"]
    sandbox.advance_clock(60)
    assert api.get(BACKFILLS).json()["results"] == []


def test_an_export_pauses_itself_after_three_failures_and_cancels_its_backfills(
    sandbox: SandboxServer, api: httpx.Client
) -> None:
    sandbox.play_runs(jitter_seconds=0)
    hour = go_to(sandbox, minutes=6)
    ask(api, hour - 100 * HOUR, hour - HOUR)
    sandbox.fail_runs(HOURLY, times=2)
    sandbox.advance_clock(1000)
    assert not api.get(EXPORT).json()["paused"]  # two, then others
    sandbox.fail_runs(HOURLY, times=3, status="TimedOut")
    sandbox.advance_clock(1000)
    export = api.get(EXPORT).json()
    assert export["paused"]
    assert export["last_paused_at"] > text(hour)
    (backfill,) = api.get(BACKFILLS).json()["results"]
    assert backfill["status"] == "Cancelled"
    before = runs(api)
    sandbox.advance_clock(5 * 3600)
    assert runs(api) == before
    assert runs(api, f"{RUNS}?status=Running,Starting") == []


def test_a_run_is_cancelled_and_retried(sandbox: SandboxServer, api: httpx.Client) -> None:
    sandbox.play_runs(jitter_seconds=0)
    hour = go_to(sandbox, minutes=1)
    (run,) = runs(api)
    assert run["status"] == "Running"
    for status in (200, 400):
        assert api.post(f"{RUNS}{run['id']}/cancel/").status_code == status
    sandbox.advance_clock(600)
    assert [run["status"] for run in runs(api)] == ["Cancelled"]
    assert times_exported(sandbox, hour - HOUR) == 0
    assert api.post(f"{RUNS}{run['id']}/retry/").json().keys() == {"backfill_id"}
    sandbox.advance_clock(600)
    assert times_exported(sandbox, hour - HOUR) == 1
    assert api.post(f"{RUNS}unheard-of/retry/").status_code == 404


def test_a_run_that_hangs_never_ends(sandbox: SandboxServer, api: httpx.Client) -> None:
    sandbox.play_runs()
    sandbox.fail_runs(HOURLY, status="Running")
    go_to(sandbox, hours=2)
    assert [run["status"] for run in runs(api)] == ["Running", "Completed"]


def test_faults_and_scopes_apply(
    sandbox: SandboxServer, api: httpx.Client, client_for: Callable[[str], httpx.Client]
) -> None:
    sandbox.play_runs()
    hour = go_to(sandbox)
    sandbox.inject("status_after", "create_batch_export_backfill", status=502)
    assert ask(api, hour - HOUR, hour).status_code == 502
    sandbox.advance_clock(60)
    (backfill,) = api.get(BACKFILLS).json()["results"]
    (effect,) = sandbox.effects("backfill")
    assert effect["detail"]["backfill_id"] == backfill["id"]
    keys = (SEED.exports_key, SEED.reader_key, SEED.research_key, "unheard-of")
    assert [client_for(key).get(RUNS).status_code for key in keys] == [200, 403, 403, 401]
    of_another = f"/api/projects/{SEED.project_id}/batch_exports/{SEED.other_batch_export_ids[0]}/"
    assert api.get(of_another).status_code == 404
    sandbox.move("pause_batch_export", "/api/projects/{project_id}/batch_exports/{id}/pause/")
    assert api.post(f"{EXPORT}pause/").json() == {"paused": True}


@pytest.mark.parametrize(
    ("timing", "start", "ends"),
    [
        (Timing("hour"), "2027-03-28T00:00", ["03-28T01:00", "03-28T02:00"]),
        (Timing("every 5 minutes"), "2027-03-28T00:59", ["03-28T01:00", "03-28T01:05"]),
        (Timing("day"), "2027-03-27T00:01", ["03-28T00:00", "03-29T00:00"]),
        (Timing("day", "Europe/Berlin"), "2027-03-27T23:00", ["03-28T22:00", "03-29T22:00"]),
        (Timing("day", "Europe/Berlin", offset_hour=6), "2027-10-30T05:00", ["10-31T05:00", "11-01T05:00"]),
        (Timing("day", "Asia/Kolkata"), "2027-03-27T18:29", ["03-27T18:30", "03-28T18:30"]),
        (Timing("week", "America/New_York"), "2027-03-10T00:00", ["03-14T05:00", "03-21T04:00"]),
        (Timing("week", offset_day=1), "2027-03-08T00:00", ["03-15T00:00", "03-22T00:00"]),
    ],
)
def test_intervals_end_by_the_clock_of_their_time_zone(timing: Timing, start: str, ends: list[str]) -> None:
    moment = datetime.fromisoformat(f"{start}+00:00")
    for end in ends:
        moment = timing.next(moment)
        assert moment.isoformat()[5:16] == end
        assert timing.last(moment) == moment
        assert timing.last(moment + timedelta(seconds=1)) == moment


@pytest.mark.parametrize(
    "change", [{"interval": "month"}, {"interval": "every 0 minutes"}, {"timezone": "Mars"}, {"offset_day": 7}]
)
def test_what_cannot_be_played_is_refused(sandbox: SandboxServer, api: httpx.Client, change: dict[str, Any]) -> None:
    assert api.post("/_sandbox/runs", content=json.dumps({"page_size": 0})).status_code == 400
    assert api.post("/_sandbox/runs", content="{}").status_code == 204
    assert api.post(f"/_sandbox/batch_exports/{HOURLY}", content=json.dumps(change)).status_code == 400
    with pytest.raises(ValueError, match="A run fails as"):
        sandbox.fail_runs(HOURLY, status="Completed")
    with pytest.raises(ValueError, match="naive"):
        sandbox.fail_runs(HOURLY, interval_start="2027-06-30T12:00:00")
