"""Short forms of the sandbox's audit and request log, and of lists that say something else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer


def effects(sandbox: SandboxServer) -> list[str]:
    """Return the operations that changed something, in order."""
    return [effect["operation"] for effect in sandbox.effects()]


def writes(sandbox: SandboxServer) -> list[dict[str, Any]]:
    """Return the requests that are no reads."""
    return [request for request in sandbox.requests() if request["method"] != "GET"]


def say(sandbox: SandboxServer, operation: str, *rows: Any, count: int | None = None, **which: Any) -> None:
    """Let a list have these rows and no others: each time, or ``times`` and ``after`` some requests."""
    body = {"count": len(rows) if count is None else count, "next": None, "results": rows}
    sandbox.inject("say", operation, body=body, **{"times": None, **which})
