"""
Make the members of an organization match a roster.

Everybody on the roster must be a member with its level, or have an open invite; nobody else may be one.
:func:`plan_members` plans this, :func:`plan_leavers` plans it for some people only, and :func:`apply` applies a plan.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_workspace.api.comparison import address_key, printable
from airflow_provider_workspace.api.operations.invites import CreateInvite, DeleteInvite, ListInvites
from airflow_provider_workspace.api.operations.members import DeleteMember, ListMembers, UpdateMember
from airflow_provider_workspace.errors import (
    WorkspaceBadRequestError,
    WorkspaceError,
    WorkspaceInputError,
    WorkspaceNotAppliedError,
    WorkspaceNotFoundError,
    WorkspacePermissionError,
)
from airflow_provider_workspace.procedures.changes import check_done, delete_if_present
from airflow_provider_workspace.procedures.invites_report import NEEDS_ATTENTION as INVITES_THAT_NEED_ATTENTION
from airflow_provider_workspace.procedures.invites_report import (
    InvitesReport,
    WorkspaceInvitesIncompleteError,
    name_entries,
)
from airflow_provider_workspace.procedures.plan import MAX_LINES, Change, describe_fields
from airflow_provider_workspace.procedures.roster import Entry, Roster, Row, check_address, check_roster
from airflow_provider_workspace.procedures.snapshot import read_rows

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Invite, Member
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.client.client import WorkspaceClient

log = logging.getLogger(__name__)

# In the order in which they are applied: removals first, because a plan may limit the number of members.
ACTIONS = ("withdraw", "remove", "change_level", "invite", "skip")
# The fields of a change in a report, and the statuses that need attention.
CHANGE_FIELDS = ("action", "email", "old_level", "level", "fields", "why", "target")
# What was done, for people.
DONE = ("withdrawn", "removed", "level changed", "invited", "skipped")
REPORT_FIELDS = (*CHANGE_FIELDS, "status", "reason")
NEEDS_ATTENTION = ("refused", *INVITES_THAT_NEED_ATTENTION)
# Why a member or an invite is kept.
PROTECTED = "protected"
HIDDEN = "the service does not show "
# After so many refusals the people are not the cause: the API key may lack the scope.
MAX_REFUSALS = 5


class WorkspaceSyncIncompleteError(WorkspaceError):
    """The service refused some of the changes and applied the others."""


@dataclass(frozen=True, slots=True)
class MemberChange:
    """
    A change to one address.

    :param action: one of :data:`ACTIONS`; ``skip`` leaves it alone, for the reason in ``why``
    :param why: the reason, for people
    :param level: desired access level; ``None`` if the roster names none
    :param old_level: current access level
    :param target: user (UUID) of the member, or id of the invite
    :param row: row of the roster to invite
    :param is_listed: whether the roster names the address
    :param is_hidden: whether the service does not show what the decision needs
    """

    action: str
    email: str
    why: str
    level: int | None = None
    old_level: int | None = None
    target: str | None = None
    row: Row | None = None
    is_listed: bool = True
    is_hidden: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {name: getattr(self, name) for name in CHANGE_FIELDS}

    @property
    def fields(self) -> dict[str, Any]:
        """What an invite has beside address and level."""
        hidden = {"target_email", "level"}
        return self.row.invite.model_dump(mode="json", exclude_unset=True, exclude=hidden) if self.row else {}

    def planned(self, organization_id: str) -> Change | None:
        """Return it as a change of an organization's plan; ``None`` if nothing differs."""
        before = {} if self.old_level is None else {"level": self.old_level}
        after = {} if self.level is None else {"level": self.level}
        person = f"person {self.email}"
        if self.action == "skip":
            if before and after and before != after:
                return Change("differs", "members", person, after, before, self.why)
            if self.is_hidden:
                return Change("unknown", "members", person, why=self.why)
            return None if self.target else Change("skip", "members", person, why=self.why)
        operation = self.operation(organization_id)
        if self.action == "invite":
            return Change("create", "members", f"invite {self.email}", {**after, **self.fields}, operation=operation)
        if self.action == "change_level":
            return Change("change", "members", f"member {self.email}", after, before, operation=operation)
        kind = "invite" if self.action == "withdraw" else "member"
        return Change("remove", "members", f"{kind} {self.email}", {}, before, self.why, operation)

    def operation(self, organization_id: str) -> Operation[Any]:
        """Return what applies it; invites are sent many at once."""
        target, level = str(self.target), self.level
        if self.row:
            return CreateInvite(organization_id=organization_id, **self.row.invite.model_dump(exclude_unset=True))
        if self.action == "withdraw":
            return DeleteInvite(organization_id=organization_id, invite_id=target)
        if self.action == "remove":
            return DeleteMember(organization_id=organization_id, user_uuid=target)
        return UpdateMember(organization_id=organization_id, user_uuid=target, level=cast("int", level))

    @property
    def levels(self) -> str:
        """The old and the new access level, for people."""
        before, after = ("" if level is None else str(level) for level in (self.old_level, self.level))
        return f"{before} to {after}" if before and after else before or after


@dataclass(slots=True)
class MemberPlan:
    """
    The changes, in the order in which they are applied.

    :param organization_id: the organization
    :param planned_for: the service and the organization
    :param keep: number of members that stay as they are
    :param blank: number of blank rows of the roster, which were skipped
    :param invalid: rows of the roster that are invalid and were left out
    :param outcomes: status and reason of the changes that were sent, by position
    """

    organization_id: str = ""
    planned_for: str = ""
    changes: list[MemberChange] = field(default_factory=list[MemberChange])
    keep: int = 0
    blank: int = 0
    invalid: list[Entry] = field(default_factory=list[Entry])
    outcomes: dict[int, tuple[str, str]] = field(default_factory=dict[int, tuple[str, str]])

    @property
    def counts(self) -> dict[str, int]:
        """Number of changes by action, of members that stay as they are, and of blank rows if there are any."""
        counted = Counter(change.action for change in self.changes)
        blank = {"blank": self.blank} if self.blank else {}
        return {**{action: counted[action] for action in ACTIONS}, "keep": self.keep, **blank}

    @property
    def pending(self) -> int:
        """Number of changes to apply."""
        return sum(change.action != "skip" for change in self.changes)

    def planned(self) -> list[Change | None]:
        """Return each change as a change of an organization's plan; ``None`` if nothing differs."""
        return [change.planned(self.organization_id) for change in self.changes]

    def to_dict(self, *, applied: bool = False) -> dict[str, Any]:
        """Return plain JSON: numbers, ``changes``, the beginning of the ``table``, and ``planned_for``."""
        return {
            "pending": self.pending,
            "counts": self.counts,
            "changes": [
                {**change.to_dict(), "digest": planned and planned.digest(self.planned_for)}
                for change, planned in zip(self.changes, self.planned(), strict=True)
            ],
            "table": self.table(limit=MAX_LINES, applied=applied),
            "planned_for": self.planned_for,
        }

    def note_invites(self, report: InvitesReport) -> None:
        """Add the results of the invites, whose rows are in the order of the changes."""
        numbers = [number for number, change in enumerate(self.changes) if change.row]
        for entry in report.entries:
            self.outcomes[numbers[entry.row - 1]] = (entry.status, entry.reason)

    def report(self, *, planned: bool) -> dict[str, Any]:
        """Return the report file: each change with its ``status`` and ``reason``; ``planned`` if none is sent yet."""
        rows: list[dict[str, Any]] = []
        for number, change in enumerate(self.changes):
            unsent = "skipped" if change.action == "skip" else "planned" if planned else "not_sent"
            status, reason = self.outcomes.get(number, (unsent, ""))
            rows.append({**change.to_dict(), "status": status, "reason": reason})
        table = self.table(limit=MAX_LINES, applied=not planned)
        return {"pending": self.pending, "counts": self.counts, "changes": rows, "table": table}

    def summary(self, *, applied: bool = False) -> str:
        """Return the numbers for people; ``applied`` for what was done."""
        counts = self.counts
        if not applied:
            return ", ".join(f"{counts[name]} {name.replace('_', ' ')}" for name in counts)
        unsent = [number for number, (status, _) in self.outcomes.items() if status not in ("done", "invited")]
        for number in unsent:
            counts[self.changes[number].action] -= 1
        done = ", ".join(f"{counts[action]} {word}" for action, word in zip(ACTIONS, DONE, strict=True))
        rest = {"kept": self.keep, "not done": len(unsent), "blank": self.blank}
        return ", ".join([done, *(f"{count} {what}" for what, count in rest.items() if count or what == "kept")])

    def table(self, *, limit: int | None = None, applied: bool = False) -> str:
        """
        Return the plan for people: a summary, and a line for each change.

        :param limit: maximum number of lines of one action
        """
        lines = [self.summary(applied=applied)]
        width = max((len(change.email) for change in self.changes), default=0)
        for action in ACTIONS:
            of_action = [change for change in self.changes if change.action == action]
            lines += [
                printable(
                    f"  {action:<13} {change.email:<{width}}  {change.levels:<8} "
                    + ", ".join([change.why, *describe_fields({}, change.fields)])
                )
                for change in of_action[:limit]
            ]
            if limit is not None and len(of_action) > limit:
                lines.append(f"  {action:<13} … and {len(of_action) - limit} more")
        return "\n".join(lines)

    def check_removals(self, maximum: int | None) -> None:
        """
        Refuse a plan with too many removals.

        :param maximum: maximum number of members and invites to remove; ``None`` for any number
        :raises WorkspaceInputError: if there are more
        """
        counts = self.counts
        going = counts["remove"] + counts["withdraw"]
        if maximum is not None and going > maximum:
            raise WorkspaceInputError(
                f"Check that the list of people is complete; if it is, raise max_removals={maximum}: "
                f"{counts['remove']} members and {counts['withdraw']} open invites would be removed"
            )


def read_and_plan(
    client: WorkspaceClient,
    rows: Iterable[Mapping[str, Any] | str],
    organization_id: str,
    *,
    protected: Collection[str],
    owner_level: int | None,
    leavers: Collection[Any] | None = None,
) -> MemberPlan:
    """Read the invites and the members, then plan with :func:`plan_members` or :func:`plan_leavers`."""
    page_size = client.settings.page_size
    invites = read_rows(client, ListInvites(organization_id=organization_id, limit=page_size))
    members = read_rows(client, ListMembers(organization_id=organization_id, limit=page_size))
    if leavers is not None:
        plan = plan_leavers(leavers, invites, members, protected=protected, owner_level=owner_level)
    else:
        plan = plan_members(rows, invites, members, protected=protected, owner_level=owner_level)
    check_owner_stays(members, plan.changes)
    plan.organization_id, plan.planned_for = organization_id, client.settings.place(organization_id)
    return plan


def plan_members(
    rows: Iterable[Mapping[str, Any] | str],
    invites: Iterable[Invite],
    members: Iterable[Member],
    *,
    protected: Collection[str],
    owner_level: int | None,
    on_invalid: str = "fail",
) -> MemberPlan:
    """
    Compare a roster with an organization.

    :param rows: rows of the roster, see :func:`~airflow_provider_workspace.procedures.roster.check_roster`
    :param invites: all invites, each once; read before the members, so that people who join in between are not missed
    :param members: all members, each once
    :param protected: addresses of people who are neither removed nor changed
    :param owner_level: members of this level and above are neither removed nor changed; ``None`` to treat them like
        others
    :param on_invalid: ``fail`` if a row is invalid, or ``skip`` such rows; only where nobody is removed
    :raises WorkspaceInputError: if a row or address is invalid, or the roster is empty
    """
    roster = _check_rows(rows, on_invalid)
    safe = {address_key(check_address("protected", address)) for address in protected}
    plan = MemberPlan(blank=roster.blank, invalid=roster.invalid)
    wanted = {row.key: row for row in roster.rows}
    invited: dict[str, Invite] = {}
    for invite in invites:
        if not invite.is_expired:
            invited[address_key(invite.target_email or "")] = invite
            plan.changes += _plan_invite(invite, wanted, safe)
    joined: set[str] = set()
    for member in members:
        key = address_key((member.user and member.user.email) or "")
        joined.add(key)
        change = _plan_member(member, wanted.get(key), owner_level, safe)
        if change:
            plan.changes.append(change)
        else:
            plan.keep += 1
    for row in roster.rows:
        if row.key in joined:
            continue
        email, level = row.invite.target_email, row.level
        if row.key in invited:
            invite = invited[row.key]
            why = "holds an open invite"
            if level is not None and owner_level is not None and level < owner_level <= (invite.level or 0):
                why += f" as an owner (owner_level={owner_level}), whom a sync never changes: withdraw it by hand"
            plan.changes.append(MemberChange("skip", email, why, level, invite.level, invite.id))
        else:
            plan.changes.append(MemberChange("invite", email, "is neither a member nor invited", level, row=row))
    plan.changes += [
        MemberChange("skip", entry.email, f"row {entry.row}: {entry.reason}") for entry in roster.duplicates
    ]
    plan.changes.sort(key=lambda change: ACTIONS.index(change.action))
    return plan


def plan_leavers(
    leavers: Iterable[Any],
    invites: Iterable[Invite],
    members: Iterable[Member],
    *,
    protected: Collection[str],
    owner_level: int | None,
) -> MemberPlan:
    """
    Plan the removal of some people and of their open invites; nobody else is changed.

    :param leavers: their addresses; the other arguments are those of :func:`plan_members`
    :raises WorkspaceInputError: if an address is invalid, or there is none
    """
    leaving = {address_key(email): email for email in (check_address("leavers", one) for one in leavers)}
    if not leaving:
        raise WorkspaceInputError("leavers is empty")
    safe = {address_key(check_address("protected", address)) for address in protected}
    plan = MemberPlan()
    found: set[str] = set()
    for invite in invites:
        key = address_key(invite.target_email or "")
        if key in leaving and not invite.is_expired:
            found.add(key)
            plan.changes += _plan_invite(invite, (), safe, "is leaving")
    for member in members:
        key = address_key((member.user and member.user.email) or "")
        if key not in leaving:
            plan.keep += 1
            continue
        found.add(key)
        change = _plan_member(member, None, owner_level, safe, "is leaving")
        plan.changes += [change] if change else []
    gone = [email for key, email in leaving.items() if key not in found]
    plan.changes += [MemberChange("skip", email, "is neither a member nor invited") for email in gone]
    plan.changes.sort(key=lambda change: ACTIONS.index(change.action))
    return plan


def check_removal(
    user_uuid: str,
    members: Iterable[Member],
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
    members = list(members)
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
                check_owner_stays(
                    members, [MemberChange("remove", who, "", target=member.user.uuid)], "allow_last_owner=True"
                )


def check_owner_stays(members: Iterable[Member], changes: Collection[MemberChange], argument: str = "") -> None:
    """
    Refuse changes that leave an organization without a member of its highest level.

    :param argument: the argument that permits it, for the message
    :raises WorkspaceInputError: naming the last ones
    """
    before = {member.user.uuid: member.level or 0 for member in members if member.user and member.user.uuid}
    after = before | {
        change.target: -1 if change.action == "remove" else change.level or 0
        for change in changes
        if change.action in ("remove", "change_level") and change.target
    }
    highest = max(before.values(), default=-1)
    if max(after.values(), default=-1) < highest:
        last = ", ".join(change.email for change in changes if before.get(str(change.target)) == highest)
        msg = f"Make somebody else an owner first{f', or set {argument}' if argument else ''}"
        raise WorkspaceInputError(f"{msg}: without {last}, nobody has the highest level of the organization, {highest}")


def _check_rows(rows: Iterable[Mapping[str, Any] | str], on_invalid: str) -> Roster:
    """Check the roster; an invalid row stops everything unless it may be skipped: its person would be removed."""
    roster = check_roster(rows, strict=on_invalid == "fail")
    if roster.invalid and on_invalid == "fail":
        raise WorkspaceInputError(
            f"Correct the invalid rows of the roster ({len(roster.invalid)}): {name_entries(roster.invalid)}"
        )
    if not (roster.rows or roster.invalid):
        raise WorkspaceInputError("The roster is empty: this would remove everybody")
    return roster


def _plan_invite(
    invite: Invite, wanted: Collection[str], safe: Collection[str], why: str = "not on the roster"
) -> list[MemberChange]:
    """Plan the change to an open invite; ``why`` is the reason to withdraw it."""
    email = invite.target_email or ""
    key = address_key(email)
    if key in wanted:
        return []
    if key in safe:
        hold = PROTECTED
    elif not email or not invite.id:
        hold = HIDDEN + "its address or id"
    else:
        return [MemberChange("withdraw", email, f"invited and {why}", None, invite.level, invite.id, is_listed=False)]
    return [
        MemberChange(
            "skip",
            email or "-",
            f"invited and {why}, but {hold}",
            None,
            invite.level,
            invite.id,
            is_listed=False,
            is_hidden=hold.startswith(HIDDEN),
        )
    ]


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


def _plan_member(
    member: Member, row: Row | None, owner_level: int | None, safe: Collection[str], why: str = "not on the roster"
) -> MemberChange | None:
    """Plan the change to a member, ``None`` if there is none; ``why`` is the reason to remove one without a row."""
    email, uuid = (member.user.email or "", member.user.uuid) if member.user else ("", None)
    level = row.level if row else None
    if row and level in (None, member.level):
        return None
    action, why = ("change_level", "another level on the roster") if row else ("remove", why)
    hold = _why_kept(member, safe, owner_level)
    if not hold and (not email or not uuid):
        hold = HIDDEN + "their address or user"
    elif not hold and row and member.level is None:
        hold = HIDDEN + "their level"
    if not hold:
        return MemberChange(action, email, why, level, member.level, uuid, is_listed=bool(row))
    why, hidden = f"{why}, but {hold}", hold.startswith(HIDDEN)
    return MemberChange("skip", email or "-", why, level, member.level, uuid, is_listed=bool(row), is_hidden=hidden)


def apply(
    client: WorkspaceClient,
    plan: MemberPlan,
    organization_id: str,
    invite: Callable[[list[dict[str, Any]]], InvitesReport],
) -> InvitesReport | None:
    """
    Send the changes; a change that is refused does not stop the others.

    :param invite: invites the people of these rows
    :return: the report of the invites; ``None`` if there was nobody to invite
    :raises WorkspaceSyncIncompleteError: if a change was refused
    :raises WorkspaceNotAppliedError: if the lists do not show a change that succeeded
    """
    refused: list[str] = []
    sent: dict[int, Operation[Any]] = {}
    for number, change in enumerate(plan.changes):
        if change.action not in ("withdraw", "remove", "change_level"):
            continue
        try:
            operation = change.operation(organization_id)
            _apply_change(client, change, operation)
            sent[number] = operation
        except (WorkspaceBadRequestError, WorkspacePermissionError, WorkspaceNotAppliedError) as error:
            log.error("Refused: %s", error)  # noqa: TRY400 - one error for all of them follows
            reason = str(getattr(error, "detail", None) or error)
            plan.outcomes[number] = ("refused", reason)
            refused.append(f"{change.action} {change.email}: {reason}")
            if len(refused) == MAX_REFUSALS:
                break
        else:
            plan.outcomes[number] = ("done", "")
    rows = [change.row.invite.model_dump(exclude_unset=True) for change in plan.changes if change.row]
    report: InvitesReport | None = None
    if rows and len(refused) < MAX_REFUSALS:
        try:
            report = invite(rows)
        except WorkspaceInvitesIncompleteError as error:
            plan.note_invites(error.report)
            raise
        plan.note_invites(report)
        log.info("%s", report.table())
    if refused:
        raise WorkspaceSyncIncompleteError(f"The service refused {len(refused)} changes. {'; '.join(refused)}")
    _check_changes(client, plan, sent, organization_id)
    return report


def _apply_change(client: WorkspaceClient, change: MemberChange, operation: Operation[Any]) -> None:
    if isinstance(operation, UpdateMember):
        try:
            client.send(operation)
        except WorkspaceNotFoundError:
            log.warning("%s has left since the members were read. The next run invites them.", change.email)
        else:
            log.info("Changed the level of %s from %s.", change.email, change.levels)
        return
    what = f"invite of {change.email}" if change.action == "withdraw" else f"member {change.email}"
    delete_if_present(client, what, operation, "ignore", exists=None)


def _check_changes(
    client: WorkspaceClient, plan: MemberPlan, sent: dict[int, Operation[Any]], organization_id: str
) -> None:
    """Check all changes in the lists, reading each list once per poll."""
    pending = {number: plan.changes[number] for number in sent}
    page_size = client.settings.page_size

    def is_done() -> bool:
        nonlocal pending
        shown: dict[str | None, int | None] = {}
        if any(change.action == "withdraw" for change in pending.values()):
            invites = read_rows(client, ListInvites(organization_id=organization_id, limit=page_size))
            shown |= {invite.id: None for invite in invites}
        if any(change.action != "withdraw" for change in pending.values()):
            members = read_rows(client, ListMembers(organization_id=organization_id, limit=page_size))
            shown |= {member.user.uuid: member.level for member in members if member.user}
        pending = {
            number: change
            for number, change in pending.items()
            if change.target in shown and (change.action != "change_level" or shown[change.target] != change.level)
        }
        return not pending

    if not pending:
        return
    try:
        check_done(client, "each change was made", next(iter(sent.values())), is_done)
    except WorkspaceNotAppliedError as error:
        for number in pending:
            plan.outcomes[number] = ("refused", "the service reported success, but does not show the change")
        named = ", ".join(f"{change.action} {change.email}" for change in [*pending.values()][:MAX_LINES])
        error.args = (f"Not done: {named}. {error}",)
        raise
