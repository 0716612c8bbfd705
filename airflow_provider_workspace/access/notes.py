"""What notes say about the people of an organization: temporary access, and the decisions of reviews."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_workspace.access.door import Door
from airflow_provider_workspace.access.grants import notes as grants
from airflow_provider_workspace.access.grants.notes import GRANT_PREFIX, GrantRegistry, active_grant_of
from airflow_provider_workspace.access.members.lines import MemberChange
from airflow_provider_workspace.access.reviews import notes as decisions
from airflow_provider_workspace.access.reviews.notes import ReviewRegistry
from airflow_provider_workspace.access.rules.entitlements import NotedAccess
from airflow_provider_workspace.api.operations.members import DeleteMember, UpdateMember
from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.notes.note import utc_now
from airflow_provider_workspace.procedures.plan import FINISHED
from airflow_provider_workspace.version_compat import lists_variables

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from airflow_provider_workspace.access.grants.notes import Grant
    from airflow_provider_workspace.access.rules.entitlements import ActiveGrant
    from airflow_provider_workspace.access.rules.guards import Guards
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.client.settings import Settings
    from airflow_provider_workspace.procedures.plan import Change, Plan

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
        registry = GrantRegistry(grants.GRANT_VARIABLES)
        return cls(settings.base_url, organization_id, registry, ReviewRegistry(decisions.REVIEW_VARIABLES))

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
            grants=[active_grant_of(grant) for grant in here],
            decisions=self.reviews.decisions_of(self.service, self.organization_id),
        )

    def overrule(self, plan: Plan) -> None:
        """Note which decisions an approved plan overrules, before it is sent: a retry after a kill knows it."""
        for change in _member_changes(plan):
            if change.overrules:
                self.reviews.overrule(change.overrules)

    def door(self, client: WorkspaceClient, guards: Guards) -> Door:
        """Return what is asked before one person gets or loses access."""
        return Door(client, self.organization_id, guards, self.read(), utc_now())

    def settle(self, plan: Plan) -> None:
        """
        Delete the notes of grants that ended with the changes of a plan, and of decisions that it overruled.

        :raises WorkspaceError: if temporary access began while the plan took away what the person had before
        """
        finished = [change for change in _member_changes(plan) if _is_finished(plan, change)]
        for change in finished:
            self.end(change.ends)
            if change.overrules:
                self.reviews.lift(change.overrules)
        self._raise_if_undone([change for change in finished if change.takes_from_person])

    def end(self, grants_over: Iterable[ActiveGrant]) -> None:
        """Delete the notes of grants whose people have lost their access."""
        for ended in grants_over:
            grant = self.grants.read(ended.key)
            if grant is not None and self.grants.end(grant):
                log.info("%s: the temporary access until %s is ended.", ended.person.email, ended.until)

    def _raise_if_undone(self, taken: Sequence[MemberChange]) -> None:
        """Refuse to end well after taking what a grant gave that was noted after the plan was made."""
        if not taken:
            return
        noted = self.read()
        undone: list[str] = []
        for change in taken:
            ended = {grant.key for grant in change.ends}
            left: int = change.after.get("level", -1)
            noted_now = noted.of_member(change.person, _user_of(change)).grants
            begun = [grant for grant in noted_now if grant.key not in ended and grant.level > left]
            undone += [f"{change.name}: {grant}" for grant in begun]
        if undone:
            raise WorkspaceError(
                f"This task took away what temporary access gave meanwhile ({len(undone)}). End that access, or start "
                f"a new run of the Dag that gives it: {'; '.join(undone)}",
                permanent=True,
                problem="granted-meanwhile",
            )

    def _is_here(self, grant: Grant) -> bool:
        return grant.service == self.service and grant.organization_id == self.organization_id


def _member_changes(plan: Plan) -> list[MemberChange]:
    return [change for change in plan.changes if isinstance(change, MemberChange)]


def _is_finished(plan: Plan, change: Change) -> bool:
    result = plan.outcomes.get(change)
    return result is not None and result.status in FINISHED


def _user_of(change: Change) -> str:
    """Return the user whom a change is about; empty of an invite."""
    operation = change.operation
    return str(operation.user_uuid) if isinstance(operation, DeleteMember | UpdateMember) else ""
