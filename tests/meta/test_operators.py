"""Rules for all operators, sensors and triggers: documentation, templates, mapping, import cost."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from pathlib import Path
from typing import Any

import airflow
import jsonschema
import pytest
from airflow.sdk import BaseOperator
from airflow.triggers.base import BaseTrigger

from airflow_provider_workspace.get_provider_info import get_provider_info
from airflow_provider_workspace.links import WorkspaceLink
from airflow_provider_workspace.sensors.workspace import WorkspaceSensor

ROOT = Path(__file__).resolve().parents[2]
INFO = get_provider_info()
SCHEMA = json.loads((Path(airflow.__file__).parent / "provider.yaml.schema.json").read_text())


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
BASES = ("WorkspaceWindowOperator", "WorkspaceOrganizationOperator")
TASKS = [cls for cls in (*OPERATORS, *SENSORS) if cls.__name__ not in BASES]


@pytest.mark.parametrize(
    "key",
    [
        pytest.param(key, marks=pytest.mark.needs_airflow("3.2", "commands")) if key == "cli" else key
        for key in sorted(INFO)
    ],
)
def test_the_metadata_passes_airflows_strict_schema(key: str) -> None:
    jsonschema.validate(INFO[key], {**SCHEMA["properties"][key], "definitions": SCHEMA["definitions"]})


@pytest.mark.parametrize("kind", ["operators", "sensors", "triggers"])
def test_the_metadata_names_every_module(kind: str) -> None:
    package = importlib.import_module(f"airflow_provider_workspace.{kind}")
    base = {"operators": "Operator", "sensors": "Sensor", "triggers": "Trigger"}[kind]
    files = {
        file.stem
        for file in Path(str(package.__file__)).parent.glob("*.py")
        if file.stem not in ("base", "crud")
        and re.search(rf"^class Workspace\w+{base}\(", file.read_text(), re.MULTILINE)
    }
    named = {name.rpartition(".")[2] for name in modules(kind)}
    assert not files - named, f"get_provider_info.py: add {sorted(files - named)} to the modules of {kind}"
    assert not named - files, f"get_provider_info.py: {sorted(named - files)} has no {kind}"


@pytest.mark.parametrize("cls", TASKS)
def test_arguments_are_documented_and_templated(cls: type[Any]) -> None:
    templated = {each.attribute or name for name, each in cls.declared.items() if each.templated}
    assert set(cls.template_fields) == templated
    assert "workspace_conn_id" in templated, "a mapped task group may map over connections"
    assert {"WorkspaceOperator", "WorkspaceSensor"} & {base.__name__ for base in cls.__mro__}
    documented = {name for base in cls.__mro__ for name in re.findall(r":param (\w+):", base.__doc__ or "")}
    silent = set(cls.declared) - documented
    assert not silent, f"{cls.__name__}: describe {sorted(silent)} in its docstring, :param …:"


@pytest.mark.parametrize("cls", TRIGGERS)
def test_every_argument_of_a_trigger_is_documented(cls: type[Any]) -> None:
    documented = {name for base in cls.__mro__ for name in re.findall(r":param (\w+):", base.__doc__ or "")}
    silent = {name for name in inspect.signature(cls).parameters if name != "kwargs"} - documented
    assert not silent, f"{cls.__name__}: describe {sorted(silent)} in its docstring, :param …:"


def test_links_are_in_the_metadata() -> None:
    assert INFO["extra-links"] == [f"{WorkspaceLink.__module__}.{WorkspaceLink.__qualname__}"]
