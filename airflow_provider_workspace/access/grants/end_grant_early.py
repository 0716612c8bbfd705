"""End temporary access before its end: its notes get a new end and who wants it, and then are ended like others."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.access.grants.end_grants import end_grants
from airflow_provider_workspace.access.grants.notes import GrantRegistry
from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.notes.note import utc_now
from airflow_provider_workspace.version_compat import COMMAND

if TYPE_CHECKING:
    from airflow_provider_workspace.access.grants.end_grants import GrantsEnded
    from airflow_provider_workspace.access.grants.evidence import GrantEvidence
    from airflow_provider_workspace.access.grants.notes import Grant
    from airflow_provider_workspace.access.reviews.notes import ReviewRegistry
    from airflow_provider_workspace.notes.store import NoteStore

log = logging.getLogger(__name__)

NOBODY = "no temporary access is noted for"


@dataclass(frozen=True)
class EarlyEnd:
    """
    The wish to end the temporary access of a person.

    :param user_email: an address of the person in the notes
    :param ended_by: who wants it
    :param organization_id: the organization; ``None`` if the person has temporary access in one only
    :param service: base URL of the service; ``None`` for any
    """

    user_email: str
    ended_by: str
    organization_id: str | None = None
    service: str | None = None

    def is_at(self, grant: Grant) -> bool:
        """Return whether a grant is in the place of this."""
        is_service = self.service in (None, grant.service)
        return is_service and self.organization_id in (None, grant.organization_id)

    def names(self, grant: Grant) -> bool:
        """Return whether a grant has the address of this."""
        return address_key(grant.user_email) == address_key(self.user_email)

    def grants_of(self, registry: GrantRegistry) -> list[Grant]:
        """
        Return the grants of the person, also those under another address of the same user.

        :raises WorkspaceInputError: if nobody can tell whose access is to end
        """
        here = [grant for grant in registry.all() if self.is_at(grant)]
        named = [grant for grant in here if self.names(grant)]
        places = {(grant.service, grant.organization_id) for grant in named}
        if len(places) > 1:
            organizations = ", ".join(sorted(grant.organization_id for grant in named))
            msg = f"{self.user_email} has temporary access in {len(places)} organizations. Name one: {organizations}"
            raise WorkspaceInputError(msg)
        users = {grant.user_uuid for grant in named if grant.user_uuid}
        if len(users) > 1:
            variables = ", ".join(f"'{grant.key}' (user {grant.user_uuid})" for grant in named)
            why = f"{len(users)} users had the address {self.user_email}, so nobody can tell whose access is to end"
            cure = "Set until of the right Variables to a time that is over"
            raise WorkspaceInputError(f"{why}. {cure}: {variables}")
        return [grant for grant in here if self.names(grant) or grant.user_uuid in users]


@dataclass(frozen=True)
class TrialStore:
    """
    Shows notes as they would be after some writes, and writes nothing.

    :param values: what would be written, ``None`` for what would be deleted
    """

    store: NoteStore
    values: dict[str, str | None] = field(default_factory=dict[str, "str | None"])

    def list_keys(self) -> list[str]:
        return self.store.list_keys()

    def read(self, key: str) -> str | None:
        if key in self.values:
            return self.values[key]
        return self.store.read(key)

    def add(self, key: str, value: str) -> None:
        self.values[key] = value

    def write(self, key: str, value: str) -> None:
        self.values[key] = value

    def delete(self, key: str) -> None:
        self.values[key] = None


def end_early(
    registry: GrantRegistry,
    reviews: ReviewRegistry,
    wish: EarlyEnd,
    protected: Collection[Any] = (),
    *,
    dry_run: bool = False,
    evidence: GrantEvidence | None = None,
) -> GrantsEnded:
    """
    End the grants of a person now, with the proof that the sweep asks for.

    What cannot be ended stays noted with its new end, and the next sweep ends it.

    :param protected: rows or addresses of people who are never removed or lowered
    :param dry_run: whether to send and write nothing, and say what would be done
    :param evidence: keeps a file for each grant that ended; ``None`` for none
    :raises WorkspaceInputError: if the person has none, or nobody can tell whose access is to end
    """
    if dry_run:
        registry = GrantRegistry(TrialStore(registry.store))
    grants = wish.grants_of(registry)
    if not grants:
        more = f", and {len(registry.unreadable)} Variables are unreadable" if registry.unreadable else ""
        why = f"{NOBODY} {wish.user_email}{more}"
        raise WorkspaceInputError(f"{why}. Look at '{COMMAND} grants', and give an address that it shows")
    now = utc_now()
    keys: set[str] = set()
    for grant in grants:
        keys.add(grant.key)
        if not grant.is_over(now):
            _cut(registry, grant, now.timestamp(), wish.ended_by)
    return end_grants(registry, reviews, protected, dry_run=dry_run, only=frozenset(keys), evidence=evidence)


def _cut(registry: GrantRegistry, grant: Grant, now: float, ended_by: str) -> None:
    """Note that a grant is over, and who ended it."""
    log.info("%s: %s ends the temporary access until %s now.", grant.user_email, ended_by, grant.row["until"])
    agreed_until = grant.agreed_until or grant.until
    registry.change(grant, until=float(int(now) - 1), ended_by=ended_by, agreed_until=agreed_until)
