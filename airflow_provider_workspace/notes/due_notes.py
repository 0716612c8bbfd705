"""One way to end what is due: each kind of note that has an end, and one error for what is left."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from airflow_provider_workspace.errors import WorkspaceError, with_problem

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ended:
    """
    What became of one kind.

    :param kind: its name, such as ``windows``
    :param report: what was ended and what is left, as plain JSON; ``None`` if nothing could be read
    :param lines: the same for people
    :param error: why something could not be ended; ``None`` if nothing failed
    :param alarm: what had to be ended although it should have ended itself; empty if there was nothing
    :param is_left: whether something is left, whatever the reason
    """

    kind: str
    report: Mapping[str, Any] | None
    lines: Sequence[str] = ()
    error: WorkspaceError | None = None
    alarm: str = ""
    is_left: bool = False


class Due(Protocol):
    """A kind of note that has an end."""

    @property
    def kind(self) -> str:
        """Its name, such as ``windows``."""
        ...

    def end_due(self, *, dry_run: bool) -> Ended:
        """
        End what is due.

        :param dry_run: whether to send and write nothing, and to report what would be ended
        """
        ...


def end_all(kinds: Iterable[Due], *, dry_run: bool) -> list[Ended]:
    """End what is due of each kind; whatever one of them raises becomes its error, and stops no other."""
    return [_end_kind(due, dry_run=dry_run) for due in kinds]


def _end_kind(due: Due, *, dry_run: bool) -> Ended:
    try:
        return due.end_due(dry_run=dry_run)
    except WorkspaceError as error:
        failure = error
    except Exception as error:
        log.exception("%s could not be swept", due.kind)
        msg = f"{type(error).__name__}: {error}"
        failure = WorkspaceError(msg, problem="unexpected-error", permanent=False)
    return Ended(due.kind, report=None, error=failure, is_left=True)


def failure_of(ends: Iterable[Ended]) -> WorkspaceError | None:
    """
    Return one error for all kinds that failed, each after its name; ``None`` if none failed.

    It is permanent only if all of them are.
    """
    failures = {ended.kind: ended.error for ended in ends if ended.error is not None}
    if not failures:
        return None
    pauses = [error.retry_after for error in failures.values() if error.retry_after is not None]
    lines = [with_problem(f"{kind}: {error.named()}") for kind, error in failures.items()]
    is_permanent = all(error.permanent for error in failures.values())
    combined = WorkspaceError("\n".join(lines), problem="", permanent=is_permanent)  # each line has its own problem
    combined.retry_after = max(pauses, default=None)
    return combined


def reports_of(ends: Iterable[Ended], *, dry_run: bool) -> dict[str, Any]:
    """Return the reports by kind, without those of which nothing could be read."""
    reports: dict[str, Any] = {}
    for ended in ends:
        if ended.report is not None:
            reports[ended.kind] = dict(ended.report)
    if dry_run:
        reports["dry_run"] = True
    return reports
