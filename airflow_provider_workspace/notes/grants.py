"""
Grants: who has which access until when, and what they have then.

Each grant is an Airflow Variable of its own, written before anything is sent, so that the end comes although its task,
its run or its Dag is gone. Its key names the person and the task; its value is plain JSON.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from operator import attrgetter
from typing import Any

from pydantic import ConfigDict

from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.errors import WorkspaceError, with_problem
from airflow_provider_workspace.notes.note import Note, Text, Time, digest, utc_now
from airflow_provider_workspace.notes.registry import NoteRegistry
from airflow_provider_workspace.notes.store import NoteStore, VariableStore
from airflow_provider_workspace.procedures.ends import REMOVED
from airflow_provider_workspace.version_compat import COMMAND

GRANT_PREFIX = "workspace_grant."


class Grant(Note):
    """
    Access of a person for a while. Times are seconds since 1970, and ISO 8601 in the Variable.

    Fields that a newer release of this package adds are ignored.

    :param service: base URL of the service
    :param then: the level after the end; ``None`` if the person is removed
    :param since: when it was noted
    :param requested_by: who started the Dag run; empty if nobody did, or it is not known
    :param approved_by: who approved it; empty if nobody was asked
    """

    model_config = ConfigDict(frozen=True, strict=True)

    dag_id: Text
    run_id: Text
    task_id: Text
    map_index: int = -1
    service: Text
    workspace_conn_id: Text
    organization_id: Text
    user_email: Text
    level: int
    then: int | None = None
    since: Time
    until: Time
    reason: Text
    requested_by: str = ""
    approved_by: str = ""

    @property
    def person(self) -> str:
        """The prefix of the Variable keys of all grants of the person."""
        return f"{GRANT_PREFIX}{digest(self.service, self.organization_id, address_key(self.user_email))}."

    @property
    def key(self) -> str:
        """The key of its Variable: a retry finds its own."""
        return self.person + digest(self.dag_id, self.run_id, self.task_id, str(self.map_index))

    @property
    def row(self) -> dict[str, Any]:
        """The grant as a row of a roster."""
        then = REMOVED if self.then is None else self.then
        return {"target_email": self.user_email, "level": self.level, "until": self.to_dict()["until"], "then": then}

    def is_over(self, now: datetime) -> bool:
        """Return whether the end has passed."""
        return now.timestamp() > self.until


class GrantRegistry(NoteRegistry[Grant, NoteStore]):
    """Reads and writes grants."""

    model = Grant

    @staticmethod
    def describe_unreadable(key: str, why: str) -> str:
        msg = f"Correct the Variable of a grant, or take the access away by hand and delete it: '{key}', {why}"
        return with_problem(msg, "grant-unreadable")

    def all(self) -> list[Grant]:
        """Return all grants, the one that ends first first; see :attr:`unreadable` for the others."""
        return sorted(self.find(GRANT_PREFIX, skip_failed=True), key=lambda grant: (grant.until, grant.key))

    def of_person(self, grant: Grant) -> list[Grant]:
        """
        Return all grants of the person of a grant.

        :raises WorkspaceError: if one of them is unreadable
        """
        found = self.find(grant.person)
        for key, why in self.unreadable.items():
            if key.startswith(grant.person):
                raise WorkspaceError(self.describe_unreadable(key, why), problem="grant-unreadable")
        return found

    def active(self, grant: Grant) -> list[Grant]:
        """Return the grants of the person of a grant that are not over now."""
        return [one for one in self.of_person(grant) if not one.is_over(utc_now())]


def rows_of(grants: Iterable[Grant]) -> list[dict[str, Any]]:
    """Return grants of one person as rows of a roster; of those that end together, the one with the highest level."""
    highest_last = sorted(grants, key=attrgetter("level"))
    return [grant.row for grant in {int(grant.until): grant for grant in highest_last}.values()]


# The store of grants for tasks.
VARIABLES = VariableStore(GRANT_PREFIX, "workspace_grants", f"Access for a while: {COMMAND} grants shows it.")
