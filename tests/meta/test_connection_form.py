"""The connection form: it is generated from the settings, and says the bounds that a connection accepts."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_workspace.client.settings import BOUNDS
from airflow_provider_workspace.errors import WorkspaceConfigError
from airflow_provider_workspace.get_provider_info import get_provider_info
from airflow_provider_workspace.hooks.workspace import WorkspaceHook

ROOT = Path(__file__).resolve().parents[2]
(CONNECTION,) = get_provider_info()["connection-types"]
FIELDS = CONNECTION["conn-fields"]


def test_generated_files_are_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "dev")
    for path, text in importlib.import_module("make_connection").files().items():
        assert path.read_text() == text, f"{path}: run .venv/bin/python dev/make_connection.py"


def test_the_metadata_names_the_hook() -> None:
    assert CONNECTION["connection-type"] == WorkspaceHook.conn_type
    assert CONNECTION["hook-class-name"] == f"{WorkspaceHook.__module__}.{WorkspaceHook.__name__}"
    assert CONNECTION["hook-name"] == WorkspaceHook.hook_name


@pytest.mark.parametrize("name", [*BOUNDS, "bulk_invite_body"])
def test_values_of_the_form_are_accepted_and_others_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def accepts(value: Any) -> bool:
        connection = {"conn_type": "workspace", "host": "https://workspace.example.com", "password": "key"}
        monkeypatch.setenv("AIRFLOW_CONN_WORKSPACE_DEFAULT", json.dumps({**connection, "extra": {name: value}}))
        try:
            WorkspaceHook().get_conn()
        except WorkspaceConfigError as error:
            return f"'{name}'" not in str(error)
        return True

    schema = FIELDS[name]["schema"]
    if "enum" in schema:
        assert all(map(accepts, schema["enum"]))
        assert not accepts("list")
    else:
        low, high = BOUNDS[name]
        step = 1 if "integer" in schema["type"] else 0.001
        assert f"From {low} to {high}." in FIELDS[name]["description"]
        assert not {"minimum", "maximum"} & set(schema), "Airflow's form would move a value into them without a word"
        assert [accepts(value) for value in (low - step, low, high, high + step)] == [False, True, True, False]
        assert accepts(low + 0.5) is ("number" in schema["type"])
