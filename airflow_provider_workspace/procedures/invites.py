"""
Invite many people, each exactly once.

Read the lists, send the invites that are missing, and read again, until each row has a result. Whatever goes wrong, the
lists decide what is sent next: a bulk invite reads, sends and waits; the rows without a result (:class:`OpenRows`)
decide what lists and responses mean, and what is sent; the quota
(:mod:`~airflow_provider_workspace.procedures.quota`) says how many, and when.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.api.operations.invites import CreateInvites
from airflow_provider_workspace.api.outcome import is_in_doubt, is_refused
from airflow_provider_workspace.api.retry import MAX_SENDS, MAX_WAIT, look_up_pauses
from airflow_provider_workspace.api.timestamps import parse_timestamp
from airflow_provider_workspace.errors import (
    WorkspaceInputError,
    WorkspaceRateLimitError,
    WorkspaceRequestError,
    WorkspaceStatusError,
    shown,
)
from airflow_provider_workspace.procedures.invites_report import (
    InvitesReport,
    WorkspaceInvitesIncompleteError,
    name_entries,
)
from airflow_provider_workspace.procedures.plan import Change, Plan
from airflow_provider_workspace.procedures.quota import DAY, Quota
from airflow_provider_workspace.procedures.roster import Entry, Roster, check_roster
from airflow_provider_workspace.procedures.snapshot import take_snapshot

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Invite
    from airflow_provider_workspace.api.operations.invites import InviteFields
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.client.settings import Settings
    from airflow_provider_workspace.procedures.ensure import Memory
    from airflow_provider_workspace.procedures.journal import Journal, Sending
    from airflow_provider_workspace.procedures.roster import Row
    from airflow_provider_workspace.procedures.snapshot import Snapshot

log = logging.getLogger(__name__)

# The note of a task that sends or has sent invites; it stays, because the task may be run again before they are listed.
INVITING = "invites"
# How old that note may get while requests are sent, and how often the progress is told, in seconds.
NOTE_SECONDS = 5.0
# The note of a task that withdraws open invites: who accepts one at the same time may be listed later.
WITHDRAWING = "withdrawn invites"
# The longest time without a new invite, in seconds.
MAX_IDLE = 2 * DAY
# How old the lists may be when a request is sent, and how long reading them may take, in seconds: longer ones are read
# again, because the process may have been suspended.
FRESH_SECONDS = 60.0
# How many readings of a task are repeated because they took so long.
MAX_SLOW_READINGS = 2
# How many chunks may have an unknown outcome before the others wait for them.
MAX_IN_DOUBT = 40
# After so many refused requests in a row, the rows are not the cause.
MAX_REFUSED_REQUESTS = 20
# So many rows of a refused request are sent one by one.
MAX_ONE_BY_ONE = 4
# What may have come of an invite that an earlier try was about to send, if its person is in the lists.
BEGUN = ("", "invited", "unknown")
# By so many seconds, pauses may be rounded.
ROUNDING = 0.001

# The end of an error of a task that remembers what it sent.
RUN_AGAIN = "A retry, or the task once it is cleared, sends only the missing invites."
FOUND = "found in the list, after the answer was lost or invalid"
NOT_LISTED = "the service reported success, but does not list the invite"


def wait_for_consistency(client: WorkspaceClient, memory: Memory, *notes: str) -> None:
    """
    Wait until the lists show the invites that an earlier try of the task may have sent.

    :param notes: other notes of an earlier try to wait for, such as :data:`WITHDRAWING`
    """
    seconds = client.settings.consistency_time + NOTE_SECONDS
    for note in (INVITING, *notes):
        age = memory.age(note)
        if age is not None and age < seconds:
            log.info("An earlier try may have changed %s just now: waiting until the lists show that.", note)
            client.pause(seconds - age)


def invite_all(
    client: WorkspaceClient,
    invites: Iterable[Mapping[str, Any]],
    *,
    organization_id: str,
    clock: Callable[[], float],
    monotonic: Callable[[], float],
    on_invalid: Literal["fail", "skip"] = "fail",
    memory: Memory | None = None,
    kept: MutableMapping[str, Any] | None = None,
    max_wait: float = MAX_WAIT,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    report: InvitesReport | None = None,
    dry_run: bool = False,
    why_not: Callable[[str, int | str | None], str] = lambda _email, _level: "",
    journal: Journal | None = None,
    withdrawn: Collection[str] = (),
) -> InvitesReport:
    """
    Invite everybody who is not a member and has no open invite.

    :param invites: rows, see :func:`~airflow_provider_workspace.procedures.roster.check_roster`
    :param clock: returns the seconds since 1970
    :param monotonic: returns the seconds of a clock that nobody can set
    :param on_invalid: ``fail`` before anything is sent if a row is invalid, or ``skip`` such rows
    :param memory: what the task remembers across its tries; ``None`` outside of a task
    :param kept: plain JSON that the caller keeps if it leaves at a pause and begins again
    :param max_wait: longest wait in seconds for a limit; a longer one is an error
    :param progress: called with the number of finished addresses and of all
    :param report: an empty report, for callers that read it meanwhile
    :param dry_run: send nothing; the status of the people to invite is ``planned``
    :param why_not: returns why an address must not be invited at a level; empty if it may be
    :param journal: where each row is noted before it is sent
    :param withdrawn: ids of invites that were withdrawn just now, which lists may still show
    :return: the result for each row
    :raises WorkspaceInputError: for an invalid row, before anything is sent
    :raises WorkspaceInvitesIncompleteError: if some people were not invited
    """
    if on_invalid not in ("fail", "skip"):
        raise WorkspaceInputError(f"on_invalid is {shown(on_invalid)}; expected 'fail' or 'skip'")
    roster = check_roster(invites, datetime.fromtimestamp(clock(), timezone.utc))
    report = InvitesReport() if report is None else report
    late = [Entry(row.number, row.invite.target_email, "invalid", row.end.over) for row in roster.ended]
    _begin_report(report, roster, late)
    # Later, a row that ended meanwhile stops nobody.
    wrong = roster.invalid if kept else [*roster.invalid, *late]
    if wrong and on_invalid == "fail":
        raise WorkspaceInputError(
            f"Invalid rows: {len(wrong)}. Correct them, or leave them out with on_invalid='skip': "
            f"{name_entries(wrong)}",
            problem="rows-invalid",
        )
    if not roster.rows:
        return report
    if memory is not None:
        wait_for_consistency(client, memory)
    quota = Quota(client.settings.invites_per_hour, client.settings.invites_per_day, kept)
    quota.kept.setdefault("progress_at", clock())
    place = client.settings.organization_at_service(organization_id)
    rows = OpenRows(roster.rows, report, quota, client.settings, journal.earlier_at(place) if journal else {})
    bulk_invite = _BulkInvite(client, organization_id, rows, quota, Clock(clock, monotonic), memory, why_not, journal)
    bulk_invite.withdrawn = withdrawn
    if dry_run:
        bulk_invite.read()
        for row in list(rows.open.values()):
            rows.finish(row, "planned", "is neither a member nor invited")
        return report
    bulk_invite.run(report, progress, max_wait)
    quota.kept.clear()
    refused = [entry for entry in report.entries if entry.status == "failed"]
    if refused and on_invalid == "fail":
        raise WorkspaceInvitesIncompleteError(
            f"{len(refused)} of {report.rows} rows were refused; the others are done. {name_entries(refused)}",
            report,
        )
    return report


def _begin_report(report: InvitesReport, roster: Roster, late: list[Entry]) -> None:
    """Report what is known before anything is read; ``late`` are the rows whose end is over."""
    report.rows = len(roster.rows) + len(late) + len(roster.invalid) + len(roster.duplicates)
    report.blank = roster.blank
    report.left_out = roster.left_out
    report.remarks = roster.remarks
    report.add(*roster.invalid, *late, *roster.duplicates)


class Clock:
    """Both clocks of a process; a pause has surely taken its seconds, whatever they say."""

    def __init__(self, wall: Callable[[], float], monotonic: Callable[[], float]) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._wall_lag = 0.0
        self._monotonic_lag = 0.0

    def now(self) -> Moment:
        return Moment(self._wall() + self._wall_lag, self._monotonic() + self._monotonic_lag)

    def seconds_since(self, then: Moment) -> float:
        """Return the seconds that have passed by the clock that says more; a clock that was set back counts, too."""
        now = self.now()
        return max(abs(now.wall - then.wall), abs(now.monotonic - then.monotonic))

    def pause(self, client: WorkspaceClient, seconds: float) -> None:
        """Pause, and note by how much the clocks say less."""
        before = self.now()
        client.pause(seconds)
        after = self.now()
        self._wall_lag += max(0.0, before.wall + seconds - after.wall)
        self._monotonic_lag += max(0.0, before.monotonic + seconds - after.monotonic)


class Reading:
    """
    When the lists were read, and how long that counts as fresh.

    :ivar at: when the last reading began
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._fresh_for = FRESH_SECONDS
        self._slow_readings = 0
        self.at = clock.now()

    def begin(self) -> None:
        self.at = self._clock.now()

    def was_fast(self) -> bool:
        """Return whether the lists were read fast enough to be used; only so many slow readings are repeated."""
        seconds = self._clock.seconds_since(self.at)
        self._fresh_for = max(FRESH_SECONDS, 5 * seconds)
        if seconds <= FRESH_SECONDS or self._slow_readings == MAX_SLOW_READINGS:
            return True
        self._slow_readings += 1
        return False

    def is_stale(self) -> bool:
        """Return whether the lists are too old to send more: the process may have been suspended."""
        return self._clock.seconds_since(self.at) > self._fresh_for


class _BulkInvite:
    """
    Read the lists, send what they and the limits permit, and wait, until no row is open.

    :ivar withdrawn: ids of invites that were withdrawn just now, which lists may still show
    """

    def __init__(
        self,
        client: WorkspaceClient,
        organization_id: str,
        rows: OpenRows,
        quota: Quota,
        clock: Clock,
        memory: Memory | None,
        why_not: Callable[[str, int | str | None], str],
        journal: Journal | None,
    ) -> None:
        self.withdrawn: Collection[str] = ()
        self._why_not = why_not
        self._journal = journal
        self._plan = Plan(client.settings.organization_at_service(organization_id))
        self._client = client
        self._organization_id = organization_id
        self._rows = rows
        self._quota = quota
        self._clock = clock
        self._memory = memory
        self._reading = Reading(clock)
        self._listed: list[float] = []
        """Creation times of the invites in the lists."""
        self._batch_size = 1
        """How many requests are handed out at once: one until it succeeds, then twice as many each time."""
        self._handed_out_at = clock.now()
        self._noted_at = -math.inf
        self._limited: WorkspaceRateLimitError | None = None
        """The last 429."""
        self._hold_until = -math.inf
        """Time until which a limit forbids sending."""

    def run(self, report: InvitesReport, progress: Callable[[int, int], None], max_wait: float) -> None:
        rows = self._rows
        self.read()
        if rows.open:
            progress(0, rows.total)
        while rows.open:
            self._send(progress)
            if rows.open:
                self._wait(report, max_wait)
                self.read()

    def read(self) -> None:
        """Read the lists, again if that took too long, and finish the rows that they decide."""
        seen = self._read_once()
        while not self._reading.was_fast():
            seen = self._read_once()
        times = [parse_timestamp(text) for text in seen.invited_at]
        self._listed = [time for time in times if time is not None]
        self._rows.compare(seen, self._reading.at)
        for row in list(self._rows.open.values()):
            why = self._why_not(row.invite.target_email, row.invite.level)
            if why:
                self._rows.finish(row, "failed", why)

    def _read_once(self) -> Snapshot:
        rows = self._rows
        self._reading.begin()
        wanted = set(rows.open)  # members matter only if somebody is not among the invites
        try:
            return take_snapshot(
                self._client,
                "people",
                self._organization_id,
                wanted=wanted,
                complete=True,
                withdrawn=self.withdrawn,
            )
        except WorkspaceRequestError as error:
            if rows.has_sent:  # the error carries the report
                raise rows.incomplete(error) from error
            raise

    def _send(self, progress: Callable[[int, int], None]) -> None:
        """Send what the limits permit, until the lists must be read again, as after each error."""
        rows = self._rows
        chunks = rows.chunks(self._granted())
        while chunks and not self._reading.is_stale() and not rows.must_look_up():
            batch = chunks[: self._batch_size]
            self._begin(batch)
            try:
                results = self._send_batch(batch)
                all_succeeded = self._record(batch, results)
            finally:
                self._end(batch)
            progress(rows.total - len(rows.open), rows.total)
            if not all_succeeded:
                return
            self._batch_size *= 2
            unsent = [chunk for chunk, result in zip(batch, results, strict=True) if result is None]
            chunks = unsent + chunks[len(batch) :]

    def _begin(self, batch: list[list[OpenRow]]) -> None:
        """Note who is about to be invited."""
        if self._journal is not None:
            self._journal.begin(self._plan.sending_of(row.change) for chunk in batch for row in chunk)

    def _end(self, batch: list[list[OpenRow]]) -> None:
        """Note what came of the rows that have a result."""
        if self._journal is None:
            return
        for row in [row for chunk in batch for row in chunk]:
            entry = self._rows.result_of(row)
            if entry is not None:
                self._journal.end(self._plan.planned_for, row.change.key, entry.status, entry.reason)

    def _granted(self) -> int:
        """Return how many rows may be sent now; if there are none, note until when."""
        now = self._clock.now().wall
        if now < self._hold_until:
            return 0
        wanted = len(self._rows.open) - len(self._rows.doubts())
        granted, more_at = self._quota.grants(self._listed, wanted, now)
        if more_at is not None and not granted:
            self._hold_until = more_at
        return granted

    def _send_batch(self, batch: list[list[OpenRow]]) -> list[list[Invite] | WorkspaceRequestError | None]:
        """Send a request for each chunk; the result of those that were not sent is ``None``."""
        body = self._client.settings.bulk_invite_body
        requests: list[CreateInvites] = []
        for chunk in batch:
            invites = [row.invite for row in chunk]
            requests.append(CreateInvites(organization_id=self._organization_id, invites=invites, body=body))
        self._handed_out_at = self._clock.now()
        return self._client.send_all(requests, caller_looks_up=True, note=self._note, must_stop=self._must_stop)

    def _must_stop(self) -> bool:
        """Return whether to start no other request: the lists are stale, or it is time to tell the progress."""
        return self._reading.is_stale() or self._clock.seconds_since(self._handed_out_at) > NOTE_SECONDS

    def _note(self, *_: object) -> None:
        """Note that invites are being sent, unless that was noted just now."""
        if self._memory is None:
            return
        now = self._clock.now().wall
        if not 0 <= now - self._noted_at <= NOTE_SECONDS:
            self._noted_at = now
            self._memory.begin(INVITING)

    def _record(self, batch: list[list[OpenRow]], results: list[list[Invite] | WorkspaceRequestError | None]) -> bool:
        """
        Record the results of requests, and return whether none is an error.

        :raises WorkspaceInvitesIncompleteError: if other requests would be refused as well
        """
        rows = self._rows
        now = self._clock.now()
        errors: list[tuple[list[OpenRow], WorkspaceRequestError]] = []
        for chunk, result in zip(batch, results, strict=True):
            if isinstance(result, WorkspaceRequestError):
                errors.append((chunk, result))
            elif result is not None:
                rows.accept(chunk, result, now)
        limited = 0
        fatal: WorkspaceRequestError | None = None
        for chunk, error in errors:
            if isinstance(error, WorkspaceRateLimitError):
                self._limited = error
                limited += len(chunk)
            elif is_in_doubt(error):
                rows.doubt(chunk, error, now)
                self._noted_at = -math.inf
                self._note()  # it may take effect within the consistency time from now
            elif is_refused(error, one_of_many=True):
                rows.refuse(chunk, error, now)
                fatal = error if rows.are_not_the_cause() else fatal
            else:
                fatal = fatal or error
                for row in chunk:
                    rows.finish(row, "not_sent", str(error))
        if fatal is not None:
            raise rows.incomplete(fatal) from fatal
        if limited:
            self._learn(limited)
        return not errors

    def _learn(self, limited: int) -> None:
        """Note until when to wait after a limit refused so many rows; the lists say what counts against it."""
        self._batch_size = 1
        self.read()
        retry_after = self._limited.retry_after if self._limited else None
        now = self._clock.now().wall
        self._hold_until = self._quota.refuse(self._listed, limited, retry_after, now)

    def _wait(self, report: InvitesReport, max_wait: float) -> None:
        """Wait until an unknown outcome may be listed or a limit permits more, whichever comes first."""
        rows = self._rows
        now = self._clock.now()
        doubts = rows.doubts()
        held = self._hold_until - now.wall
        has_sendable = len(rows.open) > len(doubts)
        if has_sendable and held <= 0 and not rows.must_look_up():
            return
        consistency_time = self._client.settings.consistency_time
        ages = {now.monotonic - doubt.since.monotonic for doubt in doubts}
        pauses = [next(look_up_pauses(age, consistency_time)) for age in ages]
        if has_sendable and held > 0:
            pauses.append(held)
        seconds = min(pauses)
        if doubts:
            report.waits_for = "the lists must show who was invited"
        else:
            report.waits_for = self._quota.reason
            is_idle = now.wall > self._quota.kept["progress_at"] + MAX_IDLE
            if seconds > max_wait or is_idle:
                raise rows.incomplete(self._limited, retry_after=seconds)
            self._batch_size = 1
        log.info("%s. Continuing in %.0f s: %s.", report.summary(), seconds, report.waits_for)
        self._clock.pause(self._client, seconds)


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

    @property
    def change(self) -> Change:
        """The row as a change of a plan."""
        fields = self.invite.model_dump(mode="json", exclude_unset=True, exclude={"target_email"})
        return Change("create", "members", f"invite {self.invite.target_email}", after=fields, person=self.key)


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

    def __init__(
        self,
        rows: list[Row],
        report: InvitesReport,
        quota: Quota,
        settings: Settings,
        earlier: Mapping[str, Sending],
    ) -> None:
        self.open = {row.key: OpenRow(row.number, row.key, row.invite) for row in rows}
        self.total = 0
        self.has_sent = False
        self._report = report
        self._quota = quota
        self._settings = settings
        self._invited_before = quota.sent()
        """Addresses that this task invited before a deferral."""
        self._earlier = {sending.row["person"]: sending for sending in earlier.values() if sending.status in BEGUN}
        """What earlier tries were about to send, by address."""
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
            elif self._was_invited_earlier(row, seen):
                self.finish(row, "invited", self._earlier[row.key].told)
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
                self.finish(row, "already_invited", _describe_open(row, seen))
        if by_others:
            log.warning(
                "Another task invited %d of these people. Give the tasks that invite a pool with one slot.", by_others
            )
        if not was_read_before:
            self.total = len(self.open)

    def _was_invited_earlier(self, row: OpenRow, seen: Snapshot) -> bool:
        """Return whether the lists show the invite of a row that an earlier try was about to send, with its level."""
        earlier = self._earlier.get(row.key)
        if earlier is None:
            return False
        if row.key in seen.members:
            return True
        wanted = earlier.row["after"].get("level")
        level = seen.invite_levels.get(row.key)
        is_as_sent = level is None or wanted is None or level == wanted
        return row.key in seen.open_invites() and is_as_sent and row.invite.level == wanted

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
            sent_with_part = [key for key in part if key in sendable]  # with the first part that has it
            chunks.append([sendable.pop(key) for key in sent_with_part])
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

    def result_of(self, row: OpenRow) -> Entry | None:
        """Return the result of a row; ``None`` if it has none yet."""
        return self._report.entry_of(row.number)

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
        msg = f"Not everybody was invited ({self._report.summary()}): {why} {RUN_AGAIN}"
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


def _describe_open(row: OpenRow, seen: Snapshot) -> str:
    """Say that somebody holds an open invite, which cannot be changed, and at which level if the row says another."""
    description = "holds an invite that has not expired"
    wanted = row.invite.level
    level = seen.invite_levels[row.key]
    if wanted is None or level in (None, wanted):
        return description
    return f"{description}, with level {level} instead of {wanted}: withdraw it and run this again"
