"""The sandbox in a browser: DNS rebinding and markup in records. ``tests/sandbox/test_web.py`` asks as a page would."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_workspace.sandbox.server import SandboxServer
from tests.e2e.chromium import Browser, needs_chromium

pytestmark = [pytest.mark.e2e, needs_chromium]

# A name of somebody else, which by now resolves to this machine.
REBOUND = "rebound.example.com"
BROWSER_ARGUMENTS = (f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1",)
MARKUP = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script><b id='put'>"
ASK = """
const [url, options, done] = arguments;
fetch(url, options).then(answer => answer.text().then(text => done([answer.type, answer.status, text])))
                   .catch(error => done(["error", 0, String(error)]));
"""


@pytest.fixture
def kept(server: SandboxServer) -> Iterator[None]:
    """Inject a fault that a reset would remove, and check that it still exists afterwards."""
    fault = server.inject("reset_before", "verify_domain")
    yield
    assert server.faults() == [fault]
    assert server.audit() == []


def ask(browser: Browser, url: str, **options: Any) -> tuple[str, int, str]:
    """Send a request from the open page."""
    kind, status, text = browser.driver.execute_async_script(ASK, url, options)
    return kind, status, text


@pytest.mark.usefixtures("kept")
def test_dns_rebinding_is_refused(browser: Browser, server: SandboxServer) -> None:
    browser.open(f"http://{REBOUND}:{server.port}/")
    browser.read(f"The sandbox is not known as '{REBOUND}:{server.port}'.")
    # For the browser, the page and the sandbox now have the same origin.
    for method, path in (("GET", "/_sandbox/workspace"), ("POST", "/_sandbox/reset"), ("DELETE", "/_sandbox/faults")):
        kind, status, text = ask(browser, path, method=method)
        assert (kind, status) == ("basic", 403)
        assert "Olive" not in text


def test_markup_in_records_is_escaped(browser: Browser, tmp_path: Path) -> None:
    database = tmp_path / "workspace.sqlite"
    with SandboxServer(database=str(database)):
        pass
    connection = sqlite3.connect(database)
    named = json.dumps(MARKUP)
    for table, fields in {
        "domains": ("id", "domain", "verification_challenge", "verified_at"),
        "projects": ("id", "name", "timezone"),
        "dashboards": ("name",),
        "invites": ("id", "target_email", "level", "created_at"),
        "members": ("level", "last_login", "user.email", "user.first_name"),
    }.items():
        for field in fields:
            sql = f"UPDATE {table} SET record = json_set(record, '$.{field}', json(?))"  # noqa: S608
            connection.execute(sql, (named,))
    connection.execute("UPDATE domains SET record = json_set(record, '$.is_verified', json('false'))")
    connection.execute("UPDATE organizations SET name = ?", (MARKUP,))
    connection.execute("UPDATE batch_exports SET name = ?, model = ?", (MARKUP, MARKUP))
    values = (MARKUP, "0190c0de-0000-4000-8000-000000000001", MARKUP, MARKUP, json.dumps({"name": MARKUP}))
    connection.execute(
        "INSERT INTO audit (at, operation, organization_id, target, key_name, detail) VALUES (?, 'create', ?, ?, ?, ?)",
        values,
    )
    connection.commit()
    connection.close()
    with SandboxServer(database=str(database)) as server:
        browser.open(server.url)
        shown = browser.read("<img src=x", "What was changed", selector="main")
        assert shown.count(MARKUP) >= 15
        assert browser.driver.title == "Workspace sandbox"
        elements = browser.driver.execute_script(
            "return document.querySelectorAll('main img, main script, #put').length"
        )
        assert elements == 0
        assert browser.driver.execute_script("return document.querySelectorAll('script').length") == 1
