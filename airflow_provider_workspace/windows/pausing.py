"""
Pause the exports of a window that opens.

The order makes concurrent windows safe: pause, write the lease, then read the other leases. A window that closes writes
its lease before it reads the others as well, so at least one of the two sees the other.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.outcome import Outcome
from airflow_provider_workspace.errors import WorkspaceRequestError
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
        known: dict[Any, Any] = {}
        waiting: dict[str, float] = {}
        visible = []
        for before in [self._with_state_before(lease, known) if lease.never_paused else lease for lease in leases]:
            lease, until = self.pause(before)
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
        until = max(each.late_resume_until or 0.0 for each in [lease, *self.registry.read_all(keys)])
        if until > self.clock():
            log.info("Batch export %s: a window is resuming it; pausing it again after that.", lease.batch_export_id)
            return lease, until
        if pause_again or keys or self.clock() - began > SHORTEST_WINDOW:
            lease = self.registry.update(self._send(lease))
        log.info("Paused batch export %s.", lease.batch_export_id)
        return lease, None

    def _with_state_before(self, lease: Lease, known: dict[Any, Any]) -> Lease:
        """
        Return the lease with whether the export was paused before, by nobody's window; the pause will note it.

        What is shown is believed at once: a window with ``state_of`` deletes its lease only when its resume is shown.
        """
        if lease.state_of:
            lease, others = self.observe(lease, known)
        else:
            others = self.registry.pausing(lease)
        paused = lease.seen == "paused" or (lease.seen != "running" and bool(others))
        return lease.model_copy(update={"paused_before": paused and all(other.paused_before for other in others)})

    def _pause_first(self, lease: Lease) -> Lease:
        """Pause, and write into the lease that this window holds the export, or why the service refused."""
        try:
            lease = self._send(lease)
        except WorkspaceRequestError as error:
            if error.outcome == Outcome.REJECTED.value:
                current = self.registry.read(lease.key)
                if current is not None and current.closer is None:
                    self.registry.update(current, refused=str(error)[:MAX_REASON_LENGTH])
            raise
        return self.registry.update(lease, state="paused", paused_at=self.clock(), refused=None)

    def _send(self, lease: Lease) -> Lease:
        return self.send(lease, "late_pause_until", unanswered=lease.late_pause_until)
