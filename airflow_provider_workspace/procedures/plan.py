"""A plan: its changes, how people see them, what an approval covers, and how it is applied."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace import errors
from airflow_provider_workspace.api.operations.invites import CreateInvite
from airflow_provider_workspace.api.operations.members import UpdateMember
from airflow_provider_workspace.api.outcome import Outcome, is_refused
from airflow_provider_workspace.procedures import ensure
from airflow_provider_workspace.procedures.ends import END_FIELDS
from airflow_provider_workspace.procedures.invites_report import NEEDS_ATTENTION as INVITES_THAT_NEED_ATTENTION
from airflow_provider_workspace.procedures.invites_report import InvitesReport, WorkspaceInvitesIncompleteError

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.client.client import WorkspaceClient

log = logging.getLogger(__name__)

# Actions of which an organization that matches its file has none.
PENDING = ("create", "change", "remove")
# By action, in the order of the counts: a symbol for what is pending, else what stands before the reason.
MARKS = {
    **dict(zip(PENDING, "+~-", strict=True)),
    "set": "cannot be known",
    "differs": "by hand",
    "wait": "later",
    "unknown": "cannot be known",
    "skip": "skipped",
}
# The fields of a change in a result or report, and the statuses that need attention.
CHANGE_FIELDS = ("action", "part", "name", "before", "after", "why")
REPORT_FIELDS = (*CHANGE_FIELDS, "status", "reason", "digest")
NEEDS_ATTENTION = ("refused", *INVITES_THAT_NEED_ATTENTION)
# Digests of another recipe approve nothing: count up when other things, or the same in another form, are digested.
RECIPE = "1"
# After so many refusals the changes are not the cause: the API key may lack the scope.
MAX_REFUSALS = 5
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
    """

    action: str
    part: str
    name: str
    after: Mapping[str, Any] = field(default_factory=dict[str, Any])
    before: Mapping[str, Any] = field(default_factory=dict[str, Any])
    why: str = ""
    operation: Operation[Any] | None = None
    intended: Mapping[str, Any] | None = None
    apply: Callable[[WorkspaceClient, Any], Any] | None = None
    mark: str = ""

    @property
    def sends(self) -> bool:
        """Whether applying it sends a request."""
        return self.action in (*PENDING, "set") or (self.action == "unknown" and self.operation is not None)

    def send(self, client: WorkspaceClient, memory: Any = None) -> Any:
        """
        Apply the change, or say why it is not applied.

        :param memory: what the task remembers of this change across its tries
        :return: what ``apply`` returns
        :raises WorkspaceInputError: if it depends on an earlier part
        """
        if self.sends and self.operation is None:
            raise errors.WorkspaceInputError(f"Apply the parts before '{self.part}' first: {self.name} depends on them")
        if self.apply is not None:
            return self.apply(client, memory)
        if self.operation is None:
            return None
        if self.action == "remove":
            ensure.remove(client, self.name, self.operation)
        elif self.action == "create":
            ensure.create(client, self.operation, if_exists="return", memory=memory)
        else:
            client.send(self.operation)
            log.info("Done:%s", self.line())
        return None

    def line(self) -> str:
        """Return the change as a line of a table."""
        sign, word = (
            (MARKS[self.action], "") if self.action in PENDING else (" ", f"{self.mark or MARKS[self.action]}: ")
        )
        return f"  {sign} {errors.visible(self.name):<44} {word}{self.notes}".removesuffix(": ")

    @property
    def notes(self) -> str:
        """The fields and the reason, for people."""
        late = ["its id is known after apply"] if self.sends and self.operation is None else []
        return errors.visible(", ".join([*describe_fields(self.before, self.after), *late, *filter(None, [self.why])]))

    def approval_digest(self, planned_for: str) -> str | None:
        """Return a digest of what an approval covers; ``None`` for a change that is never sent."""
        if self.operation is None:
            return self._early_digest(planned_for)
        request = self.operation.request()
        sent = [request.method, request.target, None if request.body is None else self.operation.payload()]
        return make_digest([planned_for, self.part, self.action, self.name, self.before, self.after, sent])

    def is_approved(self, planned_for: str, approved: Collection[str]) -> bool:
        """Return whether digests cover the change, perhaps from before an earlier part gave it its ids."""
        return not {self.approval_digest(planned_for), self._early_digest(planned_for)}.isdisjoint(approved)

    def _early_digest(self, planned_for: str) -> str | None:
        return None if self.intended is None else make_digest([planned_for, self.part, self.intended])


@dataclass(slots=True)
class Plan:
    """
    Changes, in the order in which they are applied.

    :param planned_for: the service and the organization
    :param outcomes: status and reason of changes that were sent
    :param members: number of members of the organization; 0 if no people are planned
    """

    planned_for: str = ""
    changes: list[Change] = field(default_factory=list[Change])
    outcomes: dict[Change, tuple[str, str]] = field(default_factory=dict[Change, tuple[str, str]])
    members: int = 0

    @property
    def counts(self) -> dict[str, int]:
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
        return self.pending + sum(change.action in ("differs", "unknown") for change in self.changes)

    def to_dict(self, *, applied: bool = False) -> dict[str, Any]:
        """
        Return plain JSON: numbers, ``changes``, the beginning of the ``table``, and ``planned_for``.

        :param applied: whether the changes were sent
        """
        return {
            "pending": self.pending,
            "differences": self.differences,
            "counts": self.counts,
            "changes": [
                self._row(change, applied) | {"digest": change.approval_digest(self.planned_for)}
                for change in self.changes
            ],
            "table": self.table(limit=MAX_LINES, applied=applied),
            "planned_for": self.planned_for,
        }

    def summary(self, *, applied: bool = False) -> str:
        """Return the numbers for people; ``applied`` if the changes were sent."""
        return summarize([self._row(one, applied) for one in self.changes], applied=applied)

    def _row(self, change: Change, applied: object) -> dict[str, Any]:
        """Return a change as plain JSON, without its digest."""
        unsent = "skipped" if not change.sends else "not_sent" if applied else "planned"
        status, reason = self.outcomes.get(change, (unsent, ""))
        return {name: getattr(change, name) for name in CHANGE_FIELDS} | {"status": status, "reason": reason}

    def table(self, *, limit: int | None = None, applied: bool = False) -> str:
        """
        Return the plan for people: a summary, and a line for each change.

        :param limit: maximum number of lines of one part
        """
        lines = [self.summary(applied=applied)]
        for part, changes in groupby(self.changes, lambda change: change.part):
            of_part = list(changes)
            lines += [change.line() for change in of_part[:limit]]
            if limit is not None and len(of_part) > limit:
                lines.append(f"    … and {len(of_part) - limit} more {part}")
        return "\n".join(lines)

    def check_losses(self, maximum: Any) -> None:
        """
        Refuse a plan that takes too much away: the list of what is wanted may have been cut.

        A number limits how much is removed, and how many members get a lower level, together. A share limits how many
        people that may be (members and open invites), in percent of the members, and always allows one.

        :param maximum: the limit, see :func:`parse_limit`
        :raises WorkspaceInputError: if the plan exceeds it
        """
        removed = [change.part for change in self.changes if change.action == "remove"]
        lower = sum(c.after["level"] < c.before["level"] for c in self.changes if isinstance(c.operation, UpdateMember))
        total, people = len(removed) + lower, removed.count("members") + lower
        for allowed, count in zip(parse_limit(maximum, self.members), (total, people), strict=True):
            if count > allowed:
                where = f"{self.planned_for}, of {self.members} members" if self.members else self.planned_for
                raise errors.WorkspaceInputError(
                    f"Check that the lists are complete; if so, set max_removals={total}, not {maximum!r}, which "
                    f"allows {allowed} here: {len(removed)} would be removed and {lower} get a lower level in {where}",
                    problem="too-many-removals",
                )

    def check_approved(self, approved: Collection[Any], cure: str) -> None:
        """
        Refuse changes that an approval does not cover.

        :param approved: the digests of the approved changes
        :param cure: what to do, the beginning of the message
        :raises WorkspaceInputError: naming the changes
        """
        sent, covered = [change for change in self.changes if change.sends], set(approved)
        stale = [change.line() for change in sent if not change.is_approved(self.planned_for, covered - {None})]
        if stale and not all(one.startswith(f"{RECIPE}:") for one in covered - {None}):
            msg = f"{cure}: another release of this package made that plan"
            raise errors.WorkspaceInputError(msg, problem="approval-stale")
        if stale:
            what = f"{len(stale)} of {len(sent)} changes are not in the approved plan, or start from other values"
            rest = [f"  … and {len(stale) - MAX_LINES} more"] if len(stale) > MAX_LINES else []
            msg = "\n".join([f"{cure}: {what}:", *stale[:MAX_LINES], *rest])
            raise errors.WorkspaceInputError(msg, problem="approval-stale")

    def check_approved_plan(self, approved: Any, task: str) -> None:
        """
        Refuse changes that an approved plan does not have.

        :param approved: the approved plan, the result of an earlier task; ``None`` to accept every change
        :param task: the task with the approved plan, for messages
        :raises WorkspaceInputError: if there are such changes, or it is no plan, or one of another organization
        """
        if approved is None:
            return
        plan: Mapping[str, Any] = approved if isinstance(approved, Mapping) else {}
        then, rows = plan.get("planned_for"), plan.get("changes")
        rows = rows if isinstance(rows, list) else [None]
        digests = [row.get("digest", 0) if isinstance(row, Mapping) else 0 for row in rows]
        if not isinstance(then, str) or not all(isinstance(one, str | None) for one in digests):
            found = "a mapping without these" if isinstance(approved, Mapping) else errors.shown(approved)
            raise errors.WorkspaceInputError(
                f"Pass the output of {task} as approved: expected a plan with 'planned_for' and a list of 'changes', "
                f"each with its 'digest', not {found}"
            )
        cure = "Plan again, and have it approved"
        if then != self.planned_for:  # the connection or the file led elsewhere
            raise errors.WorkspaceInputError(
                f"{cure}: the approved plan is for {then}, and this task is for {self.planned_for}",
                problem="approval-stale",
            )
        self.check_approved(digests, cure)


class WorkspaceSyncIncompleteError(errors.WorkspaceError):
    """
    The service refused some of the changes and applied the others.

    :param causes: the errors
    """

    def __init__(self, message: str, causes: Collection[errors.WorkspaceError]) -> None:
        super().__init__(message, permanent=all(cause.permanent for cause in causes), problem="changes-refused")
        self.causes = causes


def apply(
    client: WorkspaceClient,
    plan: Plan,
    invite: Callable[[list[dict[str, Any]]], InvitesReport],
    plan_again: Callable[[], Plan],
    memory_of: Callable[[Change], Any] = lambda _: None,
) -> None:
    """
    Send the changes that have no outcome yet, and note their outcomes in the plan.

    A change that is refused does not stop the others. People are invited last, and together.

    :param invite: invites the people of these rows
    :param plan_again: plans the same again, to see whether anything that was sent is left
    :param memory_of: returns what the task remembers of a change across its tries
    :raises WorkspaceSyncIncompleteError: if a change was refused
    :raises WorkspaceNotAppliedError: if a change that succeeded is still to be done
    """
    inviting = {change: change.operation for change in plan.changes if isinstance(change.operation, CreateInvite)}
    refused: dict[Change, errors.WorkspaceError] = {}
    for change in plan.changes:
        if change in inviting or change in plan.outcomes or len(refused) == MAX_REFUSALS:
            continue
        try:
            change.send(client, memory_of(change))
        except errors.WorkspaceNotFoundError as error:
            if not isinstance(change.operation, UpdateMember):
                raise
            ensure.check_gone(error)
            log.warning("%s has left since the members were read. The next run invites them.", change.name)
        except errors.WorkspaceRequestError as error:
            if not (is_refused(error, one_of_many=True) or isinstance(error, errors.WorkspaceNotAppliedError)):
                raise
            log.error("Refused: %s", error)  # noqa: TRY400 - one error for all of them follows
            plan.outcomes[change] = ("refused", str(getattr(error, "detail", None) or error))
            refused[change] = error
        else:
            if change.sends:
                plan.outcomes[change] = ("done", "")
    if inviting and len(refused) < MAX_REFUSALS:
        _invite(plan, inviting, invite)
    if refused:
        named = "; ".join(f"{change.action} {change.name}: {plan.outcomes[change][1]}" for change in refused)
        raise WorkspaceSyncIncompleteError(f"The service refused {len(refused)} changes. {named}", refused.values())
    check_applied(client, plan, plan_again)


def _invite(
    plan: Plan, inviting: Mapping[Change, CreateInvite], invite: Callable[[list[dict[str, Any]]], InvitesReport]
) -> None:
    failed: WorkspaceInvitesIncompleteError | None = None
    try:
        report = invite([operation.payload() for operation in inviting.values()])
    except WorkspaceInvitesIncompleteError as error:
        failed, report = error, error.report
    # The rows are in the order of the changes.
    changes = list(inviting)
    plan.outcomes |= {changes[entry.row - 1]: (entry.status, entry.reason) for entry in report.entries}
    if failed:
        raise failed
    log.info("%s", report.table())


def check_applied(client: WorkspaceClient, plan: Plan, plan_again: Callable[[], Plan]) -> None:
    """
    Plan again until nothing is left of what was sent: a resource that still differs, or is still there.

    A change without an outcome met a 404: its member is gone, or the list still shows them as they were.

    :param plan: what was sent; receives the outcomes of what is left
    :raises WorkspaceNotAppliedError: if something is left after the consistency time
    """
    left = {
        (change.part, change.name): change
        for change in plan.changes
        if change.action in PENDING and plan.outcomes.get(change, ("done",))[0] == "done"
    }
    if not left:
        return
    operation: Any = next(iter(left.values())).operation

    def is_done() -> bool:
        nonlocal left
        pending = [(change.part, change.name) for change in plan_again().changes if change.action in PENDING]
        left = {key: change for key, change in left.items() if key in pending}
        return not left

    try:
        ensure.check_done(client, "each change was made, or its member is gone", operation, is_done)
    except errors.WorkspaceInputError as error:  # it says that nothing was sent, which is true of the second plan alone
        msg = f"Run the task again: its changes were sent, but not checked. {error.why}"
        name, outcome = type(operation).__name__, Outcome.UNKNOWN.value
        raise errors.WorkspaceNotAppliedError(msg, operation=name, outcome=outcome) from None
    except errors.WorkspaceNotAppliedError as error:
        for change in left.values():
            said = "reported success" if change in plan.outcomes else "returned 404"
            plan.outcomes[change] = ("refused", f"the service {said}, but does not show the change")
        named = ", ".join(f"{change.action} {change.name}" for change in [*left.values()][:MAX_LINES])
        error.args = (f"Not done: {named}. {error}",)
        raise


def parse_limit(value: Any, members: int = 0) -> tuple[float, float]:
    """
    Return how many losses a limit allows, and how many of people; see :meth:`Plan.check_losses`.

    :param value: a whole number, a share such as ``50%``, or both, such as ``10 or 30%``: whichever is less; ``None``
        for any number
    :param members: number of members, for the share
    :raises ValueError: if it is anything else
    """
    if value is None:
        return math.inf, math.inf
    found = re.fullmatch(r"(?=\S)(?:(\d{1,18})(?: or (?=\S)|$))?(?:(100|[1-9]\d?) ?%)?", str(value).strip())
    if not found:
        raise ValueError("expected a whole number, a share such as '50%', both as in '10 or 30%', or None for any")
    number, share = found.groups()
    return int(number) if number else math.inf, max(1, members * int(share) // 100) if share else math.inf


def checked_limit(value: Any) -> Any:
    """Return a limit as it is; raise a ``ValueError`` as :func:`parse_limit` does if it is none."""
    parse_limit(value)
    return value


def make_digest(value: Any) -> str:
    """Return the recipe and a digest of plain JSON that nobody can find another value for."""
    return f"{RECIPE}:" + hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


def summarize(changes: Collection[Mapping[str, Any]], *, applied: bool) -> str:
    """
    Return the numbers of changes for people.

    :param changes: ``action``, ``status`` and ``after`` of each
    :param applied: whether the changes were sent
    """
    counts = Counter(one["action"] for one in changes)
    if applied:
        unsent = Counter(one["action"] for one in changes if one["status"] not in ("done", "invited", "skipped"))
        counts.subtract(unsent)
        verified = sum("is_verified" in one["after"] for one in changes)
        domains = f" (domains verified: {verified})" if verified else ""
        done = f"{counts['create']} created, {counts['change']} changed{domains}, {counts['remove']} removed"
        rest = {"paused or resumed": counts["set"], "not done": unsent.total(), "cannot be known": counts["unknown"]}
    else:
        done = f"{counts['create']} to create, {counts['change']} to change, {counts['remove']} to remove"
        rest = {"cannot be known": counts["set"] + counts["unknown"]}
    rest |= {"to change by hand": counts["differs"], "left for a later run": counts["wait"], "skipped": counts["skip"]}
    return ", ".join([done, *(f"{count} {what}" for what, count in rest.items() if count)])


def describe_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the values of fields for people, whole: an approval covers what was shown."""

    def text(value: Any) -> str:
        return value if isinstance(value, str) and value.strip() else json.dumps(value, ensure_ascii=False)

    values = {name: f"{text(value)} -> {text(after[name])}" for name, value in before.items() if name in after}
    fields = {**before, **after}.items()  # an end is in the reason
    return [f"{name}: {values.get(name) or text(value)}" for name, value in fields if name not in END_FIELDS]
