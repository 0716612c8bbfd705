"""Idempotent create: safe where an answer was lost, or an earlier try of the task was killed."""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from airflow_provider_workspace.api.outcome import Outcome
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
    from airflow_provider_workspace.client.client import WorkspaceClient

R = TypeVar("R")

log = logging.getLogger(__name__)

# How long to look for the record of somebody else when the service refuses a name as taken.
TAKEN_SECONDS = 5.5


class Memory(Protocol):
    """What a task remembers across its tries; see :class:`~airflow_provider_workspace.state.task_state.TaskState`."""

    def begin(self, what: str) -> None:
        """Note that a request is about to be sent, or may still be in progress."""

    def count_send(self) -> int:
        """Count one more send and return the number of sends in this try, deferrals included."""
        ...

    def has_begun(self, what: str) -> bool:
        """Return whether this try or an earlier one noted that it sends this."""
        ...

    def age(self, what: str) -> float | None:
        """Return how many seconds ago this may have been sent last; ``None`` if it certainly was not."""
        ...

    def forget(self) -> None:
        """Delete the note."""


def create_or_get(
    client: WorkspaceClient,
    what: str,
    create: Operation[Any],
    *,
    find: Callable[[], R | None],
    if_exists: str,
    memory: Memory,
    matches: Callable[[Any], bool] = lambda _: True,
) -> tuple[R, bool]:
    """
    Create a record unless it exists; look it up if the response to the create was lost.

    A create without a response may take effect later, and the list may show it later still. So the record is looked up
    until the consistency time is over, and only then the create is sent again.

    :param what: the record, for messages, such as ``project 'Sales'``
    :param create: the operation that creates it
    :param find: looks it up; returns ``None`` if it does not exist
    :param if_exists: ``return`` an existing record, or ``fail``
    :param memory: what the task remembers across its tries; a record that an earlier try created is no failure
    :param matches: whether the record in a response is the one that was asked for; if not, it is looked up
    :return: the record, and whether this task created it
    :raises WorkspaceInputError: if it exists and ``if_exists`` is ``fail``; nothing was sent
    :raises WorkspaceOutcomeUnknownError: if every response was lost and the record cannot be found
    """
    consistency_time = client.settings.consistency_time
    found = find()
    age = memory.age(what)
    if found is None and age is not None and age < consistency_time:
        log.info("An earlier request may have created the %s: looking it up before sending again.", what)
        found = _find_later(client, find, age, consistency_time)
    if found is not None and memory.has_begun(what):
        log.info("An earlier request of this task created the %s.", what)
        return found, True
    if found is not None:
        if if_exists == "fail":
            raise WorkspaceInputError(f"Set if_exists='return' to reuse it: {what} exists already")
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
        note = functools.partial(memory.begin, what)
        answer = client.attempt(create, why=f"there is no {what}", caller_looks_up=True, note=note)
        if isinstance(answer, WorkspaceOutcomeUnknownError):
            memory.begin(what)  # it may take effect within the consistency time from now
            found = _find_later(client, find, 0.0, consistency_time)
            if found is not None:
                log.warning("The answer was lost, but the %s exists: this task created it.", what)
                return found, True
            lost = answer
            log.warning("%s It does not exist.", answer)
        elif isinstance(answer, WorkspaceError):
            memory.forget()  # refused or not sent
            taken = _is_taken(answer) and (if_exists == "return" or sends > 1)
            found = (_find_later(client, find, 0.0, TAKEN_SECONDS)) if taken else None
            if found is None:
                raise answer
            log.info("Somebody else created the %s at the same time: nothing was created here.", what)
            return found, sends > 1
        elif getattr(answer, "id", None) is None or (answer.label and not matches(answer)):
            found = _find_later(client, find, 0.0, consistency_time)
            if found is None:
                raise not_seen(f"the {what} was created", create, consistency_time)
            return found, True
        else:
            log.info("Created the %s.", what)
            made: R = answer
            return made, True


def _is_taken(error: WorkspaceError) -> bool:
    return getattr(error, "code", None) == "unique" or getattr(error, "status", None) == 409


def _find_later(client: WorkspaceClient, find: Callable[[], R | None], age: float, consistency_time: float) -> R | None:
    """Look up a record until the consistency time is over; ``age`` is the seconds since the create was sent."""
    for seconds in look_up_pauses(age, consistency_time):
        client.pause(seconds)
        found = find()
        if found is not None:
            return found
    return None


def check_created(
    client: WorkspaceClient,
    what: str,
    record_id: object,
    projects: Operation[Page[ProjectItem]],
    matches: Callable[[ProjectItem], bool],
) -> None:
    """
    Read the list again after a create: two concurrent tasks may both have found nothing and created a record.

    :param what: the record, for messages
    :param record_id: id of the record that this task created
    :param projects: the operation that reads the first page of the list
    :param matches: whether a look-up by name finds a row
    :raises WorkspaceDuplicateError: if there is another record
    :raises WorkspaceNotAppliedError: if the next look-up would not find the created record
    """
    try:
        rows = read_rows(client, projects)
    except WorkspaceIncompleteListError as error:
        log.warning("A short list cannot show whether another task created the %s too: %s", what, error)
        return
    ids = {record_id, *(row.id for row in rows if matches(row))} - {None}
    own = [row for row in rows if row.id == record_id]
    if len(ids) > 1:
        named = ", ".join(sorted(map(str, ids)))
        msg = (
            f"Keep one and rename or remove the others: {what} exists {len(ids)} times, as {named}; this task created "
            f"{record_id}. Set max_active_runs=1, or give the tasks that create it a pool with one slot, so that they "
            "do not run at the same time."
        )
        raise WorkspaceDuplicateError(msg, operation="CreateProject", outcome=Outcome.APPLIED.value, retryable=False)
    if not own:
        log.warning("The list does not show the %s yet: another task may have created one too.", what)
    elif not matches(own[0]):
        msg = (
            f"Set name={own[0].name!r}, the name under which the service stored {what}, {record_id}: a look-up by the "
            "other name does not find it, so each run would create another one."
        )
        raise WorkspaceNotAppliedError(msg, operation="CreateProject", outcome=Outcome.APPLIED.value, retryable=False)
