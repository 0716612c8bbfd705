"""The state of the sandbox in a SQLite database: tables, clock, lists and audit."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from airflow_provider_workspace.sandbox.responses import JsonObject, dumps, invalid, not_found

MAX_CLOCK_OFFSET = 10 * 366 * 86_400
"""Maximum difference between the clock of the sandbox and the real one in seconds."""

SCHEMA_VERSION = 2

# A table has the columns that queries need, and the record as it is sent.
SCHEMA = """
CREATE TABLE clock (offset_seconds REAL NOT NULL);
CREATE TABLE organizations (id TEXT PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE keys (
    key TEXT PRIMARY KEY, name TEXT NOT NULL, scopes TEXT NOT NULL, organizations TEXT NOT NULL,
    user_uuid TEXT NOT NULL, revoked INTEGER NOT NULL DEFAULT 0);
CREATE TABLE users (id INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE, email TEXT NOT NULL, record TEXT NOT NULL);
CREATE INDEX users_email ON users (email);
CREATE TABLE members (
    seq INTEGER PRIMARY KEY, organization_id TEXT NOT NULL, user_uuid TEXT NOT NULL, email TEXT NOT NULL,
    record TEXT NOT NULL, UNIQUE (organization_id, user_uuid));
CREATE INDEX members_page ON members (organization_id, seq);
CREATE INDEX members_email ON members (organization_id, email);
CREATE TABLE invites (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, organization_id TEXT NOT NULL, email TEXT NOT NULL,
    expires_at TEXT NOT NULL, record TEXT NOT NULL);
CREATE INDEX invites_page ON invites (organization_id, seq);
CREATE INDEX invites_email ON invites (organization_id, email);
CREATE TABLE domains (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, organization_id TEXT NOT NULL, domain TEXT NOT NULL,
    record TEXT NOT NULL);
CREATE TABLE projects (id INTEGER PRIMARY KEY, organization_id TEXT NOT NULL, record TEXT NOT NULL);
CREATE TABLE dashboards (
    id INTEGER PRIMARY KEY, project_id INTEGER NOT NULL, deleted INTEGER NOT NULL, record TEXT NOT NULL,
    sharing TEXT NOT NULL);
CREATE TABLE collaborators (
    seq INTEGER PRIMARY KEY, dashboard_id INTEGER NOT NULL, user_uuid TEXT NOT NULL, record TEXT NOT NULL,
    UNIQUE (dashboard_id, user_uuid));
CREATE TABLE batch_exports (
    id TEXT PRIMARY KEY, organization_id TEXT NOT NULL, name TEXT NOT NULL, model TEXT NOT NULL,
    interval_seconds INTEGER NOT NULL, created_at TEXT NOT NULL, paused INTEGER NOT NULL DEFAULT 0,
    last_paused_at TEXT);
CREATE TABLE export_pauses (
    seq INTEGER PRIMARY KEY, export_id TEXT NOT NULL, paused_at REAL NOT NULL, resumed_at REAL,
    backfill INTEGER NOT NULL DEFAULT 0);
CREATE TABLE dns (name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (name, value));
CREATE TABLE audit (
    id INTEGER PRIMARY KEY, at TEXT NOT NULL, operation TEXT NOT NULL, organization_id TEXT NOT NULL,
    target TEXT NOT NULL, key_name TEXT NOT NULL, detail TEXT NOT NULL);
CREATE INDEX audit_organization ON audit (organization_id, id);
"""


@dataclass(frozen=True)
class Key:
    """An API key with its scopes, organizations and owner."""

    key: str
    name: str
    scopes: frozenset[str]
    organizations: frozenset[str]
    user_uuid: str


class State:
    """
    The database with its single connection.

    One thread serves all requests; only the constructor may run in another.

    :param database: SQLite file, or ``:memory:``
    """

    def __init__(self, database: str) -> None:
        self.db = sqlite3.connect(database, isolation_level=None, check_same_thread=False)
        self.db.row_factory = sqlite3.Row
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = NORMAL")
        version = self.db.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            self.db.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT")
        elif version != SCHEMA_VERSION:
            self.db.close()
            raise ValueError(f"{database} was written by another version of the sandbox: choose another file.")
        self._now: datetime | None = None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit the changes in the block, or roll them back if it raises."""
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT")

    def clear(self) -> None:
        tables = [row["name"] for row in self.db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            self.db.execute(f'DELETE FROM "{table}"')  # noqa: S608 -- names of our own schema

    # --- The clock ---

    def now(self) -> datetime:
        """Return the time of the sandbox: the real time plus the offset."""
        return self._now or datetime.now(timezone.utc) + timedelta(seconds=self._clock_offset())

    @contextmanager
    def as_of(self, moment: datetime) -> Iterator[None]:
        """Stop the clock at a time, for a call that was due then."""
        self._now = moment
        try:
            yield
        finally:
            self._now = None

    def timestamp(self) -> str:
        return format_time(self.now())

    def advance_clock(self, seconds: float) -> None:
        """Move the clock of the sandbox; a negative number moves it back."""
        # The number alone first, since an integer may be too large to be added to a float.
        if abs(seconds) > 2 * MAX_CLOCK_OFFSET or abs(self._clock_offset() + seconds) > MAX_CLOCK_OFFSET:
            raise invalid("The clock may differ from the real one by ten years at most.", "advance_seconds")
        self.db.execute("INSERT INTO clock VALUES (?)", (seconds,))

    def _clock_offset(self) -> float:
        return float(self.db.execute("SELECT coalesce(sum(offset_seconds), 0) FROM clock").fetchone()[0])

    # --- Reading ---

    def one(self, table: str, /, **columns: object) -> sqlite3.Row | None:
        """Return the row with these values; None if there is none."""
        where = " AND ".join(f"{name} = ?" for name in columns)
        sql = f"SELECT * FROM {table} WHERE {where}"  # noqa: S608 -- names of our own schema
        row: sqlite3.Row | None = self.db.execute(sql, (*columns.values(),)).fetchone()
        return row

    def find(self, table: str, /, **columns: object) -> sqlite3.Row:
        """Return the row with these values, or raise a 404."""
        row = self.one(table, **columns)
        if row is None:
            raise not_found()
        return row

    def record(self, table: str, /, **columns: object) -> JsonObject:
        """Return the record in the row with these values, or raise a 404."""
        record: JsonObject = json.loads(self.find(table, **columns)["record"])
        return record

    def number(self, sql: str, *values: object) -> int:
        return int(self.db.execute(sql, values).fetchone()[0])

    def key(self, key: str) -> Key | None:
        """Return an API key; None if it does not exist or is revoked."""
        row = self.one("keys", key=key, revoked=False)
        if row is None:
            return None
        scopes, organizations = json.loads(row["scopes"]), json.loads(row["organizations"])
        return Key(key, row["name"], frozenset(scopes), frozenset(organizations), row["user_uuid"])

    def count(self, table: str, organization_id: str) -> int:
        sql = f"SELECT count(*) FROM {table} WHERE organization_id = ?"  # noqa: S608 -- names of our own schema
        return self.number(sql, organization_id)

    def page(
        self, table: str, organization_id: str, limit: int, offset: int, column: str = "record", *values: object
    ) -> list[str]:
        """Return an SQL expression for records of an organization, oldest first; ``values`` are its parameters."""
        where = "organization_id = ? ORDER BY rowid LIMIT ? OFFSET ?"
        sql = f"SELECT {column} FROM {table} WHERE {where}"  # noqa: S608 -- as above
        return [row[0] for row in self.db.execute(sql, (*values, organization_id, limit, offset))]

    def created_since(self, operation: str, since: str) -> set[str]:
        """Return the ids of the records that an operation created after a time, from the audit."""
        ids = "coalesce(json_extract(detail, '$.invite_id'), json_extract(detail, '$.domain_id'), target)"
        sql = f"SELECT {ids} FROM audit WHERE operation = ? AND at > ?"  # noqa: S608 -- as above
        return {row[0] for row in self.db.execute(sql, (operation, since))}

    # --- Writing ---

    def insert(self, table: str, **columns: object) -> None:
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        sql = f"INSERT INTO {table} ({names}) VALUES ({marks})"  # noqa: S608 -- names of our own schema
        self.db.execute(sql, (*columns.values(),))

    def next_id(self, table: str) -> int:
        return self.number(f"SELECT coalesce(max(id), 0) + 1 FROM {table}")  # noqa: S608 -- as above

    def add_key(self, key: Key) -> None:
        scopes, organizations = dumps(sorted(key.scopes)), dumps(sorted(key.organizations))
        sql = "INSERT OR REPLACE INTO keys VALUES (?, ?, ?, ?, ?, 0)"
        self.db.execute(sql, (key.key, key.name, scopes, organizations, key.user_uuid))

    def take_from_keys(self, organization_id: str, user_uuid: str) -> None:
        """Take an organization from the keys of a user who has left it."""
        rest = "SELECT json_group_array(value) FROM json_each(organizations) WHERE value <> ?"
        sql = f"UPDATE keys SET organizations = ({rest}) WHERE user_uuid = ?"  # noqa: S608 -- no values
        self.db.execute(sql, (organization_id, user_uuid))

    def audit(self, operation: str, organization_id: str, target: str, key_name: str, detail: JsonObject) -> None:
        """Add a change to the audit; the detail must not contain secrets."""
        self.insert(
            "audit",
            at=self.timestamp(),
            operation=operation,
            organization_id=organization_id,
            target=target,
            key_name=key_name,
            detail=dumps(detail),
        )


def format_time(moment: datetime) -> str:
    """Format a time in UTC; the texts sort like the times."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> datetime:
    """Parse a time of :func:`format_time`."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
