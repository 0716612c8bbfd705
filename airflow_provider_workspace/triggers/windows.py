"""The trigger that waits for a time, for one: until a maintenance window is over, unless it is closed before."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

log = logging.getLogger(__name__)

# Longest sleep at a stretch: the wall clock may be set forward meanwhile.
LONGEST_SLEEP = 60.0
# States of the closing task in which the window is open.
BEFORE_CLOSING = (None, "scheduled", "queued")


class WorkspaceWindowTrigger(BaseTrigger):
    """
    Fires once: ``{"status": "over", "state": …}`` at the time, or ``{"status": "closed"}`` if the window was closed.

    ``airflow dags test`` runs triggers in line: watching for a task that can only run afterwards would never end.
    There it fires ``{"status": "unwatched"}`` at once.

    :param end_at: when, in seconds since 1970 by the wall clock
    :param state: what the task will want to know then, as plain JSON
    :param dag_id: Dag of the closing task to watch
    :param run_id: its run
    :param close_task_id: the closing task; ``None`` to watch nothing but the clock
    :param poll_interval: seconds between two looks at the closing task
    """

    def __init__(
        self,
        *,
        end_at: float,
        state: dict[str, Any] | None = None,
        dag_id: str = "",
        run_id: str = "",
        close_task_id: str | None = None,
        poll_interval: float = 15.0,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.end_at = end_at
        self.state = state
        self.dag_id = dag_id
        self.run_id = run_id
        self.close_task_id = close_task_id
        self.poll_interval = poll_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class and plain JSON."""
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "end_at": self.end_at,
                "state": self.state,
                "dag_id": self.dag_id,
                "run_id": self.run_id,
                "close_task_id": self.close_task_id,
                "poll_interval": self.poll_interval,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait for whichever comes first."""
        if self.close_task_id is not None and self.trigger_id is None:
            yield TriggerEvent({"status": "unwatched"})  # type: ignore[no-untyped-call]
            return
        pause = LONGEST_SLEEP if self.close_task_id is None else self.poll_interval
        while True:
            if await self.closed():
                yield TriggerEvent({"status": "closed"})  # type: ignore[no-untyped-call]
                return
            left = self.end_at - time.time()
            if left <= 0:
                yield TriggerEvent({"status": "over", "state": self.state})  # type: ignore[no-untyped-call]
                return
            await asyncio.sleep(min(left, pause))

    async def closed(self) -> bool:
        """Tell whether the closing task has begun."""
        if self.close_task_id is None:
            return False
        from asgiref.sync import sync_to_async

        try:
            return not await sync_to_async(is_open)(self.dag_id, self.run_id, self.close_task_id)
        except Exception:
            log.warning("The state of the closing task cannot be read; looking again", exc_info=True)
            return False


def is_open(dag_id: str, run_id: str, close_task_id: str) -> bool:
    """
    Tell whether a window is open: its run goes on and its closing task has not begun.

    Runs in a task or in the triggerer, and asks Airflow's execution API.
    """
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    states = RuntimeTaskInstance.get_task_states(dag_id=dag_id, run_ids=[run_id], task_ids=[close_task_id])
    of_run = states.get(run_id, {})
    if close_task_id not in of_run or of_run[close_task_id] not in BEFORE_CLOSING:
        return False
    return RuntimeTaskInstance.get_dagrun_state(dag_id=dag_id, run_id=run_id) in ("queued", "running")
