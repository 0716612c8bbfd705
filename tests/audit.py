"""Short forms of the sandbox's audit and request log, and of lists that say something else."""

from __future__ import annotations

import asyncio
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


def set_address(sandbox: SandboxServer, user_uuid: str, email: str) -> None:
    """Let somebody change their own address, which no key can do."""

    async def change() -> None:
        execute = sandbox.listener.service.state.db.execute
        fields = "email = ?, record = json_set(record, '$.user.email', ?)"
        execute(f"UPDATE members SET {fields} WHERE user_uuid = ?", (email, email, user_uuid))  # noqa: S608

    asyncio.run_coroutine_threadsafe(change(), sandbox.listener.loop).result(10)
