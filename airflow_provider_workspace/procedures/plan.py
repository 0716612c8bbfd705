"""A plan: its changes, how people see them, what an approval covers, and how it is applied."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from airflow_provider_workspace import errors
from airflow_provider_workspace.api.comparison import describe_unshown, unshown_of_record
from airflow_provider_workspace.api.operations.invites import CreateInvite, DeleteInvite
from airflow_provider_workspace.api.operations.members import DeleteMember, UpdateMember
from airflow_provider_workspace.api.outcome import Outcome, is_refused
from airflow_provider_workspace.procedures import ensure
from airflow_provider_workspace.procedures.ends import END_FIELDS
from airflow_provider_workspace.procedures.holders import Holders
from airflow_provider_workspace.procedures.invites_report import NEEDS_ATTENTION as INVITES_THAT_NEED_ATTENTION
from airflow_provider_workspace.procedures.invites_report import InvitesReport, WorkspaceInvitesIncompleteError

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.procedures.entitlements import ReviewDecision, TemporaryAccess

log = logging.getLogger(__name__)

Action = Literal["create", "change", "remove", "set", "differs", "wait", "unknown", "skip"]
Mark = Literal["", "kept", "duplicate"]

# Actions of which an organization that matches its file has none.
PENDING: tuple[Action, ...] = ("create", "change", "remove")
# By action, in the order of the counts: a symbol for what is pending, else what stands before the reason.
MARKS: dict[Action, str] = {
    "create": "+",
    "change": "~",
    "remove": "-",
    "set": "cannot be known",
    "differs": "by hand",
    "wait": "later",
    "unknown": "cannot be known",
    "skip": "skipped",
}
# The fields of a change in a result or report, and the statuses that need attention.
REPORT_FIELDS = ("action", "part", "name", "before", "after", "why", "status", "reason", "digest", "not_shown")
NEEDS_ATTENTION = ("refused", *INVITES_THAT_NEED_ATTENTION)
# What the values after a change name, where it overrules the decision of a review.
OVERRULES = "overrules"
# Statuses of changes with which nothing is left to do.
FINISHED = ("done", "invited", "skipped")
# Why a removal is done that found nothing: an invite may also be gone because it was accepted.
GONE = "it was gone already"
# Why somebody is in the plan that is made again, and was not before, by the kind that begins the name of a change.
MEANWHILE = {"member": "joined meanwhile", "invite": "invited meanwhile", "collaborator": "added meanwhile"}
# Digests of another version approve nothing: count up when other things, or the same in another form, are digested.
DIGEST_VERSION = "1"
# A number, a share, or both with "or" between them.
LIMIT = re.compile(r"(?=\S)(?:(\d{1,18})(?: or (?=\S)|$))?(?:(100|[1-9]\d?) ?%)?")
# After so many refusals the changes are not the cause: the API key may lack the scope.
MAX_REFUSALS = 5
# The answers to an API key that does not work any more.
KEY_REFUSED = (errors.WorkspaceAuthenticationError, errors.WorkspacePermissionError)
# Operations that take access from a member, perhaps from the owner of the API key.
OF_MEMBERS = (DeleteMember, UpdateMember)
# Maximum number of lines of one part in messages and results; the log and the report file have all.
MAX_LINES = 200


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """
    A difference between what is wanted and an organization.

    :param action: ``create``, ``change`` or ``remove``; ``set`` for a state that cannot be read; ``differs`` for a
        difference that the interface cannot change, so a person must; ``wait`` for what a later run does; ``unknown``
        for one that cannot be determined, which is sent each time if it has an operation; ``skip`` for what is ignored
        or kept
    :param part: the part of the organization
    :param name: name of the resource with the names of its parents, for people
    :param after: desired values of the fields
    :param before: current values of the fields, as far as known
    :param why: the reason, for people; empty if there is none
    :param operation: the operation to send; ``None`` for none, or if it depends on an earlier part
    :param intended: what the change is known by before its ids are: the names of its parents, and all fields; ``None``
        if the record is not as new
    :param apply: applies it, with a client and what the task remembers; by default the operation is sent
        as :mod:`~airflow_provider_workspace.procedures.ensure` does
    :param mark: a word for people, where that of the action does not say enough
    :param not_shown: the fields among ``after`` that the service does not show
    :param person: key of the address of the person whom it is about, in the part ``members``; else empty
    :param should_lose: of a change that is not sent: whether they should lose access, or a part of it
    :param should_gain: of a change that is not sent: whether they have all that they may have, and a row gives more
    :param overrules: the decision of a review that an approval of it overrules; ``None`` if there is none
    :param ends: temporary access that ends with it
    """

    action: Action
    part: str
    name: str
    after: Mapping[str, Any] = field(default_factory=dict[str, Any])
    before: Mapping[str, Any] = field(default_factory=dict[str, Any])
    why: str = ""
    operation: Operation[Any] | None = None
    intended: Mapping[str, Any] | None = None
    apply: Callable[[WorkspaceClient, Any], object] | None = None
    mark: Mark = ""
    not_shown: Sequence[str] = ()
    person: str = ""
    should_lose: bool = False
    should_gain: bool = False
    overrules: ReviewDecision | None = None
    ends: tuple[TemporaryAccess, ...] = ()

    @property
    def sends(self) -> bool:
        """Whether applying it sends a request."""
        if self.action == "unknown":
            return self.operation is not None
        return self.action in PENDING or self.action == "set"

    @property
    def invites(self) -> bool:
        """Whether it invites a person."""
        return isinstance(self.operation, CreateInvite)

    @property
    def removes(self) -> bool:
        """Whether it takes something away as a whole: a member, an invite, a collaborator or a domain."""
        return self.action == "remove"

    @property
    def lowers(self) -> bool:
        """Whether a member gets a lower level."""
        return self._level_step < 0

    @property
    def raises(self) -> bool:
        """Whether a member gets a higher level."""
        return self._level_step > 0

    @property
    def _level_step(self) -> int:
        """By how much the level of a member rises; 0 if no member's level changes."""
        if not isinstance(self.operation, UpdateMember):
            return 0
        step: int = self.after["level"] - self.before["level"]
        return step

    @property
    def takes_from_person(self) -> bool:
        """Whether a person loses access to the organization: a member, an open invite, or a part of their level."""
        return self.part == "members" and (self.removes or self.lowers)

    @property
    def takes_access(self) -> bool:
        """Whether somebody loses access to the organization or to a dashboard, or a part of their level."""
        if self.part == "collaborators":
            return self.removes
        return self.takes_from_person

    def send(self, client: WorkspaceClient, memory: Any = None) -> object:
        """
        Apply the change, or say why it is not applied.

        :param memory: what the task remembers of this change across its tries
        :return: what ``apply`` returns, the record that a create or change returned, or the 404 of a removal
        :raises WorkspaceInputError: if it depends on an earlier part
        """
        if self.sends and self.operation is None:
            raise errors.WorkspaceInputError(f"Apply the parts before '{self.part}' first: {self.name} depends on them")
        if self.apply is not None:
            return self.apply(client, memory)
        if self.operation is None:
            return None
        if self.action == "remove":
            missing: list[errors.WorkspaceNotFoundError] = []
            ensure.remove(client, self.name, self.operation, explain=missing.append)
            return missing[0] if missing else None
        if self.action == "create":
            record, created = ensure.create(client, self.operation, if_exists="return", memory=memory)
            return record if created else None
        record = client.send(self.operation)
        log.info("Done:%s", self.line())
        return record

    def line(self) -> str:
        """Return the change as a line of a table."""
        name = errors.visible(self.name)
        if self.action in PENDING:
            return f"  {MARKS[self.action]} {name:<44} {self.notes}"
        word = self.mark or MARKS[self.action]
        notes = f"{word}: {self.notes}" if self.notes else word
        return f"    {name:<44} {notes}"

    @property
    def notes(self) -> str:
        """The fields and the reason, for people."""
        notes = describe_fields(self.before, self.after)
        if self.sends and self.operation is None:
            notes.append("its id is known after apply")
        if self.why:
            notes.append(self.why)
        return errors.visible(", ".join(notes))

    def approval_digest(self, planned_for: str) -> str | None:
        """Return a digest of what an approval covers; ``None`` for a change that is never sent."""
        if self.operation is None:
            return self._early_digest(planned_for)
        request = self.operation.request()
        payload = None if request.body is None else self.operation.payload()
        sent = [request.method, request.target, payload]
        return make_digest([planned_for, self.part, self.action, self.name, self.before, self.after, sent])

    def is_approved(self, planned_for: str, approved: Collection[str]) -> bool:
        """Return whether digests cover the change, perhaps from before an earlier part gave it its ids."""
        return self.approval_digest(planned_for) in approved or self._early_digest(planned_for) in approved

    def _early_digest(self, planned_for: str) -> str | None:
        if self.intended is None:
            return None
        return make_digest([planned_for, self.part, self.intended])


class ChangeResult(NamedTuple):
    """
    What became of a change.

    :param status: ``planned``, ``skipped``, ``not_sent``, ``done``, ``refused``, or one of
        :data:`~airflow_provider_workspace.procedures.invites_report.STATUSES`
    :param reason: the reason, for people; empty if there is none
    """

    status: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """
    A change as results and reports show it; see :class:`Change` and :class:`ChangeResult` for its fields.

    :param digest: see :meth:`Change.approval_digest`; ``None`` also for the row of a summary, which needs none
    """

    action: Action
    part: str
    name: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    why: str
    status: str
    reason: str
    digest: str | None = None
    not_shown: Sequence[str] = ()

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> ChangeRow:
        """Read what :meth:`to_dict` returned, from the result of an earlier task."""
        return cls(**{name: value[name] for name in REPORT_FIELDS if name in value})

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        row = {name: getattr(self, name) for name in REPORT_FIELDS}
        return {**row, "not_shown": list(self.not_shown)}


@dataclass(frozen=True, slots=True)
class ApprovedPlan:
    """
    What an earlier plan says for an approval.

    :param planned_for: the service and the organization
    :param digests: the digests of its changes, without those that are never sent
    :param overrules: whether one of them overrules the decision of a review
    """

    planned_for: str
    digests: frozenset[str]
    overrules: bool = False

    @classmethod
    def read(cls, value: object, task: str) -> ApprovedPlan | None:
        """
        Read the result of an earlier task.

        :param value: the result; ``None`` if every change is accepted
        :param task: the task with the plan, for messages
        :raises WorkspaceInputError: if it is no plan
        """
        if value is None:
            return None
        expected = (
            f"Pass the output of {task} as approved: expected a plan with 'planned_for' and a list of 'changes', each "
            "with its 'digest'"
        )
        if not isinstance(value, Mapping):
            raise errors.WorkspaceInputError(f"{expected}, not {errors.shown(value)}")
        planned_for = value.get("planned_for")
        rows = value.get("changes")
        if not isinstance(planned_for, str) or not isinstance(rows, list):
            raise errors.WorkspaceInputError(f"{expected}, not a mapping without these")
        if not all(_has_digest(row) for row in rows):
            raise errors.WorkspaceInputError(f"{expected}, not a mapping without these")
        digests = {row["digest"] for row in rows}
        overrules = any(OVERRULES in (row.get("after") or {}) for row in rows)
        return cls(planned_for, frozenset(digests - {None}), overrules)


def _has_digest(row: object) -> bool:
    """Return whether a row of an approved plan has a digest, which is ``None`` for what is never sent."""
    return isinstance(row, Mapping) and isinstance(row.get("digest", 0), str | None)


@dataclass(frozen=True, slots=True)
class LossLimit:
    """
    How much one run may take away; infinite without a limit.

    :param losses: number of what is removed and of members who get a lower level, together
    :param people: number of people among them
    """

    losses: float
    people: float


@dataclass(slots=True)
class Plan:
    """
    Changes, in the order in which they are applied.

    :param planned_for: the service and the organization
    :param outcomes: status and reason of changes that were sent
    :param not_shown: the fields that were sent and that the answer did not show, of changes that were sent
    :param members: number of members of the organization; 0 if no people are planned
    :param remark: what people must know first; empty if there is nothing
    :param holders: who had access when it was made
    :param joined: who joined while invites were withdrawn, and may have accepted one under another address
    :param last_taken: the change that took access from a member, if no request was accepted after it; else ``None``
    :param failures: the errors of changes that were not made, or may not have been made
    """

    planned_for: str = ""
    changes: list[Change] = field(default_factory=list[Change])
    outcomes: dict[Change, ChangeResult] = field(default_factory=dict[Change, ChangeResult])
    members: int = 0
    remark: str = ""
    not_shown: dict[Change, Sequence[str]] = field(default_factory=dict[Change, Sequence[str]])
    holders: Holders = field(default_factory=Holders)
    joined: list[str] = field(default_factory=list[str])
    last_taken: Change | None = None
    failures: dict[Change, errors.WorkspaceRequestError] = field(default_factory=dict)

    @property
    def counts(self) -> dict[Action, int]:
        """Number of changes by action."""
        counted = Counter(change.action for change in self.changes)
        return {action: counted[action] for action in MARKS}

    @property
    def pending(self) -> int:
        """Number of changes to apply, without states that cannot be read."""
        return sum(change.action in PENDING for change in self.changes)

    @property
    def differences(self) -> int:
        """Number of differences from what is wanted, with those that cannot be known."""
        counts = self.counts
        return self.pending + counts["differs"] + counts["unknown"]

    def to_dict(self, *, applied: bool = False) -> dict[str, Any]:
        """
        Return plain JSON: numbers, ``changes``, the beginning of the ``table``, and ``planned_for``.

        :param applied: whether the changes were sent
        """
        return {
            "pending": self.pending,
            "differences": self.differences,
            "counts": self.counts,
            "changes": [row.to_dict() for row in self.rows(applied=applied)],
            "table": self.table(limit=MAX_LINES, applied=applied),
            "planned_for": self.planned_for,
        }

    def summary(self, *, applied: bool = False) -> str:
        """Return the numbers for people; ``applied`` if the changes were sent."""
        rows = [self._row(change, applied=applied) for change in self.changes]
        return summarize(rows, applied=applied)

    def rows(self, *, applied: bool = False) -> list[ChangeRow]:
        """
        Return the changes as results and reports show them.

        :param applied: whether the changes were sent
        """
        return [
            self._row(change, applied=applied, digest=change.approval_digest(self.planned_for))
            for change in self.changes
        ]

    def _row(self, change: Change, *, applied: bool, digest: str | None = None) -> ChangeRow:
        result = self._result(change, applied=applied)
        return ChangeRow(
            action=change.action,
            part=change.part,
            name=change.name,
            before=change.before,
            after=change.after,
            why=change.why,
            status=result.status,
            reason=result.reason,
            digest=digest,
            not_shown=self.not_shown.get(change) or change.not_shown,
        )

    def _result(self, change: Change, *, applied: bool) -> ChangeResult:
        if change in self.outcomes:
            return self.outcomes[change]
        if not change.sends:
            return ChangeResult("skipped")
        return ChangeResult("not_sent" if applied else "planned")

    def table(self, *, limit: int | None = None, applied: bool = False) -> str:
        """
        Return the plan for people: a summary, and a line for each change.

        :param limit: maximum number of lines of one part
        """
        lines = [self.summary(applied=applied)]
        if self.remark:
            lines.insert(0, self.remark)
        for part, changes in groupby(self.changes, lambda change: change.part):
            part_lines = [change.line() for change in changes]
            lines += part_lines[:limit]
            if limit is not None and len(part_lines) > limit:
                lines.append(f"    … and {len(part_lines) - limit} more {part}")
        return "\n".join(lines)

    def check_losses(self, maximum: Any) -> None:
        """
        Refuse a plan that takes too much away: the list of what is wanted may have been cut.

        A number limits how much is removed, and how many members get a lower level, together. A share limits how many
        people that may be (members and open invites), in percent of the members, and always allows one.

        :param maximum: the limit, see :func:`parse_limit`
        :raises WorkspaceInputError: if the plan exceeds it
        """
        removed = [change for change in self.changes if change.removes]
        lowered = [change for change in self.changes if change.lowers]
        people = [change for change in self.changes if change.takes_from_person]
        losses = len(removed) + len(lowered)

        limit = parse_limit(maximum, self.members)
        if losses > limit.losses:
            allowed = limit.losses
        elif len(people) > limit.people:
            allowed = limit.people
        else:
            return
        where = f"{self.planned_for}, of {self.members} members" if self.members else self.planned_for
        raise errors.WorkspaceInputError(
            f"Check that the lists are complete; if so, set max_removals={losses}, not {maximum!r}, which "
            f"allows {allowed} here: {len(removed)} would be removed and {len(lowered)} get a lower level in {where}",
            problem="too-many-removals",
        )

    @property
    def unproven(self) -> list[str]:
        """Who should lose access, and of whom the lists do not show whether they have it, for people."""
        hidden = [change for change in self.changes if change.should_lose and change.action == "unknown"]
        lines = [f"{change.name}: {change.notes}" for change in hidden]
        lines += [f"{name}: joined while an invite was withdrawn, and may have accepted it" for name in self.joined]
        return lines

    @property
    def withdraws_invites(self) -> bool:
        """Whether it withdraws open invites, which may be accepted at the same time."""
        return any(isinstance(change.operation, DeleteInvite) for change in self.changes)

    @property
    def left_by_hand(self) -> list[str]:
        """Who should lose access and keeps it, because nobody but a person may take it away, for people."""
        left = [change for change in self.changes if change.should_lose and change.action == "differs"]
        return [f"{change.name}: {change.notes}" for change in left]

    def check_approved(self, approved: Collection[str], cure: str) -> None:
        """
        Refuse changes that an approval does not cover.

        :param approved: the digests of the approved changes
        :param cure: what to do, the beginning of the message
        :raises WorkspaceInputError: naming the changes
        """
        digests = frozenset(approved)
        sent = [change for change in self.changes if change.sends]
        stale = [change for change in sent if not change.is_approved(self.planned_for, digests)]
        if not stale:
            return
        if not all(digest.startswith(f"{DIGEST_VERSION}:") for digest in digests):
            message = f"{cure}: another release of this package made that plan"
            raise errors.WorkspaceInputError(message, problem="approval-stale")
        difference = f"{len(stale)} of {len(sent)} changes are not in the approved plan, or start from other values"
        lines = [f"{cure}: {difference}:"]
        lines.append(errors.name_first([change.line() for change in stale], "the plan", separator="\n"))
        raise errors.WorkspaceInputError("\n".join(lines), problem="approval-stale")

    def check_approved_plan(self, approved: ApprovedPlan | None) -> None:
        """
        Refuse changes that an approved plan does not have.

        :param approved: the approved plan; ``None`` to accept every change
        :raises WorkspaceInputError: if there are such changes, or the plan is of another organization
        """
        if approved is None:
            return
        cure = "Plan again, and have it approved"
        if approved.planned_for != self.planned_for:  # the connection or the file led elsewhere
            raise errors.WorkspaceInputError(
                f"{cure}: the approved plan is for {approved.planned_for}, and this task is for {self.planned_for}",
                problem="approval-stale",
            )
        self.check_approved(approved.digests, cure)


class WorkspaceSyncIncompleteError(errors.WorkspaceError):
    """
    The service refused some of the changes and applied the others.

    :param causes: the errors
    """

    def __init__(self, message: str, causes: Collection[errors.WorkspaceError]) -> None:
        super().__init__(message, permanent=all(cause.permanent for cause in causes), problem="changes-refused")
        self.causes = tuple(causes)


def apply(
    client: WorkspaceClient,
    plan: Plan,
    invite: Callable[[list[dict[str, Any]]], InvitesReport],
    plan_again: Callable[[], Plan],
    memory_of: Callable[[Change], Any] = lambda _: None,
) -> None:
    """
    Send the changes that have no outcome yet, and check by a plan that is made again that nothing of them is left.

    :param plan_again: plans the same again
    :raises WorkspaceNotAppliedError: if a change that succeeded is still to be done, or somebody has access who should
        not
    """
    send_changes(client, plan, invite, memory_of)
    check_applied(client, plan, plan_again)
    _watch_withdrawn_invites(client, plan, plan_again)


def send_changes(
    client: WorkspaceClient,
    plan: Plan,
    invite: Callable[[list[dict[str, Any]]], InvitesReport],
    memory_of: Callable[[Change], Any] = lambda _: None,
) -> None:
    """
    Send the changes that have no outcome yet, and note their outcomes in the plan.

    A change that is refused does not stop the others. People are invited last, and together.

    :param invite: invites the people of these rows
    :param memory_of: returns what the task remembers of a change across its tries
    :raises WorkspaceSyncIncompleteError: if a change was refused
    """
    try:
        refused = _send_changes(client, plan, memory_of)
        if len(refused) < MAX_REFUSALS:
            _invite(plan, invite)
    except KEY_REFUSED as error:
        _raise_if_key_owner_lost_access(plan, error)
        raise
    except WorkspaceInvitesIncompleteError as error:
        if isinstance(error.__cause__, KEY_REFUSED):
            _raise_if_key_owner_lost_access(plan, error)
        raise
    if not refused:
        return
    lines = [f"{change.action} {change.name}: {plan.outcomes[change].reason}" for change in refused]
    reasons = errors.name_first(lines, "the log")
    incomplete = WorkspaceSyncIncompleteError(
        f"The service refused {len(refused)} changes. {reasons}", refused.values()
    )
    if _are_all_forbidden(plan, refused):
        _raise_if_key_owner_lost_access(plan, incomplete)
    raise incomplete


def _are_all_forbidden(plan: Plan, refused: Mapping[Change, errors.WorkspaceError]) -> bool:
    """Return whether nothing but 403 came after the last change that took access from a member."""
    if plan.last_taken is None:
        return False
    since = plan.changes[plan.changes.index(plan.last_taken) :]
    later = [refused[change] for change in since if change in refused]
    return bool(later) and all(isinstance(error, errors.WorkspacePermissionError) for error in later)


def _raise_if_key_owner_lost_access(plan: Plan, error: errors.WorkspaceError) -> None:
    """
    Name who lost access directly before the service refused the API key; the interface cannot tell whose key it is.

    :raises WorkspaceError: if somebody did
    """
    if plan.last_taken is None:
        return
    lost = "was removed" if plan.last_taken.removes else "got a lower level"
    raise key_owner_removed(f"{plan.last_taken.name} {lost}", error) from None


def key_owner_removed(event: str, error: errors.WorkspaceError) -> errors.WorkspaceError:
    """
    Return the error of an API key that may be of somebody who lost access.

    :param event: who lost what
    :param error: what the service answered then
    """
    return errors.WorkspaceError(
        f"The key stopped working right after {event}; it may be theirs. Put an API key of somebody who stays into the "
        f"connection, then run this again, which checks what was sent. {error}",
        problem="key-owner-removed",
    )


def _send_changes(
    client: WorkspaceClient, plan: Plan, memory_of: Callable[[Change], Any]
) -> dict[Change, errors.WorkspaceError]:
    """Send the changes that invite nobody, until too many are refused; return the errors of those that are."""
    refused: dict[Change, errors.WorkspaceError] = {}
    for change in plan.changes:
        if change.invites or change in plan.outcomes:
            continue
        if len(refused) == MAX_REFUSALS:
            break
        try:
            record = change.send(client, memory_of(change))
        except errors.WorkspaceNotFoundError as error:
            if not isinstance(change.operation, UpdateMember):
                plan.failures[change] = error
                raise
            ensure.check_gone(error)
            log.warning("%s has left since the members were read. The next run invites them.", change.name)
        except errors.WorkspaceRequestError as error:
            plan.failures[change] = error
            if not (is_refused(error, one_of_many=True) or isinstance(error, errors.WorkspaceNotAppliedError)):
                raise
            log.error("Refused: %s", error)  # noqa: TRY400 - one error for all of them follows
            detail = getattr(error, "detail", None)
            plan.outcomes[change] = ChangeResult("refused", str(detail or error))
            refused[change] = error
        else:
            if isinstance(record, errors.WorkspaceNotFoundError):
                plan.outcomes[change] = ChangeResult("done", GONE)
            elif change.sends and change.operation is not None:
                plan.outcomes[change] = ChangeResult("done")
                plan.not_shown[change] = _not_shown(change, change.operation, record)
                plan.last_taken = change if isinstance(change.operation, OF_MEMBERS) and change.takes_access else None
    return refused


def _not_shown(change: Change, operation: Operation[Any], record: object) -> list[str]:
    """Return the fields that were sent and that the answer does not show, and warn of them."""
    names = unshown_of_record(operation, record)
    if names and change.action != "create":  # the client warns of a create
        log.warning("%s: %s", change.name, describe_unshown(operation, names))
    return names


def _invite(plan: Plan, invite: Callable[[list[dict[str, Any]]], InvitesReport]) -> None:
    """Invite the people of a plan together, if there are any."""
    invites = {change: change.operation for change in plan.changes if isinstance(change.operation, CreateInvite)}
    if not invites:
        return
    failed: WorkspaceInvitesIncompleteError | None = None
    try:
        report = invite([operation.payload() for operation in invites.values()])
    except WorkspaceInvitesIncompleteError as error:
        failed = error
        report = error.report
    changes = list(invites)
    for entry in report.entries:
        change = changes[entry.row - 1]  # the rows are in the order of the changes
        plan.outcomes[change] = ChangeResult(entry.status, entry.reason)
    if report.counts["invited"]:
        plan.last_taken = None
    if failed:
        raise failed
    log.info("%s", report.table())


def raise_if_unproven(people: Sequence[str]) -> None:
    """
    Refuse to call people gone of whom the lists do not show whether they are; everything else was done.

    :param people: see :attr:`Plan.unproven`
    :raises WorkspaceError: naming them
    """
    if not people:
        return
    named = errors.name_first(people, "the plan")
    raise errors.WorkspaceError(
        f"Look by hand whether these people have lost their access ({len(people)}); all other changes were made: "
        f"{named}",
        problem="people-hidden",
    )


def raise_if_left(people: Sequence[str]) -> None:
    """
    Refuse to end well while somebody keeps access that should be taken away; everything else was done.

    :param people: see :attr:`Plan.left_by_hand`
    :raises WorkspaceError: naming them
    """
    if not people:
        return
    named = errors.name_first(people, "the plan")
    raise errors.WorkspaceError(
        f"Take the access of these people away by hand, or correct their rows ({len(people)}); all other changes were "
        f"made: {named}",
        problem="access-left",
    )


def check_applied(client: WorkspaceClient, plan: Plan, plan_again: Callable[[], Plan]) -> None:
    """
    Plan again until nothing is left of what was sent, and nobody who should be gone or lower is in the plan.

    A change without an outcome met a 404: its member is gone, or the list still shows them as they were.

    :param plan: what was sent; receives the outcomes of what is left
    :raises WorkspaceNotAppliedError: if something is left after the consistency time
    """
    sent = [change for change in plan.changes if change.action in PENDING and _is_done_or_gone(plan, change)]
    if not sent:
        return
    operation: Any = sent[0].operation
    left: list[_Left] = []

    def is_done() -> bool:
        nonlocal left
        left = _left_of(plan, sent, _read_again(plan, plan_again, sent))
        return not left

    try:
        ensure.check_done(client, "each change was made, or its member is gone", operation, is_done)
    except errors.WorkspaceInputError as error:  # it says that nothing was sent, which is true of the second plan alone
        message = f"Run the task again: its changes were sent, but not checked. {error.why}"
        raise errors.WorkspaceNotAppliedError(
            message, operation=type(operation).__name__, outcome=Outcome.UNKNOWN.value
        ) from None
    except errors.WorkspaceNotAppliedError as error:
        _explain(error, plan, left)
        raise


def _read_again(plan: Plan, plan_again: Callable[[], Plan], sent: Sequence[Change]) -> Plan:
    """
    Plan again; a key that may not read the lists any more proves nothing about who lost access.

    :param plan: what was sent
    :raises WorkspaceError: if it may not, and something was taken
    """
    try:
        again = plan_again()
    except KEY_REFUSED as error:
        _raise_if_key_owner_lost_access(plan, error)
        is_forbidden = isinstance(error, errors.WorkspacePermissionError)
        if not (is_forbidden and any(change.takes_access for change in sent)):
            raise
        raise errors.WorkspaceError(
            f"Look by hand whether the changes were made, which were sent: this API key may not check it. {error}",
            permanent=True,
            problem="effect-not-shown",
        ) from None
    plan.last_taken = None
    return again


def _watch_withdrawn_invites(client: WorkspaceClient, plan: Plan, plan_again: Callable[[], Plan]) -> None:
    """
    Check once more when the lists must show whoever accepted an invite at the moment of its withdrawal.

    Also after a success: a service may withdraw the invite and let the person in.

    :raises WorkspaceNotAppliedError: if somebody has access who should not
    """
    if not plan.withdraws_invites:
        return
    log.info("Invites were withdrawn: waiting until the lists must show whoever accepted one at the same time.")
    for pause in _pauses(client.settings.consistency_time):
        client.pause(pause)
    again = Plan()

    def plan_last() -> Plan:
        nonlocal again
        again = plan_again()
        return again

    check_applied(client, plan, plan_last)
    plan.joined = again.holders.joined_since(plan.holders)


def _pauses(seconds: float) -> list[float]:
    """Return the pauses of so many seconds: of a minute at most, as a longer one would begin the task again."""
    whole, rest = divmod(seconds, ensure.MAX_CHECK_SECONDS)
    return [ensure.MAX_CHECK_SECONDS] * int(whole) + [rest]


def _is_done_or_gone(plan: Plan, change: Change) -> bool:
    """Return whether a change was made, or met a 404."""
    result = plan.outcomes.get(change)
    return result is None or result.status == "done"


@dataclass(frozen=True, slots=True)
class _Left:
    """
    What is left to do after a plan was applied.

    :param change: the change that was sent, or a new one of somebody who should lose access
    :param reason: what the person is now; empty if it is as before
    """

    change: Change
    reason: str


def _left_of(plan: Plan, sent: Sequence[Change], again: Plan) -> list[_Left]:
    """Return what is still to be done, and who has access that they should not have."""
    pending = {(change.part, change.name) for change in again.changes if change.action in PENDING}
    before = {(change.action, change.name) for change in plan.changes}
    new = [change for change in again.changes if (change.action, change.name) not in before]
    left: list[_Left] = []
    for change in sent:
        if (change.part, change.name) in pending:
            left.append(_Left(change, ""))
            continue
        reason = _what_now(change, new) or _what_holder_has(change, plan.holders, again.holders)
        if reason:
            left.append(_Left(change, reason))
    people = {one.change.person for one in left if one.change.person}
    others = [change for change in new if change.takes_access and change.person not in people]
    for change in others:
        reason = "raised meanwhile" if change.lowers else _meanwhile(change)
        left.append(_Left(change, reason))
    return left


def _meanwhile(change: Change) -> str:
    """Return how somebody got what a change would take."""
    kind = change.name.partition(" ")[0]
    return MEANWHILE.get(kind, "new meanwhile")


def _what_now(sent: Change, new: Sequence[Change]) -> str:
    """Return what a person is who should be gone or lower, from the new change that they would need."""
    if not sent.takes_from_person:
        return ""
    for change in new:
        if change.person != sent.person or change.should_gain:
            continue
        if change.takes_from_person:
            return f"{_meanwhile(change)}: {change.name}, {change.notes}"
        if change.action == "differs" or change.mark == "kept":
            return change.notes
    return ""


def _what_holder_has(sent: Change, before: Holders, now: Holders) -> str:
    """Return what the user still has from whom a change took something, whatever their address is now."""
    if not sent.removes and not sent.lowers:
        return ""
    if before.of(sent.operation) is None:
        return ""
    holder = now.of(sent.operation)
    if holder is None:
        hidden = now.hidden - before.hidden
        return f"may be one of {hidden} whom the service hides now" if hidden > 0 else ""
    if sent.removes:
        return f"is still there: {holder.name}"
    if holder.level is None:
        return f"the service hides the level of {holder.name} now"
    if holder.level > sent.after["level"]:
        return f"still has level {holder.level}: {holder.name}"
    return ""


def _explain(error: errors.WorkspaceNotAppliedError, plan: Plan, left: Sequence[_Left]) -> None:
    """Say in an error and in the plan what is left, if a plan could be made again."""
    if not left:
        return
    names: list[str] = []
    for one in left:
        change = one.change
        answer = "reported success" if change in plan.outcomes else "returned 404"
        if change in plan.changes:
            reason = one.reason or f"the service {answer}, but does not show the change"
            plan.outcomes[change] = ChangeResult("refused", reason)
        names.append(
            f"{change.action} {change.name} ({one.reason})" if one.reason else f"{change.action} {change.name}"
        )
    named = errors.name_first(names, "the plan", separator=", ")
    if any(one.reason for one in left):
        error.problem = "joined-meanwhile"
        error.args = (f"Run the task again, which plans again. Not done: {named}",)
    else:
        error.args = (f"Not done: {named}. {error}",)


def parse_limit(value: object, members: int = 0) -> LossLimit:
    """
    Return what a limit allows; see :meth:`Plan.check_losses`.

    :param value: a whole number, a share such as ``50%``, or both, such as ``10 or 30%``: whichever is less; ``None``
        for any number
    :param members: number of members, for the share
    :raises ValueError: if it is anything else
    """
    if value is None:
        return LossLimit(math.inf, math.inf)
    found = LIMIT.fullmatch(str(value).strip())
    if not found:
        raise ValueError("expected a whole number, a share such as '50%', both as in '10 or 30%', or None for any")
    number, share = found.groups()
    losses = int(number) if number else math.inf
    people = math.inf
    if share:
        people = max(1, members * int(share) // 100)
    return LossLimit(losses, people)


def checked_limit(value: Any) -> Any:
    """Return a limit as it is; raise a ``ValueError`` as :func:`parse_limit` does if it is none."""
    parse_limit(value)
    return value


def make_digest(value: object) -> str:
    """Return the version and a digest of plain JSON that nobody can find another value for."""
    text = json.dumps(value, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{DIGEST_VERSION}:{digest[:32]}"


def summarize(rows: Collection[ChangeRow], *, applied: bool) -> str:
    """
    Return the numbers of changes for people.

    :param applied: whether the changes were sent
    """
    numbers = _applied_numbers(rows) if applied else _planned_numbers(rows)
    counts = Counter(row.action for row in rows)
    _add_number(numbers, counts["differs"], "to change by hand")
    _add_number(numbers, counts["wait"], "left for a later run")
    _add_number(numbers, counts["skip"], "skipped")
    return ", ".join(numbers)


def _planned_numbers(rows: Collection[ChangeRow]) -> list[str]:
    counts = Counter(row.action for row in rows)
    numbers = [f"{counts['create']} to create", f"{counts['change']} to change", f"{counts['remove']} to remove"]
    _add_number(numbers, counts["set"] + counts["unknown"], "cannot be known")
    return numbers


def _applied_numbers(rows: Collection[ChangeRow]) -> list[str]:
    finished = [row for row in rows if row.status in FINISHED]
    counts = Counter(row.action for row in finished)
    verified = sum("is_verified" in row.after for row in rows)
    domains = f" (domains verified: {verified})" if verified else ""
    numbers = [f"{counts['create']} created", f"{counts['change']} changed{domains}", f"{counts['remove']} removed"]
    _add_number(numbers, counts["set"], "paused or resumed")
    _add_number(numbers, len(rows) - len(finished), "not done")
    _add_number(numbers, counts["unknown"], "cannot be known")
    return numbers


def _add_number(numbers: list[str], count: int, label: str) -> None:
    """Add a number for people, unless it is 0."""
    if count:
        numbers.append(f"{count} {label}")


def describe_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the values of fields for people, whole: an approval covers what was shown."""
    descriptions: list[str] = []
    for name, value in {**before, **after}.items():
        if name in END_FIELDS:  # an end is in the reason
            continue
        text = _value_text(value)
        if name in before and name in after:
            text = f"{_value_text(before[name])} -> {text}"
        descriptions.append(f"{name}: {text}")
    return descriptions


def _value_text(value: object) -> str:
    if isinstance(value, str) and value.strip():
        return value
    return json.dumps(value, ensure_ascii=False)
