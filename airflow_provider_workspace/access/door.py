"""
The door: the rules that are asked before one person gets or loses access, and the proof afterwards.

Whom nobody may touch, what else has a say, and whether the person is certainly the one: rosters, leavers and files ask
the same for many people in :mod:`~airflow_provider_workspace.access.members.plan`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.access.grants.plan import CLOCK_SLACK
from airflow_provider_workspace.access.members.lines import MemberChange, level_fields, removal, withdrawal
from airflow_provider_workspace.access.rules.entitlements import (
    Entitlement,
    NotedAccess,
    Saying,
    decision_against,
    entitlement_of,
)
from airflow_provider_workspace.access.rules.guards import Guards, raise_if_no_owner_left
from airflow_provider_workspace.api.comparison import address_key, email_key
from airflow_provider_workspace.api.operations.invites import CreateInvite, CreateInvites, ListInvites
from airflow_provider_workspace.api.operations.members import UpdateMember
from airflow_provider_workspace.errors import WorkspaceError, WorkspaceInputError, name_first
from airflow_provider_workspace.notes.note import digest
from airflow_provider_workspace.procedures.access_list import AccessList, entry_of, homes_of, member_identity
from airflow_provider_workspace.procedures.ensure import check_done, wait_for_who_accepted
from airflow_provider_workspace.procedures.find import members_of, read_rows
from airflow_provider_workspace.procedures.people import People, check_not_empty, one_row_each, read_people
from airflow_provider_workspace.procedures.plan import Change, Plan, counted
from airflow_provider_workspace.version_compat import COMMAND

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_provider_workspace.access.rules.entitlements import Claims, NotedGrant
    from airflow_provider_workspace.api.models import Invite, Member
    from airflow_provider_workspace.api.operations.invites import DeleteInvite
    from airflow_provider_workspace.api.operations.members import DeleteMember
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.notes.task_state import TaskState

ASKED = "asked for by this task"
# How many people a value in the state of a task names, in 24 bytes each: Airflow warns of more than 65,535 bytes.
MAX_KNOWN = 2000


@dataclass(frozen=True, slots=True)
class KnownPeople:
    """
    Who was there before an open invite was withdrawn, as the state of a task holds it for a retry.

    :param digests: of the users, and of the addresses with another open invite; ``None`` if too many to note
    :param hidden: how many members did not show their user
    """

    digests: frozenset[str] | None
    hidden: int

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> KnownPeople | None:
        """Read what an earlier try noted; ``None`` if it noted nothing."""
        if "hidden" not in facts:
            return None
        digests = facts["digests"]
        return cls(None if digests is None else frozenset(digests), facts["hidden"])

    @property
    def facts(self) -> dict[str, Any]:
        """Plain JSON of it, without the people if these are too many."""
        digests = None
        if self.digests is not None and len(self.digests) <= MAX_KNOWN:
            digests = sorted(self.digests)
        return {"digests": digests, "hidden": self.hidden}

    def joined(self, now: AccessList) -> list[str]:
        """Return who joined since, and had no invite of their own."""
        if self.digests is None:
            return [f"one of all members, as an earlier try could not note who the more than {MAX_KNOWN:,} people were"]
        before = AccessList(hidden=self.hidden)
        invited: set[str] = set()
        for identity, entry in now.shown.items():
            if digest(*identity) in self.digests:
                before.add(identity, entry)
            if digest(entry.person) in self.digests:
                invited.add(entry.person)
        before.invited = frozenset(invited)
        return list(now.joined_since(before).values())


@dataclass(frozen=True, slots=True)
class UnknownPeople:
    """
    Who was there before an earlier try withdrew an invite, if nobody knows it: no note survives before Airflow 3.3.

    :param since: when the first try may have begun, in seconds since 1970
    """

    since: float

    def joined(self, now: AccessList) -> list[str]:
        """Return who joined since then, also with an invite of their own."""
        return now.joined_after(self.since - CLOCK_SLACK)


class WithdrawnInvites:
    """
    Who was there before a task withdrew the invites of a plan: whoever joins until its next try may have accepted one.

    :param page_of: returns the state of the task that holds a page of the note, by its number
    :param max_tries: the number of tries of the task: who clears it has looked at whom its error named
    :param unknown: of a retry that does not know what earlier tries have noted; else ``None``
    """

    def __init__(
        self,
        client: WorkspaceClient,
        page_of: Callable[[int], TaskState],
        *,
        max_tries: int | None = None,
        unknown: UnknownPeople | None = None,
    ) -> None:
        self._client = client
        self._page_of = page_of
        self._max_tries = max_tries
        self._unknown = unknown
        self._known: KnownPeople | None = None
        digests: set[str] = set()
        number = 0
        while (page := page_of(number).read()) and page["max_tries"] == max_tries:
            digests.update(page["digests"])
            self._known = KnownPeople(frozenset(digests), page["hidden"])
            number += 1

    def begin(self, plan: Plan) -> None:
        """Note who is there before a plan withdraws invites, unless an earlier try has."""
        if self._known or not plan.withdraws_invites:
            return
        people = plan.access_list
        texts = [identity[0] for identity in people.shown] + sorted(people.invited)
        digests = [digest(text) for text in texts]
        pages = [digests[start : start + MAX_KNOWN] for start in range(0, len(digests), MAX_KNOWN)]
        # The first page last: the note counts when it is whole.
        for number, page in reversed(list(enumerate(pages))):
            note = {"digests": page, "hidden": people.hidden, "max_tries": self._max_tries}
            self._page_of(number).write(note)

    def joined(self, plan_again: Callable[[], Plan]) -> list[str]:
        """Wait until the lists must show whoever accepted an invite that an earlier try withdrew; return who may be."""
        if self._known is None:
            return []
        wait_for_who_accepted(self._client)
        return self._known.joined(plan_again().access_list)

    def unproven(self, plan: Plan) -> list[str]:
        """
        Return who may have access in spite of a plan, for people, also by an invite that an unknown try withdrew.

        See :attr:`~airflow_provider_workspace.procedures.plan.Plan.unproven`.
        """
        if self._unknown is None or not plan.access_list.absent:
            return plan.unproven
        why = "joined since this run began, and may have accepted an invite that an earlier try withdrew"
        joined = self._unknown.joined(plan.access_list)
        return plan.unproven + [f"{name}: {why}" for name in joined]


@dataclass
class Door:
    """
    The door of an organization.

    :param guards: whom nobody may touch
    :param noted: temporary access and decisions of reviews, as they were read last
    :param now: decides what counts
    """

    client: WorkspaceClient
    organization_id: str
    guards: Guards
    noted: NotedAccess
    now: datetime

    @cached_property
    def members(self) -> list[Member]:
        """The members when they were read first."""
        return members_of(self.client, self.organization_id)

    @cached_property
    def invites(self) -> list[Invite]:
        """All invites when they were read first."""
        return read_rows(self.client, ListInvites(organization_id=self.organization_id))

    @cached_property
    def people(self) -> People:
        """The members and the open invites when they were read first."""
        people = read_people(self.client, self.organization_id, read_invites=lambda: self.invites)
        check_not_empty(people.members)
        return people

    def plan_removal(
        self,
        delete: DeleteMember,
        *,
        allow_last_owner: bool = False,
        was_sent: bool = False,
        name: str = "",
        level: int | None = None,
    ) -> Plan:
        """
        Plan the removal of a member, with whom their temporary access ends; a decision of a review does not hinder it.

        :param delete: the removal, also of somebody whom the list does not show
        :param allow_last_owner: whether nobody of the highest level need be left
        :param was_sent: whether an earlier try may have sent it
        :param name: what the plan of that try calls them, also if they have another address by now
        :param level: their level in that plan, for a member whom the list does not show any more
        :raises WorkspaceError: if they are kept, or it cannot be known who they are
        """
        who = delete.user_uuid
        key = ""
        member = self._member(who)
        if member is not None:
            who = member.email_address or who
            key, level = email_key(member), member.level
            self.guards.raise_if_kept(member, who)
        elif self.guards.protected and not was_sent:
            why = f"No list shows user {who}, who may be protected"
            raise WorkspaceInputError(f"{why}. Look whether they are gone, or leave out protected")
        gone = Saying(has_access=False, why=ASKED, leaves=True)
        entitled = self._entitlement(gone, self.noted.of_member(key, delete.user_uuid))
        change = removal(delete, name or who, ASKED, level=level, ends=entitled.ended)
        if not allow_last_owner:
            raise_if_no_owner_left(self.members, [change], ", or set allow_last_owner=True")
        return self._plan_of(change, len(self.members))

    def left_by(self, email: str) -> tuple[NotedGrant, ...]:
        """Return the temporary access of somebody who was removed, by the address that they had."""
        return self.noted.of_address(address_key(email), homes_of(self.members)).grants

    def check_level(self, update: UpdateMember) -> bool:
        """
        Check that a member may get a level, and return whether it takes something from them, or may.

        :raises WorkspaceError: if they are kept, something else has a say, or it cannot be known who they are
        """
        who = update.user_uuid
        key, held = "", None
        member = self._member(who)
        if member is not None:
            who = member.email_address or who
            key, held = email_key(member), member.level
        elif self.guards.keeps_anybody:
            why = f"No list shows user {who}, who may be protected or an owner"
            raise WorkspaceInputError(f"{why}. Check user_uuid, or leave out protected and set owner_level=None")
        level = int(update.level)
        lowers = held is None or level < held
        if member is not None and lowers:
            self.guards.raise_if_kept(member, who, "lower")
        claims = self.noted.of_member(key, update.user_uuid)
        entitled = self._entitlement(Saying(has_access=True, level=level, why=ASKED), claims)
        if held is None or level > held:
            _raise_if_refused(who, self._why_refused(who, level, claims))
        if lowers and entitled.temporary:
            cure = f"End that first: {COMMAND} grants --end {who}"
            raise WorkspaceInputError(f"{who} has temporary access ({entitled.temporary}). {cure}")
        change = MemberChange(
            "change",
            "members",
            f"member {who}",
            before=level_fields(held),
            after=level_fields(level),
            operation=update,
        )
        raise_if_no_owner_left(self.members, [change])
        return lowers

    def check_again(self, operation: UpdateMember | CreateInvite | CreateInvites) -> None:
        """
        Check what is about to be sent, with what is noted by now.

        :raises WorkspaceError: if something else has a say
        """
        if isinstance(operation, UpdateMember):
            self.check_level(operation)
            return
        invites = operation.invites if isinstance(operation, CreateInvites) else [operation]
        for invite in invites:
            self.check_invite(invite.target_email, invite.level)

    def check_lowered(self, update: UpdateMember) -> None:
        """
        Look until the list shows the lower level: an answer proves nothing.

        :raises WorkspaceNotAppliedError: if it shows another one
        """

        def is_done() -> bool:
            members = members_of(self.client, self.organization_id)
            levels = [member.level for member in members if member.user_uuid == update.user_uuid]
            return bool(levels) and all(level is not None and level <= int(update.level) for level in levels)

        check_done(self.client, "the level was lowered", update, is_done)

    def plan_withdrawal(self, delete: DeleteInvite, *, was_sent: bool = False) -> Plan:
        """
        Plan the withdrawal of an invite, with which the temporary access of its person ends.

        :param delete: the withdrawal, also of an invite that is not open any more: it changes nobody's access
        :param was_sent: whether an earlier try may have sent it
        :raises WorkspaceError: if its person is protected, or may be
        """
        invites = [invite for invite in self.people.invites if invite.id == delete.invite_id]
        if not invites:
            is_listed = any(invite.id == delete.invite_id for invite in self.invites)
            if self.guards.protected and not (is_listed or was_sent):
                why = f"No list shows the invite {delete.invite_id}, whose person may be protected"
                raise WorkspaceInputError(f"{why}. Look whether it is gone, or leave out protected")
            return self._plan_of(withdrawal(delete, delete.invite_id, ASKED), len(self.people.members))
        invite = invites[0]
        self.guards.raise_if_invite_kept(invite)
        homes = homes_of(self.people.members)
        key = email_key(invite)
        entitled = self._entitlement(
            Saying(has_access=False, why=ASKED, leaves=True), self.noted.of_invite(key, invite.id, homes)
        )
        # Whoever is a member keeps what they have.
        ends = () if key in homes.values() else entitled.ended
        change = withdrawal(delete, invite.target_email or delete.invite_id, ASKED, level=invite.level, ends=ends)
        return self._plan_of(change, len(self.people.members))

    def known_before(self, delete: DeleteInvite) -> KnownPeople | None:
        """Return who is there before an open invite is withdrawn; ``None`` if it is not open: it lets nobody in."""
        people = self.people
        if all(invite.id != delete.invite_id for invite in people.invites):
            return None
        users = [member.user_uuid for member in people.members]
        others = [email_key(invite) for invite in people.invites if invite.id != delete.invite_id]
        known = {digest(text) for text in (*users, *others) if text}
        return KnownPeople(frozenset(known), users.count(None))

    def joined_since(self, known: KnownPeople | UnknownPeople) -> list[str]:
        """
        Wait until the lists must show whoever accepted a withdrawn invite, and return who may be its person.

        :raises WorkspaceError: if the list of members is empty
        """
        wait_for_who_accepted(self.client)
        members = members_of(self.client, self.organization_id)
        check_not_empty(members)
        now = AccessList()
        for member in one_row_each(members):
            now.add(member_identity(member), entry_of(member, is_judged=False))
        return known.joined(now)

    def why_not_invited(self, email: str, level: int | str | None) -> str:
        """Return why somebody is not invited: an access review decided less; an empty string if they may be."""
        if not self.noted.decisions:
            return ""
        claims = self.noted.of_address(address_key(email), homes_of(self.members))
        return self._why_refused(email, None if level is None else int(level), claims)

    def check_invite(self, email: str, level: int | str | None) -> None:
        """
        Check that somebody may be invited.

        :raises WorkspaceInputError: if an access review decided less
        """
        _raise_if_refused(email, self.why_not_invited(email, level))

    def _why_refused(self, who: str, level: int | None, claims: Claims) -> str:
        """Return what a review decided that allows less than a level, and what to do; empty if there is nothing."""
        decision = decision_against(level, claims, self.now.timestamp())
        if decision is None:
            return ""
        return f"{decision}, which allows less. Lift that first: {COMMAND} decisions --lift {who} --reason TEXT"

    def _entitlement(self, saying: Saying, claims: Claims) -> Entitlement:
        return entitlement_of(saying, claims, self.now.timestamp())

    def _member(self, user_uuid: str) -> Member | None:
        """
        Return the member who is a user; ``None`` if there is none.

        :raises WorkspaceError: if it cannot be known, because a row hides its user
        """
        rows = [member for member in one_row_each(self.members) if member.user_uuid == user_uuid]
        if rows:
            return rows[0]
        hidden = sum(1 for member in self.members if not member.user_uuid)
        if hidden and self.guards.keeps_anybody:
            members = counted(hidden, "member", "members")
            why = f"The list hides the user of {members}, so user {user_uuid} may be protected or an owner"
            raise WorkspaceInputError(f"{why}. Do it by hand, or leave out protected and set owner_level=None")
        return None

    def _plan_of(self, change: Change, members: int) -> Plan:
        place = self.client.settings.organization_at_service(self.organization_id)
        return Plan(place, [change], members=members)


def raise_if_joined(invite_id: str, joined: list[str]) -> None:
    """
    Refuse to end well if somebody joined who may have accepted an invite that was withdrawn.

    :param joined: see :meth:`Door.joined_since`
    :raises WorkspaceError: naming them
    """
    if joined:
        named = name_first(joined, "the list of members")
        raise WorkspaceError(
            f"Somebody kept or got access meanwhile: the invite {invite_id} is gone, and may have been accepted. "
            f"Remove who should not be a member: {named}",
            permanent=True,
            problem="joined-meanwhile",
        )


def _raise_if_refused(who: str, why: str) -> None:
    if why:
        raise WorkspaceInputError(f"{who}: {why}", problem="decided-by-review")
