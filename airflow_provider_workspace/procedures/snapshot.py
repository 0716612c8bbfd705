"""A snapshot of the lists of an organization, by e-mail address or id."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_workspace.api import operations as ops
from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.errors import WorkspaceIncompleteListError
from airflow_provider_workspace.procedures.find import check_all_shown, checked_pages_of

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Domain, Page, ProjectItem, Resource
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.client.client import WorkspaceClient

# How many polls may reuse the members: somebody may leave and another join, and neither count nor first page tell.
MAX_REUSES = 4
NO_MEMBERS = "The list of members is empty, although the owner of the API key is a member"

R = TypeVar("R", bound="Resource")


@dataclass(slots=True)
class Snapshot:
    """
    The contents of the lists.

    :param domains: domains by id
    :param invites: whether an invite has expired, by
        :func:`~airflow_provider_workspace.api.comparison.address_key`; of several invites an open one counts
    :param invite_levels: the level of the last open invite, by address key; ``None`` if it is not shown
    :param members: address keys of the members
    :param read_at: when it was read, in seconds of the caller's clock
    :param closed_at: when the first poll showed no open invite any more, by address key
    :param hidden_members: number of members whose address the service does not show
    :param member_count: number of members that the service reports; ``None`` if it reports none
    :param first_members: id and address of each row of the first page of members
    :param reuses: how many polls have reused the members since all pages were read
    :param must_read_all: whether the next poll must read all pages, because a wait may end with it
    :param incomplete: message about a list with fewer rows than it counts, whose missing rows prove nothing; empty if
        all lists are complete
    :param consistency_time: seconds for which the lists may miss new records
    """

    domains: dict[str, Domain] = field(default_factory=dict)
    projects: dict[str, ProjectItem] = field(default_factory=dict)
    invites: dict[str, bool] = field(default_factory=dict)
    invite_levels: dict[str, int | None] = field(default_factory=dict)
    invited_at: list[str] = field(default_factory=list)
    read_at: float = 0.0
    closed_at: dict[str, float] = field(default_factory=dict)
    members: set[str] = field(default_factory=set)
    hidden_members: int = 0
    member_count: int | None = None
    first_members: list[tuple[str | None, str | None]] = field(default_factory=list)
    reuses: int = 0
    must_read_all: bool = False
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
    now: float = 0.0,
    withdrawn: Collection[str] = (),
) -> Snapshot:
    """
    Read the lists of one subject.

    :param subject: ``domains``, ``projects`` or ``people`` (invites and members)
    :param previous: an earlier snapshot of the same subject; avoids reading all members again if none can have changed
    :param wanted: the only addresses of interest; avoids reading members while all of them have open invites
    :param now: seconds of a clock that is that of ``previous``
    :param complete: whether to fail if a list has fewer rows than it counts, instead of noting it in the snapshot
    :param withdrawn: ids of invites that were withdrawn just now; a list that still shows them is late
    :raises WorkspaceRequestError: if a page cannot be read
    :raises WorkspaceIncompleteListError: if ``complete`` is set and a list has fewer rows than it counts
    """
    reading = _Reading(client, organization_id, complete=complete)
    reading.seen.read_at = now
    if subject == "domains":
        reading.read_domains()
    elif subject == "projects":
        reading.read_projects()
    else:
        reading.read_invites(previous, withdrawn)
        all_are_invited = wanted is not None and reading.seen.open_invites().issuperset(wanted)
        if not all_are_invited:
            reading.read_members(previous)
    return reading.seen


class _Reading:
    """Reads lists into a snapshot."""

    def __init__(self, client: WorkspaceClient, organization_id: str, *, complete: bool) -> None:
        self.seen = Snapshot(consistency_time=client.settings.consistency_time)
        self._client = client
        self._complete = complete
        self._where: dict[str, Any] = {"organization_id": organization_id, "limit": client.settings.page_size}

    def _rows(self, first: Operation[Page[R]], page: Page[R] | None = None) -> Iterator[R]:
        """Yield the rows; note that there are too few, or fail."""
        try:
            for rows in checked_pages_of(self._client, first, page):
                yield from rows
        except WorkspaceIncompleteListError as error:
            if self._complete:
                raise
            self.seen.incomplete = str(error)

    def read_domains(self) -> None:
        for row in self._rows(ops.domains.ListDomains(**self._where)):
            self.seen.domains[row.id or ""] = row

    def read_projects(self) -> None:
        for row in self._rows(ops.projects.ListProjects(**self._where)):
            self.seen.projects[str(row.id)] = row

    def read_invites(self, previous: Snapshot | None, withdrawn: Collection[str]) -> None:
        for invite in self._rows(ops.invites.ListInvites(**self._where)):
            if invite.created_at:
                self.seen.invited_at.append(invite.created_at)
            key = address_key(invite.target_email or "")
            if key and invite.id not in withdrawn:
                has_only_expired = self.seen.invites.get(key, True)
                self.seen.invites[key] = bool(invite.is_expired) and has_only_expired
                if not invite.is_expired:
                    self.seen.invite_levels[key] = invite.level
        if previous is None:
            return
        still_open = self.seen.open_invites()
        closed_at = dict.fromkeys(previous.open_invites(), self.seen.read_at) | previous.closed_at
        self.seen.closed_at = {key: since for key, since in closed_at.items() if key not in still_open}

    def read_members(self, previous: Snapshot | None) -> None:
        members = ops.members.ListMembers(**self._where)
        first = self._client.send(members)
        self.seen.member_count = first.count
        self.seen.first_members = [(row.id, row.user.email if row.user else None) for row in first.results]
        if previous is not None and self._may_reuse_members(previous):
            self.seen.members = previous.members
            self.seen.hidden_members = previous.hidden_members
            self.seen.reuses = previous.reuses + 1
            return
        shown = 0
        for row in self._rows(members, first):
            shown += 1
            if row.user and row.user.email:
                self.seen.members.add(address_key(row.user.email))
            else:
                self.seen.hidden_members += 1
        if not self.seen.members and not self.seen.hidden_members and not self.seen.incomplete:
            self.seen.incomplete = NO_MEMBERS
        if not self.seen.incomplete:
            self._check_all_shown(shown)

    def _check_all_shown(self, shown: int) -> None:
        """Note that the list hides members, or fail."""
        try:
            check_all_shown(self._client, self._where["organization_id"], shown)
        except WorkspaceIncompleteListError as error:
            if self._complete:
                raise
            self.seen.incomplete = str(error)

    def _may_reuse_members(self, previous: Snapshot) -> bool:
        """
        Return whether the members of an earlier snapshot may still be valid, so that one page is enough for this poll.

        A person joins by accepting an invite, which then disappears, or in another way that adds a member. Who joins
        when somebody else leaves changes no count; so all pages are read again after a few polls.
        """
        now, count = self.seen, self.seen.member_count
        if previous.incomplete or previous.must_read_all or count is None or count <= len(now.first_members):
            return False
        if previous.reuses >= MAX_REUSES or previous.first_members != now.first_members:
            return False
        return previous.member_count == count and previous.open_invites() <= now.open_invites()
