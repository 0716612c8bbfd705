"""Dry run: stop at the first write, and describe it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.secrets import without_secrets

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation

log = logging.getLogger(__name__)


class PlannedWrite(Exception):  # noqa: N818 - not an error
    """A write that is about to be sent, and the reason for it; raised by a dry run instead of sending it."""

    def __init__(self, operation: Operation[Any], why: str) -> None:
        super().__init__()
        self.operation = operation
        self.why = why

    def to_dict(self, *, return_secrets: bool) -> dict[str, Any]:
        """Return plain JSON, with secrets if ``return_secrets`` is set."""
        method = self.operation.endpoint.method
        fields = {} if method == "DELETE" else self.operation.payload()
        return {
            # A dashboard is deleted by an update.
            "action": "remove" if fields == {"deleted": True} else self.operation.endpoint.effect,
            "why": self.why,
            "operation": type(self.operation).__name__,
            "request": f"{method} {self.operation.path(shown=not return_secrets)}",
            "fields": fields if return_secrets else without_secrets(fields),
        }


def describe(result: Any, *, return_secrets: bool) -> dict[str, Any]:
    """Return the first write, or the result if nothing is to be written, as plain JSON, and log it."""
    if isinstance(result, PlannedWrite):
        plan = result.to_dict(return_secrets=return_secrets)
    else:
        plan = {"action": "skip", "why": "it exists already", "found": result}
        plan |= {"id": result["id"]} if "id" in result else {}
    log.info("Plan: %s, for %s. Nothing was sent. %s", plan["action"], plan["why"], plan.get("request", ""))
    return {"dry_run": True, **plan}
