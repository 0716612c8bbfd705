"""
Make an organization what its file says: `data/northwind.yaml`.

Each part is a task that plans, and sends only what differs. **A second run changes nothing.**
"""

from __future__ import annotations

from airflow.sdk import dag, task

from airflow_provider_workspace.task_groups import workspace_organization


# [START howto_apply_organization]
@dag(schedule=None, max_active_runs=1, tags=["workspace", "example"], doc_md=__doc__)
def apply_organization() -> None:
    """Plan, apply, report."""

    @task(task_display_name="Publish the DNS challenges")
    def publish_challenges(domains: list[dict[str, str]]) -> None:
        """Replace this with the operator of your DNS: it tells the sandbox's simulated DNS."""
        import requests

        from airflow_provider_workspace.hooks.workspace import WorkspaceHook

        dns = f"{WorkspaceHook().client.settings.base_url}/_sandbox/dns"
        for domain in domains:
            record = {
                "name": f"_workspace-challenge.{domain['domain']}",
                "value": domain["verification_challenge"],
            }
            requests.post(dns, json=record, timeout=10).raise_for_status()

    workspace_organization(file="data/northwind.yaml", publish=publish_challenges)


apply_organization()
# [END howto_apply_organization]
