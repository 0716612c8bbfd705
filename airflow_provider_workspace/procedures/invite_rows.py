"""What is known of each row while many people are invited, until it has its end."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_workspace.api.retry import MAX_SENDS
from airflow_provider_workspace.procedures.invites_report import InvitesReport, WorkspaceInvitesIncompleteError
from airflow_provider_workspace.procedures.roster import Entry, Row, address_key

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Invite
    from airflow_provider_workspace.errors import WorkspaceRequestError, WorkspaceStatusError
    from airflow_provider_workspace.procedures.quota import Quota
    from airflow_provider_workspace.procedures.snapshot import Snapshot

log = logging.getLogger(__name__)

# After so many refusals in a row, it is not the rows.
MAX_REFUSALS = 20

FOUND = "found when reading back, after an answer was lost or bad"
NOT_LISTED = "the service answered with success, but does not list the invite"


@dataclass(frozen=True, slots=True)
class _Doubt:
    """
    That a row may have been invited.

    :param since: when its answer came, or was lost, in seconds since 1970
    :param error: what was lost; ``None`` for a success that does not show the invite
    """

    since: float
    error: WorkspaceRequestError | None


class InviteRows:
    """
    The rows that have no end yet. Whatever goes wrong, the lists decide what is sent next.

    :param rows: all rows
    :param report: where their ends are noted
    :param quota: what it keeps over the waits of a task says who was invited and refused before
    """

    def __init__(self, rows: Iterable[Row], report: InvitesReport, quota: Quota) -> None:
        self.open = {row.key: row for row in rows}
        self.report = report
        self.quota = quota
        self.earlier = quota.sent()
        """Whom an earlier part of the task invited, before a wait."""
        self.total = 0
        """How many rows were to be sent after the first reading; 0 before it."""
        self.accepted = False
        """Whether the service accepted any request."""
        self.doubts: dict[str, _Doubt] = {}
        self.tried: set[str] = set()
        """Whom a request without a clear answer may have invited."""
        self.lost: Counter[str] = Counter()
        """How often that was because the answer was lost."""
        self.unlisted: dict[str, Row] = {}
        """Who counts as invited because of an answer that does not show it."""
        self.refused: dict[str, WorkspaceRequestError] = {}
        """Single rows that were refused, until the lists say whether they are there by now."""
        self.suspects: list[tuple[list[Row], WorkspaceStatusError]] = []
        """Chunks that were refused for one of their rows, until the lists say what arrived of them."""
        self.parts = [[self.open[key] for key in keys if key in self.open] for keys in quota.parts]
        """Parts of such chunks, to be sent."""
        self.refusals = 0
        """How many requests in a row were refused, perhaps for one of their rows."""
        self.denied = 0
        """How many rows were refused alone with 403 before anything was accepted."""

    # What a request says

    def accept(self, rows: list[Row], made: list[Invite], now: float) -> int:
        """
        Note a success; if it shows invites, those that it does not show are in doubt.

        :return: how many rows are invited
        """
        self.accepted = True
        self.refusals = 0
        ids = {address_key(invite.target_email): invite.id for invite in made if invite.target_email and invite.id}
        missing = [row for row in rows if row.key not in ids] if ids else []
        self.doubt(missing, None, now)
        invited = [row for row in rows if row not in missing]
        for row in invited:
            self.end(row, "invited", invite_id=ids.get(row.key))
        if not ids:
            self.unlisted.update((row.key, row) for row in rows)
        self.quota.note_sent(now, [row.key for row in invited])
        return len(invited)

    def doubt(self, rows: list[Row], error: WorkspaceRequestError | None, now: float) -> None:
        """Note that rows may have been invited, or may be yet."""
        self.doubts.update((row.key, _Doubt(now, error)) for row in rows)
        self.tried.update(row.key for row in rows)
        self.lost.update(row.key for row in rows)

    def refuse(self, rows: list[Row], error: WorkspaceStatusError, now: float) -> WorkspaceStatusError | None:
        """
        Note that a request was refused, perhaps for one of its rows.

        :return: the error, if it is not about the rows
        """
        self.refusals += 1
        self.tried.update(row.key for row in rows)
        self.quota.note_refused_rows(now, len(rows))
        if len(rows) > 1:
            self.suspects.append((rows, error))
        else:
            self.refused[rows[0].key] = error
            self.denied += error.status == 403 and not self.accepted
        return error if self.refusals >= MAX_REFUSALS or self.denied >= min(2, self.total) else None

    # What the lists say

    def compare(self, seen: Snapshot, read_at: float, now: float, consistency_time: float) -> None:
        """
        End the rows that the lists, or the time, decide.

        :param read_at: when the reading began, in seconds since 1970
        :raises WorkspaceInvitesIncompleteError: if the answer about a row was lost too often
        """
        known = _known_addresses(seen)
        missing = [row for row in self.unlisted.values() if row.key not in known]
        self.unlisted = {}
        self.open.update((row.key, row) for row in missing)
        self.doubt(missing, None, now)
        others = 0
        for row in list(self.open.values()):
            if row.key in self.earlier:
                self.end(row, "invited", "by an earlier part of this task")
            elif row.key in self.quota.refused:
                self.end(row, "failed", self.quota.refused[row.key])
            elif row.key not in known:
                continue
            elif row.key in self.tried and known[row.key][0] == "already_invited":
                self.accepted = True
                self.quota.note_sent(self.doubts[row.key].since if row.key in self.doubts else read_at, [row.key])
                self.end(row, "invited", FOUND)
            else:
                others += bool(self.total) and row.key not in self.tried
                self.end(row, *known[row.key])
        if others:
            log.warning("Give tasks that invite a pool with one slot: others invited %d of these people.", others)
        self.total = self.total or len(self.open)
        self._end_refused()
        self._end_doubts(read_at - consistency_time)

    def _end_refused(self) -> None:
        """End the rows that were refused alone, and split the chunks that were refused for one of theirs."""
        for key, error in self.refused.items():
            if key in self.open:
                self.quota.refused[key] = _detail_of(error)
                self.end(self.open[key], "failed", _detail_of(error))
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

    def _end_doubts(self, before: float) -> None:
        """
        End the doubts whose time was over when the lists were read: they do not show them, so they were not applied.

        :param before: since when a doubt may be at the latest, in seconds since 1970
        """
        lost_for_good: WorkspaceRequestError | None = None
        for key, doubt in list(self.doubts.items()):
            if before < doubt.since - 0.001:  # what pauses lose to rounding
                continue
            if doubt.error is None:
                self.end(self.open[key], "failed", NOT_LISTED)
            elif self.lost[key] >= MAX_SENDS:
                lost_for_good = doubt.error
                self.end(self.open[key], "unknown", str(doubt.error))
            else:
                del self.doubts[key]
        if lost_for_good is not None:
            raise self.incomplete(lost_for_good) from lost_for_good

    # Ends

    def end(self, row: Row, status: str, reason: str = "", invite_id: str | None = None) -> None:
        """Report what became of a row."""
        self.report.add(entry_of(row, status, reason, invite_id))
        del self.open[row.key]
        self.doubts.pop(row.key, None)

    def incomplete(
        self, error: WorkspaceRequestError | None, retry_after: float | None = None
    ) -> WorkspaceInvitesIncompleteError:
        """Report what is known of the rows that are open, and return the error that ends it."""
        halves = {row.key: error for rows, error in self.suspects for row in rows}
        for row in list(self.open.values()):
            if row.key in self.doubts:
                self.end(row, "unknown", str(self.doubts[row.key].error or NOT_LISTED))
            elif row.key in halves:
                self.end(row, "unknown", str(halves[row.key]))
            elif row.key in self.refused:
                self.end(row, "failed", _detail_of(self.refused[row.key]))
            elif retry_after is not None:
                self.end(row, "not_sent", "the limit of invites is reached")
            else:
                self.end(row, "not_sent", "an earlier request failed")
        if retry_after is None and error is not None:
            retry_after = error.retry_after
        why = error or f"The limit of invites is reached: retry in {retry_after:.0f} s."
        msg = f"Not everybody was invited ({self.report.summary()}): {why} The next try sends only what is missing."
        return WorkspaceInvitesIncompleteError(msg, self.report, error, retry_after)


def entry_of(row: Row, status: str, reason: str = "", invite_id: str | None = None) -> Entry:
    """Return the entry of a row."""
    return Entry(row.number, row.invite.target_email, status, reason, invite_id)


def _named_row(error: WorkspaceStatusError, chunk: list[Row]) -> Row | None:
    """Return the row of a chunk whose number the service names, as in ``6__level``; it is tried alone to be sure."""
    number = re.search(r"\d{1,6}", error.attr or "")
    index = int(number.group()) if number else len(chunk)
    return chunk[index] if index < len(chunk) else None


def _known_addresses(seen: Snapshot) -> dict[str, tuple[str, str]]:
    """Return who is a member or holds a living invite: address key -> status and reason."""
    known: dict[str, tuple[str, str]] = {}
    known.update(dict.fromkeys(seen.living(), ("already_invited", "holds an invite that has not expired")))
    known.update(dict.fromkeys(seen.members, ("member", "is a member already")))
    return known


def _detail_of(error: WorkspaceRequestError) -> str:
    """Return the service's own words about a row, if it has any."""
    return getattr(error, "detail", None) or str(error)
