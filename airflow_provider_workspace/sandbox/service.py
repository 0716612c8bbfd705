"""A running sandbox: its state, settings, rate limits, faults and log, and what the interface cannot do with them."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, TypeVar

from airflow_provider_workspace.sandbox.faults import FaultKind, Faults
from airflow_provider_workspace.sandbox.limits import Limits
from airflow_provider_workspace.sandbox.own_routes import How, OwnAnswer, OwnRoutes
from airflow_provider_workspace.sandbox.request import PAGE_SIZE, ApiRequest
from airflow_provider_workspace.sandbox.responses import JsonObject, dumps, invalid, not_found
from airflow_provider_workspace.sandbox.routes.batch_exports import export_runs
from airflow_provider_workspace.sandbox.routes.export_runs import EXPORT_ROUTES, parse_moment
from airflow_provider_workspace.sandbox.routes.members import add_member, add_user, is_member
from airflow_provider_workspace.sandbox.schedules import BAD_ENDS, Failure, Pace, Schedules
from airflow_provider_workspace.sandbox.seed import SEED, add_fictional_members, add_organization, seed_state
from airflow_provider_workspace.sandbox.state import Key, State

LOG_LENGTH = 10_000
PROFILES = ("live", "strict")
"""What the interface leaves open is as in known services, or refused."""

T = TypeVar("T")


@dataclass(frozen=True)
class Settings:
    """What :meth:`Service.change_settings` changes."""

    profile: str = "live"
    rate_limit: bool = True
    latency_ms: float = 0

    def __post_init__(self) -> None:
        if self.profile not in PROFILES:
            raise ValueError(f"Profiles are {' and '.join(PROFILES)}, not {self.profile!r}.")

    @property
    def live(self) -> bool:
        return self.profile == "live"


class Service:
    """
    A sandbox without its server; :class:`SandboxServer` has the same methods.

    :param database: SQLite file, or ``:memory:``; a new one is seeded
    :param settings: settings, also after a reset
    :param fault_kinds: additional kinds of faults
    """

    def __init__(self, database: str, settings: Settings, fault_kinds: Iterable[FaultKind] = ()) -> None:
        self.faults = Faults(fault_kinds)
        self.state = State(database)
        self.settings = self._initial_settings = settings
        self.schedules: Schedules | None = None
        """The schedules of batch exports, while their runs are played."""
        self._forget()
        with self.state.transaction():
            if not self.state.number("SELECT count(*) FROM organizations"):
                seed_state(self.state)

    @property
    def active_limits(self) -> Limits | None:
        """The rate limits that apply now; None if there are none."""
        return self._limits if self.settings.rate_limit and self.settings.live else None

    def log_request(self, entry: JsonObject) -> None:
        """Add an API request to the log; the entry must not contain a key."""
        self._log.append(entry)
        self.request_total += 1

    def apply_later(self, seconds: float, effect: Callable[[], object]) -> None:
        """Schedule a call after some seconds by the clock of the sandbox."""
        self._late.append((self.state.now() + timedelta(seconds=seconds), effect))
        self._late.sort(key=itemgetter(0))

    def apply_due(self) -> None:
        """Make the scheduled calls that are due; called before each request."""
        while self._late and self._late[0][0] <= self.state.now():
            moment, effect = self._late.pop(0)
            self._play(moment)
            with self.state.as_of(moment):
                effect()
        self._play(self.state.now())

    def call(self, method: Callable[[], T]) -> T:
        """Call a method below as one transaction, after what is due."""
        self.apply_due()
        with self.state.transaction():
            return method()

    # --- What happened ---

    def audit(self, /, operation: str | None = None, **filters: str) -> list[JsonObject]:
        """
        Return the changes by writes, oldest first.

        :param operation: operation such as ``create_invite``, or a part of names such as ``invite`` or ``delete``; by
            default all
        :param filters: ``organization_id`` or ``target``
        """
        entries = [dict(row) for row in self.state.db.execute("SELECT * FROM audit ORDER BY id")]
        return [
            entry | {"detail": json.loads(entry["detail"])}
            for entry in entries
            if (operation is None or f"_{operation}_" in f"_{entry['operation']}_")
            and all(entry[name] == value for name, value in filters.items())
        ]

    def requests(self) -> list[JsonObject]:
        """Return the latest API requests, oldest first."""
        return [dict(entry) for entry in self._log]

    def batch_exports(self) -> list[JsonObject]:
        """Return the batch exports with their state."""
        rows = self.state.db.execute("SELECT * FROM batch_exports ORDER BY organization_id, id")
        return [dict(row) | {"paused": bool(row["paused"])} for row in rows]

    def export_runs(self, batch_export_id: str) -> JsonObject:
        """
        Return which intervals of a batch export were ``exported`` and which are ``missing``.

        Each has ``interval_start`` and ``interval_end``; an exported one also has ``started_at`` and ``status``
        (``running`` or ``completed``). While runs are played, an interval is ``exported`` as often as it really was.
        """
        if self.schedules is not None:
            return self.schedules.export_runs(batch_export_id)
        return export_runs(self.state, self.state.find("batch_exports", id=batch_export_id))

    # --- Faults ---

    def inject(self, /, kind: str, operation: str | None = None, **options: object) -> JsonObject:
        """
        Inject a fault and return it.

        :param kind: kind of fault; ``python -m airflow_provider_workspace.sandbox --faults`` lists them
        :param operation: name or pattern (``create_*``) of operations; by default all
        :param options: ``times`` (requests to hit; the default of most kinds is 1, None: no limit), ``after`` (requests
            to let pass before), ``probability`` and ``seed`` (hit a random share, reproducibly), and the parameters of
            the kind
        """
        own = self.own_routes.names()
        return self.faults.inject(kind, own, operation=operation, **options).describe()

    def list_faults(self) -> list[JsonObject]:
        """Return the injected faults with the number of matching requests, ``seen``, and of ``hits``."""
        return [fault.describe() for fault in self.faults.active]

    def clear_faults(self) -> None:
        """Remove all faults, and reset the connections that they hold."""
        self.faults.clear()

    # --- Own endpoints, and a service that moves on ---

    def respond(
        self,
        /,
        method: str,
        path: str,
        body: object | Callable[[ApiRequest], object] = None,
        *,
        status: int | None = None,
        headers: dict[str, str] | None = None,
        scope: str | None = None,
        name: str = "respond",
        cursor: bool = False,
        paged: bool = True,
        page_size: int = PAGE_SIZE,
    ) -> None:
        """
        Answer an own endpoint until the next reset; the same method and path again replace the answer.

        The key is checked as for other requests. A write that succeeds is in the audit under ``name``, with the path as
        its target.

        :param method: HTTP method
        :param path: path below ``/api/``, which may have placeholders such as ``{id}``; the final slash does not matter
        :param body: JSON of the response; the list of a GET is paged by ``limit`` and ``offset``; None: no body. In
            Python also a function that returns it, called with the request (``path``, ``query``, ``body``, ``key``) in
            the thread of the sandbox, so that it must not call the sandbox
        :param status: status; None: 200, or 204 without a body
        :param headers: further headers of the response
        :param scope: scope that the key needs; None: any key will do
        :param name: name of the endpoint in requests, audit and faults
        :param cursor: whether the list is paged by an opaque cursor, without a count
        :param paged: whether the list of a GET is paged, or sent whole
        :param page_size: rows on a page at most
        :raises ValueError: if an operation of the sandbox has this path, or a value is not valid
        """
        options = (status, headers or {}, scope, name, cursor, paged, page_size)
        self.own_routes.respond(OwnAnswer(method.upper(), path, body, *options))

    def clear_responses(self) -> None:
        """Remove the answers of all own endpoints."""
        self.own_routes.clear_responses()

    def move(
        self, /, operation: str, path: str, how: How = "gone", *, status: int = 308, sunset: str | None = None
    ) -> None:
        """
        Serve an operation under another path until the next reset.

        :param operation: operation such as ``pause_batch_export``
        :param path: new path with the placeholders of the old one; ``{project_id}`` may stand for ``{organization_id}``
        :param how: what the old path does: ``gone`` (404; 405 if it has other methods), ``redirect``, ``both`` (works
            as before), or ``deprecated`` (works, with the headers ``Deprecation``, ``Sunset`` and ``Link``)
        :param status: status of the redirect, 307 or 308
        :param sunset: date in ``Sunset``, such as ``2027-06-30``; None: in 90 days
        :raises ValueError: if there is no such operation, or it cannot have this path
        """
        self.own_routes.move(operation, path, how, status, sunset)

    def clear_moves(self) -> None:
        """Serve all operations under their own paths again, and only there."""
        self.own_routes.clear_moves()

    def drop_fields(self, resource: str, names: list[str]) -> None:
        """
        Ignore fields that are sent, without a word, and do not show them, until the next reset.

        :param resource: resource such as ``domain``
        :param names: fields such as ``saml_entity_id``; an empty list: none any more
        :raises ValueError: if there is no such resource or field
        """
        self.own_routes.drop_fields(resource, names)

    # --- Runs of batch exports ---

    def play_runs(
        self,
        *,
        history_hours: float = 0,
        jitter_seconds: float = 900,
        run_seconds: float = 300,
        backfill_seconds: float = 10,
        page_size: int = PAGE_SIZE,
    ) -> None:
        """
        Play the runs and backfills of all batch exports, by the clock of the sandbox, until the next reset.

        Their endpoints below ``/api/projects/{project_id}/batch_exports/{id}/`` answer 404 before.

        :param history_hours: how long the exports have been running already
        :param jitter_seconds: how long after its interval a run begins at the latest
        :param run_seconds: duration of a run
        :param backfill_seconds: seconds from the request for a backfill to its beginning
        :param page_size: rows on a page
        """
        pace = Pace(jitter_seconds, run_seconds, backfill_seconds, page_size)
        self.schedules = Schedules(self.state, pace, self.state.now() - timedelta(hours=history_hours))
        self.own_routes.export_routes = EXPORT_ROUTES
        self._play(self.state.now())

    def set_batch_export(
        self,
        batch_export_id: str,
        *,
        interval: str | None = None,
        timezone: str | None = None,
        offset_day: int | None = None,
        offset_hour: int | None = None,
    ) -> None:
        """
        Change from now on when a batch export runs, whose runs are played; None: as before.

        :param interval: ``hour``, ``day``, ``week`` or ``every 5 minutes``
        :param timezone: time zone of days and weeks
        :param offset_day: weekday on which a week begins; 0 is Sunday
        :param offset_hour: hour at which a day or week begins
        """
        schedule = self._played().of(batch_export_id)
        given = {"interval": interval, "timezone": timezone, "offset_day": offset_day, "offset_hour": offset_hour}
        changed: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        schedule.begin(replace(schedule.timing, **changed), self.state.now())

    def fail_runs(
        self, batch_export_id: str, times: int = 1, *, status: str = "Failed", interval_start: str | None = None
    ) -> None:
        """
        Let the next runs of a batch export that end fail; their intervals are not exported.

        :param times: how many
        :param status: how they end, such as ``FailedRetryable`` or ``TimedOut``; with ``Running`` they never end
        :param interval_start: only runs of the interval that starts then, such as ``2027-06-30T12:00:00Z``
        """
        if status not in BAD_ENDS:
            raise invalid(f"A run fails as {', '.join(BAD_ENDS)}, not {status!r}.", "status")
        start = None if interval_start is None else parse_moment(interval_start, "interval_start")
        self._played().of(batch_export_id).failures.append(Failure(times, status, start))

    def fail_backfills(self, times: int = 1) -> None:
        """Answer the next requests for a backfill with a 500; one that resumes an export has resumed it."""
        self._played().broken_backfills = times

    def _played(self) -> Schedules:
        if self.schedules is None:
            raise invalid("No runs are played: call play_runs() first.")
        return self.schedules

    def _play(self, until: datetime) -> None:
        if self.schedules is not None:
            self.schedules.play(until)

    # --- What the interface cannot do ---

    def publish_dns(self, name: str, value: str) -> None:
        """Publish a TXT record."""
        self.state.db.execute("INSERT OR IGNORE INTO dns VALUES (?, ?)", (name.lower().rstrip("."), value))

    def advance_clock(self, seconds: float) -> str:
        """Move the clock of the sandbox, back by a negative number, and return its time."""
        self.state.advance_clock(seconds)
        return self.state.timestamp()

    def accept_invite(self, invite_id: str) -> JsonObject:
        """Accept an invite and return the new Member."""
        row = self.state.find("invites", id=invite_id)
        if row["expires_at"] <= self.state.timestamp():
            raise invalid("This invite has expired.", code="expired")
        if is_member(self.state, row["organization_id"], row["email"]):
            raise invalid("The addressee is a member already.", code="unique")
        invite = json.loads(row["record"])
        known = self.state.one("users", email=row["email"])
        user = json.loads(known["record"]) if known else None
        user = user or add_user(self.state, invite["first_name"] or "", "", invite["target_email"])
        self.state.db.execute("DELETE FROM invites WHERE id = ?", (invite_id,))
        return add_member(self.state, row["organization_id"], user, invite["level"])

    def set_project(self, /, project_id: int, **fields: object) -> None:
        """Set any fields of a project record."""
        record = self.state.record("projects", id=project_id)
        unknown = fields.keys() - record
        if unknown:
            raise invalid(f"A project has no field {', '.join(sorted(unknown))}.", code="unknown_field")
        record |= fields | {"updated_at": self.state.timestamp()}
        self.state.db.execute("UPDATE projects SET record = ? WHERE id = ?", (dumps(record), project_id))

    def add_key(self, key: str, name: str, scopes: list[str], organization_id: str = SEED.organization_id) -> None:
        """
        Add an API key of the first organization's owner.

        :param key: secret
        :param name: name in the audit and log
        """
        self.state.add_key(Key(key, name, frozenset(scopes), frozenset({organization_id}), SEED.owner_uuid))

    def revoke_key(self, key: str) -> None:
        """Revoke an API key."""
        if not self.state.db.execute("UPDATE keys SET revoked = 1 WHERE key = ?", (key,)).rowcount:
            raise not_found()

    def add_members(self, count: int, organization_id: str = SEED.organization_id) -> None:
        """Add members with generated names, by default to the first organization."""
        self.state.find("organizations", id=organization_id)
        add_fictional_members(self.state, organization_id, count)

    def add_organization(self, name: str) -> JsonObject:
        """Add an organization and return its ``id``, ``name``, ``project_id``, ``batch_exports`` and ``key``."""
        return add_organization(self.state, name)

    def change_settings(self, /, **settings: object) -> Settings:
        """Change ``latency_ms``, ``profile`` or ``rate_limit`` until the next reset, and return all settings."""
        self.settings = replace(self.settings, **settings)  # type: ignore[arg-type]
        return self.settings

    def reset(self) -> None:
        """Restore the seed and the initial settings, without faults."""
        self.faults.clear()
        self.settings = self._initial_settings
        self._forget()
        self.state.clear()
        seed_state(self.state)

    def _forget(self) -> None:
        self._limits = Limits()
        self.own_routes = OwnRoutes()
        self.schedules = None
        self._late: list[tuple[datetime, Callable[[], object]]] = []
        self._log: deque[JsonObject] = deque(maxlen=LOG_LENGTH)
        self.request_total = 0
