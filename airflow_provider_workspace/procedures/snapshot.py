"""A snapshot of the lists of an organization, by e-mail address or id."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_workspace.api import operations as ops
from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.errors import WorkspaceIncompleteListError
from airflow_provider_workspace.procedures.find import pages_of

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Domain, Page, ProjectItem, Resource
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.client.client import WorkspaceClient

R = TypeVar("R", bound="Resource")


@dataclass(slots=True)
class Snapshot:
    """
    The contents of the lists.

    :param domains: domains by id
    :param invites: whether an invite has expired, by
        :func:`~airflow_provider_workspace.api.comparison.address_key`; of several invites an open one counts
    :param members: address keys of the members
    :param member_count: number of members that the service reports; ``None`` if it reports none
    :param incomplete: message about a list with fewer rows than it counts, whose missing rows prove nothing; empty if
        all lists are complete
    :param consistency_time: seconds for which the lists may miss new records
    """

    domains: dict[str, Domain] = field(default_factory=dict)
    projects: dict[str, ProjectItem] = field(default_factory=dict)
    invites: dict[str, bool] = field(default_factory=dict)
    invited_at: list[str] = field(default_factory=list)
    members: set[str] = field(default_factory=set)
    member_count: int | None = None
    incomplete: str = ""
    consistency_time: float = 0.0

    def open_invites(self) -> set[str]:
        """Return the keys of the addresses with an invite that has not expired."""
        return {key for key, expired in self.invites.items() if not expired}


def take_snapshot(
    client: WorkspaceClient,
    subject: str,
    organization_id: str,
    *,
    previous: Snapshot | None = None,
    wanted: Collection[str] | None = None,
    complete: bool = False,
) -> Snapshot:
    """
    Read the lists of one subject.

    :param subject: ``domains``, ``projects`` or ``people`` (invites and members)
    :param previous: an earlier snapshot of the same subject; avoids reading all members again if none can have changed
    :param wanted: the only addresses of interest; avoids reading members while all of them have open invites
    :param complete: whether to fail if a list has fewer rows than it counts, instead of noting it in the snapshot
    :raises WorkspaceRequestError: if a page cannot be read
    :raises WorkspaceIncompleteListError: if ``complete`` is set and a list has fewer rows than it counts
    """
    seen = Snapshot(consistency_time=client.settings.consistency_time)
    where: dict[str, Any] = {"organization_id": organization_id, "limit": client.settings.page_size}

    def rows(first: Operation[Page[R]], page: Page[R] | None = None) -> Iterator[R]:
        """Yield the rows; note that there are too few, or fail."""
        try:
            for found in pages_of(client, first, page):
                yield from found
        except WorkspaceIncompleteListError as error:
            if complete:
                raise
            seen.incomplete = str(error)

    if subject == "domains":
        seen.domains.update((row.id or "", row) for row in rows(ops.domains.ListDomains(**where)))
        return seen
    if subject == "projects":
        seen.projects.update((str(row.id), row) for row in rows(ops.projects.ListProjects(**where)))
        return seen
    for invite in rows(ops.invites.ListInvites(**where)):
        key = address_key(invite.target_email or "")
        seen.invited_at += [invite.created_at] if invite.created_at else []
        if key:
            seen.invites[key] = bool(invite.is_expired) and seen.invites.get(key, True)
    open_invites = seen.open_invites()
    if wanted is not None and open_invites.issuperset(wanted):
        return seen
    members = ops.members.ListMembers(**where)
    first = client.send(members)
    seen.member_count = first.count
    # A person joins by accepting an invite, which then disappears, or in another way that adds a member. If neither
    # happened since the previous snapshot, its members are still valid, and one page is enough to know.
    if (
        previous is not None
        and not previous.incomplete
        and first.count is not None
        and previous.member_count == first.count > len(first.results)
        and previous.open_invites() <= open_invites
    ):
        seen.members = previous.members
    else:
        emails = (row.user.email for row in rows(members, first) if row.user and row.user.email)
        seen.members.update(map(address_key, emails))
    return seen
