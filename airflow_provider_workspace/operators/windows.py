"""
The tasks of a maintenance window; see :func:`~airflow_provider_workspace.task_groups.maintenance_window`.

Windows over the same export may overlap: the last one to end resumes it. Each window has a lease for each export. The
leases decide what is resumed, so later edits of the Dag file have no effect.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_workspace.links import url_for
from airflow_provider_workspace.operators import arguments as kinds
from airflow_provider_workspace.operators.arguments import Arg, arg, fixed
from airflow_provider_workspace.operators.base import OfOrganization, WorkspaceOperator
from airflow_provider_workspace.version_compat import AirflowFailException, AirflowSkipException, conf, lists_variables

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.notes.leases import Lease, LeaseRegistry, Run, Window

log = logging.getLogger(__name__)

# Maximum length of a window without max_length, besides drain and hold.
MAX_WINDOW = timedelta(days=1)
# Minimum of some lengths, in seconds; runs begin up to 16 minutes after their interval, and catching up waits for them.
LEAST_LENGTHS = {"max_length": 1.0, "catch_up": 961.0}
# How long a worker waits for another window to resume an export before it defers.
WAIT_ON_WORKER = 10.0
WINDOW_POLL_INTERVAL = 1.0
# How often the work looks whether a closing task that runs only looks whether the work may still run.
MAX_LOOKS = 30
# If no sweep has run for so many seconds, this Airflow has no Dag for it.
SWEEP_MISSED = 3600.0
# How to clear a task of the work, so that Airflow clears the tasks of its window too.
CLEARED = "with 'Downstream' and without 'only failed tasks'"
# What an INTEGER of Airflow's database holds; SQLite stores more, PostgreSQL ends the scheduler.
MAX_PRIORITY = 2_147_483_647
# Prefix of the run ids of `airflow tasks test`, which runs one task without its window.
TEST_RUN = "__airflow_temporary_run_"


def parse_lengths(**lengths: Any) -> dict[str, float]:
    """
    Return ``drain``, ``hold`` and, if they are set, ``max_length`` and ``catch_up`` in seconds.

    :raises WorkspaceInputError: if one is invalid, or if the window would be overdue before its work can begin
    """
    from airflow_provider_workspace.errors import WorkspaceInputError
    from airflow_provider_workspace.operators.reading import read_seconds

    seconds = {"drain": 0.0, "hold": 0.0}
    for name, value in lengths.items():
        if value is not None:
            seconds[name] = read_seconds(name, value, least=LEAST_LENGTHS.get(name, 0.0))
    before_work = seconds["drain"] + seconds["hold"]
    max_length = seconds.get("max_length", math.inf)
    if max_length <= before_work:
        raise WorkspaceInputError(
            f"The window is overdue after {max_length:g} s, and drain and hold together take {before_work:g} s. Set "
            "max_length above that"
        )
    return seconds


def raise_if_entered_again(group: Any) -> None:
    """Refuse a task outside of a window that runs between two of its tasks: Airflow 3.5 refuses the whole Dag."""
    tasks = {task.task_id: task for task in group.dag.tasks}
    inside = {task.task_id for task in group.iter_tasks()}
    after_window = list(inside)
    seen = set(inside)
    while after_window:
        task_id = after_window.pop()
        downstream_task_ids = tasks[task_id].downstream_task_ids
        if task_id not in inside and not inside.isdisjoint(downstream_task_ids):
            raise ValueError(
                f"Task '{task_id}' is outside of the window '{group.group_id}', but runs between two of its tasks. "
                "Create it inside the with statement of the window, or put it wholly before or after the window"
            )
        after_window += downstream_task_ids - seen
        seen |= downstream_task_ids


def raise_if_too_heavy(close: Any) -> None:
    """Refuse weights whose sum, the priority of the task that resumes, Airflow's database cannot store."""
    tasks = {task.task_id: task for task in close.dag.tasks}
    upstream = [tasks[task_id] for task_id in close.get_flat_relative_ids(upstream=True)]
    weight = close.priority_weight + sum(task.priority_weight for task in upstream)
    if weight > MAX_PRIORITY:
        raise ValueError(
            f"The priority of '{close.task_id}' is {weight}, the sum of priority_weight of all tasks before it; "
            f"Airflow can store {MAX_PRIORITY}. Set a lower priority_weight on the tasks before it"
        )


def lease_registry() -> LeaseRegistry:
    """Return the leases as tasks reach them."""
    from airflow_provider_workspace.notes.lease_store import LeaseVariables
    from airflow_provider_workspace.notes.leases import LeaseRegistry

    return LeaseRegistry(LeaseVariables())


def states_beside(ti: Any, task_ids: Collection[str]) -> Run:
    """Return the states of tasks beside one; in a mapped task group, of those with the same index."""
    from airflow_provider_workspace.notes.lease_store import task_states
    from airflow_provider_workspace.notes.leases import Run

    is_mapped = ti.map_index is not None and ti.map_index >= 0
    map_index = ti.map_index if is_mapped else None
    return Run(tasks=task_states(ti, ti.dag_id, ti.run_id, sorted(task_ids), map_index))


class WorkspaceWindowOperator(WorkspaceOperator):
    """
    Base of the tasks of a window that read its leases.

    :param close_task_id: the task that closes the window
    """

    resource_kind = "batch_export"

    close_task_id: str = fixed(kinds.TASK_ID)

    @property
    def window(self) -> Window:
        """The window whose closing task is ``close_task_id``, or else this one."""
        from airflow_provider_workspace.notes.leases import Window

        ti = self._context["ti"]
        map_index = getattr(ti, "map_index", None)
        if map_index is None:
            map_index = -1
        return Window(ti.dag_id, ti.run_id, self.close_task_id or ti.task_id, map_index)


class WorkspaceOpenMaintenanceWindowOperator(OfOrganization, WorkspaceWindowOperator):
    """
    Open a window: write a lease for each export. Sends no requests.

    The task is skipped if its closing task will not run any more, because then nothing would resume the exports.

    The result describes the window: ``{"opened_at": seconds since 1970, "missed_since", "until", …}``.

    :param batch_export_ids: batch exports (UUID)
    :param close_task_id: the task that closes the window
    :param group_id: id of the task group, shown with the leases
    :param hold: how long the window is held open: timedelta, seconds, or a template of them
    :param drain: time for running exports to end before the work begins: timedelta, seconds, or a template of them
    :param max_length: time after which the window is overdue; ``None`` for a day, besides ``drain`` and ``hold``
    :param catch_up: how long a later task waits for what was missed; checked before anything is paused
    :param leave_paused: batch exports that stay paused
    :param resume_fields: fields of the resume request that the API does not name; they are not checked
    :param state_of: what shows whether an export is paused, see
        :func:`~airflow_provider_workspace.task_groups.maintenance_window`
    """

    batch_export_ids: Arg[Sequence[str]] = arg(kinds.EXPORTS)
    group_id: str = fixed(kinds.TASK_ID, default="")
    hold: Arg[timedelta | float | None] = arg(kinds.SECONDS, default=None)
    drain: Arg[timedelta | float | None] = arg(kinds.SECONDS, default=None)
    max_length: Arg[timedelta | float | None] = arg(kinds.SECONDS_FROM_ONE, default=None)
    catch_up: Arg[timedelta | float | None] = arg(kinds.SECONDS, default=None)
    leave_paused: Arg[Sequence[str]] = arg(kinds.EXPORTS_OR_NONE, default=())
    resume_fields: Arg[Mapping[str, Any] | None] = arg(kinds.FIELDS, default=None)
    state_of: Any = fixed(kinds.TARGET, default=None)
    # The tasks of the work; the task group knows them when its work is complete.
    work_task_ids = cast("Sequence[str]", ())

    def resolve_template_files(self) -> None:
        """Check the Dag around the window, which is complete when Airflow calls this."""
        super().resolve_template_files()
        raise_if_entered_again(self.task_group)
        raise_if_too_heavy(self.dag.get_task(self.close_task_id))

    def work(self, hook: WorkspaceHook) -> dict[str, Any]:
        window = self.window
        self.check_close_task(window)
        organization_id = hook.organization_or_default(self.organization_id)
        self._check_resume_requests(hook)
        opened_at = time.time()
        until = opened_at + self._longest()
        shared = {
            "service": hook.client.settings.base_url,
            "workspace_conn_id": self.workspace_conn_id,
            "organization_id": organization_id,
            "until": until,
            "resume_fields": self.resume_fields,
            "state_of": self.state_of,
        }
        registry = lease_registry()
        missed_since = self._missed_since(registry.all(window=window), opened_at)
        self._write_leases(registry, window, opened_at, shared)
        self._log_end(until)
        last_sweep = registry.last_sweep().at or 0.0
        if opened_at - last_sweep > SWEEP_MISSED:
            self.warn_without_sweep(registry, window)
        if conf.getboolean("core", "multi_team", fallback=False):
            self.log.warning(
                "In Airflow's multi_team mode a task sees the leases of its own team only, so a window of another team "
                "would resume what this one holds. Keep the windows over one export within one team, and add the Dag "
                "with WorkspaceSweepOperator once per team."
            )
        leave_paused = set(self.leave_paused) & set(self.batch_export_ids)
        return {
            **shared,
            "opened_at": opened_at,
            "missed_since": missed_since,
            "batch_export_ids": self.batch_export_ids,
            "leave_paused": sorted(leave_paused),
        }

    def _missed_since(self, leases: Sequence[Lease], opened_at: float) -> float:
        """
        Return since when exports may have missed intervals: since the window was first opened in this run.

        Before Airflow 3.3, where nothing is remembered, that is the start of the run, or the earliest pause.
        """
        from airflow_provider_workspace.notes.task_state import KEY, TaskState

        state = TaskState(self._context, key=f"{KEY}.first_opened")
        run_began = getattr(self._context.get("dag_run"), "start_date", None)
        moments = [opened_at]
        moments += [lease.paused_at for lease in leases if lease.paused_at is not None]
        if state.read() is not None:
            moments.append(state.read())
        elif not state.survives_tries and run_began is not None:
            moments.append(run_began.timestamp())
        state.write(min(moments))
        return min(moments)

    def _check_resume_requests(self, hook: WorkspaceHook) -> None:
        """Refuse now a resume request or a ``state_of`` that would be invalid later."""
        from airflow_provider_workspace.windows.readings import Readings, state_reader

        for export_id in self.batch_export_ids:
            resume = self.operation_from_arguments(hook, "batch_exports.UnpauseBatchExport", batch_export_id=export_id)
            resume.request()
            if self.state_of:
                state_reader(hook, self.state_of, export_id, Readings())

    def _longest(self) -> float:
        """Return the seconds after which the window is overdue."""
        lengths = parse_lengths(drain=self.drain, hold=self.hold, max_length=self.max_length, catch_up=self.catch_up)
        if "max_length" in lengths:
            return lengths["max_length"]
        return MAX_WINDOW.total_seconds() + lengths["drain"] + lengths["hold"]

    def _write_leases(
        self, registry: LeaseRegistry, window: Window, opened_at: float, shared: Mapping[str, Any]
    ) -> None:
        """Write a lease for each export; ``shared`` are the fields that the result of this task has too."""
        from airflow_provider_workspace.notes.leases import Lease

        for export_id in self.batch_export_ids:
            lease = Lease(
                **asdict(window),
                **shared,
                group_id=self.group_id,
                owner=self.owner,
                batch_export_id=export_id,
                since=opened_at,
                leave_paused=export_id in self.leave_paused,
                exports=len(self.batch_export_ids),
                work_task_ids=list(self.work_task_ids),
            )
            registry.add(lease)

    def _log_end(self, until: float) -> None:
        from airflow_provider_workspace.api.timestamps import iso

        self.log.info(
            "The window is open until %s at the latest. If it is not closed by then, the %s resumes its exports, and "
            "no further task of its work begins.",
            iso(until, "seconds"),
            "sweep" if self.max_length is None else "guard",
        )

    def check_close_task(self, window: Window) -> None:
        """
        Skip this task if its closing task has ended.

        Clearing the work of one mapped window clears the setups of all of them, but the teardown of that one alone.
        """
        from airflow_provider_workspace.windows.window_state import FINISHED_STATES, closing_state

        run = lease_registry().store.run(window, ())
        _, state = closing_state(run, window)
        if state in FINISHED_STATES:
            raise AirflowSkipException(
                f"'{window.close_task_id}' is {state}, so nothing would resume the exports, and nothing was paused. "
                f"Clear it too to open this window again ({window})."
            )

    def warn_without_sweep(self, registry: LeaseRegistry, window: Window) -> None:
        """Warn that no sweep runs, and name the windows that were abandoned."""
        from airflow_provider_workspace.version_compat import COMMAND
        from airflow_provider_workspace.windows.window_state import find_states

        self.log.warning(
            "No sweep ran in the last hour: if this Dag is paused, edited or deleted before the window is closed, "
            "nobody else resumes its exports. Add a Dag with WorkspaceSweepOperator, such as the example "
            "workspace_sweep."
        )
        for state, leases in find_states(registry, time.time):
            first = leases[0]
            if not state.needs_sweep or first.window == window:
                continue
            export_ids = ", ".join(lease.batch_export_id for lease in leases)
            self.log.warning(
                "Exports may be paused since %s by a window that is %s. Run '%s sweep'. Window: %s. Exports: %s.",
                first.to_dict()["since"],
                state,
                COMMAND,
                first.window,
                export_ids,
            )


class WorkspacePauseWindowExportsOperator(WorkspaceWindowOperator):
    """
    Pause the exports that the window holds. Scope ``batch_export:write``.

    If another window is resuming one of them, the task waits for that, deferred if it takes long, and pauses it again.
    """

    def work(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.client import waits
        from airflow_provider_workspace.notes.leases import WindowClosedError
        from airflow_provider_workspace.triggers.deadline import WorkspaceDeadlineTrigger
        from airflow_provider_workspace.windows.pausing import Pauser
        from airflow_provider_workspace.windows.requests import HookService
        from airflow_provider_workspace.windows.window_state import WORK_ENDED, window_state

        registry, window = lease_registry(), self.window
        leases = registry.all(window=window)
        state = window_state(registry, leases, time.time())
        # Clearing one mapped window may clear the setups and teardowns of the others, without their work.
        if state.name not in ("opening", "open") and state.why != WORK_ENDED:
            raise WindowClosedError(
                f"The window is {state}, so nothing was sent. Clear the first task of the work that shall run, "
                f"{CLEARED}, which clears the tasks that open the window too ({window}).",
                problem="window-not-open",
            )
        last = leases[-1]
        self.workspace_url = url_for(hook.client.settings, "batch_export", dict(last))
        paused: list[str] = []
        began = time.monotonic()
        service = HookService(hook)
        pauser = Pauser(registry, lambda _: service)
        while True:
            waiting = pauser.pause_all(leases)
            paused += [lease.batch_export_id for lease in leases if lease.batch_export_id not in waiting]
            if not waiting:
                self.log.info("Pausing took until %.0f s of max_length were over.", time.time() - last.since)
                before = [lease.batch_export_id for lease in registry.all(window=window) if lease.paused_before]
                return {"paused": paused, "paused_at": time.time(), "paused_before": before}
            if time.monotonic() - began > WAIT_ON_WORKER:
                last_resume = max(waiting.values())
                end_at = min(last_resume, time.time() + WAIT_ON_WORKER)
                self.defer(trigger=WorkspaceDeadlineTrigger(end_at=end_at), method_name="execute_complete")
            waits.sleep(WINDOW_POLL_INTERVAL)
            leases = [lease for lease in registry.all(window=window) if lease.batch_export_id in waiting]


class WorkspaceHoldMaintenanceWindowOperator(WorkspaceOperator):
    """
    Hold a window open for a fixed time; deferred, without a worker slot.

    :param opened_at: start of the time in seconds since 1970
    :param length: length of the time, a timedelta or seconds
    """

    resource_kind = "batch_export"
    opened_at: Arg[float] = arg(kinds.TIME)
    length: Arg[timedelta | float] = arg(kinds.SECONDS)

    def work(self, hook: WorkspaceHook) -> None:  # noqa: ARG002 - sends no requests
        from airflow_provider_workspace.triggers.deadline import WorkspaceDeadlineTrigger

        end_at = self.opened_at + self.length
        self.defer(trigger=WorkspaceDeadlineTrigger(end_at=end_at), method_name="execute_complete")

    def execute_complete(self, context: Context, event: Mapping[str, Any] | None = None) -> dict[str, float]:  # noqa: ARG002
        self.log.info("Held for %s.", self.length)
        return {"ended_at": time.time()}


class RequireOpenWindow:
    """
    The ``pre_execute`` of the work, which fails a task whose window is not open.

    :param close_task_id: the task that closes the window
    :param mapped: whether the window is in a mapped task group, whose map index counts and not that of the work
    :param first: the ``pre_execute`` of ``default_args``, which is called first
    """

    def __init__(self, close_task_id: str, *, mapped: bool, first: Callable[[Context], None] | None) -> None:
        self.close_task_id = close_task_id
        self.mapped = mapped
        self.first = first

    def __call__(self, context: Context) -> None:  # Airflow stores the source of this with each task
        self.check(context)

    def check(self, context: Context) -> None:
        """
        Fail the task if the window is not open: closed, closing, overdue, partly resumed, or short of a lease.

        A task that resumes after a deferral has begun, so it goes on, with a warning: to run it again would do its work
        twice.

        :raises AirflowFailException: saying what to clear
        :raises WindowClosedError: the same before Airflow 3.3, where a lease may only seem to be missing: the task's
            ``retries`` check again
        """
        from airflow_provider_workspace.client import waits
        from airflow_provider_workspace.errors import with_problem
        from airflow_provider_workspace.notes.leases import Window, WindowClosedError
        from airflow_provider_workspace.windows.window_state import CLOSE_BEGAN, window_state

        if self.first is not None:
            self.first(context)
        ti: Any = context["ti"]
        if ti.run_id.startswith(TEST_RUN):
            return
        map_index = ti.map_index if self.mapped else -1
        window = Window(ti.dag_id, ti.run_id, self.close_task_id, map_index)
        registry = lease_registry()
        state = window_state(registry, registry.all(window=window), time.time())
        for _ in range(MAX_LOOKS):
            if state.why != CLOSE_BEGAN:
                break
            # It waits for this task, as for all work, and runs only for a moment each time that it looks.
            waits.sleep(WINDOW_POLL_INTERVAL)
            state = window_state(registry, registry.all(window=window), time.time())
        if state.name == "open":
            return
        if _is_resumption(ti):
            log.warning(
                "This task goes on, because it began before it was deferred, but its exports may run: the window is %s "
                "(%s).",
                state,
                window,
            )
            return
        error = AirflowFailException if lists_variables() else WindowClosedError
        msg = (
            f"The window is {state}, so this task was not run. Clear it {CLEARED}, to pause the exports for it too "
            f"({window})."
        )
        raise error(with_problem(msg, "window-not-open"))


def _is_resumption(ti: object) -> bool:
    """Return whether a task resumes after a deferral. Airflow has no public way to ask."""
    from_server = getattr(ti, "_ti_context_from_server", None)
    return bool(getattr(from_server, "next_method", None))
