"""The rows of a bulk invite until each has a result."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.api.retry import MAX_SENDS
from airflow_provider_workspace.procedures.invites_report import InvitesReport, WorkspaceInvitesIncompleteError
from airflow_provider_workspace.procedures.roster import Entry, Row

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Invite
    from airflow_provider_workspace.errors import WorkspaceRequestError, WorkspaceStatusError
    from airflow_provider_workspace.procedures.quota import Quota
    from airflow_provider_workspace.procedures.snapshot import Snapshot
    from airflow_provider_workspace.procedures.suspension import SuspensionClock

log = logging.getLogger(__name__)

# After so many refusals in a row, the rows are not the cause.
MAX_REFUSALS = 20

FOUND = "found in the list, after the answer was lost or invalid"
NOT_LISTED = "the service reported success, but does not list the invite"


@dataclass(frozen=True, slots=True)
class _Doubt:
    """
    An unknown outcome of a row.

    :param since: when the response came or was lost, in seconds since 1970
    :param certain: the same by the clock that counts only what has surely passed
    :param error: the error; ``None`` for a success that does not show the invite
    """

    since: float
    certain: float
    error: WorkspaceRequestError | None


class InviteRows:
    """
    The rows without a result. Whatever goes wrong, the lists decide what is sent next.

    :param rows: all rows
    :param report: receives the results
    :param quota: knows who was invited and refused before a deferral
    :param clock: the clock of the procedure
    """

    def __init__(self, rows: Iterable[Row], report: InvitesReport, quota: Quota, clock: SuspensionClock) -> None:
        self.open = {row.key: row for row in rows}
        self.report = report
        self.quota = quota
        self.clock = clock
        self.earlier = quota.sent()
        """Addresses that this task invited before a deferral."""
        self.total = 0
        """Number of rows to send after the first read; 0 before it."""
        self.accepted = False
        """Whether the service accepted any request."""
        self.doubts: dict[str, _Doubt] = {}
        self.tried: set[str] = set()
        """Addresses that a request without a clear response may have invited."""
        self.lost: Counter[str] = Counter()
        """How often the response about an address was lost."""
        self.unlisted: dict[str, Row] = {}
        """Rows that count as invited although the response does not show the invite."""
        self.refused: dict[str, WorkspaceRequestError] = {}
        """Rows that were refused alone, until the lists are read."""
        self.suspects: list[tuple[list[Row], WorkspaceStatusError]] = []
        """Chunks that were refused for one of their rows, until the lists are read."""
        self.parts = [[self.open[key] for key in keys if key in self.open] for keys in quota.parts]
        """Parts of refused chunks, to be sent."""
        self.refusals = 0
        """Number of consecutive requests that were refused, perhaps for one of their rows."""
        self.denied = 0
        """Number of rows that were refused alone with 403 before any request was accepted."""

    # Results of requests

    def accept(self, rows: list[Row], made: list[Invite]) -> int:
        """
        Record a success; if the response shows invites, the outcome of rows that it does not show is unknown.

        :return: number of invited rows
        """
        self.accepted = True
        self.refusals = 0
        ids = {address_key(invite.target_email): invite.id for invite in made if invite.target_email and invite.id}
        missing = [row for row in rows if row.key not in ids] if ids else []
        self.doubt(missing, None)
        invited = [row for row in rows if row not in missing]
        for row in invited:
            self.finish(row, "invited", invite_id=ids.get(row.key))
        if not ids:
            self.unlisted.update((row.key, row) for row in rows)
        self.quota.note_sent(self.clock.now(), [row.key for row in invited])
        return len(invited)

    def doubt(self, rows: list[Row], error: WorkspaceRequestError | None) -> None:
        """Record an unknown outcome."""
        doubt = _Doubt(self.clock.now(), self.clock.certain(), error)
        self.doubts.update((row.key, doubt) for row in rows)
        self.tried.update(row.key for row in rows)
        self.lost.update(row.key for row in rows)

    def refuse(self, rows: list[Row], error: WorkspaceStatusError) -> WorkspaceStatusError | None:
        """
        Record a refused request, perhaps for one of its rows.

        :return: the error, if the rows are not the cause
        """
        self.refusals += 1
        self.tried.update(row.key for row in rows)
        self.quota.note_refused_rows(self.clock.now(), len(rows))
        if len(rows) > 1:
            self.suspects.append((rows, error))
        else:
            self.refused[rows[0].key] = error
            self.denied += error.status == 403 and not self.accepted
        return error if self.refusals >= MAX_REFUSALS or self.denied >= min(2, self.total) else None

    # Results of reading the lists

    def compare(self, seen: Snapshot, read_at: float, consistency_time: float) -> None:
        """
        Finish the rows that the lists, or the consistency time, decide.

        :param read_at: when the read began, in seconds since 1970
        :raises WorkspaceInvitesIncompleteError: if the response about a row was lost too often
        """
        known = _known_addresses(seen)
        missing = [row for row in self.unlisted.values() if row.key not in known]
        self.unlisted = {}
        self.open.update((row.key, row) for row in missing)
        self.doubt(missing, None)
        others = 0
        for row in list(self.open.values()):
            if row.key in self.earlier:
                self.finish(row, "invited", "by an earlier part of this task")
            elif row.key in self.quota.refused:
                self.finish(row, "failed", self.quota.refused[row.key])
            elif row.key not in known:
                continue
            elif row.key in self.tried and known[row.key][0] == "already_invited":
                self.accepted = True
                self.quota.note_sent(self.doubts[row.key].since if row.key in self.doubts else read_at, [row.key])
                self.finish(row, "invited", FOUND)
            else:
                others += bool(self.total) and row.key not in self.tried
                self.finish(row, *known[row.key])
        if others:
            log.warning(
                "Give the tasks that invite a pool with one slot: another task invited %d of these people.", others
            )
        self.total = self.total or len(self.open)
        self._finish_refused()
        self._resolve_doubts(read_at - self.clock.uncertain - consistency_time)

    def _finish_refused(self) -> None:
        """Finish the rows that were refused alone, and split the refused chunks."""
        for key, error in self.refused.items():
            if key in self.open:
                self.quota.refused[key] = _detail(error)
                self.finish(self.open[key], "failed", _detail(error))
        self.refused.clear()
        for chunk, status_error in self.suspects:
            rows = [row for row in chunk if row.key in self.open]
            named = _named_row(status_error, chunk)
            if named in rows:
                self.parts += [[row for row in rows if row == named], [row for row in rows if row != named]]
            elif status_error.status == 403 and not self.accepted:  # it may be the key: try two rows alone
                rows.sort(key=lambda row: row.invite.level or 0)
                self.parts += [rows[:1], rows[1:2], rows[2:]]
            else:
                middle = (len(rows) + 1) // 2
                self.parts += [rows[:middle], rows[middle:]]
        self.suspects.clear()

    def _resolve_doubts(self, before: float) -> None:
        """
        Resolve the unknown outcomes whose consistency time was over when the lists were read: they were not applied.

        :param before: outcomes unknown since this time or earlier are resolved, by the clock of what surely passed
        """
        lost_for_good: WorkspaceRequestError | None = None
        for key, doubt in list(self.doubts.items()):
            if before < doubt.certain - 0.001:  # the rounding of pauses
                continue
            if doubt.error is None:
                self.finish(self.open[key], "failed", NOT_LISTED)
            elif self.lost[key] >= MAX_SENDS:
                lost_for_good = doubt.error
                self.finish(self.open[key], "unknown", str(doubt.error))
            else:
                del self.doubts[key]
        if lost_for_good is not None:
            raise self.incomplete(lost_for_good) from lost_for_good

    # Results of rows

    def finish(self, row: Row, status: str, reason: str = "", invite_id: str | None = None) -> None:
        """Report the result of a row."""
        self.report.add(make_entry(row, status, reason, invite_id))
        del self.open[row.key]
        self.doubts.pop(row.key, None)

    def incomplete(
        self, error: WorkspaceRequestError | None, retry_after: float | None = None
    ) -> WorkspaceInvitesIncompleteError:
        """Report the rows without a result, and return the error to raise."""
        suspected = {row.key: error for rows, error in self.suspects for row in rows}
        for row in list(self.open.values()):
            if row.key in self.doubts:
                self.finish(row, "unknown", str(self.doubts[row.key].error or NOT_LISTED))
            elif row.key in suspected:
                self.finish(row, "unknown", str(suspected[row.key]))
            elif row.key in self.refused:
                self.finish(row, "failed", _detail(self.refused[row.key]))
            elif retry_after is not None:
                self.finish(row, "not_sent", "the limit of invites is reached")
            else:
                self.finish(row, "not_sent", "an earlier request failed")
        why = error if retry_after is None else f"retry in {retry_after:.0f} s: {self.report.waits_for}."
        if retry_after is None and error is not None:
            retry_after = error.retry_after
        msg = f"Not everybody was invited ({self.report.summary()}): {why} The next try sends only the missing invites."
        return WorkspaceInvitesIncompleteError(msg, self.report, error, retry_after)


def make_entry(row: Row, status: str, reason: str = "", invite_id: str | None = None) -> Entry:
    """Return the entry of a row."""
    return Entry(row.number, row.invite.target_email, status, reason, invite_id)


def _named_row(error: WorkspaceStatusError, chunk: list[Row]) -> Row | None:
    """Return the row of a chunk that the error names by number, as in ``6__level``; it is sent alone to be sure."""
    number = re.search(r"\d{1,6}", error.attr or "")
    index = int(number.group()) if number else len(chunk)
    return chunk[index] if index < len(chunk) else None


def _known_addresses(seen: Snapshot) -> dict[str, tuple[str, str]]:
    """Return status and reason of members and of people with an open invite, by address key."""
    known: dict[str, tuple[str, str]] = {}
    known.update(dict.fromkeys(seen.open_invites(), ("already_invited", "holds an invite that has not expired")))
    known.update(dict.fromkeys(seen.members, ("member", "is a member already")))
    return known


def _detail(error: WorkspaceRequestError) -> str:
    return getattr(error, "detail", None) or str(error)
