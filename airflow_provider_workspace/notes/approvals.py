"""What a person approved, as the state of a task keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

# Key of the approval in the task state.
APPROVAL = "airflow_provider_workspace_approved"


@dataclass(frozen=True, slots=True)
class Approval:
    """
    What a person approved.

    :param plan: digest of the plan in the question
    :param changes: digests of its changes
    :param by: who approved it
    :param at: when, as Airflow shows it
    :param max_tries: the number of tries of the task then, which increases each time it is cleared; ``None`` if not
        known
    """

    plan: str
    changes: list[str]
    by: str
    at: str
    max_tries: int | None

    @classmethod
    def read(cls, value: Any) -> Approval | None:
        """Read what the task state holds; ``None`` if that is no approval."""
        names = {field.name for field in fields(cls)}
        if not isinstance(value, Mapping) or value.keys() != names:
            return None
        return cls(**value)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return asdict(self)
