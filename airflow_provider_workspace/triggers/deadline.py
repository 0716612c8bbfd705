"""The trigger that waits for a time: for maintenance windows, and for bulk invites at a rate limit."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator
from typing import Any, Literal
from uuid import UUID

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_workspace.version_compat import COMMAND

log = logging.getLogger(__name__)

# Longest time between two readings of the wall clock, which may be set forward.
MAX_SLEEP = 60.0
# Seconds between two polls of the closing task.
POLL_INTERVAL = 15.0
# Largest number of seconds, and of seconds since 1970.
MAX_DEADLINE = 1e11


class WorkspaceDeadlineTrigger(BaseTrigger):
    """
    Fires once: ``{"status": "over", "state": …}`` at a time, or ``"closed"`` if the window is closed before.

    A window is closed if it holds no export any more. While its closing task is at work, the trigger waits on.

    In ``airflow dags test``, which runs triggers inline before the closing task can start, it fires ``"unwatched"`` at
    once if it has a closing task to watch.

    :param end_at: time in seconds since 1970 by the wall clock
    :param state: JSON for the event, which the task gets back
    :param dag_id: Dag of the closing task
    :param run_id: Dag run of the closing task
    :param close_task_id: closing task to watch; ``None`` to wait for the time only
    :param map_index: map index of the closing task; -1 outside of a mapped task group
    """

    def __init__(
        self,
        *,
        end_at: float,
        state: dict[str, Any] | None = None,
        dag_id: str = "",
        run_id: str = "",
        close_task_id: str | None = None,
        map_index: int = -1,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.end_at = end_at
        self.state = state
        self.dag_id = dag_id
        self.run_id = run_id
        self.close_task_id = close_task_id
        self.map_index = map_index

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return serialized(self, "end_at", "state", "dag_id", "run_id", "close_task_id", "map_index")

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait for the time or the closing task, whichever comes first."""
        from airflow_provider_workspace.client import waits

        pause = MAX_SLEEP if self.close_task_id is None else POLL_INTERVAL
        status = "unwatched" if self.close_task_id is not None and self.trigger_id is None else None
        while status is None:
            left = self.end_at - time.time()
            progress = await self.progress()
            if progress == "closed":
                status = "closed"
            elif left > 0:
                await waits.async_sleep(min(left, pause))
            elif progress == "closing":
                await waits.async_sleep(pause)
            else:
                status = "over"
                if self.close_task_id is not None:
                    log.warning(
                        "The window of %s / %s is overdue. Its guard resumes the exports now; if the Dag is paused, "
                        "only the sweep does: run '%s sweep'.",
                        self.dag_id,
                        self.run_id,
                        COMMAND,
                    )
        yield TriggerEvent({"status": status, "state": self.state})  # type: ignore[no-untyped-call]

    async def progress(self) -> Literal["open", "closing", "closed"]:
        """Return how far the window is; ``open`` if that cannot be read."""
        if self.close_task_id is None:
            return "open"
        from asgiref.sync import sync_to_async

        from airflow_provider_workspace.notes.lease_store import LeaseVariables
        from airflow_provider_workspace.notes.leases import LeaseRegistry, Window
        from airflow_provider_workspace.windows.window_state import progress_of

        window = Window(self.dag_id, self.run_id, self.close_task_id, self.map_index)
        try:
            return await sync_to_async(progress_of)(LeaseRegistry(LeaseVariables()), window)
        except Exception:
            log.warning("The leases of the window cannot be read; trying again", exc_info=True)
            return "open"


def serialized(trigger: BaseTrigger, *names: str) -> tuple[str, dict[str, Any]]:
    """Return the class path of a trigger and the named arguments, which are its attributes."""
    kind = type(trigger)
    arguments = {name: getattr(trigger, name) for name in names}
    return f"{kind.__module__}.{kind.__qualname__}", arguments


def check_number(name: str, value: Any) -> None:
    """
    Check that an argument is a finite number.

    :raises WorkspaceInputError: naming the argument
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and 0 <= value <= MAX_DEADLINE:
        return
    from airflow_provider_workspace.errors import WorkspaceInputError, type_name

    given = "one beyond that" if is_number else type_name(value)
    raise WorkspaceInputError(f"{name} must be a number from 0 to {MAX_DEADLINE:g}, not {given}")


def check_text(name: str, value: object) -> None:
    """
    Check that an argument is a string or a UUID.

    :raises WorkspaceInputError: naming the argument
    """
    if not isinstance(value, str | UUID):
        from airflow_provider_workspace.errors import WorkspaceInputError, type_name

        raise WorkspaceInputError(f"{name} must be a string, not {type_name(value)}")
