"""The operator that fills what batch exports have missed, at services that show their runs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NoReturn

from airflow_provider_workspace.operators.arguments import (
    EXPORTS_OR_NONE,
    FLAG,
    ID,
    MOMENT,
    SECONDS,
    SECONDS_FROM_ONE,
    TIME,
    Arg,
    arg,
    fixed,
)
from airflow_provider_workspace.operators.base import WorkspaceWriteOperator
from airflow_provider_workspace.operators.windows import WorkspaceWindowOperator, lease_registry
from airflow_provider_workspace.version_compat import AirflowFailException

if TYPE_CHECKING:
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.notes.task_state import TaskState
    from airflow_provider_workspace.windows.catch_up import Ask
    from airflow_provider_workspace.windows.intervals import Coverage

# Key of what was asked for in the task state.
CATCH_UP = "airflow_provider_workspace_catch_up"
# Seconds until a drain looks again.
DRAIN_INTERVAL = 15.0
# How many intervals that are left the message names.
MAX_LEFT = 20


class WorkspaceCatchUpOperator(WorkspaceWriteOperator):
    """
    Fill what batch exports have missed, and prove it. Scopes ``batch_export:read`` and ``batch_export:write``.

    For services that show the runs of an export, which is not part of the interface. Each interval without a completed
    run is asked for once, as a backfill; what runs already is waited for, and so is a limit of backfills. The task
    waits without a worker slot, and fails after ``within`` with the intervals that are left. An interval whose runs
    fail is asked for three times at most.

    The result is ``{"complete_until": time, "exports": [{"batch_export_id", "from", "complete_until", "filled": [...],
    "left": [...], "paused": bool}]}``, also of a task that fails. The asset events of ``outlets`` have it, too.

    :param batch_export_ids: the batch exports (UUID); none does nothing
    :param since: beginning of what may be missing: a time with its zone, or seconds since 1970. The interval before it
        counts too, because its run may not have begun
    :param until: end of what may be missing; by default when the task begins
    :param project_id: the project; by default that of the connection
    :param within: how long to wait
    :param poll_interval: time between two looks
    :param from_pause: whether to begin at the last pause that the service shows, if that is earlier than ``since``
    """

    resource_kind = "batch_exports"
    batch_export_ids: Arg[Sequence[str]] = arg(EXPORTS_OR_NONE)
    since: Arg[datetime | str | float] = arg(MOMENT)
    until: Arg[datetime | str | float | None] = arg(MOMENT, default=None)
    project_id: Arg[str | int | None] = arg(ID, default=None)
    within: Arg[timedelta | float] = arg(SECONDS_FROM_ONE, default=21_600.0)
    poll_interval: Arg[timedelta | float] = arg(SECONDS_FROM_ONE, default=60.0)
    from_pause: bool = fixed(FLAG, default=False)

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        """Look at each export, ask for what is missing, and look again later."""
        now = time.time()
        noted: dict[str, Any] = self._state.read() or {"until": self.until or now, "asked": {}}
        # A task that was cleared has its time again, and knows what it has asked for.
        noted.setdefault("began", now)
        self._state.write(noted)
        found: dict[str, Coverage] = {}
        self._paused: list[str] = []
        for export_id in self.batch_export_ids:
            found[export_id] = self._advance(hook, export_id, noted)
        result = self._result(found, noted["asked"])
        if not all(coverage.is_complete for coverage in found.values()):
            end_at = noted["began"] + self.within
            if now >= end_at:
                del noted["began"]
                self._state.write(noted)
                self._fail(found, result)
            self.log.info("%s. Looking again later.", _progress(found))
            self.defer_until(min(end_at, now + self.poll_interval))
        self._state.forget()
        self._announce(result)
        return result

    def _advance(self, hook: WorkspaceHook, export_id: str, noted: dict[str, Any]) -> Coverage:
        """Ask for what an export has missed; ``noted`` receives what was asked for."""
        from airflow_provider_workspace.windows.catch_up import Ask, CatchUp
        from airflow_provider_workspace.windows.export_runs import Export

        export = Export.read(hook.client, hook.project_or_default(self.project_id), export_id)
        if export.paused:
            self._paused.append(export_id)
        since = _utc(self.since)
        if self.from_pause and export.last_paused_at:
            since = min(since, export.last_paused_at)

        def remember(asked: list[Ask]) -> None:
            noted["asked"][export_id] = [ask.to_dict() for ask in asked]
            self._state.write(noted)

        asked = [Ask.read(each) for each in noted["asked"].get(export_id, ())]
        return CatchUp(export, since, _utc(noted["until"]), time.time, remember, asked).advance()

    @property
    def _state(self) -> TaskState:
        from airflow_provider_workspace.notes.task_state import TaskState

        return TaskState(self._context, self._carried, dry_run=self.is_dry_run, key=CATCH_UP)

    def _result(self, found: Mapping[str, Coverage], asked: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
        """Return the result as plain JSON."""
        from airflow_provider_workspace.windows.catch_up import Ask

        exports: list[dict[str, Any]] = []
        for export_id, coverage in found.items():
            left = [*coverage.under_way, *coverage.missing]
            filled = [str(Ask.read(each).interval) for each in asked.get(export_id, ())]
            exports.append(
                {
                    "batch_export_id": export_id,
                    "from": _iso(coverage.intervals[0].start),
                    "complete_until": _iso(coverage.complete_until),
                    "filled": filled,
                    "left": [str(interval) for interval in sorted(left)],
                    "paused": export_id in self._paused,
                }
            )
        complete_until = min((export["complete_until"] for export in exports), default=None)
        return {"complete_until": complete_until, "exports": exports}

    def _announce(self, result: Mapping[str, Any]) -> None:
        """Say in the asset events of the task up to when everything is exported."""
        events = self._context.get("outlet_events")
        if events is None:
            return
        for asset in self.outlets:
            events[asset].extra.update(result)

    def _fail(self, found: Mapping[str, Coverage], result: dict[str, Any]) -> NoReturn:
        from airflow_provider_workspace.errors import with_problem

        self.push_xcom("return_value", result)
        lines: list[str] = []
        for export_id, coverage in found.items():
            lines += [f"{export_id}: {interval} (under way)" for interval in coverage.under_way]
            lines += [f"{export_id}: {interval}" for interval in coverage.missing]
        others = [f"and {len(lines) - MAX_LEFT} more"] if len(lines) > MAX_LEFT else []
        listed = "\n".join([*lines[:MAX_LEFT], *others])
        cure = "Look at the runs of the export in the workspace, correct why they fail"
        if self._paused:
            cure = f"Resume {', '.join(self._paused)}: it is paused, as after failed runs"
        intervals = "1 interval is" if len(lines) == 1 else f"{len(lines)} intervals are"
        raise AirflowFailException(
            with_problem(
                f"{intervals} not exported within {self.within:g} s. {cure}, then clear this task:\n{listed}",
                "exports-incomplete",
            )
        )


class WorkspaceDrainMaintenanceWindowOperator(WorkspaceWindowOperator):
    """
    Wait until no run of the exports of a window is under way; deferred, without a worker slot.

    :param paused_at: when the exports were paused, in seconds since 1970
    :param length: how long to wait at most, a timedelta or seconds; the work begins then, and the log says what runs
    :param project_id: the project; by default that of the connection
    """

    paused_at: Arg[float] = arg(TIME)
    length: Arg[timedelta | float] = arg(SECONDS)
    project_id: Arg[str | int | None] = arg(ID, default=None)

    def work(self, hook: WorkspaceHook) -> dict[str, float]:
        from airflow_provider_workspace.windows.export_runs import Export

        now = time.time()
        end_at = self.paused_at + self.length
        running: list[str] = []
        for lease in lease_registry().all(window=self.window):
            project_id = hook.project_or_default(self.project_id)
            if Export.read(hook.client, project_id, lease.batch_export_id).has_run_under_way(_utc(now)):
                running.append(lease.batch_export_id)
        if running and now < end_at:
            self.log.info("Runs are under way of %s. Looking again later.", ", ".join(running))
            self.defer_until(min(end_at, now + DRAIN_INTERVAL))
        if running:
            self.log.warning("Runs are still under way of %s; the work begins.", ", ".join(running))
        return {"ended_at": now}


def _progress(found: Mapping[str, Coverage]) -> str:
    under_way = sum(len(coverage.under_way) for coverage in found.values())
    missing = sum(len(coverage.missing) for coverage in found.values())
    return f"Not exported yet: {missing + under_way} intervals, {under_way} of them under way"


def _utc(seconds: Any) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc)


def _iso(moment: datetime | None) -> str | None:
    from airflow_provider_workspace.api.timestamps import iso

    return None if moment is None else iso(moment.timestamp(), "seconds")
