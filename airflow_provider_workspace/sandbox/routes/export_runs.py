"""
Runs and backfills of the batch exports of a project, which known services have and the interface does not.

They are served while :mod:`airflow_provider_workspace.sandbox.schedules` plays them. They act on the same exports as
the routes of the organization.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from airflow_provider_workspace.sandbox.request import ApiRequest, ApiRoute
from airflow_provider_workspace.sandbox.responses import JsonObject, cursor_page_response, dumps, invalid, not_found
from airflow_provider_workspace.sandbox.routes.batch_exports import pause_batch_export, unpause_batch_export
from airflow_provider_workspace.sandbox.schedules import UNDER_WAY, Run, Schedules, Timing

DAYS_SHOWN = 7
"""How far back runs are shown unless the request says otherwise."""
LATEST_RUNS = 10

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def retrieve_batch_export(request: ApiRequest) -> object:
    export, schedules = _find(request)
    schedule = schedules.of(export["id"])
    timing = schedule.timing
    latest = sorted(schedule.runs, key=lambda run: run.created_at, reverse=True)[:LATEST_RUNS]
    return {
        "id": export["id"],
        "name": export["name"],
        "model": export["model"],
        "interval": timing.interval,
        "timezone": timing.timezone,
        "offset_day": timing.offset_day if timing.interval == "week" else None,
        "offset_hour": timing.offset_hour if timing.by_date else None,
        "paused": bool(export["paused"]),
        "last_paused_at": export["last_paused_at"],
        "created_at": export["created_at"],
        "latest_runs": [run.record() for run in latest],
    }


def list_batch_export_runs(request: ApiRequest) -> object:
    """List the runs, newest first; those of the last seven days unless ``start`` is given."""
    export, schedules = _find(request)
    ordering = request.query.get("ordering", "-created_at")
    column = ordering.removeprefix("-")
    if column not in ("created_at", "data_interval_start"):
        ordering, column = "-created_at", "created_at"

    def moment(run: Run) -> datetime:
        return run.start if column == "data_interval_start" else run.created_at

    now = request.state.now()
    start = (
        parse_moment(request.query["start"], "start") if "start" in request.query else now - timedelta(days=DAYS_SHOWN)
    )
    end = parse_moment(request.query["end"], "end") if "end" in request.query else now
    shown = [run for run in schedules.of(export["id"]).runs if start <= moment(run) <= end]
    if "status" in request.query:
        shown = [run for run in shown if run.status in request.query["status"].split(",")]
    shown.sort(key=moment, reverse=ordering.startswith("-"))
    return _page(request, [run.record() for run in shown])


def retry_batch_export_run(request: ApiRequest) -> object:
    """Export the interval of a run again, by a backfill."""
    export, schedules = _find(request)
    run = schedules.find_run(export["id"], request.path["run_id"])
    return _backfill(request, export, run.start, run.end)


def cancel_batch_export_run(request: ApiRequest) -> object:
    export, schedules = _find(request)
    run = schedules.find_run(export["id"], request.path["run_id"])
    if run.status not in UNDER_WAY:
        raise invalid(f"Cannot cancel a run that is {run.status}.")
    schedules.of(export["id"]).cancel(run, request.state.now())
    request.audit("cancel_batch_export_run", export["organization_id"], export["id"], run_id=run.id)
    return {"cancelled": True}


def create_batch_export_backfill(request: ApiRequest) -> object:
    export, schedules = _find(request)
    if not isinstance(request.body, dict):
        raise invalid("Expected an object.")
    timing = schedules.of(export["id"]).timing
    start_at, end_at = (_limit(request.body.get(name), timing, name) for name in ("start_at", "end_at"))
    now = request.state.now()
    for name, limit in (("start_at", start_at), ("end_at", end_at)):
        if limit > now:
            raise invalid(f"The provided '{name}' ({limit.isoformat()}) is in the future.", name)
    if start_at >= end_at:
        raise invalid("The initial backfill datetime 'start_at' happens after 'end_at'.", "start_at")
    return _backfill(request, export, start_at, end_at)


def list_batch_export_backfills(request: ApiRequest) -> object:
    """List the backfills that have begun, newest first."""
    export, schedules = _find(request)
    return _page(request, _begun(schedules, export["id"])[::-1])


def retrieve_batch_export_backfill(request: ApiRequest) -> object:
    export, schedules = _find(request)
    for record in _begun(schedules, export["id"]):
        if record["id"] == request.path["backfill_id"]:
            return record
    raise not_found()


def _find(request: ApiRequest) -> tuple[sqlite3.Row, Schedules]:
    _, organization_id = request.project()
    export = request.state.find("batch_exports", id=request.path["id"], organization_id=organization_id)
    if request.schedules is None:
        raise not_found()
    return export, request.schedules


def _backfill(request: ApiRequest, export: sqlite3.Row, start_at: datetime, end_at: datetime) -> JsonObject:
    if request.schedules is None:
        raise not_found()
    backfill = request.schedules.backfill(export, start_at, end_at)
    times = {"start_at": start_at.isoformat(), "end_at": end_at.isoformat()}
    place = (export["organization_id"], export["id"])
    request.audit("create_batch_export_backfill", *place, backfill_id=backfill.id, **times)
    return {"backfill_id": backfill.id}


def _begun(schedules: Schedules, export_id: str) -> list[JsonObject]:
    schedule = schedules.of(export_id)
    begun = [backfill for backfill in schedule.backfills if backfill.status != "Starting"]
    return [backfill.record(schedule.finished_runs(backfill)) for backfill in begun]


def _page(request: ApiRequest, records: list[JsonObject]) -> object:
    assert request.schedules is not None  # noqa: S101 -- for mypy: found before
    size, rows = request.schedules.pace.page_size, [dumps(record) for record in records]
    return cursor_page_response(request.url, request.query, size, request.cursor_start(), rows)


def _limit(text: object, timing: Timing, name: str) -> datetime:
    if not isinstance(text, str):
        raise invalid("This field is required.", name, "required")
    if not timing.by_date:
        return parse_moment(text, name)
    try:
        weekday = datetime.fromisoformat(text).isoweekday()
    except ValueError:
        weekday = 0
    if not _DATE.fullmatch(text) or not weekday:
        raise invalid(f"Input {text} is not a valid date: for {timing.interval} intervals a date is needed.", name)
    if not timing.begins(weekday):
        raise invalid(f"Input {text} is not the weekday on which the export's weeks begin.", name)
    return timing.on(text)


def parse_moment(text: str, name: str) -> datetime:
    """Parse a time with its zone, or raise a 400."""
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError as error:
        raise invalid(f"Input {text} is not a valid ISO formatted datetime.", name) from error
    if moment.tzinfo is None:
        raise invalid(f"Input {text} is naive.", name)
    return moment


def _in_project(handler: Callable[[ApiRequest], object]) -> Callable[[ApiRequest], object]:
    """Make a handler of the project from one of its organization."""

    def handle(request: ApiRequest) -> object:
        _, organization_id = request.project()
        return handler(replace(request, path={**request.path, "organization_id": organization_id}))

    return handle


EXPORT = "/api/projects/{project_id}/batch_exports/{id}/"
READ, WRITE = "batch_export:read", "batch_export:write"
RUN, BACKFILLS = EXPORT + "runs/{run_id}/", EXPORT + "backfills/"
EXPORT_ROUTES = (
    ApiRoute("GET", EXPORT, READ, retrieve_batch_export, own=True),
    ApiRoute("POST", EXPORT + "pause/", WRITE, _in_project(pause_batch_export), name="pause_batch_export", own=True),
    ApiRoute(
        "POST", EXPORT + "unpause/", WRITE, _in_project(unpause_batch_export), name="unpause_batch_export", own=True
    ),
    ApiRoute("GET", EXPORT + "runs/", READ, list_batch_export_runs, own=True),
    ApiRoute("POST", RUN + "retry/", WRITE, retry_batch_export_run, own=True),
    ApiRoute("POST", RUN + "cancel/", WRITE, cancel_batch_export_run, own=True),
    ApiRoute("POST", BACKFILLS, WRITE, create_batch_export_backfill, 201, own=True),
    ApiRoute("GET", BACKFILLS, READ, list_batch_export_backfills, own=True),
    ApiRoute("GET", BACKFILLS + "{backfill_id}/", READ, retrieve_batch_export_backfill, own=True),
)
"""Served only while runs are played; not part of the interface."""
