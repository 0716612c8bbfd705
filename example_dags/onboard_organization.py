"""
Onboard an organization: a project, domains, hundreds of invitations, dashboards and the people who work on them.

Each step looks first and creates only what is missing, so a second run changes nothing.
"""

from __future__ import annotations

from pathlib import Path

from airflow.sdk import Param, dag, task

from airflow_provider_workspace.operators.dashboards import (
    WorkspaceAddDashboardCollaboratorOperator,
    WorkspaceCreateDashboardOperator,
)
from airflow_provider_workspace.operators.domains import WorkspaceCreateDomainOperator
from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.operators.members import WorkspaceListMembersOperator
from airflow_provider_workspace.operators.projects import WorkspaceCreateProjectOperator
from airflow_provider_workspace.sensors.domains import WorkspaceDomainVerifiedSensor

ROSTER = Path(__file__).parent / "data" / "roster.csv"
DASHBOARDS = ["Sign-ups", "Activation", "Retention"]


@dag(
    schedule=None,
    tags=["workspace", "example"],
    max_active_runs=1,  # two runs at once could each create the same dashboard
    doc_md=__doc__,
    params={
        "project": Param("Northwind", type="string", minLength=1, title="Project", description="Taken if it is there."),
        "domain": Param(
            "northwind.example.com",
            type="string",
            format="hostname",
            title="Domain",
            description="The organization's domain; its DNS must show a challenge before it counts.",
        ),
        "roster": Param(
            str(ROSTER),
            type="string",
            title="Roster",
            description="CSV file of the people to invite, with the columns email, first_name, level, message.",
        ),
        "analyst": Param(
            "grace.analyst@example.com",
            type="string",
            format="email",
            title="Analyst",
            description="The member who is to work on the dashboards.",
        ),
    },
)
def onboard_organization() -> None:
    """Put the steps together."""
    # [START howto_create_project]
    project = WorkspaceCreateProjectOperator(
        task_id="create_project",
        task_display_name="Create the project",
        name="{{ params.project }}",
        timezone="Europe/Berlin",
        if_exists="return",
    )
    # [END howto_create_project]

    # [START howto_verify_domain]
    domain = WorkspaceCreateDomainOperator(
        task_id="create_domain", task_display_name="Claim the domain", domain="{{ params.domain }}"
    )

    @task(task_display_name="Publish the DNS challenge")
    def publish_challenge(claimed: dict[str, str | None]) -> None:
        """Replace this with the operator of your DNS: it tells the sandbox's make-believe DNS."""
        import requests
        from airflow.sdk import Connection

        requests.post(
            f"{Connection.get('workspace_default').host}/_sandbox/dns",
            json={
                "name": f"_workspace-challenge.{claimed['domain']}",
                "value": claimed["verification_challenge"],
            },
            timeout=10,
        ).raise_for_status()

    verified = WorkspaceDomainVerifiedSensor(
        task_id="wait_for_domain",
        task_display_name="Wait until the domain is verified",
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
        path="{{ params.roster }}",
        on_invalid="skip",
        defaults={"send_email": True},
    )
    # [END howto_create_invites]
    verified >> invites

    # [START howto_create_dashboards]
    dashboards = WorkspaceCreateDashboardOperator.partial(
        task_id="create_dashboards",
        task_display_name="Create the dashboards",
        map_index_template="{{ task.name }}",
        project_id=project.output["id"],
    ).expand_kwargs(
        [{"name": name, "variable_key": f"workspace_dashboard_{{{{ params.project }}}}_{name}"} for name in DASHBOARDS]
    )
    # [END howto_create_dashboards]

    # [START howto_add_collaborators]
    analyst = WorkspaceListMembersOperator(
        task_id="find_analyst",
        task_display_name="Find the analyst",
        where={"user.email": "{{ params.analyst }}"},
        fields=["user.uuid"],
    )
    collaborators = WorkspaceAddDashboardCollaboratorOperator.partial(
        task_id="add_collaborators",
        task_display_name="Let the analyst work on them",
        project_id=project.output["id"],
        # If nobody has that address this is empty, and the task says so before it sends anything.
        user_uuid="{{ (ti.xcom_pull(task_ids='find_analyst') or [{'user.uuid': ''}])[0]['user.uuid'] }}",
    ).expand(dashboard_id=dashboards.output.map(lambda dashboard: dashboard["id"]))
    analyst >> collaborators
    # [END howto_add_collaborators]

    # [START howto_report]
    @task(task_display_name="Report")
    def report(created: dict[str, bool | list[bool]], invited: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
        """Log what this run created and what was there; replace it with what your people want to read."""
        summary = {}
        for what, made in created.items():
            flags = [made] if isinstance(made, bool) else made[:]  # [:] reads a mapped task's XComs in one go
            summary[what] = {"created": flags.count(True), "there": flags.count(False)}
        counts = invited["counts"]
        summary["invites"] = {"created": counts["invited"], "there": counts["already_invited"] + counts["member"]}
        print(f"{'':<14} {'created':>8} {'there':>8}")  # noqa: T201 - goes to the task's log
        for what, row in summary.items():
            print(f"{what:<14} {row['created']:>8} {row['there']:>8}")  # noqa: T201
        print(f"Rows of the roster left out: {counts['duplicate']} repeated, {counts['invalid']} wrong")  # noqa: T201
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
