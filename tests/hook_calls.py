"""Calls of a method of either hook, by its name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from airflow_provider_workspace.hooks.workspace import WorkspaceAsyncHook, WorkspaceHook


def call_hook(method: str, *args: Any, hook: dict[str, Any] | None = None, **kwargs: Any) -> Any:
    """Call a method of the hook; ``hook`` are the arguments of its constructor. Lists are read to the end."""
    with WorkspaceHook(**hook or {}) as opened:
        result = getattr(opened, method)(*args, **kwargs)
        return list(result) if isinstance(result, Iterator) else result


def call_async_hook(method: str, *args: Any, hook: dict[str, Any] | None = None, **kwargs: Any) -> Any:
    """Do the same with the asynchronous hook."""

    async def call() -> Any:
        async with WorkspaceAsyncHook(**hook or {}) as opened:
            result = getattr(opened, method)(*args, **kwargs)
            return [row async for row in result] if isinstance(result, AsyncIterator) else await result

    return asyncio.run(call())


CALLS: dict[str, Callable[..., Any]] = {"requests": call_hook, "httpx": call_async_hook}
