"""
Runs and backfills of batch exports: endpoints that known services have and the interface does not.

They are declared as an author's own endpoints are, outside of the operations of the interface: see
``docs/guides/endpoints.md``. ``paths`` of the connection may move them, by module and class.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.endpoint import endpoint
from airflow_provider_workspace.api.fields import Cursor, TextId
from airflow_provider_workspace.api.models import Page, Resource
from airflow_provider_workspace.api.operation import Operation, T
from airflow_provider_workspace.api.timestamps import iso, parse_timestamp
from airflow_provider_workspace.errors import WorkspaceConfigError, WorkspaceInputError, WorkspaceNotFoundError
from airflow_provider_workspace.windows.intervals import EPOCH, ExportRun, Interval, Schedule

if TYPE_CHECKING:
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook

# Statuses of a backfill that begins no more runs; one that is unknown may still do so.
ENDED_STATUSES = frozenset(
    ("Completed", "Failed", "FailedRetryable", "FailedBilling", "Cancelled", "Terminated", "TimedOut")
)
FOREVER = datetime.max.replace(tzinfo=timezone.utc)
DAY_PATTERN = re.compile(r"\d{4}-\d{2}-\d{2}")
EXPORT = "/projects/{project_id}/batch_exports/{batch_export_id}/"


class ScheduledExport(Resource):
    """A batch export with its schedule."""

    id: str | None = None
    interval: str | None = None
    timezone: str | None = None
    offset_day: int | None = None
    offset_hour: int | None = None
    paused: bool | None = None


class ExportRunRecord(Resource):
    """A run of a batch export."""

    id: str | None = None
    status: str | None = None
    data_interval_start: str | None = None
    data_interval_end: str | None = None


class BackfillRecord(Resource):
    """A backfill of a batch export."""

    id: str | None = None
    backfill_id: str | None = None
    status: str | None = None
    start_at: str | None = None
    end_at: str | None = None
    finished_at: str | None = None


class OfExport(Operation[T]):
    """An operation on a batch export of a project."""

    project_id: TextId
    batch_export_id: TextId


@endpoint("GET", EXPORT, scope="batch_export:read", repeatable=True)
class GetBatchExport(OfExport[ScheduledExport]):
    """Retrieve a batch export."""


@endpoint("GET", EXPORT + "runs/", scope="batch_export:read", repeatable=True)
class ListBatchExportRuns(OfExport[Page[ExportRunRecord]]):
    """
    List the runs of a batch export; of seven days only, unless ``start`` is given.

    ``start`` counts by when a run was made, and not by its interval: also a backfill of an old interval is listed.
    """

    start: str
    cursor: Cursor = None


@endpoint("GET", EXPORT + "backfills/", scope="batch_export:read", repeatable=True)
class ListBackfills(OfExport[Page[BackfillRecord]]):
    """List the backfills of a batch export that have begun."""

    cursor: Cursor = None


@endpoint(
    "POST",
    EXPORT + "backfills/",
    scope="batch_export:write",
    repeatable=False,
    effect="create",
    recover="look-up",
    refusals_count=True,
    look_for="Look at the backfills of the batch export in the workspace before you ask for the same again.",
)
class CreateBackfill(OfExport[BackfillRecord]):
    """Export what ended after ``start_at`` and not after ``end_at`` again."""

    start_at: str
    end_at: str


@dataclass(frozen=True)
class Backfill:
    """
    A backfill that the service shows.

    :param is_under_way: whether it may still begin runs
    """

    id: str | None
    interval: Interval
    is_under_way: bool


@dataclass(frozen=True)
class Export:
    """
    A batch export of a service that shows its runs.

    :param paused: whether it is paused; ``None`` if the service does not show it
    """

    client: WorkspaceClient
    project_id: str
    batch_export_id: str
    schedule: Schedule
    paused: bool | None

    @classmethod
    def read(cls, client: WorkspaceClient, project_id: str, batch_export_id: str) -> Export:
        """
        Read an export and its schedule.

        :raises WorkspaceConfigError: if the service has no such export, or shows none
        :raises WorkspaceInputError: if its schedule is unknown
        """
        with _shown(project_id, batch_export_id):
            record = client.send(GetBatchExport(project_id=project_id, batch_export_id=batch_export_id))
        try:
            schedule = Schedule.read(record.interval, record.timezone, record.offset_day, record.offset_hour)
        except WorkspaceInputError as error:
            raise WorkspaceInputError(f"Batch export {batch_export_id}: {error}") from None
        return cls(client, project_id, batch_export_id, schedule, record.paused)

    def runs(self, since: datetime) -> list[ExportRun]:
        """
        Return the runs of the intervals that begin at a moment or later, and perhaps others.

        A run without a beginning covers everything before its end.

        :raises WorkspaceConfigError: if the service has none
        """
        start = iso(since.timestamp(), "seconds")
        with _shown(self.project_id, self.batch_export_id):
            records = list(self.client.rows(ListBatchExportRuns(**self._ids, start=start)))
        runs: list[ExportRun] = []
        for record in records:
            begins = self._moment(record.data_interval_start) or EPOCH
            ends = self._moment(record.data_interval_end)
            if ends:
                interval = Interval(begins, ends)
                runs.append(ExportRun(interval, record.status or ""))
        return runs

    def backfills(self) -> list[Backfill]:
        """
        Return the backfills that have begun; one without a beginning or end covers everything there.

        :raises WorkspaceConfigError: if the service has none
        """
        with _shown(self.project_id, self.batch_export_id):
            records = list(self.client.rows(ListBackfills(**self._ids)))
        backfills: list[Backfill] = []
        for record in records:
            begins = self._moment(record.start_at) or EPOCH
            ends = self._moment(record.end_at) or FOREVER
            is_under_way = record.status not in ENDED_STATUSES and not record.finished_at
            backfill_id = record.id or record.backfill_id
            backfill = Backfill(backfill_id, Interval(begins, ends), is_under_way)
            backfills.append(backfill)
        return backfills

    @property
    def _ids(self) -> dict[str, Any]:
        return {"project_id": self.project_id, "batch_export_id": self.batch_export_id}

    def _moment(self, text: str | None) -> datetime | None:
        """Read a time of the service; a date is the beginning of that day of the schedule."""
        if text and DAY_PATTERN.fullmatch(text):
            return self.schedule.start_of(date.fromisoformat(text))
        seconds = parse_timestamp(text)
        return None if seconds is None else datetime.fromtimestamp(seconds, timezone.utc)

    def ask_for(self, missing: Interval) -> CreateBackfill:
        """Return the request for a backfill of some intervals that follow each other."""
        if self.schedule.takes_dates:
            start_at = str(self.schedule.day_of(missing.start))
            end_at = str(self.schedule.day_of(missing.end))
        else:
            start_at = iso(missing.start.timestamp(), "seconds")
            end_at = iso(missing.end.timestamp(), "seconds")
        return CreateBackfill(**self._ids, start_at=start_at, end_at=end_at)


def export_state(hook: WorkspaceHook, batch_export_id: str) -> str | None:
    """
    Return whether a batch export is ``paused`` or ``running``: a ready-made ``state_of``.

    The project is that of the connection. ``None`` if the service does not show it.
    """
    export = GetBatchExport(project_id=hook.project_or_default(), batch_export_id=batch_export_id)
    paused = hook.client.send(export).paused
    return None if paused is None else "paused" if paused else "running"


@contextmanager
def _shown(project_id: str, batch_export_id: str) -> Iterator[None]:
    """Say of a service that shows nothing of an export what that means."""
    try:
        yield
    except WorkspaceNotFoundError as error:
        raise WorkspaceConfigError(
            f"The service does not show the runs of batch export {batch_export_id} in project {project_id}, so nothing "
            "can be proven, and nothing was asked for. Check the project; if the service has them elsewhere, set "
            f"'paths' in the extra of the connection. {error}",
            problem="runs-not-shown",
        ) from None
