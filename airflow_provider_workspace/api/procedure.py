"""
Work of several requests, without I/O: a generator that yields what is to be sent and is sent what came of it.

So one piece of code serves the worker's client, the event loop's and a dry run. The clients' ``run`` carries it out.
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
    Send operations, in any order or at once; their results or errors come back in the order given here.

    :param operations: what to send
    :param why: why it is sent, for a dry run
    :param caller_looks_up: whether the procedure looks for the effect of a write whose answer was lost, before it or a
        retry of the task sends it again
    :param note: called right before each attempt at each of them, so that a task can remember that it may be under way
    """

    operations: Sequence[Operation[Any]]
    why: str = "the task asks for it"
    caller_looks_up: bool = False
    note: Callable[[], object] | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """
    Wait, or leave the procedure here and begin it again later: what it must know then, the task remembers.

    :param seconds: how long
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
    Carry a procedure out up to a pause that is too long to wait for here.

    :param longest: the longest pause in seconds that is not
    :param leave: called with the seconds of a longer one; it raises what ends the work
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
