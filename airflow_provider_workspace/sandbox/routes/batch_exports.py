"""Batch exports of an organization: pause and unpause. There is no way to read them in the interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_workspace.sandbox import fields
from airflow_provider_workspace.sandbox.answers import answer, empty, not_found
from airflow_provider_workspace.sandbox.call import Call, Endpoint

if TYPE_CHECKING:
    from starlette.responses import Response


def pause_batch_export(call: Call) -> Response:
    """
    Pause a batch export; a paused one stays as it is.

    :param call: The request.
    """
    organization_id, export_id, name, was_paused = _find(call)
    if not was_paused:
        sql = "UPDATE batch_exports SET paused = 1, last_paused_at = ? WHERE id = ?"
        call.state.db.execute(sql, (call.state.timestamp(), export_id))
        call.effect("pause_batch_export", organization_id, export_id, name=name)
    return _answer(call, paused=True)


def unpause_batch_export(call: Call) -> Response:
    """
    Let a batch export run again; a running one stays as it is.

    :param call: The request.
    """
    organization_id, export_id, name, was_paused = _find(call)
    if was_paused:
        call.state.db.execute("UPDATE batch_exports SET paused = 0 WHERE id = ?", (export_id,))
        detail = {"backfill": bool(call.body.get("backfill"))} if call.profile.unpause_reads_backfill else {}
        call.effect("unpause_batch_export", organization_id, export_id, name=name, **detail)
    return _answer(call, paused=False)


def _find(call: Call) -> tuple[str, str, str, bool]:
    organization_id = call.organization()
    # The fields are checked and then let go: what they do to an export is not shown.
    call.fields(fields.BATCH_EXPORT)
    sql = "SELECT id, name, paused FROM batch_exports WHERE id = ? AND organization_id = ?"
    row = call.state.one(sql, call.path["id"], organization_id)
    if row is None:
        raise not_found()
    return organization_id, row["id"], row["name"], bool(row["paused"])


def _answer(call: Call, *, paused: bool) -> Response:
    return answer({"paused": paused}) if call.profile.pause_answers_state else empty(200)


BATCH_EXPORT = "/api/organizations/{organization_id}/batch_exports/{id}/"
ENDPOINTS = (
    Endpoint("POST", BATCH_EXPORT + "pause/", "batch_export:write", pause_batch_export),
    Endpoint("POST", BATCH_EXPORT + "unpause/", "batch_export:write", unpause_batch_export),
)
