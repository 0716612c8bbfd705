"""Organizations whose names are long or odd."""

from __future__ import annotations

from airflow.sdk import DAG

from airflow_provider_workspace.task_groups import workspace_organization

NAMES = ["North " * 50, "🦊 \U00020bb7野家", 'O\'Brien "& <Sons>"', "360"]

with DAG("organizations", schedule=None):
    workspace_organization(
        file=[
            {
                "file": {"organizations": {name: {"projects": [{"name": f"Project {number}"}]}}},
                "organization": name,
            }
            for number, name in enumerate(NAMES)
        ],
        retries=0,
    )
