"""Contents for the status page: windows, a campaign at its limit, waits, names with markup."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, task

from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.operators.members import WorkspaceSyncMembersOperator
from airflow_provider_workspace.operators.organization import (
    WorkspaceApplyOrganizationOperator,
    WorkspacePlanOrganizationOperator,
)
from airflow_provider_workspace.operators.sweep import WorkspaceSweepOperator
from airflow_provider_workspace.sensors.workspace import WorkspaceInvitesSettledSensor
from airflow_provider_workspace.task_groups import maintenance_window

FIRST = "0190c0de-0000-4000-8000-0000000000e1"
SECOND = "0190c0de-0000-4000-8000-0000000000e2"
THIRD = "0190c0de-0000-4000-8000-0000000000e3"
# No confusing name in the screenshots of the documentation.
PICTURES = os.environ.get("WORKSPACE_SCREENSHOTS") == "1"
MARKUP = "" if PICTURES else "<img src=x onerror=\"document.title='markup ran'\">"
GO_ON = Path(os.environ["AIRFLOW_HOME"]) / "go_on"
ADDRESSES = [f"person{number}@example.com" for number in range(60)]


@task
def work() -> None:
    """Wait until a file exists."""
    while not GO_ON.exists():
        time.sleep(1)


@task(task_id="work")
def short_work() -> None:
    """Work that is long enough for skipping the next task."""
    time.sleep(60)


with (
    DAG("nightly_maintenance", schedule=None, default_args={"owner": f"data-team {MARKUP}".strip()}),
    maintenance_window(batch_export_ids=[FIRST, SECOND], max_length=timedelta(hours=2)),
):
    work()

with (
    DAG("abandoned", schedule=None, default_args={"owner": "ops"}),
    maintenance_window(batch_export_ids=[THIRD]),
):
    short_work()

with DAG("invite_team", schedule=None):
    WorkspaceCreateInvitesOperator(
        task_id="invite",
        invites=[*ADDRESSES, f"{MARKUP}@@"],
        on_invalid="skip",
        workspace_conn_id="workspace_limited",
        defaults={"send_email": False},
    )

with DAG("failing", schedule=None):
    WorkspaceCreateInvitesOperator(task_id="invite", invites=ADDRESSES, workspace_conn_id="elsewhere", retries=0)

with DAG("sync", schedule=None):
    WorkspaceSyncMembersOperator(
        task_id="members",
        roster=["{{ dag_run.conf['email'] }}"],
        protected=[],
        max_removals=None,
        dry_run=True,
        retries=0,
    )

with DAG("organization", schedule=None):
    for part in ("projects", "members"):
        WorkspaceApplyOrganizationOperator(
            task_id=part, part=part, file={"members": {"people": ["of.file@example.com", "liv.invited@example.com"]}}
        )

with DAG("approval", schedule=None):
    WorkspacePlanOrganizationOperator(
        task_id="plan", require_approval=True, file={"members": {"people": ["approved@example.com"]}}
    )

with DAG("wait_for_people", schedule=None):
    WorkspaceInvitesSettledSensor(
        task_id="settled", emails=["liv.invited@example.com"], deferrable=True, poke_interval=60
    )

with DAG("workspace_sweep", schedule=None):
    WorkspaceSweepOperator(task_id="sweep", retries=0)
