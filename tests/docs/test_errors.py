"""Problems and messages on the page about errors."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from airflow.exceptions import AirflowNotFoundException

from airflow_provider_workspace.errors import PROBLEMS, WorkspaceError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.sandbox.seed import SEED

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "errors.md").read_text()
# A problem begins with its quotes; the table has those of others.
SECTIONS = dict(re.findall(r"^### ([a-z-]+)$(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
CELLS = re.findall(r"^\| (`.*?) \| ", PAGE.partition("## Classes")[0], re.MULTILINE)
# Messages of Airflow, Python and OpenSSL.
OF_OTHERS = {"The conn_id … isn't defined", "No module named 'airflow_provider_workspace'"}
Cause = Callable[[WorkspaceHook], Any]
list_projects: Cause = lambda hook: list(hook.list_projects())  # noqa: E731
# The problem, or none where the message says its cure; a wrong connection, and a call that fails.
FIRST: dict[str, tuple[str, dict[str, Any], Cause]] = {
    "wrong key": ("api-key-refused", {"password": "another-key"}, list_projects),
    "no key": ("", {"password": ""}, list_projects),
    "nobody listens": ("not-reached", {"host": "http://127.0.0.1:1"}, list_projects),
    "no TLS there": ("tls-failed", {"host": "https://{host}"}, list_projects),
    "http": ("", {"host": "http://workspace.example.com"}, list_projects),
    "no host": ("", {"host": ""}, list_projects),
    "another type": ("", {"conn_type": "ssh"}, list_projects),
    "unknown key of the extra": ("", {"extra": {"organisation": 1}}, list_projects),
    "no organization": ("no-default-id", {"extra": {}}, list_projects),
    "another organization": (
        "no-access-to-organization",
        {"extra": {"organization_id": SEED.other_organization_id}},
        list_projects,
    ),
    "unknown organization": (
        "not-found",
        {"extra": {"organization_id": SEED.organization_id[:-1] + "f"}},
        list_projects,
    ),
    "no scope": ("scope-missing", {"password": SEED.reader_key}, lambda hook: hook.create_project(name="Northwind")),
    "slow": ("no-answer", {"extra": {"organization_id": SEED.organization_id, "read_timeout": 0.05}}, list_projects),
    "verify by a key": ("key-kind-refused", {}, lambda hook: hook.verify_domain(domain_id=SEED.domain_id)),
}


def failure(server: SandboxServer, monkeypatch: pytest.MonkeyPatch, case: str) -> str:
    """Return the message of a failing call."""
    _, change, call = FIRST[case]
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


def pieces(quote: str) -> list[str]:
    """Return the parts of a quote between the values."""
    return [part.strip() for part in quote.split("…") if part.strip()]


@pytest.mark.parametrize("sandbox", ["live"], indirect=True)
@pytest.mark.parametrize("case", FIRST)
def test_common_first_errors_name_their_problem(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    message, problem = failure(sandbox, monkeypatch, case), FIRST[case][0]
    assert message.startswith(f"[{problem}] ") if problem else not message.startswith("[")
    quotes = re.findall(r"`(.*?)`", SECTIONS.get(problem, "").partition(". ")[0])
    assert not problem or any(re.search(".*".join(map(re.escape, pieces(quote))), message) for quote in quotes)


def test_each_problem_has_a_section_and_each_section_an_error() -> None:
    files = [file for file in (ROOT / "airflow_provider_workspace").rglob("*.py") if "sandbox" not in file.parts]
    source = "\n".join(file.read_text() for file in files)
    before = r'(?:(?:problem"?(?:: str)?|otherwise)(?: =|=|:) ?|_problem\(\w+, |", |\), |False, |Error, )'
    after = r"[)}]*(?: if| from| for|,?$)"
    assert set(re.findall(rf'{before}"([a-z]+(?:-[a-z]+)+)"{after}', source, re.MULTILINE)) == SECTIONS.keys()
    assert SECTIONS.keys() == PROBLEMS
    assert len(SECTIONS) > 40


def test_quoted_messages_exist_in_the_code() -> None:
    trees = [ast.parse(file.read_text()) for file in (ROOT / "airflow_provider_workspace").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    texts = "\n".join(node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    firsts = [re.match(r"(?:\s*<!--.*?-->)?\s*((?:`[^`]*`(?:, )?)+)\. ", text, re.DOTALL) for text in SECTIONS.values()]
    assert all(firsts)
    quotes = [
        quote for cell in [*(first[1] for first in firsts if first), *CELLS] for quote in re.findall(r"`(.*?)`", cell)
    ]
    parts = [part for quote in quotes if quote not in OF_OTHERS for part in pieces(quote)]
    assert len(parts) > 50
    assert [part for part in parts if part not in texts] == []
