"""The connection of all tests of operators, which some replace; and what holds for every task that they run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from airflow_provider_workspace.operators.sweep import WorkspaceSweepOperator

if TYPE_CHECKING:
    from tests.conftest import Connect


@pytest.fixture(autouse=True)
def connected(connect: Connect) -> None:
    connect()


@pytest.fixture(autouse=True)
def no_task_leads_to_its_context(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Walk over each task that ran, as OpenLineage does with ``include_full_task_info``: no context is found."""
    ran: list[tuple[Any, Any]] = []
    (every_task,) = (cls for cls in WorkspaceSweepOperator.__mro__ if "_context" in vars(cls))
    context_of: Any = vars(every_task)["_context"]

    def note(task: Any, context: Any) -> None:
        ran.append((task, context))
        context_of.fset(task, context)

    monkeypatch.setattr(every_task, "_context", property(context_of.fget, note))
    yield
    for task, context in ran:
        hidden = {id(value) for value in (context, context.get("ti")) if value}
        for name, value in vars(task).items():
            if name not in NOT_WALKED:
                assert not hidden & set(_reached(value, set())), f"{type(task).__name__}.{name} leads to the context"


# What the listener leaves out, since it leads to every task.
NOT_WALKED = {"dag", "_dag", "task_group", "_task_group", "_log"}


def _reached(value: Any, seen: set[int]) -> Iterator[int]:
    """Yield the id of each object that attributes, mappings and lists lead to."""
    if id(value) in seen or isinstance(value, str | int | float | type | None):
        return
    seen.add(id(value))
    yield id(value)
    below: list[Any] = []
    if isinstance(value, Mapping):
        below += value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        below += value
    if attrs.has(type(value)):
        below += [getattr(value, field.name, None) for field in attrs.fields(type(value))]
    below += getattr(value, "__dict__", {}).values()
    for each in below:
        yield from _reached(each, seen)
