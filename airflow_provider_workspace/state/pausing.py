"""
Pause the exports of a window that opens.

The order makes concurrent windows safe: pause, write the lease, then read the other leases. A window that closes writes
its lease before it reads the others as well, so at least one of the two sees the other.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_workspace.api.outcome import Outcome
from airflow_provider_workspace.errors import WorkspaceRequestError
from airflow_provider_workspace.state.lease_requests import NotedRequests

if TYPE_CHECKING:
    from airflow_provider_workspace.state.lease_requests import HookService
    from airflow_provider_workspace.state.leases import Lease

log = logging.getLogger(__name__)

# During a longer pause another window may have opened, paused and closed, which takes three tasks.
SHORTEST_WINDOW = 1.0
MAX_REASON_LENGTH = 300


@dataclass
class Paused:
    """
    The result of pausing.

    :ivar paused: exports that are paused and that no other window is resuming
    :ivar waiting: exports that another window may be resuming, and until when; pause them again after that
    """

    paused: list[str] = field(default_factory=list)
    waiting: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Pauser(NotedRequests):
    """Pauses the exports of a window."""

    service: HookService

    def pause_all(self, leases: list[Lease]) -> Paused:
        """
        Pause one export after the other, up to the first failure.

        :raises WorkspaceRequestError: if one could not be paused
        :raises WindowClosedError: if another task closes the window
        """
        done = Paused()
        for lease in leases:
            until = self.pause(lease)
            if until is None:
                done.paused.append(lease.batch_export_id)
            else:
                done.waiting[lease.batch_export_id] = until
        return done

    def pause(self, lease: Lease) -> float | None:
        """
        Pause an export.

        :return: ``None`` if no other window is resuming it; else when to call again
        """
        if lease.never_paused:
            lease = self._look_before(lease)
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
            return until
        if pause_again or keys or self.clock() - began > SHORTEST_WINDOW:
            lease = self.registry.update(self._send(lease))
        if lease.state_of:
            lease, _ = self.look(lease, self.service, "paused")
            if lease.seen == "running":
                raise self.contradicted(lease, self.service, "PauseBatchExport")
            self.registry.update(lease)
        log.info("Paused batch export %s.", lease.batch_export_id)
        return None

    def _look_before(self, lease: Lease) -> Lease:
        """Return the lease with whether the export was paused before, by nobody's window; the pause will note it."""
        if lease.state_of:
            lease, others = self.look(lease, self.service, "running")
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
        return self.send(lease, "late_pause_until", self.service, unanswered=lease.late_pause_until)
