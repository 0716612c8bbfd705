"""URLs of resources for people."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.links import RESOURCE_PATHS, url_for
from tests.classes import TASKS

BASE = "https://host.example.com"
WEB = "https://app.example.com"
AIRFLOW = "https://airflow.example.com"
STATUS_PAGE = f"{AIRFLOW}/workspace-ui/"
KINDS = tuple(RESOURCE_PATHS)


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that returns the settings of a connection with this extra."""

    def read(**extra: Any) -> Any:
        connection = {"conn_type": "workspace", "host": BASE, "password": "key", "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_WORKSPACE_DEFAULT", json.dumps(connection))
        with WorkspaceHook() as hook:
            return hook.get_conn().settings

    return read


@pytest.mark.parametrize(
    ("web_url", "kind", "ids", "url"),
    [
        (WEB, "dashboard", {"dashboard_id": 7}, f"{WEB}/project/1/dashboard/7"),
        (WEB, "dashboard", {"dashboard_id": 7, "project_id": "a/b"}, f"{WEB}/project/a%2Fb/dashboard/7"),
        (WEB, "members", {"organization_id": None}, f"{WEB}/organization/o/members"),
        (None, "dashboard", {"dashboard_id": 7}, ""),
        (None, "batch_export", {"batch_export_id": "a b"}, f"{STATUS_PAGE}#a%20b"),
        (None, "batch_export", {}, ""),
        (None, "project", {}, ""),
        (None, "members", {}, ""),
        (None, "syncs", {"dag_id": "nightly", "task_id": "in.sync"}, f"{STATUS_PAGE}#nightly%20/%20in.sync"),
        (None, "reviews", {"dag_id": "q", "task_id": "r.decide", "group_id": "r"}, f"{STATUS_PAGE}#q%20/%20r"),
        (WEB, "dashboard", {}, ""),
    ],
)
def test_web_url_of_a_resource(
    settings: Any, monkeypatch: pytest.MonkeyPatch, web_url: Any, kind: str, ids: dict[str, object], url: str
) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", AIRFLOW)
    assert url_for(settings(organization_id="o", project_id="1", web_url=web_url), kind, ids) == url


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_web_url_and_none_an_api_url(
    settings: Any, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    ids = dict.fromkeys(("organization_id", "project_id", "dashboard_id", "batch_export_id", "domain_id"), "x")
    assert url_for(settings(web_url=WEB), kind, ids).startswith(f"{WEB}/")
    monkeypatch.setattr("airflow_provider_workspace.ui.plugin.WorkspacePlugin.external_views", [])
    assert url_for(settings(), kind, ids) == ""


@pytest.mark.parametrize("cls", [cls for cls in TASKS if hasattr(cls, "resource_kind")], ids=lambda cls: cls.__name__)
def test_the_kind_of_each_task_has_a_path(cls: type[Any]) -> None:
    """Without one its link is empty, and nothing says so."""
    assert cls.resource_kind in RESOURCE_PATHS, (
        f"{cls.__name__}: add {cls.resource_kind!r} to RESOURCE_PATHS in links.py"
    )


@pytest.mark.parametrize("cls", TASKS)
def test_the_link_of_a_task_has_a_short_key(cls: type[Any]) -> None:
    assert [link.xcom_key for link in cls.operator_extra_links] == ["_link"]
