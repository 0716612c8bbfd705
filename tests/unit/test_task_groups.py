"""How a window hangs together with the tasks around it; what it does is tried in a whole Airflow."""

from __future__ import annotations

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.task_groups import maintenance_window


def test_a_window_opens_after_one_task_and_is_followed_by_another() -> None:
    with DAG("around", schedule=None) as dag:
        before, after = EmptyOperator(task_id="before"), EmptyOperator(task_id="after")
        with maintenance_window(batch_export_ids=[SEED.batch_export_ids[0]]) as work:
            EmptyOperator(task_id="rebuild")
        assert work.parent_group is not None
        before >> work.parent_group
        work >> after
    assert dag.get_task("maintenance_window.open").upstream_task_ids == {"before"}
    assert dag.get_task("rebuild").upstream_task_ids == {"maintenance_window.pause"}
    assert dag.get_task("after").upstream_task_ids == {"rebuild"}
