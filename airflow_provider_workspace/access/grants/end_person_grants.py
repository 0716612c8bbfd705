"""The end of the grants of one person: what is planned, sent and seen, and its file of evidence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_workspace.access.grants.evidence import EndedGrant, EndProof
from airflow_provider_workspace.access.grants.notes import person_of
from airflow_provider_workspace.api.operations.invites import DeleteInvite
from airflow_provider_workspace.api.timestamps import iso
from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.notes.note import utc_now
from airflow_provider_workspace.procedures.plan import ChangeResult, Plan

if TYPE_CHECKING:
    from airflow_provider_workspace.access.grants.notes import Grant
    from airflow_provider_workspace.procedures.people import NotedPerson
    from airflow_provider_workspace.procedures.plan import Change


@dataclass(frozen=True)
class SeenPerson:
    """
    What the lists of the service showed of a person.

    :param read_at: when the reading of the lists began, in seconds since 1970
    :param members_read: number of members in the list
    :param level: their level; ``None`` if they were no member
    :param has_invite: whether they had an open invite
    """

    read_at: float
    members_read: int
    level: int | None
    has_invite: bool


@dataclass
class PersonEnd:
    """
    The end of the grants of one person.

    :param over: the grants that are over, the one that ended last last
    :param user_uuid: the user, from the notes or from the lists
    :param noted: all grants of the person, as they were when it was planned
    :param plan: what the end takes now
    :param sent: what it took before, such as an invite that was accepted meanwhile
    :param users_before: the members when it was planned
    :param is_absent: whether the lists that were read first showed neither a member nor an invite
    :param seen: what the lists showed that prove the end
    :param evidence: the path of the file of each grant that ended, by the key of its Variable
    :param done: what was done; empty before the notes are deleted
    :param error: why the grants are left
    """

    over: list[Grant] = field(default_factory=list["Grant"])
    user_uuid: str | None = None
    noted: list[Grant] = field(default_factory=list["Grant"])
    plan: Plan = field(default_factory=Plan)
    sent: list[Change] = field(default_factory=list["Change"])
    users_before: frozenset[str] = frozenset()
    is_absent: bool = False
    seen: SeenPerson | None = None
    evidence: dict[str, str] = field(default_factory=dict[str, str])
    done: str = ""
    error: Exception | None = None

    @property
    def last(self) -> Grant:
        """The grant that ended last."""
        return self.over[-1]

    @property
    def addresses(self) -> set[str]:
        """The addresses in the notes, as the keys of their Variables have them."""
        return {grant.person for grant in [*self.over, *self.noted]}

    @property
    def person(self) -> NotedPerson:
        """Who it is, from all that the notes have learned."""
        return person_of([*self.over, *self.noted], self.user_uuid)

    @property
    def withdraws_invite(self) -> bool:
        """Whether the end takes an invite, which may be accepted at the same time."""
        return any(isinstance(change.operation, DeleteInvite) for change in self.taken)

    @property
    def may_appear(self) -> bool:
        """Whether the lists may lag behind somebody: who accepts an invite, or whom they did not show at first."""
        return self.withdraws_invite or (self.is_absent and not self.sent)

    @property
    def no_candidates(self) -> frozenset[str]:
        """The users who cannot have accepted the invite, since they were members when the service deleted it."""
        for change in self.taken:
            result = self.plan.outcomes.get(change)
            if isinstance(change.operation, DeleteInvite) and result == ChangeResult("done"):
                return self.users_before
        return frozenset()

    @property
    def is_settled(self) -> bool:
        """Whether nothing more is done about the person in this run."""
        return bool(self.done) or self.error is not None

    @property
    def is_permanent(self) -> bool:
        """Whether a retry changes nothing."""
        return self.error is None or getattr(self.error, "permanent", False)

    @property
    def taken(self) -> list[Change]:
        """The changes that are sent."""
        return [change for change in self.plan.changes if change.sends]

    @property
    def made(self) -> list[Change]:
        """The changes that are sent, without those that the service refused."""
        return [change for change in self.taken if not change_was_refused(self.plan, change)]

    @property
    def sent_lines(self) -> tuple[str, ...]:
        """What was sent, for a file about it."""
        changes = [*self.sent, *self.taken]
        return tuple(f"{type(change.operation).__name__}: {change.name}: {change.notes}" for change in changes)

    @property
    def description(self) -> str:
        """What is done, for people."""
        changes = [f"{change.name}: {change.notes}" for change in (*self.sent, *self.taken)]
        return "; ".join(changes) if changes else "they did not have it any more"

    def take_over(self, other: PersonEnd) -> None:
        """End the grants of another too, who is the same user."""
        together = [*self.over, *other.over]
        self.over = sorted(together, key=lambda grant: (grant.until, grant.key))
        other.over = []

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Keep an error, which stops no other person."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever it is, the others are ended
            self.error = error

    def raise_if_kept(self) -> None:
        """
        Say what is left to people.

        :raises WorkspaceError: if the person keeps something
        """
        kept = [change for change in self.plan.changes if _is_kept(change)]
        if not kept:
            return
        named = "; ".join(f"{change.name}: {change.notes}" for change in kept)
        cure = "Remove them" if self.last.then is None else f"Set level {self.last.then}"
        msg = f"{cure} by hand, or delete the Variable '{self.last.key}' if they may keep what they have"
        raise WorkspaceError(f"{named}. {msg}")


def change_was_refused(plan: Plan, change: Change) -> bool:
    """Return whether the service refused a change of a plan."""
    status, _ = plan.outcomes.get(change, ("", ""))
    return status == "refused"


def _is_kept(change: Change) -> bool:
    return change.mark == "kept" or change.action in ("differs", "unknown")


def ended_grant(grant: Grant, seen: SeenPerson, sent: tuple[str, ...], ended_by: str) -> EndedGrant:
    """Return the life of a grant, and what proves its end, for its file."""
    proof = EndProof(
        lists_read_at=iso(seen.read_at),
        members_read=seen.members_read,
        level=seen.level,
        has_invite=seen.has_invite,
        sent=sent,
    )
    return EndedGrant(
        user_email=grant.user_email,
        user_uuid=grant.user_uuid,
        service=grant.service,
        organization_id=grant.organization_id,
        level=grant.level,
        then=grant.then,
        reason=grant.reason,
        requested_by=grant.requested_by,
        approved_by=grant.approved_by,
        approved_at=_iso_or_none(grant.approved_at),
        noted_at=iso(grant.since),
        given_at=_iso_or_none(grant.given_at),
        given_by=grant.task,
        agreed_until=iso(grant.agreed_until or grant.until),
        until=iso(grant.until),
        ended_early_by=grant.ended_by,
        ended_by=ended_by,
        ended_at=iso(utc_now().timestamp()),
        proof=proof,
        variable=grant.key,
    )


def _iso_or_none(seconds: float | None) -> str | None:
    return None if seconds is None else iso(seconds)
