"""
The tasks of a window that resume its exports: close it, and guard its length.

They work from its leases, so later edits of the Dag file have no effect.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NoReturn, cast

from airflow_provider_workspace.operators.arguments import TASK_ID, fixed
from airflow_provider_workspace.operators.windows import WorkspaceWindowOperator, lease_registry, states_beside
from airflow_provider_workspace.version_compat import AirflowFailException

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.notes.leases import Lease, LeaseRegistry, Run, Window
    from airflow_provider_workspace.notes.task_state import TaskState
    from airflow_provider_workspace.windows.resuming import Closed


# Seconds until the closing task looks again whether tasks of the work may still run.
WORK_POLL_INTERVAL = 30.0
# Results that the closing task returns.
RETURNED = ("resumed", "left_paused", "held", "never_paused")
# Results that it remembers for its next try.
REMEMBERED = (*RETURNED, "fields_refused", "fields_in_doubt")
# States of a task that failed, or did not run because another one failed.
FAILED_STATES = frozenset(("failed", "upstream_failed"))
# The end of the id of a task among the states of a run, if it is mapped.
ANY_INDEX = "(_[0-9]+)?"
# What the first task of a window returns that each of its leases has.
SHARED_FIELDS = ("service", "workspace_conn_id", "organization_id", "until", "resume_fields", "state_of")


def resume_exports(task: WorkspaceWindowOperator, ti: Any, open_task_id: str | None) -> Closed:
    """
    Resume the exports of the window of a task.

    :param open_task_id: the task that opened it, whose result repairs leases that were overwritten
    """
    from airflow_provider_workspace.errors import WorkspaceError
    from airflow_provider_workspace.windows.requests import LeaseHooks
    from airflow_provider_workspace.windows.resuming import Closed, Closer

    window = task.window
    registry = lease_registry()
    leases = _repaired_leases(registry, ti, window, open_task_id)
    lost = _lost_exports(registry, window, leases)
    if not leases and not lost:
        task.log.info("The window was closed already.")
    done = Closed()
    if leases:
        with LeaseHooks() as hooks:
            task.workspace_url = hooks.url_for(leases[-1])
            closer = Closer(registry, hooks, f"{ti.task_id}#{ti.try_number}")
            done = closer.close_all(leases)
    for export_id, key in lost.items():
        cure = registry.describe_unreadable(key, registry.unreadable[key])
        done.failed[export_id] = WorkspaceError(cure, problem="lease-unreadable")
    return done


def _repaired_leases(
    registry: LeaseRegistry, ti: Any, window: Window, open_task_id: str | None, work_task_ids: Collection[str] = ()
) -> list[Lease]:
    """Return the leases of a window, also those that were overwritten, if its first task has told what they were."""
    leases = registry.all(window=window)
    if open_task_id and registry.unreadable:
        opened = _result_of_open(ti, window, open_task_id)
        if opened is not None:
            leases += _rebuild_leases(registry, window, opened, work_task_ids)
    return leases


def _result_of_open(ti: Any, window: Window, open_task_id: str) -> Mapping[str, Any] | None:
    """Return the result of the task that opened a window; ``None`` if its XComs were deleted."""
    opened = ti.xcom_pull(task_ids=open_task_id, map_indexes=window.map_index)
    return opened if isinstance(opened, Mapping) else None


def _latest_end(ti: object, window: Window, leases: Collection[Lease], open_task_id: str | None) -> float | None:
    """Return when a window is overdue: by its leases, or else by the result of the task that opened it."""
    if leases:
        return min(lease.until for lease in leases)
    opened = _result_of_open(ti, window, open_task_id) if open_task_id else None
    return None if opened is None else float(opened["until"])


def _rebuild_leases(
    registry: LeaseRegistry, window: Window, opened: Mapping[str, Any], work_task_ids: Collection[str]
) -> list[Lease]:
    """Rebuild the leases of a window whose Variables were overwritten, from the result of its first task."""
    from airflow_provider_workspace.notes.leases import Lease, dump

    shared = {name: opened[name] for name in SHARED_FIELDS}
    rebuilt = []
    for export_id in opened["batch_export_ids"]:
        if not any(f".{export_id}." in key for key in registry.unreadable):
            continue
        lease = Lease(
            **asdict(window),
            **shared,
            batch_export_id=export_id,
            state="paused",
            since=opened["opened_at"],
            paused_at=opened["opened_at"],
            leave_paused=export_id in opened["leave_paused"],
            work_task_ids=sorted(work_task_ids),
        )
        registry.store.write(lease.key, dump(lease))
        rebuilt.append(lease)
    return rebuilt


def _lost_exports(registry: LeaseRegistry, window: Window, leases: list[Lease]) -> dict[str, str]:
    """Return the exports of a window whose leases are unreadable and were not rebuilt, and the keys of these."""
    known = {lease.batch_export_id for lease in leases}
    lost = {}
    for key in registry.unreadable:
        export_id, _, _ = key.removeprefix(window.key).rpartition(".")
        if export_id not in known:
            lost[export_id] = key
    return lost


class WorkspaceCloseMaintenanceWindowOperator(WorkspaceWindowOperator):
    """
    Close a window: resume the exports that no other open window holds. Scope ``batch_export:write``.

    A retry resumes only the exports that failed. Each export is resumed once, with the connection that paused it. The
    result is ``{"resumed": [ids], "held": {id: [windows]}, "left_paused": [ids], "never_paused": {id: why}}``; the XCom
    ``resume_fields_in_doubt`` has the exports whose ``resume_fields`` may have had no effect.

    :param open_task_id: the task that opened the window
    :param outcome_task_id: the task that fails if the work fails; ``None`` if there is none
    """

    close_task_id: str = fixed(TASK_ID, default="")
    open_task_id: str | None = fixed(TASK_ID, default=None)
    outcome_task_id: str | None = fixed(TASK_ID, default=None)
    setup_task_ids = cast("frozenset[str]", frozenset())
    # All tasks of the work, which the task group knows when it is complete.
    work_task_ids = cast("frozenset[str]", frozenset())

    def work(self, hook: WorkspaceHook) -> dict[str, Any]:  # noqa: ARG002 - each lease names its connection
        """Resume; fail where Airflow would report success after this task, although the window did not go well."""
        from airflow_provider_workspace.errors import with_problem
        from airflow_provider_workspace.notes.task_state import TaskState
        from airflow_provider_workspace.windows.resuming import Closed, still_paused_error

        ti = self._context["ti"]
        max_tries = getattr(ti, "max_tries", None)
        self._wait_for_work()
        memory = TaskState(self._context, self._carried)
        remembered = self._remembered(memory, max_tries)
        overdue = remembered.get("overdue", "") if remembered else self._describe_overdue(ti)
        earlier = Closed(**{name: remembered[name] for name in REMEMBERED if name in remembered})
        done = resume_exports(self, ti, self.open_task_id)
        total = done.added_to(earlier)
        results = {name: getattr(total, name) for name in REMEMBERED}
        memory.write({**results, "overdue": overdue, "max_tries": max_tries})
        if total.fields_in_doubt and self.do_xcom_push:
            self.push_xcom("resume_fields_in_doubt", total.fields_in_doubt)
        if done.failed:
            raise still_paused_error(done.failed, done.resumed)
        if done.wait_until is not None:
            self.defer_until(done.wait_until)
        self._raise_if_never_paused(total)
        self._raise_if_fields_refused(total)
        if overdue:
            resumed = _listed(total.resumed)
            msg = f"{overdue} Resumed: {resumed}; held by other windows: {_listed(total.held)}."
            if self.catch_up_task_id in self.downstream_task_ids:
                msg = f"{msg} '{self.catch_up_task_id}' does not run now: {self._cure_of_missed(ti)}"
            raise AirflowFailException(with_problem(msg, "window-overdue"))
        self._raise_if_outcome_skipped(ti, total)
        return {name: results[name] for name in RETURNED}

    @property
    def catch_up_task_id(self) -> str:
        """The task that exports what the window has missed, if there is one."""
        window_id, _, _ = self.task_id.rpartition(".")
        return f"{window_id}.catch_up"

    def _cure_of_missed(self, ti: object) -> str:
        """Return how to export what the window has missed, although its own task for that does not run."""
        from airflow_provider_workspace.api.timestamps import iso

        opened = _result_of_open(ti, self.window, self.open_task_id) if self.open_task_id else None
        since = f"'{iso(opened['missed_since'], 'seconds')}'" if opened else "the time of the pause"
        return f"fill what the exports missed with WorkspaceCatchUpOperator and since={since}."

    def _wait_for_work(self) -> None:
        """Wait, deferred, while a task of the work may still run: people may have set the state of the one after it."""
        from airflow_provider_workspace.windows.window_state import is_at_work

        window = self.window
        registry = lease_registry()
        watched = [task_id for task_id in self.work_task_ids if not isinstance(self.dag.get_task(task_id), CLOSING)]
        leases = _repaired_leases(registry, self._context["ti"], window, self.open_task_id, watched)
        now = time.time()
        until = min((lease.until for lease in leases), default=now)
        # At its end the exports are resumed, also if Airflow does not tell the states of its tasks.
        if now < until and is_at_work(registry.store.run(window, leases[-1].work_task_ids), leases[-1]):
            self.log.warning("Tasks of the work may still run, so its exports stay paused. Checking again.")
            self.defer_until(min(until, now + WORK_POLL_INTERVAL))

    def _remembered(self, memory: TaskState, max_tries: int | None) -> dict[str, Any]:
        """Return what earlier tries have noted; empty if there was none."""
        remembered: dict[str, Any] = memory.read() or {}
        # Airflow keeps the state of a cleared task, whose max_tries is higher: then the window was opened again.
        return remembered if remembered.get("max_tries") == max_tries else {}

    def _describe_overdue(self, ti: object) -> str:
        """Return that the window is overdue as this task begins; an empty string if it is not."""
        from airflow_provider_workspace.api.timestamps import iso

        window = self.window
        leases = lease_registry().all(window=window)
        until = _latest_end(ti, window, leases, self.open_task_id)
        now = time.time()
        if until is None or now < until:
            return ""
        had_to_end = iso(until, "seconds")
        began = iso(now, "seconds")
        return (
            f"The window is overdue: it had to end by {had_to_end}, and its closing task began at {began}. Check what "
            "its work did after that, then set a longer max_length."
        )

    def _raise_if_never_paused(self, total: Closed) -> None:
        """Raise an error if the service refused to pause an export."""
        from airflow_provider_workspace.errors import with_problem
        from airflow_provider_workspace.windows.resuming import count_exports, first_reason, ids_and_other_reasons

        refused = {export_id: reason for export_id, reason in total.never_paused.items() if reason}
        if refused:
            resumed = _listed(total.resumed)
            reasons = ids_and_other_reasons(refused)
            msg = (
                f"NEVER PAUSED: {count_exports(refused)}, which ran during the work. {first_reason(refused)} Resumed: "
                f"{resumed}. {reasons}"
            )
            raise AirflowFailException(with_problem(msg, "never-paused"))
        if total.never_paused:
            self.log.warning("Never paused by this window, and so not resumed: %s.", ", ".join(total.never_paused))

    def _raise_if_fields_refused(self, total: Closed) -> None:
        """Raise an error if an export was resumed without the ``resume_fields``."""
        from airflow_provider_workspace.errors import with_problem
        from airflow_provider_workspace.windows.resuming import count_exports, first_reason, ids_and_other_reasons

        refused = total.fields_refused
        if not refused:
            return
        exports = count_exports(refused)
        reason = first_reason(refused)
        other_reasons = ids_and_other_reasons(refused)
        msg = (
            f"Resumed without resume_fields, which the service refused: {exports}. {reason} Correct resume_fields, "
            f"and fill what the exports have missed by hand. {other_reasons}"
        )
        raise AirflowFailException(with_problem(msg, "resume-fields-refused"))

    def _raise_if_outcome_skipped(self, ti: object, total: Closed) -> None:
        """
        Raise an error if the task that would fail the run was skipped, and something of the window has failed.

        A person who marks the run as failed fails what runs, and skips what waits, also for a retry: a setup of an open
        window, which never skips itself. A task of the work that was waiting for a retry looks like one that skipped
        itself. A short circuit and a ``fail_fast`` Dag skip too.
        """
        from airflow_provider_workspace.errors import with_problem

        if not self.outcome_task_id:
            return
        run = states_beside(ti, {self.outcome_task_id, *self.setup_task_ids, *self.work_task_ids})
        if "skipped" not in run.states(self.outcome_task_id, ANY_INDEX):
            return
        failed = self._failed_tasks(run)
        is_setup_skipped = any("skipped" in run.states(setup, ANY_INDEX) for setup in self.setup_task_ids)
        if not failed and not is_setup_skipped:
            return
        msg = f"{self._why_skipped()}. Its exports are resumed: {_listed(total.resumed)}."
        if failed:
            msg += f" Failed: {', '.join(failed)}."
        raise AirflowFailException(with_problem(msg, "work-failed"))

    def _failed_tasks(self, run: Run) -> list[str]:
        """Return the tasks of the window that failed, and after which no other task of the work succeeded."""
        failed = []
        for task_id in sorted({*self.setup_task_ids, *self.work_task_ids}):
            if not FAILED_STATES.intersection(run.states(task_id, ANY_INDEX)):
                continue
            following = self.dag.get_task(task_id).get_flat_relative_ids(upstream=False)
            later_states = [run.states(each, ANY_INDEX) for each in following & self.work_task_ids]
            if not any("success" in states for states in later_states):
                failed.append(task_id)
        return failed

    def _why_skipped(self) -> str:
        """Return why the task that would fail the run may have been skipped."""
        if self.dag.fail_fast:
            return f"A task failed, so this Dag, which has fail_fast, skipped '{self.outcome_task_id}'"
        may_skip = any(self.dag.get_task(task_id).inherits_from_skipmixin for task_id in self.work_task_ids)
        if may_skip:
            return (
                "The run was marked as failed; or its work failed, and a short circuit skipped "
                f"'{self.outcome_task_id}'"
            )
        return "The run was marked as failed"


def _listed(export_ids: Collection[str]) -> str:
    return ", ".join(export_ids) or "none"


class WorkspaceGuardMaintenanceWindowOperator(WorkspaceWindowOperator):
    """
    Wait until a window is closed; if it is overdue, resume its exports and fail. Deferred, without a worker slot.

    :param open_task_id: the task that opened the window
    """

    open_task_id: str | None = fixed(TASK_ID, default=None)

    def execute(self, context: Context) -> None:
        self._context = context
        registry = lease_registry()
        leases = registry.all(window=self.window)
        if not leases and not registry.unreadable:
            self.log.info("The window was closed already.")
            return
        self._watch(leases)

    def _watch(self, leases: Collection[Lease]) -> None:
        """Defer until the window is closed or overdue; at once if nothing says any more when it is overdue."""
        from airflow_provider_workspace.triggers.deadline import WorkspaceDeadlineTrigger

        window = self.window
        end_at = _latest_end(self._context["ti"], window, leases, self.open_task_id) or time.time()
        trigger = WorkspaceDeadlineTrigger(end_at=end_at, **asdict(window))
        self.defer(trigger=trigger, method_name="execute_complete")

    def execute_complete(self, context: Context, event: Mapping[str, Any] | None = None) -> None:
        from airflow_provider_workspace.windows.window_state import is_left_to_close

        status = event.get("status") if event else None
        if status == "unwatched":
            self.log.warning(
                "This run has no triggerer ('airflow dags test'): the length of the window is not guarded."
            )
            return
        self._context = context
        window = self.window
        registry = lease_registry()
        leases = registry.all(window=window)
        # The window may have been opened again meanwhile, and end later.
        end_at = _latest_end(context["ti"], window, leases, self.open_task_id) or 0.0
        is_over = status == "over" and time.time() >= end_at
        if is_over and not is_left_to_close(registry, window):
            self._end_overdue()
        if leases or registry.unreadable:
            self._watch(leases)
        self.log.info("The window is closed: it holds no export any more.")

    def _end_overdue(self) -> NoReturn:
        """Resume the exports, and fail."""
        from airflow_provider_workspace.errors import with_problem
        from airflow_provider_workspace.windows.resuming import still_paused_error
        from airflow_provider_workspace.windows.window_state import why_not_closed

        why = why_not_closed(lease_registry(), self.window)
        done = resume_exports(self, self._context["ti"], self.open_task_id)
        if done.failed:
            raise still_paused_error(done.failed, done.resumed)
        resumed = _listed(done.resumed)
        held = _listed(done.held)
        msg = f"The window is overdue: {why}. Resumed: {resumed}; held by other windows: {held}."
        if done.without_fields:
            missed = ", ".join(done.without_fields)
            msg += f" Fill by hand what was missed by {missed}: resume_fields had no effect, or perhaps none."
        raise AirflowFailException(with_problem(msg, "window-overdue"))


# The tasks that resume.
CLOSING = (WorkspaceCloseMaintenanceWindowOperator, WorkspaceGuardMaintenanceWindowOperator)
