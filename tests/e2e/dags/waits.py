"""Many tasks that wait for one domain."""

from __future__ import annotations

from airflow.sdk import DAG

from airflow_provider_workspace.sensors.workspace import WorkspaceDomainVerifiedSensor

SECONDS = 5

# 1,000 tasks with start_from_trigger. Airflow loads the whole Dag to start a trigger, hence many small Dags.
for dag_number in range(40):
    with DAG(f"many_waits_{dag_number}", schedule=None, params={"domain_id": ""}):
        for number in range(25):
            WorkspaceDomainVerifiedSensor(
                task_id=f"wait_{number}",
                domain_id="{{ params.domain_id }}",
                organization_id="0190c0de-0000-4000-8000-000000000001",
                ask_verification=False,
                poke_interval=SECONDS,
                start_from_trigger=True,
            )
