"""
Onboard an organization from a file: a project, three dashboards with a collaborator, a domain, and 150 people.

`data/northwind.yaml` describes the organization. Each task compares its part of the file with the service, and sends
only the differences: **a second run changes nothing**. The Dag `check_organization` detects drift from the file.
"""

from __future__ import annotations

from airflow.sdk import Param, dag, task

from airflow_provider_workspace.task_groups import workspace_organization

FILE = Param(
    "data/northwind.yaml",
    type="string",
    pattern=r"^data/[\w-]+\.yaml$",
    title="Organization file",
    description="The organization: a YAML file in the folder data beside this Dag.",
)


# [START howto_onboard_organization]
@dag(
    schedule=None,
    max_active_runs=1,  # two runs at once could each create the same
    tags=["workspace", "example"],
    doc_md=__doc__,
    params={"file": FILE},
)
def onboard_organization() -> None:
    """Plan, apply, report."""

    @task(task_display_name="Publish the DNS challenges")
    def publish_challenges(domains: list[dict[str, str]]) -> None:
        """Publish to the DNS of the sandbox. Replace this with a call to your DNS provider."""
        import requests

        from airflow_provider_workspace.hooks.workspace import WorkspaceHook

        dns = f"{WorkspaceHook().client.settings.base_url}/_sandbox/dns"
        for domain in domains:
            record = {
                "name": f"_workspace-challenge.{domain['domain']}",
                "value": domain["verification_challenge"],
            }
            requests.post(dns, json=record, timeout=10).raise_for_status()

    workspace_organization(file="{{ params.file }}", publish=publish_challenges)
    # [END howto_onboard_organization]


onboard_organization()
