"""
The tasks of a window that resume its exports: close it, and guard its length.

They work from its leases, so later edits of the Dag file have no effect.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_workspace.operators.arguments import TASK_ID, fixed
from airflow_provider_workspace.operators.windows import WorkspaceWindowOperator, lease_registry
from airflow_provider_workspace.version_compat import AirflowFailException

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.notes.leases import Lease, LeaseRegistry, Window
    from airflow_provider_workspace.notes.task_state import TaskState
    from airflow_provider_workspace.windows.resuming import Closed


# Results that the closing task returns.
RETURNED = ("resumed", "left_paused", "held", "never_paused")
# Results that it remembers for its next try.
REMEMBERED = (*RETURNED, "fields_refused")
# What the first task of a window returns that each of its leases has.
SHARED_FIELDS = ("service", "workspace_conn_id", "organization_id", "until", "resume_fields", "state_of")


def resume_exports(task: WorkspaceWindowOperator, ti: Any, open_task_id: str | None) -> Closed:
    """
    Resume the exports of the window of a task.

    :param open_task_id: the task that opened it, whose result repairs leases that were overwritten
    """
    from airflow_provider_workspace.errors import WorkspaceError
    from airflow_provider_workspace.windows.requests import LeaseServices
    from airflow_provider_workspace.windows.resuming import Closed, Closer

    window = task.window
    registry = lease_registry()
    leases = registry.all(window=window)
    if open_task_id and registry.unreadable:
        opened = ti.xcom_pull(task_ids=open_task_id, map_indexes=window.map_index)
        if isinstance(opened, Mapping):  # else its XComs were deleted
            leases += _rebuild_leases(registry, window, opened)
    lost = _lost_exports(registry, window, leases)
    if not leases and not lost:
        task.log.info("The window was closed already.")
    done = Closed()
    if leases:
        with LeaseServices() as services:
            task.workspace_url = services.url_for(leases[-1])
            closer = Closer(registry, services, f"{ti.task_id}#{ti.try_number}")
            done = closer.close_all(leases)
    for export_id, key in lost.items():
        cure = registry.describe_unreadable(key, registry.unreadable[key])
        done.failed[export_id] = WorkspaceError(cure)
    return done


def _rebuild_leases(registry: LeaseRegistry, window: Window, opened: Mapping[str, Any]) -> list[Lease]:
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


def _marked_as_failed(ti: Any, outcome_task_id: str, setups: Collection[str], work: Collection[str]) -> bool:
    """
    Return whether a person marked the run as failed, so that the outcome task was skipped.

    The mark fails what runs, and skips what waits, also for a retry: a setup of an open window, which never skips
    itself. A task of the work that was waiting for a retry looks like one that skipped itself.
    """
    is_mapped = ti.map_index is not None and ti.map_index >= 0
    index = f"_{ti.map_index}" if is_mapped else ""
    states_by_run = ti.get_task_states(
        dag_id=ti.dag_id,
        run_ids=[ti.run_id],
        task_ids=[outcome_task_id, *setups, *work],
        map_index=ti.map_index if is_mapped else None,
    )
    states = states_by_run.get(ti.run_id, {})
    if states.get(outcome_task_id + index) != "skipped":
        return False
    if "failed" in states.values():
        return True
    return any(states.get(setup + index) == "skipped" for setup in setups)


class WorkspaceCloseMaintenanceWindowOperator(WorkspaceWindowOperator):
    """
    Close a window: resume the exports that no other open window holds. Scope ``batch_export:write``.

    A retry resumes only the exports that failed. Each export is resumed once, with the connection that paused it. The
    result is ``{"resumed": [ids], "held": {id: [windows]}, "left_paused": [ids], "never_paused": {id: why}}``.

    :param open_task_id: the task that opened the window
    :param outcome_task_id: the task that fails if the work fails; ``None`` if there is none
    """

    close_task_id: str = fixed(TASK_ID, default="")
    open_task_id: str | None = fixed(TASK_ID, default=None)
    outcome_task_id: str | None = fixed(TASK_ID, default=None)
    setup_task_ids = cast("frozenset[str]", frozenset())

    def work(self, hook: WorkspaceHook) -> dict[str, Any]:  # noqa: ARG002 - each lease names its connection
        """Resume; fail if the run was marked as failed, because Airflow would report success after this task."""
        from airflow_provider_workspace.notes.task_state import TaskState
        from airflow_provider_workspace.triggers.deadline import WorkspaceDeadlineTrigger
        from airflow_provider_workspace.windows.resuming import still_paused_error

        ti = self._context["ti"]
        max_tries = getattr(ti, "max_tries", None)
        memory = TaskState(self._context, self._carried)
        earlier = self._closed_earlier(memory, max_tries)
        done = resume_exports(self, ti, self.open_task_id)
        total = done.added_to(earlier)
        remembered = {name: getattr(total, name) for name in REMEMBERED}
        memory.write({**remembered, "max_tries": max_tries})
        if done.failed:
            raise still_paused_error(done.failed)
        if done.wait_until is not None:
            trigger = WorkspaceDeadlineTrigger(end_at=done.wait_until, state=self._carried)
            self.defer(trigger=trigger, method_name="execute_complete")
        self._raise_if_never_paused(total)
        self._raise_if_fields_refused(total)
        self._raise_if_marked_as_failed(ti, total)
        return {name: remembered[name] for name in RETURNED}

    def _closed_earlier(self, memory: TaskState, max_tries: int | None) -> Closed:
        """Return what earlier tries have closed."""
        from airflow_provider_workspace.windows.resuming import Closed

        remembered: dict[str, Any] = memory.read() or {}
        # Airflow keeps the state of a cleared task, whose max_tries is higher: then the window was opened again.
        if remembered.get("max_tries") != max_tries:
            return Closed()
        return Closed(**{name: remembered[name] for name in REMEMBERED if name in remembered})

    def _raise_if_never_paused(self, total: Closed) -> None:
        """Raise an error if the service refused to pause an export."""
        from airflow_provider_workspace.errors import with_problem

        refused = {export_id: reason for export_id, reason in total.never_paused.items() if reason}
        if refused:
            msg = (
                f"NEVER PAUSED, and so not resumed: {_named(refused)} The exports that were paused are resumed: "
                f"{_listed(total.resumed)}."
            )
            raise AirflowFailException(with_problem(msg, "never-paused"))
        if total.never_paused:
            self.log.warning("Never paused by this window, and so not resumed: %s.", ", ".join(total.never_paused))

    def _raise_if_fields_refused(self, total: Closed) -> None:
        """Raise an error if an export was resumed without the ``resume_fields``."""
        from airflow_provider_workspace.errors import with_problem

        if not total.fields_refused:
            return
        msg = (
            "Correct resume_fields, and fill what the exports have missed by hand: they are resumed, but the "
            f"service refused these fields. {_named(total.fields_refused)}"
        )
        raise AirflowFailException(with_problem(msg, "resume-fields-refused"))

    def _raise_if_marked_as_failed(self, ti: Any, total: Closed) -> None:
        """Raise an error if a person marked the run as failed."""
        if not self.outcome_task_id:
            return
        work = self.upstream_task_ids - self.setup_task_ids
        if _marked_as_failed(ti, self.outcome_task_id, self.setup_task_ids, work):
            msg = f"The run was marked as failed. Its exports are resumed: {_listed(total.resumed)}."
            raise AirflowFailException(msg)


def _listed(export_ids: Collection[str]) -> str:
    return ", ".join(export_ids) or "none"


def _named(reasons: Mapping[str, str]) -> str:
    """Return exports, each with its reason, for people."""
    return "; ".join(f"{export_id}: {reason}" for export_id, reason in reasons.items())


class WorkspaceGuardMaintenanceWindowOperator(WorkspaceWindowOperator):
    """
    Wait until a window is closed; if it is overdue, resume its exports and fail. Deferred, without a worker slot.

    :param open_task_id: the task that opened the window
    """

    open_task_id: str | None = fixed(TASK_ID, default=None)

    def execute(self, context: Context) -> None:
        from airflow_provider_workspace.triggers.deadline import WorkspaceDeadlineTrigger

        self._context = context
        window = self.window
        leases = lease_registry().all(window=window)
        if not leases:
            self.log.info("The window was closed already.")
            return
        end_at = min(lease.until for lease in leases)
        trigger = WorkspaceDeadlineTrigger(end_at=end_at, **asdict(window))
        self.defer(trigger=trigger, method_name="execute_complete")

    def execute_complete(self, context: Context, event: Mapping[str, Any] | None = None) -> None:
        from airflow_provider_workspace.errors import with_problem
        from airflow_provider_workspace.windows.resuming import still_paused_error
        from airflow_provider_workspace.windows.state import has_closed

        status = event.get("status") if event else None
        if status == "unwatched":
            self.log.warning(
                "This run has no triggerer ('airflow dags test'): the length of the window is not guarded."
            )
            return
        self._context = context
        window = self.window
        if status == "closed" or has_closed(lease_registry().store.run(window, ()), window):
            self.log.info("The window was closed in time.")
            return
        done = resume_exports(self, self._context["ti"], self.open_task_id)
        if done.failed:
            raise still_paused_error(done.failed)
        msg = (
            "The window is overdue: its work was not done within the maximum length. Check its tasks, which were not "
            f"stopped. Resumed: {_listed(done.resumed)}; held by other windows: {_listed(done.held)}."
        )
        raise AirflowFailException(with_problem(msg, "window-overdue"))
