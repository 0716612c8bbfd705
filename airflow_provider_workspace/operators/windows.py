"""
The tasks of a maintenance window; see :func:`~airflow_provider_workspace.task_groups.maintenance_window`.

Windows over the same export may overlap: the last one to end resumes it. Airflow remembers who holds an export in one
Variable per export, and whether a holder still does in the states of its tasks.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.operators.base import WorkspaceOperator
from airflow_provider_workspace.version_compat import AirflowFailException

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_workspace.hooks.workspace import WorkspaceHook

# How long a window without a maximum length counts as open if nobody closes it.
MAX_WINDOW = timedelta(days=1)


class WorkspaceWindowOperator(WorkspaceOperator):
    """
    Base of the tasks of a window.

    :param batch_export_ids: batch exports (UUID)
    :param organization_id: organization; by default that of the connection
    """

    template_fields: Collection[str] = ("workspace_conn_id", "organization_id", "batch_export_ids")
    resource_kind = "batch_export"

    def __init__(self, *, batch_export_ids: Sequence[str], organization_id: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.batch_export_ids = batch_export_ids
        self.organization_id = organization_id

    def export_ids(self) -> list[str]:
        """
        Return the batch exports, each once.

        :raises WorkspaceInputError: if there is none, or one is no UUID
        """
        from airflow_provider_workspace.operators.arguments import parse_uuids

        return parse_uuids("batch_export_ids", self.batch_export_ids, "batch exports")


class WorkspaceOpenMaintenanceWindowOperator(WorkspaceWindowOperator):
    """
    Open a window: remember that it holds the exports. Pauses nothing and asks the service nothing.

    The result is ``{"opened_at": seconds since 1970, "batch_export_ids": […]}``.

    :param close_task_id: the task that closes the window
    :param max_length: after which time other windows no longer take this one for open; ``None`` for a day
    """

    def __init__(self, *, close_task_id: str, max_length: timedelta | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.close_task_id = close_task_id
        self.max_length = max_length

    def work(self, hook: WorkspaceHook) -> dict[str, Any]:
        """Remember the window under each export."""
        from airflow_provider_workspace.state.leases import LeaseRegistry

        organization_id = hook.organization_or_default(self.organization_id)
        export_ids = self.export_ids()
        opened_at = time.time()
        ends_at = opened_at + (self.max_length or MAX_WINDOW).total_seconds()
        for export_id in export_ids:
            LeaseRegistry(organization_id, export_id).add(
                self._context["ti"].dag_id, self._context["ti"].run_id, self.close_task_id, ends_at
            )
        return {"opened_at": opened_at, "batch_export_ids": export_ids}


class WorkspacePauseWindowExportsOperator(WorkspaceWindowOperator):
    """Pause several batch exports; pausing a paused one changes nothing. Scope ``batch_export:write``."""

    def work(self, hook: WorkspaceHook) -> dict[str, Any]:
        """Pause one after the other."""
        from airflow_provider_workspace.errors import WorkspaceRequestError

        paused: list[str] = []
        for export_id in self.export_ids():
            self.link_to(hook, {"id": export_id})
            try:
                hook.pause_batch_export(batch_export_id=export_id, organization_id=self.organization_id)
            except WorkspaceRequestError:
                self.log.exception("Batch export %s could not be paused; paused before it: %s", export_id, paused)
                raise
            paused.append(export_id)
            self.log.info("Paused batch export %s.", export_id)
        return {"paused": paused}


class WorkspaceCloseMaintenanceWindowOperator(WorkspaceWindowOperator):
    """
    Close a window: resume the exports that no other open window holds. Scope ``batch_export:write``.

    The result is ``{"resumed": [ids], "held": {id: [windows]}, "left_paused": [ids]}``.

    :param leave_paused: batch exports that stay paused
    :param outcome_task_id: the task that fails with the work; ``None`` if there is none
    """

    template_fields: Collection[str] = (*WorkspaceWindowOperator.template_fields, "leave_paused")

    def __init__(self, *, leave_paused: Sequence[str] = (), outcome_task_id: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.leave_paused = leave_paused
        self.outcome_task_id = outcome_task_id

    def work(self, hook: WorkspaceHook) -> dict[str, Any]:
        """Resume, and fail if the run was marked as failed: Airflow would call it a success after this task."""
        from airflow_provider_workspace.operators.arguments import parse_names
        from airflow_provider_workspace.state.leases import marked_as_failed, resume

        ti = self._context["ti"]
        export_ids = self.export_ids()
        organization_id = hook.organization_or_default(self.organization_id)
        self.link_to(hook, {"id": export_ids[-1]})
        done = resume(
            hook,
            organization_id=organization_id,
            export_ids=export_ids,
            leave_paused=parse_names("leave_paused", self.leave_paused),
            window=(ti.dag_id, ti.run_id, ti.task_id),
        )
        if self.outcome_task_id and marked_as_failed(ti, self.outcome_task_id, self.upstream_task_ids):
            msg = f"The run was marked as failed. Its exports are resumed: {', '.join(done['resumed']) or 'none'}."
            raise AirflowFailException(msg)
        return done


class WorkspaceHoldMaintenanceWindowOperator(WorkspaceOperator):
    """
    Hold a window open for a fixed time, in the triggerer and not on a worker.

    :param opened_at: when the window was opened, in seconds since 1970
    :param length: length of the window, or its seconds
    """

    template_fields: Collection[str] = ("workspace_conn_id", "opened_at", "length")

    def __init__(self, *, opened_at: float | str, length: timedelta | float | str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.opened_at = opened_at
        self.length = length

    def execute(self, context: Context) -> None:  # noqa: ARG002
        """Wait."""
        from airflow_provider_workspace.triggers.workspace import WorkspaceDeadlineTrigger

        end_at = float(self.opened_at) + self.seconds()
        self.defer(trigger=WorkspaceDeadlineTrigger(end_at=end_at), method_name="execute_complete")

    def execute_complete(self, context: Context, event: dict[str, Any] | None = None) -> None:  # noqa: ARG002
        """Say that the time is over."""
        self.log.info("The window was held for %s.", timedelta(seconds=self.seconds()))

    def seconds(self) -> float:
        """Return the length."""
        from airflow_provider_workspace.operators.arguments import type_name

        if isinstance(self.length, timedelta):
            return self.length.total_seconds()
        try:
            return float(self.length)
        except (TypeError, ValueError, OverflowError):
            msg = f"The length of a window must be a timedelta or a number of seconds, not {type_name(self.length)}"
            raise AirflowFailException(msg) from None


class WorkspaceGuardMaintenanceWindowOperator(WorkspaceCloseMaintenanceWindowOperator):
    """
    Watch in the triggerer that a window is closed in time; if not, resume its exports and fail.

    :param opened_at: when the window was opened, in seconds since 1970
    :param max_length: after which time the exports are resumed, whatever the work does
    :param close_task_id: the task that closes the window
    """

    template_fields: Collection[str] = (*WorkspaceCloseMaintenanceWindowOperator.template_fields, "opened_at")

    def __init__(self, *, opened_at: float | str, max_length: timedelta, close_task_id: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.opened_at = opened_at
        self.max_length = max_length
        self.close_task_id = close_task_id

    def execute(self, context: Context) -> None:
        """Wait until the window is closed or overdue."""
        from airflow_provider_workspace.triggers.workspace import WorkspaceDeadlineTrigger

        self.defer(
            trigger=WorkspaceDeadlineTrigger(
                end_at=float(self.opened_at) + self.max_length.total_seconds(),
                dag_id=context["ti"].dag_id,
                run_id=context["ti"].run_id,
                close_task_id=self.close_task_id,
            ),
            method_name="execute_complete",
        )

    def execute_complete(self, context: Context, event: dict[str, Any] | None = None) -> None:
        """Resume the exports of an overdue window and fail; of a closed one say so."""
        status = (event or {}).get("status")
        if status == "closed":
            self.log.info("The window was closed in time.")
            return
        if status == "unwatched":
            self.log.warning(
                "This run has no triggerer ('airflow dags test'): nobody watches the length of the window."
            )
            return
        done = super().execute(context)
        msg = (
            f"The window is overdue: after {self.max_length} its work was still not done. "
            f"Resumed: {', '.join(done['resumed']) or 'nothing'}; "
            f"held by other windows: {', '.join(done['held']) or 'nothing'}. "
            "Look at the tasks of the window; they were not stopped."
        )
        raise AirflowFailException(msg)
