"""Runs a Dag with known secrets and errors of all kinds, then searches logs, XComs and the database for them."""

from __future__ import annotations

import base64
import json
import os
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.sandbox.server import SandboxServer
from tests.fault_kinds import TEST_FAULTS
from tests.raw_server import RawServer, answer

pytestmark = pytest.mark.slow

DAGS = Path(__file__).parent / "dags"
AIRFLOW = Path(sys.executable).with_name("airflow")
KEY = "canary-key-5f0d2c77"
REVOKED = "canary-revoked-81bb04ce"
PROXY = "canary-proxy-29d17a0f"
API_TOKEN = "canary-api-token-6b1e55d3"
LIVE_TOKEN = "canary-live-token-0c9f4471"
HOOK_OF_PROJECT = "https://hooks.example.com/canary-8d30e6a2"
NESTED = "canary-nested-52ce07d1"
HMAC = "canary-hmac-e8a1b6f3"
URL_PASSWORD = "canary-url-password-3f9d4410"
URL_TOKEN = "canary-url-token-a07b61c8"
WEBHOOK = "https://hooks.example.com/canary-b7724c19"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nCANARYe4c19a70\nCANARY5bd2f308\n-----END CERTIFICATE-----"

SECRETS = {
    "key": KEY,
    "revoked key": REVOKED,
    "password of the proxy": PROXY,
    "api_token": API_TOKEN,
    "live_events_token": LIVE_TOKEN,
    "slack_incoming_webhook": HOOK_OF_PROJECT,
    "nested in a free-form field": NESTED,
    "nested under an unknown name": HMAC,
    "password in a URL": URL_PASSWORD,
    "token in a URL": URL_TOKEN,
    "webhook that is sent": WEBHOOK,
    "certificate that is sent": CERTIFICATE,
}


def connection(host: str, password: str = KEY, **extra: Any) -> str:
    defaults = {"organization_id": SEED.organization_id, "project_id": SEED.project_id, "max_attempts": 2}
    return json.dumps(
        {
            "conn_type": "workspace",
            "host": host,
            "password": password,
            "extra": {**defaults, "max_retry_wait": 0.1, **extra},
        }
    )


def environment(home: Path, service: str, echo: str) -> dict[str, str]:
    """Return the environment of Airflow: its settings, and the connections and Variables of the Dag."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW_")}
    return {
        **inherited,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        # At DEBUG, Airflow logs the secrets that it is asked to mask.
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "INFO",
        "AIRFLOW_VAR_CANARY_CERTIFICATE": CERTIFICATE,
        "AIRFLOW_VAR_CANARY_WEBHOOK": WEBHOOK,
        "AIRFLOW_CONN_WORKSPACE_DEFAULT": connection(service),
        "AIRFLOW_CONN_WORKSPACE_REVOKED": connection(service, REVOKED),
        "AIRFLOW_CONN_WORKSPACE_ECHO": connection(echo),
        "AIRFLOW_CONN_WORKSPACE_PROXY": connection(service, proxy=f"http://user:{PROXY}@127.0.0.1:9"),
        "AIRFLOW_CONN_WORKSPACE_BROKEN": connection(f"https://user:{PROXY}@example.invalid"),
    }


def spellings(secret: str) -> Iterator[bytes]:
    """Return every encoding of a secret."""
    for form in (secret, json.dumps(secret)[1:-1], repr(secret)[1:-1], quote(secret), quote(secret, safe="")):
        yield form.encode()
    yield base64.b64encode(secret.encode()).rstrip(b"=")
    yield from (line.encode() for line in secret.splitlines() if "CANARY" in line)


def found_in(content: bytes, secrets: dict[str, str]) -> list[str]:
    return [name for name, secret in secrets.items() if any(form in content for form in spellings(secret))]


def test_assert_no_secret_can_fail() -> None:
    for text in (CERTIFICATE, json.dumps({"x": CERTIFICATE}), quote(WEBHOOK, safe=""), f"Basic {PROXY}"):
        assert found_in(text.encode(), {"c": CERTIFICATE, "w": WEBHOOK, "p": PROXY}) != []


def test_no_secret_is_stored_or_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        SandboxServer("strict", fault_kinds=TEST_FAULTS) as server,
        RawServer(answer(200, b"{}")) as other_host,
        RawServer(answer(200, b"{}")) as echo,
    ):
        server.add_key(KEY, "canary", ["*"])
        server.set_project(
            SEED.project_id, api_token=API_TOKEN, live_events_token=LIVE_TOKEN, slack_incoming_webhook=HOOK_OF_PROJECT,
            extra_settings={"scim_token": [NESTED], "sso": {"hmac_key": HMAC}},
            app_urls=[f"https://user:{URL_PASSWORD}@app.example.com/", f"https://app.example.com/?token={URL_TOKEN}"],
        )  # fmt: skip
        server.inject("redirect", "list_members", times=None, location=f"{other_host.url}/api/")
        server.inject("odd_next", "list_invites", times=None, origin=other_host.url)
        said = {"detail": f"Key {KEY} may not do this", "code": KEY, "attr": KEY}
        echo.scenes = [answer(400, said, Content_Type="application/json", X_Request_Id=KEY)]
        monkeypatch.setenv("AIRFLOW_CONN_WORKSPACE_DEFAULT", connection(server.url))
        with WorkspaceHook() as hook:
            sharing = hook.get_dashboard_sharing(dashboard_id=SEED.dashboard_id)
        secrets = {**SECRETS, "access_token": str(sharing.access_token)}
        env = environment(tmp_path / "airflow", server.url, echo.url)
        migrated = subprocess.run([AIRFLOW, "db", "migrate"], env=env, capture_output=True, check=False)
        assert migrated.returncode == 0, migrated.stderr[-2000:]
        run = subprocess.run(
            [AIRFLOW, "dags", "test", "canaries"], env=env, capture_output=True, check=False, timeout=500
        )
        shown = run.stdout + run.stderr
        page = b"".join(
            urllib.request.urlopen(f"{server.url}/{path}", timeout=10).read()  # noqa: S310 - loopback
            for path in ("", "_sandbox/workspace")
        )
        page += json.dumps([server.effects(), server.faults()]).encode()

    home = tmp_path / "airflow"
    states = task_states(home / "airflow.db")
    (tmp_path / "shown").write_bytes(shown)
    places = {"output": shown, "page of the sandbox": page, "other host": repr(other_host.requests).encode()}
    places |= {str(file): file.read_bytes() for file in home.rglob("*") if file.is_file()}
    found = {place: found_in(content, secrets) for place, content in places.items()}
    assert {place: names for place, names in found.items() if names} == {}
    assert other_host.requests == []
    megabytes = sum(map(len, places.values())) / 1e6
    print(
        f"\n{len(secrets)} secrets, {len(states)} tasks, {len(places)} places, {megabytes:.1f} MB searched: none found"
    )

    # Everything happened; otherwise there would be nothing to find.
    good = {"project", "projects", "sharing", "certificate", "certificates", "domains", "webhook", "paged", "prints"}
    assert {task for task, state in states.items() if state == "success"} == good, states
    assert len(states) == len(good) + 1 + 4 * 4 + 1 + 1
    assert KEY in repr(echo.requests)
    assert rendered(home / "airflow.db", "certificate")["saml_x509_cert"] == "***"
    assert "***" in json.dumps(rendered(home / "airflow.db", "webhook")["settings"])


def task_states(database: Path) -> dict[str, str]:
    with sqlite3.connect(database) as db:
        return dict(db.execute("SELECT task_id, state FROM task_instance"))


def rendered(database: Path, task_id: str) -> dict[str, Any]:
    with sqlite3.connect(database) as db:
        (text,) = db.execute(
            "SELECT r.rendered_fields FROM rendered_task_instance_fields r "
            "JOIN task_instance t ON t.id = r.ti_id WHERE t.task_id = ?"
            if "ti_id" in [row[1] for row in db.execute("PRAGMA table_info(rendered_task_instance_fields)")]
            else "SELECT rendered_fields FROM rendered_task_instance_fields WHERE task_id = ?",
            [task_id],
        ).fetchone()
    fields: dict[str, Any] = json.loads(text)
    return fields
