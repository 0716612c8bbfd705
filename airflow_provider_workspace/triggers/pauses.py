"""The trigger with which a task waits until the service will take more, without a worker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

# Longest sleep at a stretch: the wall clock may be set forward meanwhile.
LONGEST_SLEEP = 60.0


class WorkspacePauseTrigger(BaseTrigger):
    """
    Fires once, at a time: ``{"status": "over", "state": …}``.

    :param end_at: when, in seconds since 1970 by the wall clock
    :param state: what the task will want to know then, as plain JSON
    """

    def __init__(self, *, end_at: float, state: dict[str, Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.end_at = end_at
        self.state = state

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class and plain JSON."""
        return f"{type(self).__module__}.{type(self).__qualname__}", {"end_at": self.end_at, "state": self.state}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait."""
        while True:
            left = self.end_at - time.time()
            if left <= 0:
                yield TriggerEvent({"status": "over", "state": self.state})  # type: ignore[no-untyped-call]
                return
            await asyncio.sleep(min(left, LONGEST_SLEEP))
