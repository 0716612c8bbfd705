"""Fixture ``call``: runs a test with both hooks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from airflow_provider_workspace.hooks.workspace import WorkspaceAsyncHook, WorkspaceHook

Call = Callable[..., Any]


def call_hook(method: str, *args: Any, hook: dict[str, Any], **kwargs: Any) -> Any:
    opened = WorkspaceHook(**hook)
    try:
        answer = getattr(opened, method)(*args, **kwargs)
        return list(answer) if isinstance(answer, Iterator) else answer
    finally:
        opened.close()


def call_async_hook(method: str, *args: Any, hook: dict[str, Any], **kwargs: Any) -> Any:
    async def call() -> Any:
        async with WorkspaceAsyncHook(**hook) as opened:
            answer = getattr(opened, method)(*args, **kwargs)
            return [row async for row in answer] if isinstance(answer, AsyncIterator) else await answer

    return asyncio.run(call())


@pytest.fixture(params=[call_hook, call_async_hook], ids=["hook", "async hook"])
def call(request: pytest.FixtureRequest) -> Call:
    """Call a method of a hook; ``hook={...}`` are the arguments of its constructor."""

    def call_method(method: str, *args: Any, hook: dict[str, Any] | None = None, **kwargs: Any) -> Any:
        return request.param(method, *args, hook=hook or {}, **kwargs)

    return call_method
