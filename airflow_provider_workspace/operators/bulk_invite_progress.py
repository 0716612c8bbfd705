"""The progress of a bulk invite, for the status page."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.database_limits import storable
from airflow_provider_workspace.api.timestamps import iso
from airflow_provider_workspace.client.progress import ProgressLog
from airflow_provider_workspace.errors import MAX_NAMED, WorkspaceError
from airflow_provider_workspace.procedures.invites_report import INVITES_THAT_NEED_ATTENTION, InvitesReport

if TYPE_CHECKING:
    from typing_extensions import Self

# Key of its XCom.
PROGRESS = "progress"
# Minimum seconds between two writes.
SECONDS_BETWEEN_PROGRESS = 5.0


class BulkInviteProgress:
    """
    A context manager that writes the progress of a bulk invite to an XCom every few seconds, and at the end.

    :param ti: the task instance; ``None`` outside of a task, where nothing is written
    :param by_hand: what the plan of the task leaves to a person: ``email``, ``status`` and ``reason``
    :ivar report: the results so far
    """

    def __init__(self, ti: Any, organization_id: str, by_hand: Sequence[dict[str, Any]]) -> None:
        self.report = InvitesReport()
        # Not the task instance: it leads to the task, which keeps this object, see WorkspaceTaskMixin.
        self._push = getattr(ti, "xcom_push", None)
        self._organization_id = organization_id
        self._by_hand = by_hand
        self._log = ProgressLog()
        self._written = float("-inf")

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Write the final progress; a task that defers has written already."""
        if kind is None or issubclass(kind, WorkspaceError):
            self.write()

    def progress(self, done: int, total: int) -> None:
        """Log the progress, and write it unless that was done a few seconds ago."""
        self._log(done, total)
        if time.monotonic() - self._written >= SECONDS_BETWEEN_PROGRESS:
            self.write()

    def write(self, again_at: float | None = None) -> None:
        """Write the progress; ``again_at`` is the end of a wait in seconds since 1970."""
        self._written = time.monotonic()
        if self._push is not None:
            self._push(key=PROGRESS, value=storable(self.value(time.time(), again_at)))

    def value(self, now: float, again_at: float | None) -> dict[str, Any]:
        """
        Return plain JSON: ``counts``, rows that are ``left``, the wait, and the first rows that need a person.

        :param now: seconds since 1970
        :param again_at: end of a wait in seconds since 1970; ``None`` if it does not wait
        """
        counts = self.report.counts
        rows = counts.pop("rows")
        counts_above_zero = {status: number for status, number in counts.items() if number}
        entries = self.report.entries
        named = [entry for entry in entries if entry.status in INVITES_THAT_NEED_ATTENTION]
        needs_person = [*self._by_hand, *(entry.to_dict() for entry in named[:MAX_NAMED])]
        value: dict[str, Any] = {
            "organization_id": self._organization_id,
            "rows": rows,
            "counts": counts_above_zero,
            "left": rows - len(entries),
            "at": iso(now),
            "again_at": None,
            "why": "",
            "needs_person": needs_person[:MAX_NAMED],
            "needs_person_rows": len(named) + len(self._by_hand),
        }
        if again_at is not None:
            value["again_at"] = iso(again_at)
            value["why"] = self.report.waits_for
        return value
