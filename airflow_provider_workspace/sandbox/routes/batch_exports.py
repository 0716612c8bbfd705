"""Batch exports of an organization: pause and unpause. There is no way to read them in the interface."""

from __future__ import annotations

import sqlite3

from airflow_provider_workspace.sandbox.request import ApiRequest, ApiRoute, Fields
from airflow_provider_workspace.sandbox.responses import JsonObject, not_found

# They are checked and then dropped: what they do to an export is not shown.
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


def pause_batch_export(request: ApiRequest) -> object:
    """Pause a batch export; a paused one stays as it is."""
    export = _find(request)
    if not export["paused"]:
        sql = "UPDATE batch_exports SET paused = 1, last_paused_at = ? WHERE id = ?"
        request.state.db.execute(sql, (request.state.timestamp(), export["id"]))
        request.audit("pause_batch_export", export["organization_id"], export["id"], name=export["name"])
    return _response(request, paused=True)


def unpause_batch_export(request: ApiRequest) -> object:
    """Let a batch export run again; a running one stays as it is."""
    export = _find(request)
    if export["paused"]:
        request.state.db.execute("UPDATE batch_exports SET paused = 0 WHERE id = ?", (export["id"],))
        detail = {"backfill": bool(request.body.get("backfill"))} if request.profile.unpause_reads_backfill else {}
        request.audit("unpause_batch_export", export["organization_id"], export["id"], name=export["name"], **detail)
    return _response(request, paused=False)


def _find(request: ApiRequest) -> sqlite3.Row:
    organization_id = request.organization()
    request.fields(FIELDS)
    sql = "SELECT * FROM batch_exports WHERE id = ? AND organization_id = ?"
    export = request.state.one(sql, request.path["id"], organization_id)
    if export is None:
        raise not_found()
    return export


def _response(request: ApiRequest, *, paused: bool) -> JsonObject | None:
    return {"paused": paused} if request.profile.pause_answers_state else None


BATCH_EXPORT = "/api/organizations/{organization_id}/batch_exports/{id}/"
ROUTES = (
    ApiRoute("POST", BATCH_EXPORT + "pause/", "batch_export:write", pause_batch_export),
    ApiRoute("POST", BATCH_EXPORT + "unpause/", "batch_export:write", unpause_batch_export),
)
