"""Short forms of the sandbox's audit and request log."""

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
