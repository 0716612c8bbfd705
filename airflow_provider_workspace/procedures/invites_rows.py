"""The rows of a bulk invite that have no result yet: what lists and requests said of each, and what is sent next."""

from __future__ import annotations

import logging
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.api.retry import MAX_SENDS
from airflow_provider_workspace.procedures.invites_report import InvitesReport, WorkspaceInvitesIncompleteError
from airflow_provider_workspace.procedures.roster import Entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_workspace.api.models import Invite
    from airflow_provider_workspace.api.operations.invites import InviteFields
    from airflow_provider_workspace.client.settings import Settings
    from airflow_provider_workspace.errors import WorkspaceRequestError, WorkspaceStatusError
    from airflow_provider_workspace.procedures.quota import Quota
    from airflow_provider_workspace.procedures.roster import Row
    from airflow_provider_workspace.procedures.snapshot import Snapshot

log = logging.getLogger(__name__)

# How many chunks may have an unknown outcome before the others wait for them.
MAX_IN_DOUBT = 40
# After so many refused requests in a row, the rows are not the cause.
MAX_REFUSED_REQUESTS = 20
# So many rows of a refused request are sent one by one.
MAX_ONE_BY_ONE = 4
# By so many seconds, pauses may be rounded.
ROUNDING = 0.001

FOUND = "found in the list, after the answer was lost or invalid"
NOT_LISTED = "the service reported success, but does not list the invite"


@dataclass(frozen=True, slots=True)
class Moment:
    """
    A time by both clocks.

    :param wall: seconds since 1970
    :param monotonic: seconds of the clock that nobody can set
    """

    wall: float
    monotonic: float


@dataclass(frozen=True, slots=True)
class Doubt:
    """
    An unknown outcome.

    :param since: when the response came or was lost
    :param error: the error; ``None`` for a success that does not show the invite
    """

    since: Moment
    error: WorkspaceRequestError | None


@dataclass(slots=True, eq=False)
class OpenRow:
    """
    A row without a result.

    :param number: number of the row in the roster
    :param key: the address in the form in which addresses are compared
    :param may_be_invited: whether a request without a clear response may have invited it
    :param doubt: its unknown outcome; it is not sent again until the lists resolve that
    :param times_in_doubt: how often its outcome was unknown
    """

    number: int
    key: str
    invite: InviteFields
    may_be_invited: bool = False
    doubt: Doubt | None = None
    times_in_doubt: int = 0


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that was refused, perhaps for one of its rows."""

    rows: list[OpenRow]
    error: WorkspaceStatusError


class OpenRows:
    """
    The rows without a result; it decides, and neither sends nor waits.

    The lists finish rows (:meth:`compare`), and so do clear responses (:meth:`accept`). Rows without a clear one are in
    doubt (:meth:`doubt`) or refused (:meth:`refuse`) until the lists are read again. :meth:`chunks` are the next
    requests.

    :ivar open: the rows by key
    :ivar total: number of rows to send after the first reading; 0 before it
    :ivar has_sent: whether a request may have invited somebody
    """

    def __init__(self, rows: list[Row], report: InvitesReport, quota: Quota, settings: Settings) -> None:
        self.open = {row.key: OpenRow(row.number, row.key, row.invite) for row in rows}
        self.total = 0
        self.has_sent = False
        self._report = report
        self._quota = quota
        self._settings = settings
        self._invited_before = quota.sent()
        """Addresses that this task invited before a deferral."""
        self._has_accepted = False
        """Whether the service accepted any request."""
        self._refusals: list[Refusal] = []
        """Until the lists are read: a refused request may have been applied in part."""
        self._refused_requests = 0
        """Number of requests refused in a row."""
        self._forbidden_rows = 0
        """Number of rows refused alone with 403 before any success."""

    # What the lists show

    def compare(self, seen: Snapshot, read_at: Moment) -> None:
        """
        Finish the rows that the lists decide, and split the requests that were refused.

        :raises WorkspaceInvitesIncompleteError: if the outcome of a row was unknown too often
        """
        self._finish_listed(seen, read_at)
        for refusal in self._refusals:
            if len(refusal.rows) == 1:
                self._finish_refused(refusal)
            else:
                self._quota.parts[:0] = [[row.key for row in part] for part in self._parts_of(refusal)]
        self._refusals.clear()
        self._resolve_doubts(read_at)

    def _finish_listed(self, seen: Snapshot, read_at: Moment) -> None:
        """Finish the rows of members and of people with an open invite."""
        invited = seen.open_invites()
        was_read_before = self.total > 0
        by_others = 0
        for row in list(self.open.values()):
            if row.key in self._invited_before:
                self.finish(row, "invited", "by an earlier part of this task")
            elif row.key in self._quota.refused:
                self.finish(row, "failed", self._quota.refused[row.key])
            elif row.key in seen.members:
                if was_read_before and not row.may_be_invited:
                    by_others += 1
                self.finish(row, "member", "is a member already")
            elif row.key not in invited:
                continue
            elif row.may_be_invited:
                self._finish_found(row, read_at)
            else:
                if was_read_before:
                    by_others += 1
                self.finish(row, "already_invited", "holds an invite that has not expired")
        if by_others:
            log.warning(
                "Another task invited %d of these people. Give the tasks that invite a pool with one slot.", by_others
            )
        if not was_read_before:
            self.total = len(self.open)

    def _finish_found(self, row: OpenRow, read_at: Moment) -> None:
        """Finish a row that an earlier request has invited, as the list shows."""
        self._has_accepted = True
        sent_at = read_at if row.doubt is None else row.doubt.since
        self._quota.note_sent(sent_at.wall, [row.key])
        was_reported = row.doubt is not None and row.doubt.error is None
        self.finish(row, "invited", "" if was_reported else FOUND)

    def _finish_refused(self, refusal: Refusal) -> None:
        """Finish a row that was refused alone, unless the lists show it."""
        (row,) = refusal.rows
        if row.key in self.open:
            reason = _detail(refusal.error)
            self._quota.refused[row.key] = reason
            self.finish(row, "failed", reason)

    def _parts_of(self, refusal: Refusal) -> list[list[OpenRow]]:
        """
        Return the requests in which the rows of a refused one are sent.

        They find the row that is the cause in fewer requests than one by one, and with fewer rows that are refused, and
        count against the limits, than by halves.
        """
        rows = [row for row in refusal.rows if row.key in self.open]
        named = _named_row(refusal)
        if named in rows:
            others = [row for row in rows if row is not named]
            return [[named], others]
        if refusal.error.status == 403 and not self._has_accepted:  # it may be the key: try two rows alone
            rows.sort(key=lambda row: row.invite.level or 0)
            return [rows[:1], rows[1:2], rows[2:]]
        size = 1 if len(rows) <= MAX_ONE_BY_ONE else math.isqrt(len(rows))
        return _in_chunks(rows, size)

    def _resolve_doubts(self, read_at: Moment) -> None:
        """Resolve the unknown outcomes whose consistency time was over when the lists were read: not applied."""
        lost_for_good: WorkspaceRequestError | None = None
        for row in list(self.open.values()):
            doubt = row.doubt
            if doubt is None:
                continue
            age = read_at.monotonic - doubt.since.monotonic
            if age < self._settings.consistency_time - ROUNDING:
                continue
            if doubt.error is None:
                self.finish(row, "failed", NOT_LISTED)
            elif row.times_in_doubt >= MAX_SENDS:
                lost_for_good = doubt.error
                self.finish(row, "unknown", str(doubt.error))
            else:
                row.doubt = None
        if lost_for_good is not None:
            raise self.incomplete(lost_for_good) from lost_for_good

    # What requests returned

    def accept(self, rows: list[OpenRow], made: list[Invite], now: Moment) -> None:
        """Record a success; the outcome of rows whose invites the response does not show is unknown."""
        self._has_accepted = True
        self._refused_requests = 0
        ids = {address_key(invite.target_email): invite.id for invite in made if invite.target_email and invite.id}
        shown = [row for row in rows if row.key in ids]
        self.doubt([row for row in rows if row.key not in ids], None, now)
        for row in shown:
            self.finish(row, "invited", invite_id=ids[row.key])
        self._quota.note_sent(now.wall, [row.key for row in shown])

    def doubt(self, rows: list[OpenRow], error: WorkspaceRequestError | None, now: Moment) -> None:
        """Record an unknown outcome."""
        self.has_sent = True
        doubt = Doubt(now, error)
        for row in rows:
            row.doubt = doubt
            row.times_in_doubt += 1
            row.may_be_invited = True

    def refuse(self, rows: list[OpenRow], error: WorkspaceStatusError, now: Moment) -> None:
        """Record a refused request, perhaps for one of its rows; it may have been applied in part."""
        self.has_sent = True
        for row in rows:
            row.may_be_invited = True
        self._refusals.append(Refusal(rows, error))
        self._refused_requests += 1
        if len(rows) == 1 and error.status == 403 and not self._has_accepted:
            self._forbidden_rows += 1
        self._quota.note_refused_rows(now.wall, len(rows))

    def are_not_the_cause(self) -> bool:
        """Return whether so much was refused that no row can be the cause: perhaps the key may not invite."""
        return self._refused_requests >= MAX_REFUSED_REQUESTS or self._forbidden_rows >= min(2, self.total)

    # What is sent next

    def doubts(self) -> list[Doubt]:
        """Return the unknown outcome of each row that has one; such rows are not sent."""
        return [row.doubt for row in self.open.values() if row.doubt is not None]

    def must_look_up(self) -> bool:
        """Return whether so many answers were lost that nothing else is sent before they are looked up."""
        lost = [doubt for doubt in self.doubts() if doubt.error is not None]
        most = MAX_IN_DOUBT * self._settings.bulk_invite_limit if self._has_accepted else 1
        return len(lost) >= most

    def chunks(self, granted: int) -> list[list[OpenRow]]:
        """Return the rows of each request, parts of refused ones first; together as many as are granted."""
        sendable = {key: row for key, row in self.open.items() if row.doubt is None}
        self._quota.parts[:] = [part for part in self._quota.parts if any(key in self.open for key in part)]
        chunks: list[list[OpenRow]] = []
        for part in self._quota.parts:
            rows = [
                sendable.pop(key) for key in part if key in sendable
            ]  # a row is sent with the first part that has it
            chunks.append(rows)
        chunks += _in_chunks(list(sendable.values()), self._size())
        permitted: list[list[OpenRow]] = []
        for chunk in chunks:
            fitting = chunk[:granted]
            if fitting:
                permitted.append(fitting)
                granted -= len(fitting)
        return permitted

    def _size(self) -> int:
        """Return the number of rows of a request; a limit may be below the usual one."""
        limit = 1 if self._settings.bulk_invite_body == "object" else self._settings.bulk_invite_limit
        return max(1, limit >> self._quota.refusals)

    # Results

    def finish(self, row: OpenRow, status: str, reason: str = "", invite_id: str | None = None) -> None:
        """Report the result of a row."""
        self._report.add(Entry(row.number, row.invite.target_email, status, reason, invite_id))
        del self.open[row.key]

    def incomplete(
        self, error: WorkspaceRequestError | None, retry_after: float | None = None
    ) -> WorkspaceInvitesIncompleteError:
        """Report the rows without a result, and return the error to raise."""
        refusals = {row.key: refusal for refusal in self._refusals for row in refusal.rows}
        for row in list(self.open.values()):
            refusal = refusals.get(row.key)
            if row.doubt is not None:
                self.finish(row, "unknown", str(row.doubt.error or NOT_LISTED))
            elif refusal is not None and len(refusal.rows) == 1:
                self.finish(row, "failed", _detail(refusal.error))
            elif refusal is not None:
                self.finish(row, "unknown", str(refusal.error))
            elif retry_after is not None:
                self.finish(row, "not_sent", "the limit of invites is reached")
            else:
                self.finish(row, "not_sent", "an earlier request failed")
        why = str(error) if retry_after is None else f"retry in {retry_after:.0f} s: {self._report.waits_for}."
        if retry_after is None and error is not None:
            retry_after = error.retry_after
        msg = (
            f"Not everybody was invited ({self._report.summary()}): {why} A retry, or the task once it is cleared, "
            "sends only the missing invites."
        )
        return WorkspaceInvitesIncompleteError(msg, self._report, error, retry_after)


def _in_chunks(rows: Sequence[OpenRow], size: int) -> list[list[OpenRow]]:
    return [list(rows[start : start + size]) for start in range(0, len(rows), size)]


def _named_row(refusal: Refusal) -> OpenRow | None:
    """Return the row that the error names by number, as in ``6__level``; it is sent alone to be sure."""
    number = re.search(r"\d{1,6}", refusal.error.attr or "")
    if number is None:
        return None
    index = int(number.group())
    return refusal.rows[index] if index < len(refusal.rows) else None


def _detail(error: WorkspaceStatusError) -> str:
    return error.detail or str(error)
