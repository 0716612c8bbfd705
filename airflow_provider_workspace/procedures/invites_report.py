"""The report of a bulk invite: the result for each row."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.errors import WorkspaceError, WorkspaceRequestError, visible

if TYPE_CHECKING:
    from airflow_provider_workspace.procedures.roster import Entry

STATUSES = ("invited", "already_invited", "member", "duplicate", "invalid", "failed", "unknown", "not_sent", "planned")
# Statuses that need attention.
NEEDS_ATTENTION = ("invalid", "failed", "unknown", "not_sent")
# Maximum number of rows in the log.
MAX_LOGGED_ROWS = 50
# Maximum number of rows in an error; the report has all of them.
MAX_NAMED = 20


class InvitesReport:
    """
    The result for each row.

    :ivar rows: number of rows, without blank ones
    :ivar blank: number of blank rows, which were skipped
    :ivar waits_for: reason of the last wait, for people; empty if there was none
    """

    def __init__(self) -> None:
        self.rows = 0
        self.blank = 0
        self.waits_for = ""
        self._entries: dict[int, Entry] = {}

    def __repr__(self) -> str:
        """Return the counts, for a task that prints the report."""
        return f"<InvitesReport: {self.summary()}>"

    def add(self, *entries: Entry) -> None:
        self._entries.update((entry.row, entry) for entry in entries)

    @property
    def entries(self) -> list[Entry]:
        """One entry per row, in the order of the rows."""
        return [self._entries[number] for number in sorted(self._entries)]

    @property
    def counts(self) -> dict[str, int]:
        """Number of rows, in total and by status; ``blank`` only if there are blank rows, which no total includes."""
        counted = Counter(entry.status for entry in self._entries.values())
        blank = {"blank": self.blank} if self.blank else {}
        return {"rows": self.rows, **{status: counted[status] for status in STATUSES}, **blank}

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON: ``counts`` and ``addresses``, one per row."""
        return {"counts": self.counts, "addresses": [entry.to_dict() for entry in self.entries]}

    # For Airflow: a ``@task`` may return the report.
    serialize = to_dict

    @staticmethod
    def deserialize(report: dict[str, Any], _version: int) -> dict[str, Any]:
        """Return what the next task gets from XCom: plain JSON."""
        return report

    def table(self) -> str:
        """Return the summary and a line for each row that was not invited, for the log."""
        lines = [self.summary()]
        others = [item for item in self.entries if item.status not in ("invited", "already_invited")]
        lines += [
            f"  row {item.row:<6} {item.status:<16} {visible(item.email or '-'):<40} {visible(item.reason)}".rstrip()
            for item in others[:MAX_LOGGED_ROWS]
        ]
        if len(others) > MAX_LOGGED_ROWS:
            lines.append(f"  … and {len(others) - MAX_LOGGED_ROWS} more, all in the report")
        return "\n".join(lines)

    def summary(self) -> str:
        """Return one line for the log."""
        counts = self.counts
        parts = [f"{counts[status]} {status.replace('_', ' ')}" for status in STATUSES if counts[status]]
        left = self.rows - len(self._entries)  # without a result yet
        parts += [f"{left} left"] if left else []
        blank = f", {self.blank} blank rows skipped" if self.blank else ""
        return f"{self.rows} rows: {', '.join(parts) or 'nothing to do'}{blank}"


class WorkspaceInvitesIncompleteError(WorkspaceError):
    """
    Some people were not invited. The next try sends only the missing invites.

    :param report: the result for each row
    :param cause: the error that stopped it; ``None`` if the service refused single rows or a limit is reached
    :param retry_after: seconds until a limit permits more invites; ``None`` if not known
    """

    def __init__(
        self,
        message: str,
        report: InvitesReport,
        cause: WorkspaceRequestError | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, problem="invites-incomplete")
        self.report = report
        self.cause = cause
        self.retry_after = retry_after

    @property
    def permanent(self) -> bool:
        """Whether the next try would fail as well, as it does if the service refused single rows."""
        return self.retry_after is None and (self.cause is None or self.cause.permanent)


def name_entries(entries: list[Entry]) -> str:
    """Return the first rows with their reasons."""
    named = "; ".join(
        f"row {item.row} ({item.email or 'no address'}): {item.reason.rstrip('.')}" for item in entries[:MAX_NAMED]
    )
    more = f"; and {len(entries) - MAX_NAMED} more" if len(entries) > MAX_NAMED else ""
    return f"{named}{more}."
