"""The parts that must say the same: operations, both hooks, the connection form and its checks."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest

from airflow_provider_workspace.api import operations
from airflow_provider_workspace.api.models import Resource
from airflow_provider_workspace.api.operation import path_fields
from airflow_provider_workspace.api.operations import OPERATIONS
from airflow_provider_workspace.client.settings import EXTRAS, read_settings
from airflow_provider_workspace.errors import WorkspaceConfigError
from airflow_provider_workspace.get_provider_info import CONNECTION_FIELDS, get_provider_info
from airflow_provider_workspace.hooks.workspace import WorkspaceAsyncHook, WorkspaceHook
from tests.contract.reference import EXPECTED

METHODS = {expected.hook_method: expected.operation for expected in EXPECTED if expected.hook_method}
# delete_dashboard is the way to delete that works: an UpdateDashboard under another name.
NAMED = {*METHODS, "delete_dashboard"}
# Methods of a hook that are no operation.
OTHERS = {
    "send",
    "test_connection",
    "close",
    "aclose",
    "client",
    "get_conn",
    "organization_or_default",
    "project_or_default",
}


def own_methods(hook: type) -> set[str]:
    return {name for name in vars(hook) if not name.startswith("_") and callable(getattr(hook, name))}


def parameters(method: Any) -> list[tuple[str, Any, Any]]:
    return [(item.name, item.kind, item.default) for item in inspect.signature(method).parameters.values()]


@pytest.mark.parametrize("hook", [WorkspaceHook, WorkspaceAsyncHook])
def test_every_operation_has_a_method_and_no_method_is_without_one(hook: type) -> None:
    assert own_methods(hook) - OTHERS == NAMED, "a new operation needs a method in both hooks, of the same name"


@pytest.mark.parametrize("name", sorted(NAMED | {"send", "__init__"}))
def test_both_hooks_have_the_same_parameters_and_words(name: str) -> None:
    method, twin = getattr(WorkspaceHook, name), getattr(WorkspaceAsyncHook, name)
    assert parameters(method) == parameters(twin)
    assert method.__annotations__.keys() == twin.__annotations__.keys()
    assert (method.__doc__ or "").split() == (twin.__doc__ or "").split()


@pytest.mark.parametrize(("name", "operation"), METHODS.items())
def test_a_method_takes_the_ids_and_the_fields_of_its_operation(name: str, operation: str) -> None:
    cls = getattr(operations, operation)
    taken = inspect.signature(getattr(WorkspaceHook, name)).parameters
    ids = set(path_fields(cls.endpoint.path))
    assert ids <= set(taken)
    for given in set(taken) - {"self", "fields", "invites", "on_invalid"}:
        assert given in cls.model_fields, f"{name} takes {given}, which {operation} does not have"
    optional = {item for item in ids if taken[item].default is None}
    assert optional == ids & ({"organization_id"} if "organization_id" in ids else {"project_id"})


@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_method_names_its_scope(name: str) -> None:
    scope = getattr(operations, METHODS[name]).endpoint.scope
    words = getattr(WorkspaceHook, name).__doc__
    assert (f"``{scope}``" if scope else "scope") in words


@pytest.mark.parametrize("cls", [*OPERATIONS, *Resource.__subclasses__()], ids=lambda cls: cls.__name__)
def test_every_public_name_has_a_docstring(cls: type) -> None:
    assert len((vars(cls).get("__doc__") or "").split()) >= 3


# The connection


def test_the_form_shows_the_extras_that_are_read() -> None:
    assert tuple(CONNECTION_FIELDS) == EXTRAS
    (connection,) = get_provider_info()["connection-types"]
    assert connection["connection-type"] == WorkspaceHook.conn_type
    assert connection["hook-class-name"] == f"{WorkspaceHook.__module__}.{WorkspaceHook.__name__}"
    assert connection["hook-name"] == WorkspaceHook.hook_name


def accepts(name: str, value: Any) -> bool:
    try:
        settings = read_settings(
            host="https://host.example.com", password="key", extra=json.dumps({name: value}), source="the test"
        )
    except WorkspaceConfigError:
        return False
    assert getattr(settings, name) == value
    return True


BOUNDED = {name: field["schema"] for name, field in CONNECTION_FIELDS.items() if "minimum" in field["schema"]}


@pytest.mark.parametrize("name", BOUNDED)
def test_the_form_has_the_bounds_and_defaults_of_the_check(name: str) -> None:
    schema = BOUNDED[name]
    step = 1 if "integer" in schema["type"] else 0.001
    assert accepts(name, schema["minimum"])
    assert accepts(name, schema["maximum"])
    assert not accepts(name, schema["minimum"] - step)
    assert not accepts(name, schema["maximum"] + step)
    assert accepts(name, schema["minimum"] + 0.5) is ("number" in schema["type"])


@pytest.mark.parametrize("name", BOUNDED)
def test_the_form_says_the_bounds(name: str) -> None:
    low, high = BOUNDED[name]["minimum"], BOUNDED[name]["maximum"]
    assert CONNECTION_FIELDS[name]["description"].endswith(f" From {low} to {high}.")


@pytest.mark.parametrize("name", [name for name, field in CONNECTION_FIELDS.items() if "default" in field["schema"]])
def test_the_form_shows_the_default_that_is_used(name: str) -> None:
    default = CONNECTION_FIELDS[name]["schema"]["default"]
    bare = read_settings(host="https://host.example.com", password="key", extra=None, source="the test")
    if name == "allow_http":
        assert default is False
    else:
        assert str(getattr(bare, name)).lower().removesuffix(".0") == str(default)


def test_the_form_offers_the_choices_that_are_accepted() -> None:
    choices = CONNECTION_FIELDS["bulk_invite_body"]["schema"]["enum"]
    assert all(accepts("bulk_invite_body", choice) for choice in choices)
    assert not accepts("bulk_invite_body", "list")
