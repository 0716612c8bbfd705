"""
Arguments that Dag authors pass to operators. `make lint` type-checks this file; it is never run.

Lines that must be errors have an ignore comment, and mypy warns about unused ones.
"""

from __future__ import annotations

from airflow.sdk import dag, task

from airflow_provider_workspace.operators.domains import (
    WorkspaceCreateDomainOperator,
    WorkspaceListDomainsOperator,
    WorkspaceVerifyDomainOperator,
)
from airflow_provider_workspace.operators.invites import WorkspaceCreateInviteOperator, WorkspaceCreateInvitesOperator
from airflow_provider_workspace.operators.members import WorkspaceSyncMembersOperator
from airflow_provider_workspace.operators.projects import WorkspaceCreateProjectOperator, WorkspaceGetProjectOperator
from airflow_provider_workspace.sensors.workspace import WorkspaceDomainVerifiedSensor, WorkspaceMembersJoinedSensor
from airflow_provider_workspace.task_groups import maintenance_window


@task
def people() -> list[str]:
    return ["ada@example.com"]


@task
def level() -> int:
    return 8


@dag(schedule=None)
def arguments() -> None:
    # The result of a @task.
    WorkspaceCreateInvitesOperator(task_id="a", invites=people(), dry_run=level())
    WorkspaceCreateInviteOperator(task_id="b", target_email="ada@example.com", level=level())
    WorkspaceSyncMembersOperator(task_id="c", roster=people(), protected=people(), max_removals=level())
    WorkspaceMembersJoinedSensor(task_id="d", emails=people())
    with maintenance_window(batch_export_ids=people(), drain="{{ params.drain }}"):
        level()

    # The output of an operator, and an XCom of it.
    domain = WorkspaceCreateDomainOperator(task_id="e", domain="example.com")
    WorkspaceVerifyDomainOperator(task_id="f", domain_id=domain.output["id"])
    verified = WorkspaceDomainVerifiedSensor(task_id="g", domain_id=domain.output["id"])
    WorkspaceGetProjectOperator(task_id="h", project_id=verified.output["id"])
    waiting = WorkspaceListDomainsOperator(task_id="i", where={"is_verified": False}, fields=["id"])
    WorkspaceVerifyDomainOperator.partial(task_id="j").expand(domain_id=waiting.output.map(lambda row: row["id"]))
    WorkspaceCreateInvitesOperator(task_id="k", invites=waiting.output.map(lambda row: row["name"]))

    # Templates, rows and addresses.
    WorkspaceGetProjectOperator(task_id="l", project_id="{{ params.project_id }}")
    WorkspaceCreateProjectOperator(task_id="m", name="{{ ds }}", dry_run="{{ params.dry_run }}")
    WorkspaceCreateInvitesOperator(
        task_id="n", invites=[{"email": "ada@example.com", "level": 8}, "lin@example.com"], defaults={"level": 1}
    )

    # Never valid.
    WorkspaceCreateInvitesOperator(task_id="o", invites=5)  # type: ignore[arg-type]
    WorkspaceVerifyDomainOperator(task_id="p", domain_id=["a"])  # type: ignore[arg-type]
    WorkspaceGetProjectOperator(task_id="q", project="1")  # type: ignore[call-arg]


arguments()
