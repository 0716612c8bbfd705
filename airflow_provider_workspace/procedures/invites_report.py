"""The report of a bulk invite: the result for each row."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.database_limits import storable
from airflow_provider_workspace.errors import MAX_NAMED, WorkspaceError, WorkspaceRequestError, visible

if TYPE_CHECKING:
    from airflow_provider_workspace.procedures.roster import Entry

STATUSES = ("invited", "already_invited", "member", "duplicate", "invalid", "failed", "unknown", "not_sent", "planned")
# Statuses that need attention.
INVITES_THAT_NEED_ATTENTION = ("invalid", "failed", "unknown", "not_sent")
# Maximum number of rows in the log.
MAX_LOGGED_ROWS = 50
# Maximum number of rows that an error names for one reason.
MAX_ROWS_OF_REASON = 5


class InvitesReport:
    """
    The result for each row.

    :ivar rows: number of rows, without blank ones
    :ivar blank: number of blank rows, which were skipped
    :ivar left_out: number of rows that ``where`` left out
    :ivar remarks: what people must know about how the rows were read
    :ivar waits_for: reason of the last wait, for people; empty if there was none
    """

    def __init__(self) -> None:
        self.rows = 0
        self.blank = 0
        self.left_out = 0
        self.remarks: list[str] = []
        self.waits_for = ""
        self._entries: dict[int, Entry] = {}

    def __repr__(self) -> str:
        """Return the counts, for a task that prints the report."""
        return f"<InvitesReport: {self.summary()}>"

    def add(self, *entries: Entry) -> None:
        for entry in entries:
            self._entries[entry.row] = entry

    def entry_of(self, row: int) -> Entry | None:
        """Return the result of a row; ``None`` if it has none yet."""
        return self._entries.get(row)

    @property
    def entries(self) -> list[Entry]:
        """One entry per row, in the order of the rows."""
        return [self._entries[number] for number in sorted(self._entries)]

    @property
    def counts(self) -> dict[str, int]:
        """
        Number of rows, in total and by status.

        ``blank`` and ``left_out`` (by ``where``) only if there are such rows, which no total includes.
        """
        by_status = Counter(entry.status for entry in self._entries.values())
        counts = {"rows": self.rows}
        for status in STATUSES:
            counts[status] = by_status[status]
        if self.blank:
            counts["blank"] = self.blank
        if self.left_out:
            counts["left_out"] = self.left_out
        return counts

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON: ``counts``, ``addresses``, one per row, and ``remarks`` if there are any."""
        report: dict[str, Any] = {"counts": self.counts, "addresses": [entry.to_dict() for entry in self.entries]}
        if self.remarks:
            report["remarks"] = self.remarks
        cleaned: dict[str, Any] = storable(report)
        return cleaned

    # For Airflow: a ``@task`` may return the report.
    serialize = to_dict

    @staticmethod
    def deserialize(report: dict[str, Any], _version: int) -> dict[str, Any]:
        """Return what the next task gets from XCom: plain JSON."""
        return report

    def table(self) -> str:
        """Return the summary and a line for each row that was not invited, for the log."""
        lines = [self.summary(), *self.remarks]
        others = [entry for entry in self.entries if entry.status not in ("invited", "already_invited")]
        lines += [_line(entry) for entry in others[:MAX_LOGGED_ROWS]]
        if len(others) > MAX_LOGGED_ROWS:
            lines.append(f"  … and {len(others) - MAX_LOGGED_ROWS} more, all in the report")
        return "\n".join(lines)

    def summary(self) -> str:
        """Return one line for the log."""
        counts = self.counts
        numbers: list[str] = []
        for status in STATUSES:
            if counts[status]:
                label = status.replace("_", " ")
                numbers.append(f"{counts[status]} {label}")
        left = self.rows - len(self._entries)  # without a result yet
        if left:
            numbers.append(f"{left} left")
        if not numbers:
            numbers.append("nothing to do")
        if self.blank:
            numbers.append(f"{self.blank} blank rows skipped")
        if self.left_out:
            numbers.append(f"{self.left_out} left out by where")
        return f"{self.rows} rows: {', '.join(numbers)}"


class WorkspaceInvitesIncompleteError(WorkspaceError):
    """
    Some people were not invited. The next try sends only the missing invites.

    :param report: the result for each row
    :param cause: the error that stopped it; ``None`` if the service refused single rows or a limit is reached
    :param retry_after: seconds until a limit permits more invites; ``None`` if not known
    """

    problem = "invites-incomplete"

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
        """Whether the next try would fail as well, as it does if the service refused single rows."""
        return self.retry_after is None and (self.cause is None or self.cause.permanent)


def name_entries(entries: list[Entry]) -> str:
    """Return the first rows by their reasons: each reason once, with the number of its rows."""
    rows_by_reason: dict[str, list[str]] = {}
    for entry in entries:
        rows = rows_by_reason.setdefault(entry.reason.rstrip("."), [])
        rows.append(f"row {entry.row} ({entry.email or 'no address'})")
    lines: list[str] = []
    for reason, rows in rows_by_reason.items():
        first, *others = rows
        line = f"{first}: {reason}"
        if others:
            more = ", …" if len(others) > MAX_ROWS_OF_REASON else ""
            line += f" (and {len(others)} more: {', '.join(others[:MAX_ROWS_OF_REASON])}{more})"
        lines.append(line)
    if len(lines) > MAX_NAMED:
        lines[MAX_NAMED:] = [f"and {len(lines) - MAX_NAMED} more problems"]
    return "; ".join(lines) + "."


def _line(entry: Entry) -> str:
    """Return a row for the log."""
    email = visible(entry.email or "-")
    line = f"  row {entry.row:<6} {entry.status:<16} {email:<40} {visible(entry.reason)}"
    return line.rstrip()
