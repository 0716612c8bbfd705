"""A plan: its changes, how people see them, what an approval covers, and how they are applied."""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from airflow_provider_workspace.errors import WorkspaceInputError, printable, shown
from airflow_provider_workspace.procedures import ensure

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.client.client import WorkspaceClient

C = TypeVar("C", bound="Change")

log = logging.getLogger(__name__)

# Actions of which an organization that matches its file has none.
PENDING = ("create", "change", "remove")
# By action, in the order of the counts; with the colours of a terminal.
SYMBOLS = {
    **dict(zip(PENDING, "+~-", strict=True)),
    **dict.fromkeys(("set", "differs", "wait", "unknown"), "!"),
    "skip": "=",
}
COLOURS = {"+": 32, "~": 33, "-": 31, "!": 36, "=": 36}
# The fields of a change in a report.
CHANGE_FIELDS = ("action", "part", "name", "before", "after", "why")
# Maximum number of lines of one kind in messages and results; the log and the report file have all.
MAX_LINES = 200


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """
    A difference between what is wanted and an organization.

    :param action: ``create``, ``change`` or ``remove``; ``set`` for a state that cannot be read; ``differs`` for a
        difference that the interface cannot change, so a person must; ``wait`` for what a later run does; ``unknown``
        for one that cannot be determined; ``skip`` for an entry that is ignored
    :param part: the part of the organization
    :param name: name of the resource with the names of its parents, for people
    :param after: desired values of the fields
    :param before: current values of the fields, as far as known
    :param why: the reason, for people; empty if there is none
    :param operation: the operation to send; ``None`` for none, or if it depends on an earlier part
    :param intended: what the change is known by before its ids are: the names of its parents, and all fields
    :param apply: applies it, with a client and what the task remembers; by default the operation is sent
        as :mod:`~airflow_provider_workspace.procedures.ensure` does
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

    @property
    def sends(self) -> bool:
        """Whether applying it sends a request."""
        return self.action in (*PENDING, "set")

    def send(self, client: WorkspaceClient, memory: Any = None) -> Any:
        """
        Apply the change, or say why it is not applied.

        :param memory: what the task remembers of this change across its tries
        :return: what ``apply`` returns
        :raises WorkspaceInputError: if it depends on an earlier part
        """
        if self.sends and self.operation is None:
            raise WorkspaceInputError(f"Apply the parts before '{self.part}' first: {self.name} depends on them")
        if self.apply is not None:
            return self.apply(client, memory)
        if self.operation is None:
            log.warning("Not changed:%s", self.line())
        elif self.action == "remove":
            ensure.remove(client, self.name, self.operation)
        elif self.action == "create":
            ensure.create(client, self.operation, if_exists="return", memory=memory)
        else:
            client.send(self.operation)
            log.info("Done:%s", self.line())
        return None

    def line(self) -> str:
        """Return the change as a line of a table."""
        late = ["its id is known after apply"] if self.sends and self.operation is None else []
        notes = [*describe_fields(self.before, self.after), *late, *filter(None, [self.why])]
        return printable(f"  {SYMBOLS[self.action]} {self.name:<44} {', '.join(notes)}")

    def digest(self, planned_for: str) -> str | None:
        """Return a digest of what an approval covers; ``None`` for a change that is never sent."""
        if self.operation is None:
            return self._early_digest(planned_for)
        request = self.operation.request()
        sent = [request.method, request.target, None if request.body is None else self.operation.payload()]
        return digest([planned_for, self.part, self.action, self.name, self.before, self.after, sent])

    def is_approved(self, planned_for: str, approved: Collection[str]) -> bool:
        """Return whether digests cover the change, perhaps from before an earlier part gave it its ids."""
        return not {self.digest(planned_for), self._early_digest(planned_for)}.isdisjoint(approved)

    def _early_digest(self, planned_for: str) -> str | None:
        return None if self.intended is None else digest([planned_for, self.part, self.intended])


@dataclass(slots=True)
class Plan(Generic[C]):
    """
    Changes, in the order in which they are applied.

    :param planned_for: the service and the organization
    :param outcomes: status and reason of changes that were sent
    """

    planned_for: str = ""
    changes: list[C] = field(default_factory=list)
    outcomes: dict[C, tuple[str, str]] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """Number of changes by action."""
        counted = Counter(change.action for change in self.changes)
        return {action: counted[action] for action in SYMBOLS}

    @property
    def pending(self) -> int:
        """Number of changes to apply, without states that cannot be read."""
        return sum(change.action in PENDING for change in self.changes)

    @property
    def differences(self) -> int:
        """Number of differences from what is wanted, with those that cannot be known."""
        return self.pending + sum(change.action in ("differs", "unknown") for change in self.changes)

    def to_dict(self, *, applied: bool = False) -> dict[str, Any]:
        """Return plain JSON: numbers, ``changes``, the beginning of the ``table``, and ``planned_for``."""
        return {
            "pending": self.pending,
            "differences": self.differences,
            "counts": self.counts,
            "changes": [{**self.fields(change), "digest": change.digest(self.planned_for)} for change in self.changes],
            "table": self.table(limit=MAX_LINES, applied=applied),
            "planned_for": self.planned_for,
        }

    def summary(self, *, applied: bool = False) -> str:
        """Return the numbers for people; ``applied`` if the changes were sent."""
        counts = self.counts
        if applied:
            verified = sum("is_verified" in change.after for change in self.changes)
            domains = f" (domains verified: {verified})" if verified else ""
            done = f"{counts['create']} created, {counts['change']} changed{domains}, {counts['remove']} removed"
            rest = {"paused or resumed": counts["set"], "cannot be known": counts["unknown"]}
        else:
            done = f"{counts['create']} to create, {counts['change']} to change, {counts['remove']} to remove"
            rest = {"cannot be known": counts["set"] + counts["unknown"]}
        rest |= {"to change by hand": counts["differs"], "left for a later run": counts["wait"]}
        rest["skipped, as duplicates"] = counts["skip"]
        return ", ".join([done, *(f"{count} {what}" for what, count in rest.items() if count)])

    def fields(self, change: C) -> dict[str, Any]:
        """Return a change as plain JSON."""
        return {name: getattr(change, name) for name in CHANGE_FIELDS}

    def row(self, change: C) -> tuple[str, str]:
        """Return the kind of a change in the table, and its line."""
        return change.part, change.line()

    def table(self, *, coloured: bool = False, limit: int | None = None, applied: bool = False) -> str:
        """
        Return the plan for people: a summary, and a line for each change.

        :param limit: maximum number of lines of one kind
        """
        lines = [self.summary(applied=applied)]
        for kind, changes in groupby(self.changes, lambda change: self.row(change)[0]):
            of_kind = list(changes)
            for change in of_kind[:limit]:
                line = self.row(change)[1]
                lines.append(f"\x1b[{COLOURS[SYMBOLS[change.action]]}m{line}\x1b[0m" if coloured else line)
            if limit is not None and len(of_kind) > limit:
                lines.append(f"    … and {len(of_kind) - limit} more {kind}")
        return "\n".join(lines)

    def check_removals(self, maximum: int | None) -> None:
        """
        Refuse a plan with too many removals.

        :param maximum: maximum number of removals; ``None`` for any number
        :raises WorkspaceInputError: if there are more
        """
        going = sum(change.action == "remove" for change in self.changes)
        if maximum is not None and going > maximum:
            raise WorkspaceInputError(
                f"Check that the lists are complete; if so, raise max_removals={maximum}: {going} would be removed"
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
        if stale:
            what = f"{len(stale)} of {len(sent)} changes are not in the approved plan, or start from other values"
            rest = [f"  … and {len(stale) - MAX_LINES} more"] if len(stale) > MAX_LINES else []
            raise WorkspaceInputError("\n".join([f"{cure}: {what}:", *stale[:MAX_LINES], *rest]))

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
            found = "a mapping without these" if isinstance(approved, Mapping) else shown(approved)
            raise WorkspaceInputError(
                f"Pass the output of {task} as approved: expected a plan with 'planned_for' and a list of 'changes', "
                f"each with its 'digest', not {found}"
            )
        cure = "Plan again, and have it approved"
        if then != self.planned_for:  # the connection or the file led elsewhere
            raise WorkspaceInputError(
                f"{cure}: the approved plan is for {then}, and this task is for {self.planned_for}"
            )
        self.check_approved(digests, cure)


def digest(value: Any) -> str:
    """Return a digest of plain JSON that nobody can find another value for."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


def describe_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the values of fields for people, whole: an approval covers what was shown."""

    def text(value: Any) -> str:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    values = {name: f"{text(value)} -> {text(after[name])}" for name, value in before.items() if name in after}
    return [f"{name}: {values.get(name) or text(value)}" for name, value in {**before, **after}.items()]
