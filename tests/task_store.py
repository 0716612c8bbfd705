"""What Airflow keeps of a task from try to try, and what a kill looks like from within."""

from __future__ import annotations

from typing import Any


class TaskStore(dict[str, Any]):
    """Airflow's task state store; it refuses None."""

    def set(self, key: str, value: Any) -> None:
        """Keep a value."""
        assert value is not None
        self[key] = value

    def delete(self, key: str) -> None:
        """Forget a value; one that is gone is no error."""
        self.pop(key, None)


class Killed(BaseException):
    """A kill -9: nothing of the task runs any more."""
