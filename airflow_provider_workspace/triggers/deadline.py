"""What wakes a task at a time by the wall clock: windows, and bulk invites whose limit is reached."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from airflow.triggers.base import BaseTrigger, TriggerEvent

# Only type checkers need these: building them would cost each Dag file.
if TYPE_CHECKING:
    from typing_extensions import TypedDict

    class ClosingState(TypedDict):
        """What a closing task has done so far, for its result."""

        resumed: list[str]
        held: dict[str, list[str]]
        left_paused: list[str]
        never_paused: dict[str, str | None]
        fields_refused: dict[str, str]

    # Or what a task remembers: see state.task_state.TaskState.
    State = ClosingState | dict[str, Any]

    class DeadlineEvent(TypedDict):
        """What the trigger fires with."""

        status: Literal["over", "closed", "unwatched"]
        state: State | None


log = logging.getLogger(__name__)

# Longest sleep at a stretch: the wall clock may be set forward meanwhile.
MAX_SLEEP = 60.0
# The largest number of seconds, also since 1970.
MAX_NUMBER = 1e11


class WorkspaceDeadlineTrigger(BaseTrigger):
    """
    Fires once: ``{"status": "over", "state": …}`` at the time, or ``"closed"`` if the window was closed before.

    ``airflow dags test`` runs triggers in line: watching for a task that can only run afterwards would never end.
    There it fires ``"unwatched"`` at once.

    :param end_at: when, in seconds since 1970 by the wall clock
    :param state: what the task will want to know then, as plain JSON
    :param dag_id: Dag of the closing task to watch
    :param run_id: its run
    :param close_task_id: the closing task; ``None`` to watch nothing but the clock
    :param map_index: which one it is in a mapped task group; -1 outside of one
    :param poll_interval: seconds between two polls of the closing task
    """

    def __init__(
        self,
        *,
        end_at: float,
        state: State | None = None,
        dag_id: str = "",
        run_id: str = "",
        close_task_id: str | None = None,
        map_index: int = -1,
        poll_interval: float = 15.0,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        check_number("end_at", end_at)
        check_number("map_index", map_index, least=-1)
        check_number("poll_interval", poll_interval)
        check_text("dag_id", dag_id)
        check_text("run_id", run_id)
        self.end_at = end_at
        self.state = state
        self.dag_id = dag_id
        self.run_id = run_id
        self.close_task_id = close_task_id
        self.map_index = map_index
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
                "map_index": self.map_index,
                "poll_interval": self.poll_interval,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait for whichever comes first."""
        from airflow_provider_workspace.client import waits

        if self.close_task_id is not None and self.trigger_id is None:
            yield _finished_event("unwatched")
            return
        pause = MAX_SLEEP if self.close_task_id is None else self.poll_interval
        while True:
            if await self.closed():
                yield _finished_event("closed")
                return
            left = self.end_at - time.time()
            if left <= 0:
                if self.close_task_id is not None:
                    log.warning(
                        "The window of %s / %s is overdue. Its guard resumes the exports now; if the Dag is paused, "
                        "nobody but the sweep does: run 'airflow workspace windows --resume'.",
                        self.dag_id,
                        self.run_id,
                    )
                yield _finished_event("over", self.state)
                return
            await waits.async_sleep(min(left, pause))

    async def closed(self) -> bool:
        """Tell whether the closing task has begun."""
        if self.close_task_id is None:
            return False
        from asgiref.sync import sync_to_async

        from airflow_provider_workspace.state.lease_store import is_open
        from airflow_provider_workspace.state.leases import Window

        window = Window(self.dag_id, self.run_id, self.close_task_id, self.map_index)
        try:
            return not await sync_to_async(is_open)(window)
        except Exception:
            log.warning("The state of the closing task cannot be read; trying again", exc_info=True)
            return False


def check_number(name: str, value: Any, *, least: float = 0) -> None:
    """
    Refuse what is no number, or not a finite one.

    :param least: the smallest that is right
    :raises WorkspaceInputError: naming the argument
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= MAX_NUMBER:
        return
    from airflow_provider_workspace.errors import WorkspaceInputError

    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    given = "one beyond that" if is_number else f"something of type {type(value).__name__}"
    msg = f"{name} must be a number from {least} to {MAX_NUMBER:g}, not {given}"
    raise WorkspaceInputError(msg)


def check_text(name: str, value: Any) -> None:
    """
    Refuse what is no text, nor an object that is written as one.

    :raises WorkspaceInputError: naming the argument
    """
    if isinstance(value, str | UUID):
        return
    from airflow_provider_workspace.errors import WorkspaceInputError

    msg = f"{name} must be a text, not something of type {type(value).__name__}"
    raise WorkspaceInputError(msg)


def _finished_event(status: Literal["over", "closed", "unwatched"], state: State | None = None) -> TriggerEvent:
    """Return the event."""
    event: DeadlineEvent = {"status": status, "state": state}
    return TriggerEvent(event)  # type: ignore[no-untyped-call]
