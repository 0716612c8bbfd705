"""The command ``airflow workspace ping --schema``: where the document comes from, what it prints, how it exits."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.cli.definition import get_workspace_commands
from tests.raw_server import RawServer, Scene, answer, redirect

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

ROOT = Path(__file__).resolve().parents[3]
COMPLETE = ROOT / "example_dags" / "data" / "openapi.yaml"
SERVICE = ROOT / "tests" / "data" / "service.yaml"
COMMANDS = {command.name: command for command in get_workspace_commands()[0].subcommands}
OWN = "tests.endpoints.ListBatchExports"


def ping(*arguments: object) -> Any:
    """Run the command in this process; return its exit code."""
    parser = ArgumentParser()
    for arg in COMMANDS["ping"].args:
        arg.add_to_parser(parser)
    try:
        COMMANDS["ping"].func(parser.parse_args([str(argument) for argument in arguments]))
    except SystemExit as end:
        return end.code
    return 0


@pytest.fixture(autouse=True)
def _connection(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    connect()
    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")


def test_the_exit_status_is_0_only_if_nothing_breaks(sandbox: SandboxServer, capfd: pytest.CaptureFixture[str]) -> None:
    assert ping("--schema", COMPLETE) == 0
    first, *lines, summary = capfd.readouterr().out.splitlines()
    assert first.startswith(f"The service at {sandbox.url} accepts the API key (")
    assert len(lines) == 27
    assert summary == "27 operations: 27 there."
    assert ping("--schema", COMPLETE, "--operation", OWN) == 2
    assert f"gone: {OWN} (GET /api/organizations/{{organization_id}}/batch_exports/)" in capfd.readouterr().out
    assert ping("--schema", SERVICE) == 2
    lines = capfd.readouterr().out.splitlines()
    assert lines[1].startswith("gone: ")
    assert lines[-2].startswith("there: ")
    assert {entry["method"] for entry in sandbox.requests()} == {"GET"}


def test_json_has_each_operation(capfd: pytest.CaptureFixture[str]) -> None:
    assert ping("--schema", SERVICE, "-o", "json") == 2
    found = json.loads(capfd.readouterr().out)
    assert found["breaks"] is True
    (moved,) = [row for row in found["operations"] if row["operation"] == "PauseBatchExport"]
    assert (moved["state"], moved["successor"]) == ("moved", "/api/projects/{id}/batch_exports/{pk}/pause/")
    assert ping("-o", "json") == 0
    assert list(json.loads(capfd.readouterr().out)) == ["connection", "moves"]


def test_moved_and_deprecated_operations_are_listed(
    sandbox: SandboxServer, connect: Connect, capfd: pytest.CaptureFixture[str]
) -> None:
    path = "/api/projects/{project_id}/batch_exports/{batch_export_id}/pause/"
    members = "/api/v2/organizations/{organization_id}/members/"
    sandbox.move("pause_batch_export", path)
    sandbox.move("list_members", members, how="deprecated", sunset="2027-06-30")
    connect(paths={"PauseBatchExport": path})
    successor = members.format(organization_id=sandbox.seed.organization_id)
    lines = [
        f"Path of PauseBatchExport: {path} (set in the extra).",
        f"ListMembers is deprecated and ends on 2027-06-30; its successor is {successor}.",
    ]
    assert ping() == 0
    assert capfd.readouterr().out.splitlines()[1:] == lines
    assert ping("-o", "json") == 0
    assert json.loads(capfd.readouterr().out)["moves"] == lines


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--operation", OWN], "Add --schema"),
        (["--schema", "/nowhere.json"], "There is no file"),
        (["--schema", ROOT / "pyproject.toml"], "Pass an OpenAPI 3 document"),
        (["--schema", "https://exa mple.com/"], "is not a valid URL of a document. Correct it"),
        (["--schema", COMPLETE, "--operation", "nowhere.List"], "--operation: 'nowhere.List' cannot be imported here"),
    ],
)
def test_what_cannot_be_read_is_an_error(arguments: list[object], message: str) -> None:
    code = ping(*arguments)
    assert isinstance(code, str), "a text is exit status 1"
    assert message in code


def test_the_key_is_never_sent_to_another_origin(sandbox: SandboxServer, capfd: pytest.CaptureFixture[str]) -> None:
    with RawServer(answer(200, COMPLETE.read_bytes(), packed=True)) as server:
        assert ping("--schema", f"{server.url}/openapi.yaml?access_token=t0psecret") == 0
    assert capfd.readouterr().out.endswith("27 operations: 27 there.\n")
    (request,) = server.requests
    assert (request.method, request.target) == ("GET", "/openapi.yaml?access_token=t0psecret")
    assert "authorization" not in {name.lower() for name in request.headers}
    assert sandbox.seed.admin_key not in repr(request)


def test_the_key_is_sent_to_the_origin_of_the_connection(sandbox: SandboxServer) -> None:
    code = ping("--schema", f"{sandbox.url}/api/schema/")
    assert f"{sandbox.url}/api/schema/ returned 404. Check the URL of the document, or save it to a file" in code
    (request,) = [entry for entry in sandbox.requests() if entry["path"] == "/api/schema/"]
    assert request["status"] == 404, "401 without a key"


@pytest.mark.parametrize(
    ("scene", "message"),
    [
        (redirect("{url}/elsewhere"), "returned 302"),
        (answer(503), "returned 503: the service or a proxy failed"),
        (answer(429), "returned 429"),
        (answer(200, b"\xff\xfe"), "is not in UTF-8: byte 0 is invalid"),
        (answer(200, b"x" * 200_000), "returned more than 100,000 bytes"),
    ],
)
def test_a_document_that_does_not_come_is_an_error(connect: Connect, scene: Scene, message: str) -> None:
    connect(max_response_bytes=100_000)
    with RawServer(scene) as server:
        code = ping("--schema", f"{server.url}/openapi.json?access_token=t0psecret")
    assert message in code
    assert "t0psecret" not in code
    assert len(server.requests) == 1
