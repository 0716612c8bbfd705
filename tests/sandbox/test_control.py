"""What the page of the sandbox shows, and its database file."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.sandbox.server import SandboxServer
from tests.audit import effects

ORGANIZATION = f"/api/organizations/{SEED.organization_id}/"
DASHBOARD = f"/api/environments/{SEED.project_id}/dashboards/{SEED.dashboard_id}/"
PROJECTS = ORGANIZATION + "projects/"

one_profile = pytest.mark.parametrize("sandbox", ["live"], indirect=True)


@one_profile
def test_the_page_and_its_data_contain_no_secret(api: httpx.Client, sandbox: SandboxServer) -> None:
    secrets = {"sekret-webhook", "sekret-certificate"}
    wanted = {"name": "<b>Shop</b>", "slack_incoming_webhook": "sekret-webhook"}
    project = api.post(PROJECTS, json=wanted).json()
    wanted = {"domain": "acme.example.org", "saml_x509_cert": "sekret-certificate"}
    domain = api.post(ORGANIZATION + "domains/", json=wanted).json()
    api.patch(f"{ORGANIZATION}domains/{domain['id']}/", json={"saml_x509_cert": "sekret-certificate-2"})
    secrets |= {project["api_token"], project["live_events_token"]}
    secrets |= {api.get(DASHBOARD + "sharing/").json()["access_token"]}
    secrets |= {value for name, value in vars(type(SEED)).items() if name.endswith("_key")}
    page = api.get("/")
    data = api.get("/_sandbox/workspace")
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page.text)
    for secret in secrets:
        assert secret not in page.text + data.text + str(sandbox.audit())
    workspace = data.json()
    assert [row["name"] for row in workspace["projects"]["results"]] == ["<b>Shop</b>", "Default project"]
    assert (workspace["invites"]["pending"], workspace["invites"]["expired"]) == (1, 1)
    assert (workspace["members"]["count"], workspace["batch_exports"]["count"]) == (5, 3)
    assert [row["operation"] for row in workspace["effects"]["results"]][:2] == ["update_domain", "create_domain"]


def test_a_database_file_survives_a_restart(tmp_path: Path) -> None:
    database = str(tmp_path / "workspace.sqlite")
    headers = {"Authorization": f"Bearer {SEED.admin_key}"}
    with SandboxServer(database=database) as first:
        httpx.post(first.url + PROJECTS, headers=headers, json={"name": "Kept"}, trust_env=False)
        first.revoke_key(SEED.reader_key)
        then = first.advance_clock(-3600)
    with SandboxServer(database=database, profile="strict") as second:
        projects = httpx.get(second.url + PROJECTS, headers=headers, trust_env=False).json()["results"]
        assert [project["name"] for project in projects] == ["Default project", "Kept"]
        assert effects(second) == ["create_project"]
        reader = {"Authorization": f"Bearer {SEED.reader_key}"}
        assert httpx.get(second.url + PROJECTS, headers=reader, trust_env=False).status_code == 401
        assert then < second.advance_clock(0) < time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())


def test_a_database_of_another_version_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "workspace.sqlite")) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(ValueError, match="another version"):
        SandboxServer(database=str(tmp_path / "workspace.sqlite")).start()


@one_profile
def test_new_organizations_are_independent(
    api: httpx.Client, sandbox: SandboxServer, client_for: Callable[[str], httpx.Client]
) -> None:
    made = sandbox.add_organization("Example Shop")
    members = f"/api/organizations/{made['id']}/members/"
    sandbox.add_members(3, made["id"])
    own = client_for(made["key"])
    assert api.get(members).json()["count"] == own.get(members).json()["count"] == 4
    assert own.post(members.replace("members", f"batch_exports/{made['batch_exports'][0]}/pause")).status_code == 200
    assert client_for(SEED.onboarding_key).get(members).status_code == 403
    assert own.get(DASHBOARD).status_code == 403
