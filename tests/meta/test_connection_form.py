"""The connection form matches the checks of the settings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_workspace.client.settings import EXTRAS, read_settings
from airflow_provider_workspace.errors import WorkspaceConfigError
from airflow_provider_workspace.get_provider_info import CONNECTION_FIELDS, get_provider_info
from airflow_provider_workspace.hooks.workspace import WorkspaceHook


def test_the_form_has_every_key_of_the_extra() -> None:
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
def test_bounds_and_defaults_of_the_form_match_the_settings(name: str) -> None:
    schema = BOUNDED[name]
    step = 1 if "integer" in schema["type"] else 0.001
    assert accepts(name, schema["minimum"])
    assert accepts(name, schema["maximum"])
    assert not accepts(name, schema["minimum"] - step)
    assert not accepts(name, schema["maximum"] + step)
    assert accepts(name, schema["minimum"] + 0.5) is ("number" in schema["type"])


@pytest.mark.parametrize("name", BOUNDED)
def test_the_descriptions_contain_the_bounds(name: str) -> None:
    low, high = BOUNDED[name]["minimum"], BOUNDED[name]["maximum"]
    assert CONNECTION_FIELDS[name]["description"].endswith(f" From {low} to {high}.")


@pytest.mark.parametrize("name", [name for name, field in CONNECTION_FIELDS.items() if "default" in field["schema"]])
def test_the_descriptions_contain_the_defaults(name: str) -> None:
    default = CONNECTION_FIELDS[name]["schema"]["default"]
    bare = read_settings(host="https://host.example.com", password="key", extra=None, source="the test")
    assert str(getattr(bare, name)).lower().removesuffix(".0") == str(default).lower()


def test_the_choices_of_the_form_are_accepted() -> None:
    choices = CONNECTION_FIELDS["bulk_invite_body"]["schema"]["enum"]
    assert all(accepts("bulk_invite_body", choice) for choice in choices)
    assert not accepts("bulk_invite_body", "list")
