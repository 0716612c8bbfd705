"""Fixtures of all tests: an empty AIRFLOW_HOME, a sandbox and a connection to it."""

from __future__ import annotations

import gc
import json
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from _pytest.runner import runtestprotocol
from packaging.version import Version

from airflow_provider_workspace.client import waits
from airflow_provider_workspace.sandbox.server import SandboxServer
from tests.airflow_cli import AirflowCli
from tests.fault_kinds import TEST_FAULTS
from tests.matrix import mark_black_cells

if TYPE_CHECKING:
    from fsspec.implementations.memory import MemoryFileSystem

# Tools bring them along. The jsonschema of Airflow would import the first one, a second in each process, and httpx the
# second one.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
sys.modules["trio"] = None  # type: ignore[assignment]

# Airflow reads the environment when it is first imported, which no test module has done yet. Each worker of xdist is
# a process with its own home.
HOME = tempfile.TemporaryDirectory(prefix="airflow-home-")
for name in [name for name in os.environ if name.startswith("AIRFLOW_")]:
    del os.environ[name]
os.environ["AIRFLOW_HOME"] = HOME.name
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
# Without it, the first command in a new home encrypts Variables with a key that the next one does not have.
os.environ["AIRFLOW__CORE__FERNET_KEY"] = ""

# No deadlines, for busy machines. What passes here passes in CI: the examples are always the same. `make test-slow` has
# more of them, and `make test ARGS=--hypothesis-profile=explore` looks for others.
hypothesis.settings.register_profile("tests", deadline=None, derandomize=True, max_examples=25)
hypothesis.settings.register_profile("slow", deadline=None, derandomize=True, max_examples=200)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=200)
hypothesis.settings.load_profile("tests")


def pytest_configure(config: pytest.Config) -> None:
    config.add_cleanup(HOME.cleanup)


# Garbage collections of what is imported and collected find nothing, a quarter of the time that it takes.
gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_black_cells(items)


def pytest_collection_finish() -> None:
    """Take what is imported by now out of garbage collections, which otherwise walk through all of Airflow."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs_airflow"):
        release, what = mark.args
        # A pre-release counts as its release.
        if Version(Version(version("apache-airflow")).base_version) < Version(release):
            pytest.skip(f"{what}: since Airflow {release}")


# Files with a few commands of Airflow each. In one worker, they share its ``airflow_cli``, which starts in seconds.
WITH_AIRFLOW_CLI = (
    "tests/docs/test_blocks.py",
    "tests/unit/cli/",
    "tests/unit/hooks/test_hook.py",
    "tests/unit/hooks/test_network.py",
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give a worker whole files, and one of them those of ``WITH_AIRFLOW_CLI``."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "airflow_cli" if nodeid.startswith(WITH_AIRFLOW_CLI) else super()._split_scope(nodeid)

    return Scheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """In a worker of xdist, run a test without sending that its setup and teardown passed: half of what is sent."""
    if not hasattr(item.config, "workerinput"):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """
    Drop what a test printed that passed, unless ``-rP`` asks for it: xdist would send it.

    Lone surrogates are written as escapes: xdist cannot send them, and its worker would end.
    """
    report = yield
    if report.passed and not {"A", "P"} & set(item.config.getoption("reportchars")):
        report.sections = []
    report.sections = [(title, text.encode(errors="backslashreplace").decode()) for title, text in report.sections]
    return report


@pytest.fixture(autouse=True)
def masked_secrets() -> Iterator[None]:
    """Let Airflow forget what a test has masked: with each secret, it compiles the pattern of all secrets anew."""
    module: Any = sys.modules.get("airflow.sdk._shared.secrets_masker")
    if module is None:
        yield
        return
    masker = module._secrets_masker()
    before = masker.patterns.copy(), masker.replacer
    yield
    masker.patterns, masker.replacer = before


@pytest.fixture(scope="session")
def sandboxes() -> Iterator[Callable[[str], SandboxServer]]:
    """Return a function that starts a sandbox for each profile once per session."""
    started: dict[str, SandboxServer] = {}
    with ExitStack() as stack:

        def sandbox_of(profile: str) -> SandboxServer:
            if profile not in started:
                started[profile] = stack.enter_context(SandboxServer(profile, fault_kinds=TEST_FAULTS))
            return started[profile]

        yield sandbox_of


@pytest.fixture
def sandbox(request: pytest.FixtureRequest, sandboxes: Callable[[str], SandboxServer]) -> Iterator[SandboxServer]:
    """A sandbox in its initial state: ``strict``, or the one of ``parametrize("sandbox", [...], indirect=True)``."""
    server = sandboxes(getattr(request, "param", "strict"))
    yield server
    # Connections are served in their order: what a test has cut off is in the log before this one's answer, and goes.
    with socket.create_connection((server.host, server.port)) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: other.example.com\r\n\r\n")
        connection.recv(1000)
    server.reset()


Connect = Callable[..., None]
Call = Callable[..., Any]


@pytest.fixture
def connect(sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch) -> Connect:
    """
    Set the connection ``workspace_default`` to the sandbox.

    The defaults are the seed's organization and project and the admin's key; keyword arguments are other parts of the
    connection and keys of its extra.
    """

    def set_connection(key: str = sandbox.seed.admin_key, host: str = sandbox.url, **extra: Any) -> None:
        defaults = {"organization_id": sandbox.seed.organization_id, "project_id": sandbox.seed.project_id}
        connection = {"conn_type": "workspace", "host": host, "password": key, "extra": {**defaults, **extra}}
        monkeypatch.setenv("AIRFLOW_CONN_WORKSPACE_DEFAULT", json.dumps(connection))

    return set_connection


@pytest.fixture(params=["requests", "httpx"])
def call(request: pytest.FixtureRequest) -> Call:
    """Call a method of either hook: see ``tests/hook_calls.py``."""
    from tests.hook_calls import CALLS

    return CALLS[request.param]


@pytest.fixture
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip all waits of the package."""
    monkeypatch.setattr(waits, "scale", 0.0)


class Clock:
    """
    The clocks of worker and sandbox; waits of the worker advance them and take no time.

    :ivar ahead: seconds that the worker's clock is ahead of the real time
    :ivar waited: seconds of each wait
    """

    def __init__(self, sandbox: SandboxServer) -> None:
        self.ahead = 0.0
        self.waited: list[float] = []
        self._sandbox = sandbox

    def advance(self, seconds: float) -> None:
        self.ahead += seconds
        self._sandbox.advance_clock(seconds)

    def wait(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.advance(seconds)


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> MemoryFileSystem:
    """Register an empty ``memory://`` in Airflow for one test; without further providers, it knows only ``file://``."""
    from airflow.sdk.io import store
    from fsspec.implementations.memory import MemoryFileSystem

    monkeypatch.setattr(MemoryFileSystem, "store", {})
    monkeypatch.setattr(MemoryFileSystem, "pseudo_dirs", [""])
    filesystem = MemoryFileSystem()
    monkeypatch.setitem(store._STORE_CACHE, "memory", store.ObjectStore("memory", None, fs=filesystem))
    return filesystem


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, sandbox: SandboxServer) -> Clock:
    """Simulate the time of worker and sandbox."""
    clock, real = Clock(sandbox), time.time
    monkeypatch.setattr(time, "time", lambda: real() + clock.ahead)
    monkeypatch.setattr(waits, "sleep", clock.wait)
    return clock


@pytest.fixture(scope="session")
def airflow_cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AirflowCli]:
    """Airflow's command line, started once per xdist worker."""
    with AirflowCli(tmp_path_factory.mktemp("airflow-cli")) as cli:
        yield cli


@pytest.fixture(scope="session")
def migrated_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Path of the database that ``AirflowCli.migrated_home`` copies, shared by all xdist workers."""
    folder = tmp_path_factory.getbasetemp()
    return (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "migrated" / "airflow.db"
