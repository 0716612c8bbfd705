"""A wait that is cut off leaves nothing behind, also if what it waits for has just failed."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from airflow_provider_workspace.client import waits


async def fail() -> None:
    raise ValueError("failed in the same moment")


async def cut_off() -> list[dict[str, Any]]:
    """Cancel a wait in the moment in which its work has failed; return what asyncio reports."""
    reports: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, report: reports.append(report))
    waiting = asyncio.ensure_future(waits.within(60, fail()))
    await asyncio.sleep(0)  # the wait begins
    await asyncio.sleep(0)  # its work fails
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    del waiting
    gc.collect()
    return reports


def test_an_error_at_the_moment_of_a_cancellation_is_not_reported_as_never_retrieved() -> None:
    assert asyncio.run(cut_off()) == []
