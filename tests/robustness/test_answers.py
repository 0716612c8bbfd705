"""Any response leads to a result of the documented type or to an error of the package, with both hooks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_workspace.api.models import Resource
from airflow_provider_workspace.api.operations import OPERATIONS
from airflow_provider_workspace.errors import WorkspaceError, WorkspaceRequestError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.sensors.workspace import WorkspaceMembersJoinedSensor
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.contract.parts import arguments, operation_of
from tests.contract.reference import EXPECTED
from tests.raw_server import RawServer, answer
from tests.robustness.values import texts

if TYPE_CHECKING:
    from tests.conftest import Call

KEY = "phx_s3cret-key"
METHODS = [item for item in EXPECTED if item.hook_method and item.hook_method != "create_invites"]

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
    *(b"", b" ", b"null", b"\xff\xfe[\x00]\x00", "[{}]".encode("utf-16"), b"\xef\xbb\xbf{}", b'{"name": "\xfc"}'),
    *(b'{"id": 1, "id": 2, "name": "a", "name": [1]}', b'{"results": [{"id": 1}], "results": {"id": 2}, "next": "x"}'),
    *(b'{"name": "\\ud800", "\\udc00": 1}', b'{"id": 1, "modifiers": "\\ud800"}'),
    *(b'{"results": [{"id": 1, "x": "\\ud800"}]}', b'{"id": NaN, "modifiers": [Infinity, -Infinity, 1e999]}'),
    *(b'{"id": ' + b"9" * 5000 + b"}", b"[" * 100_000, b'{"user": ' * 500 + b"1" + b"}" * 500),
    *(b'{"modifiers": ' + b"[" * depth + b"]" * depth + b"}" for depth in (150, 900)),
    *(b"<html>", b"{} trailing", b"'{}'", b'{"a": 01}'),
]
bodies = st.sampled_from(RAW) | (values | pages).map(lambda value: json.dumps(value).encode()) | st.binary(max_size=30)


def check_result(expected: Any, result: Any) -> None:
    """Check the type, and that the result can be printed and become an XCom."""
    if expected is None:
        assert result is None
        return
    for row in result if isinstance(result, list) else [result]:
        assert isinstance(row, Resource) or (row is None and type(None) in get_args(expected))
        if row is not None:
            json.dumps(row.to_dict(), allow_nan=False, ensure_ascii=False).encode()
            assert isinstance(repr(row), str)
            assert all(isinstance(secret, str) for secret in row.secrets())


@pytest.fixture(scope="module")
def service() -> Iterator[RawServer]:
    """A service with the connection to it."""
    with RawServer(answer()) as server, pytest.MonkeyPatch.context() as patch:
        extra = {"max_attempts": 1, "organization_id": "o", "project_id": "1"}
        connection = {"conn_type": "workspace", "host": server.url, "password": KEY, "extra": extra}
        patch.setenv("AIRFLOW_CONN_WORKSPACE_DEFAULT", json.dumps(connection))
        yield server


# Statuses with and without a body.
statuses = st.sampled_from([200, 200, 200, 201, 204, 301, 302, 304, 400, 401, 403, 404, 405, 418, 429, 500, 503])
# Valid header values.
header_values = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30)
headers = st.fixed_dictionaries(
    {},
    optional={
        "Content_Type": st.sampled_from(["application/json", "text/html", "", "x" * 3000, "a/b; charset=utf-99"]),
        "Retry_After": header_values | st.sampled_from(["9" * 400, "-1", "nan", "inf", "Wed, 99 Foo 9999"]),
        "Location": header_values | st.sampled_from(["//", "http://[", "http://:99999/", "\\\\evil", "javascript:1"]),
        "X_Request_Id": header_values | st.just("x" * 3000),
    },
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(item=st.sampled_from(METHODS), status=statuses, headers=headers, body=bodies)
def test_any_response_is_a_result_or_a_workspace_error(
    call: Call, service: RawServer, item: Any, status: int, headers: dict[str, str], body: bytes
) -> None:
    service.scenes = [answer(status, b"" if status in (204, 304) else body, **headers)]
    try:
        result = call(item.hook_method, **arguments(item))
    except WorkspaceRequestError as error:
        text = str(error)
        text.encode()
        assert item.operation in text
        assert len(text) < 2500
        assert KEY not in text
        assert error.retry_after is None or error.retry_after >= 0  # noqa: PT017 - one of two good ends
    else:
        check_result(operation_of(item).endpoint.result, result)


@pytest.mark.usefixtures("no_waits")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=(pages | values).map(lambda value: json.dumps(value).encode()) | st.sampled_from(RAW), data=st.data())
def test_bulk_invites_and_sensors_survive_any_list(service: RawServer, body: bytes, data: st.DataObject) -> None:
    """They read lists in their own way."""
    service.scenes = [answer(200, body)]
    with suppress(WorkspaceError, AirflowFailException):
        if data.draw(st.booleans()):
            with WorkspaceHook() as hook:
                hook.create_invites(["a@example.com", "b@example.com"], on_invalid="skip").to_dict()
        else:
            WorkspaceMembersJoinedSensor(task_id="joined", emails=["a@example.com"]).poke({})
