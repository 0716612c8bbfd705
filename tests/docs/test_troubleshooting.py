"""Messages on the page about troubleshooting."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from airflow.exceptions import AirflowNotFoundException

from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.sandbox.seed import SEED

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
QUOTES = [quote for cell in re.findall(r"^\| (`.*?) \| ", PAGE, re.MULTILINE) for quote in re.findall(r"`(.*?)`", cell)]
# Messages of Airflow, Python and OpenSSL.
OF_OTHERS = {
    "The conn_id … isn't defined",
    "certificate verify failed",
    "wrong version number",
    "No module named 'airflow_provider_workspace'",
}
Cause = Callable[[WorkspaceHook], Any]
list_projects: Cause = lambda hook: list(hook.list_projects())  # noqa: E731
# A wrong connection, and a call that fails; {url} is the sandbox.
FIRST: dict[str, tuple[dict[str, Any], Cause]] = {
    "wrong key": ({"password": "another-key"}, list_projects),
    "no key": ({"password": ""}, list_projects),
    "nobody listens": ({"host": "http://127.0.0.1:1"}, list_projects),
    "no TLS there": ({"host": "https://{host}"}, list_projects),
    "http": ({"host": "http://workspace.example.com"}, list_projects),
    "no host": ({"host": ""}, list_projects),
    "another type": ({"conn_type": "ssh"}, list_projects),
    "unknown key of the extra": ({"extra": {"organisation": 1}}, list_projects),
    "no organization": ({"extra": {}}, list_projects),
    "another organization": ({"extra": {"organization_id": SEED.other_organization_id}}, list_projects),
    "unknown organization": ({"extra": {"organization_id": SEED.organization_id[:-1] + "f"}}, list_projects),
    "no scope": ({"password": SEED.reader_key}, lambda hook: hook.create_project(name="Northwind")),
    "slow": ({"extra": {"organization_id": SEED.organization_id, "read_timeout": 0.05}}, list_projects),
    "verify by a key": ({}, lambda hook: hook.verify_domain(domain_id=SEED.domain_id)),
}


def source_texts() -> str:
    """Return all string literals of the package; adjacent ones are joined."""
    files = (ROOT / "airflow_provider_workspace").rglob("*.py")
    nodes = (node for file in files for node in ast.walk(ast.parse(file.read_text())))
    return "\n".join(node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


def failure(server: SandboxServer, monkeypatch: pytest.MonkeyPatch, case: str) -> str:
    """Return the message of a failing call."""
    change, call = FIRST[case]
    connection = json.loads(server.connection()) | change
    connection["host"] = connection["host"].format(host=server.url.removeprefix("http://"))
    connection["extra"] = {"max_attempts": 1, **connection["extra"]}
    monkeypatch.setenv("AIRFLOW_CONN_WORKSPACE_DEFAULT", json.dumps(connection))
    server.change_settings(latency_ms=500 if case == "slow" else 0)
    try:
        with pytest.raises((WorkspaceError, AirflowNotFoundException)) as failed:
            call(WorkspaceHook())
    finally:
        server.change_settings(latency_ms=0)
    return str(failed.value)


def is_quoted(message: str) -> list[str]:
    patterns = {quote: ".*".join(re.escape(part.strip()) for part in quote.split("…")) for quote in QUOTES}
    return [quote for quote, pattern in patterns.items() if re.search(pattern, message)]


@pytest.mark.parametrize("sandbox", ["live"], indirect=True)
@pytest.mark.parametrize("case", FIRST)
def test_common_first_errors_are_documented(sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    message = failure(sandbox, monkeypatch, case)
    assert is_quoted(message), f"write a row for: {message}"


def test_quoted_messages_exist_in_the_code() -> None:
    texts = source_texts()
    # A message with a value in the middle is no single literal; the cases above cover these.
    said = {"No organization_id", "No project_id", "Raise read_timeout", "returned 401"}
    pieces = [part.strip() for quote in QUOTES if quote not in OF_OTHERS for part in quote.split("…")]
    assert len(pieces) > 30
    assert [piece for piece in pieces if piece not in texts and piece not in said] == []
