"""How clients, procedures and triggers sleep, with one switch for tests."""

from __future__ import annotations

import asyncio
import time

scale = 1.0
"""What every wait is multiplied by. Tests set it to 0: then no wait takes time."""


def sleep(seconds: float) -> None:
    """Sleep in a worker."""
    time.sleep(seconds * scale)


async def async_sleep(seconds: float) -> None:
    """Sleep in the event loop."""
    await asyncio.sleep(seconds * scale)
