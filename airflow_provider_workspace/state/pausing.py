"""
Pausing the exports of a window that opens.

The order makes it safe beside windows that close: pause, say so in the lease, and only then read the other leases.
Whoever closes says so first and reads then, so at least one of the two sees the other.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_workspace.api.outcome import Outcome
from airflow_provider_workspace.client import waits
from airflow_provider_workspace.errors import WorkspaceRequestError
from airflow_provider_workspace.state.lease_requests import send_noted

if TYPE_CHECKING:
    from airflow_provider_workspace.state.lease_requests import ExportService
    from airflow_provider_workspace.state.leases import Lease, LeaseRegistry

log = logging.getLogger(__name__)

# A pause that takes longer may have missed a window that has opened, paused and closed meanwhile: three tasks.
SHORTEST_WINDOW = 1.0
MAX_REASON_LENGTH = 300


@dataclass
class Paused:
    """
    What came of pausing.

    :ivar paused: exports that are paused, and that no other window can still resume
    :ivar waiting: exports that another window may still be resuming, and until when: pause them again after that
    """

    paused: list[str] = field(default_factory=list)
    waiting: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Pauser:
    """
    Pauses the exports of a window.

    :param service: where the exports are
    """

    registry: LeaseRegistry
    service: ExportService
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = waits.sleep

    def pause_all(self, leases: list[Lease]) -> Paused:
        """
        Pause one export after the other; the first that is refused ends it.

        :raises WorkspaceRequestError: if one could not be paused
        :raises WindowClosedError: if somebody else has closed the window meanwhile
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

        :return: ``None`` if no other window can undo it; else when to call again
        """
        began = self.clock()
        # What came between an earlier try, or a wait, and this call, nobody knows.
        once_more = lease.state == "paused"
        if not once_more:
            once_more = bool(self.registry.other_keys(lease))
            lease = self._pause_first(lease)
        keys = self.registry.other_keys(lease)
        until = max((other.late_resume_until or 0.0 for other in self.registry.read_all(keys)), default=0.0)
        if until > self.clock():
            log.info(
                "Batch export %s: another window is resuming it; pausing it again after that.", lease.batch_export_id
            )
            return until
        if once_more or keys or self.clock() - began > SHORTEST_WINDOW:
            self.registry.update(self._send(lease))
        log.info("Paused batch export %s.", lease.batch_export_id)
        return None

    def _pause_first(self, lease: Lease) -> Lease:
        """Pause, and write into the lease that this window holds the export from now on, or why it does not."""
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
        return send_noted(
            self.registry,
            lease,
            "late_pause_until",
            self.service,
            unanswered=lease.late_pause_until,
            clock=self.clock,
            sleep=self.sleep,
        )
