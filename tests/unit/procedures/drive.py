"""Carrying a procedure out by hand: whatever it sends is answered by a function, and it never waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_workspace.api.procedure import Pause, Procedure

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation

T = TypeVar("T")


def drive(procedure: Procedure[T], answer: Callable[[Operation[Any]], Any], pauses: list[float] | None = None) -> T:
    """
    Return the result of a procedure.

    :param answer: returns the result or the error of an operation
    :param pauses: where to note how long the procedure would have waited
    """
    try:
        step = next(procedure)
        while True:
            if isinstance(step, Pause):
                (pauses if pauses is not None else []).append(step.seconds)
                step = procedure.send([])
            else:
                step = procedure.send([answer(operation) for operation in step.operations])
    except StopIteration as stop:
        result: T = stop.value
        return result
