"""
Batch exports of an organization: pause and unpause; in ``live`` also a list, which the interface does not have.

A run is due at the end of each interval, by the clock of the sandbox. Runs that are due during a pause are skipped,
unless the pause ends with a backfill. Runs are computed from the pauses and not stored, unless they are played (see
:mod:`airflow_provider_workspace.sandbox.schedules`).
"""

from __future__ import annotations

import math
import sqlite3
from datetime import datetime, timezone

from airflow_provider_workspace.sandbox.request import ApiRequest, ApiRoute, Fields
from airflow_provider_workspace.sandbox.responses import ApiError, JsonObject
from airflow_provider_workspace.sandbox.schedules import pause
from airflow_provider_workspace.sandbox.state import State, format_time, parse_time

# Checked and dropped; the interface does not show what they do.
FIELDS: Fields = {
    "name": ("string", None),
    "model": ("model", None),
    "destination": ("any", None),
    "interval": ("any", None),
    "paused": ("boolean", None),
    "last_paused_at": ("string", None),
    "start_at": ("string", None),
    "end_at": ("string", None),
    "hogql_query": ("string", None),
}

# The record in the list.
COLUMN = """json_object('id', id, 'name', name, 'model', model, 'interval_seconds', interval_seconds,
    'created_at', created_at, 'paused', json(iif(paused, 'true', 'false')), 'last_paused_at', last_paused_at)"""
RUN_SECONDS = 300
"""Duration of a run, which a pause does not stop."""


def export_runs(state: State, export: sqlite3.Row) -> JsonObject:
    """Return which intervals of an export were exported or are running, and which are missing."""
    sql = "SELECT paused_at, resumed_at, backfill FROM export_pauses WHERE export_id = ?"
    pauses = state.db.execute(sql, (export["id"],)).fetchall()
    now, seconds = state.now().timestamp(), export["interval_seconds"]
    first = math.floor(parse_time(export["created_at"]).timestamp() / seconds) + 1
    runs: list[JsonObject] = []
    missing: list[JsonObject] = []
    for number in range(first, math.floor(now / seconds) + 1):
        due = number * seconds
        interval = {"interval_start": _format(due - seconds), "interval_end": _format(due)}
        hit_by = [row for row in pauses if row["paused_at"] <= due < (row["resumed_at"] or math.inf)]
        if not all(row["backfill"] for row in hit_by):
            missing.append(interval)
            continue
        started = max([due, *(row["resumed_at"] for row in hit_by)])
        status = "running" if now < started + RUN_SECONDS else "completed"
        runs.append({**interval, "started_at": _format(started), "status": status})
    return {"batch_export_id": export["id"], "exported": runs, "missing": missing}


def list_batch_exports(request: ApiRequest) -> object:
    """List the exports, which is not part of the interface."""
    return request.page("batch_exports", COLUMN)


def pause_batch_export(request: ApiRequest) -> object:
    """Pause a batch export; a paused one stays unchanged."""
    export = _find(request)
    if not export["paused"]:
        pause(request.state, export["id"], request.state.now())
        request.audit("pause_batch_export", export["organization_id"], export["id"], name=export["name"])
    return _response(request, paused=True)


def unpause_batch_export(request: ApiRequest) -> object:
    """Resume a batch export; a running one stays unchanged."""
    export = _find(request)
    if export["paused"]:
        request.state.db.execute("UPDATE batch_exports SET paused = 0 WHERE id = ?", (export["id"],))
        backfill = bool(request.body.get("backfill"))  # refused in strict
        sql = "UPDATE export_pauses SET resumed_at = ?, backfill = ? WHERE export_id = ? AND resumed_at IS NULL"
        request.state.db.execute(sql, (request.state.now().timestamp(), backfill, export["id"]))
        name, place = export["name"], (export["organization_id"], export["id"])
        request.audit("unpause_batch_export", *place, name=name, backfill=backfill)
        if backfill and request.schedules is not None:
            try:
                request.schedules.backfill(export, parse_time(export["last_paused_at"]), request.state.now())
            except ApiError as error:
                return error.response()  # The export is resumed all the same.
    return _response(request, paused=False)


def _find(request: ApiRequest) -> sqlite3.Row:
    organization_id = request.organization()
    request.fields(FIELDS)
    return request.state.find("batch_exports", id=request.path["id"], organization_id=organization_id)


def _format(seconds: float) -> str:
    return format_time(datetime.fromtimestamp(seconds, timezone.utc))


def _response(request: ApiRequest, *, paused: bool) -> JsonObject | None:
    return {"paused": paused} if request.live else None


BATCH_EXPORTS = "/api/organizations/{organization_id}/batch_exports/"
ROUTES = (
    ApiRoute("GET", BATCH_EXPORTS, "batch_export:read", list_batch_exports, query=("limit", "offset"), live_only=True),
    ApiRoute("POST", BATCH_EXPORTS + "{id}/pause/", "batch_export:write", pause_batch_export),
    ApiRoute("POST", BATCH_EXPORTS + "{id}/unpause/", "batch_export:write", unpause_batch_export),
)
