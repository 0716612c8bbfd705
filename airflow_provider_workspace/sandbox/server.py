"""The sandbox as a server in a thread of its own, for tests and for the command line."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from airflow_provider_workspace.sandbox.faults import read_fault
from airflow_provider_workspace.sandbox.listener import Listener
from airflow_provider_workspace.sandbox.profiles import PROFILES
from airflow_provider_workspace.sandbox.seed import SEED, Seed
from airflow_provider_workspace.sandbox.service import Service, Settings

if TYPE_CHECKING:
    from typing_extensions import Self

    from airflow_provider_workspace.sandbox.answers import JsonObject

STOP_SECONDS = 5


class SandboxServer:
    """
    A sandbox that listens while it is entered as a context, or between :meth:`start` and :meth:`stop`.

    :param profile: ``lenient``, ``strict`` or ``live``.
    :param database: A file that is kept, or ``:memory:``.
    :param port: The port; 0 picks a free one.
    :param host: The address to listen on.
    :param latency_ms: How long each request of the interface waits.
    :param rate_limit: Whether a profile with rates keeps them.
    :param faults: Faults from the start, each as :meth:`inject` takes it, with its ``kind``.
    :raises ValueError: If a fault cannot be understood.
    """

    seed: Seed = SEED
    """The ids and keys that exist from the start."""

    def __init__(
        self,
        profile: str = "lenient",
        database: str = ":memory:",
        port: int = 0,
        *,
        host: str = "127.0.0.1",
        latency_ms: float = 0,
        rate_limit: bool = True,
        faults: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        self.database = database
        self.host = host
        self.port = port
        self._settings = Settings(PROFILES[profile], latency_ms, rate_limit)
        self._faults = [dict(fault) for fault in faults]
        for fault in self._faults:
            read_fault(fault)
        self._listener: Listener | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The address of the sandbox, without a slash at the end."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def connection(self, key: str = SEED.admin_key, **extra: object) -> str:
        """
        Return an Airflow connection to the sandbox as JSON, for a variable ``AIRFLOW_CONN_…``.

        :param key: The API key; by default one that may do everything.
        :param extra: Keys of the connection's extra, besides or instead of the first organization and project.
        """
        defaults = {"organization_id": self.seed.organization_id, "project_id": self.seed.project_id}
        return json.dumps({"conn_type": "workspace", "host": self.url, "password": key, "extra": {**defaults, **extra}})

    def start(self) -> Self:
        """Listen, and return when requests are answered."""
        service = Service(self.database, self._settings, self._faults)
        try:
            listener = Listener(service, self.host, self.port)
        except OSError:
            service.state.close()
            raise
        self.port = listener.port
        thread = threading.Thread(target=listener.serve_until_stopped, name="workspace-sandbox", daemon=True)
        thread.start()
        while not listener.started:
            if not thread.is_alive():
                raise RuntimeError("The sandbox did not start; its log tells why.")
            time.sleep(0.002)
        self._listener, self._thread = listener, thread
        return self

    def stop(self) -> None:
        """Stop listening and close the database; once stopped, nothing happens."""
        if self._listener is not None and self._thread is not None:
            self._listener.should_exit = True
            self._thread.join(STOP_SECONDS)
            self._listener = self._thread = None

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()

    # The control calls

    def effects(self, operation: str | None = None, **filters: str) -> list[JsonObject]:
        """
        Return what writes have changed, oldest first.

        :param operation: Only this operation, such as ``create_invite``, or all with these words in their names:
            ``invite``, ``delete``, ``batch_export``.
        :param filters: Only this ``organization_id`` or ``target``.
        """
        effects: list[JsonObject] = self.control("GET", f"effects?{urlencode(filters)}")["effects"]
        return [effect for effect in effects if operation is None or f"_{operation}_" in f"_{effect['operation']}_"]

    def requests(self) -> list[JsonObject]:
        """Return the latest requests of the interface, oldest first."""
        requests: list[JsonObject] = self.control("GET", "requests")["requests"]
        return requests

    def batch_exports(self) -> list[JsonObject]:
        """Return the batch exports with their state."""
        exports: list[JsonObject] = self.control("GET", "batch_exports")["batch_exports"]
        return exports

    def inject(self, kind: str, operation: str | None = None, **options: object) -> JsonObject:
        """
        Switch a fault on and return it, with its ``id``.

        :param kind: The kind of fault; ``python -m airflow_provider_workspace.sandbox --help`` lists all.
        :param operation: Name or pattern (``create_*``) of the operations to hit; all of them when absent.
        :param options: ``times`` (how many requests to hit: 1 when absent, None for ever), ``after`` (how many to let
            pass before), ``probability`` and ``seed`` (hit a random share, the same for the same seed), and the
            parameters of the kind.
        """
        fault: JsonObject = self.control("POST", "faults", {"kind": kind, "operation": operation, **options})
        return fault

    def faults(self) -> list[JsonObject]:
        """Return the faults that were switched on, with how many requests each has ``seen`` and ``hits``."""
        faults: list[JsonObject] = self.control("GET", "faults")["faults"]
        return faults

    def clear_faults(self) -> None:
        """Switch all faults off, and let go of the clients they keep waiting."""
        self.control("DELETE", "faults")

    def publish_dns(self, name: str, value: str) -> None:
        """
        Publish a TXT record.

        :param name: Name of the record.
        :param value: Its text.
        """
        self.control("POST", "dns", {"name": name, "value": value})

    def reset(self) -> None:
        """Go back to the seed, and to the settings and faults of the start."""
        self.control("POST", "reset")

    def advance_clock(self, seconds: float) -> None:
        """
        Move the clock of the sandbox.

        :param seconds: How far.
        """
        self.control("POST", "clock", {"advance_seconds": seconds})

    def accept_invite(self, invite_id: str) -> JsonObject:
        """
        Accept an invite and return the new Member.

        :param invite_id: UUID of the invite.
        """
        member: JsonObject = self.control("POST", f"invites/{invite_id}/accept")
        return member

    def set_project(self, project_id: int, **fields: object) -> None:
        """
        Set fields of a project.

        :param project_id: Number of the project.
        :param fields: Any fields of the project record.
        """
        self.control("PATCH", f"projects/{project_id}", fields)

    def add_key(self, key: str, name: str, scopes: list[str], organization_id: str = SEED.organization_id) -> None:
        """
        Issue an API key.

        :param key: The secret.
        :param name: The name under which audit and log know it.
        :param scopes: What it may do.
        :param organization_id: Where it may do it.
        """
        self.control("POST", "keys", {"key": key, "name": name, "scopes": scopes, "organization_id": organization_id})

    def revoke_key(self, key: str) -> None:
        """
        Revoke an API key.

        :param key: The secret.
        """
        self.control("POST", "keys/revoke", {"key": key})

    def add_members(self, count: int, organization_id: str | None = None) -> None:
        """
        Add many fictional members.

        :param count: How many.
        :param organization_id: Where; the first organization when absent.
        """
        self.control("POST", "members", {"count": count, "organization_id": organization_id})

    def add_organization(self, name: str) -> JsonObject:
        """
        Add an organization and return its ``id``, ``name``, ``project_id``, ``batch_exports`` and ``key``.

        :param name: Its name.
        """
        organization: JsonObject = self.control("POST", "organizations", {"name": name})
        return organization

    def change_settings(self, **settings: object) -> None:
        """
        Change settings until the next reset.

        :param settings: ``latency_ms``, ``profile`` or ``rate_limit``.
        """
        self.control("POST", "settings", settings)

    def control(self, method: str, path: str, body: object = None) -> Any:
        """
        Send any control call and return the parsed answer; while a fault has taken the sandbox down, wait.

        :param method: The method.
        :param path: The path below ``/_sandbox/``.
        :param body: The body, sent as JSON.
        """
        if self._listener is not None:
            self._listener.up.wait()
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            connection.request(method, f"/_sandbox/{path}", None if body is None else json.dumps(body))
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        if response.status >= 400:
            raise ValueError(f"{method} /_sandbox/{path} was refused with {response.status}: {text.decode()}")
        return json.loads(text) if text else None
