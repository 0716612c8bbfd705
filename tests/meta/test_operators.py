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
        if re.search(rf"^class Workspace\w+{base}\(", file.read_text(), re.MULTILINE) and file.stem != "base"
    }
    named = {name.rpartition(".")[2] for name in modules(kind)}
    assert not files - named, f"get_provider_info.py: add {sorted(files - named)} to the modules of {kind}"
    assert not named - files, f"get_provider_info.py: {sorted(named - files)} has no {kind}"


@pytest.mark.parametrize("cls", TASKS)
def test_template_fields_are_the_templated_arguments(cls: type[Any]) -> None:
    arguments = {
        name: parameter
        for base in cls.__mro__
        if base is not object
        for name, parameter in inspect.signature(base.__init__).parameters.items()
    }
    # dry_run is a method of Airflow's
    unknown = set(cls.template_fields) - set(arguments) - {"is_dry_run"}
    assert not unknown, f"{cls.__name__}: {sorted(unknown)} of template_fields is no argument"
    assert "workspace_conn_id" in cls.template_fields, "a mapped task group may map over connections"
    templated = {name for name, parameter in arguments.items() if "XComArg" in str(parameter.annotation)}
    own = {name for base in cls.__mro__ if is_ours(base) for name in inspect.signature(base.__init__).parameters}
    missing = (templated & own) - {"dry_run"} - set(cls.template_fields)
    assert not missing, f"{cls.__name__}: add {sorted(missing)} to its template_fields, or remove XComArg from the type"
    assert {"WorkspaceOperator", "WorkspaceSensor"} & {base.__name__ for base in cls.__mro__}


def is_ours(cls: type[Any]) -> bool:
    return cls.__module__.startswith("airflow_provider_workspace") and "__init__" in vars(cls)


@pytest.mark.parametrize(
    "cls", dict.fromkeys(base for cls in (*TASKS, *TRIGGERS) for base in cls.__mro__ if is_ours(base))
)
def test_every_own_argument_is_documented(cls: type[Any]) -> None:
    own = inspect.signature(cls.__init__).parameters if "__init__" in vars(cls) else {}
    documented = re.findall(r":param (\w+):", inspect.getdoc(cls) or "")
    silent = {name for name in own if name not in ("self", "kwargs")} - set(documented)
    assert not silent, f"{cls.__name__}: describe {sorted(silent)} in its docstring, :param …:"


def test_links_are_in_the_metadata() -> None:
    assert INFO["extra-links"] == [f"{WorkspaceLink.__module__}.{WorkspaceLink.__qualname__}"]
