"""The sandbox in a browser: markup in records. ``tests/sandbox/test_web.py`` asks as a page would."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from airflow_provider_workspace.sandbox.server import SandboxServer
from tests.e2e.chromium import Browser, needs_chromium

pytestmark = [pytest.mark.e2e, needs_chromium]

MARKUP = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script><b id='put'>"


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
