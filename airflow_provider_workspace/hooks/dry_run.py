"""The hook of a task that only plans, and the plan."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from airflow_provider_workspace.api.secrets import is_secret
from airflow_provider_workspace.errors import WorkspaceWritePlannedError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation

T = TypeVar("T")

log = logging.getLogger(__name__)

# What a write does, by the first word of its operation; anything else changes.
ACTIONS = {"Create": "create", "Add": "create", "Delete": "remove", "Remove": "remove"}


class WorkspacePlanningHook(WorkspaceHook):
    """Reads as the hook does, and sends no write: whatever decides to write finds that out here."""

    plan_only: ClassVar[bool] = True

    def send(self, operation: Operation[T]) -> T:
        """
        Send an operation that reads.

        :raises WorkspaceWritePlannedError: for one that writes, instead of sending it
        """
        if operation.endpoint.method == "GET":
            return super().send(operation)
        request = operation.request()
        body: Any = None if request.body is None else operation.payload()
        raise WorkspaceWritePlannedError(type(operation).__name__, f"{request.method} {request.target}", body)


def plan_of(work: Callable[[], Any], *, return_secrets: bool) -> dict[str, Any]:
    """
    Do the work with such a hook, and describe the write it came to; ``skip`` if it came to none.

    :param return_secrets: whether the fields of the plan may hold secrets
    """
    try:
        found = work()
    except WorkspaceWritePlannedError as planned:
        fields = planned.fields or {}
        action = next((action for verb, action in ACTIONS.items() if planned.operation.startswith(verb)), "change")
        plan = {
            "action": "remove" if fields == {"deleted": True} else action,
            "why": planned.why,
            "operation": planned.operation,
            "request": planned.request,
            "fields": {name: value for name, value in fields.items() if return_secrets or not is_secret(name)},
        }
    else:
        plan = {"action": "skip", "why": "it is there", "found": found}
        plan |= {"id": found["id"]} if "id" in found else {}
    log.info("Plan: %s, for %s. Nothing was sent. %s", plan["action"], plan["why"], plan.get("request", ""))
    return {"dry_run": True, **plan}
