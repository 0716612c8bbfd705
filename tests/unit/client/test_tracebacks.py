"""No error holds a secret: neither its causes and contexts, nor the frames of its traceback, nor the log."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import signal
import ssl
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk._shared.secrets_masker import redact
from rich.console import Console
from rich.traceback import Traceback

from airflow_provider_workspace.api.operations import CreateProject, GetDashboard
from airflow_provider_workspace.client.aio import WorkspaceAsyncClient
from airflow_provider_workspace.client.settings import Settings
from airflow_provider_workspace.client.sync import WorkspaceClient
from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.hooks.workspace import WorkspaceAsyncHook, WorkspaceHook
from airflow_provider_workspace.operators.batch_exports import (
    WorkspacePauseBatchExportOperator,
    WorkspaceUnpauseBatchExportOperator,
)
from airflow_provider_workspace.operators.domains import (
    WorkspaceCreateDomainOperator,
    WorkspaceUpdateDomainOperator,
    WorkspaceVerifyDomainOperator,
)
from airflow_provider_workspace.operators.projects import WorkspaceCreateProjectOperator
from airflow_provider_workspace.version_compat import amask_secret, mask_secret
from tests import raw_server as loopback
from tests.raw_server import RawServer, Scene, answer, closed_port

if TYPE_CHECKING:
    from airflow_provider_workspace.operators.base import WorkspaceOperator
    from tests.unit.client.conftest import Send

KEY = "canary-key-93b1"
PASSWORD = "canary-password-77c2"
WEBHOOK = "canary-hook-15aa"
SECRETS = (KEY, PASSWORD, WEBHOOK)
READ = GetDashboard(project_id="1", dashboard_id=7)
CREATE = CreateProject(organization_id="o", name="Shop", slack_incoming_webhook=WEBHOOK)


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


def assert_no_secret(error: BaseException) -> None:
    """Search an error, formatted with all locals except those of this module's frames."""
    while error.__traceback__ and not is_package_frame(error.__traceback__.tb_frame):
        error = error.with_traceback(error.__traceback__.tb_next)
    shown = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    for text in (shown, *(repr(item) for item in reachable_from(error))):
        found = [secret for secret in SECRETS if secret in text]
        assert not found, text[max(0, text.index(found[0]) - 1500) :][:3000]


def assert_no_secret_in_rich(error: BaseException) -> None:
    """The same for the traceback that rich prints."""
    out = io.StringIO()
    unabridged: dict[str, Any] = {"show_locals": True, "locals_max_length": None, "locals_max_string": None}
    written = Traceback.from_exception(type(error), error, error.__traceback__, **unabridged)
    Console(file=out, width=500).print(written)
    assert "Traceback" in out.getvalue()
    assert not [secret for secret in SECRETS if secret in out.getvalue()]


def is_package_frame(frame: FrameType) -> bool:
    """Whether a frame belongs to the package. Frames of the caller do hold the secrets."""
    return "/airflow_provider_workspace/" in frame.f_code.co_filename


def settings_for(url: str, **extra: Any) -> Settings:
    given = {"max_attempts": 2, "max_retry_wait": 0.0, "read_timeout": 0.3, "total_timeout": 0.6, **extra}
    return Settings(url, KEY, **given)


def failure(way: str, url: str, operation: Any, **extra: Any) -> BaseException:
    async def ask() -> None:
        async with WorkspaceAsyncClient(settings_for(url, **extra), mask=amask_secret) as client:
            await client.send(operation)

    mask_secret(KEY)  # as the hook does
    try:
        if way == "httpx":
            asyncio.run(ask())
        else:
            with WorkspaceClient(settings_for(url, **extra), mask=mask_secret) as client:
                client.send(operation)
    except WorkspaceError as error:
        return error
    pytest.fail("it went well")


SCENES = {
    "reset": loopback.RESET_AFTER_READING,
    "silent": loopback.SILENT,
    "cut": loopback.CUT,
    "not HTTP": loopback.NOT_HTTP,
    "gzip": loopback.BAD_GZIP,
    "echo": answer(400, {"detail": f"Key {KEY} and hook {WEBHOOK} and https://u:{PASSWORD}@x.example/"}),
    "echo in HTML": answer(502, f"<p>{KEY} {WEBHOOK}</p>".encode()),
    "echo in a head": Scene(f"HTTP/1.1 abc {KEY} {WEBHOOK}\r\n\r\n".encode()),
    "echo in a redirect": answer(302, Location=f"https://u:{PASSWORD}@x.example/?token={KEY}"),
    "no JSON": answer(200, f"{KEY} {WEBHOOK}".encode(), X_Request_Id=KEY),
}


@pytest.mark.parametrize("way", ["requests", "httpx"])
@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_errors_of_responses_hold_no_secret(way: str, scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with RawServer(scene) as service:
        assert_no_secret(failure(way, service.url, CREATE))
    # The HTTP library logs response headers at DEBUG; Airflow masks the known secrets there.
    logged = str(redact("\n".join(record.getMessage() for record in caplog.records)))
    assert not [secret for secret in (KEY, WEBHOOK) if secret in logged]


@pytest.mark.parametrize("way", ["requests", "httpx"])
def test_errors_before_sending_hold_no_secret(way: str, server_tls: ssl.SSLContext) -> None:
    assert_no_secret(failure(way, f"http://127.0.0.1:{closed_port()}", CREATE))
    assert_no_secret(
        failure(way, "https://host.invalid", CREATE, proxy=f"http://user:{PASSWORD}@127.0.0.1:{closed_port()}")
    )
    with RawServer(answer(407)) as proxy:
        at = proxy.url.replace("://", f"://user:{PASSWORD}@")
        assert_no_secret(failure(way, "https://host.invalid", CREATE, proxy=at))
    with RawServer(answer(200), tls=server_tls) as service:
        error = failure(way, service.url, CREATE)
    assert_no_secret(error)
    assert_no_secret_in_rich(error)


EXPORT = {"batch_export_id": "0190c0de-0000-4000-8000-0000000000e1"}
DOMAIN = {"domain_id": "0190c0de-0000-4000-8000-0000000000d1"}
TASKS: dict[Callable[..., WorkspaceOperator], dict[str, Any]] = {
    WorkspaceCreateProjectOperator: {"name": "Shop", "settings": {"slack_incoming_webhook": WEBHOOK}},
    WorkspaceCreateDomainOperator: {"domain": "shop.example.com", "saml_x509_cert": WEBHOOK},
    WorkspaceUpdateDomainOperator: {**DOMAIN, "saml_x509_cert": WEBHOOK},
    WorkspaceVerifyDomainOperator: {**DOMAIN, "body": {"saml_x509_cert": WEBHOOK}},
    WorkspacePauseBatchExportOperator: {**EXPORT, "body": {"destination": {"password": WEBHOOK}}},
    WorkspaceUnpauseBatchExportOperator: {**EXPORT, "resume_fields": {"token": WEBHOOK}},
}


@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize("task", TASKS)
def test_errors_of_tasks_hold_no_secret(
    task: Callable[..., WorkspaceOperator], monkeypatch: pytest.MonkeyPatch
) -> None:
    with RawServer(answer(500)) as service:
        extra = {"organization_id": "o", "project_id": 1, "consistency_time": 0}
        connect(monkeypatch, {"host": service.url, "extra": extra})
        with pytest.raises(WorkspaceError) as error:
            task(task_id="task", **TASKS[task]).execute({})
    assert_no_secret(error.value)


def test_a_task_killed_while_waiting_shows_no_secret() -> None:
    class StoppedError(BaseException):
        pass

    def stop(*_: object) -> None:
        raise StoppedError

    before = signal.signal(signal.SIGUSR1, stop)
    try:
        with RawServer(loopback.SILENT) as service:
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1)).start()
            patient = settings_for(service.url, read_timeout=5, total_timeout=5)
            with pytest.raises(StoppedError) as stopped, WorkspaceClient(patient) as client:
                client.send(READ)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert_no_secret(stopped.value)
    assert_no_secret_in_rich(stopped.value)


def test_a_cancelled_wait_shows_no_secret() -> None:
    async def ask(url: str) -> BaseException:
        async with WorkspaceAsyncClient(settings_for(url, read_timeout=5, total_timeout=5)) as client:
            asking = asyncio.ensure_future(client.send(READ))
            await asyncio.sleep(0.2)
            asking.cancel()
            try:
                await asking
            except asyncio.CancelledError as error:
                return error
        pytest.fail("it went well")

    with RawServer(loopback.SILENT) as service:
        began = time.monotonic()
        assert_no_secret(asyncio.run(ask(service.url)))
        assert time.monotonic() - began < 3


@pytest.mark.parametrize(
    "changes",
    [
        {"extra": {"organisation": "o"}},
        {"extra": {"proxy": f"socks5://u:{PASSWORD}@p.example"}},
        {"extra": {"verify": "/nowhere/ca.pem"}},
        {"host": "http://workspace.example.com"},
        {"host": f"https://u:{PASSWORD}@workspace.example.com"},
        {"password": f"{KEY} with blanks"},
    ],
    ids=str,
)
def test_errors_of_connections_hold_no_secret(changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, changes)
    changes.clear()

    def by_hook() -> None:
        WorkspaceHook().get_dashboard(project_id="1", dashboard_id=7)

    async def ask() -> None:
        async with WorkspaceAsyncHook() as hook:
            await hook.get_dashboard(project_id="1", dashboard_id=7)

    for call in (by_hook, lambda: asyncio.run(ask())):
        with pytest.raises(WorkspaceError) as error:
            call()
        assert_no_secret(error.value)


def connect(monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]) -> None:
    connection = {"conn_type": "workspace", "host": "https://workspace.example.com", "password": KEY}
    monkeypatch.setenv("AIRFLOW_CONN_WORKSPACE_DEFAULT", json.dumps(connection | changes))
    monkeypatch.setenv("HTTPS_PROXY", f"socks5://u:{PASSWORD}@p.example")


def test_assert_no_secret_can_fail(send: Send) -> None:
    sent = send("http://127.0.0.1:1", READ, max_attempts=1)
    assert isinstance(sent.error, WorkspaceError)
    for spoil in ("__cause__", "note"):
        error = WorkspaceError("x")
        setattr(error, spoil, ValueError(KEY) if spoil == "__cause__" else {"a": [KEY]})
        with pytest.raises(AssertionError):
            assert_no_secret(error)
