"""A change or a delete, and the check that it was done."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from airflow_provider_workspace.api.comparison import differences, unshown
from airflow_provider_workspace.api.outcome import Outcome
from airflow_provider_workspace.api.procedure import Pause, Procedure, Send, send_one
from airflow_provider_workspace.api.retry import look_up_pauses
from airflow_provider_workspace.errors import (
    WorkspaceError,
    WorkspaceIncompleteListError,
    WorkspaceNotAppliedError,
    WorkspaceNotFoundError,
    WorkspacePermissionError,
)
from airflow_provider_workspace.procedures.snapshot import find_row

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_workspace.api.models import Page, Resource
    from airflow_provider_workspace.api.operation import Operation

R = TypeVar("R", bound="Resource")

log = logging.getLogger(__name__)

# How long at most to wait until it shows that something was done; then the task fails, and its retries go on.
CHECK_SECONDS = 60.0


def change_and_check(
    change: Operation[R], read: Callable[[], Procedure[R | None]], consistency_time: float
) -> Procedure[R]:
    """
    Send a change and, where its answer does not show all of it, read the record until it does.

    :param change: the change; the client compares its answer with it
    :param read: reads the record; ``None`` if it cannot be found
    :param consistency_time: seconds for which it may be read as it was before; no more than a minute is waited
    :return: the record
    :raises WorkspaceNotAppliedError: if the record shows something else
    """
    record = yield from send_one(change)
    if not unshown(change, record):
        return record

    def is_done() -> Procedure[bool]:
        nonlocal record
        found = yield from read()
        record = found or record
        return found is not None and not differences(change, found)

    yield from check_done(f"{type(change).__name__} was done", change, is_done, consistency_time)
    untold = unshown(change, record)
    if untold:
        log.warning("The service says that it was changed, and does not show these fields: %s", ", ".join(untold))
    return record


def delete_if_present(
    what: str,
    delete: Operation[Any],
    if_missing: str,
    *,
    is_there: Callable[[], Procedure[bool]] | None,
    consistency_time: float,
    check_gone: Callable[[WorkspaceNotFoundError], Procedure[None]] | None = None,
) -> Procedure[bool]:
    """
    Delete, and take what is gone already as done: so a retry after a lost worker succeeds.

    Proxies return 404 as well, and so does the service for an id of another kind: where there is a list, it decides.
    A success has no body that could show anything, so what was deleted is polled for until it is gone.

    :param what: what is deleted, for messages
    :param delete: the operation that deletes it
    :param if_missing: ``ignore`` or ``fail``
    :param is_there: tells whether it can still be found; ``None`` if the caller checks later
    :param consistency_time: seconds for which it may be found still; no more than a minute is waited
    :param check_gone: called with the 404, which it raises if a list still shows what is to be deleted; ``None`` where
        there is no list: then the 404 must be the service's own
    :return: whether this call deleted it
    :raises WorkspaceNotFoundError: if it may still be there
    :raises WorkspaceNotAppliedError: if the service says that it was deleted, and it can still be found
    """
    (answer,) = yield Send([delete], why=f"the {what} is to go, unless it is gone")
    if isinstance(answer, WorkspaceNotFoundError):
        if check_gone is not None:
            yield from check_gone(answer)
        elif not answer.from_service:
            answer.args = (f"Check the host of the connection: this 404 may be that of a proxy. {answer}",)
            raise answer
        if answer.outcome == "unknown":  # the answer to an earlier attempt was lost
            log.warning("The answer was lost, but the %s is gone: taken as deleted by this task.", what)
            return True
        if if_missing == "fail":
            raise answer
        log.warning("There is no %s: it was deleted before, or never existed.", what)
        return False
    if isinstance(answer, WorkspaceError):
        raise answer
    if is_there is not None:

        def is_gone() -> Procedure[bool]:
            return not (yield from is_there())

        yield from check_done(f"the {what} was deleted", delete, is_gone, consistency_time)
    log.info("Deleted the %s.", what)
    return True


def check_done(
    what: str, operation: Operation[Any], is_done: Callable[[], Procedure[bool]], consistency_time: float
) -> Procedure[None]:
    """
    Poll until the service shows what it said it did.

    :param what: what was done, for messages
    :param operation: the operation that was to do it
    :param is_done: tells whether it was
    :param consistency_time: seconds for which that may not show; no more than a minute is waited
    :raises WorkspaceNotAppliedError: if it does not show
    """
    seconds = min(consistency_time, CHECK_SECONDS)
    try:
        for pause in (0.0, *look_up_pauses(0.0, seconds)):
            if pause:
                yield Pause(pause)
            if (yield from is_done()):
                return
    except WorkspacePermissionError as error:
        log.warning("The service says that %s, and lets nobody check it: %s", what, error)
        return
    except WorkspaceIncompleteListError as error:
        short = not_seen(what, operation, seconds)
        short.args = (f"{short} The list is too short to tell.",)
        raise short from error
    raise not_seen(what, operation, seconds)


def not_seen(what: str, operation: Operation[Any], seconds: float) -> WorkspaceNotAppliedError:
    """Build the error for a success that does not show."""
    return WorkspaceNotAppliedError(
        f"Check in the workspace what became of it: the service says that {what}, and did not show it within "
        f"{seconds:g} s.",
        operation=type(operation).__name__,
        outcome=Outcome.UNKNOWN.value,
    )


def is_listed(first: Operation[Page[Any]], wanted: object) -> Procedure[bool]:
    """
    Tell whether a list has a row with an id.

    :param first: the operation that asks for the first page
    :param wanted: the id
    """
    wanted_id = str(wanted).strip().lower()
    row = yield from find_row(first, lambda row: str(row.id).lower() == wanted_id, told_by=lambda row: row.id)
    return row is not None


def check_not_listed(error: WorkspaceNotFoundError, first: Operation[Page[Any]], wanted: object) -> Procedure[None]:
    """
    Make sure that what the service does not know is not in its list either.

    :param error: the service's 404
    :param first: the operation that asks for the first page
    :param wanted: its id
    :raises WorkspaceNotFoundError: if it is
    """
    if (yield from is_listed(first, wanted)):
        raise_listed(error, "its kind")


def raise_listed(error: WorkspaceNotFoundError, kind: str) -> NoReturn:
    """Raise a 404 that the list contradicts: a proxy may have answered, or the list may lag behind."""
    error.retryable = True
    error.args = (f"Try again: the list of {kind} still shows what was not found. {error}",)
    raise error
