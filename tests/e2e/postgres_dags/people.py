"""People of organizations: an approval, grants, a review, and a bulk invite that defers twice."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, Param

from airflow_provider_workspace.operators import base
from airflow_provider_workspace.operators.access import WorkspaceGrantAccessOperator
from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.operators.members import WorkspaceSyncMembersOperator
from airflow_provider_workspace.task_groups import access_review

# Pauses of more than a minute are deferred; here those of more than some seconds.
base.MAX_PAUSE_ON_WORKER = 3.0
OWNER = "olive.owner@example.com"
LIST = Param([], type="array")


def people_dag(name: str, **params: Any) -> DAG:
    """Return a Dag for the organization of the same name."""
    return DAG(
        name,
        schedule=None,
        params=params,
        render_template_as_native_obj=True,
        default_args={"workspace_conn_id": name, "retries": 0},
    )


with people_dag("approval", leavers=LIST):
    WorkspaceSyncMembersOperator(
        task_id="off_board",
        leavers="{{ params.leavers }}",
        protected=[OWNER],
        max_removals=None,
        require_approval=True,
    )

with people_dag("grants", short=Param("", type="string"), long=Param("", type="string")):
    for name, length in (("short", 15), ("long", 86400)):
        WorkspaceGrantAccessOperator(
            task_id=name, user_email=f"{{{{ params.{name} }}}}", level=8, length=length, reason="rollout"
        )

with people_dag("review", evidence=Param("", type="string")):
    access_review(
        evidence="{{ params.evidence }}",
        reviewers=["ruth"],
        review_timeout=600,
        protected=[OWNER],
        max_removals=None,
    )

with people_dag("bulk_invite", people=LIST):
    WorkspaceCreateInvitesOperator(task_id="invite", invites="{{ params.people }}", defaults={"send_email": False})
