"""
What a person should have now, and why: one answer, from everything that has a say about the person.

Sync, leavers, organization files, the ends of temporary access, and access reviews ask :func:`entitlement_of`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.api.levels import describe_level

if TYPE_CHECKING:
    from airflow_provider_workspace.access.rules.review_records import Lift
    from airflow_provider_workspace.procedures.people import NotedPerson


@dataclass(frozen=True, slots=True)
class NotedGrant:
    """
    A grant that is noted; one that is over waits for the sweep, and holds nothing.

    :param level: at least this level, until its end
    :param since: when it was given, in seconds since 1970: when a person approved it, by the clock that also says when
        a review decided, which may be ahead of that of a worker; when it was noted if nobody was asked
    :param until: its end, for people
    :param approved_by: who approved it; empty if nobody was asked
    :param key: the key of its Variable
    :param then: the level after it; ``None`` if the person is removed
    :param requested_by: who asked for it, or started the run that gave it; empty if that is not known
    :param is_over: whether its end has passed
    """

    person: NotedPerson
    level: int
    since: float
    until: str
    approved_by: str
    key: str
    then: int | None = None
    requested_by: str = ""
    is_over: bool = False

    def __str__(self) -> str:
        """Return it for people."""
        end = f", over since {self.until}" if self.is_over else f" until {self.until}"
        access = f"temporary: {describe_level(self.level)}{end}"
        if self.approved_by:
            return f"{access}, approved by {self.approved_by}"
        return access


@dataclass(frozen=True, slots=True)
class ReviewDecision:
    """
    What an access review decided about a person whom it lowered or removed.

    :param level: at most this level; ``None`` for no access
    :param decided_at: when, in seconds since 1970
    :param until: when it stops to count, in seconds since 1970
    :param review: what people find the review by
    :param reviewer: who decided
    :param key: the key of the Variable of the review
    :param lifted: who lifted it, so that it does not count any more; ``None`` if nobody did
    """

    person: NotedPerson
    level: int | None
    decided_at: float
    until: float
    review: str
    reviewer: str
    key: str
    lifted: Lift | None = None

    def __str__(self) -> str:
        """Return it for people."""
        decided = "removed them"
        if self.level is not None:
            decided = f"lowered them to {describe_level(self.level)}"
        return f"{self.reviewer} {decided} in access review {self.review} ({_day_of(self.decided_at)})"

    @property
    def who(self) -> str:
        """Whom it is about, as people find it."""
        invite_id = next(iter(self.person.invite_ids), "-")
        return self.person.email or self.person.user_uuid or invite_id

    @property
    def lifted_row(self) -> dict[str, Any]:
        """Return plain JSON of a decision that was lifted."""
        lift = self.lifted.model_dump() if self.lifted else {}
        about = {"who": self.who, "decision": str(self), "review": self.review, "reviewer": self.reviewer}
        return {**about, **lift}

    @property
    def lifting(self) -> str:
        """Say that it was lifted, and about whom it was."""
        return f"{self.who}: {self}, {self.lifted}"

    @property
    def expiry(self) -> str:
        """Say that it does not count any more."""
        return f"{self}, which counted until {_day_of(self.until)}"


def _day_of(moment: float) -> str:
    return str(datetime.fromtimestamp(moment, tz=timezone.utc).date())


@dataclass(frozen=True, slots=True)
class Claims:
    """
    What is noted about one person.

    :param grants: their temporary access, also what is over and waits for the sweep
    :param decision: the last decision of a review; ``None`` if there is none, or a person lifted it
    :param lifted: who lifted the last decision, for people; empty if nobody did
    """

    grants: tuple[NotedGrant, ...] = ()
    decision: ReviewDecision | None = None
    lifted: str = ""


NO_CLAIMS = Claims()


N = TypeVar("N", NotedGrant, ReviewDecision)


class _ByIdentity(Generic[N]):
    """Records about people, found by their user, their invite or their address."""

    def __init__(self, records: Iterable[N]) -> None:
        self._by_user: dict[str, list[N]] = {}
        self._by_invite: dict[str, list[N]] = {}
        self._by_address: dict[str, list[N]] = {}
        for record in records:
            person = record.person
            key = address_key(person.email)
            if key:
                self._by_address.setdefault(key, []).append(record)
            if person.user_uuid is not None:
                self._by_user.setdefault(person.user_uuid, []).append(record)
            for invite_id in person.invite_ids:
                self._by_invite.setdefault(invite_id, []).append(record)

    def of_member(self, key: str, user_uuid: str | None) -> list[N]:
        """Return the records of a user, and those of their address that know no user yet."""
        found: list[N] = []
        if user_uuid is not None:
            found += self._by_user.get(user_uuid, ())
        for record in self._by_address.get(key, ()):
            if record.person.user_uuid is None or user_uuid is None:
                found.append(record)
        return found

    def of_invite(
        self, key: str, invite_id: str | None, homes: Mapping[str, str], user_uuid: str | None = None
    ) -> list[N]:
        """Return the records of an invite, and those of its address and its user."""
        found = self.of_address(key, homes, user_uuid)
        for record in self._by_invite.get(invite_id or "", ()):
            if record not in found:
                found.append(record)
        return found

    def of_address(self, key: str, homes: Mapping[str, str], user_uuid: str | None = None) -> list[N]:
        """
        Return the records of an address, and those of its user, if that is known.

        A user who is a member under another address has left this one to somebody else.
        """
        found = [record for record in self._by_address.get(key, ()) if _lives_at(record.person, key, homes)]
        for record in self._by_user.get(user_uuid or "", ()):
            if record not in found:
                found.append(record)
        return found

    def of_former(self, key: str, homes: Mapping[str, str]) -> list[N]:
        """Return the records of users who had an address when they were noted, and are members under another one."""
        records = self._by_address.get(key, ())
        return [record for record in records if not _lives_at(record.person, key, homes)]


def _lives_at(person: NotedPerson, key: str, homes: Mapping[str, str]) -> bool:
    """Return whether a noted person may still be the one who has an address."""
    if person.user_uuid is None:
        return True
    return homes.get(person.user_uuid, key) == key


@dataclass(frozen=True)
class NotedAccess:
    """
    What this Airflow has noted about the people of an organization.

    :param grants: temporary access, also what is over and waits for the sweep
    :param decisions: what access reviews decided, also where it does not count any more
    :param are_known: whether the notes could be read: neither a plan in CI nor Airflow before 3.3 knows them
    """

    grants: Sequence[NotedGrant] = ()
    decisions: Sequence[ReviewDecision] = ()
    are_known: bool = True

    @cached_property
    def _grants(self) -> _ByIdentity[NotedGrant]:
        return _ByIdentity(self.grants)

    @cached_property
    def _decisions(self) -> _ByIdentity[ReviewDecision]:
        return _ByIdentity(self.decisions)

    def of_member(self, key: str, user_uuid: str | None) -> Claims:
        """
        Return what is noted about a member.

        :param key: of their address, see :func:`~airflow_provider_workspace.api.comparison.address_key`
        """
        if not (self.grants or self.decisions):
            return NO_CLAIMS
        grants = self._grants.of_member(key, user_uuid)
        decisions = self._decisions.of_member(key, user_uuid)
        return _claims(grants, decisions)

    def of_invite(
        self, key: str, invite_id: str | None, homes: Mapping[str, str], user_uuid: str | None = None
    ) -> Claims:
        """
        Return what is noted about somebody who holds an open invite.

        :param homes: the key of the address of each user who is a member
        :param user_uuid: the user that they are, if a row says it
        """
        grants = self._grants.of_invite(key, invite_id, homes, user_uuid)
        decisions = self._decisions.of_invite(key, invite_id, homes, user_uuid)
        return _claims(grants, decisions)

    def of_address(self, key: str, homes: Mapping[str, str], user_uuid: str | None = None) -> Claims:
        """
        Return what is noted about somebody who is neither a member nor invited.

        :param homes: the key of the address of each user who is a member
        :param user_uuid: the user that they are, if a row says it
        """
        grants = self._grants.of_address(key, homes, user_uuid)
        decisions = self._decisions.of_address(key, homes, user_uuid)
        return _claims(grants, decisions)

    def users_of_former(self, key: str, homes: Mapping[str, str]) -> list[str]:
        """
        Return the users who had an address when something was noted about them, and are members under another one.

        :param homes: the key of the address of each user who is a member
        """
        records: list[NotedGrant | ReviewDecision] = []
        records += self._grants.of_former(key, homes)
        records += self._decisions.of_former(key, homes)
        users = [record.person.user_uuid for record in records]
        return list(dict.fromkeys(user for user in users if user))


NOTHING_NOTED = NotedAccess()


def _claims(grants: Sequence[NotedGrant], decisions: Sequence[ReviewDecision]) -> Claims:
    if not (grants or decisions):  # as of most people, of whom there may be many
        return NO_CLAIMS
    last = max(decisions, key=attrgetter("decided_at"), default=None)
    if last and last.lifted:
        return Claims(tuple(grants), lifted=last.lifting)
    return Claims(tuple(grants), last)


@dataclass(frozen=True, slots=True)
class Saying:
    """
    What the rows of a list say about a person.

    :param has_access: whether the person should have access
    :param level: the level; ``None`` for any, and without access
    :param why: the reason, for people
    :param is_named: whether a row names the person; else they are on no list
    :param leaves: whether the person leaves: nothing else counts
    :param ended_at: when the last row of the person ended, in seconds since 1970; ``None`` if one counts now
    """

    has_access: bool
    level: int | None = None
    why: str = ""
    is_named: bool = True
    leaves: bool = False
    ended_at: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether rows take the access of the person: they leave, or their row ended."""
        return self.leaves or self.ended_at is not None


@dataclass(frozen=True, slots=True)
class Entitlement:
    """
    What a person should have now, and why.

    :param has_access: whether the person should have access
    :param level: what is given: the level that rows say, capped; ``None`` for any, and without access
    :param why: the reason, for people
    :param is_named: whether a source names the person; else they are merely on no list
    :param temporary: the grant that holds a higher level, which is not taken; ``None`` if there is none
    :param decision: the decision of a review that allows less than rows say; ``None`` if there is none
    :param expired: the decision of a review that would allow less, if it still counted; ``None`` if there is none
    :param ended: grants that end with this
    :param grants: grants that stay noted: they count, or are over, and the sweep ends them
    :param is_over: whether access was taken: the person leaves, their row ended, or a review decided about them
    """

    has_access: bool
    level: int | None
    why: str
    is_named: bool
    temporary: NotedGrant | None = None
    decision: ReviewDecision | None = None
    expired: ReviewDecision | None = None
    ended: tuple[NotedGrant, ...] = ()
    grants: tuple[NotedGrant, ...] = ()
    is_over: bool = False

    @property
    def most(self) -> int | None:
        """The highest level that nobody takes; ``None`` for any, and without access."""
        return self.temporary.level if self.temporary else self.level

    def takes(self, held: int | None) -> bool:
        """Return whether somebody with a level has more than this; a level that is not shown is no more."""
        if not self.has_access and self.temporary is None:
            return True
        if self.most is None or held is None:
            return False
        return held > self.most

    def gives(self, held: int | None) -> bool:
        """Return whether somebody with a level has less than this; a level that is not shown is no less."""
        if self.level is None or held is None:
            return False
        return held < self.level


def entitlement_of(saying: Saying, claims: Claims, now: float) -> Entitlement:
    """
    Return what a person should have now: the first of these that says something.

    1. Who leaves has nothing, and their temporary access ends.
    2. What rows say, which a decision of a review caps.
    3. Temporary access, if it is more. The end of the last row, and the decision to remove somebody, end what was
       granted before. What is over holds nothing: it ends with the access of its person, or by the sweep.

    Whom nobody may touch, such as owners, is asked afterwards:
    :class:`~airflow_provider_workspace.access.rules.guards.Guards`.

    :param now: in seconds since 1970
    """
    if claims is NO_CLAIMS:
        return Entitlement(saying.has_access, saying.level, saying.why, saying.is_named, is_over=saying.is_over)
    decision = claims.decision
    expired: ReviewDecision | None = None
    if decision and now > decision.until:
        if _says_more(saying, decision):
            expired = decision
        decision = None
    standing = [grant for grant in claims.grants if _stands(grant, saying, decision)]
    ended = [grant for grant in claims.grants if grant not in standing]
    has_access = saying.has_access
    level = saying.level
    why = saying.why
    capping: ReviewDecision | None = None
    if decision and _says_more(saying, decision):
        capping = decision
        has_access = decision.level is not None
        level = decision.level
        why = str(decision)
    temporary: NotedGrant | None = None
    active = [grant for grant in standing if not grant.is_over]
    highest = max(active, key=attrgetter("level"), default=None)
    if highest and _is_more(highest, saying, has_access=has_access, level=level):
        temporary = highest
        why = str(highest)
    if not has_access and not active:
        ended = list(claims.grants)
        standing = []
    is_decided = decision is not None
    return Entitlement(
        has_access=has_access,
        level=level,
        why=why,
        is_named=saying.is_named or is_decided,
        temporary=temporary,
        decision=capping,
        expired=expired,
        ended=tuple(ended),
        grants=tuple(standing),
        is_over=saying.is_over or is_decided,
    )


def decision_against(level: int | None, claims: Claims, now: float) -> ReviewDecision | None:
    """
    Return the decision of a review that allows less than a level; ``None`` if there is none.

    :param level: ``None`` for any
    :param now: in seconds since 1970
    """
    return entitlement_of(Saying(has_access=True, level=level), claims, now).decision


def _stands(grant: NotedGrant, saying: Saying, decision: ReviewDecision | None) -> bool:
    """Return whether a grant counts in spite of what else is said."""
    if saying.leaves:
        return False
    if saying.ended_at is not None and grant.since < saying.ended_at:
        return False
    if decision is None or decision.level is not None:
        return True
    return outlasts(grant.since, decision.decided_at)


def outlasts(given_at: float, removed_at: float) -> bool:
    """
    Return whether temporary access counts in spite of a decision to remove its person: only if it was given later.

    :param given_at: :attr:`NotedGrant.since`
    :param removed_at: :attr:`ReviewDecision.decided_at`
    """
    return given_at > removed_at


def _says_more(saying: Saying, decision: ReviewDecision) -> bool:
    """Return whether rows give more than a review decided."""
    if not saying.has_access:
        return False
    if decision.level is None or saying.level is None:
        return True
    return saying.level > decision.level


def _is_more(grant: NotedGrant, saying: Saying, *, has_access: bool, level: int | None) -> bool:
    """Return whether a grant gives more than rows do; any level is as much, unless it is what an ended row left."""
    if not has_access:
        return True
    if level is None:
        return bool(saying.why)
    return grant.level > level
