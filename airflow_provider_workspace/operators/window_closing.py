"""
The tasks of a window that resume its exports: close it, and guard its length.

They work from its leases, so later edits of the Dag file have no effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_workspace.operators.arguments import TASK_ID, fixed
from airflow_provider_workspace.operators.windows import WorkspaceWindowOperator, lease_registry
from airflow_provider_workspace.version_compat import AirflowFailException

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.notes.leases import Lease, LeaseRegistry, Window
    from airflow_provider_workspace.windows.resuming import Closed


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
    lost = {key.removeprefix(window.key).rpartition(".")[0]: key for key in registry.unreadable}
    for lease in leases:
        lost.pop(lease.batch_export_id, None)
    done = Closed()
    if leases:
        with LeaseServices() as services:
            task.workspace_url = services.url_for(leases[-1])
            done = Closer(registry, services, f"{ti.task_id}#{ti.try_number}").close_all(leases)
    if not leases and not lost:
        task.log.info("The window was closed already.")
    for export_id, key in lost.items():
        done.failed[export_id] = WorkspaceError(registry.describe_unreadable(key, registry.unreadable[key]))
    return done


def _rebuild_leases(registry: LeaseRegistry, window: Window, opened: Mapping[str, Any]) -> list[Lease]:
    """Rebuild the leases of a window whose Variables were overwritten, from the result of its first task."""
    from airflow_provider_workspace.notes.leases import Lease, dump

    names = ("service", "workspace_conn_id", "organization_id", "until", "resume_fields", "state_of")
    shared = {name: opened[name] for name in names}
    found = []
    for export_id in opened["batch_export_ids"]:
        lease = Lease(
            **asdict(window),
            **shared,
            batch_export_id=export_id,
            state="paused",
            since=opened["opened_at"],
            paused_at=opened["opened_at"],
            leave_paused=export_id in opened["leave_paused"],
        )
        if any(f".{export_id}." in key for key in registry.unreadable):
            registry.store.write(lease.key, dump(lease))
            found.append(lease)
    return found


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
        from airflow_provider_workspace.errors import with_problem
        from airflow_provider_workspace.notes.task_state import TaskState
        from airflow_provider_workspace.triggers.deadline import WorkspaceDeadlineTrigger
        from airflow_provider_workspace.windows.resuming import marked_as_failed, raise_still_paused

        ti = self._context["ti"]
        max_tries = getattr(ti, "max_tries", None)
        memory = TaskState(self._context, self._carried)
        earlier: dict[str, Any] = memory.read() or {}
        # Airflow keeps the state of a cleared task, whose max_tries is higher: then the window was opened again.
        if earlier.get("max_tries") != max_tries:
            earlier = {}
        done = resume_exports(self, self._context["ti"], self.open_task_id)
        state: dict[str, Any] = {}
        for name in ("resumed", "left_paused"):
            state[name] = list(dict.fromkeys([*earlier.get(name, []), *getattr(done, name)]))
        for name in ("held", "never_paused", "fields_refused"):
            state[name] = {**earlier.get(name, {}), **getattr(done, name)}
        memory.write({**state, "max_tries": max_tries})
        if done.failed:
            raise_still_paused(done.failed)
        if done.wait_until is not None:
            trigger = WorkspaceDeadlineTrigger(end_at=done.wait_until, state=self._carried)
            self.defer(trigger=trigger, method_name="execute_complete")
        resumed = ", ".join(state["resumed"]) or "none"
        refused = {export_id: why for export_id, why in state["never_paused"].items() if why}
        if refused:
            named = "; ".join(f"{export_id}: {why}" for export_id, why in refused.items())
            msg = f"NEVER PAUSED, and so not resumed: {named} The exports that were paused are resumed: {resumed}."
            raise AirflowFailException(with_problem(msg, "never-paused"))
        if state["never_paused"]:
            self.log.warning("Never paused by this window, and so not resumed: %s.", ", ".join(state["never_paused"]))
        if state["fields_refused"]:
            named = "; ".join(f"{export_id}: {why}" for export_id, why in state["fields_refused"].items())
            msg = (
                "Correct resume_fields, and fill what the exports have missed by hand: they are resumed, but the "
                f"service refused these fields. {named}"
            )
            raise AirflowFailException(with_problem(msg, "resume-fields-refused"))
        setups = self.setup_task_ids
        if self.outcome_task_id and marked_as_failed(ti, self.outcome_task_id, setups, self.upstream_task_ids - setups):
            raise AirflowFailException(f"The run was marked as failed. Its exports are resumed: {resumed}.")
        return {name: value for name, value in state.items() if name != "fields_refused"}


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
        trigger = WorkspaceDeadlineTrigger(end_at=min(lease.until for lease in leases), **asdict(window))
        self.defer(trigger=trigger, method_name="execute_complete")

    def execute_complete(self, context: Context, event: Mapping[str, Any] | None = None) -> None:
        from airflow_provider_workspace.errors import with_problem
        from airflow_provider_workspace.windows.resuming import raise_still_paused
        from airflow_provider_workspace.windows.state import has_closed

        status = (event or {}).get("status")
        if status == "unwatched":
            self.log.warning(
                "This run has no triggerer ('airflow dags test'): the length of the window is not guarded."
            )
            return
        self._context = context
        if status == "closed" or has_closed(lease_registry().store.run(self.window, ()), self.window):
            self.log.info("The window was closed in time.")
            return
        done = resume_exports(self, self._context["ti"], self.open_task_id)
        if done.failed:
            raise_still_paused(done.failed)
        msg = (
            "The window is overdue: its work was not done within the maximum length. Check its tasks, which were not "
            f"stopped. Resumed: {', '.join(done.resumed) or 'none'}; "
            f"held by other windows: {', '.join(done.held) or 'none'}."
        )
        raise AirflowFailException(with_problem(msg, "window-overdue"))
