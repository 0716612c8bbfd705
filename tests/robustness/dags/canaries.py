"""A Dag that tries to leak known secrets through operators, hooks, sensors, triggers and their errors."""

from __future__ import annotations

import logging
from typing import Any

from airflow.sdk import dag, task

from airflow_provider_workspace.operators.dashboards import WorkspaceGetDashboardSharingOperator
from airflow_provider_workspace.operators.domains import WorkspaceListDomainsOperator, WorkspaceUpdateDomainOperator
from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator, WorkspaceListInvitesOperator
from airflow_provider_workspace.operators.members import WorkspaceListMembersOperator
from airflow_provider_workspace.operators.projects import (
    WorkspaceCreateProjectOperator,
    WorkspaceGetProjectOperator,
    WorkspaceListProjectsOperator,
)
from airflow_provider_workspace.sensors.workspace import WorkspaceDomainVerifiedSensor, WorkspaceMembersJoinedSensor

log = logging.getLogger(__name__)
DOMAIN = "0190c0de-0000-4000-8000-0000000000d1"
CERTIFICATE = "{{ var.value.canary_certificate }}"
WEBHOOK = "{{ var.value.canary_webhook }}"


@dag(schedule=None, default_args={"retries": 0})
def canaries() -> None:
    WorkspaceGetProjectOperator(task_id="project", project_id=1)
    WorkspaceListProjectsOperator(task_id="projects")
    WorkspaceGetDashboardSharingOperator(task_id="sharing", dashboard_id=1)
    WorkspaceUpdateDomainOperator(task_id="certificate", domain_id=DOMAIN, saml_x509_cert=CERTIFICATE)
    WorkspaceUpdateDomainOperator.partial(task_id="certificates", domain_id=DOMAIN).expand(saml_x509_cert=[CERTIFICATE])
    WorkspaceListDomainsOperator(task_id="domains")
    WorkspaceCreateProjectOperator(
        task_id="webhook",
        name="Canary",
        settings={"slack_incoming_webhook": WEBHOOK, "extra_settings": {"scim_token": [WEBHOOK]}},
    )
    # A foreign origin, for redirects and next pages.
    WorkspaceListMembersOperator(task_id="redirected")
    WorkspaceListInvitesOperator(task_id="paged")
    for number, conn_id in enumerate(("workspace_revoked", "workspace_echo", "workspace_proxy", "workspace_broken")):
        WorkspaceGetProjectOperator(task_id=f"fails_{number}", workspace_conn_id=conn_id, project_id=1)
        WorkspaceCreateInvitesOperator(
            task_id=f"invites_{number}", workspace_conn_id=conn_id, invites=["ada@example.com"]
        )
        WorkspaceCreateProjectOperator(
            task_id=f"creates_{number}",
            workspace_conn_id=conn_id,
            name="Canary",
            settings={"slack_incoming_webhook": WEBHOOK},
        )
        WorkspaceDomainVerifiedSensor(
            task_id=f"waits_{number}", workspace_conn_id=conn_id, domain_id=DOMAIN, timeout=3, poke_interval=1
        )
    WorkspaceMembersJoinedSensor(
        task_id="deferred", emails=["ada@example.com"], deferrable=True, poke_interval=1, timeout=3
    )

    @task
    def prints() -> list[Any]:
        """Log every representation of the objects."""
        from airflow_provider_workspace.hooks.workspace import WorkspaceHook

        hook = WorkspaceHook()
        project = hook.get_project(project_id=1)
        sharing = hook.get_dashboard_sharing(dashboard_id=1)
        log.info("%s", [project, repr(sharing), hook.client.settings, hook.client, vars(hook)])
        return [repr(project), str(hook.client.settings), project.to_dict(), sharing.to_dict()]

    @task
    def raises(conn_id: str) -> None:
        """Raise errors unchanged."""
        from airflow_provider_workspace.hooks.workspace import WorkspaceHook

        hook = WorkspaceHook(conn_id)
        try:
            hook.create_project(name="Canary", slack_incoming_webhook=project_webhook())
        except Exception as error:
            log.info("%s", [repr(error), vars(error), repr(error.__cause__), repr(error.__context__)])
            raise

    prints()
    raises.expand(conn_id=["workspace_revoked", "workspace_echo", "workspace_proxy"])


def project_webhook() -> str:
    from airflow.sdk import Variable

    return str(Variable.get("canary_webhook"))


canaries()
