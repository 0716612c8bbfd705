"""Runs a procedure without I/O: a function returns the results, and pauses take no time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_workspace.api.procedure import Pause, Procedure, Send

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation

T = TypeVar("T")


class Interrupted(Exception):  # noqa: N818 - stands for a deferral
    """A long pause ended the procedure; its argument are the seconds."""


def interrupt(seconds: float) -> None:
    """Pass this to ``leave_at_long_pause``."""
    raise Interrupted(seconds)


def drive(
    procedure: Procedure[T],
    answer: Callable[[Operation[Any]], Any],
    pauses: list[float] | None = None,
    at_once: int = 4,
) -> T:
    """
    Return the result of a procedure.

    :param answer: returns the result or the error of an operation
    :param pauses: receives the seconds of each pause
    :param at_once: ``max_concurrency``
    """
    try:
        step = next(procedure)
        while True:
            if isinstance(step, Pause):
                (pauses if pauses is not None else []).append(step.seconds)
                step = procedure.send([])
            else:
                step = procedure.send(send_all(step, answer, at_once))
    except StopIteration as stop:
        result: T = stop.value
        return result


def send_all(step: Send, answer: Callable[[Operation[Any]], Any], at_once: int = 4) -> list[Any]:
    """
    Return the results of a step as a client does: after an error no other operation is started.

    :param at_once: ``max_concurrency``; so many operations are under way when one fails
    """
    results: list[Any] = []
    for operation in step.operations:
        ended = results[: max(0, len(results) - at_once + 1)]
        stopped = step.must_stop() or any(isinstance(result, Exception) for result in ended)
        results.append(None if stopped else answer(operation))
    return results
