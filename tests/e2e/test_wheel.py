"""The wheel: reproducible builds, contents, and use in a new environment."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from airflow_provider_workspace.sandbox.server import SandboxServer
from tests.audit import effects
from tests.dags.examples import ONBOARDED
from tests.dags.human import approving
from tests.e2e.services import free_port

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guides" / "organization-file.md"
# Guides whose code needs a file, a provider or a person besides; each has tests of its own, or an example Dag.
OTHERS = {"approve", "organization-file", "endpoints", "warehouse"}
UV = Path(sys.executable).with_name("uv")
EXAMPLES = sorted((ROOT / "example_dags").glob("*.py"))
EVERY_MODULE = """
import importlib, pkgutil, airflow_provider_workspace as package
for module in pkgutil.walk_packages(package.__path__, "airflow_provider_workspace."):
    # Of the others one needs pytest, which belongs to those who use it.
    if ".example_dags" not in module.name and not module.name.endswith(".pytest_fixture"):
        print(importlib.import_module(module.name).__file__)
"""

RUN_DAGS = """
import sys
from airflow.dag_processing.dagbag import DagBag
for page in sys.argv[1:]:
    (dag,) = DagBag(page).dags.values()
    print(page, "ended:", dag.test().state, flush=True)
"""


def run(*command: str | Path, cwd: Path, timeout: float = 300, **env: str) -> str:
    """Run a program outside of the checkout, and return its output."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW_", "PYTHON", "VIRTUAL_ENV"))
    }
    done = subprocess.run(
        command, cwd=cwd, env={**environment, **env}, capture_output=True, text=True, check=False, timeout=timeout
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def build(into: Path) -> dict[str, Path]:
    command = (sys.executable, "-m", "build", "--no-isolation", "--outdir", into, ROOT)
    run(*command, cwd=into, SOURCE_DATE_EPOCH="1700000000")
    return {path.suffix: path for path in into.iterdir()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def away(built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a new environment that has the wheel and its dependencies."""
    folder = tmp_path_factory.mktemp("away")
    run(UV, "venv", "--no-project", "--python", sys.executable, folder / "venv", cwd=folder)
    install(folder, built[".whl"])
    return folder


def install(away: Path, *packages: str | Path) -> None:
    """uv does not read the configuration of pip; see the Makefile."""
    command = (sys.executable, "-m", "pip", "config", "get", "global.index-url")
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    index = os.environ.get("PIP_INDEX_URL") or asked.stdout.strip()
    options = ("--no-build", "--compile-bytecode", "--constraints", ROOT / "constraints" / "current.txt")
    python = away / "venv" / "bin" / "python"
    env = {"UV_DEFAULT_INDEX": index} if index else {}
    run(UV, "pip", "install", "--python", python, *options, *packages, cwd=away, timeout=600, **env)


def airflow(away: Path, *arguments: str) -> str:
    return run(
        away / "venv" / "bin" / "airflow",
        *arguments,
        cwd=away,
        AIRFLOW_HOME=str(away / "airflow"),
        AIRFLOW__CORE__LOAD_EXAMPLES="True",
    )


def connected(away: Path, home: str, dags: Path, server: SandboxServer) -> dict[str, str]:
    """Make a home with a database, and return its settings."""
    environment = {
        "AIRFLOW_HOME": str(away / home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW_CONN_WORKSPACE_DEFAULT": server.connection(consistency_time=2),
    }
    run(away / "venv" / "bin" / "airflow", "db", "migrate", cwd=away, **environment)
    return environment


@contextmanager
def people_and_dns(away: Path, server: SandboxServer, environment: dict[str, str]) -> Iterator[None]:
    """Publish DNS challenges, accept invites and approve actions in the background."""
    port = str(free_port())
    command = (away / "venv" / "bin" / "airflow", "api-server", "--port", port, "--workers", "1")
    admins = {"AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True"}
    over = threading.Event()
    with (
        (away / "api-server.log").open("w") as log,
        subprocess.Popen(command, cwd=away, env={**os.environ, **environment, **admins}, stdout=log, stderr=log) as api,
        approving(f"http://127.0.0.1:{port}/api/v2"),
    ):
        joining = threading.Thread(target=accept_invites, args=(server, over))
        for thread in (joining, threading.Thread(target=publish_challenges, args=(server,), daemon=True)):
            thread.start()
        try:
            yield
        finally:
            over.set()
            joining.join()
            api.terminate()


def accept_invites(server: SandboxServer, over: threading.Event) -> None:
    """Accept the invites that the guide on waiting needs."""
    joined = set()
    while not over.wait(0.2):
        for invite in server.effects("create_invite"):
            if invite["target"] in ("ada@example.com", "lin@example.com") and invite["target"] not in joined:
                server.accept_invite(invite["detail"]["invite_id"])
                joined.add(invite["target"])


def test_the_first_dags_of_readme_and_guides_succeed(away: Path, tmp_path: Path) -> None:
    """With only the wheel installed, and the sandbox profile live."""
    pages = []
    for page in (ROOT / "README.md", ROOT / "docs" / "quickstart.md", *sorted(GUIDE.parent.glob("*.md"))):
        code = re.search(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
        if code and "@dag(" in code.group(1) and page.stem not in OTHERS:
            pages.append(f"{page.stem}.py")
            (tmp_path / pages[-1]).write_text(code.group(1))
    team = "".join(f"person-{number}@example.com,Pat,1\n" for number in range(50))
    roster = (ROOT / "example_dags" / "data" / "members.csv").read_text()
    others = "".join(f"{name}@example.com,,1\n" for name in ("ada", "lin", "joe", "noah.newton"))
    shown = re.search(r"^```yaml\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    assert shown
    data = tmp_path / "data"
    data.mkdir()
    (data / "northwind.yaml").write_text(shown.group(1))
    (data / "northwind.csv").write_text(f"email,first_name,level\n{team}")
    (data / "members.csv").write_text(roster + team + others)  # with the people of the other guides
    with SandboxServer("live", rate_limit=False) as server:
        environment = connected(away, "first", tmp_path, server)
        with people_and_dns(away, server, environment):
            said = run(
                *(away / "venv" / "bin" / "python", "-c", RUN_DAGS, *pages), cwd=tmp_path, timeout=900, **environment
            )
    assert re.findall(r"^(\S+) ended: (\S+)$", said, re.MULTILINE) == [(page, "success") for page in pages]


def test_builds_are_reproducible_and_have_exactly_the_expected_files(built: dict[str, Path], tmp_path: Path) -> None:
    again = build(tmp_path)
    assert set(built) == set(again) == {".whl", ".gz"}
    for kind, path in built.items():
        assert path.name == again[kind].name
        assert hashlib.sha256(path.read_bytes()).digest() == hashlib.sha256(again[kind].read_bytes()).digest()
    run(sys.executable, "-m", "twine", "check", "--strict", *built.values(), cwd=tmp_path)
    with zipfile.ZipFile(built[".whl"]) as wheel:
        inside = {name for name in wheel.namelist() if ".dist-info/" not in name}
    tracked = run("git", "ls-files", "airflow_provider_workspace", "example_dags", cwd=ROOT).split()
    assert inside == {re.sub("^example_dags/", "airflow_provider_workspace/example_dags/", name) for name in tracked}
    assert "airflow_provider_workspace/py.typed" in inside


def test_every_module_can_be_imported(away: Path) -> None:
    files = run(away / "venv" / "bin" / "python", "-c", EVERY_MODULE, cwd=away).split()
    assert len(files) > 80
    assert all(file.startswith(str(away / "venv")) for file in files)


def test_airflow_offers_the_examples(away: Path) -> None:
    airflow(away, "db", "migrate")
    airflow(away, "dags", "reserialize", "--bundle-name", "airflow-provider-workspace-example-dags")
    # Warnings precede it.
    *_, last = airflow(away, "dags", "list", "--output", "json").splitlines()
    listed: list[dict[str, Any]] = json.loads(last)
    mine = {row["dag_id"] for row in listed if row["bundle_name"] == "airflow-provider-workspace-example-dags"}
    assert mine == {file.stem for file in EXAMPLES}


def test_the_guide_on_organization_files_works(away: Path) -> None:
    """The Dag and the file of the guide have at most 25 lines each."""
    dag = re.search(r"^```python\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    file = (ROOT / "example_dags/data/northwind.yaml").read_text()
    assert dag
    assert max(len(dag.group(1).splitlines()), len(file.splitlines())) <= 25
    data = away / "dags" / "data"
    data.mkdir(parents=True)
    (data.parent / "onboard.py").write_text(dag.group(1))
    (data / "northwind.yaml").write_text(file)
    people = "".join(f"person-{number}@northwind.example.com,Pat,1\n" for number in range(150))
    (data / "northwind.csv").write_text(f"email,first_name,level\n{people}")
    with SandboxServer("live", rate_limit=False) as server:
        environment = connected(away, "onboarding", data.parent, server)
        command = away / "venv" / "bin" / "airflow"
        dns = threading.Thread(target=publish_challenges, args=(server,), daemon=True)
        dns.start()
        run(command, "dags", "test", "onboard_northwind", cwd=away, **environment)
        assert Counter(effects(server)) == ONBOARDED
        planned = run(command, "workspace", "plan", data / "northwind.yaml", cwd=away, **environment)
        assert "0 to create, 0 to change, 0 to remove" in planned


def publish_challenges(server: SandboxServer) -> None:
    """Publish the challenge of the first created domain."""
    while not server.effects("create_domain"):
        time.sleep(0.05)
    url = f"{server.url}/api/organizations/{server.seed.organization_id}/domains/"
    domains = httpx.get(url, headers={"Authorization": f"Bearer {server.seed.admin_key}"}, trust_env=False).json()
    for domain in domains["results"]:
        server.publish_dns(f"_workspace-challenge.{domain['domain']}", domain["verification_challenge"])


def test_the_documented_project_passes_with_the_wheel_and_pytest(away: Path, tmp_path: Path) -> None:
    """It starts the sandbox, too."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "testing.md").read_text(), re.DOTALL)
    # The first line of a block is a comment with its file name.
    files = {code.partition("\n")[0].removeprefix("# "): code for code in blocks}
    assert list(files) == ["dags/new_team.py", "conftest.py", "tests/test_new_team.py"]
    for name, code in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(code)
    install(away, "pytest")
    command = (away / "venv" / "bin" / "python", "-m", "pytest", "-v", "--durations=30")
    out = run(*command, cwd=tmp_path, timeout=500, AIRFLOW_HOME=str(away / "tests"))
    print(out)
    tests = len(re.findall(r"^def test_", files["tests/test_new_team.py"], re.MULTILINE))
    assert f"{tests} passed" in out
