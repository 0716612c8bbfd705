"""Plan the changes that make the collaborators of a dashboard those of an organization file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.access.rules.guards import HIDDEN
from airflow_provider_workspace.api import operations as ops
from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.api.models import Member, User
from airflow_provider_workspace.procedures.access_list import (
    AccessEntry,
    AccessList,
    collaborator_identity,
    homes_of,
    users_by_address,
)
from airflow_provider_workspace.procedures.find import read_rows
from airflow_provider_workspace.procedures.people import one_row_each
from airflow_provider_workspace.procedures.plan import Action, Change

if TYPE_CHECKING:
    from airflow_provider_workspace.access.rules.guards import Guards
    from airflow_provider_workspace.api.models import DashboardCollaborator
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.organization.file import Collaborator

NOT_IN_FILE = "not in the file"


@dataclass(frozen=True, slots=True)
class DashboardCollaborators:
    """
    A dashboard whose collaborators are planned.

    :param project: name of its project
    :param ids: ids of its project and its own; ``None`` if it does not exist yet
    """

    project: str
    name: str
    ids: Mapping[str, Any] | None

    def name_of(self, who: str) -> str:
        """Return the name of a collaborator, for people."""
        return f"collaborator {who} of {self.project} / {self.name}"


def plan_collaborators(
    client: WorkspaceClient,
    dashboard: DashboardCollaborators,
    wanted: Iterable[Collaborator],
    *,
    members: Sequence[Member],
    now: datetime,
    access_list: AccessList,
    guards: Guards,
    is_complete: bool,
) -> list[Change]:
    """
    Compare the collaborators of a dashboard with those of the file.

    :param wanted: the rows of the file; of those of one person, the one without an end counts, or with the last
    :param members: the members of the organization
    :param access_list: gets the collaborators that are there
    :param guards: who keeps the dashboard
    :param is_complete: whether people whom no row names are removed
    """
    listed: list[DashboardCollaborator] = []
    if dashboard.ids:
        listed = read_rows(client, ops.dashboards.ListDashboardCollaborators(**dashboard.ids))
        for row in listed:
            identity = collaborator_identity(dashboard.ids["dashboard_id"], row.user_uuid or row.label)
            name = dashboard.name_of(row.label or "-")
            access_list.add(identity, AccessEntry(name, row.level))
    people = one_row_each(members)
    rows_in_order = sorted(wanted, key=attrgetter("moment"))
    rows = {address_key(row.email): row for row in rows_in_order}
    planner = _Planner(
        dashboard=dashboard,
        rows=rows,
        listed=listed,
        users=users_by_address(people),
        homes=homes_of(people),
        levels={member.user_uuid: member.level for member in people},
        guards=guards,
        now=now,
        is_complete=is_complete,
    )
    return planner.changes()


@dataclass(frozen=True, kw_only=True)
class _Planner:
    """
    Compares the rows of a file with the collaborators of a dashboard; see :func:`plan_collaborators`.

    :param rows: the row of each person that counts, by the key of their address
    :param users: the users of each address
    :param homes: the key of the address of each user
    :param levels: the level of each user who is a member
    """

    dashboard: DashboardCollaborators
    rows: Mapping[str, Collaborator]
    listed: Sequence[DashboardCollaborator]
    users: Mapping[str, Sequence[str]]
    homes: Mapping[str, str]
    levels: Mapping[str | None, int | None]
    guards: Guards
    now: datetime
    is_complete: bool

    @cached_property
    def _collaborators(self) -> dict[str, list[DashboardCollaborator]]:
        """The collaborators by the key of their address, which is empty if they show none."""
        collaborators: dict[str, list[DashboardCollaborator]] = {}
        for collaborator in self.listed:
            collaborators.setdefault(self._key_of(collaborator), []).append(collaborator)
        return collaborators

    def _key_of(self, collaborator: DashboardCollaborator) -> str:
        """Return the key of the address, which the members may show; empty if nobody does."""
        home = self.homes.get(collaborator.label or "")
        if home:
            return home
        email = collaborator.user.email if collaborator.user else None
        return address_key(email or "")

    @cached_property
    def _nameless(self) -> list[DashboardCollaborator]:
        """The collaborators without an address."""
        return self._collaborators.get("", [])

    def changes(self) -> list[Change]:
        """Return the changes, and what is not sent."""
        changes: list[Change | None] = []
        for key, row in self.rows.items():
            collaborators = self._collaborators.get(key, [])
            changes += [self._of_collaborator(key, collaborator, row) for collaborator in collaborators]
            if not collaborators:
                changes.append(self._of_newcomer(key, row))
        if self.is_complete:
            changes += self._of_unnamed()
        return [change for change in changes if change is not None]

    def _of_unnamed(self) -> list[Change]:
        """Remove the collaborators whom no row names, those without an address last."""
        changes: list[Change] = []
        for key, collaborators in self._collaborators.items():
            if key and key not in self.rows:
                changes += [self._removal(key, collaborator, NOT_IN_FILE) for collaborator in collaborators]
        changes += [self._removal("", collaborator, NOT_IN_FILE) for collaborator in self._nameless]
        return changes

    def _of_collaborator(self, key: str, collaborator: DashboardCollaborator, row: Collaborator) -> Change | None:
        """Compare a collaborator with the row of the person; ``None`` if nothing differs."""
        who = self._who(key, collaborator)
        is_over = row.is_over(self.now)
        if row.level is not None and collaborator.level != row.level:
            before = {"level": collaborator.level}
            if is_over:
                why = f"{row.over}, but it was changed since: it was {row.level}; remove them by hand if they should go"
                return self._change("differs", who, before=before, why=why)
            why = "remove the collaborator by hand and run this again: the interface cannot change a level"
            return self._change("differs", who, before=before, after={"level": row.level}, why=why)
        if is_over:
            return self._removal(key, collaborator, row.over)
        if str(row):
            return self._change("wait", who, why=str(row))
        return None

    def _removal(self, key: str, collaborator: DashboardCollaborator, why: str) -> Change:
        """Return the removal of a collaborator; the key is empty if they have no address."""
        before = {"level": collaborator.level}
        if not (key and collaborator.label and self.dashboard.ids):
            who = self._who(key, collaborator) or collaborator.label or "-"
            why = "no member, and the service does not show who it is: remove them by hand if they should go"
            return self._change("unknown", who, before=before, why=why, should_lose=True)
        who = self._who(key, collaborator)
        member = Member(user=User(email=key), level=self.levels.get(collaborator.label, 0))
        why_kept = self.guards.why_kept(member)
        if why_kept:
            return self._kept(who, f"{why}, but {why_kept}", before)
        user_uuid = collaborator.user_uuid or collaborator.label
        operation = ops.dashboards.RemoveDashboardCollaborator(**self.dashboard.ids, user_uuid=user_uuid)
        return self._change("remove", who, before=before, why=why, operation=operation)

    def _kept(self, who: str, why: str, before: Mapping[str, Any]) -> Change:
        """Leave a collaborator alone; only a person may take away what a row ends."""
        if HIDDEN in why:
            return self._change("unknown", who, before=before, why=why, should_lose=True)
        if why.startswith(NOT_IN_FILE):
            return self._change("skip", who, before=before, why=why, mark="kept")
        cure = "remove them by hand"
        return self._change("differs", who, before=before, why=why, cure=cure, should_lose=True)

    def _of_newcomer(self, key: str, row: Collaborator) -> Change | None:
        """Add somebody who is no collaborator, as far as their addresses show; ``None`` if that is as wanted."""
        users = self.users.get(key, [])
        if row.is_over(self.now):
            if users or not self._nameless:
                return None
            why = f"{row.over}, unless {self._one_of_nameless}"
            intended = self._intended(key, {})
            return self._change("unknown", row.email, why=why, intended=intended, should_lose=True)
        level: dict[str, Any] = {} if row.level is None else {"level": row.level}
        after = level | row.fields
        intended = self._intended(key, after)
        if not users:
            why = "not a member yet; added after joining"
            if self._nameless:
                why += f", unless {self._one_of_nameless}"
            if str(row):
                why += f", {row}"
            action: Action = "unknown" if self._nameless else "wait"
            return self._change(action, row.email, after=after, why=why, intended=intended)
        if len(users) > 1:
            why = f"{len(users)} users have this address ({', '.join(users)}): add the right one by hand"
            return self._change("differs", row.email, after=after, why=why)
        operation: Operation[Any] | None = None
        if self.dashboard.ids:
            operation = ops.dashboards.AddDashboardCollaborator(**self.dashboard.ids, user_uuid=users[0], **level)
        return self._change("create", row.email, after=after, why=str(row), operation=operation, intended=intended)

    @property
    def _one_of_nameless(self) -> str:
        return f"one of {len(self._nameless)} collaborators without an e-mail address is this person"

    def _intended(self, key: str, after: Mapping[str, Any]) -> dict[str, Any]:
        return {"project": self.dashboard.project, "dashboard": self.dashboard.name, "email": key, **after}

    def _who(self, key: str, collaborator: DashboardCollaborator) -> str:
        """Return an address, with the user if several collaborators have it; empty without one."""
        has_namesake = bool(key) and len(self._collaborators[key]) > 1
        return f"{key} (user {collaborator.label or '-'})" if has_namesake else key

    def _change(self, action: Action, who: str, **fields: Any) -> Change:
        """Return a change of a collaborator."""
        return Change(action, "collaborators", self.dashboard.name_of(who), **fields)
