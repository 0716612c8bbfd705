"""Idempotent create and delete: safe where an answer was lost, or an earlier try of the task was killed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from airflow_provider_workspace.api.procedure import Pause, Procedure, Send
from airflow_provider_workspace.api.retry import LOOK_UP_PAUSES, MAX_SENDS
from airflow_provider_workspace.errors import (
    WorkspaceError,
    WorkspaceInputError,
    WorkspaceNotFoundError,
    WorkspaceOutcomeUnknownError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_workspace.api.operation import Operation

R = TypeVar("R")

log = logging.getLogger(__name__)


class Memory(Protocol):
    """What a task remembers from try to try; see :class:`~airflow_provider_workspace.state.task_state.TaskState`."""

    def begin(self, what: str) -> None:
        """Note that this is sent now, before each time, or that it may be under way still."""

    def has_begun(self, what: str) -> bool:
        """Tell whether an earlier try, or this one, noted that it begins this."""
        ...

    def age(self, what: str) -> float | None:
        """Return how many seconds ago this was begun at the latest; ``None`` if certainly nobody did."""
        ...

    def forget(self) -> None:
        """Remember nothing."""


def create_or_get(
    what: str,
    create: Operation[Any],
    *,
    find: Callable[[], Procedure[R | None]],
    if_exists: str,
    memory: Memory,
) -> Procedure[tuple[R, bool]]:
    """
    Create what does not exist yet, and look it up where the answer to the create was lost.

    :param what: what is created, for messages, such as ``project 'Sales'``
    :param create: the operation that creates it
    :param find: looks it up; the result is ``None`` if it does not exist
    :param if_exists: ``return`` what exists, or ``fail``
    :param memory: what the task remembers from try to try; what an earlier try made is no reason to fail
    :return: the record, and whether this task created it
    :raises WorkspaceInputError: if it exists and ``if_exists`` is ``fail``; nothing was sent
    :raises WorkspaceOutcomeUnknownError: if every answer was lost and nothing can be found
    """
    found = yield from find()
    if found is None and memory.age(what) is not None:
        found = yield from _find_later(find)
    if found is not None and memory.has_begun(what):
        log.info("An earlier try of this task created the %s.", what)
        return found, True
    if found is not None:
        if if_exists == "fail":
            msg = f"Set if_exists='return' to reuse what exists: there is a {what} already"
            raise WorkspaceInputError(msg)
        log.info("The %s exists already: nothing was sent.", what)
        return found, False
    memory.begin(what)
    sent = 0
    while True:
        sent += 1
        (answer,) = yield Send([create], why=f"there is no {what}", looks_first=True)
        if isinstance(answer, WorkspaceOutcomeUnknownError):
            found = yield from _find_later(find)
            if found is not None:
                log.warning("The answer was lost, but the %s exists: taken as created by this task.", what)
                return found, True
            if sent == MAX_SENDS:
                raise answer
            log.warning("%s It does not exist, so it is sent again.", answer)
        elif isinstance(answer, WorkspaceError):
            memory.forget()  # refused or not sent
            found = (yield from _find_later(find)) if if_exists == "return" and _is_taken(answer) else None
            if found is None:
                raise answer
            log.info("Somebody else created the %s at the same time: nothing was created here.", what)
            return found, False
        else:
            log.info("Created the %s.", what)
            made: R = answer
            return made, True


def _is_taken(error: WorkspaceError) -> bool:
    """Tell whether a create was refused because the name is taken."""
    return getattr(error, "code", None) == "unique" or getattr(error, "status", None) == 409


def _find_later(find: Callable[[], Procedure[R | None]]) -> Procedure[R | None]:
    """
    Look for what was sent a moment ago.

    A service under load may apply what it has received after it gave up answering, and a list may lag behind.
    """
    for seconds in LOOK_UP_PAUSES:
        yield Pause(seconds)
        found = yield from find()
        if found is not None:
            return found
    return None


def delete_if_present(what: str, delete: Operation[Any], if_missing: str) -> Procedure[bool]:
    """
    Delete, and take what is gone already as done: so a retry after a lost worker succeeds.

    :param what: what is deleted, for messages
    :param delete: the operation that deletes it
    :param if_missing: ``ignore`` or ``fail``
    :return: whether this call deleted it
    """
    (answer,) = yield Send([delete], why=f"the {what} is to go, unless it is gone")
    if isinstance(answer, WorkspaceNotFoundError):
        if answer.outcome == "unknown":  # the answer to an earlier attempt was lost
            log.warning("The answer was lost, but the %s is gone: taken as deleted by this task.", what)
            return True
        if if_missing == "fail":
            raise answer
        log.warning("There is no %s: it was deleted before, or never existed.", what)
        return False
    if isinstance(answer, WorkspaceError):
        raise answer
    log.info("Deleted the %s.", what)
    return True
