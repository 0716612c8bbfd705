"""What a bulk invite says of itself while it runs, for the status page and ``airflow workspace status``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.hooks.progress import ProgressLog
from airflow_provider_workspace.procedures.invites_report import MAX_NAMED, NEEDS_ATTENTION, InvitesReport
from airflow_provider_workspace.state.leases import iso

if TYPE_CHECKING:
    from typing_extensions import Self

# The XCom that holds it.
PROGRESS = "progress"
# How long until it is written again.
SECONDS_BETWEEN = 5.0


class CampaignNote:
    """
    How far a bulk invite got, as an XCom of its task that is written anew every few seconds, and at its end.

    Used in a ``with`` statement around the invites.

    :param ti: the task instance; ``None`` outside of a task, where nothing is written
    :param organization_id: organization
    :ivar report: what became of each row so far
    """

    def __init__(self, ti: Any, organization_id: str) -> None:
        self.report = InvitesReport()
        self._ti = ti
        self._organization_id = organization_id
        self._log = ProgressLog("Invites")
        self._written = float("-inf")

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Write down how it ended; what leaves the worker for a while has written when it goes on."""
        if kind is None or issubclass(kind, WorkspaceError):
            self.write()

    def progress(self, done: int, total: int) -> None:
        """Log how far it got, and write it down unless that was done a moment ago."""
        self._log(done, total)
        if time.monotonic() - self._written >= SECONDS_BETWEEN:
            self.write()

    def write(self, again_at: float | None = None) -> None:
        """
        Write down how far it got.

        :param again_at: when it goes on after a wait, in seconds since 1970; ``None`` if it does not wait
        """
        self._written = time.monotonic()
        if self._ti is not None:
            self._ti.xcom_push(key=PROGRESS, value=self.value(time.time(), again_at))

    def value(self, now: float, again_at: float | None) -> dict[str, Any]:
        """Return plain JSON: ``counts``, what is ``left``, when and why it goes on, and who needs a person."""
        counts = self.report.counts
        rows = counts.pop("rows")
        named = [entry for entry in self.report.entries if entry.status in NEEDS_ATTENTION]
        return {
            "organization_id": self._organization_id,
            "rows": rows,
            "counts": {status: number for status, number in counts.items() if number},
            "left": rows - sum(counts.values()),
            "at": iso(now),
            "again_at": None if again_at is None else iso(again_at),
            "why": self.report.waits_for if again_at is not None else "",
            "needs_person": [entry.to_dict() for entry in named[:MAX_NAMED]],
        }
