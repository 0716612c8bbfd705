"""What Airflow holds of a task, in memory; and the exception that simulates a kill."""

from __future__ import annotations

from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_workspace.sandbox.seed import SEED


class TaskInstance:
    """A task instance that records its XComs."""

    def __init__(self, try_number: int = 1) -> None:
        self.try_number = try_number
        self.max_tries = 3
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


def task_instance() -> Any:
    """Return what a task may ask of its task instance."""
    ids = {"dag_id": "dag", "run_id": "run", "task_id": "task", "map_index": -1, "try_number": 1}
    methods = {name: lambda **_: None for name in ("xcom_pull", "xcom_push")}
    return SimpleNamespace(**ids, **methods, get_task_states=lambda **_: {})


class Question:
    """
    The question that Airflow stores for a task instance.

    :param refreshes: whether a later question replaces the first
    """

    def __init__(self, *, refreshes: bool) -> None:
        self.refreshes = refreshes
        self.asked: list[Any] = []

    def send(self, message: Any) -> Any:
        if type(message).__name__ == "CreateHITLDetailPayload":
            self.asked.append(message)
            return self.now
        return None

    @property
    def now(self) -> Any:
        return self.asked[-1 if self.refreshes else 0]

    @property
    def text(self) -> str:
        """The Markdown that Airflow renders, which leaves out HTML; people see no-break spaces as spaces."""
        body: str = self.now.body
        return body.replace("<wbr>", "").replace("\u00a0", " ")


class Task:
    """
    A task instance: its question and what Airflow keeps between its tries.

    :param started_by: the Airflow user who started the run; ``None`` for a schedule
    """

    def __init__(self, question: Question, *, store: bool = True, started_by: str | None = None) -> None:
        self.question = question
        self.pushed: dict[str, Any] = {}
        self.ti = SimpleNamespace(id=SEED.owner_uuid, max_tries=2, try_number=1, xcom_push=self.push)
        self.context: Any = {"ti": self.ti, **({"task_state_store": TaskStore()} if store else {})}
        self.context["dag_run"] = SimpleNamespace(triggering_user_name=started_by)
        self.resume: Any = None

    def push(self, key: str, value: Any) -> None:
        self.pushed[key] = value

    def ask(self, operator: Any) -> str:
        """Run the task until it asks, and return the option that approves."""
        with pytest.raises(BaseException, match=r"^$") as left:
            operator.execute(self.context)
        self.resume = left.value
        assert type(left.value).__name__ in ("TaskAwaitingInput", "TaskDeferred")
        assert self.resume.method_name == "execute_approved"
        approve, reject = self.question.now.options
        assert reject == "Reject"
        return str(approve)

    def answer(self, operator: Any, option: str, *, at: datetime | None = None, **event: Any) -> Any:
        """
        Resume the task after an answer, as in a new process.

        :param at: when it was given; by default at a time that results show
        """
        given = {
            "chosen_options": [option],
            "params_input": {},
            "responded_at": at or datetime(2026, 11, 22, tzinfo=timezone.utc),
            "responded_by_user": {"id": "1", "name": "ruth"},
        }
        return operator.execute_approved(self.context, event=event or given, **self.resume.kwargs)

    def clear(self) -> None:
        self.ti.max_tries += 1 + 2
