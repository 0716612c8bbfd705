"""What Airflow holds of a task, in memory; and the exception that simulates a kill."""

from __future__ import annotations

from typing import Any


class TaskInstance:
    """A task instance that records its XComs."""

    def __init__(self, try_number: int = 1) -> None:
        self.try_number = try_number
        self.xcoms: dict[str, Any] = {}

    def xcom_push(self, key: str, value: Any) -> None:
        """Store an XCom."""
        self.xcoms[key] = value


class TaskStore(dict[str, Any]):
    """Airflow's task state store; it refuses None."""

    def set(self, key: str, value: Any) -> None:
        """Store a value."""
        assert value is not None
        self[key] = value

    def delete(self, key: str) -> None:
        """Delete a value, if it exists."""
        self.pop(key, None)


class Killed(BaseException):
    """Simulates kill -9: no other code of the task runs."""
