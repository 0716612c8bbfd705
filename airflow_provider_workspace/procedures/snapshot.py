"""A snapshot of what people wait for: the lists of an organization, read once and kept by address or id."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from airflow_provider_workspace.api import operations as ops
from airflow_provider_workspace.api.outcome import Outcome
from airflow_provider_workspace.api.pagination import Pages
from airflow_provider_workspace.api.procedure import Procedure, send_one
from airflow_provider_workspace.api.request_errors import described
from airflow_provider_workspace.errors import WorkspaceIncompleteListError
from airflow_provider_workspace.procedures.roster import address_key

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Domain, Invite, Member, Page, ProjectItem, Resource
    from airflow_provider_workspace.api.operation import Operation

R = TypeVar("R", bound="Resource")


@dataclass(slots=True)
class Snapshot:
    """
    What the lists showed.

    :param domains: by id, in small letters
    :param projects: by id
    :param invites: by :func:`~airflow_provider_workspace.procedures.roster.address_key`, whether it has expired; a
        living one counts where there are several
    :param invite_count: how many invites there were
    :param invited_at: when the invites were made
    :param members: the same keys of those who are members
    :param member_count: what the service says how many members there are; ``None`` if it does not
    :param incomplete: what to say of a list that stayed shorter than it counts, so that nothing is proven by what it
        does not show; empty if all are complete
    :param consistency_time: seconds for which the lists may miss what was just made
    """

    domains: dict[str, Domain] = field(default_factory=dict)
    projects: dict[str, ProjectItem] = field(default_factory=dict)
    invites: dict[str, bool] = field(default_factory=dict)
    invite_count: int = 0
    invited_at: list[str] = field(default_factory=list)
    members: set[str] = field(default_factory=set)
    member_count: int | None = None
    incomplete: str = ""
    consistency_time: float = 0.0

    def living(self) -> set[str]:
        """Return the addresses that hold an invite that has not expired."""
        return {key for key, expired in self.invites.items() if not expired}


def take_snapshot(
    subject: str,
    organization_id: str,
    page_size: int,
    *,
    previous: Snapshot | None = None,
    wanted: Collection[str] | None = None,
    complete: bool = False,
    consistency_time: float = 0.0,
) -> Procedure[Snapshot]:
    """
    Read the lists of one subject.

    :param subject: ``domains``, ``projects`` or ``people`` (invites and members)
    :param previous: an earlier snapshot of the same; saves reading all members again where nothing can have changed
    :param wanted: the only addresses of interest; saves reading members while all of them hold living invites
    :param complete: fail if a list stays short, for what is missed would be done twice; without, the snapshot says so
    :param consistency_time: seconds for which the lists may miss what was just made
    :raises WorkspaceRequestError: if a page cannot be read
    :raises WorkspaceIncompleteListError: if a list stays short that must be complete
    """
    seen = Snapshot(consistency_time=consistency_time)
    try:
        if subject == "domains":
            yield from _each_row(
                ops.domains.ListDomains(organization_id=organization_id, limit=page_size),
                lambda row: seen.domains.__setitem__(str(row.id).lower(), row),
            )
        elif subject == "projects":
            yield from _each_row(
                ops.projects.ListProjects(organization_id=organization_id, limit=page_size),
                lambda row: seen.projects.__setitem__(str(row.id), row),
            )
        elif subject == "people":
            yield from _read_people(seen, organization_id, page_size, previous, wanted, complete=complete)
        else:
            raise ValueError(subject)
    except WorkspaceIncompleteListError as error:
        if complete:
            raise
        seen.incomplete = str(error)
    return seen


def _read_people(
    seen: Snapshot,
    organization_id: str,
    page_size: int,
    previous: Snapshot | None,
    wanted: Collection[str] | None,
    *,
    complete: bool,
) -> Procedure[None]:
    """
    Read the invites, and the members only as far as needed.

    Somebody joins by accepting an invite, which then is gone, or in another way, and then the members are more. If
    neither happened since the previous snapshot, its members are still right, and one page told so.
    """
    invites = ops.invites.ListInvites(organization_id=organization_id, limit=page_size)
    try:
        yield from _each_row(invites, lambda row: _note_invite(seen, row))
    except WorkspaceIncompleteListError as error:
        if complete:
            raise
        seen.incomplete = str(error)
    living = seen.living()
    if wanted is not None and living.issuperset(wanted):
        return
    members = ops.members.ListMembers(organization_id=organization_id, limit=page_size)
    first = yield from send_one(members)
    seen.member_count = first.count
    if (
        previous is not None
        and not previous.incomplete
        and first.count is not None
        and previous.member_count == first.count > len(first.results)
        and previous.living() <= living
    ):
        seen.members = previous.members
        return
    yield from _each_row(members, lambda row: _note_member(seen, row), first)


def _note_invite(seen: Snapshot, invite: Invite) -> None:
    """Keep an invite; one that has not expired counts more than others of the same address."""
    key = address_key(invite.target_email or "")
    seen.invite_count += 1
    if invite.created_at:
        seen.invited_at.append(invite.created_at)
    if key:
        seen.invites[key] = bool(invite.is_expired) and seen.invites.get(key, True)


def _note_member(seen: Snapshot, member: Member) -> None:
    """Keep a member."""
    if member.user and member.user.email:
        seen.members.add(address_key(member.user.email))


def _label(row: Resource) -> str | None:
    return row.label


def _each_row(
    first: Operation[Page[R]],
    note: Callable[[R], object],
    page: Page[R] | None = None,
    *,
    told_by: Callable[[R], object] = _label,
) -> Procedure[None]:
    """
    Read a list to its end.

    :param note: called with each row once; reading ends when it returns true
    :param page: the first page, if it was read already
    :param told_by: returns what tells the rows apart, by default what people know them by
    :raises WorkspaceIncompleteListError: if the list stays shorter than it counts, or no row shows what tells it apart
    """
    pages = Pages(first, "")
    following: Operation[Page[R]] | None = first
    rows = told = 0
    while following is not None:
        page = page or (yield from send_one(following))
        for row in pages.fresh(page):
            rows += 1
            told += bool(told_by(row))
            if note(row):
                return
        following, page = pages.following(page), None
    if rows and not told:
        msg = (
            "Check that the service answers as the interface says, and that the owner of the API key may see names and "
            f"addresses: {described(first, f'gave {rows} rows, and none shows which it is')} Nothing was changed."
        )
        raise WorkspaceIncompleteListError(
            msg, operation=type(first).__name__, outcome=Outcome.REJECTED.value, retryable=False
        )


def read_rows(first: Operation[Page[R]], *, told_by: Callable[[R], object] = _label) -> Procedure[list[R]]:
    """
    Read a list to its end.

    :param first: the operation that asks for the first page
    :param told_by: returns what tells the rows apart, by default what people know them by
    :return: each row once
    :raises WorkspaceIncompleteListError: if the list stays shorter than it counts, or no row shows what tells it apart
    """
    rows: list[R] = []
    yield from _each_row(first, rows.append, told_by=told_by)
    return rows


def find_row(
    first: Operation[Page[R]], wanted: Callable[[R], bool], *, told_by: Callable[[R], object] = _label
) -> Procedure[R | None]:
    """
    Look for a row of a list.

    :param first: the operation that asks for the first page
    :param told_by: returns what tells the rows apart, by default what people know them by
    :return: the first row that is wanted; ``None`` if there is none
    :raises WorkspaceIncompleteListError: if it is not found, and the list stays shorter than it counts, or no row shows
        what tells it apart
    """
    found: list[R] = []

    def note(row: R) -> bool:
        if wanted(row):
            found.append(row)
        return bool(found)

    yield from _each_row(first, note, told_by=told_by)
    return found[0] if found else None
