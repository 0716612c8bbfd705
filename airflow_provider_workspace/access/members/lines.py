"""The lines of a plan about people: what is sent for a member or an invite, and what is only said."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.access.rules.guards import HIDDEN
from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.api.levels import LEVELS, describe_level
from airflow_provider_workspace.api.operations.invites import CreateInvite, DeleteInvite
from airflow_provider_workspace.api.operations.members import DeleteMember, UpdateMember
from airflow_provider_workspace.api.timestamps import moment_of
from airflow_provider_workspace.procedures.plan import Action, Change, Mark

if TYPE_CHECKING:
    from airflow_provider_workspace.access.members.case import Case
    from airflow_provider_workspace.access.rules.entitlements import Entitlement, NotedGrant, ReviewDecision
    from airflow_provider_workspace.api.models import Invite
    from airflow_provider_workspace.procedures.roster import Roster, Row

# In the order in which they are applied: removals first, because a plan may limit the number of members.
ORDER = ("remove", "change", "create")
OTHER_LEVEL = "another level on the roster"
RENEWED = "renewed: the row says another level, or asks for a mail"


@dataclass(frozen=True, slots=True, eq=False)
class MemberChange(Change):
    """
    A change of a member or an invite, or a line about one.

    :param ends: temporary access that ends with it
    :param leaves: the keys of grants that say less, and the level that a row leaves the person after each
    """

    _: KW_ONLY
    ends: tuple[NotedGrant, ...] = ()
    leaves: tuple[tuple[str, int], ...] = ()


def order_of(change: Change) -> tuple[int, int]:
    """
    Return where a change is sent: removals first, because a plan may limit the number of members.

    Administrators lose access after the other changes: one of them may own the API key, which then stops working. An
    invite is withdrawn to be renewed when all else is sent, for then nothing keeps the new one from being sent.
    """
    if not change.sends:
        return len(ORDER), 0
    if change.is_renewal:
        return ORDER.index("create"), 0
    level: int = change.before.get("level") or 0
    is_member = isinstance(change.operation, DeleteMember | UpdateMember)
    if is_member and change.takes_from_person and level >= LEVELS["admin"]:
        return ORDER.index("change"), level
    return ORDER.index(change.action), 0


def level_fields(level: int | None) -> dict[str, Any]:
    """Return a level as the fields of a change have it; none if there is no level, or it is not shown."""
    return {} if level is None else {"level": level}


def highest_of(levels: Iterable[int | None]) -> int | None:
    """Return the highest of the levels that are shown; ``None`` if there is none."""
    shown = [level for level in levels if level is not None]
    return max(shown, default=None)


def remark_on(
    action: Action, who: str, why: str, *, before: int | None = None, after: int | None = None, mark: Mark = ""
) -> MemberChange:
    """
    Return a line about a person of which nothing is sent.

    :param who: their address, perhaps with their user behind it
    """
    return MemberChange(
        action,
        "members",
        f"person {who or '-'}",
        after=level_fields(after),
        before=level_fields(before),
        why=why,
        mark=mark,
        person=_person_of(who),
    )


def kept(
    who: str, why: str, *, why_kept: str, before: int | None, after: int | None, entitled: Entitlement
) -> MemberChange:
    """
    Leave a person alone; what a source says about them is left to people.

    :param why_kept: why they are neither removed nor changed
    :param after: the level that they should have; ``None`` if they should be removed
    """
    takes = after is None
    if before is not None and after is not None:
        takes = after < before
    may_take = takes or before is None
    may_be_over = may_take and entitled.is_over
    is_hidden = why_kept.startswith(HIDDEN)
    action: Action = "differs"
    if is_hidden:
        action = "unknown"
    elif takes and not entitled.is_named:
        action = "skip"
    reason = f"{why or OTHER_LEVEL}, but {why_kept}"
    cure = "remove them by hand" if after is None else "set the level by hand, or correct the row"
    mark: Mark = "kept" if action == "skip" else ""
    change = remark_on(action, who, reason, before=before, after=after, mark=mark)
    if action == "differs":
        change = replace(change, cure=cure)
    return replace(change, should_lose=may_be_over or (takes and is_hidden))


def refused_by_review(row: Row, decision: ReviewDecision, who: str, held: int | None) -> MemberChange:
    """Leave a row undone that gives more than a review decided."""
    cure = f"correct the row, or lift the decision about {decision.who}"
    why = f"{decision}, and row {row.number} gives more: {cure}"
    change = remark_on("differs", who, why, before=held, after=row.level)
    return replace(change, should_gain=True)


def later_end(row: Row, what: str = "") -> MemberChange | None:
    """Say when access ends; ``None`` if it does not, or has."""
    if row.is_over or not row.end.until:
        return None
    return remark_on("wait", row.invite.target_email, f"{what}{row.end}")


def renewal(organization_id: str, row: Row, entitled: Entitlement, invite: Invite) -> list[MemberChange]:
    """
    Withdraw an open invite that is not as its row says, and invite its person again.

    A task that is killed in between leaves them without an invite: the next run invites them, as the row says.
    """
    delete = DeleteInvite(organization_id=organization_id, invite_id=str(invite.id))
    old = withdrawal(delete, row.invite.target_email, RENEWED, level=invite.level)
    return [replace(old, is_renewal=True), invitation(organization_id, row, entitled, RENEWED)]


def invitation(organization_id: str, row: Row, entitled: Entitlement, why: str = "") -> MemberChange:
    """
    Invite the person of a row.

    :param why: the reason, if there is one beside their row
    """
    email = row.invite.target_email
    fields = row.invite.model_dump(mode="json", exclude_unset=True, exclude={"target_email"}) | row.end.fields
    create = CreateInvite(organization_id=organization_id, **row.invite.model_dump(exclude_unset=True))
    reasons = [why, str(row.end)]
    if entitled.expired:
        reasons.append(entitled.expired.expiry)
    return MemberChange(
        "create",
        "members",
        f"invite {email}",
        after=fields,
        why=", ".join(filter(None, reasons)),
        operation=create,
        person=row.key,
    )


def compared_with_invites(row: Row, invites: list[Invite], why_not_renewed: str) -> MemberChange | None:
    """
    Compare a row with the open invites of its person, which the interface cannot change.

    :param why_not_renewed: why no run withdraws and sends them again, and what to do; empty if a run may
    """
    email = row.invite.target_email
    level = row.level
    others = {invite.level for invite in invites} - {level}
    why = "holds an open invite"
    if not others and level is not None and _lacks_mail(row, invites):
        others = {level}
        why += " of which no mail was sent"
    if not others or (level is None and len(others) == 1):
        return later_end(row)
    if None in others:
        return remark_on("unknown", email, f"{why}, but {HIDDEN}its level", after=level)
    change = remark_on("differs", email, why + why_not_renewed, before=highest_of(others), after=level)
    cure = "" if why_not_renewed else "withdraw it and run this again, or set renew_invites"
    return replace(change, cure=cure)


def _lacks_mail(row: Row, invites: list[Invite]) -> bool:
    """Return whether a row asks for a mail, and the service shows that none was sent."""
    return bool(row.invite.send_email) and all(invite.send_email is False for invite in invites)


def removal(
    delete: DeleteMember, who: str, why: str, *, level: int | None = None, ends: tuple[NotedGrant, ...] = ()
) -> MemberChange:
    """
    Remove a member.

    :param who: their address, perhaps with their user behind it; their user if the address is not known
    :param level: their level; ``None`` if it is not shown
    :param ends: the temporary access that ends with it
    """
    return MemberChange(
        "remove",
        "members",
        f"member {who}",
        before=level_fields(level),
        why=why,
        operation=delete,
        person=_person_of(who),
        ends=ends,
    )


def withdrawal(
    delete: DeleteInvite,
    email: str,
    why: str,
    *,
    level: int | None = None,
    ends: tuple[NotedGrant, ...] = (),
) -> MemberChange:
    """
    Withdraw an open invite.

    :param level: its level; ``None`` if it is not shown
    :param ends: the temporary access that ends with it
    """
    return MemberChange(
        "remove",
        "members",
        f"invite {email}",
        before=level_fields(level),
        why=why,
        operation=delete,
        person=address_key(email),
        ends=ends,
    )


def level_change(organization_id: str, case: Case, who: str, level: int) -> MemberChange:
    """Raise or lower a member to a level."""
    after = level_fields(level)
    if case.row and not case.row.is_over:
        after |= case.row.end.fields
    return MemberChange(
        "change",
        "members",
        f"member {who}",
        after=after,
        before=level_fields(case.held),
        why=case.why,
        operation=UpdateMember(organization_id=organization_id, user_uuid=str(case.user_uuid), level=level),
        person=case.key,
        ends=case.entitled.ended,
    )


def unchanged(case: Case) -> MemberChange | None:
    """Say what else there is to say about a member whose level stays; ``None`` if there is nothing."""
    row = case.row
    decision = case.entitled.decision
    gives = case.saying.level
    has_less = gives is not None and (case.held is None or case.held < gives)
    if row and decision and has_less:
        return refused_by_review(row, decision, case.email, case.held)
    entitled = case.entitled
    if entitled.grants and (entitled.temporary or levels_left(row, entitled)):
        return held_by_grants(row, entitled, case.email, case.held)
    return later_end(row) if row else None


def held_by_grants(row: Row | None, entitled: Entitlement, who: str, held: int | None) -> MemberChange:
    """Say what temporary access gave a person, and what their row leaves them after it."""
    grant = entitled.temporary or max(entitled.grants, key=attrgetter("level"))
    leaves = levels_left(row, entitled)
    why = str(grant)
    if leaves:
        highest = max(level for _, level in leaves)
        why += f", then {describe_level(highest)}"
    return remark_on("wait", who, why, before=held)


def levels_left(row: Row | None, entitled: Entitlement) -> tuple[tuple[str, int], ...]:
    """
    Return the keys of grants whose end would take more than a row does, and the level that it leaves the person.

    A row that names no level leaves the lowest one.
    """
    if row is None or not entitled.has_access:
        return ()
    given = LEVELS["member"] if entitled.level is None else entitled.level
    leaves: list[tuple[str, int]] = []
    for grant in entitled.grants:
        level = min(given, grant.level)
        takes_more = grant.then is None or grant.then < level
        if takes_more and (row.is_over or row.end.moment > moment_of(grant.until)):
            leaves.append((grant.key, level))
    return tuple(leaves)


def gone(email: str, grants: tuple[NotedGrant, ...], *, are_users_shown: bool) -> MemberChange:
    """
    Say that somebody who had temporary access is in no list; that of a user who certainly is no member ends with it.

    :param are_users_shown: whether the list of members shows the user of each
    """
    proven = [grant for grant in grants if grant.person.user_uuid and are_users_shown]
    left = [grant for grant in grants if grant not in proven]
    ends = [f"ends {grant}" for grant in proven] + [f"the sweep ends {grant}" for grant in left]
    line = remark_on("skip", email, f"is neither a member nor invited; {', '.join(ends)}")
    return replace(line, ends=tuple(proven))


def rows_left_out(roster: Roster, *, is_leaving: bool) -> list[Change]:
    """Return the rows that say what another one says, and the invalid ones, whose people should perhaps lose access."""
    changes: list[Change] = []
    for entry in roster.duplicates:
        why = f"row {entry.row}: {entry.reason}"
        changes.append(remark_on("skip", entry.email, why, mark="duplicate"))
    for entry in roster.invalid:
        name = f"row {entry.row} {entry.email}".rstrip()
        is_doubtful = entry.row in roster.with_end or entry.row in roster.doubtful
        should_lose = is_leaving or is_doubtful
        why = f"left out: {entry.reason}; correct the row"
        changes.append(Change("differs", "members", name, why=why, should_lose=should_lose))
    return changes


def _person_of(who: str) -> str:
    """Return the key of the address in what a line calls somebody."""
    email, _, _ = who.partition(" ")
    return address_key(email)
