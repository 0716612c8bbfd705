"""
Earlier invites of people who have not joined: how often they were invited, and when they are invited again.

One Airflow Variable for each organization, written before an invite is sent: the service may forget expired invites,
and a new invite replaces an older one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from airflow_provider_workspace.access.members.lines import remark_on
from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.notes.note import Note, Text, Time, digest
from airflow_provider_workspace.notes.registry import NoteRegistry
from airflow_provider_workspace.notes.store import NoteStore, VariableStore
from airflow_provider_workspace.procedures.plan import Change, Plan, counted

if TYPE_CHECKING:
    from airflow_provider_workspace.access.members.lines import MemberChange
    from airflow_provider_workspace.procedures.roster import Row

INVITED_PREFIX = "workspace_invited."
TIMES_AGAIN = 2
PAUSE_BEFORE_AGAIN = timedelta(days=7)
# How long an invite is remembered.
INVITE_REMEMBERED = timedelta(days=365)
# By how much the clocks of workers and of the service may differ; an invite lives longer.
CLOCKS_DIFFER = timedelta(days=1)


class EarlierInvite(BaseModel):
    """
    The last invite of somebody who has not joined since.

    :param times: how often they were invited
    :param at: when last
    :param was_sent: whether the service has confirmed it: a task may have been killed before it sent the last one
    """

    model_config = ConfigDict(frozen=True)

    times: int = Field(ge=1)
    at: Time
    level: int | None = None
    send_email: bool | None = None
    was_sent: bool = False

    def is_as(self, row: Row) -> bool:
        """Return whether it was sent as a row says now."""
        return (self.level, self.send_email) == (row.level, row.invite.send_email)


class InvitedNote(Note):
    """
    Who was invited into an organization, and has not joined since.

    :param service: base URL of the service
    :param people: by the key of their address
    """

    service: Text
    organization_id: Text
    people: dict[str, EarlierInvite] = Field(default_factory=dict[str, EarlierInvite])

    @property
    def key(self) -> str:
        return INVITED_PREFIX + digest(self.service, self.organization_id)

    def with_invites(self, changes: Iterable[Change], now: datetime) -> dict[str, EarlierInvite]:
        """
        Return the people with those whom a plan invites; an invite that was not sent is not counted twice.

        Without those who were invited so long ago that nobody counts it any more.
        """
        oldest = (now - INVITE_REMEMBERED).timestamp()
        people = {key: earlier for key, earlier in self.people.items() if earlier.at >= oldest}
        for change in changes:
            earlier = people.get(change.person)
            times = earlier.times + earlier.was_sent if earlier else 1
            people[change.person] = EarlierInvite(**change.after, times=times, at=now.timestamp())
        return people

    def after(self, plan: Plan) -> dict[str, EarlierInvite]:
        """Return the people who are still to be counted after a plan, and what it showed of their invites."""
        # Who holds another invite than this is in the plan.
        planned = {change.person for change in plan.changes if change.invites or change.action == "differs"}
        sent = plan.access_list.invited - planned
        gone = set(plan.access_list.homes.values())
        for change, result in plan.outcomes.items():
            if result.status == "invited":
                sent |= {change.person}
            elif change.removes and result.status == "done":
                gone.add(change.person)
        people = dict(self.people)
        for key in gone & people.keys():
            del people[key]
        for key in sent & people.keys():
            people[key] = people[key].model_copy(update={"was_sent": True})
        return people


class InvitedRegistry(NoteRegistry[InvitedNote, NoteStore]):
    """Reads and writes the notes of earlier invites."""

    model = InvitedNote

    @staticmethod
    def describe_unreadable(key: str, why: str) -> str:
        return f"Earlier invites are not known, so they count anew: the Variable '{key}' cannot be read: {why}"

    def keep(self, note: InvitedNote, people: Mapping[str, EarlierInvite]) -> None:
        """
        Write the people of a note, if they have changed; outside of a task, as in tests of Dags, nothing is kept.

        :raises WorkspaceError: if Airflow does not keep it
        """
        if people == note.people:
            return
        changed = note.model_copy(update={"people": people})
        try:
            self.store.write(note.key, changed.model_dump_json(exclude_defaults=True))
        except WorkspaceError as error:
            if not isinstance(error.__cause__, ImportError):
                raise


@dataclass(frozen=True)
class InviteAgain:
    """
    How often somebody who does not join is invited again, and when.

    :param times: how often
    :param pause: how long after the last invite
    :param people: their earlier invites, by the key of their address
    :param remark: what people must know first; empty if there is nothing
    """

    times: int = TIMES_AGAIN
    pause: timedelta = PAUSE_BEFORE_AGAIN
    people: Mapping[str, EarlierInvite] = field(default_factory=dict[str, EarlierInvite])
    remark: str = ""

    def why_not_now(self, row: Row, now: datetime, expired: Mapping[str, float]) -> MemberChange | None:
        """
        Return the line of somebody who was invited before and is not invited now; ``None`` if they are.

        Only after an expired invite there is a pause: somebody may have withdrawn another one to have the mail sent
        again, or may have removed the person. No clock that was wrong once lets it last longer.

        :param expired: see :attr:`~airflow_provider_workspace.procedures.people.People.expired`
        """
        earlier = self.people.get(row.key)
        if earlier is None:
            return None
        has_expired = expired.get(row.key, 0.0) > earlier.at - CLOCKS_DIFFER.total_seconds()
        if not (earlier.was_sent or has_expired):
            return None
        email = row.invite.target_email
        last = min(datetime.fromtimestamp(earlier.at, timezone.utc), now)
        invited = f"invited {counted(earlier.times, 'time', 'times')}, last on {last.date()}, and is not a member"
        if earlier.times > self.times:
            change = remark_on("differs", email, invited, after=row.level)
            return replace(change, cure="ask them, and then invite them by hand, or raise invite_again")
        again_at = last + self.pause
        is_in_future = earlier.at > now.timestamp()
        if has_expired and not is_in_future and now < again_at and earlier.is_as(row):
            change = remark_on("wait", email, f"{invited}: again from {again_at.date()}")
            return replace(change, cure="invite them by hand, or set invite_again_after=0 in a member sync")
        return None

    def why_not_renewed(self, row: Row) -> str:
        """Return why an open invite was renewed often enough, and what to do; an empty string if it was not."""
        earlier = self.people.get(row.key)
        cure = "withdraw it, and then invite them by hand"
        if earlier and earlier.was_sent and earlier.is_as(row):
            return f", although it was sent as the row says: {cure}"
        if earlier and earlier.times > self.times:
            return f", after {earlier.times} invites: {cure}"
        return ""


# The store of earlier invites for tasks. They are not listed.
INVITED_VARIABLES = VariableStore(INVITED_PREFIX, "workspace_invited", "Who was invited, and has not joined since.")
