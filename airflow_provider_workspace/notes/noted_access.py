"""What notes say about the people of an organization: temporary access, and the decisions of reviews."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.notes import decisions, grants
from airflow_provider_workspace.notes.decisions import ReviewRegistry
from airflow_provider_workspace.notes.grants import GRANT_PREFIX, GrantRegistry
from airflow_provider_workspace.notes.note import utc_now
from airflow_provider_workspace.procedures.entitlements import NotedAccess, TemporaryAccess
from airflow_provider_workspace.procedures.people import Person
from airflow_provider_workspace.procedures.plan import FINISHED, Plan
from airflow_provider_workspace.version_compat import lists_variables

if TYPE_CHECKING:
    from airflow_provider_workspace.client.settings import Settings
    from airflow_provider_workspace.notes.grants import Grant

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AccessNotes:
    """
    The notes about the people of one organization.

    :param service: base URL of the service
    """

    service: str
    organization_id: str
    grants: GrantRegistry
    reviews: ReviewRegistry

    @classmethod
    def of_tasks(cls, settings: Settings, organization_id: str) -> AccessNotes:
        """Return the notes as tasks reach them."""
        registry = GrantRegistry(grants.VARIABLES)
        return cls(settings.base_url, organization_id, registry, ReviewRegistry(decisions.VARIABLES))

    def read(self) -> NotedAccess:
        """
        Read the notes that count now.

        :raises WorkspaceError: if one of them is unreadable: nobody can tell whom it is about
        """
        if not lists_variables():  # there are no such notes before Airflow 3.3
            return NotedAccess()
        now = utc_now()
        noted = self.grants.find(GRANT_PREFIX)
        for key, why in self.grants.unreadable.items():
            raise WorkspaceError(self.grants.describe_unreadable(key, why), problem="grant-unreadable")
        here = [grant for grant in noted if self._is_here(grant) and not grant.is_over(now)]
        return NotedAccess(
            grants=[temporary_access_of(grant) for grant in here],
            decisions=self.reviews.decisions_of(self.service, self.organization_id),
        )

    def settle(self, plan: Plan) -> None:
        """Delete the notes of grants that ended with the changes of a plan, and of decisions that it overruled."""
        for change in plan.changes:
            result = plan.outcomes.get(change)
            if result is None or result.status not in FINISHED:
                continue
            for ended in change.ends:
                grant = self.grants.read(ended.key)
                if grant is not None and self.grants.end(grant):
                    log.info("%s: the temporary access until %s is ended.", ended.person.email, ended.until)
            if change.overrules:
                self.reviews.lift(change.overrules)

    def _is_here(self, grant: Grant) -> bool:
        return grant.service == self.service and grant.organization_id == self.organization_id


def temporary_access_of(grant: Grant) -> TemporaryAccess:
    """Return a grant, as entitlements know it."""
    person = Person(
        email=grant.user_email,
        since=grant.since,
        user_uuid=grant.user_uuid,
        invite_ids=frozenset({grant.invite_id} if grant.invite_id else ()),
    )
    return TemporaryAccess(
        person=person,
        level=grant.level,
        since=grant.since,
        until=str(grant.row["until"]),
        approved_by=grant.approved_by,
        key=grant.key,
        then=grant.then,
    )
