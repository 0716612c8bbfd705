"""
One look at what people wait for: the lists of an organization, read once and kept by address or id.

The functions yield operations and are handed the results.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_workspace.api import operations as ops
from airflow_provider_workspace.api.pagination import Pages
from airflow_provider_workspace.errors import WorkspaceRequestError
from airflow_provider_workspace.procedures.roster import address_key

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Domain, Invite, Member, Page, ProjectItem
    from airflow_provider_workspace.api.operation import Operation

T = TypeVar("T")

# How often a list is read that does not hold as many rows as it counts.
MAX_READS = 3

# What is to be sent next, in any order or at once; the results or errors in the same order come back.
Procedure = Generator[list["Operation[Any]"], list[Any], T]


@dataclass(slots=True)
class Snapshot:
    """
    What was seen.

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


def look(
    subject: str,
    organization_id: str,
    page_size: int,
    *,
    before: Snapshot | None = None,
    wanted: Collection[str] | None = None,
    whole: bool = False,
) -> Procedure[Snapshot]:
    """
    Look at the lists of one subject.

    :param subject: ``domains``, ``projects`` or ``people`` (invites and members)
    :param before: an earlier look at the same; saves reading all members again where nothing can have changed
    :param wanted: the only addresses of interest; saves reading members while all of them hold living invites
    :param whole: read a list again that came with fewer rows than it counts, for what is missed would be done twice
    :raises WorkspaceRequestError: if a page cannot be read
    """
    seen = Snapshot()
    if subject == "domains":
        yield from each_row(
            ops.ListDomains(organization_id=organization_id, limit=page_size),
            lambda row: seen.domains.__setitem__(str(row.id).lower(), row),
            whole=whole,
        )
    elif subject == "projects":
        yield from each_row(
            ops.ListProjects(organization_id=organization_id, limit=page_size),
            lambda row: seen.projects.__setitem__(str(row.id), row),
            whole=whole,
        )
    elif subject == "people":
        yield from look_at_people(seen, organization_id, page_size, before, wanted, whole=whole)
    else:
        raise ValueError(subject)
    return seen


def look_at_people(
    seen: Snapshot,
    organization_id: str,
    page_size: int,
    before: Snapshot | None,
    wanted: Collection[str] | None,
    *,
    whole: bool,
) -> Procedure[None]:
    """
    Read the invites, and the members only as far as needed.

    Somebody joins by accepting an invite, which then is gone, or in another way, and then the members are more. If
    neither happened since the look before, its members are still right, and one page told so.
    """
    yield from each_row(
        ops.ListInvites(organization_id=organization_id, limit=page_size),
        lambda row: note_invite(seen, row),
        whole=whole,
    )
    living = seen.living()
    if wanted is not None and living.issuperset(wanted):
        return
    members = ops.ListMembers(organization_id=organization_id, limit=page_size)
    if whole:
        yield from each_row(members, lambda row: note_member(seen, row), whole=True)
        return
    pages = Pages(members, "")
    page = yield from one_page(pages.current)
    seen.member_count = page.count
    following = pages.following(page)
    unchanged = before is not None and before.member_count == page.count and before.living() <= living
    if before is not None and unchanged and page.count is not None and following is not None:
        seen.members = before.members
        return
    note_members(seen, page)
    while following is not None:
        page = yield from one_page(following)
        note_members(seen, page)
        following = pages.following(page)


def note_invite(seen: Snapshot, invite: Invite) -> None:
    """Keep an invite; one that has not expired counts more than others of the same address."""
    key = address_key(invite.target_email or "")
    if invite.created_at:
        seen.invited_at.append(invite.created_at)
    if key:
        seen.invites[key] = bool(invite.is_expired) and seen.invites.get(key, True)


def note_members(seen: Snapshot, page: Page[Member]) -> None:
    """Keep the members of a page."""
    for member in page.results:
        note_member(seen, member)


def note_member(seen: Snapshot, member: Member) -> None:
    """Keep a member."""
    if member.user and member.user.email:
        seen.members.add(address_key(member.user.email))


def one_page(operation: Operation[Page[T]]) -> Procedure[Page[T]]:
    """Read one page."""
    (page,) = yield [operation]
    if isinstance(page, WorkspaceRequestError):
        raise page
    result: Page[T] = page
    return result


def each_row(first: Operation[Page[T]], note: Callable[[T], object], *, whole: bool = False) -> Procedure[None]:
    """
    Read a list to its end.

    :param note: called with each row; reading ends when it returns true
    :param whole: read it again, a few times at most, while fewer rows came than it counts: a list whose order is not
        stable, or that changes meanwhile, skips rows from page to page
    """
    ids: set[Any] = set()
    for _ in range(MAX_READS if whole else 1):
        pages = Pages(first, "")
        count: int | None = None
        following: Operation[Page[T]] | None = first
        while following is not None:
            page = yield from one_page(following)
            for row in page.results:
                if note(row):
                    return
                ids.add(getattr(row, "id", None) or len(ids))
            count = page.count
            following = pages.following(page)
        if count is None or len(ids) >= count:
            return


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

    yield from each_row(first, note, whole=True)
    return found[0] if found else None
