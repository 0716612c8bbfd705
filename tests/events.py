"""Waiting for triggers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any


async def first_event(trigger: Any) -> Any:
    """Return the first event of a trigger; None if it ends without one."""
    async for event in trigger.run():
        return event
    return None


async def until(true: Callable[[], bool]) -> None:
    """Wait until a condition holds, for half a minute at most."""
    end = time.monotonic() + 30
    while not true() and time.monotonic() < end:  # noqa: ASYNC110 - nothing signals the condition
        await asyncio.sleep(0.01)


class Silent:
    """A logger for Airflow's manager of shared streams."""

    def __getattr__(self, _: str) -> Any:
        return lambda *_args, **_kwargs: None
