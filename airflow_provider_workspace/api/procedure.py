"""
Procedures: generators that yield the requests to send and receive their results, without I/O.

``run`` of a client executes one. So workers, the event loop and dry runs share the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_workspace.errors import WorkspaceRequestError

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Send:
    """
    Send operations, possibly in parallel; the generator receives their results or errors in the same order.

    After an error no other operation is started. The result of those that were not sent is ``None``.

    :param operations: operations to send
    :param why: reason for a dry run
    :param caller_looks_up: whether the procedure looks up a write whose response was lost before the procedure, or a
        retry of the task, sends it again
    :param note: called before each attempt, so that a task can remember that the request may be under way
    :param must_stop: whether to start no other operation; called before each
    """

    operations: Sequence[Operation[Any]]
    why: str = "the task asks for it"
    caller_looks_up: bool = False
    note: Callable[[], object] | None = None
    must_stop: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True)
class Pause:
    """
    Wait, or stop the procedure and start it again later; the task remembers what it needs for that.

    :param seconds: how long to wait
    """

    seconds: float


Procedure = Generator[Send | Pause, list[Any], T]


def send_one(operation: Operation[T], why: str = "the task asks for it") -> Procedure[T]:
    """
    Send one operation and return its result.

    :raises WorkspaceRequestError: if it failed
    """
    (result,) = yield Send([operation], why)
    if isinstance(result, WorkspaceRequestError):
        raise result
    answer: T = result
    return answer


def leave_at_long_pause(procedure: Procedure[T], longest: float, leave: Callable[[float], object]) -> Procedure[T]:
    """
    Run a procedure until it asks for a pause that is too long for a worker.

    :param longest: longest pause in seconds to wait for
    :param leave: called with the seconds of a longer pause; it must raise
    """
    try:
        step = next(procedure)
        while True:
            if isinstance(step, Pause) and step.seconds > longest:
                procedure.close()
                leave(step.seconds)
            step = procedure.send((yield step))
    except StopIteration as stop:
        result: T = stop.value
        return result
