"""
Onboard an organization: a project, a domain, hundreds of invites, dashboards and the analyst who works on them.

1. **Project**: created, or reused if one with this name exists.
2. **Domain**: claimed, its challenge published in the DNS, then waited for without a worker slot.
3. **Invites**: everybody on the roster, each person once; rows that are wrong are left out and reported.
4. **Dashboards**: three, and the analyst becomes a collaborator of each.
5. **Report**: what this run created, and what existed.

Each step is idempotent, so **a second run changes nothing**.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.sdk import Param, dag, task

from airflow_provider_workspace.operators.dashboards import (
    WorkspaceAddDashboardCollaboratorOperator,
    WorkspaceCreateDashboardOperator,
)
from airflow_provider_workspace.operators.domains import WorkspaceCreateDomainOperator
from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.operators.projects import WorkspaceCreateProjectOperator
from airflow_provider_workspace.sensors.workspace import WorkspaceDomainVerifiedSensor

ROSTERS = Path(__file__).parent / "data"
DASHBOARDS = ["Sign-ups", "Activation", "Retention"]


@dag(
    schedule=None,
    tags=["workspace", "example"],
    default_args={"retries": 2},
    max_active_runs=1,  # two runs at once could each create the same dashboard
    doc_md=__doc__,
    params={
        "project": Param(
            "Northwind",
            type="string",
            minLength=1,
            title="Project",
            description="Name of the project. If a project with this name exists, it is reused.",
        ),
        "domain": Param(
            "northwind.example.com",
            type="string",
            format="hostname",
            title="Domain",
            description="The organization's domain. Its DNS must show a challenge before it counts as verified.",
        ),
        "roster": Param(
            "roster.csv",
            type="string",
            pattern=r"^[\w-]+\.csv$",
            title="Roster",
            description="The people to invite: a CSV file in the folder data beside this Dag, "
            "with the columns email, first_name, level, message.",
        ),
        "analyst": Param(
            "grace.analyst@example.com",
            type="string",
            format="email",
            title="Analyst",
            description="Address of the member who is to work on the dashboards.",
        ),
    },
)
def onboard_organization() -> None:
    """Put the steps together."""
    # [START howto_create_project]
    project = WorkspaceCreateProjectOperator(
        task_id="create_project",
        task_display_name="Create the project",
        doc_md="If a project with this name exists, it is reused.",
        name="{{ params.project }}",
        timezone="Europe/Berlin",
        if_exists="return",
    )
    # [END howto_create_project]

    # [START howto_verify_domain]
    domain = WorkspaceCreateDomainOperator(
        task_id="create_domain",
        task_display_name="Claim the domain",
        doc_md="The result holds the **challenge** that the DNS of the domain must show.",
        domain="{{ params.domain }}",
    )

    @task(task_display_name="Publish the DNS challenge")
    def publish_challenge(claimed: dict[str, str | None]) -> None:
        """Replace this with the operator of your DNS: it tells the sandbox's simulated DNS."""
        import requests

        from airflow_provider_workspace.hooks.workspace import WorkspaceHook

        requests.post(
            f"{WorkspaceHook().client.settings.base_url}/_sandbox/dns",
            json={
                "name": f"_workspace-challenge.{claimed['domain']}",
                "value": claimed["verification_challenge"],
            },
            timeout=10,
        ).raise_for_status()

    verified = WorkspaceDomainVerifiedSensor(
        task_id="wait_for_domain",
        task_display_name="Wait until it is verified",
        doc_md="Asks the service to look at the DNS every five seconds, **without a worker slot**.",
        domain_id=domain.output["id"],
        ask_verification=True,
        deferrable=True,
        poke_interval=5,
        timeout=3600,
    )
    publish_challenge(domain.output) >> verified
    # [END howto_verify_domain]

    # [START howto_create_invites]
    invites = WorkspaceCreateInvitesOperator(
        task_id="invite_everybody",
        task_display_name="Invite everybody",
        doc_md="Leaves out members and people with an open invite, and invites the others in bulk. "
        "Its result has a line for *every* row of the roster.",
        path=str(ROSTERS / "{{ params.roster }}"),
        on_invalid="skip",
        defaults={"send_email": True},
    )
    # [END howto_create_invites]
    verified >> invites

    # [START howto_create_dashboards]
    dashboards = WorkspaceCreateDashboardOperator.partial(
        task_id="create_dashboards",
        task_display_name="Create the dashboards",
        doc_md="The service cannot list dashboards: a Variable, `variable_key`, remembers each.",
        map_index_template="{{ task.name }}",
        project_id=project.output["id"],
        restriction_level=37,  # collaborators edit; some services take none without it
    ).expand_kwargs(
        [
            {
                "name": name,
                "variable_key": "workspace_dashboard_{{ params.project }}_" + name,
            }
            for name in DASHBOARDS
        ]
    )
    # [END howto_create_dashboards]

    # [START howto_add_collaborators]
    collaborators = WorkspaceAddDashboardCollaboratorOperator.partial(
        task_id="add_collaborators",
        task_display_name="Add the analyst",
        doc_md="Adds the analyst as a collaborator of each dashboard, unless they are one.",
        project_id=project.output["id"],
        level=37,  # may edit
        # If no member has that address, the task fails before it adds anybody.
        user_email="{{ params.analyst }}",
    ).expand(dashboard_id=dashboards.output.map(lambda dashboard: dashboard["id"]))
    # [END howto_add_collaborators]

    # [START howto_report]
    @task(task_display_name="Report")
    def report(created: dict[str, Any], invited: dict[str, dict[str, int]]) -> dict[str, Any]:
        """Log what this run created and what existed."""
        summary = {}
        for what, made in created.items():
            # [:] reads the XComs of a mapped task in one go.
            flags = [made] if isinstance(made, bool) else made[:]
            summary[what] = {"created": flags.count(True), "there": flags.count(False)}
        counts = invited["counts"]
        summary["invites"] = {
            "created": counts["invited"],
            "there": counts["already_invited"] + counts["member"],
        }
        print(f"{'':<14} {'created':>8} {'there':>8}")
        for what, row in summary.items():
            print(f"{what:<14} {row['created']:>8} {row['there']:>8}")
        print(f"Rows left out: {counts['duplicate']} repeated, {counts['invalid']} wrong")
        return summary

    created = {
        "project": project.output["created"],
        "domain": domain.output["created"],
        "dashboards": dashboards.output["created"],
        "collaborators": collaborators.output["created"],
    }
    report(created, invites.output)
    # [END howto_report]


onboard_organization()
