"""The plugin with the status page: registration, files, security and import cost."""

from __future__ import annotations

import asyncio
import importlib
import json
import re
from hashlib import sha256
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from starlette.applications import Starlette
from starlette.routing import Mount

from airflow_provider_workspace.operators.sweep import WorkspaceSweepOperator
from airflow_provider_workspace.ui import plugin
from airflow_provider_workspace.version_compat import AirflowFailException
from tests import grant_notes
from tests.leases import PREFIX, SWEEP, lease
from tests.variables import install

if TYPE_CHECKING:
    import pytest

VENDORED = {
    "htm-3.1.1.js": "ab33dd3f38059b9be4d5f5350128eefb2356639c4e0bbe9d9e8b3ba75847e9e4",
    "preact-11.2.0.js": "bdcbd9abdf2c77c5c45326eab42191e949222d479d0d5f69467387a77040cb55",
}
STATIC = Path(plugin.__file__).with_name("static")
OWN = sorted(file for file in STATIC.rglob("*.*") if file.parent.name != "vendor")


def model() -> str:
    """Return what the modules of the model say."""
    return "\n".join(file.read_text(encoding="utf-8") for file in OWN if file.parent.name == "model")


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
    imported = {
        (file.parent / name).resolve().relative_to(STATIC.resolve()).as_posix()
        for file in OWN
        if file.suffix == ".js"
        for name in re.findall(r'^(?:import|export) .*from "(.+)";$', file.read_text(), re.MULTILINE)
    }
    assert {file.relative_to(STATIC).as_posix() for file in OWN if file.suffix == ".js"} - imported == {
        "page.js",
        "model/types.js",
    }, "each module is loaded by the page, or has types only"
    for name in imported:
        assert "javascript" in fetch(f"/{name}").headers["content-type"], name
    assert fetch("/plugin.py").status_code == fetch("/../plugin.py").status_code == 404


def test_the_page_loads_nothing_from_elsewhere() -> None:
    page = fetch("/")
    assert page.headers["content-security-policy"] == "default-src 'self'; frame-ancestors 'self'"
    assert page.headers["cache-control"] == "no-cache"
    assert re.findall(r"<script[^>]*>", page.text) == ['<script type="module" src="page.js">']
    assert not re.search(r"\son\w+=|style=", page.text)
    for file in OWN:
        assert "://" not in file.read_text().replace("http://www.w3.org/2000/svg", ""), file.name
        assert not re.search("(?i)innerHTML", file.read_text()), file.name


def test_the_renderer_is_the_released_one_and_loads_nothing() -> None:
    """Files of the packages preact and htm of the npm registry, unchanged, beside their licenses."""
    scripts = {file.name: file for file in (STATIC / "vendor").glob("*.js")}
    assert {name: sha256(file.read_bytes()).hexdigest() for name, file in scripts.items()} == VENDORED
    for name, file in scripts.items():
        assert (file.parent / f"{name.partition('-')[0]}-LICENSE.txt").is_file()
        assert f'from "../vendor/{name}"' in (STATIC / "page" / "elements.js").read_text()
        assert set(re.findall(r"\w+://[^/\"']+", file.read_text())) <= {"http://www.w3.org"}, (
            "names of XML, no addresses"
        )
        assert "javascript" in fetch(f"/vendor/{name}").headers["content-type"]


def texts(name: str) -> list[str]:
    """Return the texts of a list in the model."""
    (found,) = re.findall(rf"{name} = \[([^\]]*)\]", model())
    return re.findall(r'"(\w+)"', found)


def test_the_page_uses_the_keys_that_the_package_writes() -> None:
    assert f'LEASES = "{PREFIX}"' in model()
    assert f'SWEEP = "{SWEEP}"' in model()
    assert {*texts("LEASE_TEXTS"), "map_index"} == {*lease()}
    assert f'GRANTS = "{grant_notes.PREFIX}"' in model()


def missed_by_the_sweep() -> list[str]:
    """Return the fields for want of which the sweep cannot read a grant."""
    try:
        WorkspaceSweepOperator(task_id="sweep", kinds="grants").execute({})
    except AirflowFailException as error:
        return re.findall(r"field '(\w+)' is required", str(error))
    return []


def test_the_page_and_the_sweep_need_the_same_fields_of_a_grant(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = install(monkeypatch)
    key, text = grant_notes.variable(until="2999-01-01T00:00:00Z")
    note = json.loads(text)
    needed: list[str] = []
    for name in note:
        variables.values[key] = json.dumps({field: note[field] for field in note if field != name})
        needed += missed_by_the_sweep()
    assert sorted(needed) == sorted([*texts("GRANT_TEXTS"), "since", "until", "level"])


def test_the_page_names_existing_sensors_and_operators() -> None:
    from airflow_provider_workspace.operators import (
        access,
        access_review,
        catch_up,
        invites,
        members,
        organization,
        sweep,
    )
    from airflow_provider_workspace.sensors import workspace

    shown = (STATIC / "model" / "operators.js").read_text()
    sensors = {
        name
        for name, value in vars(workspace).items()
        if getattr(value, "__mro__", ())[1:2] == (workspace.WorkspaceSensor,)
    }
    assert sensors == set(re.findall(r"Workspace\w+Sensor\b", shown))
    operators = set(re.findall(r"Workspace\w+Operator\b", shown))
    assert operators
    modules = (access, access_review, catch_up, invites, members, organization, sweep)
    for name in operators:
        assert any(hasattr(module, name) for module in modules), name
