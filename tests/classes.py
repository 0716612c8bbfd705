"""Every operator, sensor and trigger, and valid arguments of each."""

from __future__ import annotations

import importlib
import inspect
import os
from pathlib import Path
from typing import Any

from airflow.sdk import BaseOperator
from airflow.triggers.base import BaseTrigger

from airflow_provider_workspace.get_provider_info import get_provider_info
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.sensors.workspace import WorkspaceSensor
from tests.contract.parts import IDS

INFO = get_provider_info()


def modules(kind: str) -> list[str]:
    return [name for entry in INFO[kind] for name in entry["python-modules"]]


def classes(kind: str, base: type) -> list[type[Any]]:
    found = []
    for name in modules(kind):
        module = importlib.import_module(name)
        found += [cls for cls in vars(module).values() if inspect.isclass(cls) and cls.__module__ == name]
    return [cls for cls in found if issubclass(cls, base)]


OPERATORS = classes("operators", BaseOperator)
SENSORS = [cls for cls in classes("sensors", BaseOperator) if cls is not WorkspaceSensor]
TRIGGERS = classes("triggers", BaseTrigger)
# Base classes in the same modules.
BASES = ("WorkspaceWindowOperator", "WorkspaceOrganizationOperator", "WorkspaceAccessReviewOperator")
TASKS = [cls for cls in (*OPERATORS, *SENSORS) if cls.__name__ not in BASES]

# Valid arguments without a default, or whose default sends nothing.
GOOD: dict[str, Any] = {
    **IDS,
    "workspace_conn_id": "workspace_default",
    "target_email": "new@example.com",
    "level": 1,
    "name": "Sales",
    **{name: ["ada@example.com"] for name in ("emails", "invites", "members")},
    "domain": "example.org",
    "max_rows": 100,
    "batch_export_ids": list(SEED.batch_export_ids[:1]),
    "close_task_id": "window.close",
    "opened_at": 1_764_288_000.0,
    "length": 60.0,
    "end_at": 0.0,
    "since": 1_764_288_000.0,
    "operation": "airflow_provider_workspace.api.operations.GetDomain",
    "condition": "domain_verified",
    "arguments": {"domain_id": SEED.domain_id},
    "what": "project",
    "file": {"projects": [{"name": "Sales"}]},
    "part": "projects",
    "schema": str(Path(__file__).parents[1] / "example_dags" / "data" / "openapi.yaml"),
    "reason": "audit",
    "protected": ["keep@example.com"],
    "evidence": f"{os.environ['AIRFLOW_HOME']}/reviews",
    "reviewers": ["ruth"],
    "review_timeout": 60.0,
}


def own_arguments(cls: type[Any]) -> dict[str, Any]:
    """Return valid arguments of an operator, sensor or trigger: required ones and optional ones."""
    found: dict[str, Any] = {}
    for name, parameter in parameters(cls).items():
        found[name] = GOOD.get(name, parameter.default)
        if name == "user_email" and parameter.default is inspect.Parameter.empty:  # elsewhere user_uuid is enough
            found[name] = "mina.member@example.com"
        known = found[name] is not inspect.Parameter.empty
        assert known, f"{cls.__name__}: add a valid {name} to GOOD in {__name__.replace('.', '/')}.py"
    if cls in SENSORS:
        found |= {"deferrable": True, "poke_interval": 60.0, "timeout": 600.0}
    return found


def parameters(cls: type[Any]) -> dict[str, inspect.Parameter]:
    """Return the arguments that the package defines."""
    found: dict[str, inspect.Parameter] = {}
    for base in cls.__mro__:
        if base.__module__.startswith("airflow_provider_workspace") and vars(base).keys() & {"__init__", "declared"}:
            own = dict(inspect.signature(base).parameters)
            found = {**own, **found}
            if "kwargs" not in own:
                break
    return {name: parameter for name, parameter in found.items() if name not in ("self", "kwargs")}
