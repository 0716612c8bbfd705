"""
Rosters and reports in S3, with the server of moto and Airflow's Amazon provider.

`make e2e-s3` runs this in an environment with both.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.errors import WorkspaceStorageError
from airflow_provider_workspace.operators.access_review import WorkspaceReadPopulationOperator
from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.e2e.services import free_port, wait_for_port

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

s3fs = pytest.importorskip("s3fs", reason="`make e2e-s3` runs this, in an environment that has s3fs and moto")

pytestmark = [
    pytest.mark.e2e,
    # Warnings of third-party libraries and Airflow.
    pytest.mark.filterwarnings("default"),
    pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner"),
]


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    """Start a store and return its URL."""
    port = free_port()
    server = subprocess.Popen(
        [Path(sys.executable).with_name("moto_server"), "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for_port(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


class Refusal(BaseHTTPRequestHandler):
    """Refuses every request; RawServer reads only bodies of JSON."""

    def do_GET(self) -> None:
        self.send_error(403)

    do_HEAD = do_PUT = do_GET  # noqa: N815 - names of http.server


@pytest.fixture(scope="module")
def refusing() -> Iterator[str]:
    """Return the URL of a store that refuses; one for all tests, because Airflow keeps the client of a store."""
    with HTTPServer(("127.0.0.1", 0), Refusal) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(autouse=True)
def _connection(connect: Connect) -> None:
    connect()


def invite(**arguments: Any) -> Any:
    return WorkspaceCreateInvitesOperator(task_id="invite", **arguments).execute({})


def connection(url: str) -> str:
    extra = {"endpoint_url": url, "region_name": "us-east-1"}
    return json.dumps({"conn_type": "aws", "login": "testing", "password": "testing", "extra": extra})


@pytest.fixture
def bucket(store: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a client of the store after creating a bucket."""
    monkeypatch.setenv("AIRFLOW_CONN_STORE", connection(store))
    files = s3fs.S3FileSystem(key="testing", secret="testing", client_kwargs={"endpoint_url": store})
    if not files.exists("bucket"):
        files.mkdir("bucket")
    return files


def test_invites_from_s3_write_the_report_to_s3(bucket: Any, sandbox: SandboxServer) -> None:
    bucket.pipe("bucket/team.csv", b"email\nada@example.com\nmina.member@example.com\n")
    result = invite(path="s3://store@bucket/team.csv", report_path="s3://store@bucket/reports/2026/report.json")
    assert result["report_path"] == "s3://store@bucket/reports/2026/report.json"
    report = json.loads(bucket.cat("bucket/reports/2026/report.json"))
    assert [row["status"] for row in report["addresses"]] == ["invited", "member"]
    assert len(sandbox.effects("create_invite")) == 1


@pytest.mark.usefixtures("sandbox")
def test_the_evidence_of_a_review_in_s3_is_never_overwritten(bucket: Any) -> None:
    review: dict[str, Any] = {"evidence": "s3://store@bucket/reviews", "reviewers": ["ruth"], "review_timeout": 60}
    read = WorkspaceReadPopulationOperator(task_id="read_population", **review)
    folder = read.execute({})["folder"].removeprefix("s3://store@")
    population = bucket.cat(f"{folder}/population.json")
    read.execute({})
    assert bucket.cat(f"{folder}/population.json") == population
    bucket.pipe(f"{folder}/population.csv", b"another hand")
    with pytest.raises(AirflowFailException, match=r"^\[file-exists\] .*population\.csv"):
        read.execute({})
    assert bucket.cat(f"{folder}/population.csv") == b"another hand"


MISSING = r"There is no bucket or folder for the file"
DENIED = "Permission denied: 's3://poor@bucket/{}' cannot be "


@pytest.mark.usefixtures("bucket")
@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        ({"path": "s3://store@bucket/none.csv"}, AirflowFailException, "There is no file 's3://store@bucket/none.csv'"),
        ({"path": "s3://store@none/team.csv"}, AirflowFailException, "There is no file 's3://store@none/team.csv'"),
        ({"path": "s3://poor@bucket/team.csv"}, AirflowFailException, DENIED.format("team.csv")),
        ({"report_path": "s3://poor@bucket/report.csv"}, AirflowFailException, DENIED.format("report.csv")),
        ({"report_path": "s3://store@none/report.csv"}, AirflowFailException, MISSING),
        ({"path": "s3://down@bucket/team.csv"}, WorkspaceStorageError, "The object store failed: 's3://down@bucket/"),
    ],
)
def test_what_the_store_refuses_is_an_error_before_anything_is_sent(
    sandbox: SandboxServer,
    refusing: str,
    monkeypatch: pytest.MonkeyPatch,
    arguments: dict[str, str],
    kind: type[Exception],
    says: str,
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_POOR", connection(refusing))
    monkeypatch.setenv("AIRFLOW_CONN_DOWN", connection("http://127.0.0.1:9"))
    with pytest.raises(kind, match=re.escape(says)):
        invite(**({"invites": ["ada@example.com"]} if "report_path" in arguments else {}), **arguments)
    assert sandbox.requests() == []
