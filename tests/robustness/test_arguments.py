"""
Whatever is passed to a hook, an operator or a sensor: a request of the right operation, or a named error before one.

The sandbox is real and strict, and its own log tells what arrived.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
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
from airflow_provider_workspace.hooks.workspace import WorkspaceAsyncHook, WorkspaceHook
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.sandbox.server import SandboxServer
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.contract.parts import IDS, arguments
from tests.contract.reference import EXPECTED
from tests.meta.test_operators import OPERATORS, SENSORS
from tests.robustness.values import anything, build

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator

pytestmark = pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner")

# A path value is one segment, whatever the service makes of it.
PATHS = [re.compile(f"{row.method} {re.sub('{.*?}', '[^/?#]+', row.path).rstrip('/')}/") for row in EXPECTED]
METHODS = {expected.hook_method: expected for expected in EXPECTED if expected.hook_method}
EXAMPLES = settings(max_examples=10)


class Watched:
    """A sandbox, and what arrives there while something is tried."""

    def __init__(self, server: SandboxServer) -> None:
        assert server._listener is not None
        self.server = server
        self.service = server._listener.service

    def attempt(self, action: Callable[[], Any]) -> None:
        """Try something: it ends well or with a named error, and every request is one of the interface."""
        before = self.service.request_total
        refused = None
        try:
            action()
        except WorkspaceError as error:
            refused = error
        except AirflowFailException as error:
            if not isinstance(error.__cause__, WorkspaceError):
                if "max_rows" not in str(error):
                    raise
                return
            refused = error.__cause__
        sent = self.service.request_total - before
        entries = list(self.service.log)[len(self.service.log) - sent :]
        for entry in entries:
            assert any(path.fullmatch(f"{entry['method']} {entry['path']}") for path in PATHS), entry
        assert [entry for entry in entries if entry["handled"] == 500] == []
        if refused is None:
            return
        str(refused).encode()
        assert "\x00" not in str(refused)
        assert len(str(refused)) < 12_000
        # What the request itself is to blame for.
        assert not isinstance(
            refused,
            WorkspaceTransportError
            | WorkspaceConnectionError
            | WorkspaceResponseError
            | WorkspaceServerError
            | WorkspaceOutcomeUnknownError,
        )
        if isinstance(refused, WorkspaceInputError | WorkspaceConfigError):
            assert [entry for entry in entries if entry["method"] != "GET"] == [], "refused after a write"


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    with SandboxServer("strict") as server, pytest.MonkeyPatch.context() as patch:
        extra = {"organization_id": SEED.organization_id, "project_id": SEED.project_id, "max_attempts": 1}
        connection = {"conn_type": "workspace", "host": server.url, "password": SEED.admin_key, "extra": extra}
        patch.setenv("AIRFLOW_CONN_WORKSPACE_DEFAULT", json.dumps(connection))
        yield Watched(server)


@st.composite
def spoiled(draw: st.DrawFn, given_arguments: dict[str, Any]) -> dict[str, Any]:
    """Good arguments of which one or two are anything at all."""
    names = draw(st.lists(st.sampled_from(sorted(given_arguments)), min_size=1, max_size=2, unique=True))
    return given_arguments | {name: draw(anything) for name in names}


def arguments_of(method: str) -> dict[str, Any]:
    """Every argument of a hook's method, with a good value."""
    optional = {"organization_id": SEED.organization_id} if "organization_id" in signature(method) else {}
    optional |= {"project_id": SEED.project_id} if "project_id" in signature(method) else {}
    return optional | arguments(METHODS[method]) | ({"on_invalid": "fail"} if method == "create_invites" else {})


def signature(method: str) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(getattr(WorkspaceHook, method)).parameters)


@pytest.mark.parametrize("method", sorted(METHODS))
@EXAMPLES
@given(data=st.data())
def test_any_argument_of_a_hook_method_is_sent_or_a_named_error(
    watched: Watched, method: str, data: st.DataObject
) -> None:
    kwargs = build(data.draw(spoiled(arguments_of(method))))
    hook = WorkspaceHook()

    def call() -> None:
        answer = getattr(hook, method)(**kwargs)
        if isinstance(answer, Iterator):
            list(answer)

    try:
        watched.attempt(call)
    finally:
        hook.close()


@pytest.mark.parametrize("method", sorted(METHODS))
@EXAMPLES
@given(data=st.data())
def test_any_argument_of_an_async_hook_method_is_sent_or_a_named_error(
    watched: Watched, method: str, data: st.DataObject
) -> None:
    kwargs = build(data.draw(spoiled(arguments_of(method))))

    async def call() -> None:
        async with WorkspaceAsyncHook() as hook:
            answer = getattr(hook, method)(**kwargs)
            if isinstance(answer, AsyncIterator):
                assert len([row async for row in answer]) >= 0
            else:
                await answer

    watched.attempt(lambda: asyncio.run(call()))


@EXAMPLES
@given(data=st.data(), organization_id=anything, project_id=anything)
def test_any_argument_of_the_hook_is_accepted_or_a_named_error(
    watched: Watched, data: st.DataObject, organization_id: Any, project_id: Any
) -> None:
    def call() -> None:
        hook = WorkspaceHook(**build({"organization_id": organization_id, "project_id": project_id}))
        try:
            if data.draw(st.booleans()):
                list(hook.list_domains())
            else:
                hook.get_dashboard(dashboard_id=SEED.dashboard_id)
        finally:
            hook.close()

    watched.attempt(call)


# Windows need Airflow's Variables and a run: tests/e2e has them.
TASKS = [cls for cls in (*OPERATORS, *SENSORS) if not cls.__module__.endswith((".windows", ".window_closing"))]
# Arguments of Airflow itself, and the name of a Variable, which Airflow looks up.
NOT_OURS = {"self", "kwargs", "workspace_conn_id", "variable_key", "deferrable"}
GOOD: dict[str, Any] = {
    **IDS,
    "target_email": "new@example.com",
    "emails": ["ada@example.com"],
    "invites": ["ada@example.com"],
    "level": 1,
    "name": "Sales",
    "domain": "example.org",
    "limit": 5,
    "where": {"id": 1},
    "fields": ["id"],
    "max_rows": 100,
    "if_exists": "return",
    "if_missing": "ignore",
    "on_invalid": "fail",
    "if_unknown": "fail",
    "join": "all",
}


def own_arguments(cls: type[BaseOperator]) -> dict[str, Any]:
    """The arguments of an operator with good values: those it must have and those it need not."""
    found: dict[str, Any] = {}
    for base in cls.__mro__:
        if base.__module__.startswith("airflow_provider_workspace") and "__init__" in vars(base):
            for name, parameter in inspect.signature(base.__init__).parameters.items():
                if name not in NOT_OURS:
                    optional = None if parameter.default is inspect.Parameter.empty else parameter.default
                    found.setdefault(name, GOOD.get(name, optional))
    return found


@pytest.mark.parametrize("cls", TASKS, ids=lambda cls: cls.__name__)
@EXAMPLES
@given(data=st.data())
def test_any_argument_of_a_task_is_sent_or_a_named_error(watched: Watched, cls: Any, data: st.DataObject) -> None:
    """As a rendered template leaves it: the arguments are set after the operator is built."""
    good = own_arguments(cls)
    kwargs = build(data.draw(spoiled(good)))
    task = cls(task_id="task", **good)
    # Not by setattr, where Airflow itself looks for results of other tasks, at any depth.
    vars(task).update(kwargs)

    def run() -> None:
        if cls in SENSORS:
            task.poll_once(first=True)
        else:
            task.execute({})

    try:
        watched.attempt(run)
    except RuntimeError as error:
        assert "is not verified" in str(error), repr(error)  # noqa: PT017 - what fail_unverified=True asks for
