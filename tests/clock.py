"""The waits of the package, for tests that move the clock of a sandbox in place of waiting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest import mock

from airflow_provider_workspace.client import waits


@contextmanager
def waits_that(advance: Callable[[float], object]) -> Iterator[None]:
    """Call a function with the seconds of each wait, which then takes no time."""

    async def async_sleep(seconds: float) -> None:
        advance(seconds)

    with mock.patch.object(waits, "sleep", advance), mock.patch.object(waits, "async_sleep", async_sleep):
        yield
