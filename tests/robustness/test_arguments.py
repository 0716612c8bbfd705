"""
Any argument of a hook, operator or sensor leads to a valid request or to an error of the package.

The log of the strict sandbox shows the requests.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import re
import time
from collections.abc import Callable, Iterator
from itertools import product
from types import SimpleNamespace
from typing import Any

import airflow.sdk
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_workspace.errors import (
    WorkspaceConfigError,
    WorkspaceConnectionError,
    WorkspaceError,
    WorkspaceInputError,
    WorkspaceOutcomeUnknownError,
    WorkspaceResponseError,
    WorkspaceServerError,
    WorkspaceTransportError,
)
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.sandbox.server import SandboxServer
from airflow_provider_workspace.triggers.deadline import WorkspaceDeadlineTrigger
from airflow_provider_workspace.version_compat import (
    AirflowFailException,
    AirflowNotFoundException,
    AirflowSkipException,
    TaskDeferred,
)
from tests.classes import SENSORS, TASKS, TRIGGERS, own_arguments, parameters
from tests.contract.parts import arguments
from tests.contract.reference import EXPECTED
from tests.hook_calls import CALLS
from tests.robustness.values import Made, anything, build
from tests.task_instance import task_instance
from tests.variables import install, install_runs

# Of services that show the runs of their exports.
OF_EXPORT = "/projects/{project_id}/batch_exports/{id}/"
OF_EXPORT_RUNS = [
    ("GET", OF_EXPORT),
    ("GET", f"{OF_EXPORT}runs/"),
    ("GET", f"{OF_EXPORT}backfills/"),
    ("POST", f"{OF_EXPORT}backfills/"),
]
# A path value is one segment, even if the service decodes it.
ROWS = [*((row.method, row.path) for row in EXPECTED), *((verb, f"/api{path}") for verb, path in OF_EXPORT_RUNS)]
PATHS = [re.compile(f"{method} {re.sub('{.*?}', '[^/?#]+', path).rstrip('/')}/") for method, path in ROWS]
METHODS = {expected.hook_method: expected for expected in EXPECTED if expected.hook_method}
# They say that the service got or answered an invalid request.
NOT_REFUSED = (
    *(WorkspaceTransportError, WorkspaceConnectionError, WorkspaceResponseError),
    *(WorkspaceServerError, WorkspaceOutcomeUnknownError),
)


class StillWaitingError(Exception):
    """A trigger is still waiting; its last request is cut off."""


def requests(server: SandboxServer) -> list[dict[str, Any]]:
    assert server._listener is not None
    return list(server._listener.service._log)


def attempt(server: SandboxServer, action: Callable[[], Any]) -> None:
    """Call a function. It must return or raise an error of the package, and send only valid requests."""
    assert server._listener is not None
    server._listener.service._log.clear()
    refused = None
    try:
        action()
    except StillWaitingError:
        return
    except (TaskDeferred, AirflowSkipException, AirflowNotFoundException):  # of a connection
        pass
    except WorkspaceError as error:
        refused = error
    except AirflowFailException as error:
        cause: BaseException | None = error
        while isinstance(cause, AirflowFailException):
            cause = cause.__context__
        if not isinstance(cause, WorkspaceError):
            if not re.search("max_rows|differs from its file", str(error)):
                raise
            return
        refused = cause
    for entry in (entries := requests(server)):
        assert any(path.fullmatch(f"{entry['method']} {entry['path']}") for path in PATHS), entry
    assert [entry for entry in entries if entry["handled"] == 500] == []
    if refused is None:
        return
    str(refused).encode()
    assert "\x00" not in str(refused)
    assert len(str(refused)) < 12_000
    assert not isinstance(refused, NOT_REFUSED)
    if isinstance(refused, WorkspaceInputError | WorkspaceConfigError):
        assert [entry for entry in entries if entry["method"] != "GET"] == [], "refused after a write"


@pytest.fixture(scope="module")
def server() -> Iterator[SandboxServer]:
    with SandboxServer("strict") as server, pytest.MonkeyPatch.context() as patch:
        extra = {"organization_id": SEED.organization_id, "project_id": SEED.project_id, "max_attempts": 1}
        connection = {"conn_type": "workspace", "host": server.url, "password": SEED.admin_key, "extra": extra}
        patch.setenv("AIRFLOW_CONN_WORKSPACE_DEFAULT", json.dumps(connection))
        yield server


@pytest.fixture(autouse=True)
def airflow_in_memory(monkeypatch: pytest.MonkeyPatch, server: SandboxServer, no_waits: None) -> None:  # noqa: ARG001 - a fixture
    """Variables in memory; environment changes by commands are undone."""
    install(monkeypatch)
    install_runs(monkeypatch)
    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "client")
    assert server._listener is not None
    server._listener.service._log.clear()


@st.composite
def spoiled(draw: st.DrawFn, given_arguments: dict[str, Any]) -> dict[str, Any]:
    """Valid arguments, of which one or two are replaced by any value."""
    names = draw(st.lists(st.sampled_from(sorted(given_arguments)), min_size=1, max_size=2, unique=True))
    return given_arguments | {name: draw(anything) for name in names}


def hook_arguments(method: str) -> dict[str, Any]:
    """Return every argument of a hook method with a valid value, and those of the hook."""
    ids = {"organization_id": SEED.organization_id, "project_id": SEED.project_id}
    taken = inspect.signature(getattr(WorkspaceHook, method)).parameters
    return {name: ids[name] for name in ids if name in taken} | arguments(METHODS[method])


def leave(_: float) -> None:
    """Do not wait for the next poke."""
    raise StillWaitingError


def run_task(cls: type[Any], kwargs: dict[str, Any]) -> None:
    """Set the arguments after the operator is built, as rendering does, and run it."""
    vars(airflow.sdk.Variable)["values"].clear()
    if kwargs.get("require_approval") in (True, "true", "1", "yes", "on"):
        return  # there is nobody to ask
    declared = getattr(cls, "declared", {})
    fixed = {name for name, each in declared.items() if not each.templated}
    of_the_dag_file = {name: kwargs[name] for name in fixed & kwargs.keys()}
    task = cls(task_id="task", **own_arguments(cls) | of_the_dag_file)
    attributes = vars(task)  # not with setattr, where Airflow searches for XComArgs at any depth
    for name in kwargs.keys() - fixed:
        kept_as = declared[name].attribute if name in declared else ""
        attributes[kept_as or name] = kwargs[name]
    if cls in SENSORS:  # no templates, so Airflow has checked that they are numbers; a timeout of 0 is over at once
        for name in ("poke_interval", "timeout"):
            if not isinstance(attributes[name], int | float) or not attributes[name] > 0:
                attributes[name] = 60.0
    with pytest.MonkeyPatch.context() as patch:
        if cls in SENSORS:  # it would poke until its timeout
            patch.setattr("airflow.sdk.bases.sensor.time", SimpleNamespace(monotonic=time.monotonic, sleep=leave))
        with_instance = (".windows", ".window_closing", ".sweep", ".access_review", ".catch_up")
        needs_instance = cls.__module__.endswith(with_instance)
        task.execute({"ti": task_instance()} if needs_instance else {})


def build_task(cls: type[Any], kwargs: dict[str, Any]) -> None:
    """Build an operator in a Dag file."""
    cls(task_id="task", **kwargs)


def run_trigger(cls: type[Any], kwargs: dict[str, Any]) -> None:
    """Run a trigger up to its first event."""

    async def first_event() -> None:
        trigger = cls(**kwargs)
        trigger.trigger_id = 1
        trigger.serialize()
        if hasattr(trigger, "shared_stream_key"):
            hash(trigger.shared_stream_key())
        events = trigger.run()
        try:
            await asyncio.wait_for(anext(events), 0.1)
        except asyncio.TimeoutError:
            raise StillWaitingError from None
        finally:
            await events.aclose()

    asyncio.run(first_event())


Run = Callable[[st.DataObject], None]


def targets() -> dict[str, Run]:
    """Return everything that takes arguments, with a function that calls it with invalid ones."""

    def spoil(run: Callable[[Any, dict[str, Any]], None], cls: Any) -> Run:
        return lambda data: run(cls, build(data.draw(spoiled(own_arguments(cls)))))

    def shallow(cls: Any) -> Run:
        def call(data: st.DataObject) -> None:
            own = {name: own_arguments(cls)[name] for name in parameters(cls)}  # Airflow checks its own
            kwargs = data.draw(spoiled(own))
            # Airflow searches arguments at any depth.
            if not any(isinstance(value, Made) and value.is_deep for value in kwargs.values()):
                build_task(cls, build(kwargs))

        return call

    def method_call(method: str) -> Run:
        def call(data: st.DataObject) -> None:
            CALLS[data.draw(st.sampled_from(sorted(CALLS)))](
                method, **build(data.draw(spoiled(hook_arguments(method))))
            )

        return call

    def hook_call(data: st.DataObject) -> None:
        hook = build(data.draw(spoiled({"organization_id": SEED.organization_id, "project_id": SEED.project_id})))
        for method, ids in (("list_domains", {}), ("get_dashboard", {"dashboard_id": SEED.dashboard_id})):
            CALLS["requests"](method, hook=hook, **ids)

    return {
        "the hook": hook_call,
        **{method: method_call(method) for method in METHODS},
        **{f"run {cls.__name__}": spoil(run_task, cls) for cls in TASKS},
        **{f"build {cls.__name__}": shallow(cls) for cls in TASKS},
        # Only tasks of the package give the deadline's trigger its arguments: it has no values of users to refuse.
        **{f"run {cls.__name__}": spoil(run_trigger, cls) for cls in TRIGGERS if cls is not WorkspaceDeadlineTrigger},
    }


@pytest.mark.parametrize("examples", [3, pytest.param(235, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", sorted(targets()))
def test_any_argument_is_sent_or_a_workspace_error(server: SandboxServer, name: str, examples: int) -> None:
    run = targets()[name]

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def call(data: st.DataObject) -> None:
        attempt(server, lambda: run(data))

    call()


@pytest.mark.parametrize("cls", [cls for cls in (*TASKS, *TRIGGERS) if cls is not WorkspaceDeadlineTrigger])
def test_invalid_numbers_are_refused(server: SandboxServer, cls: Any) -> None:
    run = run_trigger if cls in TRIGGERS else run_task
    wrong = (math.nan, math.inf, -math.inf, True, [1], "nan", "inf", 10**400, -(10**400))
    for (name, parameter), value in product(parameters(cls).items(), wrong):
        is_number = re.search(r"\b(int|float|timedelta)\b", str(parameter.annotation))
        if not is_number or (name.endswith("_id") and isinstance(value, str)):
            continue  # an id may be any text
        nobody_is_asked = {"require_approval": False} if "require_approval" in parameters(cls) else {}
        with pytest.raises((WorkspaceInputError, AirflowFailException), match=f"(?s){name}.*Nothing was sent\\."):
            run(cls, own_arguments(cls) | nobody_is_asked | {name: value})
    assert [entry for entry in requests(server) if entry["method"] != "GET"] == []
