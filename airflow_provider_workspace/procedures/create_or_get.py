"""Idempotent create: safe where an answer was lost, or an earlier try of the task was killed."""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from airflow_provider_workspace.api.outcome import Outcome
from airflow_provider_workspace.api.procedure import Pause, Procedure, Send
from airflow_provider_workspace.api.retry import MAX_SENDS, look_up_pauses
from airflow_provider_workspace.errors import (
    WorkspaceDuplicateError,
    WorkspaceError,
    WorkspaceIncompleteListError,
    WorkspaceInputError,
    WorkspaceNotAppliedError,
    WorkspaceOutcomeUnknownError,
)
from airflow_provider_workspace.procedures.changes import not_seen
from airflow_provider_workspace.procedures.snapshot import read_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_workspace.api.models import Page, ProjectItem
    from airflow_provider_workspace.api.operation import Operation

R = TypeVar("R")

log = logging.getLogger(__name__)

# How long to look for what somebody else created, where the service refuses a name as taken.
TAKEN_SECONDS = 5.5


class Memory(Protocol):
    """What a task remembers from try to try; see :class:`~airflow_provider_workspace.state.task_state.TaskState`."""

    def begin(self, what: str) -> None:
        """Note that this is sent now, before each time, or that it may be under way still."""

    def count_send(self) -> int:
        """Count that it is sent, and return how often this try did so; a try that defers goes on counting."""
        ...

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
    consistency_time: float,
    is_it: Callable[[Any], bool] = lambda _: True,
) -> Procedure[tuple[R, bool]]:
    """
    Create what does not exist yet, and look it up where the answer to the create was lost.

    A create whose answer is missing may take effect later, and the list may show it later still: it is looked up until
    the consistency time is over, and only then sent again.

    :param what: what is created, for messages, such as ``project 'Sales'``
    :param create: the operation that creates it
    :param find: looks it up; the result is ``None`` if it does not exist
    :param if_exists: ``return`` what exists, or ``fail``
    :param memory: what the task remembers from try to try; what an earlier try made is no reason to fail
    :param consistency_time: seconds for which a create may take effect, and a list may miss it
    :param is_it: whether a record that shows a name or an address is the one; an answer with another is looked up
    :return: the record, and whether this task created it
    :raises WorkspaceInputError: if it exists and ``if_exists`` is ``fail``; nothing was sent
    :raises WorkspaceOutcomeUnknownError: if every answer was lost and nothing can be found
    """
    found = yield from find()
    age = memory.age(what)
    if found is None and age is not None and age < consistency_time:
        log.info("An earlier request may have created the %s: looking for it before it is sent again.", what)
        found = yield from _find_later(find, age, consistency_time)
    if found is not None and memory.has_begun(what):
        log.info("An earlier request of this task created the %s.", what)
        return found, True
    if found is not None:
        if if_exists == "fail":
            msg = f"Set if_exists='return' to reuse what exists: there is a {what} already"
            raise WorkspaceInputError(msg)
        log.info("The %s exists already: nothing was sent.", what)
        return found, False
    lost: WorkspaceOutcomeUnknownError | None = None
    while True:
        sends = memory.count_send()
        if sends > MAX_SENDS:
            msg = (
                f"Look for the {what} in the workspace: it was sent {MAX_SENDS} times, without an answer or an effect."
            )
            error = WorkspaceOutcomeUnknownError(msg, operation=type(create).__name__, retryable=False)
            error.caller_looks_up = True
            raise error from lost
        (answer,) = yield Send(
            [create], why=f"there is no {what}", caller_looks_up=True, note=functools.partial(memory.begin, what)
        )
        if isinstance(answer, WorkspaceOutcomeUnknownError):
            memory.begin(what)  # from now on it may be under way for the consistency time
            found = yield from _find_later(find, 0.0, consistency_time)
            if found is not None:
                log.warning("The answer was lost, but the %s exists: taken as created by this task.", what)
                return found, True
            lost = answer
            log.warning("%s It does not exist.", answer)
        elif isinstance(answer, WorkspaceError):
            memory.forget()  # refused or not sent
            taken = _is_taken(answer) and (if_exists == "return" or sends > 1)
            found = (yield from _find_later(find, 0.0, TAKEN_SECONDS)) if taken else None
            if found is None:
                raise answer
            log.info("Somebody else created the %s at the same time: nothing was created here.", what)
            return found, sends > 1
        elif getattr(answer, "id", None) is None or (answer.label and not is_it(answer)):
            found = yield from _find_later(find, 0.0, consistency_time)
            if found is None:
                raise not_seen(f"the {what} was created", create, consistency_time)
            return found, True
        else:
            log.info("Created the %s.", what)
            made: R = answer
            return made, True


def _is_taken(error: WorkspaceError) -> bool:
    """Tell whether a create was refused because the name is taken."""
    return getattr(error, "code", None) == "unique" or getattr(error, "status", None) == 409


def _find_later(find: Callable[[], Procedure[R | None]], age: float, consistency_time: float) -> Procedure[R | None]:
    """Look for what was sent some seconds ago until the consistency time is over."""
    for seconds in look_up_pauses(age, consistency_time):
        yield Pause(seconds)
        found = yield from find()
        if found is not None:
            return found
    return None


def check_created(
    what: str, record_id: object, projects: Operation[Page[ProjectItem]], is_it: Callable[[ProjectItem], bool]
) -> Procedure[None]:
    """
    Read the list once more after a create: two tasks at once may both have found nothing, and both created.

    :param what: what was created, for messages
    :param record_id: the record that this task created
    :param projects: asks for the first page of the list
    :param is_it: whether a look-up by name would take a row
    :raises WorkspaceDuplicateError: if there is another one
    :raises WorkspaceNotAppliedError: if the next look-up would not find what was created
    """
    try:
        rows = yield from read_rows(projects)
    except WorkspaceIncompleteListError as error:
        log.warning("A short list cannot show whether another task created the %s too: %s", what, error)
        return
    ids = {record_id, *(row.id for row in rows if is_it(row))} - {None}
    own = [row for row in rows if row.id == record_id]
    if len(ids) > 1:
        named = ", ".join(sorted(map(str, ids)))
        msg = (
            f"Keep one and rename or remove the others: there are several of {what}, {named}; this task created "
            f"{record_id}. Tasks that create the same must not run at the same time: set max_active_runs=1, or give "
            "them a pool with one slot."
        )
        raise WorkspaceDuplicateError(msg, operation="CreateProject", outcome=Outcome.APPLIED.value, retryable=False)
    if not own:
        log.warning("The list does not show the %s yet: another task may have created one too.", what)
    elif not is_it(own[0]):
        msg = (
            f"Set name={own[0].name!r}, as the service stored {what}, {record_id}: a look-up for the name that was "
            "asked for does not find it, and each run would create another one."
        )
        raise WorkspaceNotAppliedError(msg, operation="CreateProject", outcome=Outcome.APPLIED.value, retryable=False)
