"""What Airflow remembers of a task from try to try."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KEY = "airflow_provider_workspace"


class TaskState:
    """
    A value that a retry of the task finds, also one after a killed worker. Airflow 3.3 and newer; older ones forget.

    :param context: context of the task
    :param dry_run: remember nothing, for nothing is done
    """

    def __init__(self, context: Mapping[str, Any], *, dry_run: bool = False) -> None:
        self._store = None if dry_run else context.get("task_state_store")
        self._is_retry = not dry_run and getattr(context.get("ti"), "try_number", 1) > 1

    def read(self) -> Any:
        """Return what an earlier try, or this one, remembered; ``None`` if nothing."""
        return None if self._store is None else self._store.get(KEY)

    def may_have_begun(self, what: str) -> bool:
        """Tell whether an earlier try may have begun this; where nothing is remembered, any may have."""
        return self._is_retry if self._store is None else self.read() == what

    def write(self, value: Any) -> None:
        """Remember plain JSON."""
        if self._store is not None:
            self._store.set(KEY, value)

    def forget(self) -> None:
        """Remember nothing."""
        if self._store is not None:
            self._store.delete(KEY)
