"""Dry run: stop at the first write, and return it as the plan."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.secrets import without_secrets

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation

log = logging.getLogger(__name__)


class PlannedWrite(Exception):  # noqa: N818 - not an error
    """
    Raised by a dry run instead of sending a write.

    :param why: the reason for the write
    """

    def __init__(self, operation: Operation[Any], why: str) -> None:
        super().__init__(operation, why)
        self.operation = operation
        self.why = why

    @property
    def action(self) -> str | None:
        """``create``, ``change`` or ``remove``."""
        method = self.operation.endpoint.method
        if method != "DELETE" and self.operation.payload() == {"deleted": True}:  # a dashboard is deleted by an update
            return "remove"
        return self.operation.endpoint.effect

    def to_dict(self, *, return_secrets: bool) -> dict[str, Any]:
        """Return the write as plain JSON."""
        method = self.operation.endpoint.method
        path = self.operation.path(shown=not return_secrets)
        fields = {} if method == "DELETE" else self.operation.payload()
        if not return_secrets:
            fields = without_secrets(fields)
        return {
            "action": self.action,
            "why": self.why,
            "operation": type(self.operation).__name__,
            "request": f"{method} {path}",
            "fields": fields,
        }


def plan_of(result: Any, *, return_secrets: bool) -> dict[str, Any]:
    """Return the first write, or the result if nothing is to be written, as plain JSON, and log it."""
    if isinstance(result, PlannedWrite):
        plan = result.to_dict(return_secrets=return_secrets)
    else:
        ids = {name: result[name] for name in ("id",) if name in result}
        plan = {"action": "skip", "why": "it exists already", "found": result, **ids}
    log.info("Plan: %s, for %s. Nothing was sent. %s", plan["action"], plan["why"], plan.get("request", ""))
    return {"dry_run": True, **plan}
