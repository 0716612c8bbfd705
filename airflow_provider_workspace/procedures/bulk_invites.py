"""Inviting many people once each, whatever happens on the way."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_workspace.api.operations.invites import CreateInvites
from airflow_provider_workspace.api.outcome import Outcome, is_in_doubt
from airflow_provider_workspace.api.procedure import Pause, Procedure, Send
from airflow_provider_workspace.api.retry import CONSISTENCY_SECONDS, MAX_SENDS
from airflow_provider_workspace.errors import (
    WorkspaceError,
    WorkspaceInputError,
    WorkspaceRequestError,
    WorkspaceStatusError,
)
from airflow_provider_workspace.procedures.quota import Quota, seconds_of
from airflow_provider_workspace.procedures.roster import Entry, Row, address_key, check_roster
from airflow_provider_workspace.procedures.snapshot import Snapshot, take_snapshot

if TYPE_CHECKING:
    from airflow_provider_workspace.procedures.create_or_get import Memory

log = logging.getLogger(__name__)

STATUSES = ("invited", "already_invited", "member", "duplicate", "invalid", "failed", "unknown", "not_sent", "planned")
# What a task remembers that has begun to invite many people.
INVITING = "invites"
# Chunks handed out together. Also how often progress is logged and how much may be in doubt at once.
CHUNKS_AT_ONCE = 40
# How many rows the log shows.
MAX_LINES = 50
# How many bad rows an error names; the report has them all.
MAX_NAMED = 20


class InvitesReport:
    """
    What became of each row.

    :param rows: how many rows there were
    :ivar again_at: when the rows that a limit kept back may be sent, in seconds since 1970; ``None`` if there are none
    """

    def __init__(self, rows: int = 0) -> None:
        self.rows = rows
        self.again_at: float | None = None
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
    :param cause: the error that ended it; ``None`` if the service refused single rows
    """

    def __init__(self, message: str, report: InvitesReport, cause: WorkspaceRequestError | None = None) -> None:
        super().__init__(message)
        self.report = report
        self.cause = cause
        self.retry_after = cause.retry_after if cause else None

    @property
    def permanent(self) -> bool:
        """Whether a next try would be refused as well; it is if the service refused single rows."""
        return self.cause is None or self.cause.permanent


def wait_for_consistency(memory: Memory) -> Procedure[None]:
    """
    Wait until the lists show whom an earlier try of the task may just have invited, and note that this one begins.

    :param memory: what the task remembers from try to try
    """
    if memory.age(INVITING) is not None:
        log.info("An earlier try may have invited people a moment ago: waiting until the lists show them.")
        yield Pause(CONSISTENCY_SECONDS)
    memory.begin(INVITING)


def invite_all(
    invites: Iterable[Mapping[str, Any] | str],
    *,
    organization_id: str,
    on_invalid: Literal["fail", "skip"] = "fail",
    limit: int = 20,
    body: Literal["array", "object"] = "array",
    page_size: int = 100,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    dry_run: bool = False,
    quota: Quota | None = None,
    earlier: Collection[int] = (),
) -> Procedure[InvitesReport]:
    """
    Invite everybody who is neither a member nor invited already.

    :param invites: rows, see :func:`~airflow_provider_workspace.procedures.roster.check_roster`
    :param on_invalid: refuse everything if a row is wrong, or leave such rows out
    :param limit: invites per request
    :param progress: called with how many of how many addresses are done
    :param dry_run: send nothing; who would be invited is ``planned``
    :param quota: how many may go out now; the others are ``not_sent``, and ``again_at`` says when they may
    :param earlier: rows that an earlier part of the same task invited
    :return: what became of each row
    :raises WorkspaceInputError: for a wrong row, before anything is sent
    :raises WorkspaceInvitesIncompleteError: if somebody could not be invited
    """
    if on_invalid not in ("fail", "skip"):
        given: Any = on_invalid
        shown = repr(given[:40]) if isinstance(given, str) else type(given).__name__
        msg = f"on_invalid is {shown}; expected 'fail' or 'skip'"
        raise WorkspaceInputError(msg)
    roster = check_roster(invites)
    report = InvitesReport(len(roster.rows) + len(roster.invalid) + len(roster.duplicates))
    report.add(*roster.invalid, *roster.duplicates)
    if roster.invalid and on_invalid == "fail":
        raise WorkspaceInputError(_describe_invalid(roster.invalid))
    if not roster.rows:
        return report
    seen = yield from take_snapshot("people", organization_id, page_size, complete=True)
    known = _known_addresses(seen)
    todo: list[Row] = []
    for row in roster.rows:
        if row.key in known and row.number in earlier:
            report.add(_entry(row, "invited", "by an earlier part of this task"))
        elif row.key in known:
            report.add(Entry(row.number, row.invite.target_email, *known[row.key]))
        else:
            todo.append(row)
    if dry_run:
        report.add(*(_entry(row, "planned", "is neither a member nor invited") for row in todo))
        return report
    if quota is not None:
        listed = [time for time in map(seconds_of, seen.invited_at) if time is not None]
        granted, report.again_at = quota.grants(listed, len(todo))
        report.add(*(_entry(row, "not_sent", "the limit of invites is reached") for row in todo[granted:]))
        del todo[granted:]
    yield from _send_all(todo, report, organization_id, 1 if body == "object" else limit, body, page_size, progress)
    refused = [entry for entry in report.entries if entry.status == "failed"]
    if refused and on_invalid == "fail" and report.again_at is None:  # else the others come first
        msg = f"The service refused {len(refused)} of {report.rows} rows, the others are done. {name_entries(refused)}"
        raise WorkspaceInvitesIncompleteError(msg, report)
    return report


def _send_all(
    rows: list[Row],
    report: InvitesReport,
    organization_id: str,
    limit: int,
    body: Literal["array", "object"],
    page_size: int,
    progress: Callable[[int, int], None],
) -> Procedure[None]:
    """Send the rows in chunks; after a lost or bad answer look up what arrived, and send only the rest."""
    waiting = deque((rows[start : start + limit], 1) for start in range(0, len(rows), limit))
    if rows:
        progress(0, len(rows))
    while waiting:
        chunks = [waiting.popleft() for _ in range(min(CHUNKS_AT_ONCE, len(waiting)))]
        requests = [
            CreateInvites(organization_id=organization_id, invites=[row.invite for row in chunk], body=body)
            for chunk, _ in chunks
        ]
        results = yield Send(requests, looks_first=True)
        if any(is_in_doubt(result) for result in results):
            yield Pause(CONSISTENCY_SECONDS)
        in_doubt: list[tuple[list[Row], int, WorkspaceRequestError]] = []
        fatal: WorkspaceRequestError | None = None
        for (chunk, round_), result in zip(chunks, results, strict=True):
            if not isinstance(result, WorkspaceRequestError):
                ids = {address_key(made.target_email or ""): made.id for made in result}
                report.add(*(_entry(row, "invited", invite_id=ids.get(row.key)) for row in chunk))
            elif result.outcome == Outcome.UNKNOWN.value or _is_about_rows(result):
                in_doubt.append((chunk, round_, result))
            else:
                fatal = fatal or result
                report.add(*(_entry(row, "not_sent", str(result)) for row in chunk))
        if in_doubt:
            again, lost = yield from _read_back(in_doubt, report, organization_id, page_size)
            waiting.extend(again)
            fatal = fatal or lost
        progress(len(rows) - sum(len(chunk) for chunk, _ in waiting), len(rows))
        if fatal:
            for chunk, _ in waiting:
                report.add(*(_entry(row, "not_sent", "an earlier request failed") for row in chunk))
            msg = f"Not everybody was invited ({report.summary()}): {fatal} The next try sends only what is missing."
            raise WorkspaceInvitesIncompleteError(msg, report, fatal) from fatal


def _read_back(
    in_doubt: list[tuple[list[Row], int, WorkspaceRequestError]],
    report: InvitesReport,
    organization_id: str,
    page_size: int,
) -> Procedure[tuple[list[tuple[list[Row], int]], WorkspaceRequestError | None]]:
    """
    Look up what arrived of the chunks whose answer was lost or bad.

    :return: what to send again, in halves where one of the rows may be to blame; and the error that ends it all, if any
    """
    try:
        arrived = _known_addresses((yield from take_snapshot("people", organization_id, page_size, complete=True)))
    except WorkspaceRequestError as error:
        for chunk, _, answer in in_doubt:
            report.add(*(_entry(row, "unknown", str(answer)) for row in chunk))
        return [], error
    again: list[tuple[list[Row], int]] = []
    fatal: WorkspaceRequestError | None = None
    for chunk, round_, answer in in_doubt:
        missing = _record_arrived(chunk, arrived, report)
        if not missing:
            continue
        if _is_about_rows(answer) and len(chunk) == 1:
            report.add(_entry(missing[0], "failed", _detail_of(answer)))
        elif _is_about_rows(answer):
            middle = (len(missing) + 1) // 2
            again += [(part, round_ + 1) for part in (missing[:middle], missing[middle:]) if part]
        elif round_ < MAX_SENDS:
            again.append((missing, round_ + 1))
        else:
            fatal = fatal or answer
            report.add(*(_entry(row, "unknown", str(answer)) for row in missing))
    return again, fatal


def _is_about_rows(error: WorkspaceRequestError) -> bool:
    """Tell whether the service may have refused a chunk for one of its rows."""
    return isinstance(error, WorkspaceStatusError) and error.status in (400, 409, 422)


def _record_arrived(chunk: list[Row], arrived: dict[str, tuple[str, str]], report: InvitesReport) -> list[Row]:
    """Record the rows of a chunk that arrived although the answer did not say so; return the others."""
    missing: list[Row] = []
    for row in chunk:
        if row.key not in arrived:
            missing.append(row)
        elif arrived[row.key][0] == "already_invited":
            report.add(_entry(row, "invited", "found when reading back, after an answer was lost or bad"))
        else:
            report.add(_entry(row, *arrived[row.key]))
    return missing


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
        f"{len(invalid)} of the rows are wrong: {name_entries(invalid)} "
        "Correct them, or leave them out with on_invalid='skip'."
    )


def name_entries(entries: list[Entry]) -> str:
    """Name the first rows of a list with their reasons."""
    named = "; ".join(
        f"row {item.row} ({item.email or 'no address'}): {item.reason.rstrip('.')}" for item in entries[:MAX_NAMED]
    )
    more = f"; and {len(entries) - MAX_NAMED} more" if len(entries) > MAX_NAMED else ""
    return f"{named}{more}."
