"""The state of the sandbox in one SQLite database: its schema, its clock, and what is added to it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from airflow_provider_workspace.sandbox import records
from airflow_provider_workspace.sandbox.answers import JsonObject, dumps
from airflow_provider_workspace.sandbox.lists import Lists
from airflow_provider_workspace.sandbox.schema import SCHEMA, SCHEMA_VERSION

INVITE_DAYS = 3


@dataclass(frozen=True)
class Key:
    """An API key: what it may do, where, and on whose behalf."""

    key: str
    name: str
    scopes: frozenset[str]
    organizations: frozenset[str]
    user_uuid: str


class State:
    """
    The database and its one connection.

    All requests are served by one thread, one after the other; only the construction may happen in another.

    :param database: A file, or ``:memory:``.
    """

    def __init__(self, database: str) -> None:
        self.db = sqlite3.connect(database, isolation_level=None, check_same_thread=False)
        self.db.row_factory = sqlite3.Row
        self.lists = Lists(self.db)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = NORMAL")
        version = self.db.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            self.db.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT")
        elif version != SCHEMA_VERSION:
            self.db.close()
            raise ValueError(f"{database} was written by another version of the sandbox: choose another file.")

    def close(self) -> None:
        """Close the database."""
        self.db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Keep all of the changes inside, or none when an exception leaves the block."""
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT")

    def clear(self) -> None:
        """Remove every row and begin numbering anew."""
        tables = [row["name"] for row in self.db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            self.db.execute(f'DELETE FROM "{table}"')  # noqa: S608 -- names of our own schema

    # The clock

    def now(self) -> datetime:
        """Return the time of the sandbox: the real one, and what the clock was advanced by."""
        offset = self.db.execute("SELECT coalesce(sum(offset_seconds), 0) FROM clock").fetchone()[0]
        return datetime.now(timezone.utc) + timedelta(seconds=offset)

    def timestamp(self) -> str:
        """Return the time of the sandbox as answers show it."""
        return records.format_time(self.now())

    def advance_clock(self, seconds: float) -> None:
        """
        Move the clock of the sandbox.

        :param seconds: How far; negative moves it back.
        """
        self.db.execute("INSERT INTO clock VALUES (?)", (seconds,))

    # What is read in several places

    def one(self, sql: str, *values: object) -> sqlite3.Row | None:
        """
        Return the first row of a query.

        :param sql: The query.
        :param values: Its values.
        """
        row: sqlite3.Row | None = self.db.execute(sql, values).fetchone()
        return row

    def number(self, sql: str, *values: object) -> int:
        """
        Return the number that a query counts.

        :param sql: The query.
        :param values: Its values.
        """
        return int(self.db.execute(sql, values).fetchone()[0])

    def key(self, key: str) -> Key | None:
        """
        Return an API key that is not revoked.

        :param key: The secret itself.
        """
        row = self.one("SELECT * FROM keys WHERE key = ? AND NOT revoked", key)
        if row is None:
            return None
        scopes, organizations = json.loads(row["scopes"]), json.loads(row["organizations"])
        return Key(key, row["name"], frozenset(scopes), frozenset(organizations), row["user_uuid"])

    def user(self, uuid: str) -> JsonObject:
        """
        Return the User record of a key's owner.

        :param uuid: UUID of the user.
        """
        return self.record("SELECT record FROM users WHERE uuid = ?", uuid) or {}

    def record(self, sql: str, *values: object) -> JsonObject | None:
        """
        Return the stored record that a query finds.

        :param sql: A query of one column.
        :param values: Its values.
        """
        row = self.one(sql, *values)
        if row is None:
            return None
        record: JsonObject = json.loads(row[0])
        return record

    def is_member(self, organization_id: str, email: str) -> bool:
        """
        Tell whether an address belongs to a member.

        :param organization_id: UUID of the organization.
        :param email: The address, in any case.
        """
        sql = "SELECT 1 FROM members WHERE organization_id = ? AND email = ?"
        return self.one(sql, organization_id, email.lower()) is not None

    # What is added

    def add_organization(self, organization_id: str, name: str) -> None:
        """
        Add an organization with nothing in it.

        :param organization_id: UUID of the organization.
        :param name: Its name.
        """
        self.db.execute("INSERT INTO organizations VALUES (?, ?)", (organization_id, name))

    def add_key(self, key: Key) -> None:
        """
        Add an API key, or replace the one of the same secret.

        :param key: The key.
        """
        self.db.execute(
            "INSERT OR REPLACE INTO keys VALUES (?, ?, ?, ?, ?, 0)",
            (key.key, key.name, dumps(sorted(key.scopes)), dumps(sorted(key.organizations)), key.user_uuid),
        )

    def add_user(self, first_name: str, last_name: str, email: str, uuid: str | None = None) -> JsonObject:
        """
        Add a user and return the User record.

        :param first_name: First name.
        :param last_name: Last name.
        :param email: E-mail address.
        :param uuid: UUID, made from the number of the user when absent.
        """
        user_id = self.number("SELECT coalesce(max(id), 0) + 1 FROM users")
        record = records.user(user_id, uuid or records.numbered_uuid(user_id), first_name, last_name, email)
        self.db.execute(
            "INSERT INTO users VALUES (?, ?, ?, ?)", (user_id, record["uuid"], email.lower(), dumps(record))
        )
        return record

    def add_member(self, organization_id: str, record: JsonObject) -> None:
        """
        Add a member.

        :param organization_id: UUID of the organization.
        :param record: The Member.
        """
        user = record["user"]
        self.db.execute(
            "INSERT INTO members (organization_id, user_uuid, email, record) VALUES (?, ?, ?, ?)",
            (organization_id, user["uuid"], user["email"].lower(), dumps(record)),
        )

    def add_invite(self, organization_id: str, record: JsonObject) -> None:
        """
        Add an invite, which expires three days after its creation.

        :param organization_id: UUID of the organization.
        :param record: The Invite.
        """
        expires = datetime.fromisoformat(record["created_at"].replace("Z", "+00:00")) + timedelta(days=INVITE_DAYS)
        email = record["target_email"].lower()
        self.db.execute(
            "INSERT INTO invites (id, organization_id, email, expires_at, record) VALUES (?, ?, ?, ?, ?)",
            (record["id"], organization_id, email, records.format_time(expires), dumps(record)),
        )

    def add_domain(self, organization_id: str, record: JsonObject) -> None:
        """
        Add a domain.

        :param organization_id: UUID of the organization.
        :param record: The Domain.
        """
        self.db.execute(
            "INSERT INTO domains (id, organization_id, domain, record) VALUES (?, ?, ?, ?)",
            (record["id"], organization_id, record["domain"].lower(), dumps(record)),
        )

    def add_project(self, organization_id: str, fields: JsonObject) -> JsonObject:
        """
        Add a project and return its record.

        :param organization_id: UUID of the organization.
        :param fields: The checked fields of the request.
        """
        sql = "INSERT INTO projects (organization_id, record) VALUES (?, '')"
        project_id = self._number_of_new(sql, organization_id)
        record = records.project(project_id, organization_id, fields, self.timestamp())
        self.db.execute("UPDATE projects SET record = ? WHERE id = ?", (dumps(record), project_id))
        return record

    def add_dashboard(self, project_id: int, fields: JsonObject, created_by: JsonObject) -> JsonObject:
        """
        Add a dashboard and return its record.

        :param project_id: Number of its project.
        :param fields: The checked fields of the request.
        :param created_by: The User who creates it.
        """
        at = self.timestamp()
        sql = "INSERT INTO dashboards (project_id, deleted, record, sharing) VALUES (?, ?, '', ?)"
        deleted = bool(fields.get("deleted"))
        dashboard_id = self._number_of_new(sql, project_id, deleted, dumps(records.sharing(at)))
        record = records.dashboard(dashboard_id, fields, created_by, at)
        self.db.execute("UPDATE dashboards SET record = ? WHERE id = ?", (dumps(record), dashboard_id))
        return record

    def add_collaborator(self, record: JsonObject) -> None:
        """
        Add a collaborator to a dashboard.

        :param record: The Dashboard collaborator.
        """
        self.db.execute(
            "INSERT INTO collaborators (dashboard_id, user_uuid, record) VALUES (?, ?, ?)",
            (record["dashboard_id"], record["user_uuid"], dumps(record)),
        )

    def add_batch_export(self, organization_id: str, export_id: str, name: str, model: str) -> None:
        """
        Add a batch export that is running.

        :param organization_id: UUID of the organization.
        :param export_id: UUID of the export.
        :param name: Its name.
        :param model: ``events`` or ``persons``.
        """
        self.db.execute(
            "INSERT INTO batch_exports (id, organization_id, name, model) VALUES (?, ?, ?, ?)",
            (export_id, organization_id, name, model),
        )

    def add_effect(self, operation: str, organization_id: str, target: str, key_name: str, detail: JsonObject) -> None:
        """
        Note in the audit what a write has changed.

        :param operation: Name of the operation.
        :param organization_id: UUID of the organization.
        :param target: What was changed.
        :param key_name: Name of the key that asked for it.
        :param detail: What else to know, without secrets.
        """
        self.db.execute(
            "INSERT INTO effects (at, operation, organization_id, target, key_name, detail) VALUES (?, ?, ?, ?, ?, ?)",
            (self.timestamp(), operation, organization_id, target, key_name, dumps(detail)),
        )

    def _number_of_new(self, sql: str, *values: Any) -> int:
        number = self.db.execute(sql, values).lastrowid
        assert number is not None  # noqa: S101 -- an INSERT into a table with row ids
        return number
