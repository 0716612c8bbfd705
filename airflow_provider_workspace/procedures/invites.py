"""
Invite many people, each exactly once.

Read the lists, send the invites that are missing, and read again, until each row has a result. Whatever goes wrong, the
lists decide what is sent next.
"""

from __future__ import annotations

import logging
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.api.operations.invites import CreateInvites
from airflow_provider_workspace.api.outcome import is_in_doubt, is_refused
from airflow_provider_workspace.api.retry import MAX_SENDS, look_up_pauses
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
from airflow_provider_workspace.procedures.quota import DAY, Quota
from airflow_provider_workspace.procedures.roster import Entry, Row, check_roster
from airflow_provider_workspace.procedures.snapshot import Snapshot, take_snapshot

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Invite
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.client.settings import Settings
    from airflow_provider_workspace.procedures.ensure import Memory

log = logging.getLogger(__name__)

# The note of a task that sends or has sent invites; it stays, because the task may be run again before they are listed.
INVITING = "invites"
# How old that note may get while requests are sent, and how often the progress is told, in seconds.
NOTE_SECONDS = 5.0
# The note of a task that withdraws open invites: who accepts one at the same time may be listed later.
WITHDRAWING = "withdrawn invites"
# How old the lists may be when a request is sent, and how long reading them may take, in seconds: longer ones are read
# again, because the process may have been suspended.
FRESH_SECONDS = 60.0
# How many readings of a task are repeated because they took so long.
MAX_SLOW_READINGS = 2
# How many chunks may have an unknown outcome before the others wait for them.
MAX_IN_DOUBT = 40
# After so many refused requests in a row, the rows are not the cause.
MAX_REFUSED_CHUNKS = 20
# The longest wait for a limit, and the longest time without a new invite, in seconds.
MAX_WAIT = 25 * 3600.0
MAX_IDLE = 2 * DAY

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
    :return: the result for each row
    :raises WorkspaceInputError: for an invalid row, before anything is sent
    :raises WorkspaceInvitesIncompleteError: if some people were not invited
    """
    if on_invalid not in ("fail", "skip"):
        raise WorkspaceInputError(f"on_invalid is {shown(on_invalid)}; expected 'fail' or 'skip'")
    roster = check_roster(invites, datetime.fromtimestamp(clock(), timezone.utc))
    late = [Entry(row.number, row.invite.target_email, "invalid", row.end.over) for row in roster.ended]
    report = InvitesReport() if report is None else report
    report.rows = len(roster.rows) + len(late) + len(roster.invalid) + len(roster.duplicates)
    report.blank = roster.blank
    report.left_out = roster.left_out
    report.remarks = roster.remarks
    report.add(*roster.invalid, *late, *roster.duplicates)
    wrong = roster.invalid if kept else [*roster.invalid, *late]  # later, a row that ended meanwhile stops nobody
    if wrong and on_invalid == "fail":
        raise WorkspaceInputError(
            f"Correct the invalid rows ({len(wrong)}), or leave them out with on_invalid='skip': {name_entries(wrong)}",
            problem="rows-invalid",
        )
    if not roster.rows:
        return report
    if memory is not None:
        wait_for_consistency(client, memory)
    quota = Quota(client.settings.invites_per_hour, client.settings.invites_per_day, kept)
    quota.kept.setdefault("progress_at", clock())
    rows = _Rows(roster.rows, report, quota, client.settings)
    campaign = _Campaign(client, organization_id, rows, _Pace((clock, monotonic), memory), quota)
    if dry_run:
        campaign.read()
        for row in list(rows.open.values()):
            rows.finish(row, "planned", "is neither a member nor invited")
        return report
    campaign.run(progress, max_wait)
    quota.kept.clear()
    refused = [entry for entry in report.entries if entry.status == "failed"]
    if refused and on_invalid == "fail":
        raise WorkspaceInvitesIncompleteError(
            f"The service refused {len(refused)} of {report.rows} rows; the others are done. {name_entries(refused)}",
            report,
        )
    return report


@dataclass(frozen=True, slots=True)
class _Doubt:
    """
    An unknown outcome.

    :param at: when the response came or was lost, in seconds since 1970
    :param since: the same by the monotonic clock, which nobody can set
    :param error: the error; ``None`` for a success that does not show the invite
    """

    at: float
    since: float
    error: WorkspaceRequestError | None


class _Rows:
    """The rows without a result, and what is known of each: what the lists showed, doubts, refusals."""

    def __init__(self, rows: list[Row], report: InvitesReport, quota: Quota, settings: Settings) -> None:
        self.open = {row.key: row for row in rows}
        self.report, self.quota, self.settings = report, quota, settings
        self.total = 0
        """Number of rows to send after the first reading; 0 before it."""
        self.invited_before = quota.sent()
        """Addresses that this task invited before a deferral."""
        self.accepted = False
        """Whether the service accepted any request."""
        self.tried: set[str] = set()
        """Addresses that a request without a clear response may have invited."""
        self.doubts: dict[str, _Doubt] = {}
        self.lost: Counter[str] = Counter()
        """How often the response about an address was lost."""
        self.refused: dict[str, WorkspaceRequestError] = {}
        """Rows that were refused alone, until the lists are read."""
        self.refused_chunks: list[tuple[list[Row], WorkspaceStatusError]] = []
        """Chunks that were refused for one of their rows, until the lists are read."""
        self.parts = [[self.open[key] for key in keys if key in self.open] for keys in quota.parts]
        """Parts of refused chunks, the smallest first: a row is sent with the first one that has it."""
        self.refusals = self.forbidden = 0
        """Number of consecutive requests refused, perhaps for a row; of rows refused with 403 before any success."""

    # What the lists show

    def compare(self, seen: Snapshot, read_at: float) -> None:
        """Finish the rows of members and of people with an open invite."""
        invited, others = seen.open_invites(), 0
        for row in list(self.open.values()):
            key = row.key
            if key in self.invited_before:
                self.finish(row, "invited", "by an earlier part of this task")
            elif key in self.quota.refused:
                self.finish(row, "failed", self.quota.refused[key])
            elif key in seen.members:
                others += bool(self.total) and key not in self.tried
                self.finish(row, "member", "is a member already")
            elif key in invited and key in self.tried:
                doubt = self.doubts.get(key)
                self.accepted = True
                self.quota.note_sent(doubt.at if doubt else read_at, [key])
                self.finish(row, "invited", "" if doubt and doubt.error is None else FOUND)
            elif key in invited:
                others += bool(self.total)
                self.finish(row, "already_invited", "holds an invite that has not expired")
        if others:
            log.warning(
                "Give the tasks that invite a pool with one slot: another task invited %d of these people.", others
            )
        self.total = self.total or len(self.open)

    def resolve_refusals(self) -> None:
        """Finish the rows that were refused alone, and split the refused chunks."""
        for key, error in self.refused.items():
            if key in self.open:
                self.quota.refused[key] = _detail(error)
                self.finish(self.open[key], "failed", _detail(error))
        self.refused.clear()
        for chunk, status_error in self.refused_chunks:
            rows = [row for row in chunk if row.key in self.open]
            named = _named_row(status_error, chunk)
            if named in rows:
                parts = [[row for row in rows if row == named], [row for row in rows if row != named]]
            elif status_error.status == 403 and not self.accepted:  # it may be the key: try two rows alone
                rows.sort(key=lambda row: row.invite.level or 0)
                parts = [rows[:1], rows[1:2], rows[2:]]
            else:
                middle = (len(rows) + 1) // 2
                parts = [rows[:middle], rows[middle:]]
            self.parts = parts + self.parts
        self.refused_chunks.clear()

    def resolve_doubts(self, read_at: float) -> None:
        """
        Resolve the unknown outcomes whose consistency time was over when the lists were read: not applied.

        :param read_at: that time by the monotonic clock
        """
        lost_for_good: WorkspaceRequestError | None = None
        for key, doubt in list(self.doubts.items()):
            if read_at - doubt.since < self.settings.consistency_time - 0.001:  # the rounding of pauses
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

    # What requests returned

    def accept(self, rows: list[Row], made: list[Invite], now: tuple[float, float]) -> None:
        """Record a success; the outcome of rows whose invites the response does not show is unknown."""
        self.accepted = True
        self.refusals = 0
        ids = {address_key(invite.target_email): invite.id for invite in made if invite.target_email and invite.id}
        self.doubt([row for row in rows if row.key not in ids], None, now)
        invited = [row for row in rows if row.key not in self.doubts]
        for row in invited:
            self.finish(row, "invited", invite_id=ids.get(row.key))
        self.quota.note_sent(now[0], [row.key for row in invited])

    def doubt(self, rows: list[Row], error: WorkspaceRequestError | None, now: tuple[float, float]) -> None:
        """Record an unknown outcome."""
        doubt = _Doubt(*now, error)
        self.doubts.update((row.key, doubt) for row in rows)
        self.tried.update(row.key for row in rows)
        self.lost.update(row.key for row in rows)

    def refuse(self, rows: list[Row], error: WorkspaceStatusError, now: float) -> WorkspaceStatusError | None:
        """Record a refused request, perhaps for one of its rows; return the error if the rows are not the cause."""
        self.refusals += 1
        self.tried.update(row.key for row in rows)
        self.quota.note_refused_rows(now, len(rows))
        if len(rows) > 1:
            self.refused_chunks.append((rows, error))
        else:
            self.refused[rows[0].key] = error
            self.forbidden += error.status == 403 and not self.accepted
        rows_are_not_the_cause = self.refusals >= MAX_REFUSED_CHUNKS or self.forbidden >= min(2, self.total)
        return error if rows_are_not_the_cause else None

    # What is sent next

    def must_look_up(self) -> bool:
        """Return whether so many answers were lost that nothing else is sent before they are looked up."""
        lost = sum(doubt.error is not None for doubt in self.doubts.values())
        return lost >= (MAX_IN_DOUBT * self.settings.bulk_invite_limit if self.accepted else 1)

    def chunks(self, granted: int) -> list[list[Row]]:
        """Return the rows of each request, together as many as are granted."""
        sendable = {key: row for key, row in self.open.items() if key not in self.doubts}
        self.parts = [part for part in self.parts if any(row.key in self.open for row in part)]
        chunks = [[sendable.pop(row.key) for row in part if row.key in sendable] for part in self.parts]
        rest = list(sendable.values())
        limit = 1 if self.settings.bulk_invite_body == "object" else self.settings.bulk_invite_limit
        size = max(1, limit >> self.quota.refusals)
        chunks += [rest[start : start + size] for start in range(0, len(rest), size)]
        permitted: list[list[Row]] = []
        for rows in chunks:
            if rows[:granted]:
                permitted.append(rows[:granted])
                granted -= len(permitted[-1])
        return permitted

    # Results

    def finish(self, row: Row, status: str, reason: str = "", invite_id: str | None = None) -> None:
        """Report the result of a row."""
        self.report.add(Entry(row.number, row.invite.target_email, status, reason, invite_id))
        del self.open[row.key]
        self.doubts.pop(row.key, None)

    def incomplete(
        self, error: WorkspaceRequestError | None, retry_after: float | None = None
    ) -> WorkspaceInvitesIncompleteError:
        """Report the rows without a result, and return the error to raise."""
        in_refused_chunk = {row.key: error for rows, error in self.refused_chunks for row in rows}
        for row in list(self.open.values()):
            if row.key in self.doubts:
                self.finish(row, "unknown", str(self.doubts[row.key].error or NOT_LISTED))
            elif row.key in in_refused_chunk:
                self.finish(row, "unknown", str(in_refused_chunk[row.key]))
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


class _Pace:
    """When to go on: the clocks, how old the lists are, how many requests at once, and until when a limit holds."""

    def __init__(self, clocks: tuple[Callable[[], float], Callable[[], float]], memory: Memory | None) -> None:
        self.clocks, self.memory = clocks, memory
        self.lag = [0.0, 0.0]
        """Seconds by which each clock ran behind a pause, or was set back during it."""
        self.read_at = 0.0, 0.0
        self.fresh_for = FRESH_SECONDS
        self.slow_readings = 0
        self.handed_out_at = 0.0, 0.0
        self.batch_size = 1
        """How many requests are handed out at once: one until it succeeds, then twice as many each time."""
        self.noted_at = -math.inf
        self.hold_until = -math.inf
        """Time until which a limit forbids sending."""

    def now(self) -> tuple[float, float]:
        """Return the time by both clocks; a pause has surely taken its seconds."""
        clock, monotonic = self.clocks
        return clock() + self.lag[0], monotonic() + self.lag[1]

    def seconds_since(self, then: tuple[float, float]) -> float:
        """Return the seconds that have passed by the clock that says more; a clock that was set back counts, too."""
        return max(abs(now - before) for now, before in zip(self.now(), then, strict=True))

    def accepts_reading(self) -> bool:
        """Return whether the lists were read fast enough to be used; only so many slow readings are repeated."""
        seconds = self.seconds_since(self.read_at)
        self.fresh_for = max(FRESH_SECONDS, 5 * seconds)
        if seconds <= FRESH_SECONDS or self.slow_readings == MAX_SLOW_READINGS:
            return True
        self.slow_readings += 1
        return False

    def is_stale(self) -> bool:
        """Return whether the lists are too old to send more: the process may have been suspended."""
        return self.seconds_since(self.read_at) > self.fresh_for

    def must_stop(self) -> bool:
        """Return whether to start no other request: the lists are stale, or it is time to tell the progress."""
        return self.is_stale() or self.seconds_since(self.handed_out_at) > NOTE_SECONDS

    def note(self, *_: object) -> None:
        """Note that invites are being sent, unless that was noted just now."""
        now = self.clocks[0]()
        if self.memory is not None and not 0 <= now - self.noted_at <= NOTE_SECONDS:
            self.noted_at = now
            self.memory.begin(INVITING)

    def pause(self, client: WorkspaceClient, seconds: float) -> None:
        """Pause, and note by how much the clocks say less."""
        before = self.now()
        client.pause(seconds)
        passed = [max(0.0, then + seconds - now) for then, now in zip(before, self.now(), strict=True)]
        self.lag = [lag + more for lag, more in zip(self.lag, passed, strict=True)]


class _Campaign:
    """Read the lists, send what they and the limits permit, and wait, until no row is open."""

    def __init__(self, client: WorkspaceClient, organization_id: str, rows: _Rows, pace: _Pace, quota: Quota) -> None:
        self.client, self.organization_id = client, organization_id
        self.rows, self.pace, self.quota = rows, pace, quota
        self.listed: list[float] = []
        """Creation times of the invites in the lists."""
        self.limited: WorkspaceRateLimitError | None = None
        """The last 429."""

    def run(self, progress: Callable[[int, int], None], max_wait: float) -> None:
        rows = self.rows
        self.read()
        if rows.open:
            progress(0, rows.total)
        while rows.open:
            self.send(progress)
            if rows.open:
                self.wait(max_wait)
                self.read()

    def read(self) -> None:
        """Read the lists, and finish the rows that they decide."""
        rows, pace = self.rows, self.pace
        while True:
            pace.read_at = pace.now()
            try:
                # Members matter only if somebody is not among the invites.
                wanted = set(rows.open)
                seen = take_snapshot(self.client, "people", self.organization_id, wanted=wanted, complete=True)
            except WorkspaceRequestError as error:
                if rows.accepted or rows.tried:  # the error carries the report
                    raise rows.incomplete(error) from error
                raise
            if pace.accepts_reading():
                break
        self.listed = [time for time in map(parse_timestamp, seen.invited_at) if time is not None]
        rows.compare(seen, pace.read_at[0])
        rows.resolve_refusals()
        rows.resolve_doubts(pace.read_at[1])

    def send(self, progress: Callable[[int, int], None]) -> None:
        """Send what the limits permit, until the lists must be read again, as after each error."""
        rows, pace, settings = self.rows, self.pace, self.client.settings
        now = pace.now()[0]
        if now < pace.hold_until:
            return
        granted, more_at = self.quota.grants(self.listed, len(rows.open) - len(rows.doubts), now)
        if more_at is not None and not granted:
            pace.hold_until = more_at
        chunks, failed = rows.chunks(granted), False
        while chunks and not failed and not pace.is_stale() and not rows.must_look_up():
            batch, pace.handed_out_at = chunks[: pace.batch_size], pace.now()
            requests = [
                CreateInvites(
                    organization_id=self.organization_id,
                    invites=[row.invite for row in chunk],
                    body=settings.bulk_invite_body,
                )
                for chunk in batch
            ]
            results = self.client.send_all(requests, caller_looks_up=True, note=pace.note, must_stop=pace.must_stop)
            failed = self.record(batch, results)
            unsent = [chunk for chunk, result in zip(batch, results, strict=True) if result is None]
            chunks = unsent + chunks[len(batch) :]
            pace.batch_size *= 1 if failed else 2
            progress(rows.total - len(rows.open), rows.total)

    def record(self, batch: list[list[Row]], results: list[Any]) -> bool:
        """
        Record the results of requests, and return whether one is an error.

        :raises WorkspaceInvitesIncompleteError: if other requests would be refused as well
        """
        rows, pace = self.rows, self.pace
        errors: list[tuple[list[Row], WorkspaceRequestError]] = []
        for chunk, result in zip(batch, results, strict=True):
            if isinstance(result, WorkspaceRequestError):
                errors.append((chunk, result))
            elif result is not None:
                rows.accept(chunk, result, pace.now())
        limited = 0
        fatal: WorkspaceRequestError | None = None
        for chunk, error in errors:
            if isinstance(error, WorkspaceRateLimitError):
                self.limited = error
                limited += len(chunk)
            elif is_in_doubt(error):
                rows.doubt(chunk, error, pace.now())
                pace.noted_at = -math.inf
                pace.note()  # it may take effect within the consistency time from now
            elif is_refused(error, one_of_many=True):
                fatal = rows.refuse(chunk, error, pace.now()[0]) or fatal
            else:
                fatal = fatal or error
                for row in chunk:
                    rows.finish(row, "not_sent", str(error))
        if fatal is not None:
            raise rows.incomplete(fatal) from fatal
        if limited:
            pace.batch_size = 1
            self.read()
            asked = self.limited.retry_after if self.limited else None
            pace.hold_until = self.quota.refuse(self.listed, limited, asked, pace.now()[0])
        return bool(errors)

    def wait(self, max_wait: float) -> None:
        """Wait until an unknown outcome may be listed or a limit permits more, whichever comes first."""
        rows, pace, report = self.rows, self.pace, self.rows.report
        now, monotonic = pace.now()
        held = pace.hold_until - now
        sendable = len(rows.open) > len(rows.doubts)
        if sendable and held <= 0 and not rows.must_look_up():
            return
        most = self.client.settings.consistency_time
        pauses = [next(look_up_pauses(monotonic - doubt.since, most)) for doubt in rows.doubts.values()]
        if sendable and held > 0:
            pauses.append(held)
        seconds = min(pauses)
        report.waits_for = "the lists must show who was invited"
        if not rows.doubts:
            report.waits_for = self.quota.reason
            if seconds > max_wait or now > self.quota.kept["progress_at"] + MAX_IDLE:
                raise rows.incomplete(self.limited, retry_after=seconds)
            pace.batch_size = 1
        log.info("%s. Continuing in %.0f s: %s.", report.summary(), seconds, report.waits_for)
        self.quota.parts[:] = [[row.key for row in part] for part in rows.parts]
        pace.pause(self.client, seconds)


def _named_row(error: WorkspaceStatusError, chunk: list[Row]) -> Row | None:
    """Return the row of a chunk that the error names by number, as in ``6__level``; it is sent alone to be sure."""
    number = re.search(r"\d{1,6}", error.attr or "")
    index = int(number.group()) if number else len(chunk)
    return chunk[index] if index < len(chunk) else None


def _detail(error: WorkspaceRequestError) -> str:
    return getattr(error, "detail", None) or str(error)
