"""Where a person finds a resource."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_workspace.client.resource_urls import RESOURCE_PATHS
from airflow_provider_workspace.client.settings import Settings

BASE = "https://host.example.com"
WEB = "https://app.example.com"


@pytest.mark.parametrize(
    ("web_url", "kind", "ids", "address"),
    [
        (WEB, "dashboard", {"dashboard_id": 7}, f"{WEB}/project/1/dashboard/7"),
        (WEB, "dashboard", {"dashboard_id": 7, "project_id": "a/b"}, f"{WEB}/project/a%2Fb/dashboard/7"),
        (WEB, "members", {"organization_id": None}, f"{WEB}/organization/o/members"),
        (None, "dashboard", {"dashboard_id": 7}, f"{BASE}/api/environments/1/dashboards/7/"),
        (None, "dashboard", {}, ""),
        ({"dashboard": f"{WEB}/d/{{dashboard_id}}"}, "dashboard", {"dashboard_id": 7}, f"{WEB}/d/7"),
        ({"dashboard": f"{WEB}/d/{{dashboard_id}}"}, "project", {}, f"{BASE}/api/organizations/o/projects/1/"),
        ({"dashboard": f"{WEB}/d/{{nonsense}}"}, "dashboard", {"dashboard_id": 7}, ""),
        ({"dashboard": f"{WEB}/d/{{"}, "dashboard", {"dashboard_id": 7}, ""),
    ],
)
def test_resource_url(web_url: Any, kind: str, ids: dict[str, object], address: str) -> None:
    settings = Settings(BASE, "key", organization_id="o", project_id="1", web_url=web_url)
    assert settings.url_for(kind, ids) == address


@pytest.mark.parametrize("kind", RESOURCE_PATHS)
def test_every_kind_has_an_api_and_a_web_url(kind: str) -> None:
    ids = dict.fromkeys(("organization_id", "project_id", "dashboard_id", "batch_export_id", "domain_id"), "x")
    assert Settings(BASE, "key", web_url=WEB).url_for(kind, ids).startswith(f"{WEB}/")
    assert Settings(BASE, "key").url_for(kind, ids).startswith(f"{BASE}/api/")
