"""Dry run: run a procedure up to its first write, and describe that write."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_workspace.api.procedure import Pause, Procedure, Send
from airflow_provider_workspace.api.secrets import without_secrets

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Planned:
    """A write that was not sent, and the reason for it."""

    operation: Operation[Any]
    why: str

    def to_dict(self, *, return_secrets: bool) -> dict[str, Any]:
        """Return plain JSON, with secrets if ``return_secrets`` is set."""
        request = self.operation.request()
        fields = {} if request.body is None else self.operation.payload()
        return {
            # A dashboard is deleted by an update.
            "action": "remove" if fields == {"deleted": True} else self.operation.endpoint.effect,
            "why": self.why,
            "operation": type(self.operation).__name__,
            "request": f"{request.method} {request.target}",
            "fields": fields if return_secrets else without_secrets(fields),
        }


def _writes_of(step: Send | Pause) -> list[Planned]:
    if isinstance(step, Pause):
        return []
    return [Planned(operation, step.why) for operation in step.operations if operation.endpoint.effect != "read"]


def until_first_write(procedure: Procedure[T]) -> Procedure[T | Planned]:
    """Run a procedure up to its first write; the result is that write, or the result of the procedure."""
    try:
        step = next(procedure)
        while True:
            writes = _writes_of(step)
            if writes:
                procedure.close()
                return writes[0]
            step = procedure.send((yield step))
    except StopIteration as stop:
        result: T = stop.value
        return result


def check_writes(procedure: Procedure[T], check: Callable[[Planned], object]) -> Procedure[T]:
    """Run a procedure, and check each write before it is sent; ``check`` raises to stop the procedure."""
    try:
        step = next(procedure)
        while True:
            for write in _writes_of(step):
                check(write)
            step = procedure.send((yield step))
    except StopIteration as stop:
        result: T = stop.value
        return result


def describe(result: Any, *, return_secrets: bool) -> dict[str, Any]:
    """Return the result of :func:`until_first_write` as plain JSON, and log it."""
    if isinstance(result, Planned):
        plan = result.to_dict(return_secrets=return_secrets)
    else:
        plan = {"action": "skip", "why": "it exists already", "found": result}
        plan |= {"id": result["id"]} if "id" in result else {}
    log.info("Plan: %s, for %s. Nothing was sent. %s", plan["action"], plan["why"], plan.get("request", ""))
    return {"dry_run": True, **plan}
