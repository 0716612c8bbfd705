"""
Make the members of an organization match a roster.

Everybody on the roster must be a member with its level, or have an open invite; nobody else may be one.
:func:`plan_members` plans this, or the removal of some people only, and :func:`apply` applies a plan.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.api.operations.invites import CreateInvite, DeleteInvite, ListInvites
from airflow_provider_workspace.api.operations.members import DeleteMember, ListMembers, UpdateMember
from airflow_provider_workspace.errors import (
    WorkspaceBadRequestError,
    WorkspaceError,
    WorkspaceInputError,
    WorkspaceNotAppliedError,
    WorkspaceNotFoundError,
    WorkspacePermissionError,
    printable,
)
from airflow_provider_workspace.procedures.ensure import check_done
from airflow_provider_workspace.procedures.find import read_rows
from airflow_provider_workspace.procedures.invites_report import NEEDS_ATTENTION as INVITES_THAT_NEED_ATTENTION
from airflow_provider_workspace.procedures.invites_report import (
    InvitesReport,
    WorkspaceInvitesIncompleteError,
    name_entries,
)
from airflow_provider_workspace.procedures.plan import MAX_LINES, Change, Plan, describe_fields
from airflow_provider_workspace.procedures.roster import Roster, Row, check_address, check_roster

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Invite, Member
    from airflow_provider_workspace.client.client import WorkspaceClient

log = logging.getLogger(__name__)

# In the order in which they are applied: removals first, because a plan may limit the number of members. With what was
# done, for people.
STEPS: dict[str, tuple[type, str]] = {
    "withdraw": (DeleteInvite, "withdrawn"),
    "remove": (DeleteMember, "removed"),
    "change_level": (UpdateMember, "level changed"),
    "invite": (CreateInvite, "invited"),
    "skip": (object, "skipped"),
}
ORDER = list(STEPS)
# The fields of a change in a report, and the statuses that need attention.
REPORT_FIELDS = ("action", "email", "old_level", "level", "fields", "why", "target", "status", "reason")
NEEDS_ATTENTION = ("refused", *INVITES_THAT_NEED_ATTENTION)
# Why a member or an invite is kept.
PROTECTED = "protected"
HIDDEN = "the service does not show "
# After so many refusals the people are not the cause: the API key may lack the scope.
MAX_REFUSALS = 5


class WorkspaceSyncIncompleteError(WorkspaceError):
    """The service refused some of the changes and applied the others."""


@dataclass(frozen=True, slots=True, eq=False)
class MemberChange(Change):
    """
    A change to one address; its action is ``keep`` if the person stays as they are, and nothing differs.

    :param target: user (UUID) of the member, or id of the invite
    """

    email: str = ""
    target: str | None = None

    @property
    def step(self) -> str:
        """One of :data:`STEPS`; ``skip`` leaves the person alone, for the reason in ``why``."""
        return next(step for step, (kind, _) in STEPS.items() if isinstance(self.operation, kind))

    @property
    def fields(self) -> dict[str, Any]:
        """What an invite has beside address and level."""
        return {name: value for name, value in self.after.items() if name != "level"}

    @property
    def levels(self) -> str:
        """The old and the new access level, for people."""
        return " to ".join(str(each["level"]) for each in (self.before, self.after) if "level" in each)


@dataclass(slots=True)
class MemberPlan(Plan[MemberChange]):
    """
    The changes of a member sync.

    :param keep: number of members that stay as they are
    :param blank: number of blank rows of the roster, which were skipped
    """

    keep: int = 0
    blank: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """Number of changes by step, of members that stay as they are, and of blank rows if there are any."""
        counted = Counter(change.step for change in self.changes)
        blank = {"blank": self.blank} if self.blank else {}
        return {**{step: counted[step] for step in STEPS}, "keep": self.keep, **blank}

    def report(self, *, planned: bool) -> dict[str, Any]:
        """Return the report file: each change with its ``status`` and ``reason``; ``planned`` if none is sent yet."""
        rows = []
        for change in self.changes:
            unsent = "skipped" if change.operation is None else "planned" if planned else "not_sent"
            status, reason = self.outcomes.get(change, (unsent, ""))
            rows.append({**self.fields(change), "status": status, "reason": reason})
        table = self.table(limit=MAX_LINES, applied=not planned)
        return {"pending": self.pending, "counts": self.counts, "changes": rows, "table": table}

    def summary(self, *, applied: bool = False) -> str:
        counts = self.counts
        if not applied:
            return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
        unsent = [change for change, (status, _) in self.outcomes.items() if status not in ("done", "invited")]
        for change in unsent:
            counts[change.step] -= 1
        rest = {"kept": self.keep, "not done": len(unsent), "blank": self.blank}
        done = [f"{counts[step]} {word}" for step, (_, word) in STEPS.items()]
        return ", ".join([*done, *(f"{count} {what}" for what, count in rest.items() if count or what == "kept")])

    def fields(self, change: MemberChange) -> dict[str, Any]:
        levels = change.before.get("level"), change.after.get("level")
        values = (change.step, change.email, *levels, change.fields, change.why, change.target)
        return dict(zip(REPORT_FIELDS, values, strict=False))

    def row(self, change: MemberChange) -> tuple[str, str]:
        notes = ", ".join([change.why, *describe_fields({}, change.fields)])
        return change.step, printable(f"  {change.step:<13} {change.email:<36} {change.levels:<8} {notes}")


def plan_members(
    client: WorkspaceClient,
    organization_id: str,
    rows: Iterable[Mapping[str, Any] | str],
    *,
    protected: Collection[Any],
    owner_level: int | None,
    leavers: Collection[Any] | None = None,
    complete: bool = True,
    on_invalid: str = "fail",
    read_members: Callable[[], list[Member]] | None = None,
) -> MemberPlan:
    """
    Compare a roster with an organization, or plan the removal of some people and of their open invites.

    :param rows: rows of the roster, see :func:`~airflow_provider_workspace.procedures.roster.check_roster`
    :param protected: addresses of people who are neither removed nor changed
    :param owner_level: members of this level and above are neither removed nor changed; ``None`` to treat them like
        others
    :param leavers: addresses of people who are removed, instead of a roster; nobody else is changed
    :param complete: whether people who are not on the roster are removed
    :param on_invalid: ``fail`` if a row is invalid, or ``skip`` such rows; only where nobody is removed
    :param read_members: returns the members
    :raises WorkspaceInputError: if a row or address is invalid, the roster is empty, or no owner would be left
    """
    roster = _check_rows(rows, on_invalid) if leavers is None else Roster()
    wanted = {row.key: row for row in roster.rows}
    leaving = {address_key(email): email for email in (check_address("leavers", one) for one in leavers or ())}
    if leavers is not None and not leaving:
        raise WorkspaceInputError("leavers is empty")
    safe = {address_key(check_address("protected", address)) for address in protected}
    # Before the members, so that people who join in between are not missed.
    invites = [
        invite for invite in read_rows(client, ListInvites(organization_id=organization_id)) if not invite.is_expired
    ]
    members = read_members() if read_members else read_rows(client, ListMembers(organization_id=organization_id))
    why = "not on the roster" if leavers is None else "is leaving"
    plan = MemberPlan(client.settings.place(organization_id), blank=roster.blank)

    def goes(key: str) -> bool:
        return key not in wanted and (key in leaving if leavers is not None else complete)

    invited = {address_key(invite.target_email or ""): invite for invite in invites}
    changes: list[MemberChange | None] = [
        _plan_invite(organization_id, invite, safe, f"invited and {why}")
        for invite in invites
        if goes(address_key(invite.target_email or ""))
    ]
    joined: set[str] = set()
    for member in members:
        key = address_key((member.user and member.user.email) or "")
        joined.add(key)
        row, change = wanted.get(key), None
        if row or goes(key):
            change = _plan_member(organization_id, member, row, owner_level, safe, why)
            changes.append(change)
        plan.keep += change is None
    new = (row for row in roster.rows if row.key not in joined)
    changes += [_plan_row(organization_id, row, invited.get(row.key), owner_level) for row in new]
    gone = (email for key, email in leaving.items() if key not in joined and key not in invited)
    changes += [_skip(email, "is neither a member nor invited", "", None) for email in gone]
    changes += [_skip(entry.email, f"row {entry.row}: {entry.reason}", "", None) for entry in roster.duplicates]
    plan.changes += sorted(filter(None, changes), key=lambda change: ORDER.index(change.step))
    for entry in roster.invalid:
        name = f"row {entry.row} {entry.email}".rstrip()
        plan.changes.append(
            MemberChange("differs", "members", name, why=f"left out: {entry.reason}", email=entry.email)
        )
    check_owner_stays(members, plan.changes)
    return plan


def _check_rows(rows: Iterable[Mapping[str, Any] | str], on_invalid: str) -> Roster:
    """Check the roster; an invalid row stops everything unless it may be skipped: its person would be removed."""
    roster = check_roster(rows)
    if roster.invalid and on_invalid == "fail":
        raise WorkspaceInputError(
            f"Correct the invalid rows of the roster ({len(roster.invalid)}): {name_entries(roster.invalid)}"
        )
    if not (roster.rows or roster.invalid):
        raise WorkspaceInputError("The roster is empty: this would remove everybody")
    return roster


def _level(level: int | None) -> dict[str, Any]:
    return {} if level is None else {"level": level}


def _skip(
    email: str, why: str, hold: str, target: str | None, before: int | None = None, after: int | None = None
) -> MemberChange:
    """Leave a person alone, because of ``hold``; a level that differs is left to people."""
    differs = None not in (before, after) and before != after
    action = "differs" if differs else "unknown" if hold.startswith(HIDDEN) else "keep" if target else "skip"
    why, email = f"{why}, but {hold}" if hold else why, email or "-"
    levels = _level(after), _level(before)
    return MemberChange(action, "members", f"person {email}", *levels, why, email=email, target=target)


def _plan_invite(organization_id: str, invite: Invite, safe: Collection[str], why: str) -> MemberChange:
    """Withdraw an open invite."""
    email, target = invite.target_email or "", invite.id
    hold = PROTECTED if address_key(email) in safe else "" if email and target else HIDDEN + "its address or id"
    if hold:
        return _skip(email, why, hold, target, invite.level)
    delete, name = DeleteInvite(organization_id=organization_id, invite_id=str(target)), f"invite {email}"
    return MemberChange("remove", "members", name, {}, _level(invite.level), why, delete, email=email, target=target)


def _plan_row(organization_id: str, row: Row, invite: Invite | None, owner_level: int | None) -> MemberChange:
    """Invite somebody who is not a member, unless they hold an open invite."""
    email, level = row.invite.target_email, row.level
    if invite is not None:
        why = "holds an open invite"
        if level is not None and owner_level is not None and level < owner_level <= (invite.level or 0):
            why += f" as an owner (owner_level={owner_level}), whom a sync never changes: withdraw it by hand"
        return _skip(email, why, "", invite.id, invite.level, level)
    create = CreateInvite(organization_id=organization_id, **row.invite.model_dump(exclude_unset=True))
    fields = row.invite.model_dump(mode="json", exclude_unset=True, exclude={"target_email", "level"})
    why, after = "is neither a member nor invited", {**_level(level), **fields}
    return MemberChange("create", "members", f"invite {email}", after, {}, why, create, email=email)


def _plan_member(
    organization_id: str, member: Member, row: Row | None, owner_level: int | None, safe: Collection[str], why: str
) -> MemberChange | None:
    """Plan the change to a member, ``None`` if there is none; ``why`` is the reason to remove one without a row."""
    email, target = (member.user.email or "", member.user.uuid) if member.user else ("", None)
    old, level = member.level, row.level if row else None
    if row and level in (None, old):
        return None
    why = "another level on the roster" if row else why
    hold = _why_kept(member, safe, owner_level)
    if not hold and (not email or not target):
        hold = HIDDEN + "their address or user"
    elif not hold and row and old is None:
        hold = HIDDEN + "their level"
    if hold:
        return _skip(email, why, hold, target, old, level)
    where: dict[str, Any] = {"organization_id": organization_id, "user_uuid": target}
    action = "remove" if level is None else "change"
    operation = DeleteMember(**where) if level is None else UpdateMember(**where, level=level)
    levels = _level(level), _level(old)
    return MemberChange(action, "members", f"member {email}", *levels, why, operation, email=email, target=target)


def _why_kept(member: Member, safe: Collection[str], owner_level: int | None) -> str:
    """Return why a member is neither removed nor changed; an empty string if they may be."""
    email = (member.user and member.user.email) or ""
    if address_key(email) in safe:
        return PROTECTED
    if safe and not email:
        return HIDDEN + "their address"
    if owner_level is not None and member.level is None:
        return HIDDEN + "their level"
    if owner_level is not None and (member.level or 0) >= owner_level:
        return f"an owner (owner_level={owner_level})"
    return ""


def check_removal(
    user_uuid: str,
    members: list[Member],
    *,
    protected: Collection[str],
    owner_level: int | None,
    allow_last_owner: bool,
) -> None:
    """
    Refuse to remove one member whom a sync would keep; the arguments are those of :func:`plan_members`.

    :param user_uuid: user of the member; somebody who is no member is not refused
    :param allow_last_owner: whether nobody of the highest level need be left
    :raises WorkspaceInputError: with the argument that permits it
    """
    safe = {address_key(check_address("protected", address)) for address in protected}
    for member in members:
        if member.user and (member.user.uuid or "").lower() == str(user_uuid).strip().lower():
            who = member.user.email or user_uuid
            hold = _why_kept(member, safe, owner_level)
            if hold == PROTECTED:
                raise WorkspaceInputError(f"Take {who} out of protected if they are to be removed")
            if hold:
                raise WorkspaceInputError(
                    f"Set owner_level=None if {who} is to be removed: {hold}. A key stops working without its owner"
                )
            if not allow_last_owner:
                change = MemberChange("remove", "members", who, email=who, target=member.user.uuid)
                check_owner_stays(members, [change], ", or set allow_last_owner=True")


def check_owner_stays(members: Iterable[Member], changes: Iterable[Change], cure: str = "") -> None:
    """
    Refuse changes that leave an organization without a member of its highest level.

    :param cure: what permits it, for the message
    :raises WorkspaceInputError: naming the last ones
    """
    before = {member.user.uuid: member.level or 0 for member in members if member.user and member.user.uuid}
    sent = {change.target: change for change in changes if isinstance(change, MemberChange) and change.sends}
    highest = max(before.values(), default=-1)
    after = [sent[uuid].after.get("level", -1) if uuid in sent else level for uuid, level in before.items()]
    if max(after, default=-1) < highest:
        last = ", ".join(change.email for uuid, change in sent.items() if before.get(uuid or "") == highest)
        raise WorkspaceInputError(
            f"Make somebody else an owner first{cure}: without {last}, nobody has the highest level of the "
            f"organization, {highest}"
        )


def apply(
    client: WorkspaceClient,
    plan: Plan[Any],
    organization_id: str,
    invite: Callable[[list[dict[str, Any]]], InvitesReport],
) -> None:
    """
    Send the changes, and note their outcomes in the plan; a change that is refused does not stop the others.

    :param invite: invites the people of these rows
    :raises WorkspaceSyncIncompleteError: if a change was refused
    :raises WorkspaceNotAppliedError: if the lists do not show a change that succeeded
    """
    changes: list[MemberChange] = [change for change in plan.changes if change.sends]
    inviting = [change for change in changes if change.step == "invite"]
    sent: list[MemberChange] = []
    refused: list[str] = []
    for change in changes:
        if change.step == "invite" or len(refused) == MAX_REFUSALS:
            break
        try:
            change.send(client)
        except WorkspaceNotFoundError:
            if change.step != "change_level":
                raise
            log.warning("%s has left since the members were read. The next run invites them.", change.email)
        except (WorkspaceBadRequestError, WorkspacePermissionError, WorkspaceNotAppliedError) as error:
            log.error("Refused: %s", error)  # noqa: TRY400 - one error for all of them follows
            reason = str(getattr(error, "detail", None) or error)
            plan.outcomes[change] = ("refused", reason)
            refused.append(f"{change.step} {change.email}: {reason}")
            continue
        plan.outcomes[change] = ("done", "")
        sent.append(change)
    if inviting and len(refused) < MAX_REFUSALS:
        failed: WorkspaceInvitesIncompleteError | None = None
        try:
            report = invite([{"target_email": change.email, **change.after} for change in inviting])
        except WorkspaceInvitesIncompleteError as error:
            failed, report = error, error.report
        # The rows are in the order of the changes.
        plan.outcomes |= {inviting[entry.row - 1]: (entry.status, entry.reason) for entry in report.entries}
        if failed:
            raise failed
        log.info("%s", report.table())
    if refused:
        raise WorkspaceSyncIncompleteError(f"The service refused {len(refused)} changes. {'; '.join(refused)}")
    if sent:
        _check_sent(client, plan, sent, organization_id)


def _check_sent(client: WorkspaceClient, plan: Plan[Any], left: list[MemberChange], organization_id: str) -> None:
    """Check all changes in the lists, reading each list once per poll."""
    operation: Any = left[0].operation

    def is_done() -> bool:
        nonlocal left
        levels: dict[str | None, int | None] = {}
        if any(change.step == "withdraw" for change in left):
            levels |= {invite.id: None for invite in read_rows(client, ListInvites(organization_id=organization_id))}
        if any(change.step != "withdraw" for change in left):
            members = read_rows(client, ListMembers(organization_id=organization_id))
            levels |= {member.user.uuid: member.level for member in members if member.user}
        left = [
            change
            for change in left
            if change.target in levels and (change.action == "remove" or levels[change.target] != change.after["level"])
        ]
        return not left

    try:
        check_done(client, "each change was made", operation, is_done)
    except WorkspaceNotAppliedError as error:
        for change in left:
            plan.outcomes[change] = ("refused", "the service reported success, but does not show the change")
        named = ", ".join(f"{change.step} {change.email}" for change in left[:MAX_LINES])
        error.args = (f"Not done: {named}. {error}",)
        raise
