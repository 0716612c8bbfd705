"""Dry run: stop at the first write, and return it as the plan."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.secrets import without_secrets

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation

log = logging.getLogger(__name__)


class PlannedWrite(Exception):  # noqa: N818 - not an error
    """Raised by a dry run instead of sending a write; its arguments are the operation and the reason for it."""


def plan_of(result: Any, *, return_secrets: bool) -> dict[str, Any]:
    """Return the first write, or the result if nothing is to be written, as plain JSON, and log it."""
    if isinstance(result, PlannedWrite):
        operation: Operation[Any] = result.args[0]
        method = operation.endpoint.method
        fields = {} if method == "DELETE" else operation.payload()
        plan = {
            # A dashboard is deleted by an update.
            "action": "remove" if fields == {"deleted": True} else operation.endpoint.effect,
            "why": result.args[1],
            "operation": type(operation).__name__,
            "request": f"{method} {operation.path(shown=not return_secrets)}",
            "fields": fields if return_secrets else without_secrets(fields),
        }
    else:
        plan = {"action": "skip", "why": "it exists already", "found": result}
        plan |= {"id": result["id"]} if "id" in result else {}
    log.info("Plan: %s, for %s. Nothing was sent. %s", plan["action"], plan["why"], plan.get("request", ""))
    return {"dry_run": True, **plan}
