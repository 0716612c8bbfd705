"""A change of a plan, and what an approval of it covers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.comparison import printable
from airflow_provider_workspace.errors import WorkspaceInputError, shown

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.procedures.organization_file import DashboardEntry

SYMBOLS = {
    "create": "+",
    "change": "~",
    "remove": "-",
    "set": "!",
    "differs": "!",
    "wait": "!",
    "unknown": "!",
    "skip": "=",
}
# Actions of which an organization that matches its file has none.
PENDING = ("create", "change", "remove")
# The fields of a change in a report.
CHANGE_FIELDS = ("action", "part", "name", "before", "after", "why")
# Maximum number of lines of one kind in messages and results; the log and the report file have all.
MAX_LINES = 200


@dataclass(frozen=True, slots=True)
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
    :param project: name of the project of a dashboard to create
    :param entry: the entry of a dashboard to create
    """

    action: str
    part: str
    name: str
    after: Mapping[str, Any] = field(default_factory=dict[str, Any])
    before: Mapping[str, Any] = field(default_factory=dict[str, Any])
    why: str = ""
    operation: Operation[Any] | None = None
    intended: Mapping[str, Any] | None = None
    project: str = ""
    entry: DashboardEntry | None = None

    @property
    def sends(self) -> bool:
        """Whether applying it sends a request."""
        return self.action in (*PENDING, "set")

    def line(self) -> str:
        """Return the change as a line of a table."""
        late = ["its id is known after apply"] if self.sends and self.operation is None else []
        notes = [*describe_fields(self.before, self.after), *late, *filter(None, [self.why])]
        return printable(f"  {SYMBOLS[self.action]} {self.name:<44} {', '.join(notes)}")

    def to_dict(self, planned_for: str) -> dict[str, Any]:
        """Return plain JSON, with what an approval of it covers as ``digest``."""
        return {**{name: getattr(self, name) for name in CHANGE_FIELDS}, "digest": self.digest(planned_for)}

    def digest(self, planned_for: str) -> str | None:
        """
        Return a digest of what an approval covers: service, organization, request, and what it was compared with.

        :param planned_for: the service and the organization
        :return: ``None`` for a change that is never sent
        """
        if self.operation is None:
            return self._early_digest(planned_for)
        request = self.operation.request()
        body = None if request.body is None else self.operation.payload()
        sent = [request.method, request.target, body]
        return digest([planned_for, self.part, self.action, self.name, self.before, self.after, sent])

    def is_approved(self, planned_for: str, approved: Collection[str]) -> bool:
        """Return whether digests cover the change, perhaps from before an earlier part gave it its ids."""
        own = {self.digest(planned_for), self._early_digest(planned_for)} - {None}
        return any(one in approved for one in own)

    def _early_digest(self, planned_for: str) -> str | None:
        return None if self.intended is None else digest([planned_for, self.part, self.intended])


def digest(value: Any) -> str:
    """Return a digest of plain JSON that nobody can find another value for."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


def describe_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the values of fields for people, whole: an approval covers what was shown."""

    def text(value: Any) -> str:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    values = {name: f"{text(value)} -> {text(after[name])}" for name, value in before.items() if name in after}
    return [f"{name}: {values.get(name) or text(value)}" for name, value in {**before, **after}.items()]


def check_approved(changes: Iterable[Change], planned_for: str, approved: Collection[Any], cure: str) -> None:
    """
    Refuse changes that an approval does not cover.

    :param planned_for: the service and the organization
    :param approved: the digests of the approved changes
    :param cure: what to do, the beginning of the message
    :raises WorkspaceInputError: naming the changes
    """
    sent, covered = [change for change in changes if change.sends], set(approved)
    stale = [change.line() for change in sent if not change.is_approved(planned_for, covered)]
    if stale:
        what = f"{len(stale)} of {len(sent)} changes are not in the approved plan, or start from other values"
        rest = [f"  … and {len(stale) - MAX_LINES} more"] if len(stale) > MAX_LINES else []
        raise WorkspaceInputError("\n".join([f"{cure}: {what}:", *stale[:MAX_LINES], *rest]))


def check_approved_plan(changes: Iterable[Change], planned_for: str, approved: Any, task: str) -> None:
    """
    Refuse changes that an approved plan does not have.

    :param planned_for: the service and the organization; the connection or the file may have led elsewhere before
    :param approved: the approved plan, the result of an earlier task; ``None`` to accept every change
    :param task: the task with the approved plan, for messages
    :raises WorkspaceInputError: if there are such changes, or it is no plan, or one of another organization
    """
    if approved is None:
        return
    plan: Mapping[str, Any] = approved if isinstance(approved, Mapping) else {}
    then, rows = plan.get("planned_for"), plan.get("changes")
    digests = (
        [row.get("digest", 0) if isinstance(row, Mapping) else 0 for row in rows] if isinstance(rows, list) else [0]
    )
    if not isinstance(then, str) or not all(isinstance(one, str | None) for one in digests):
        found = "a mapping without these" if isinstance(approved, Mapping) else shown(approved)
        raise WorkspaceInputError(
            f"Pass the output of {task} as approved: expected a plan with 'planned_for' and a list of 'changes', each "
            f"with its 'digest', not {found}"
        )
    cure = "Plan again, and have it approved"
    if then != planned_for:
        raise WorkspaceInputError(f"{cure}: the approved plan is for {then}, and this task is for {planned_for}")
    check_approved(changes, planned_for, digests, cure)
