"""How a window hangs together with the tasks around it; what it does is tried in a whole Airflow."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.task_groups import maintenance_window

EXPORTS = [SEED.batch_export_ids[0]]
TASKS = ("open", "pause", "drain", "hold", "outcome", "close", "guard")


def test_a_window_opens_after_one_task_and_is_followed_by_another() -> None:
    with DAG("around", schedule=None) as dag:
        before, after = EmptyOperator(task_id="before"), EmptyOperator(task_id="after")
        with maintenance_window(batch_export_ids=EXPORTS) as work:
            EmptyOperator(task_id="rebuild")
        assert work.parent_group is not None
        before >> work.parent_group
        work >> after
    assert dag.get_task("maintenance_window.open").upstream_task_ids == {"before"}
    assert dag.get_task("rebuild").upstream_task_ids == {"maintenance_window.pause"}
    assert dag.get_task("after").upstream_task_ids == {"rebuild"}


def test_exports_under_way_may_end_before_the_work() -> None:
    with DAG("drained", schedule=None) as dag, maintenance_window(batch_export_ids=EXPORTS, drain=60):
        EmptyOperator(task_id="rebuild")
    assert dag.get_task("maintenance_window.drain").upstream_task_ids == {"maintenance_window.pause"}
    assert dag.get_task("rebuild").upstream_task_ids == {"maintenance_window.drain"}


def test_default_args_do_not_reach_the_tasks_of_a_window() -> None:
    defaults: dict[str, Any] = {
        "depends_on_past": True,
        "wait_for_downstream": True,
        "trigger_rule": "one_failed",
        "retries": 0,
        "retry_delay": timedelta(days=1),
        "execution_timeout": timedelta(seconds=1),
        "do_xcom_push": False,
    }
    with (
        DAG("defaults", schedule=None, default_args=defaults) as dag,
        maintenance_window(batch_export_ids=EXPORTS, drain=60, hold=60, max_length=3600),
    ):
        EmptyOperator(task_id="rebuild")
    for name in TASKS:
        task = dag.get_task(f"maintenance_window.{name}")
        assert not task.depends_on_past
        assert not task.wait_for_downstream
        assert task.trigger_rule == ("all_done_setup_success" if name == "close" else "all_success")
        assert task.retries == (15 if name == "close" else 3)
        assert task.retry_delay < timedelta(minutes=1)
        assert task.execution_timeout is None
        assert task.do_xcom_push
    assert dag.get_task("rebuild").depends_on_past


def test_an_author_may_change_how_the_resume_is_retried() -> None:
    with (
        DAG("changed", schedule=None) as dag,
        maintenance_window(batch_export_ids=EXPORTS, hold=1, resume_args={"retries": 1}),
    ):
        pass
    assert dag.get_task("maintenance_window.close").retries == 1


@pytest.mark.parametrize("value", [math.nan, 1e300, -1, timedelta(days=-1), True, "soon", []])
@pytest.mark.parametrize("name", ["hold", "drain", "max_length"])
def test_a_length_that_is_none_is_an_error_of_the_file(name: str, value: Any) -> None:
    lengths: dict[str, Any] = {name: value}
    with (
        DAG("wrong", schedule=None),
        pytest.raises(ValueError, match=f"{name} must be a timedelta or a number of seconds"),
        maintenance_window(batch_export_ids=EXPORTS, **lengths),
    ):
        EmptyOperator(task_id="rebuild")
