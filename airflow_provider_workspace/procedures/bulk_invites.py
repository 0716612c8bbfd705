"""Inviting many people once each, whatever happens on the way."""

from __future__ import annotations

import logging
import math
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from airflow_provider_workspace.api.operations.invites import CreateInvites, ListInvites
from airflow_provider_workspace.api.outcome import is_in_doubt
from airflow_provider_workspace.api.procedure import Pause, Procedure, Send, send_one
from airflow_provider_workspace.api.retry import MAX_SENDS, look_up_pauses
from airflow_provider_workspace.errors import (
    WorkspaceError,
    WorkspaceInputError,
    WorkspaceRateLimitError,
    WorkspaceRequestError,
    WorkspaceStatusError,
)
from airflow_provider_workspace.procedures.quota import DAY, Quota, seconds_of
from airflow_provider_workspace.procedures.roster import Entry, Row, address_key, check_roster
from airflow_provider_workspace.procedures.snapshot import Snapshot, take_snapshot

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Invite
    from airflow_provider_workspace.procedures.create_or_get import Memory

T = TypeVar("T")

log = logging.getLogger(__name__)

STATUSES = ("invited", "already_invited", "member", "duplicate", "invalid", "failed", "unknown", "not_sent", "planned")
# What a task remembers that has begun to invite many people.
INVITING = "invites"
# How old that note may be while requests go out, in seconds: it is not written for each of them.
NOTE_SECONDS = 5.0
# How old the lists may be when something is sent, and how long a step may take, in seconds: a process that slept reads
# them again.
FRESH_SECONDS = 60.0
# How often lists are read in a row because the process slept meanwhile.
MAX_READINGS = 3
# How many chunks may be in doubt before they are looked up; the others go on meanwhile.
MAX_IN_DOUBT = 40
# After so many refusals in a row, the rows to blame are looked for first; after so many in all, it is not the rows.
REFUSALS_BEFORE_SPLIT = 4
MAX_REFUSALS = 20
# The longest wait for a limit, and the longest time without anybody invited, in seconds.
MAX_WAIT = 25 * 3600.0
MAX_IDLE = 2 * DAY
# How many rows the log shows.
MAX_LINES = 50
# How many bad rows an error names; the report has them all.
MAX_NAMED = 20

FOUND = "found when reading back, after an answer was lost or bad"
NOT_LISTED = "the service answered with success, but does not list the invite"


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
            f"  row {item.row:<6} {item.status:<16} {item.email or '-':<40} {item.reason}".rstrip()
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


class BulkSettings(Protocol):
    """What inviting needs of a connection; see ``client.settings``."""

    @property
    def bulk_invite_limit(self) -> int:
        """Invites per request."""
        ...

    @property
    def bulk_invite_body(self) -> Literal["array", "object"]:
        """What the body of a request is."""
        ...

    @property
    def page_size(self) -> int:
        """Rows per page of a list."""
        ...

    @property
    def max_concurrency(self) -> int:
        """Requests at once."""
        ...

    @property
    def consistency_time(self) -> float:
        """Seconds for which a request may take effect, and a list may miss it."""
        ...

    @property
    def invites_per_hour(self) -> int | None:
        """Most invites within an hour."""
        ...

    @property
    def invites_per_day(self) -> int | None:
        """Most invites within a day."""
        ...


def wait_for_consistency(memory: Memory, consistency_time: float) -> Procedure[None]:
    """
    Wait until the lists show whom an earlier try of the task may just have invited.

    :param memory: what the task remembers from try to try
    :param consistency_time: seconds for which a request may take effect, and a list may miss it
    """
    age = memory.age(INVITING)
    if age is not None and age < consistency_time + NOTE_SECONDS:
        log.info("An earlier try may have invited people a moment ago: waiting until the lists show them.")
        yield Pause(consistency_time + NOTE_SECONDS - age)


def invite_all(
    invites: Iterable[Mapping[str, Any] | str],
    *,
    organization_id: str,
    settings: BulkSettings,
    clock: Callable[[], float],
    on_invalid: Literal["fail", "skip"] = "fail",
    max_per_hour: int | None = None,
    max_per_day: int | None = None,
    memory: Memory | None = None,
    kept: MutableMapping[str, Any] | None = None,
    max_wait: float = MAX_WAIT,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    report: InvitesReport | None = None,
    dry_run: bool = False,
) -> Procedure[InvitesReport]:
    """
    Invite everybody who is neither a member nor invited already.

    :param invites: rows, see :func:`~airflow_provider_workspace.procedures.roster.check_roster`
    :param settings: settings of the connection
    :param clock: returns the seconds since 1970
    :param on_invalid: refuse everything if a row is wrong, or leave such rows out
    :param max_per_hour: most invites of the organization within an hour; by default that of the connection
    :param max_per_day: likewise within a day
    :param memory: what the task remembers from try to try; ``None`` if there are no tries
    :param kept: plain JSON that is kept if the procedure is left at a pause and begins again
    :param max_wait: seconds after which a limit must leave room, else it is an error
    :param progress: called with how many of how many addresses are done
    :param report: an empty one, for those who read it on the way
    :param dry_run: send nothing; who would be invited is ``planned``
    :return: what became of each row
    :raises WorkspaceInputError: for a wrong row, before anything is sent
    :raises WorkspaceInvitesIncompleteError: if somebody could not be invited
    """
    if on_invalid not in ("fail", "skip"):
        given: Any = on_invalid
        shown = repr(given[:40]) if isinstance(given, str) else type(given).__name__
        msg = f"on_invalid is {shown}; expected 'fail' or 'skip'"
        raise WorkspaceInputError(msg)
    quota = Quota(
        settings.invites_per_hour if max_per_hour is None else max_per_hour,
        settings.invites_per_day if max_per_day is None else max_per_day,
        kept,
    )
    roster = check_roster(invites, strict=on_invalid == "fail")
    report = InvitesReport() if report is None else report
    report.rows = len(roster.rows) + len(roster.invalid) + len(roster.duplicates)
    report.add(*roster.invalid, *roster.duplicates)
    if roster.invalid and on_invalid == "fail":
        raise WorkspaceInputError(_describe_invalid(roster.invalid))
    if not roster.rows:
        return report
    campaign = _Campaign(roster.rows, report, organization_id, settings, quota, clock, progress, memory)
    if memory is not None:
        yield from wait_for_consistency(memory, settings.consistency_time)
    if dry_run:
        yield from campaign.read()
        report.add(*(_entry(row, "planned", "is neither a member nor invited") for row in campaign.open.values()))
        return report
    yield from campaign.noticing_sleep(campaign.run(max_wait))
    quota.kept.clear()
    if memory is not None:
        memory.forget()
    refused = [entry for entry in report.entries if entry.status == "failed"]
    if refused and on_invalid == "fail":
        msg = f"The service refused {len(refused)} of {report.rows} rows, the others are done. {name_entries(refused)}"
        raise WorkspaceInvitesIncompleteError(msg, report)
    return report


@dataclass(frozen=True, slots=True)
class _Doubt:
    """
    That a row may have been invited.

    :param since: when its answer came, or was lost, in seconds since 1970
    :param error: what was lost; ``None`` for a success that does not show the invite
    """

    since: float
    error: WorkspaceRequestError | None


class _Campaign:
    """
    The rows that have no end yet, and what is known of them.

    It reads the lists, sends what is missing, waits, and reads again, until each row has its end. Whatever goes wrong,
    the lists decide what is sent next.
    """

    def __init__(
        self,
        rows: Iterable[Row],
        report: InvitesReport,
        organization_id: str,
        settings: BulkSettings,
        quota: Quota,
        clock: Callable[[], float],
        progress: Callable[[int, int], None],
        memory: Memory | None,
    ) -> None:
        self.open = {row.key: row for row in rows}
        self.report = report
        self.organization_id = organization_id
        self.settings = settings
        self.quota = quota
        quota.begin(clock())
        self.clock = clock
        self.progress = progress
        self.memory = memory
        self.limit = 1 if settings.bulk_invite_body == "object" else settings.bulk_invite_limit
        self.earlier = quota.sent()
        """Whom an earlier part of the task invited, before a wait."""
        self.total = 0
        """How many rows were to be sent after the first reading; 0 before it."""
        self.skipped = 0.0
        """Seconds of pauses that the clock does not show."""
        self.noted_at = -math.inf
        self.slept = False
        """Whether a step since the last reading took so long that the process may have slept."""
        self.fresh_until = 0.0
        self.listed: list[float] = []
        """When the invites that the service lists were made."""
        self.invite_count = 0
        """How many invites there must be: those of the last reading, and those since."""
        self.width = 1
        """How many requests go out at once."""
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
        self.limited: WorkspaceRateLimitError | None = None
        """The last refusal for a limit."""
        self.hold_until = -math.inf
        """Until when nothing is sent because of a limit."""

    def now(self) -> float:
        """Return the seconds since 1970; no pause is shorter than it says."""
        return self.clock() + self.skipped

    def noticing_sleep(self, procedure: Procedure[T]) -> Procedure[T]:
        """Carry a procedure out, and notice when the process slept."""
        step = next(procedure)
        while True:
            began = self.clock()
            results = yield step
            if self.clock() - began > FRESH_SECONDS + (step.seconds if isinstance(step, Pause) else 0.0):
                self.slept = True
            try:
                step = procedure.send(results)
            except StopIteration as stop:
                result: T = stop.value
                return result

    def run(self, max_wait: float) -> Procedure[None]:
        """Read, send and wait until each row has its end."""
        yield from self.read()
        if self.open:
            self.progress(0, self.total)
        while True:
            yield from self.send()
            if not self.open or self.now() < self.hold_until:
                yield from self.check_unlisted()
            if not self.open:
                return
            yield from self.wait(max_wait)
            yield from self.read()

    # Reading

    def read(self) -> Procedure[None]:
        """Read the lists, and end the rows that they, or the time, decide."""
        reads = 0
        while True:
            reads += 1
            self.slept = False
            began = self.now()
            snapshot = take_snapshot("people", self.organization_id, self.settings.page_size, complete=True)
            seen = yield from self.asking(snapshot)
            if not self.slept or reads == MAX_READINGS:
                break
        self.slept = False
        self.fresh_until = self.now() + max(FRESH_SECONDS, 4 * (self.now() - began))
        self.listed = [time for time in map(seconds_of, seen.invited_at) if time is not None]
        self.invite_count = seen.invite_count
        known = _known_addresses(seen)
        missing = [row for row in self.unlisted.values() if row.key not in known]
        self.unlisted = {}
        self.open.update((row.key, row) for row in missing)
        self.doubt(missing, None)
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
                self.quota.note_sent(self.doubts[row.key].since if row.key in self.doubts else began, [row.key])
                self.end(row, "invited", FOUND)
            else:
                others += bool(self.total) and row.key not in self.tried
                self.end(row, *known[row.key])
        if others:
            log.warning("Give tasks that invite a pool with one slot: others invited %d of these people.", others)
        self.total = self.total or len(self.open)
        self.end_refused()
        self.end_doubts(began)

    def asking(self, procedure: Procedure[T]) -> Procedure[T]:
        """Read something; once invites went out, an error says what became of them."""
        try:
            return (yield from procedure)
        except WorkspaceRequestError as error:
            if not self.accepted and not self.tried:
                raise
            raise self.incomplete(error) from error

    def end_refused(self) -> None:
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

    def end_doubts(self, read_at: float) -> None:
        """
        End the doubts whose time was over when the lists were read: they do not show them, so they were not applied.

        :param read_at: when the reading began, in seconds since 1970
        """
        given_up: WorkspaceRequestError | None = None
        for key, doubt in list(self.doubts.items()):
            if read_at < doubt.since + self.settings.consistency_time - 0.001:  # what pauses lose to rounding
                continue
            if doubt.error is None:
                self.end(self.open[key], "failed", NOT_LISTED)
            elif self.lost[key] >= MAX_SENDS:
                given_up = doubt.error
                self.end(self.open[key], "unknown", str(doubt.error))
            else:
                del self.doubts[key]
        if given_up is not None:
            raise self.incomplete(given_up) from given_up

    def check_unlisted(self) -> Procedure[None]:
        """Read the lists if they are not as long as the answers that do not show the invites make them."""
        if not self.unlisted:
            return
        page = yield from self.asking(send_one(ListInvites(organization_id=self.organization_id, limit=1)))
        if page.count == self.invite_count:
            self.unlisted = {}
        else:
            yield from self.read()

    # Sending

    def send(self) -> Procedure[None]:
        """Send what may be sent now, until the lists must be read again."""
        if self.now() < self.hold_until:
            return
        chunks = self.chunks()
        while chunks and not self.must_read():
            batch = [chunks.popleft() for _ in range(min(self.width, len(chunks)))]
            requests = [
                CreateInvites(
                    organization_id=self.organization_id,
                    invites=[row.invite for row in rows],
                    body=self.settings.bulk_invite_body,
                )
                for rows, _ in batch
            ]
            results = yield Send(requests, looks_first=True, note=self.note)
            limited = self.record(batch, results)
            self.progress(self.total - len(self.open), self.total)
            if limited:
                self.width = 1
                yield from self.read()
                asked = self.limited.retry_after if self.limited else None
                self.hold_until = self.quota.refuse(self.listed, limited, asked, self.now())
                break
            self.width = min(self.width + self.accepted, self.settings.max_concurrency)
        self.parts += [rows for rows, is_part in chunks if is_part]

    def chunks(self) -> deque[tuple[list[Row], bool]]:
        """Return the rows of each request, and whether they are a part of one that was refused."""
        sendable = {key: row for key, row in self.open.items() if key not in self.doubts}
        granted, again = self.quota.grants(self.listed, len(sendable), self.now())
        if again is not None and not granted:
            self.hold_until = again
        parts, self.parts = self.parts, []
        chunks: deque[tuple[list[Row], bool]] = deque()
        for part in parts:
            rows = [sendable.pop(row.key) for row in part if row.key in sendable]
            if rows[:granted]:
                chunks.append((rows[:granted], True))
            if rows[granted:]:
                self.parts.append(rows[granted:])
            granted -= len(rows[:granted])
        rest = list(sendable.values())[:granted]
        size = max(1, self.limit >> self.quota.refusals)
        chunks.extend((rest[start : start + size], False) for start in range(0, len(rest), size))
        return chunks

    def must_read(self) -> bool:
        """Tell whether the lists must be read before more is sent."""
        look_for_rows = not self.accepted or self.refusals >= REFUSALS_BEFORE_SPLIT
        stale = self.slept or self.now() > self.fresh_until
        return stale or len(self.doubts) >= self.max_doubts() or (bool(self.suspects) and look_for_rows)

    def max_doubts(self) -> int:
        """Return how many rows in doubt are looked up before more is sent."""
        return MAX_IN_DOUBT * self.limit if self.accepted else 1

    def note(self) -> None:
        """Note that invites are sent now, unless that was noted a moment ago."""
        if self.memory is not None and self.clock() > self.noted_at + NOTE_SECONDS:
            self.noted_at = self.clock()
            self.memory.begin(INVITING)

    def record(self, batch: list[tuple[list[Row], bool]], results: list[Any]) -> int:
        """
        Note what came of requests.

        :return: how many rows were refused for a limit
        :raises WorkspaceInvitesIncompleteError: if others would be refused as well
        """
        limited: dict[int, int] = {}
        fatal: WorkspaceRequestError | None = None
        for (rows, is_part), result in zip(batch, results, strict=True):
            if not isinstance(result, WorkspaceRequestError):
                self.accept(rows, result)
            elif is_in_doubt(result):
                self.doubt(rows, result)
                self.noted_at = -math.inf
                self.note()  # from now on it may be under way for the consistency time
            elif isinstance(result, WorkspaceRateLimitError):
                self.limited = result
                limited.setdefault(id(result), len(rows))  # those that were not sent any more have the same error
                if is_part:
                    self.parts.append(rows)
            elif isinstance(result, WorkspaceStatusError) and result.status in (400, 403, 409, 422):
                fatal = self.refuse(rows, result) or fatal
            else:
                fatal = fatal or result
                for row in rows:
                    self.end(row, "not_sent", str(result))
        if fatal is not None:
            raise self.incomplete(fatal) from fatal
        return sum(limited.values())

    def accept(self, rows: list[Row], made: list[Invite]) -> None:
        """Note a success; where it shows fewer invites than it was asked for, the others are in doubt."""
        self.accepted = True
        self.refusals = 0
        ids = {address_key(invite.target_email or ""): invite.id for invite in made}
        missing = [row for row in rows if row.key not in ids] if 0 < len(made) < len(rows) else []
        self.doubt(missing, None)
        invited = [row for row in rows if row not in missing]
        for row in invited:
            self.end(row, "invited", invite_id=ids.get(row.key))
        if not made:
            self.unlisted.update((row.key, row) for row in rows)
        self.invite_count += len(invited)
        self.quota.note_sent(self.now(), [row.key for row in invited])

    def doubt(self, rows: list[Row], error: WorkspaceRequestError | None) -> None:
        """Note that rows may have been invited, or may be yet."""
        self.doubts.update((row.key, _Doubt(self.now(), error)) for row in rows)
        self.tried.update(row.key for row in rows)
        self.lost.update(row.key for row in rows)

    def refuse(self, rows: list[Row], error: WorkspaceStatusError) -> WorkspaceStatusError | None:
        """
        Note that a request was refused, perhaps for one of its rows.

        :return: the error, if it is not about the rows
        """
        self.refusals += 1
        self.tried.update(row.key for row in rows)
        self.quota.note_refused_rows(self.now(), len(rows))
        if len(rows) > 1:
            self.suspects.append((rows, error))
        else:
            self.refused[rows[0].key] = error
            self.denied += error.status == 403 and not self.accepted
        return error if self.refusals >= MAX_REFUSALS or self.denied >= min(2, self.total) else None

    # Waiting and ending

    def wait(self, max_wait: float) -> Procedure[None]:
        """Wait until what is in doubt may be listed, or a limit leaves room, whichever comes first."""
        now = self.now()
        held = self.hold_until - now
        sendable = len(self.open) > len(self.doubts)
        if sendable and held <= 0 and len(self.doubts) < self.max_doubts():
            return
        consistency_time = self.settings.consistency_time
        pauses = [next(look_up_pauses(now - doubt.since, consistency_time)) for doubt in self.doubts.values()]
        if sendable and held > 0:
            pauses.append(held)
        seconds = min(pauses)
        self.report.waits_for = "an answer was lost: the lists must show who was invited"
        if not self.doubts:
            self.report.waits_for = "the limit of invites is reached"
            if seconds > max_wait or now > self.quota.progress_at + MAX_IDLE:
                raise self.incomplete(self.limited, retry_after=seconds)
            log.info("%s. %s", self.report.summary(), self.limited or "The limit of invites is reached.")
            self.width = 1
        self.quota.parts[:] = [[row.key for row in part] for part in self.parts]
        began = self.clock()
        yield Pause(seconds)
        self.skipped += max(0.0, seconds - (self.clock() - began))

    def end(self, row: Row, status: str, reason: str = "", invite_id: str | None = None) -> None:
        """Report what became of a row."""
        self.report.add(_entry(row, status, reason, invite_id))
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


def _entry(row: Row, status: str, reason: str = "", invite_id: str | None = None) -> Entry:
    """Return the entry of a row."""
    return Entry(row.number, row.invite.target_email, status, reason, invite_id)


def _detail_of(error: WorkspaceRequestError) -> str:
    """Return the service's own words about a row, if it has any."""
    return getattr(error, "detail", None) or str(error)


def _describe_invalid(invalid: list[Entry]) -> str:
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
