"""What a dry run does with a procedure: carry it out up to its first write, and say what that would have been."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_workspace.api.procedure import Procedure, Send
from airflow_provider_workspace.api.secrets import without_secrets

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Planned:
    """
    A write that was not sent.

    :param operation: the write
    :param why: why it would have been sent
    """

    operation: Operation[Any]
    why: str


def until_first_write(procedure: Procedure[T]) -> Procedure[T | Planned]:
    """Do what a procedure does up to its first write; the result is that write, or the procedure's own."""
    try:
        step = next(procedure)
        while True:
            if isinstance(step, Send):
                writes = [operation for operation in step.operations if operation.endpoint.effect != "read"]
                if writes:
                    procedure.close()
                    return Planned(writes[0], step.why)
            step = procedure.send((yield step))
    except StopIteration as stop:
        result: T = stop.value
        return result


def describe(result: Any, *, return_secrets: bool) -> dict[str, Any]:
    """
    Return the plan as plain JSON, and log it.

    :param result: of :func:`until_first_write`
    :param return_secrets: whether the fields of the plan may hold secrets
    """
    if isinstance(result, Planned):
        operation = result.operation
        request = operation.request()
        fields = {} if request.body is None else operation.payload()
        plan = {
            # A dashboard is removed by changing it.
            "action": "remove" if fields == {"deleted": True} else operation.endpoint.effect,
            "why": result.why,
            "operation": type(operation).__name__,
            "request": f"{request.method} {request.target}",
            "fields": fields if return_secrets else without_secrets(fields),
        }
    else:
        plan = {"action": "skip", "why": "it exists already", "found": result}
        plan |= {"id": result["id"]} if "id" in result else {}
    log.info("Plan: %s, for %s. Nothing was sent. %s", plan["action"], plan["why"], plan.get("request", ""))
    return {"dry_run": True, **plan}
