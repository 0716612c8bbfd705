"""What a person approved, as the state of a task keeps it; not beside its operator, whose import each Dag file pays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace import errors
from airflow_provider_workspace.access.rules.answers import Answerer
from airflow_provider_workspace.api.database_limits import MAX_TEXT_BYTES, label, trigger_size

if TYPE_CHECKING:
    from airflow_provider_workspace.procedures.plan import Change, Plan

# Key of the approval in the task state.
APPROVAL = "airflow_provider_workspace_approved"
# The fields of the XCom.
RECORDED = ("plan", "by", "by_id", "at", "requested_by", "self_approved")
# The field of the question, how many changes it has at most, and their bytes: before Airflow 3.3 a trigger has them.
LEAVE_OUT = "leave_out"
MAX_CHOICES = 200
MAX_CHOICES_BYTES = MAX_TEXT_BYTES - 5_535


@dataclass(frozen=True, slots=True)
class Approval:
    """
    What a person approved.

    :param plan: digest of the plan in the question
    :param changes: digests of its changes, without those that were left out
    :param left_out: digests of the changes that were left out
    :param by: name of the Airflow user who approved it
    :param by_id: their id
    :param at: when, as Airflow shows it
    :param requested_by: who asked for it; empty if nobody is known
    :param self_approved: whether who approved it also asked for it
    :param max_tries: the number of tries of the task then, which increases if it is cleared after its end; ``None`` if
        not known
    :param clear_number: how often tasks of the run had been cleared then, also while they ran; ``None`` if not known
    """

    plan: str
    changes: list[str]
    left_out: list[str]
    by: str
    by_id: str
    at: str
    requested_by: str
    self_approved: bool
    max_tries: int | None
    clear_number: int | None

    @classmethod
    def read(cls, value: object) -> Approval | None:
        """Read what the task state holds; ``None`` if that is no approval."""
        names = {field.name for field in fields(cls)}
        if not isinstance(value, Mapping) or value.keys() != names:
            return None
        return cls(**value)

    @property
    def approver(self) -> str:
        """Who approved it, with their id if it is another text."""
        return str(Answerer(self.by_id, self.by))

    def leave_out_of(self, plan: Plan) -> None:
        """
        Leave out of a plan what the approver left out.

        :raises WorkspaceInputError: if the rest may not be sent alone
        """
        why = f"left out by {self.approver} on {self.at}"
        plan.leave_out(dict.fromkeys(self.left_out, why))

    def described(self, changes: Iterable[Change]) -> dict[str, Any]:
        """Return what the XCom of it says; ``changes`` are those of the plan."""
        record = self.to_dict()
        names = [change.name for change in changes if change.left_out]
        return {**{name: record[name] for name in RECORDED}, "left_out": names}

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return asdict(self)


def changes_to_leave_out(plan: Plan) -> dict[str, list[str]]:
    """
    Return what may be left out: by the text of a change, its digest and those of all that is left out with it.

    Each is of the plan in the question: when it is answered, the other half of a renewal may be gone. It is empty if
    there are more than people can choose from, or than a trigger of Airflow can carry on MySQL.
    """
    sent = [change for change in plan.changes if change.sends and change.approval_digest(plan.planned_for) is not None]
    if len(sent) > MAX_CHOICES:
        return {}
    choices: dict[str, list[str]] = {}
    for number, change in enumerate(sent, start=1):
        text = f"{number}. {change.action} {change.name}: {change.notes}"
        choices[label(errors.visible(text))] = plan.digests_that_fall_with(change)
    return {} if trigger_size(list(choices)) > MAX_CHOICES_BYTES else choices


def leave_out_form(choices: Mapping[str, list[str]]) -> dict[str, dict[str, Any]]:
    """Return the field of the question, as Airflow serializes a ``Param``; none without choices."""
    if not choices:
        return {}
    schema = {"title": "leave out", "type": ["null", "array"], "examples": list(choices), "items": {"type": "string"}}
    told = "What is chosen here is not sent. With nothing chosen, the whole plan is sent."
    return {LEAVE_OUT: {"value": None, "description": told, "schema": schema, "source": "task"}}


def read_left_out(answer: object, choices: Mapping[str, list[str]]) -> list[str]:
    """
    Return the digests of what an answer leaves out, and of what is left out with it.

    :param answer: the values of the form
    :param choices: what :func:`changes_to_leave_out` returned
    :raises WorkspaceInputError: if it leaves out what is no line of the plan
    """
    fields: dict[str, Any] = dict(answer) if isinstance(answer, Mapping) else {"answer": answer}
    chosen = fields.pop(LEAVE_OUT, None)
    lines = list(map(str, chosen)) if isinstance(chosen, list) else []
    odd = [line for line in lines if line not in choices]
    odd += filter(None, fields.values())
    if not isinstance(chosen, list | None):
        odd.append(chosen)
    if odd:
        named = errors.name_first([errors.shown(line) for line in odd], "the answer")
        raise errors.WorkspaceInputError(
            f"The answer leaves out what is no line of the plan. Clear the task to ask again, and choose lines of its "
            f"list: {named}",
            problem="answer-refused",
        )
    return sorted({digest for line in lines for digest in choices[line]})
