"""No frame of an error, no cause of it and no log line holds the API key, a proxy's password or a returned secret."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import ssl
import threading
import traceback
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk._shared.secrets_masker import redact
from rich.traceback import Traceback

from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.hooks.workspace import WorkspaceAsyncHook, WorkspaceHook
from tests import raw_server
from tests.raw_server import RawServer, Scene, answer, closed_port

if TYPE_CHECKING:
    from tests.conftest import Call
    from tests.unit.hooks.conftest import SetConnection

pytestmark = pytest.mark.usefixtures("no_waits")

KEY = "canary-key-93b1"
PASSWORD = "canary-password-77c2"
TOKEN = "canary-token-60d8"
WEBHOOK = "canary-hook-15aa"
FAST = {"max_attempts": 2, "read_timeout": 0.3, "total_timeout": 0.6}


def reachable_from(error: BaseException) -> Iterator[object]:
    """Yield everything that an exception refers to, except its traceback."""
    pending: list[object] = [error]
    seen: set[int] = set()
    while pending:
        item = pending.pop()
        if id(item) in seen or isinstance(item, type):
            continue
        seen.add(id(item))
        yield item
        if isinstance(item, BaseException):
            pending += [item.__cause__, item.__context__, *item.args]
        if isinstance(item, dict):
            pending += [*item.keys(), *item.values()]
        elif isinstance(item, list | tuple | set):
            pending += item
        else:
            pending += getattr(item, "__dict__", {}).values()


def shown_by_rich(error: BaseException) -> list[str]:
    """Return what rich shows of the locals of an error, as in a log of Airflow, unabridged."""
    unabridged: dict[str, Any] = {"show_locals": True, "locals_max_length": None, "locals_max_string": None}
    stacks = Traceback.extract(type(error), error, error.__traceback__, **unabridged).stacks
    texts: list[str] = []
    for stack in stacks:
        for frame in stack.frames:
            texts += [str(node) for node in (frame.locals or {}).values()]
    return texts


def without_frames_of_the_test(error: BaseException) -> BaseException:
    """Return an error without the frames of its caller: an argument may be in their locals."""
    while error.__traceback__:
        file = error.__traceback__.tb_frame.f_code.co_filename
        if "/airflow_provider_workspace/" in file:
            break
        error = error.with_traceback(error.__traceback__.tb_next)
    return error


def assert_no_secret(error: BaseException) -> None:
    """Search an error, formatted with all locals except those of the caller's frames."""
    error = without_frames_of_the_test(error)
    formatted = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    reachable = [repr(item) for item in reachable_from(error)]
    for text in (formatted, *shown_by_rich(error), *reachable):
        for secret in (KEY, PASSWORD, TOKEN):
            start = max(0, text.find(secret) - 1500)
            assert secret not in text, text[start:][:3000]
    assert not [text for text in reachable if WEBHOOK in text]


def failure(call: Call) -> BaseException:
    """Return the error of a create with a secret argument."""
    with pytest.raises(WorkspaceError) as error:
        call("create_project", name="Shop", slack_incoming_webhook=WEBHOOK)
    return error.value


NOWHERE = "https://host.invalid"

SCENES = {
    "reset": raw_server.RESET_AFTER_READING,
    "silent": raw_server.SILENT,
    "gzip": raw_server.BAD_GZIP,
    "echo": answer(400, {"detail": f"Key {KEY} and hook {WEBHOOK} and https://u:{PASSWORD}@x.example/"}),
    "echo in HTML": answer(502, f"<p>{KEY} {WEBHOOK}</p>".encode()),
    "echo in a head": Scene(f"HTTP/1.1 abc {KEY} {WEBHOOK}\r\n\r\n".encode()),
    "echo in a redirect": answer(302, Location=f"https://u:{PASSWORD}@x.example/?token={KEY}"),
    "no JSON": answer(200, f"{KEY} {WEBHOOK}".encode(), X_Request_Id=KEY),
    "secret in a record that is none": answer(201, {"session_token": TOKEN, "error": "limit reached"}),
}


@pytest.mark.parametrize("name", SCENES)
def test_errors_of_responses_hold_no_secret(
    call: Call, set_connection: SetConnection, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with RawServer(SCENES[name]) as service:
        set_connection(service.url, KEY, **FAST)
        assert_no_secret(failure(call))
    # The HTTP library logs response headers at DEBUG; Airflow masks the known secrets there.
    logged = str(redact("\n".join(record.getMessage() for record in caplog.records)))
    assert not [secret for secret in (KEY, WEBHOOK) if secret in logged]


@pytest.mark.parametrize(
    ("host", "password", "extra"),
    [
        ("http://{closed}", KEY, {}),
        (NOWHERE, KEY, {"proxy": f"http://user:{PASSWORD}@{{closed}}"}),
        (NOWHERE, KEY, {}),  # the proxy of the environment
        (NOWHERE, KEY, {"proxy": f"socks5://u:{PASSWORD}@p.example"}),
        ("http://workspace.example.com", KEY, {"allow_http": False}),
        (f"https://u:{PASSWORD}@workspace.example.com", KEY, {}),
        (NOWHERE, f"{KEY} with blanks", {}),
    ],
    ids=["closed", "proxy", "proxy of the environment", "socks", "plain HTTP", "password in the URL", "blanks"],
)
def test_errors_before_sending_hold_no_secret(
    call: Call,
    set_connection: SetConnection,
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    password: str,
    extra: dict[str, Any],
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"socks5://u:{PASSWORD}@p.example")
    closed = f"127.0.0.1:{closed_port()}"
    settings: dict[str, Any] = {**FAST, **extra}
    if "proxy" in settings:
        settings["proxy"] = settings["proxy"].format(closed=closed)
    set_connection(host.format(closed=closed), password, **settings)
    assert_no_secret(failure(call))


def test_an_error_of_a_proxy_that_wants_a_password_holds_no_secret(call: Call, set_connection: SetConnection) -> None:
    with RawServer(answer(407)) as proxy:
        url = proxy.url.replace("://", f"://user:{PASSWORD}@")
        set_connection(NOWHERE, KEY, **FAST, proxy=url)
        assert_no_secret(failure(call))


def test_an_error_of_a_certificate_holds_no_secret(
    call: Call, set_connection: SetConnection, server_tls: ssl.SSLContext
) -> None:
    with RawServer(answer(200), tls=server_tls) as untrusted:
        set_connection(untrusted.url, KEY, **FAST)
        assert_no_secret(failure(call))


def test_a_task_killed_while_waiting_shows_no_secret(set_connection: SetConnection) -> None:
    class StoppedError(BaseException):
        pass

    def stop(*_: object) -> None:
        raise StoppedError

    before = signal.signal(signal.SIGUSR1, stop)
    try:
        with RawServer(raw_server.SILENT) as service:
            set_connection(service.url, KEY, read_timeout=20)
            with WorkspaceHook() as hook:
                assert hook.client  # reading the connection is Airflow's
                threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGUSR1)).start()
                with pytest.raises(StoppedError) as stopped:
                    hook.get_dashboard(dashboard_id=7)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert_no_secret(stopped.value)


def test_a_cancelled_call_shows_no_secret(set_connection: SetConnection) -> None:
    async def read_and_cancel() -> BaseException:
        async with WorkspaceAsyncHook() as hook:
            reading = asyncio.ensure_future(hook.get_dashboard(dashboard_id=7))
            await asyncio.sleep(0.3)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError) as cancelled:
                await reading
            return cancelled.value

    with RawServer(raw_server.SILENT) as service:
        set_connection(service.url, KEY, read_timeout=20)
        assert_no_secret(asyncio.run(read_and_cancel()))


@pytest.mark.parametrize("place", ["__cause__", "note"])
def test_assert_no_secret_can_fail(place: str) -> None:
    error = WorkspaceError("x")
    setattr(error, place, ValueError(KEY) if place == "__cause__" else {"a": [KEY]})
    with pytest.raises(AssertionError):
        assert_no_secret(error)
