"""Any response leads to a result of the documented type or to an error of the package, with both clients."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, get_args

import greenback
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_workspace.api.models import Page, Resource
from airflow_provider_workspace.api.operations import OPERATIONS
from airflow_provider_workspace.api.response import UnreadableResponseError, decode
from airflow_provider_workspace.client.client import WorkspaceClient
from airflow_provider_workspace.client.loop import LoopBackend
from airflow_provider_workspace.client.settings import Settings
from airflow_provider_workspace.errors import WorkspaceError, WorkspaceRequestError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.procedures.snapshot import take_snapshot
from tests.contract.parts import BODIES, IDS
from tests.robustness.service import Recorder
from tests.robustness.values import texts

# Known field names, so that generated values are not ignored as unknown fields.
NAMES = sorted(
    {
        "count", "next", "previous", "results", "detail", "code", "attr", "message", "error", "errors",
        *(field for operation in OPERATIONS for field in operation.model_fields),
        *(field for resource in Resource.__subclasses__() for field in resource.model_fields),
    }
)  # fmt: skip
names = st.sampled_from(NAMES) | texts
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**30, -(10**30), 10**4000])
    | st.floats()
    | texts
    | st.sampled_from(
        ["?offset=1", "http://elsewhere.invalid/?offset=5", "?offset=" + "9" * 5000, "//[", "a@example.com"]
    )
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=5), max_leaves=15
)
pages = st.fixed_dictionaries(
    {"results": st.lists(values | st.dictionaries(names, values, max_size=4), max_size=3) | values},
    optional={"next": scalars | values, "count": scalars, "previous": scalars},
)
RAW = [
    b"",
    b" ",
    b"null",
    b"\xff\xfe[\x00]\x00",
    "[{}]".encode("utf-16"),
    b"\xef\xbb\xbf{}",
    b'{"name": "\xfc"}',
    b'{"id": 1, "id": 2, "name": "a", "name": [1]}',
    b'{"results": [{"id": 1}], "results": {"id": 2}, "next": "x"}',
    b'{"name": "\\ud800", "\\udc00": 1}',
    b'{"id": 1, "modifiers": "\\ud800"}',
    b'{"results": [{"id": 1, "x": "\\ud800"}]}',
    b'{"id": NaN, "modifiers": [Infinity, -Infinity, 1e999]}',
    b'{"id": ' + b"9" * 5000 + b"}",
    b"[" * 100_000,
    b'{"modifiers": ' + b"[" * 150 + b"]" * 150 + b"}",
    b'{"modifiers": ' + b"[" * 900 + b"]" * 900 + b"}",
    b'{"user": ' * 500 + b"1" + b"}" * 500,
    b"<html>",
    b"{} trailing",
    b"'{}'",
    b'{"a": 01}',
]
bodies = st.sampled_from(RAW) | (values | pages).map(lambda value: json.dumps(value).encode()) | st.binary(max_size=30)


def operation_of(operation: Any) -> Any:
    """Return an operation with valid arguments."""
    body = BODIES.get(operation.__name__) or {}
    given_ids = {name: value for name, value in IDS.items() if name in operation.model_fields}
    if operation.__name__ == "CreateInvites":
        body = {"invites": [body]}
    return operation(**(given_ids | {name: body[name] for name in body if name in operation.model_fields}))


SENT = [operation_of(operation) for operation in OPERATIONS]


def check_result(answer: Any, result: Any) -> None:
    """Check the type, and that the result can be printed and become an XCom."""
    if answer is None:
        assert result is None
        return
    if isinstance(result, Page):
        assert isinstance(result.results, list)
    rows = result.results if isinstance(result, Page) else result if isinstance(result, list) else [result]
    for row in rows:
        assert isinstance(row, Resource) or (row is None and type(None) in get_args(answer))
        if row is not None:
            json.dumps(row.to_dict(), allow_nan=False, ensure_ascii=False).encode()
            assert isinstance(repr(row), str)
            assert all(isinstance(secret, str) for secret in row.secrets())


@settings(max_examples=200)
@given(operation=st.sampled_from(OPERATIONS), body=bodies)
def test_any_body_is_parsed_or_a_workspace_error(operation: Any, body: bytes) -> None:
    with suppress(UnreadableResponseError):
        check_result(operation.endpoint.result, decode(operation.endpoint.result, body))


Read = Callable[[Any], Any]


@pytest.fixture(scope="module")
def service() -> Iterator[Recorder]:
    with Recorder() as recorder:
        yield recorder


@pytest.fixture(scope="module", params=["requests", "httpx"])
def read(request: pytest.FixtureRequest, service: Recorder) -> Iterator[Read]:
    """Send an operation or read a list with one of the clients."""
    wanted = Settings(service.url, "phx_key", max_attempts=1)
    if request.param == "requests":
        with WorkspaceClient(wanted) as client:
            yield lambda op: [*client.rows(op)] if is_list(op) else client.send(op)
        return
    loop = asyncio.new_event_loop()

    def run(function: Any, *arguments: Any) -> Any:
        return loop.run_until_complete(greenback.with_portal_run_sync(function, *arguments))

    async_client = WorkspaceClient(wanted, backend=run(LoopBackend, wanted))
    yield lambda op: run(list, async_client.rows(op)) if is_list(op) else run(async_client.send, op)
    run(async_client.close)
    loop.close()


def is_list(op: Any) -> bool:
    return isinstance(op.endpoint.result, type) and issubclass(op.endpoint.result, Page)


# Statuses with and without a body.
statuses = st.sampled_from([200, 200, 200, 201, 204, 301, 302, 304, 400, 401, 403, 404, 405, 418, 429, 500, 503])
# Valid header values.
header_values = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30)
headers = st.fixed_dictionaries(
    {},
    optional={
        "Content-Type": st.sampled_from(["application/json", "text/html", "", "x" * 3000, "a/b; charset=utf-99"]),
        "Retry-After": header_values | st.sampled_from(["9" * 400, "-1", "nan", "inf", "Wed, 99 Foo 9999"]),
        "Location": header_values | st.sampled_from(["//", "http://[", "http://:99999/", "\\\\evil", "javascript:1"]),
        "X-Request-Id": header_values | st.just("x" * 3000),
    },
)  # fmt: skip


@settings(max_examples=100)
@given(op=st.sampled_from(SENT), status=statuses, headers=headers, body=bodies)
def test_any_response_is_a_result_or_a_workspace_error(
    read: Read, service: Recorder, op: Any, status: int, headers: dict[str, str], body: bytes
) -> None:
    if status in (204, 304):
        body = b""
    service.answer = (status, headers, body)
    try:
        result = read(op)
    except WorkspaceRequestError as error:
        text = str(error)
        text.encode()
        assert type(op).__name__ in text
        assert len(text) < 2500
        assert "phx_key" not in text
        assert error.retry_after is None or error.retry_after >= 0  # noqa: PT017 - one of two good ends
        return
    if not is_list(op):
        check_result(op.endpoint.result, result)


@settings(max_examples=60)
@given(body=(pages | values).map(lambda value: json.dumps(value).encode()) | st.sampled_from(RAW), data=st.data())
def test_bulk_invites_and_snapshots_survive_any_list(service: Recorder, body: bytes, data: st.DataObject) -> None:
    """Bulk invites and polls of sensors read lists in their own way."""
    service.answer = (200, {}, body)
    connection = {"conn_type": "workspace", "host": service.url, "password": "k", "extra": {"max_attempts": 1}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW_CONN_WORKSPACE_DEFAULT", json.dumps(connection))
        hook = WorkspaceHook(organization_id="o")
        hook.client._backend.sleep = lambda _: None  # type: ignore[method-assign]
        with suppress(WorkspaceError):
            if data.draw(st.booleans()):
                hook.create_invites(["a@example.com", "b@example.com"], on_invalid="skip").to_dict()
            else:
                subject = data.draw(st.sampled_from(["domains", "projects", "people"]))
                take_snapshot(hook.client, subject, "o")
        hook.close()
