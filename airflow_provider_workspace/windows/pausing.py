"""
Pause the exports of a window that opens.

The order makes concurrent windows safe: pause, write the lease, then read the other leases. A window that closes writes
its lease before it reads the others as well, so at least one of the two sees the other.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_workspace.api.outcome import Outcome
from airflow_provider_workspace.errors import WorkspaceRequestError
from airflow_provider_workspace.windows.readings import Readings
from airflow_provider_workspace.windows.requests import NotedRequests

if TYPE_CHECKING:
    from airflow_provider_workspace.notes.leases import Lease

log = logging.getLogger(__name__)

# During a longer pause another window may have opened, paused and closed, which takes three tasks.
SHORTEST_WINDOW = 1.0
MAX_REASON_LENGTH = 300


@dataclass(frozen=True)
class Pauser(NotedRequests):
    """Pauses the exports of a window."""

    def pause_all(self, leases: list[Lease]) -> dict[str, float]:
        """
        Pause one export after the other, up to the first failure; read before and after it what ``state_of`` shows.

        :return: exports that another window may be resuming, and until when; pause them again after that
        :raises WorkspaceRequestError: if one could not be paused
        :raises WindowClosedError: if another task closes the window
        """
        waiting: dict[str, float] = {}
        visible: list[Lease] = []
        for prepared in self._with_states_before(leases):
            lease, until = self.pause(prepared)
            if until is not None:
                waiting[lease.batch_export_id] = until
            elif lease.state_of:
                visible.append(lease)
        for _, found in self.prove(visible, "paused"):
            if isinstance(found, Exception):
                raise found
            self.registry.update(found)
        return waiting

    def pause(self, lease: Lease) -> tuple[Lease, float | None]:
        """
        Pause an export.

        :return: its lease, and ``None`` if no other window is resuming it; else when to call again
        """
        began = self.clock()
        # A window may have resumed it since an earlier try or before a wait: then pause it again.
        pause_again = lease.state == "paused"
        if not pause_again:
            pause_again = bool(self.registry.other_keys(lease))
            lease = self._pause_first(lease)
        keys = self.registry.other_keys(lease)
        # This window too, if it was closed a moment ago and somebody has cleared it.
        may_resume = [lease, *self.registry.read_all(keys)]
        until = max(each.late_resume_until or 0.0 for each in may_resume)
        if until > self.clock():
            log.info("Batch export %s: a window is resuming it; pausing it again after that.", lease.batch_export_id)
            return lease, until
        took_long = self.clock() - began > SHORTEST_WINDOW
        if pause_again or keys or took_long:
            lease = self.registry.update(self._send(lease))
        log.info("Paused batch export %s.", lease.batch_export_id)
        return lease, None

    def _with_states_before(self, leases: list[Lease]) -> list[Lease]:
        """Return the leases with whether their exports were paused before; all are read before the first pause."""
        readings = Readings()
        return [self._with_state_before(lease, readings) for lease in leases]

    def _with_state_before(self, lease: Lease, readings: Readings) -> Lease:
        """
        Return the lease with whether the export was paused before, by nobody's window; the pause will note it.

        A lease that may have paused the export stays as it is.
        What is shown is believed at once: a window with ``state_of`` deletes its lease only when its resume is shown.
        """
        if not lease.never_paused:
            return lease
        if lease.state_of:
            lease, others = self.observe(lease, readings)
        else:
            others = self.registry.pausing(lease)
        paused_before = _was_paused_before(lease, others)
        return lease.model_copy(update={"paused_before": paused_before})

    def _pause_first(self, lease: Lease) -> Lease:
        """Pause, and write into the lease that this window holds the export, or why the service refused."""
        try:
            lease = self._send(lease)
        except WorkspaceRequestError as error:
            if error.outcome == Outcome.REJECTED.value:
                self._write_refused(lease, error)
            raise
        return self.registry.update(lease, state="paused", paused_at=self.clock(), refused=None)

    def _send(self, lease: Lease) -> Lease:
        return self.send(lease, "late_pause_until", unanswered=lease.late_pause_until)

    def _write_refused(self, lease: Lease, error: WorkspaceRequestError) -> None:
        """Write into the lease why the service refused the pause, unless a task closes the window."""
        current = self.registry.read(lease.key)
        if current is None or current.closer is not None:
            return
        reason = str(error)[:MAX_REASON_LENGTH]
        self.registry.update(current, refused=reason)


def _was_paused_before(lease: Lease, others: list[Lease]) -> bool:
    """Return whether an export was paused before all windows, as far as was seen or the other leases say."""
    if lease.seen == "running":
        return False
    if lease.seen != "paused" and not others:
        return False
    return all(other.paused_before for other in others)
