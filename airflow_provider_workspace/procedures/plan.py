"""A plan: its changes, how people see them, and what an approval covers."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from airflow_provider_workspace import errors
from airflow_provider_workspace.api.operations.invites import CreateInvite, DeleteInvite
from airflow_provider_workspace.api.operations.members import UpdateMember
from airflow_provider_workspace.procedures import ensure
from airflow_provider_workspace.procedures.access_list import AccessEntry, AccessList, identity_of
from airflow_provider_workspace.procedures.invites_report import INVITES_THAT_NEED_ATTENTION
from airflow_provider_workspace.procedures.journal import Sending
from airflow_provider_workspace.procedures.until import END_FIELDS

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.procedures.journal import Journal

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
REPORT_FIELDS = ("action", "part", "name", "before", "after", "why", "status", "reason", "digest", "not_shown", "mark")
NEEDS_ATTENTION = ("refused", *INVITES_THAT_NEED_ATTENTION)
# Statuses of changes with which nothing is left to do.
FINISHED = ("done", "invited", "skipped")
# Statuses of invites that were certainly not sent.
NOT_INVITED = ("failed", "not_sent")
# Digests of another version approve nothing: count up when other things, or the same in another form, are digested.
DIGEST_VERSION = "1"
DEFAULT_LIMIT = "10 or 30%"
# In place of a limit: whoever approves a plan decides whether it takes too much.
ASK = "ask"
# What a task says that cannot know what it sent before.
UNKNOWN_TRIES = (
    "This task may have sent changes that are not here: before Airflow 3.3, it does not know what it sent before a "
    "retry or a deferral, nor who accepted an invite that it withdrew then. See its log, and look at who has joined."
)
# A number, a share, or both with "or" between them.
LIMIT = re.compile(r"(?=\S)(?:(\d{1,18})(?: or (?=\S)|$))?(?:(100|[1-9]\d?) ?%)?")
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
    :param before: current values of the fields, as far as known
    :param after: desired values of the fields
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
    :param left_out: of a change that whoever approved the plan left out: the digest of what it would be; else empty
    :param cure: of a change that is not sent: what a person does, if the reason does not say it
    :param is_renewal: of a withdrawn invite: whether the same plan invites its person again
    :param held: returns why its record is to be left alone now; empty if it is not
    """

    action: Action
    part: str
    name: str
    _: KW_ONLY
    before: Mapping[str, Any] = field(default_factory=dict[str, Any])
    after: Mapping[str, Any] = field(default_factory=dict[str, Any])
    why: str = ""
    operation: Operation[Any] | None = None
    intended: Mapping[str, Any] | None = None
    apply: Callable[[WorkspaceClient, Any], object] | None = None
    mark: Mark = ""
    not_shown: Sequence[str] = ()
    person: str = ""
    should_lose: bool = False
    should_gain: bool = False
    left_out: str = ""
    cure: str = ""
    is_renewal: bool = False
    held: Callable[[], str] = lambda: ""

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
    def key(self) -> str:
        """What it is known by in its organization."""
        is_invite = self.part == "members" and self.action == "create"
        name = self.person if is_invite else self.name
        invite_id = self.operation.invite_id if isinstance(self.operation, DeleteInvite) else ""
        return f"{self.part}: {self.action} {name} {invite_id}".rstrip()

    @property
    def removes(self) -> bool:
        """
        Whether it takes something away as a whole: a member, an invite, a collaborator or a domain.

        A renewed invite is no loss: a roster that was cut renews nobody, so limits need not count it.
        """
        return self.action == "remove" and not self.is_renewal

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
    def loss(self) -> str:
        """What it counts as in a limit, for people; empty if it takes nothing away."""
        if self.lowers:
            return "levels lowered"
        if not self.removes:
            return ""
        return "invites withdrawn" if isinstance(self.operation, DeleteInvite) else f"{self.part} removed"

    @property
    def takes_access(self) -> bool:
        """Whether somebody loses access to the organization or to a dashboard, or a part of their level."""
        if self.part == "collaborators":
            return self.removes
        return self.takes_from_person

    def unless_held(self) -> Change:
        """Return the change, or what is left for a later run while its record is to be left alone."""
        why = self.held()
        return replace(self, action="wait", why=why, operation=None) if why else self

    def send(self, client: WorkspaceClient, memory: Any = None) -> object:
        """
        Apply the change, or say why it is not applied.

        :param memory: what the task remembers of this change across its tries
        :return: what ``apply`` returns, the record that a create or change returned, or the 404 of a removal
        :raises WorkspaceInputError: if it depends on an earlier part
        """
        if self.sends and self.operation is None:
            raise errors.WorkspaceInputError(
                f"{self.name} depends on parts that are not applied. Apply the parts before '{self.part}' first"
            )
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

    def line(self, full_name: str = "") -> str:
        """
        Return the change as a line of a table.

        :param full_name: the name of the person whom it is about; empty if it is not known
        """
        name = errors.visible(f"{self.name} ({full_name})" if full_name else self.name)
        if self.action in PENDING:
            return f"  {MARKS[self.action]} {name:<44} {self.notes}"
        notes = self.mark or MARKS[self.action]
        if self.notes:
            notes += f": {self.notes}"
        return f"    {name:<44} {notes}"

    @property
    def notes(self) -> str:
        """The fields and the reason, for people."""
        notes = describe_fields(self.before, self.after)
        if self.reason:
            notes.append(self.reason)
        return errors.visible(", ".join(notes))

    @property
    def reason(self) -> str:
        """The reason, and what cannot be shown yet, for people; empty if there is neither."""
        if not self.sends or self.operation is not None:
            return self.advice
        later = "its id is known after apply"
        return f"{later}, {self.why}" if self.why else later

    @property
    def advice(self) -> str:
        """The reason, and what a person does about it."""
        return f"{self.why}; {self.cure}" if self.cure else self.why

    def approval_digest(self, planned_for: str) -> str | None:
        """Return a digest of what an approval covers or leaves out; ``None`` for a change that is never sent."""
        if self.left_out:
            return self.left_out
        if self.operation is None:
            return self.early_digest(planned_for)
        request = self.operation.request()
        payload: object = None
        if request.body is not None:
            payload = self.operation.payload()
        sent = [request.method, request.target, payload]
        return make_digest([planned_for, self.part, self.action, self.name, self.before, self.after, sent])

    def is_approved(self, planned_for: str, approved: Collection[str]) -> bool:
        """Return whether digests cover the change, perhaps from before an earlier part gave it its ids."""
        if self.approval_digest(planned_for) in approved:
            return True
        return self.early_digest(planned_for) in approved

    def leave_out(self, planned_for: str, why: str) -> Change:
        """Return what is left to do by hand after a person left the change out, which they did on purpose."""
        told = ", ".join(filter(None, (self.action, self.why)))
        digest = self.approval_digest(planned_for) or ""
        return replace(self, action="differs", why=f"{why}: {told}", operation=None, apply=None, left_out=digest)

    def falls_with(self, other: Change) -> bool:
        """Return whether leaving out the other leaves this one out: what needs it, and both halves of a renewal."""
        halves = (self, other)
        is_renewal = all(half.is_renewal or half.invites for half in halves) and self.person == other.person
        return is_renewal or self.needs(other)

    def needs(self, other: Change) -> bool:
        """Return whether the other creates what this one has no id of yet: a project, a dashboard or a domain."""
        if other.action != "create" or self.operation is not None or self.intended is None:
            return False
        project = self.intended.get("project")
        dashboard = self.intended.get("dashboard")
        return other.name in (self.name, f"project {project}", f"dashboard {project} / {dashboard}")

    def early_digest(self, planned_for: str) -> str | None:
        """Return a digest of what the change is known by before its ids are; ``None`` if there is none."""
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
    mark: Mark = ""

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> ChangeRow:
        """Read what :meth:`to_dict` returned, from the result of an earlier task."""
        values = {name: value[name] for name in REPORT_FIELDS if name in value}
        return cls(**values)

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
    :param left_out: why changes were left out, by digest
    :param approved_by: who approved it; empty if nobody was asked
    """

    planned_for: str
    digests: frozenset[str]
    left_out: Mapping[str, str]
    approved_by: str

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
        expected = "approved must be a plan with 'planned_for' and a list of 'changes', each with its 'digest'"
        cure = f"Pass the output of {task}"
        if not isinstance(value, Mapping):
            raise errors.WorkspaceInputError(f"{expected}, not {errors.shown(value)}. {cure}")
        planned_for = value.get("planned_for")
        rows = value.get("changes")
        if not isinstance(planned_for, str) or not isinstance(rows, list):
            raise errors.WorkspaceInputError(f"{expected}, not a mapping without these. {cure}")
        if not all(_has_digest(row) for row in rows):
            raise errors.WorkspaceInputError(f"{expected}, not a mapping without these. {cure}")
        covered = [row for row in rows if row["digest"] is not None]
        # What is by hand for another reason has no digest.
        left_out: dict[str, str] = {}
        for row in covered:
            if row.get("action") == "differs":
                why, _, _ = str(row.get("why")).partition(": ")
                left_out[row["digest"]] = why
        digests = {row["digest"] for row in covered}
        others = value.get("digests", ())
        are_digests = isinstance(others, list | tuple) and all(isinstance(digest, str) for digest in others)
        if not are_digests:
            raise errors.WorkspaceInputError(f"{expected}, not a mapping without these. {cure}")
        digests.update(others)
        approved_by = str(value.get("approved_by") or "")
        return cls(planned_for, frozenset(digests - left_out.keys()), left_out, approved_by)


def _has_digest(row: object) -> bool:
    """Return whether a row of an approved plan has a digest, which is ``None`` for what is never sent."""
    if not isinstance(row, Mapping):
        return False
    digest = row.get("digest", 0)
    return isinstance(digest, str | None)


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
    :param access_list: who had access when it was made
    :param joined: who joined while invites were withdrawn, and may have accepted one under another address
    :param last_taken: the change that took access from a member, if no request was accepted after it; else ``None``
    :param failures: the errors of changes that were not made, or may not have been made
    :param left_out: why changes were left out, by digest
    :param check_rest: refuses what may not be sent without the changes that were left out
    :param earlier: what earlier tries of the task have sent, as far as this one does not send it again
    """

    planned_for: str = ""
    changes: list[Change] = field(default_factory=list[Change])
    outcomes: dict[Change, ChangeResult] = field(default_factory=dict[Change, ChangeResult])
    members: int = 0
    remark: str = ""
    not_shown: dict[Change, Sequence[str]] = field(default_factory=dict[Change, Sequence[str]])
    access_list: AccessList = field(default_factory=AccessList)
    joined: list[str] = field(default_factory=list[str])
    last_taken: Change | None = None
    failures: dict[Change, errors.WorkspaceRequestError] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    check_rest: Callable[[Sequence[Change]], None] = lambda _: None
    earlier: list[ChangeRow] = field(default_factory=list[ChangeRow])

    @property
    def counts(self) -> dict[Action, int]:
        """Number of changes by action."""
        counted = Counter(row.action for row in self.earlier)
        counted.update(change.action for change in self.changes)
        return {action: counted[action] for action in MARKS}

    @property
    def pending(self) -> int:
        """Number of changes to apply, without states that cannot be read."""
        counts = self.counts
        return sum(counts[action] for action in PENDING)

    @property
    def differences(self) -> int:
        """Number of differences from what is wanted, with those that cannot be known."""
        counts = self.counts
        return self.pending + counts["differs"] + counts["unknown"]

    def full_name_of(self, change: Change) -> str:
        """Return the name of the person whom a change is about; empty if the service does not show it."""
        return self.access_list.full_names.get(change.person, "")

    def to_dict(self, *, applied: bool = False) -> dict[str, Any]:
        """
        Return plain JSON: numbers, ``changes``, the beginning of the ``table``, and ``planned_for``.

        :param applied: whether the changes were sent
        """
        rows = self.rows(applied=applied)
        return {
            "pending": self.pending,
            "differences": self.differences,
            "counts": self.counts,
            "changes": [row.to_dict() for row in rows],
            "table": self.table(limit=MAX_LINES, applied=applied),
            "planned_for": self.planned_for,
        }

    def summary(self, *, applied: bool = False) -> str:
        """Return the numbers for people; ``applied`` if the changes were sent."""
        rows = [self._row(change, applied=applied) for change in self.changes]
        return summarize([*self.earlier, *rows], applied=applied)

    def rows(self, *, applied: bool = False) -> list[ChangeRow]:
        """
        Return the changes as results and reports show them.

        :param applied: whether the changes were sent
        """
        rows = list(self.earlier)
        for change in self.changes:
            digest = change.approval_digest(self.planned_for)
            rows.append(self._row(change, applied=applied, digest=digest))
        return rows

    def _row(self, change: Change, *, applied: bool, digest: str | None = None) -> ChangeRow:
        result = self._result(change, applied=applied)
        not_shown = self.not_shown.get(change) or change.not_shown
        return ChangeRow(
            action=change.action,
            part=change.part,
            name=change.name,
            before=change.before,
            after=change.after,
            why=change.advice,
            status=result.status,
            reason=result.reason,
            digest=digest,
            not_shown=not_shown,
            mark=change.mark,
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
        lines += [f"    {row.name:<44} {row.reason}" for row in self.earlier[:limit]]
        for part, changes in groupby(self.changes, lambda change: change.part):
            part_lines = [change.line(self.full_name_of(change)) for change in changes]
            lines += part_lines[:limit]
            if limit is not None and len(part_lines) > limit:
                lines.append(f"    … and {len(part_lines) - limit} more {part}")
        return "\n".join(lines)

    def take_over(self, journal: Journal, part: str = "") -> None:
        """
        Tell what earlier tries of the task have sent, too; what this one sends again, it tells itself.

        :param part: the part that is planned; empty for all
        """
        again = {change.key for change in self.changes if change.sends}
        for key, sending in journal.earlier_at(self.planned_for).items():
            row = ChangeRow.from_dict(sending.row)
            is_final = sending.status in FINISHED and row.action in PENDING
            if (key in again and not is_final) or part not in ("", row.part):
                continue
            is_done = bool(sending.status) or self._shows(row, sending)
            status = (sending.status or "done") if is_done else "unknown"
            reason = sending.told if is_done else f"{sending.by} was about to send it"
            self.earlier.append(replace(row, status=status, reason=reason))
            if not is_done:
                self._add_renamed(row, sending)
        remarks = [self.remark]
        if self.earlier:
            remarks.append(f"This task had sent {counted(len(self.earlier), 'change', 'changes')} before.")
        if not journal.knows_all:
            remarks.append(UNKNOWN_TRIES)
        self.remark = "\n".join(filter(None, remarks))

    def _shows(self, row: ChangeRow, sending: Sending) -> bool:
        """Return whether the lists show what a try was about to send for a person; what hides people proves nothing."""
        if row.part != "members":
            return False
        person = sending.row["person"]
        if row.action == "create":
            has_access = person in self.access_list.invited or bool(self.access_list.levels_of(person))
            differs = any(change.person == person and change.action == "differs" for change in self.changes)
            return has_access and not differs
        entry = self._entry_of(sending)
        if row.action == "change":
            return entry is not None and entry.level == row.after["level"]
        is_there = entry is not None or person in self.access_list.invited or self.access_list.levels_of(person)
        return not (is_there or self.access_list.hides_people)

    def _entry_of(self, sending: Sending) -> AccessEntry | None:
        """Return the entry of the user whom a try was about to change, whatever their address is by now."""
        return self.access_list.shown.get(tuple(sending.row["identity"]))

    def _add_renamed(self, row: ChangeRow, sending: Sending) -> None:
        """Say that somebody whom a try was about to remove is still there, at an address that no row names."""
        entry = self._entry_of(sending)
        if row.action != "remove" or entry is None or entry.person == sending.row["person"]:
            return
        if any(change.person == entry.person for change in self.changes):
            return
        why = f"{sending.by} was about to remove {row.name}, who is {entry.name} now"
        cure = "remove them by hand"
        line = Change("differs", row.part, entry.name, why=why, person=entry.person, should_lose=True, cure=cure)
        self.changes.append(line)

    def sending_of(self, change: Change) -> Sending:
        """Return what is noted before a change is sent."""
        row = self._row(change, applied=True, digest=change.approval_digest(self.planned_for)).to_dict()
        identity = identity_of(change.operation) or ()
        return Sending(self.planned_for, change.key, {**row, "person": change.person, "identity": list(identity)})

    def check_losses(
        self,
        maximum: Any,
        *,
        is_asked: bool = False,
        is_approved: bool = False,
        cure: str = "Set require_approval=True",
    ) -> None:
        """
        Refuse a plan that takes too much away: the list of what is wanted may have been cut.

        A number limits how much is removed, and how many members get a lower level, together. A share limits how many
        people that may be (members and open invites), in percent of the members, and always allows one.

        :param maximum: the limit, see :func:`parse_limit`; :data:`ASK` to tell whoever approves the plan
        :param is_asked: whether a person approves the plan, or it is only shown
        :param is_approved: whether a person has approved it, who was told how much it takes
        :param cure: how a person is asked
        :raises WorkspaceInputError: if the plan exceeds it, or sends something, and nobody is asked
        """
        if maximum == ASK and is_approved:
            return
        if maximum == ASK and not is_asked and any(change.sends for change in self.changes):
            raise errors.WorkspaceInputError(
                f"max_removals='{ASK}' lets whoever approves the plan decide, and nobody is asked. {cure}, or set "
                f"max_removals to a number. Planned for {self.planned_for}",
                problem="too-many-removals",
            )
        limit = DEFAULT_LIMIT if maximum == ASK else maximum
        most = parse_limit(limit, self.members)
        losses = Counter(change.loss for change in self.changes if change.loss)
        people = sum(change.takes_from_person for change in self.changes)
        allowed = most.losses
        if people > most.people:
            allowed = min(most.people, most.losses)
        elif losses.total() <= most.losses:
            return
        numbers = ", ".join(f"{loss}: {number}" for loss, number in losses.items())
        of_members = f"; the organization has {counted(self.members, 'member', 'members')}" if self.members else ""
        taken = f"This plan takes a lot away ({numbers}{of_members})"
        if maximum == ASK:
            remark = f"{taken}; usually, {allowed} would be allowed ({limit}). Approve it only if the list is complete."
            self.remark = f"{remark}\n{self.remark}".strip()
            return
        raise errors.WorkspaceInputError(
            f"{taken}; max_removals={maximum!r} allows {allowed}. Check that the list is complete; if it is, set "
            f"max_removals={losses.total()}. Planned for {self.planned_for}",
            problem="too-many-removals",
        )

    def leave_out(self, left_out: Mapping[str, str]) -> None:
        """
        Leave out changes, and those that need them; what is left out is *by hand*.

        :param left_out: why, by digest; see :meth:`digests_that_fall_with`
        :raises WorkspaceInputError: if the others may not be sent without them
        """
        if not left_out:
            return
        self.left_out = {**self.left_out, **left_out}
        reasons: dict[Change, str] = {}
        changes: list[Change] = []
        # A change comes after those that it needs.
        for change in self.changes:
            digests = (change.approval_digest(self.planned_for), change.early_digest(self.planned_for))
            told = [f"{why}, with {other.name}" for other, why in reasons.items() if change.needs(other)]
            told += [why for digest, why in left_out.items() if digest in digests]
            if change.left_out or not told:
                changes.append(change)
                continue
            reasons[change] = told[0]
            changes.append(change.leave_out(self.planned_for, told[0]))
        self.changes = changes
        self.check_rest(changes)

    def digests_that_fall_with(self, left: Change) -> list[str]:
        """Return the digests of a change and of all that is left out with it, as the plan is now."""
        falling = [change for change in self.changes if change is left or change.falls_with(left)]
        return list(filter(None, (change.approval_digest(self.planned_for) for change in falling)))

    @property
    def unproven(self) -> list[str]:
        """Who should lose access, and of whom the lists do not show whether they have it, for people."""
        joined = [f"{name}: joined while an invite was withdrawn, and may have accepted it" for name in self.joined]
        return self._losing("unknown") + joined

    @property
    def withdraws_invites(self) -> bool:
        """Whether it withdraws open invites, which may be accepted at the same time."""
        return any(isinstance(change.operation, DeleteInvite) for change in self.changes)

    @property
    def withdrawn(self) -> frozenset[str]:
        """The ids of the invites that were withdrawn."""
        done = [change.operation for change in self.outcomes if self.outcomes[change].status == "done"]
        return frozenset(str(operation.invite_id) for operation in done if isinstance(operation, DeleteInvite))

    @property
    def lost_invites(self) -> list[str]:
        """Whose invite was withdrawn to be renewed, without a new one, for people."""
        results = {change.person: self.outcomes.get(change) for change in self.changes if change.invites}
        lost: list[str] = []
        for change, result in self.outcomes.items():
            new = results.get(change.person)
            if change.is_renewal and result.status == "done" and (new is None or new.status in NOT_INVITED):
                lost.append(change.person)
        return lost

    @property
    def left_by_hand(self) -> list[str]:
        """Who should lose access and keeps it, because nobody but a person may take it away, for people."""
        return self._losing("differs")

    def _losing(self, action: Action) -> list[str]:
        """Return who should lose access by changes with an action that is not sent, for people."""
        changes = [change for change in self.changes if change.should_lose and change.action == action]
        return [f"{change.name}: {change.notes}" for change in changes]

    def check_approved(self, approved: Collection[str], cure: str, approved_plan: str = "the approved plan") -> None:
        """
        Refuse changes that an approval does not cover.

        :param approved: the digests of the approved changes
        :param cure: what to do
        :param approved_plan: what was approved, for people
        :raises WorkspaceInputError: naming the changes
        """
        digests = frozenset(approved)
        sent = [change for change in self.changes if change.sends]
        stale = [change for change in sent if not change.is_approved(self.planned_for, digests)]
        if not stale:
            return
        if not all(digest.startswith(f"{DIGEST_VERSION}:") for digest in digests):
            message = f"Another release of this package made {approved_plan}. {cure}"
            raise errors.WorkspaceInputError(message, problem="approval-stale")
        numbers = f"{len(stale)} of {counted(len(sent), 'change is', 'changes are')}"
        why = f"{numbers} not in {approved_plan}, or start from other values"
        lines = [change.line() for change in stale]
        named = errors.name_first(lines, "the plan", separator="\n")
        raise errors.WorkspaceInputError(f"{why}. {cure}:\n{named}", problem="approval-stale")

    def check_approved_plan(self, approved: ApprovedPlan | None) -> None:
        """
        Refuse changes that an approved plan does not have.

        :param approved: the approved plan; ``None`` to accept every change
        :raises WorkspaceInputError: if there are such changes, or the plan is of another organization
        """
        if approved is None:
            return
        cure = "Plan again, and let somebody approve the new plan"
        if approved.planned_for != self.planned_for:  # the connection or the file led elsewhere
            raise errors.WorkspaceInputError(
                f"The approved plan is for {approved.planned_for}, and this task is for {self.planned_for}. {cure}",
                problem="approval-stale",
            )
        self.leave_out(approved.left_out)
        self.check_approved(approved.digests, cure)


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


def checked_limit_or_ask(value: Any) -> Any:
    """Return a limit or :data:`ASK` as it is; raise a ``ValueError`` if it is neither."""
    return value if value == ASK else checked_limit(value)


def make_digest(value: object) -> str:
    """Return the version and a digest of plain JSON that nobody can find another value for."""
    text = json.dumps(value, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{DIGEST_VERSION}:{digest[:32]}"


def counted(number: int, one: str, many: str) -> str:
    """
    Return a number with its noun.

    :param one: the noun of 1
    :param many: the noun of every other number
    """
    return f"{number} {one if number == 1 else many}"


def summarize(rows: Collection[ChangeRow], *, applied: bool) -> str:
    """
    Return the numbers of changes for people.

    :param applied: whether the changes were sent
    """
    numbers = _applied_numbers(rows) if applied else _planned_numbers(rows)
    counts = Counter(row.action for row in rows)
    _add_number(numbers, counts["differs"], "to change by hand")
    _add_number(numbers, counts["wait"], "left for a later run")
    marks = Counter(row.mark or MARKS["skip"] for row in rows if row.action == "skip")
    for mark in ("kept", "duplicate", MARKS["skip"]):
        _add_number(numbers, marks[mark], mark)
    return ", ".join(numbers)


def _planned_numbers(rows: Collection[ChangeRow]) -> list[str]:
    counts = Counter(row.action for row in rows)
    numbers = [f"{counts['create']} to create", f"{counts['change']} to change", f"{counts['remove']} to remove"]
    _add_number(numbers, counts["set"] + counts["unknown"], "cannot be known")
    return numbers


def _applied_numbers(rows: Collection[ChangeRow]) -> list[str]:
    finished = [row for row in rows if row.status in FINISHED]
    counts = Counter(row.action for row in finished)
    changed = f"{counts['change']} changed"
    verified = [row for row in rows if "is_verified" in row.after]
    if verified:
        changed += f" (domains verified: {len(verified)})"
    numbers = [f"{counts['create']} created", changed, f"{counts['remove']} removed"]
    _add_number(numbers, counts["set"], "paused or resumed")
    _add_number(numbers, len(rows) - len(finished), "not done")
    _add_number(numbers, counts["unknown"], "cannot be known")
    return numbers


def _add_number(numbers: list[str], count: int, label: str) -> None:
    """Add a number for people, unless it is 0."""
    if count:
        numbers.append(f"{count} {label}")


def describe_fields(before: Mapping[str, Any], after: Mapping[str, Any], arrow: str = " -> ") -> list[str]:
    """
    Return the values of fields for people, whole: an approval covers what was shown.

    :param arrow: what stands between a current and a desired value
    """
    descriptions: list[str] = []
    for name, value in {**before, **after}.items():
        if name in END_FIELDS:  # an end is in the reason
            continue
        text = _value_text(value)
        if name in before and name in after:
            text = f"{_value_text(before[name])}{arrow}{text}"
        descriptions.append(f"{name}: {text}")
    return descriptions


def _value_text(value: object) -> str:
    if isinstance(value, str) and value.strip():
        return value
    return json.dumps(value, ensure_ascii=False)
