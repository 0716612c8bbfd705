"""Change or delete a record, and check that it was done."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from airflow_provider_workspace.api.comparison import differences, unshown
from airflow_provider_workspace.api.outcome import Outcome
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
    from airflow_provider_workspace.client.client import WorkspaceClient

R = TypeVar("R", bound="Resource")

log = logging.getLogger(__name__)

# Maximum seconds to wait until a change is visible; after that the task fails, and its retries continue.
CHECK_SECONDS = 60.0


def change_and_check(client: WorkspaceClient, change: Operation[R], read: Callable[[], R | None]) -> R:
    """
    Send a change. If the response does not show all of its fields, read the record until it does.

    :param change: the change; the client compares its response with it
    :param read: reads the record; returns ``None`` if it is not found
    :raises WorkspaceNotAppliedError: if the record shows something else
    """
    record = client.send(change)
    if not unshown(change, record):
        return record

    def is_done() -> bool:
        nonlocal record
        found = read()
        record = found or record
        return found is not None and not differences(change, found)

    check_done(client, f"{type(change).__name__} was done", change, is_done)
    unverified = unshown(change, record)
    if unverified:
        log.warning("The change was accepted, but the service does not show these fields: %s", ", ".join(unverified))
    return record


def delete_if_present(
    client: WorkspaceClient,
    what: str,
    delete: Operation[Any],
    if_missing: str,
    *,
    exists: Callable[[], bool] | None,
    check_gone: Callable[[WorkspaceNotFoundError], None] | None = None,
) -> bool:
    """
    Delete a record; one that is already gone is no error, so a retry after a lost worker succeeds.

    Proxies also return 404, and so does the service for an id of another kind. If there is a list, it decides. A
    successful response has no body, so the record is looked up until it is gone.

    :param what: the record, for messages
    :param if_missing: ``ignore`` or ``fail``
    :param exists: returns whether the record can still be found; ``None`` if the caller checks later
    :param check_gone: called with the 404; raises it if a list still shows the record. ``None`` if there is no list:
        then the 404 must come from the service itself
    :return: whether this call deleted it
    :raises WorkspaceNotFoundError: if it may still exist
    :raises WorkspaceNotAppliedError: if the delete succeeded, but the record can still be found
    """
    answer = client.attempt(delete, why=f"the {what} is to go, unless it is gone")
    if isinstance(answer, WorkspaceNotFoundError):
        if check_gone is not None:
            check_gone(answer)
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
    if exists is not None:
        check_done(client, f"the {what} was deleted", delete, lambda: not exists())
    log.info("Deleted the %s.", what)
    return True


def check_done(client: WorkspaceClient, what: str, operation: Operation[Any], is_done: Callable[[], bool]) -> None:
    """
    Poll until the effect of a successful request is visible, for the consistency time and a minute at most.

    :param what: what was done, for messages
    :raises WorkspaceNotAppliedError: if the effect does not become visible
    """
    seconds = min(client.settings.consistency_time, CHECK_SECONDS)
    try:
        for pause in (0.0, *look_up_pauses(0.0, seconds)):
            if pause:
                client.pause(pause)
            if is_done():
                return
    except WorkspacePermissionError as error:
        log.warning("The service says that %s, but this API key may not check it: %s", what, error)
        return
    except WorkspaceIncompleteListError as error:
        short = not_seen(what, operation, seconds)
        short.args = (f"{short} The list is too short to tell.",)
        raise short from error
    raise not_seen(what, operation, seconds)


def not_seen(what: str, operation: Operation[Any], seconds: float) -> WorkspaceNotAppliedError:
    """Build the error for a success without a visible effect."""
    return WorkspaceNotAppliedError(
        f"Check it in the workspace: the service says that {what}, but did not show it within {seconds:g} s.",
        operation=type(operation).__name__,
        outcome=Outcome.UNKNOWN.value,
    )


def is_listed(client: WorkspaceClient, first: Operation[Page[Any]], wanted: object) -> bool:
    """Return whether a list has a row with an id."""
    wanted_id = str(wanted).strip().lower()
    row = find_row(client, first, lambda row: str(row.id).lower() == wanted_id, identity=lambda row: row.id)
    return row is not None


def check_not_listed(
    client: WorkspaceClient, error: WorkspaceNotFoundError, first: Operation[Page[Any]], wanted: object
) -> None:
    """
    Check that a record for which the service returned 404 is not in its list either.

    :raises WorkspaceNotFoundError: if it is
    """
    if is_listed(client, first, wanted):
        raise_listed(error, "its kind")


def raise_listed(error: WorkspaceNotFoundError, kind: str) -> NoReturn:
    """Raise a 404 that contradicts the list: it may come from a proxy, or the list may lag behind."""
    error.retryable = True
    error.args = (f"Try again: the list of {kind} still shows what was not found. {error}",)
    raise error
