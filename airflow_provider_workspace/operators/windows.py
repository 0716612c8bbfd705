"""
The tasks of a maintenance window; see :func:`~airflow_provider_workspace.task_groups.maintenance_window`.

Windows over the same export may overlap: the last one to end resumes it. Airflow remembers who holds an export in one
Variable per export, and whether a holder still does in the states of its tasks.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from airflow_provider_workspace.airflow_version import AirflowFailException
from airflow_provider_workspace.operators.base import WorkspaceOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_workspace.errors import WorkspaceError
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook

# How long a window without a maximum length counts as open if nobody closes it.
LONGEST_WINDOW = timedelta(days=1)


class WorkspaceWindowOperator(WorkspaceOperator):
    """
    Base of the tasks of a window.

    :param batch_export_ids: batch exports (UUID)
    :param organization_id: organization; by default that of the connection
    """

    template_fields: Collection[str] = ("workspace_conn_id", "organization_id", "batch_export_ids")

    def __init__(self, *, batch_export_ids: Sequence[str], organization_id: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.batch_export_ids = batch_export_ids
        self.organization_id = organization_id

    def export_ids(self) -> list[str]:
        """
        Return the batch exports, each once.

        :raises WorkspaceInputError: if there is none, or one is no UUID
        """
        from uuid import UUID

        from airflow_provider_workspace.arguments import names_of
        from airflow_provider_workspace.errors import WorkspaceInputError

        given = names_of("batch_export_ids", self.batch_export_ids)
        try:
            found = list(dict.fromkeys(str(UUID(batch_export_id.strip())) for batch_export_id in given))
        except ValueError:
            found = []
        if not found:
            msg = "batch_export_ids must be a list of batch exports (UUID)"
            raise WorkspaceInputError(msg)
        return found


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

    def work(self, hook: WorkspaceHook, context: Context) -> dict[str, Any]:
        """Remember the window under each export."""
        from airflow_provider_workspace.window_holders import Holders

        organization_id = hook.organization_or_default(self.organization_id)
        export_ids = self.export_ids()
        opened_at = time.time()
        ends_at = opened_at + (self.max_length or LONGEST_WINDOW).total_seconds()
        for export_id in export_ids:
            Holders(organization_id, export_id).add(
                context["ti"].dag_id, context["ti"].run_id, self.close_task_id, ends_at
            )
        return {"opened_at": opened_at, "batch_export_ids": export_ids}


class WorkspacePauseBatchExportsOperator(WorkspaceWindowOperator):
    """Pause several batch exports; pausing a paused one changes nothing. Scope ``batch_export:write``."""

    def work(self, hook: WorkspaceHook, context: Context) -> dict[str, Any]:  # noqa: ARG002
        """Pause one after the other."""
        from airflow_provider_workspace.errors import WorkspaceRequestError

        paused: list[str] = []
        for export_id in self.export_ids():
            self.show(hook, "batch_export", batch_export_id=export_id, organization_id=self.organization_id)
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

    def work(self, hook: WorkspaceHook, context: Context) -> dict[str, Any]:
        """Resume, and fail if the run was marked as failed: Airflow would call it a success after this task."""
        done = self.resume(hook, context)
        if self.outcome_task_id and marked_as_failed(context, self.outcome_task_id, self.upstream_task_ids):
            msg = f"The run was marked as failed. Its exports are resumed: {', '.join(done['resumed']) or 'none'}."
            raise AirflowFailException(msg)
        return done

    def resume(self, hook: WorkspaceHook, context: Context) -> dict[str, Any]:
        """Resume what may be resumed; one export that cannot be does not keep the others paused."""
        from airflow_provider_workspace.arguments import names_of
        from airflow_provider_workspace.errors import WorkspaceError
        from airflow_provider_workspace.window_holders import Holders

        resumed: list[str] = []
        left: list[str] = []
        held: dict[str, list[str]] = {}
        failed: dict[str, WorkspaceError] = {}
        organization_id = hook.organization_or_default(self.organization_id)
        keep = {export_id.strip().lower() for export_id in names_of("leave_paused", self.leave_paused)}
        for export_id in self.export_ids():
            self.show(hook, "batch_export", batch_export_id=export_id, organization_id=organization_id)
            holders = Holders(organization_id, export_id)
            others = holders.others_open(context["ti"].dag_id, context["ti"].run_id, context["ti"].task_id)
            if export_id in keep:
                left.append(export_id)
                self.log.info("Batch export %s stays paused, as asked for.", export_id)
            elif others:
                held[export_id] = others
                self.log.warning(
                    "Batch export %s stays paused: still open: %s. If that window is gone, delete the Variable '%s'.",
                    export_id,
                    ", ".join(others),
                    holders.key,
                )
            else:
                try:
                    hook.unpause_batch_export(batch_export_id=export_id, organization_id=organization_id)
                except WorkspaceError as error:
                    self.log.exception("Batch export %s could not be resumed", export_id)
                    failed[export_id] = error
                    continue
                resumed.append(export_id)
                self.log.info("Resumed batch export %s.", export_id)
            holders.remove(context["ti"].dag_id, context["ti"].run_id, context["ti"].task_id)
        if failed:
            still_paused(failed)
        return {"resumed": resumed, "held": held, "left_paused": left}


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
        from airflow_provider_workspace.triggers.windows import WorkspaceWindowTrigger

        end_at = float(self.opened_at) + self.seconds()
        self.defer(trigger=WorkspaceWindowTrigger(end_at=end_at), method_name="execute_complete")

    def execute_complete(self, context: Context, event: dict[str, Any] | None = None) -> None:  # noqa: ARG002
        """Say that the time is over."""
        self.log.info("The window was held for %s.", timedelta(seconds=self.seconds()))

    def seconds(self) -> float:
        """Return the length."""
        from airflow_provider_workspace.arguments import kind_of

        if isinstance(self.length, timedelta):
            return self.length.total_seconds()
        try:
            return float(self.length)
        except (TypeError, ValueError, OverflowError):
            msg = f"The length of a window must be a timedelta or a number of seconds, not {kind_of(self.length)}"
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
        from airflow_provider_workspace.triggers.windows import WorkspaceWindowTrigger

        self.defer(
            trigger=WorkspaceWindowTrigger(
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


def marked_as_failed(context: Context, outcome_task_id: str, work_task_ids: Collection[str]) -> bool:
    """Tell whether a person ended the run: then its work has failed and what came after was skipped."""
    ti = context["ti"]
    states = ti.get_task_states(dag_id=ti.dag_id, run_ids=[ti.run_id], task_ids=[outcome_task_id, *work_task_ids]).get(
        ti.run_id, {}
    )
    return states.get(outcome_task_id) == "skipped" and "failed" in states.values()


def still_paused(failed: dict[str, WorkspaceError]) -> NoReturn:
    """
    Say which exports are still paused.

    Never permanent: a paused export is worth every retry, for somebody may mend the key meanwhile.
    """
    from airflow_provider_workspace.errors import WorkspaceRequestError

    named = "; ".join(f"{export_id}: {error}" for export_id, error in failed.items())
    msg = (
        f"STILL PAUSED: {', '.join(failed)}. Resume by hand, or mend the cause and clear this task. The interface "
        f"cannot tell whether an export is paused, so this goes by the failed requests. {named}"
    )
    raise WorkspaceRequestError(msg, operation="UnpauseBatchExport", outcome="unknown")
