"""What became of each row while many people were invited."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.comparison import printable
from airflow_provider_workspace.errors import WorkspaceError, WorkspaceRequestError

if TYPE_CHECKING:
    from airflow_provider_workspace.procedures.roster import Entry

STATUSES = ("invited", "already_invited", "member", "duplicate", "invalid", "failed", "unknown", "not_sent", "planned")
# Rows that somebody has to look at.
NEEDS_ATTENTION = ("invalid", "failed", "unknown", "not_sent")
# How many rows the log shows.
MAX_LINES = 50
# How many bad rows an error names; the report has them all.
MAX_NAMED = 20


class InvitesReport:
    """
    What became of each row.

    :param rows: how many rows there were
    :ivar waits_for: what the last wait was for, in words; empty if there was none
    """

    def __init__(self, rows: int = 0) -> None:
        self.rows = rows
        self.waits_for = ""
        self._entries: dict[int, Entry] = {}

    def add(self, *entries: Entry) -> None:
        """Record what became of rows."""
        self._entries.update((entry.row, entry) for entry in entries)

    @property
    def entries(self) -> list[Entry]:
        """One entry per row, in the order of the rows."""
        return [self._entries[number] for number in sorted(self._entries)]

    @property
    def counts(self) -> dict[str, int]:
        """How many rows there were, and how many ended in each status."""
        counted = Counter(entry.status for entry in self._entries.values())
        return {"rows": self.rows, **{status: counted[status] for status in STATUSES}}

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON: ``counts`` and ``addresses``, one per row."""
        return {"counts": self.counts, "addresses": [entry.to_dict() for entry in self.entries]}

    def table(self) -> str:
        """Return the summary and a line for each row with a remarkable end, for the log."""
        lines = [self.summary()]
        remarkable = [item for item in self.entries if item.status not in ("invited", "already_invited")]
        lines += [
            printable(f"  row {item.row:<6} {item.status:<16} {item.email or '-':<40} {item.reason}".rstrip())
            for item in remarkable[:MAX_LINES]
        ]
        if len(remarkable) > MAX_LINES:
            lines.append(f"  … and {len(remarkable) - MAX_LINES} more, all in the report")
        return "\n".join(lines)

    def summary(self) -> str:
        """Return one line for the log."""
        counts = self.counts
        parts = [f"{counts[status]} {status.replace('_', ' ')}" for status in STATUSES if counts[status]]
        return f"{self.rows} rows: {', '.join(parts) or 'nothing to do'}"


class WorkspaceInvitesIncompleteError(WorkspaceError):
    """
    Not everybody was invited. A next try sends only what is missing.

    :param report: what became of each row
    :param cause: the error that ended it; ``None`` if the service refused single rows, or a limit is reached
    :param retry_after: seconds until a limit leaves room; ``None`` if that is not known
    """

    def __init__(
        self,
        message: str,
        report: InvitesReport,
        cause: WorkspaceRequestError | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.report = report
        self.cause = cause
        self.retry_after = retry_after

    @property
    def permanent(self) -> bool:
        """Whether a next try would be refused as well; it is if the service refused single rows."""
        return self.retry_after is None and (self.cause is None or self.cause.permanent)


def describe_invalid(invalid: list[Entry]) -> str:
    """Say which rows are wrong and what to do."""
    return (
        f"Correct the invalid rows ({len(invalid)}), or leave them out with on_invalid='skip': {name_entries(invalid)}"
    )


def name_entries(entries: list[Entry]) -> str:
    """Name the first rows of a list with their reasons."""
    named = "; ".join(
        f"row {item.row} ({item.email or 'no address'}): {item.reason.rstrip('.')}" for item in entries[:MAX_NAMED]
    )
    more = f"; and {len(entries) - MAX_NAMED} more" if len(entries) > MAX_NAMED else ""
    return f"{named}{more}."
