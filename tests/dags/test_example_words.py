"""Documentation of the examples in the Airflow UI: every Dag, parameter and task has one."""

from __future__ import annotations

from pathlib import Path

import pytest
from airflow.sdk import DAG, Param

from tests.dag_bag import DagBag

EXAMPLES = Path(__file__).resolve().parents[2] / "example_dags"
DAG_IDS = sorted(file.stem for file in EXAMPLES.glob("*.py"))


@pytest.fixture(scope="module")
def examples() -> dict[str, DAG]:
    bag = DagBag(EXAMPLES)
    assert not bag.import_errors
    return dict(bag.dags)


@pytest.mark.parametrize("dag_id", DAG_IDS)
def test_each_example_dag_is_documented(examples: dict[str, DAG], dag_id: str) -> None:
    assert len(examples[dag_id].doc_md or "") > 150


@pytest.mark.parametrize("dag_id", DAG_IDS)
def test_each_example_param_has_type_title_description_and_default(examples: dict[str, DAG], dag_id: str) -> None:
    for name in examples[dag_id].params:
        param = examples[dag_id].params.get_param(name)
        assert isinstance(param, Param)
        assert param.schema.get("type"), f"{name} needs a type"
        assert param.schema.get("title"), f"{name} needs a title"
        assert str(param.description).endswith("."), f"{name} needs a description"
        assert param.resolve() == param.value, f"{name} needs a default that is allowed"


@pytest.mark.parametrize("dag_id", DAG_IDS)
def test_each_example_task_has_a_display_name_and_documentation(examples: dict[str, DAG], dag_id: str) -> None:
    for task in examples[dag_id].tasks:
        assert task.task_display_name != task.task_id, f"{task.task_id} needs a task_display_name"
        assert task.doc_md, f"{task.task_id} needs a doc_md"
