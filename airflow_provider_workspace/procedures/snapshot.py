"""A snapshot of what people wait for: the lists of an organization, read once and kept by address or id."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_workspace.api import operations as ops
from airflow_provider_workspace.api.pagination import Pages
from airflow_provider_workspace.api.procedure import Procedure, send_one
from airflow_provider_workspace.api.retry import MAX_READS
from airflow_provider_workspace.procedures.roster import address_key

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Domain, Invite, Member, Page, ProjectItem
    from airflow_provider_workspace.api.operation import Operation

T = TypeVar("T")


@dataclass(slots=True)
class Snapshot:
    """
    What the lists showed.

    :param domains: by id, in small letters
    :param projects: by id
    :param invites: by :func:`~airflow_provider_workspace.procedures.roster.address_key`, whether it has expired; a
        living one counts where there are several
    :param invited_at: when the invites were made
    :param members: the same keys of those who are members
    :param member_count: what the service says how many members there are; ``None`` if it does not
    """

    domains: dict[str, Domain] = field(default_factory=dict)
    projects: dict[str, ProjectItem] = field(default_factory=dict)
    invites: dict[str, bool] = field(default_factory=dict)
    invited_at: list[str] = field(default_factory=list)
    members: set[str] = field(default_factory=set)
    member_count: int | None = None

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
) -> Procedure[Snapshot]:
    """
    Read the lists of one subject.

    :param subject: ``domains``, ``projects`` or ``people`` (invites and members)
    :param previous: an earlier snapshot of the same; saves reading all members again where nothing can have changed
    :param wanted: the only addresses of interest; saves reading members while all of them hold living invites
    :param complete: read a list again that came with fewer rows than it counts, for what is missed would be done twice
    :raises WorkspaceRequestError: if a page cannot be read
    """
    seen = Snapshot()
    if subject == "domains":
        yield from _each_row(
            ops.domains.ListDomains(organization_id=organization_id, limit=page_size),
            lambda row: seen.domains.__setitem__(str(row.id).lower(), row),
            complete=complete,
        )
    elif subject == "projects":
        yield from _each_row(
            ops.projects.ListProjects(organization_id=organization_id, limit=page_size),
            lambda row: seen.projects.__setitem__(str(row.id), row),
            complete=complete,
        )
    elif subject == "people":
        yield from _read_people(seen, organization_id, page_size, previous, wanted, complete=complete)
    else:
        raise ValueError(subject)
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
    yield from _each_row(
        ops.invites.ListInvites(organization_id=organization_id, limit=page_size),
        lambda row: _note_invite(seen, row),
        complete=complete,
    )
    living = seen.living()
    if wanted is not None and living.issuperset(wanted):
        return
    members = ops.members.ListMembers(organization_id=organization_id, limit=page_size)
    if complete:
        yield from _each_row(members, lambda row: _note_member(seen, row), complete=True)
        return
    pages = Pages(members, "")
    page = yield from send_one(pages.current)
    seen.member_count = page.count
    following = pages.following(page)
    unchanged = previous is not None and previous.member_count == page.count and previous.living() <= living
    if previous is not None and unchanged and page.count is not None and following is not None:
        seen.members = previous.members
        return
    _note_members(seen, page)
    while following is not None:
        page = yield from send_one(following)
        _note_members(seen, page)
        following = pages.following(page)


def _note_invite(seen: Snapshot, invite: Invite) -> None:
    """Keep an invite; one that has not expired counts more than others of the same address."""
    key = address_key(invite.target_email or "")
    if invite.created_at:
        seen.invited_at.append(invite.created_at)
    if key:
        seen.invites[key] = bool(invite.is_expired) and seen.invites.get(key, True)


def _note_members(seen: Snapshot, page: Page[Member]) -> None:
    """Keep the members of a page."""
    for member in page.results:
        _note_member(seen, member)


def _note_member(seen: Snapshot, member: Member) -> None:
    """Keep a member."""
    if member.user and member.user.email:
        seen.members.add(address_key(member.user.email))


def _each_row(first: Operation[Page[T]], note: Callable[[T], object], *, complete: bool = False) -> Procedure[None]:
    """
    Read a list to its end.

    :param note: called with each row; reading ends when it returns true
    :param complete: read it again, a few times at most, while fewer rows came than it counts: a list whose order is not
        stable, or that changes meanwhile, skips rows from page to page
    """
    ids: set[Any] = set()
    for _ in range(MAX_READS if complete else 1):
        pages = Pages(first, "")
        count: int | None = None
        following: Operation[Page[T]] | None = first
        while following is not None:
            page = yield from send_one(following)
            for row in page.results:
                if note(row):
                    return
                ids.add(getattr(row, "id", None) or len(ids))
            count = page.count
            following = pages.following(page)
        if count is None or len(ids) >= count:
            return


def read_rows(first: Operation[Page[T]]) -> Procedure[list[T]]:
    """
    Read a list to its end, and again where it came with fewer rows than it counts.

    :param first: the operation that asks for the first page
    :return: each row once, in its last state
    """
    rows: dict[Any, T] = {}

    def note(row: T) -> None:
        rows[getattr(row, "id", None) or len(rows)] = row

    yield from _each_row(first, note, complete=True)
    return list(rows.values())


def find_row(first: Operation[Page[T]], wanted: Callable[[T], bool]) -> Procedure[T | None]:
    """
    Look for a row of a list, and look again where the list came with fewer rows than it counts.

    :param first: the operation that asks for the first page
    :return: the first row that is wanted; ``None`` if there is none
    """
    found: list[T] = []

    def note(row: T) -> bool:
        if wanted(row):
            found.append(row)
        return bool(found)

    yield from _each_row(first, note, complete=True)
    return found[0] if found else None
