"""The plugin with the status page: registration, files, security and import cost."""

from __future__ import annotations

import asyncio
import importlib
import json
import re
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from starlette.applications import Starlette
from starlette.routing import Mount

from airflow_provider_workspace.ui import plugin
from tests.leases import PREFIX, SWEEP, lease

if TYPE_CHECKING:
    import pytest

STATIC = Path(plugin.__file__).with_name("static")


def fetch(path: str) -> httpx.Response:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(Starlette(routes=[Mount("/", plugin.StatusPage())]))
        async with httpx.AsyncClient(transport=transport, base_url="http://airflow") as client:
            return await client.get(path)

    return asyncio.run(ask())


def test_airflow_finds_the_plugin_by_its_entry_point() -> None:
    (found,) = [point for point in entry_points(group="airflow.plugins") if point.name == "workspace"]
    assert found.load() is plugin.WorkspacePlugin


def test_the_page_is_in_the_navigation() -> None:
    (view,) = plugin.WorkspacePlugin.external_views
    (app,) = plugin.WorkspacePlugin.fastapi_apps
    assert (view["destination"], view["category"]) == ("nav", "browse")
    assert f"/{view['href']}" == f"{app['url_prefix']}/"
    for icon in (view["icon"], view["icon_dark_mode"]):
        assert (STATIC / icon.rpartition("/")[2]).is_file()


def test_the_page_can_be_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__WORKSPACE__STATUS_PAGE", "False")
    try:
        off = importlib.reload(plugin).WorkspacePlugin
        assert (off.external_views, off.fastapi_apps) == ([], [])
    finally:
        monkeypatch.undo()
        importlib.reload(plugin)


def test_the_files_of_the_page_are_served() -> None:
    page = fetch("/")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    for name in re.findall(r'(?:src|href)="([^"]+)"', page.text):
        assert fetch(f"/{name}").status_code == 200, name
    assert fetch("/plugin.py").status_code == fetch("/../plugin.py").status_code == 404


def test_the_page_loads_nothing_from_elsewhere() -> None:
    page = fetch("/")
    assert page.headers["content-security-policy"] == "default-src 'self'; frame-ancestors 'self'"
    assert page.headers["cache-control"] == "no-cache"
    assert re.findall(r"<script[^>]*>", page.text) == ['<script type="module" src="page.js">']
    assert not re.search(r"\son\w+=|style=", page.text)
    for file in STATIC.iterdir():
        assert "://" not in file.read_text().replace("http://www.w3.org/2000/svg", ""), file.name
        assert "innerHTML" not in file.read_text()


def test_the_page_uses_the_keys_that_the_package_writes() -> None:
    model = (STATIC / "model.js").read_text()
    assert f'LEASES = "{PREFIX}"' in model
    assert f'SWEEP = "{SWEEP}"' in model
    (required,) = re.findall(r"REQUIRED = (\[.*\])", model)
    assert {*json.loads(required), "map_index", "state"} == {*lease()}


def test_the_page_names_existing_sensors_and_operators() -> None:
    from airflow_provider_workspace.operators import dashboards, invites, members, organization, window_closing
    from airflow_provider_workspace.sensors import workspace

    model = (STATIC / "model.js").read_text()
    sensors = {
        name
        for name, value in vars(workspace).items()
        if getattr(value, "__mro__", ())[1:2] == (workspace.WorkspaceSensor,)
    }
    assert sensors == set(re.findall(r"Workspace\w+Sensor", model))
    operators = set(re.findall(r"Workspace\w+Operator", model))
    assert operators
    modules = (dashboards, invites, members, organization, window_closing)
    for name in operators:
        assert any(hasattr(module, name) for module in modules), name
