"""
Audit access every week: members without a second factor, expired invites, and inactive administrators.

It changes nothing. You find the findings in

- the log of the last task, as a table,
- the result of the last task, for a Dag that acts on them,
- a CSV file, if the run names one.
"""

from __future__ import annotations

import csv
from datetime import datetime, timezone
from pathlib import Path

from airflow.sdk import Param, dag, task

from airflow_provider_workspace.operators.invites import WorkspaceListInvitesOperator
from airflow_provider_workspace.operators.members import WorkspaceListMembersOperator


@dag(
    schedule="@weekly",
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    tags=["workspace", "example"],
    default_args={"retries": 2},
    doc_md=__doc__,
    params={
        "file": Param(
            None,
            type=["null", "string"],
            title="File",
            description="Path of a CSV file for the findings, on the worker. Leave it empty to write none.",
        ),
        "days": Param(
            90,
            type="integer",
            minimum=1,
            maximum=3650,
            title="Days",
            description="Administrators who have not logged in for this many days are reported.",
        ),
    },
)
def access_audit() -> None:
    """Read, compare, report."""
    no_second_factor = WorkspaceListMembersOperator(
        task_id="members_without_2fa",
        task_display_name="Members without 2FA",
        doc_md="Members who log in without a second factor.",
        where={"is_2fa_enabled": False},
        fields=["user.email", "level"],
    )
    administrators = WorkspaceListMembersOperator(
        task_id="administrators",
        task_display_name="Inactive administrators",
        doc_md="Members of level **8** (admin) or **15** (owner) who no longer log in.",
        where={
            "level": [8, 15],
            "last_login": {"before": "{{ params.days }}d"},
        },
        fields=["user.email", "last_login"],
    )
    invites = WorkspaceListInvitesOperator(
        task_id="expired_invites",
        task_display_name="Expired invites",
        doc_md="Invites that were not accepted in time. They stay on the list until they are deleted.",
        where={"is_expired": True},
        fields=["target_email", "created_at"],
    )

    @task(task_display_name="Report")
    def report(
        members: list[dict[str, str]],
        admins: list[dict[str, str]],
        expired: list[dict[str, str]],
        file: str,
    ) -> list[dict[str, str]]:
        """Log the findings, write them to a file and return them."""
        findings = [
            *({"email": row["user.email"], "finding": "no 2FA", "since": ""} for row in members),
            *(
                {
                    "email": row["user.email"],
                    "finding": "administrator inactive",
                    "since": row["last_login"] or "never",
                }
                for row in admins
            ),
            *(
                {
                    "email": row["target_email"],
                    "finding": "invite expired",
                    "since": "",
                }
                for row in expired
            ),
        ]
        header = {"email": "email", "finding": "finding", "since": "since"}
        for row in (header, *findings):
            print(f"{row['email']:<40} {row['finding']:<24} {row['since']}")
        if file:
            with Path(file).open("w", newline="") as target:
                csv.DictWriter(target, header).writerows((header, *findings))
        return findings

    report(
        no_second_factor.output,
        administrators.output,
        invites.output,
        file="{{ params.file or '' }}",
    )


access_audit()
