"""Compositions of tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import TaskGroup

from airflow_provider_workspace.operators.windows import (
    WorkspaceCloseMaintenanceWindowOperator,
    WorkspaceGuardMaintenanceWindowOperator,
    WorkspaceHoldMaintenanceWindowOperator,
    WorkspaceOpenMaintenanceWindowOperator,
    WorkspacePauseWindowExportsOperator,
)

if TYPE_CHECKING:
    from airflow.sdk import BaseNotifier

# Resuming is retried hardest of all: about an hour in all.
RESUME_RETRIES = 15
RESUME_RETRY_DELAY = timedelta(seconds=15)
RESUME_MAX_RETRY_DELAY = timedelta(minutes=5)
# A task that waits until a fixed time may begin its wait again, if its worker or the triggerer got lost.
AGAIN: dict[str, Any] = {"retries": 3, "retry_delay": timedelta(seconds=10)}


@contextmanager
def maintenance_window(
    group_id: str = "maintenance_window",
    *,
    batch_export_ids: Sequence[str],
    organization_id: str | None = None,
    workspace_conn_id: str = "workspace_default",
    hold: timedelta | str | None = None,
    max_length: timedelta | None = None,
    leave_paused: Sequence[str] = (),
    on_overdue: BaseNotifier | Sequence[BaseNotifier] | None = None,
    resume_args: dict[str, Any] | None = None,
) -> Iterator[TaskGroup]:
    """
    Build a maintenance window around the tasks made inside the ``with`` statement.

    ``open`` and ``pause`` set it up, the author's tasks are the work, ``close`` tears it down and resumes the exports
    whatever happened: the work failed, was killed, timed out or was marked as failed, or only some exports could be
    paused. A resume that fails is retried for about an hour and then fails the run with an error that names the exports
    still paused; work that fails fails the run through ``outcome``, a leaf of the group.

    The interface has no way to read whether an export is paused: the window knows what it asked for, not what
    somebody else did meanwhile. An export that was paused before the window is resumed at its end, unless it is in
    ``leave_paused``.

    :param group_id: id of the task group; the ids of the author's tasks are not prefixed
    :param batch_export_ids: batch exports (UUID), or a template or XCom of a list
    :param organization_id: organization; by default that of the connection
    :param workspace_conn_id: connection to the service
    :param hold: keep the window open at least that long, without a worker slot; the work may then be empty. A length,
        or a template of its seconds
    :param max_length: resume after that time even if the work still hangs, watched without a worker slot. The run
        fails then; the work is not stopped
    :param leave_paused: batch exports of the window that are not resumed
    :param on_overdue: Airflow notifiers that tell somebody when ``max_length`` is over
    :param resume_args: arguments for the task that resumes, such as ``retries``
    :return: the task group of the work. The window opens as soon as the run begins; ``before >> work.parent_group``
        lets it open later, and ``work >> after`` lets a task follow
    :raises ValueError: if there is neither work nor ``hold``, or ``on_overdue`` without ``max_length``
    """
    from airflow.providers.standard.operators.empty import EmptyOperator

    if on_overdue is not None and max_length is None:
        msg = "on_overdue needs max_length: without it no window is ever overdue"
        raise ValueError(msg)
    with TaskGroup(group_id, tooltip="Pause batch exports, work, resume them whatever happens") as window:
        common: dict[str, Any] = {
            "batch_export_ids": batch_export_ids,
            "organization_id": organization_id,
            "workspace_conn_id": workspace_conn_id,
        }
        close = WorkspaceCloseMaintenanceWindowOperator(
            task_id="close",
            task_display_name="Resume the exports",
            doc_md="Runs **whatever happened** to the work. If it fails, its error names what is still paused.",
            leave_paused=leave_paused,
            outcome_task_id=f"{window.group_id}.outcome",
            **common,
            **{
                "retries": RESUME_RETRIES,
                "retry_delay": RESUME_RETRY_DELAY,
                "retry_exponential_backoff": True,
                "max_retry_delay": RESUME_MAX_RETRY_DELAY,
                **(resume_args or {}),
            },
        )
        opened = WorkspaceOpenMaintenanceWindowOperator(
            task_id="open",
            task_display_name="Open the window",
            doc_md="Checks the ids and notes what the window holds. Nothing is paused yet.",
            close_task_id=close.task_id,
            max_length=max_length,
            **common,
        )
        opened_at = f"{{{{ ti.xcom_pull(task_ids='{opened.task_id}')['opened_at'] }}}}"
        pause = WorkspacePauseWindowExportsOperator(
            task_id="pause",
            task_display_name="Pause the exports",
            doc_md="Pauses one export after the other. If that fails half-way, the window is closed again.",
            **common,
        )
        with TaskGroup("work", prefix_group_id=False) as work:
            yield work
            if hold is not None:
                WorkspaceHoldMaintenanceWindowOperator(
                    task_id=f"{group_id}.hold",
                    task_display_name=f"Hold for {hold}" if isinstance(hold, timedelta) else "Hold the window",
                    doc_md="Keeps the window open for its time, without a worker slot.",
                    opened_at=opened_at,
                    length=hold,
                    workspace_conn_id=workspace_conn_id,
                    **AGAIN,
                )
        if not work.children:
            msg = f"The window '{group_id}' has nothing to do: make tasks inside the with statement, or give hold=…"
            raise ValueError(msg)
        outcome = EmptyOperator(
            task_id="outcome",
            task_display_name="Outcome of the work",
            doc_md="Does nothing. It makes the run fail if the work failed, though the exports were resumed.",
        )
        opened >> pause >> work
        work >> close
        work >> outcome
        close.as_teardown(setups=[opened, pause], on_failure_fail_dagrun=True)
        if max_length is not None:
            guard = WorkspaceGuardMaintenanceWindowOperator(
                task_id="guard",
                task_display_name=f"Resume after {max_length} at the latest",
                doc_md="Waits without a worker slot. If the window is open then, it resumes the exports and fails.",
                opened_at=opened_at,
                max_length=max_length,
                close_task_id=close.task_id,
                leave_paused=leave_paused,
                on_failure_callback=on_overdue,
                **common,
                **AGAIN,
            )
            pause >> guard
