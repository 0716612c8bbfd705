"""A task state store in memory, and the exception that simulates a kill."""

from __future__ import annotations

from typing import Any


class TaskStore(dict[str, Any]):
    """Airflow's task state store in memory; it refuses None."""

    def set(self, key: str, value: Any) -> None:
        """Store a value."""
        assert value is not None
        self[key] = value

    def delete(self, key: str) -> None:
        """Delete a value, if it exists."""
        self.pop(key, None)


class Killed(BaseException):
    """Simulates kill -9: no other code of the task runs."""
