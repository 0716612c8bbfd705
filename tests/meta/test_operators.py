"""Rules for all operators, sensors and triggers: documentation, templates, mapping, import cost."""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
import re
import types
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import airflow
import jsonschema
import pytest

from airflow_provider_workspace.links import WorkspaceLink
from tests.classes import INFO, OPERATORS, TASKS, TRIGGERS, modules

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((Path(airflow.__file__).parent / "provider.yaml.schema.json").read_text())


@pytest.mark.parametrize(
    "key",
    [
        pytest.param(key, marks=pytest.mark.needs_airflow("3.2", "commands")) if key == "cli" else key
        for key in sorted(INFO)
    ],
)
def test_the_metadata_passes_airflows_strict_schema(key: str) -> None:
    jsonschema.validate(INFO[key], {**SCHEMA["properties"][key], "definitions": SCHEMA["definitions"]})


@pytest.mark.parametrize(("kind", "base"), [("operators", "Operator"), ("sensors", "Sensor"), ("triggers", "Trigger")])
def test_the_metadata_names_every_module(kind: str, base: str) -> None:
    package = importlib.import_module(f"airflow_provider_workspace.{kind}")
    folder = Path(str(package.__file__)).parent
    a_class = re.compile(rf"^class Workspace\w+{base}\(", re.MULTILINE)
    files = {file.stem for file in folder.glob("*.py") if a_class.search(file.read_text())}
    files -= {"base", "crud"}
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


def test_the_changelog_counts_operators_and_arguments() -> None:
    """Whoever adds one has to open the changelog."""
    arguments = sum(len(cls.declared) for cls in TASKS)
    counts = f"{len(TASKS)} operators and sensors with {arguments} arguments"
    said = counts in (ROOT / "CHANGELOG.md").read_text()
    assert said, f"CHANGELOG.md: add a line for the new operator or argument, and write {counts!r}"


# Strings such as "domains.CreateDomain", and the names of arguments that hold further fields, such as "body".
OPERATION_NAME = re.compile(r'"(\w+\.[A-Z]\w+)"')
MAPPINGS = re.compile(r'operation_from_arguments\(hook, [^(),]+((?:, "\w+")+)')
# What Airflow's base classes read.
READ_BY_AIRFLOW = {"poke_interval", "timeout"}


source_of = cache(inspect.getsource)


@pytest.mark.parametrize("cls", TASKS)
def test_every_argument_is_used(cls: type[Any]) -> None:
    """As an attribute of the task, or as a field of its operations, which ``operation_from_arguments`` takes."""
    bases = [base for base in cls.__mro__ if base.__module__.startswith("airflow_provider_workspace")]
    source = "\n".join(map(source_of, bases))
    used = set(re.findall(r"\bself\.(\w+)", source)) | READ_BY_AIRFLOW
    for mappings in MAPPINGS.findall(source):
        used |= set(re.findall(r"\w+", mappings))
    for name in OPERATION_NAME.findall(source):
        used |= set(resolve_name(f"airflow_provider_workspace.api.operations.{name}").model_fields)
    unused = {name for name, each in cls.declared.items() if (each.attribute or name) not in used}
    assert not unused, (
        f"{cls.__name__}: {sorted(unused)} is declared and never used: read it as self.… in write or work"
    )


@pytest.mark.parametrize("cls", [cls for cls in OPERATORS if len(cls.__bases__) > 1])
def test_the_order_of_the_bases_does_not_matter(cls: type[Any]) -> None:
    found = []
    for bases in itertools.permutations(cls.__bases__):
        other: Any = types.new_class("Other", bases)
        methods = {name: getattr(other, name) for name in dir(other) if inspect.isfunction(getattr(other, name))}
        own = {name: method for name, method in methods.items() if method.__module__.startswith("airflow_provider")}
        defaults = {name: (each.kind, each.default) for name, each in other.declared.items()}
        found.append((own | {"__init__": None}, defaults, other.operator_extra_links, set(other.template_fields)))
    assert all(each == found[0] for each in found)


@pytest.mark.parametrize("cls", TRIGGERS)
def test_every_argument_of_a_trigger_is_documented(cls: type[Any]) -> None:
    documented = {name for base in cls.__mro__ for name in re.findall(r":param (\w+):", base.__doc__ or "")}
    silent = {name for name in inspect.signature(cls).parameters if name != "kwargs"} - documented
    assert not silent, f"{cls.__name__}: describe {sorted(silent)} in its docstring, :param …:"


def test_links_are_in_the_metadata() -> None:
    assert INFO["extra-links"] == [f"{WorkspaceLink.__module__}.{WorkspaceLink.__qualname__}"]
