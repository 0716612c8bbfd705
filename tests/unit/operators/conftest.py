"""The connection of all tests of operators, which some replace; and what holds for every task that they run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from airflow_provider_workspace.operators.sweep import WorkspaceSweepOperator
from airflow_provider_workspace.version_compat import shows_forms

if TYPE_CHECKING:
    from tests.conftest import Connect


@pytest.fixture(autouse=True)
def connected(connect: Connect) -> None:
    connect()


@pytest.fixture(autouse=True)
def shown_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Airflow 3.1.0 count as the next release: only the latter shows the forms of questions."""
    if not shows_forms():
        monkeypatch.setattr("airflow.__version__", "3.1.1")


@pytest.fixture(autouse=True)
def no_task_leads_to_its_context(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Walk over each task that ran, as OpenLineage does with ``include_full_task_info``: no context is found."""
    ran: dict[int, tuple[Any, list[Any]]] = {}
    (every_task,) = (cls for cls in WorkspaceSweepOperator.__mro__ if "_context" in vars(cls))
    context_of: Any = vars(every_task)["_context"]

    def note(task: Any, context: Any) -> None:
        _, contexts = ran.setdefault(id(task), (task, []))
        contexts += [value for value in (context, context.get("ti")) if value]
        context_of.fset(task, context)

    monkeypatch.setattr(every_task, "_context", property(context_of.fget, note))
    yield
    for task, contexts in ran.values():
        hidden = {id(value) for value in contexts}
        reached: set[int] = set()
        for name, value in vars(task).items():
            if name not in NOT_WALKED:
                _reach(value, reached)
                assert not hidden & reached, f"{type(task).__name__}.{name} leads to the context"


# What the listener leaves out, since it leads to every task.
NOT_WALKED = {"dag", "_dag", "task_group", "_task_group", "_log"}


# Most of what is walked over.
PLAIN = {str, int, float, bool, type(None)}


def _reach(value: Any, reached: set[int]) -> None:
    """Add the id of each object that attributes, mappings and lists lead to."""
    if type(value) in PLAIN or id(value) in reached or isinstance(value, str | int | float | type):
        return
    reached.add(id(value))
    if isinstance(value, Mapping):
        for each in value.values():
            _reach(each, reached)
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            _reach(each, reached)
    if attrs.has(type(value)):
        for field in attrs.fields(type(value)):
            _reach(getattr(value, field.name, None), reached)
    for each in getattr(value, "__dict__", {}).values():
        _reach(each, reached)
