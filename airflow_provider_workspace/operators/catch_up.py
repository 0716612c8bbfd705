"""
Operators for services that show the runs of batch exports: what a pause has cost is filled, and proven.

Known services have these endpoints, but the API does not name them: see docs/guides/catch-up.md.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NoReturn

from airflow_provider_workspace.operators import arguments as kinds
from airflow_provider_workspace.operators.arguments import Arg, DeclaredArguments, arg
from airflow_provider_workspace.operators.base import WorkspaceOperator, WorkspaceWriteOperator
from airflow_provider_workspace.version_compat import AirflowFailException

if TYPE_CHECKING:
    from airflow_provider_workspace.errors import WorkspaceError
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.windows.catch_up import Ask, CatchUp, Look
    from airflow_provider_workspace.windows.export_runs import Export

LOOK_INTERVAL = timedelta(minutes=1)
# A run that is under way when its export is paused has an interval of at most a week, which ended at most a week ago.
# The list begins by when a run was made, so it has also the runs of backfills of older intervals.
DRAINED_RUNS = timedelta(days=15)


class OfExports(DeclaredArguments):
    """
    What belongs to batch exports of a project.

    :param project_id: their project; by default that of the connection
    """

    project_id: Arg[str | int | None] = arg(kinds.ID, default=None)

    def read_exports(self, hook: WorkspaceHook, export_ids: Iterable[str]) -> list[Export]:
        """Read exports and their schedules."""
        from airflow_provider_workspace.windows.export_runs import Export

        project_id = hook.project_or_default(self.project_id)
        return [Export.read(hook.client, project_id, export_id) for export_id in export_ids]


class WorkspaceCheckExportRunsOperator(OfExports, WorkspaceOperator):
    """
    Fail unless the service shows schedule, runs and backfills of batch exports. Scope ``batch_export:read``.

    ``maintenance_window`` with ``catch_up`` begins with it, because nothing could be proven otherwise.

    :param batch_export_ids: batch exports (UUID)
    """

    resource_kind = "batch_export"
    batch_export_ids: Arg[Sequence[str]] = arg(kinds.EXPORTS)

    def work(self, hook: WorkspaceHook) -> dict[str, Any]:
        exports = self.read_exports(hook, self.batch_export_ids)
        for export in exports:
            export.runs(datetime.now(timezone.utc))
            export.backfills()
        return {"batch_export_ids": [export.batch_export_id for export in exports]}


class WorkspaceDrainExportsOperator(OfExports, WorkspaceOperator):
    """
    Wait until no run of paused exports is under way; deferred, without a worker slot. Scope ``batch_export:read``.

    :param batch_export_ids: batch exports (UUID)
    :param opened_at: start of the time in seconds since 1970
    :param length: the longest wait, a timedelta or seconds; runs that are under way at its end are logged
    """

    resource_kind = "batch_export"
    batch_export_ids: Arg[Sequence[str]] = arg(kinds.EXPORTS)
    opened_at: Arg[float] = arg(kinds.TIME)
    length: Arg[timedelta | float] = arg(kinds.SECONDS)

    def work(self, hook: WorkspaceHook) -> dict[str, float]:
        from airflow_provider_workspace.errors import WorkspaceError

        end_at = self.opened_at + self.length
        next_look = time.time() + LOOK_INTERVAL.total_seconds()
        try:
            left = self._under_way(hook)
        except WorkspaceError as error:
            if error.permanent or time.time() >= end_at:
                raise
            self.log.warning("This look failed, and the next one follows: %s", error)
            self.defer_until(min(end_at, next_look))
        if left and time.time() < end_at:
            self.log.info("Runs under way:\n%s", "\n".join(left))
            self.defer_until(min(end_at, next_look))
        if left:
            self.log.warning("The work begins, although runs are under way:\n%s", "\n".join(left))
        return {"ended_at": time.time()}

    def _under_way(self, hook: WorkspaceHook) -> list[str]:
        """Return a line for each run under way, and for each backfill, whose next run may be about to begin."""
        from airflow_provider_workspace.windows.intervals import UNDER_WAY

        since = datetime.now(timezone.utc) - DRAINED_RUNS
        lines: list[str] = []
        for export in self.read_exports(hook, self.batch_export_ids):
            # First the backfills: one that ends meanwhile has its runs in the list that is read after it.
            backfills = [backfill.interval for backfill in export.backfills() if backfill.is_under_way]
            runs = [run.interval for run in export.runs(since) if run.status in UNDER_WAY]
            lines += [f"{export.batch_export_id}: {interval}" for interval in runs]
            lines += [f"{export.batch_export_id}: {interval}, a backfill" for interval in backfills]
        return lines


class WorkspaceCatchUpOperator(OfExports, WorkspaceWriteOperator):
    """
    Fill what batch exports have missed, and wait until every interval has a completed run; deferred, without a slot.

    Scopes ``batch_export:read`` and ``batch_export:write``. For services that show the runs and backfills of exports.
    Missing intervals are requested once, and again if their run fails, at most three times. Nothing is requested while
    an export is paused.

    The result is ``{"complete_until": time or None, "exports": [{"batch_export_id", "from", "complete_until",
    "filled", "missing", "paused"}]}``; ``filled`` and ``missing`` hold ``{"from", "to"}``. A task that fails pushes the
    same. The events of its asset outlets have the extra ``{"export", "from", "to"}``, up to when all is complete;
    ``export`` is a list if there are several.

    :param batch_export_ids: batch exports (UUID)
    :param batch_export_id: one batch export (UUID), in place of ``batch_export_ids``
    :param since: from when on: a time with its zone, or seconds since 1970. Between two runs, the run before counts
        too, because it may not have begun
    :param until: up to when; by default until the task begins
    :param timeout: the longest wait, a timedelta or seconds. At its end the task fails and names the intervals left
    :param poll_interval: time between two looks, a timedelta or seconds
    :param opened_at: when its window was opened last, in seconds since 1970; a task that began before begins anew
    """

    resource_kind = "batch_export"
    has_own_dry_run = True
    batch_export_ids: Arg[Sequence[str] | None] = arg(kinds.EXPORTS_OR_NONE, default=None)
    batch_export_id: Arg[str | None] = arg(kinds.ID, default=None)
    since: Arg[datetime | str | float] = arg(kinds.MOMENT)
    until: Arg[datetime | str | float | None] = arg(kinds.MOMENT, default=None)
    timeout: Arg[timedelta | float] = arg(kinds.SECONDS_FROM_ONE, default=timedelta(hours=6))
    poll_interval: Arg[timedelta | float] = arg(kinds.SECONDS_FROM_ONE, default=LOOK_INTERVAL)
    opened_at: Arg[datetime | str | float | None] = arg(kinds.MOMENT, default=None)

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        """Ask for what is missing, and defer until all is complete."""
        from airflow_provider_workspace.errors import WorkspaceError
        from airflow_provider_workspace.windows.catch_up import extra_of, report_of

        began = self._take_over()
        looks: list[Look] = []
        errors: dict[str, WorkspaceError] = {}
        for export_id in self._export_ids():
            try:
                looks.append(self._look_at(hook, export_id, began))
            except WorkspaceError as error:  # noqa: PERF203 - one export stops no other
                self.log.warning("Batch export %s cannot be looked at: %s", export_id, error)
                errors[export_id] = error
        report = report_of(looks)
        left = [line for look in looks for line in look.lines_left]
        if left:
            self.log.info("Not exported yet:\n%s", "\n".join(left))
        coming = [look for look in looks if look.lines_left and not look.refusal]
        passing = [error for error in errors.values() if not error.permanent]
        if (coming or passing) and not self.is_dry_run and time.time() < began + self.timeout:
            self._defer(began)
        if errors and (self.is_dry_run or not looks):
            raise next(iter(errors.values()))
        if self.is_dry_run or not (left or errors):
            self.task_state.forget()
            extra = {} if self.is_dry_run else extra_of(looks)
            announce(self._context, self, extra)
            return report
        self.push_xcom("return_value", report)
        self.task_state.write({"asked": self.task_state.read()["asked"]})
        raise AirflowFailException(_failure(looks, left, errors))

    def _look_at(self, hook: WorkspaceHook, export_id: str, began: float) -> Look:
        """Look at an export, and ask for what it has missed; one whose backfill is refused is not asked for again."""
        (export,) = self.read_exports(hook, [export_id])
        catch_up = self._catch_up(export, began)
        if self.is_dry_run:
            return catch_up.look()
        look = catch_up.backfill()
        if look.refusal:
            noted = self.task_state.read()
            self.task_state.write({**noted, "refused": {**noted["refused"], export_id: look.refusal}})
        return look

    def _export_ids(self) -> list[str]:
        from airflow_provider_workspace.errors import WorkspaceInputError
        from airflow_provider_workspace.operators.reading import read_exports

        if self.batch_export_id is None and self.batch_export_ids is None:
            raise WorkspaceInputError("Pass batch_export_id or batch_export_ids")
        one = [] if self.batch_export_id is None else [self.batch_export_id]
        return read_exports("batch_export_id", [*one, *(self.batch_export_ids or ())], at_least=0)

    def _take_over(self) -> float:
        """Return when the task began, in seconds since 1970; one that is cleared begins anew."""
        state, now = self.task_state, time.time()
        # Airflow keeps the state of a cleared task, whose max_tries is higher; not that of one that was cleared while
        # it ran, but then its window was opened again.
        max_tries = getattr(self._context.get("ti"), "max_tries", None)
        first: dict[str, Any] = {"asked": {}, "refused": {}, "began": now, "max_tries": max_tries}
        noted = {**first, **(state.read() or {})}
        is_opened_again = self.opened_at is not None and self.opened_at > noted["began"]
        if is_opened_again or noted["max_tries"] != max_tries:
            noted.update(began=now, max_tries=max_tries, refused={})
        state.write(noted)
        began: float = noted["began"]
        return began

    def _catch_up(self, export: Export, began: float) -> CatchUp:
        from airflow_provider_workspace.windows.catch_up import Ask, CatchUp

        state, export_id = self.task_state, export.batch_export_id

        def remember(asked: list[Ask]) -> None:
            noted = state.read() or {}
            own_notes = [ask.model_dump(mode="json") for ask in asked]
            notes = {**noted.get("asked", {}), export_id: own_notes}
            state.write({**noted, "asked": notes})

        notes = state.read() or {}
        asked = [Ask.model_validate(note) for note in notes.get("asked", {}).get(export_id, ())]
        refusal = notes.get("refused", {}).get(export_id)
        since = moment_at(self.since)
        until = moment_at(began if self.until is None else self.until)
        return CatchUp(export, since, until, began, time.time, remember, asked, refusal)

    def _defer(self, began: float) -> NoReturn:
        """Wait in the triggerer, at the latest until the time is over."""
        end_at = began + self.timeout
        next_look = time.time() + self.poll_interval
        self.defer_until(min(end_at, next_look))


def _failure(looks: Sequence[Look], left: Sequence[str], errors: Mapping[str, WorkspaceError]) -> str:
    """Return the error for intervals that are left, and for exports that could not be looked at."""
    from airflow_provider_workspace.errors import name_first, with_problem

    sentences: list[str] = []
    if left:
        intervals = "1 interval has" if len(left) == 1 else f"{len(left)} intervals have"
        sentences.append(f"{intervals} no completed run.")
    refused = {look.export.batch_export_id: look.refusal for look in looks if look.refusal}
    failed = [f"{export_id}: {error}" for export_id, error in {**refused, **errors}.items()]
    if failed:
        sentences.append(f"Exports for which the service answered with an error: {len(failed)}. Correct what it names.")
    paused = [look.export.batch_export_id for look in looks if look.export.paused]
    if paused:
        sentences.append(_cure_of_paused(paused))
    else:
        sentences.append("Look at the runs in the workspace, then clear this task.")
    lines = name_first([*failed, *left], "the log", "\n")
    message = " ".join(sentences)
    return with_problem(f"{message}\n{lines}", "export-incomplete")


def _cure_of_paused(export_ids: Sequence[str]) -> str:
    """Return what to do about exports that are paused: by a window that holds them, or by the service."""
    from airflow_provider_workspace.operators.windows import lease_registry

    leases = lease_registry().all(skip_failed=True)
    held = [lease for lease in leases if lease.batch_export_id in export_ids]
    holders = [f"{lease.batch_export_id} is held by {lease.window}" for lease in held]
    others = set(export_ids).difference(lease.batch_export_id for lease in held)
    cures: list[str] = []
    if holders:
        windows = "; ".join(holders)
        cures.append(f"Paused, so nothing was asked for: {windows}. Clear this task when that window is closed.")
    if others:
        names = ", ".join(sorted(others))
        cures.append(
            f"Paused, so nothing was asked for: {names}. The service pauses an export after failed runs; correct why "
            "they fail, resume the export, and clear this task."
        )
    return " ".join(cures)


def announce(context: Any, task: Any, extra: Mapping[str, Any]) -> None:
    """Let the events of the assets that a task has as outlets say what is complete; no event says nothing."""
    if not extra:
        task.outlets = []
    events = context.get("outlet_events")
    if events is None:
        return
    for outlet in task.outlets:
        events[outlet].extra.update(extra)


def moment_at(seconds: float) -> datetime:
    """Return a moment in UTC, of seconds since 1970."""
    return datetime.fromtimestamp(seconds, timezone.utc)
