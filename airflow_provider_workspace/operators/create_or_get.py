"""Creating and deleting once: what the operators do where an answer was lost, or an earlier try was killed."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_workspace.api.retry import CONSISTENCY_SECONDS
from airflow_provider_workspace.errors import (
    WorkspaceError,
    WorkspaceInputError,
    WorkspaceNotFoundError,
    WorkspaceOutcomeUnknownError,
    WorkspaceWritePlannedError,
)
from airflow_provider_workspace.operators.arguments import parse_choice

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_workspace.state.task_state import TaskState

R = TypeVar("R")

log = logging.getLogger(__name__)

# How often a create is sent whose answers are lost and whose effect cannot be found.
MAX_CREATES = 3
# When to look for the effect of a create whose answer was lost: seconds after the look before.
LOOKS = (0.5, CONSISTENCY_SECONDS)


def create_once(
    what: str,
    *,
    find: Callable[[], R | None],
    create: Callable[[], R],
    if_exists: str,
    memory: TaskState,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[R, bool]:
    """
    Create what is not there yet, and look for it where the answer to the create was lost.

    :param what: what is created, for messages, such as ``project 'Sales'``
    :param find: reads whether it is there; ``None`` if not
    :param create: sends the create
    :param if_exists: ``return`` what is there, or ``fail``
    :param memory: what the task remembers from try to try; what an earlier try made is no reason to fail
    :return: the record, and whether this task created it
    :raises WorkspaceInputError: if it is there and ``if_exists`` is ``fail``; nothing was sent
    :raises WorkspaceOutcomeUnknownError: if answer after answer was lost and nothing can be found
    """
    parse_choice("if_exists", if_exists, ("return", "fail"))
    found = find()
    if found is None and memory.may_have_begun(what):
        found = find_later(find, sleep)
    if found is not None and memory.read() == what:
        log.info("An earlier try of this task created the %s.", what)
        return found, True
    if found is not None:
        if if_exists == "fail":
            msg = f"There is a {what} already. Nothing was sent; if_exists='return' would take it as it is."
            raise WorkspaceInputError(msg)
        log.info("There is a %s already: nothing was sent.", what)
        return found, False
    memory.write(what)
    for attempt in range(1, MAX_CREATES + 1):
        try:
            made = create()
        except WorkspaceWritePlannedError as planned:  # noqa: PERF203 - three rounds at most
            planned.why = f"there is no {what}"
            raise
        except WorkspaceOutcomeUnknownError as error:
            found = find_later(find, sleep)
            if found is not None:
                log.warning("The answer was lost, but the %s is there: taken as made by this task.", what)
                return found, True
            if attempt == MAX_CREATES:
                raise
            log.warning("%s It is not there, so it is sent again.", error)
        except WorkspaceError as error:
            memory.forget()  # refused or not sent
            found = find_later(find, sleep) if if_exists == "return" and is_taken(error) else None
            if found is None:
                raise
            log.info("Somebody else created the %s at the same time: nothing was made here.", what)
            return found, False
        else:
            log.info("Created the %s.", what)
            return made, True
    raise AssertionError(what)  # the loop returns or raises


def is_taken(error: WorkspaceError) -> bool:
    """Tell whether a create was refused because there is one already."""
    return getattr(error, "code", None) == "unique" or getattr(error, "status", None) == 409


def find_later(find: Callable[[], R | None], sleep: Callable[[float], None]) -> R | None:
    """
    Look for what was sent a moment ago.

    A service under load may apply what it has received after it gave up answering, and a list may lag behind.
    """
    for pause in LOOKS:
        sleep(pause)
        found = find()
        if found is not None:
            return found
    return None


def delete_once(what: str, delete: Callable[[], Any], if_missing: str) -> bool:
    """
    Delete, and take for done what is gone already: so a retry after a lost worker succeeds.

    :param if_missing: ``ignore`` or ``fail``
    :return: whether this call deleted it
    """
    parse_choice("if_missing", if_missing, ("ignore", "fail"))
    try:
        delete()
    except WorkspaceWritePlannedError as planned:
        planned.why = f"the {what} is to go, unless it is gone"
        raise
    except WorkspaceNotFoundError as error:
        if error.outcome == "unknown":  # the answer to an earlier attempt was lost
            log.warning("The answer was lost, but there is no %s any more: taken as deleted by this task.", what)
            return True
        if if_missing == "fail":
            raise
        log.warning("There is no %s: it was deleted before, or never existed.", what)
        return False
    log.info("Deleted the %s.", what)
    return True
