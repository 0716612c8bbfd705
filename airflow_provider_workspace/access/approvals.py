"""What a person approved, as the state of a task keeps it; not beside its operator, whose import each Dag file pays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from airflow_provider_workspace.access.rules.answers import Answerer

# Key of the approval in the task state.
APPROVAL = "airflow_provider_workspace_approved"
# The fields of the XCom.
RECORDED = ("plan", "by", "by_id", "at", "requested_by", "self_approved")


@dataclass(frozen=True, slots=True)
class Approval:
    """
    What a person approved.

    :param plan: digest of the plan in the question
    :param changes: digests of its changes
    :param by: name of the Airflow user who approved it
    :param by_id: their id
    :param at: when, as Airflow shows it
    :param requested_by: who asked for it; empty if nobody is known
    :param self_approved: whether who approved it also asked for it
    :param max_tries: the number of tries of the task then, which increases each time it is cleared; ``None`` if not
        known
    """

    plan: str
    changes: list[str]
    by: str
    by_id: str
    at: str
    requested_by: str
    self_approved: bool
    max_tries: int | None

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

    def described(self) -> dict[str, Any]:
        """Return what the XCom of it says."""
        record = self.to_dict()
        return {name: record[name] for name in RECORDED}

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return asdict(self)
