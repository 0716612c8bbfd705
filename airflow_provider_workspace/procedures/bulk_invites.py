"""Invite many people, each exactly once, despite failures on the way."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from airflow_provider_workspace.api.operations.invites import CreateInvites, ListInvites
from airflow_provider_workspace.api.outcome import is_in_doubt
from airflow_provider_workspace.api.retry import look_up_pauses
from airflow_provider_workspace.errors import (
    WorkspaceInputError,
    WorkspaceRateLimitError,
    WorkspaceRequestError,
    WorkspaceStatusError,
    shown,
)
from airflow_provider_workspace.procedures.invite_rows import InviteRows, make_entry
from airflow_provider_workspace.procedures.invites_report import (
    InvitesReport,
    WorkspaceInvitesIncompleteError,
    name_entries,
)
from airflow_provider_workspace.procedures.quota import DAY, Quota, parse_timestamp
from airflow_provider_workspace.procedures.roster import Row, check_roster
from airflow_provider_workspace.procedures.snapshot import Snapshot, take_snapshot
from airflow_provider_workspace.procedures.suspension import SuspensionClock, WatchedClient

if TYPE_CHECKING:
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.client.settings import Settings
    from airflow_provider_workspace.procedures.ensure import Memory

log = logging.getLogger(__name__)

# The note of a task that sends or has sent invites; it stays, because the task may be run again before they are listed.
INVITING = "invites"
# How old that note may get while requests are sent, in seconds: it is not written for each of them.
NOTE_SECONDS = 5.0
# How many chunks may have an unknown outcome before they are looked up; until then the others are sent.
MAX_IN_DOUBT = 40
# While nothing goes wrong, so many requests for each that may be under way are handed out at once.
REQUESTS_AHEAD = 8
# After so many refusals in a row, the invalid rows are searched for first.
REFUSALS_BEFORE_SPLIT = 4
# The longest wait for a limit, and the longest time without a new invite, in seconds.
MAX_WAIT = 25 * 3600.0
MAX_IDLE = 2 * DAY


def wait_for_consistency(client: WorkspaceClient, memory: Memory) -> None:
    """
    Wait until the lists show the invites that an earlier try of the task may have sent.

    :param memory: what the task remembers across its tries
    """
    age, seconds = memory.age(INVITING), client.settings.consistency_time + NOTE_SECONDS
    if age is not None and age < seconds:
        log.info("An earlier try may have sent invites just now: waiting until the lists show them.")
        client.pause(seconds - age)


def invite_all(
    client: WorkspaceClient,
    invites: Iterable[Mapping[str, Any] | str],
    *,
    organization_id: str,
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
) -> InvitesReport:
    """
    Invite everybody who is not a member and has no open invite.

    :param invites: rows, see :func:`~airflow_provider_workspace.procedures.roster.check_roster`
    :param clock: returns the seconds since 1970
    :param on_invalid: ``fail`` before anything is sent if a row is invalid, or ``skip`` such rows
    :param max_per_hour: limit of invites of the organization per hour; by default that of the connection
    :param max_per_day: limit per day; by default that of the connection
    :param memory: what the task remembers across its tries; ``None`` outside of a task
    :param kept: plain JSON that the caller keeps if it leaves the procedure at a pause and begins again
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
    settings = client.settings
    quota = Quota(
        settings.invites_per_hour if max_per_hour is None else max_per_hour,
        settings.invites_per_day if max_per_day is None else max_per_day,
        kept,
    )
    roster = check_roster(invites, strict=on_invalid == "fail")
    report = InvitesReport() if report is None else report
    report.rows = len(roster.rows) + len(roster.invalid) + len(roster.duplicates)
    report.blank = roster.blank
    report.add(*roster.invalid, *roster.duplicates)
    if roster.invalid and on_invalid == "fail":
        raise WorkspaceInputError(
            f"Correct the invalid rows ({len(roster.invalid)}), or leave them out with on_invalid='skip': "
            f"{name_entries(roster.invalid)}"
        )
    if not roster.rows:
        return report
    quota.begin(clock())
    suspension = SuspensionClock(clock)
    rows = InviteRows(roster.rows, report, quota, suspension)
    watched = cast("WorkspaceClient", WatchedClient(client, suspension))
    campaign = _Campaign(watched, rows, organization_id, settings, quota, suspension, progress, memory)
    if memory is not None:
        wait_for_consistency(client, memory)
    if dry_run:
        campaign.read()
        report.add(*(make_entry(row, "planned", "is neither a member nor invited") for row in rows.open.values()))
        return report
    campaign.run(max_wait)
    quota.kept.clear()
    refused = [entry for entry in report.entries if entry.status == "failed"]
    if refused and on_invalid == "fail":
        raise WorkspaceInvitesIncompleteError(
            f"The service refused {len(refused)} of {report.rows} rows; the others are done. {name_entries(refused)}",
            report,
        )
    return report


@dataclass
class _Campaign:
    """
    Reads the lists, sends the missing invites, waits, and reads again, until each row has a result.

    It holds what decides on the next request: the limits and the concurrency.
    """

    client: WorkspaceClient
    rows: InviteRows
    organization_id: str
    settings: Settings
    quota: Quota
    clock: SuspensionClock
    progress: Callable[[int, int], None]
    memory: Memory | None
    noted_at: float = -math.inf
    listed: list[float] = field(default_factory=list[float])
    """Creation times of the invites that the service lists."""
    invite_count: int = 0
    """Expected number of invites: those that were read last, and those sent since."""
    width: int = 1
    """How many requests are sent at once."""
    limited: WorkspaceRateLimitError | None = None
    """The last 429."""
    hold_until: float = -math.inf
    """Time until which a limit forbids sending."""

    @property
    def limit(self) -> int:
        return 1 if self.settings.bulk_invite_body == "object" else self.settings.bulk_invite_limit

    def run(self, max_wait: float) -> None:
        """Read, send and wait until each row has a result."""
        self.read()
        if self.rows.open:
            self.progress(0, self.rows.total)
        while True:
            self.send()
            if not self.rows.open or self.clock.now() < self.hold_until:
                self.check_unlisted()
            if not self.rows.open:
                return
            self.wait(max_wait)
            self.read()

    # Reading

    def read(self) -> None:
        """Read the lists, and finish the rows that they decide."""
        seen, began = self.clock.read(self.snapshot)
        self.listed = [time for time in map(parse_timestamp, seen.invited_at) if time is not None]
        self.invite_count = seen.invite_count
        self.rows.compare(seen, began, self.settings.consistency_time)

    def snapshot(self) -> Snapshot:
        with self.reporting():
            return take_snapshot(self.client, "people", self.organization_id, complete=True)

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Read; once invites were sent, an error carries the report."""
        try:
            yield
        except WorkspaceRequestError as error:
            if not self.rows.accepted and not self.rows.tried:
                raise
            raise self.rows.incomplete(error) from error

    def check_unlisted(self) -> None:
        """Read the lists unless their count confirms the invites that no response showed."""
        if not self.rows.unlisted:
            return
        with self.reporting():
            page = self.client.send(ListInvites(organization_id=self.organization_id, limit=1))
        if page.count == self.invite_count:
            self.rows.unlisted = {}
        else:
            self.read()

    # Sending

    def send(self) -> None:
        """Send what the limits permit, until the lists must be read again."""
        if self.clock.now() < self.hold_until:
            return
        chunks = self.chunks()
        while chunks and not self.must_read():
            batch = [chunks.popleft() for _ in range(min(self.batch_size(), len(chunks)))]
            requests = [
                CreateInvites(
                    organization_id=self.organization_id,
                    invites=[row.invite for row in rows],
                    body=self.settings.bulk_invite_body,
                )
                for rows, _ in batch
            ]
            results = self.client.send_all(
                requests, caller_looks_up=True, note=self.note, must_stop=self.clock.is_stale
            )
            limited = self.record(batch, results)
            self.progress(self.rows.total - len(self.rows.open), self.rows.total)
            if limited:
                self.width = 1
                self.read()
                asked = self.limited.retry_after if self.limited else None
                self.hold_until = self.quota.refuse(self.listed, limited, asked, self.clock.now())
                break
            self.width = min(self.width + self.rows.accepted, self.settings.max_concurrency)
        self.rows.parts += [rows for rows, is_part in chunks if is_part]

    def chunks(self) -> deque[tuple[list[Row], bool]]:
        """Return the rows of each request, and whether they are a part of a refused request."""
        sendable = {key: row for key, row in self.rows.open.items() if key not in self.rows.doubts}
        granted, again = self.quota.grants(self.listed, len(sendable), self.clock.now())
        if again is not None and not granted:
            self.hold_until = again
        parts, self.rows.parts = self.rows.parts, []
        chunks: deque[tuple[list[Row], bool]] = deque()
        for part in parts:
            rows = [sendable.pop(row.key) for row in part if row.key in sendable]
            if rows[:granted]:
                chunks.append((rows[:granted], True))
            if rows[granted:]:
                self.rows.parts.append(rows[granted:])
            granted -= len(rows[:granted])
        rest = list(sendable.values())[:granted]
        size = max(1, self.limit >> self.quota.refusals)
        chunks.extend((rest[start : start + size], False) for start in range(0, len(rest), size))
        return chunks

    def batch_size(self) -> int:
        """Return how many requests to hand out at once: more than may be under way, while nothing goes wrong."""
        steady = self.width == self.settings.max_concurrency and not self.rows.doubts and not self.rows.suspects
        return self.width * REQUESTS_AHEAD if steady else self.width

    def must_read(self) -> bool:
        """Return whether the lists must be read before more is sent."""
        rows = self.rows
        look_for_rows = not rows.accepted or rows.refusals >= REFUSALS_BEFORE_SPLIT
        in_doubt = len(rows.doubts) >= self.max_doubts()
        return self.clock.is_stale() or in_doubt or (bool(rows.suspects) and look_for_rows)

    def max_doubts(self) -> int:
        """Return the number of rows with an unknown outcome that are looked up before more is sent."""
        return MAX_IN_DOUBT * self.limit if self.rows.accepted else 1

    def note(self) -> None:
        """Note that invites are being sent, unless that was noted just now."""
        now = self.clock.clock()
        if self.memory is not None and not 0 <= now - self.noted_at <= NOTE_SECONDS:
            self.noted_at = now
            self.memory.begin(INVITING)

    def record(self, batch: list[tuple[list[Row], bool]], results: list[Any]) -> int:
        """
        Record the results of requests.

        :return: number of rows that were refused for a limit
        :raises WorkspaceInvitesIncompleteError: if other requests would be refused as well
        """
        limited = 0
        fatal: WorkspaceRequestError | None = None
        for (rows, is_part), result in zip(batch, results, strict=True):
            if result is None or isinstance(result, WorkspaceRateLimitError):  # not sent, or refused for the limit
                if result is not None:
                    self.limited = result
                    limited += len(rows)
                if is_part:
                    self.rows.parts.append(rows)
            elif not isinstance(result, WorkspaceRequestError):
                self.invite_count += self.rows.accept(rows, result)
            elif is_in_doubt(result):
                self.rows.doubt(rows, result)
                self.noted_at = -math.inf
                self.note()  # it may take effect within the consistency time from now
            elif isinstance(result, WorkspaceStatusError) and result.status in (400, 403, 409, 422):
                fatal = self.rows.refuse(rows, result) or fatal
            else:
                fatal = fatal or result
                for row in rows:
                    self.rows.finish(row, "not_sent", str(result))
        if fatal is not None:
            raise self.rows.incomplete(fatal) from fatal
        return limited

    # Waiting

    def wait(self, max_wait: float) -> None:
        """Wait until an unknown outcome may be listed or a limit permits more, whichever comes first."""
        now = self.clock.now()
        held = self.hold_until - now
        doubts = self.rows.doubts
        sendable = len(self.rows.open) > len(doubts)
        if sendable and held <= 0 and len(doubts) < self.max_doubts():
            return
        certain, most = self.clock.certain(), self.settings.consistency_time
        pauses = [next(look_up_pauses(certain - doubt.certain, most)) for doubt in doubts.values()]
        if sendable and held > 0:
            pauses.append(held)
        seconds = min(pauses)
        report = self.rows.report
        report.waits_for = "an answer was lost: the lists must show who was invited"
        if not doubts:
            report.waits_for = self.quota.reason
            if seconds > max_wait or now > self.quota.progress_at + MAX_IDLE:
                raise self.rows.incomplete(self.limited, retry_after=seconds)
            self.width = 1
        log.info("%s. Continuing in %.0f s: %s.", report.summary(), seconds, report.waits_for)
        self.quota.parts[:] = [[row.key for row in part] for part in self.rows.parts]
        self.client.pause(seconds)
