"""See, do, see again: create, change or remove a record once, also after lost answers, killed tries and stale lists."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from airflow_provider_workspace import errors
from airflow_provider_workspace.api.comparison import describe_unshown, differences, unshown
from airflow_provider_workspace.api.outcome import Outcome
from airflow_provider_workspace.api.retry import MAX_SENDS, look_up_pauses
from airflow_provider_workspace.procedures.find import finder_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_workspace.api.models import Dashboard, Resource
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.api.operations.dashboards import GetDashboard
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.procedures.find import Finder

T = TypeVar("T")
R = TypeVar("R", bound="Resource")

log = logging.getLogger(__name__)

# How long to look for the record of somebody else when the service refuses a name as taken.
TAKEN_SECONDS = 5.5
# Maximum seconds to wait until a change is visible; after that the task fails, and its retries continue.
MAX_CHECK_SECONDS = 60.0


class Memory(Protocol):
    """What a task remembers across its tries; see :class:`~airflow_provider_workspace.notes.task_state.TaskState`."""

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


def look_until(client: WorkspaceClient, look: Callable[[], T | None], seconds: float, *, age: float = 0.0) -> T | None:
    """
    Look until something is there, with growing pauses, and return it; ``None`` if it is not there in time.

    :param seconds: how long after the request to look
    :param age: seconds since the request
    """
    for pause in look_up_pauses(age, seconds):
        client.pause(pause)
        found = look()
        if found:
            return found
    return None


def wait_for_who_accepted(client: WorkspaceClient) -> None:
    """Wait until the lists must show whoever accepted an invite at the moment of its withdrawal."""
    log.info("Invites were withdrawn: waiting until the lists must show whoever accepted one at the same time.")
    _pause_in_parts(client, client.settings.consistency_time)


def _pause_in_parts(client: WorkspaceClient, seconds: float) -> None:
    """Wait on the worker: a pause of more than a minute would begin the task again."""
    whole, rest = divmod(seconds, MAX_CHECK_SECONDS)
    for pause in [MAX_CHECK_SECONDS] * int(whole) + [rest]:
        client.pause(pause)


def create(client: WorkspaceClient, operation: Operation[R], *, if_exists: str, memory: Memory) -> tuple[R, bool]:
    """
    Create a record unless it exists; look it up if the response to the create was lost.

    A create without a response may take effect later, and the list may show it later still. So the record is looked up
    until the consistency time is over, and only then the create is sent again.

    :param operation: a create for which :mod:`~airflow_provider_workspace.procedures.find` has a finder
    :param if_exists: ``return`` an existing record, or ``fail``
    :param memory: what the task remembers across its tries; a record that an earlier try created is no failure
    :return: the record, and whether this task created it
    :raises WorkspaceInputError: if it exists and ``if_exists`` is ``fail``; nothing was sent
    :raises WorkspaceOutcomeUnknownError: if every response was lost and the record cannot be found
    """
    finder: Finder[R] = finder_of(client, operation)
    what = finder.what
    found = finder.find()
    age = memory.age(what)
    consistency_time = client.settings.consistency_time
    if found is None and age is not None and age < consistency_time:
        log.info("An earlier request may have created the %s: looking it up before sending again.", what)
        found = look_until(client, finder.find, consistency_time, age=age)
    if found is None:
        record, created = _send_create(client, operation, finder, if_exists, memory)
    elif memory.has_begun(what):
        log.info("An earlier request of this task created the %s.", what)
        record, created = found, True
    elif if_exists == "fail":
        raise errors.WorkspaceInputError(f"The {what} exists already. Set if_exists='return' to reuse it")
    else:
        log.info("The %s exists already: nothing was sent.", what)
        record, created = found, False
    if created:
        finder.check(record)
    return record, created


def _send_create(
    client: WorkspaceClient, operation: Operation[R], finder: Finder[R], if_exists: str, memory: Memory
) -> tuple[R, bool]:
    what = finder.what
    consistency_time = client.settings.consistency_time
    why = f"there is no {what}"
    lost: errors.WorkspaceOutcomeUnknownError | None = None
    while (sends := memory.count_send()) <= MAX_SENDS:
        answer = client.attempt(operation, why=why, caller_looks_up=True, note=lambda _: memory.begin(what))
        if isinstance(answer, errors.WorkspaceOutcomeUnknownError):
            memory.begin(what)  # it may take effect within the consistency time from now
            found = look_until(client, finder.find, consistency_time)
            if found is not None:
                log.warning("The answer was lost, but the %s exists: this task created it.", what)
                return found, True
            lost = answer
            log.warning("%s It does not exist.", answer)
        elif isinstance(answer, errors.WorkspaceError):
            memory.forget()  # refused or not sent
            taken = getattr(answer, "code", None) == "unique" or getattr(answer, "status", None) == 409
            may_exist = taken and (if_exists == "return" or sends > 1)
            found = look_until(client, finder.find, TAKEN_SECONDS) if may_exist else None
            if found is None:
                raise answer
            log.info("Somebody else created the %s at the same time: nothing was created here.", what)
            return found, sends > 1
        elif getattr(answer, "id", None) is None or (answer.label and not finder.matches(answer)):
            found = look_until(client, finder.find, consistency_time)
            if found is None:
                raise _not_seen(f"the {what} was created", operation, consistency_time)
            return found, True
        else:
            log.info("Created the %s.", what)
            return answer, True
    msg = f"The {what} was sent {MAX_SENDS} times, without an answer or an effect. Look for it in the workspace."
    error = errors.WorkspaceOutcomeUnknownError(msg, operation=type(operation).__name__, retryable=False)
    error.caller_looks_up = True
    raise error from lost


def change(client: WorkspaceClient, operation: Operation[R], find: Callable[[], R | None]) -> R:
    """
    Send a change. If the response does not show all of its fields, read the record until it does.

    :param find: reads the record
    :raises WorkspaceNotAppliedError: if the record shows something else
    """
    record = client.send(operation)
    if not unshown(operation, record):
        return record

    def is_done() -> bool:
        nonlocal record
        found = find()
        record = found or record
        return found is not None and not differences(operation, found)

    check_done(client, f"{type(operation).__name__} was done", operation, is_done)
    unverified = unshown(operation, record)
    if unverified:
        log.warning("%s", describe_unshown(operation, unverified))
    return record


def remove(
    client: WorkspaceClient,
    what: str,
    operation: Operation[Any],
    *,
    if_missing: str = "ignore",
    find: Callable[[], object] | None = None,
    explain: Callable[[errors.WorkspaceNotFoundError], object] = lambda _: None,
) -> bool:
    """
    Remove a record; one that is already gone is no error, so a retry after a lost worker succeeds.

    See :func:`check_gone`. A successful response has no body, so the record is looked up until it is gone.

    :param what: the record, for messages
    :param if_missing: ``ignore`` or ``fail``
    :param find: looks the record up; ``None`` if the caller checks later
    :param explain: called with a 404; raises it if the id is of another kind
    :return: whether this call removed it
    :raises WorkspaceNotFoundError: if it may still exist
    :raises WorkspaceNotAppliedError: if the service says that it removed the record, which can still be found
    """
    answer = client.attempt(operation, why=f"the {what} is to go, unless it is gone")
    if isinstance(answer, errors.WorkspaceNotFoundError):
        explain(answer)
        check_gone(answer, find)
        if answer.outcome == Outcome.UNKNOWN.value:  # the answer to an earlier attempt was lost
            log.warning("The answer was lost, but the %s is gone: taken as deleted by this task.", what)
            return True
        if if_missing == "fail":
            raise answer
        log.warning("There is no %s: it was deleted before, or never existed.", what)
        return False
    if isinstance(answer, errors.WorkspaceError):
        raise answer
    if find is not None:
        check_done(client, f"the {what} was deleted", operation, lambda: not find())
    log.info("Deleted the %s.", what)
    return True


def read_dashboard(client: WorkspaceClient, read: GetDashboard, *, seconds: float = 0.0) -> Dashboard | None:
    """
    Return a dashboard; ``None`` if it was deleted.

    :param seconds: how long the service must not find it to count as deleted, unless it shows that itself
    """
    dashboard = _look_at_dashboard(client, read)
    if dashboard is None and seconds:
        for pause in look_up_pauses(0.0, seconds):
            _pause_in_parts(client, pause)
            dashboard = _look_at_dashboard(client, read)
            if dashboard is not None:
                break
    if dashboard is None or dashboard.deleted:
        return None
    return dashboard


def _look_at_dashboard(client: WorkspaceClient, read: GetDashboard) -> Dashboard | None:
    """Return a dashboard, also a deleted one; ``None`` if the service does not find it."""
    try:
        return client.send(read)
    except errors.WorkspaceNotFoundError as error:
        check_gone(error)
        return None


def check_gone(error: errors.WorkspaceNotFoundError, find: Callable[[], object] | None = None) -> None:
    """
    Raise a 404 that does not show that a record is gone: proxies and wrong ids lead to a 404 too.

    What can be looked up decides; if nothing can, the 404 must be that of the service itself.

    :param find: looks the record up; ``None`` if it cannot, or if the caller does later
    """
    if find is None and not error.from_service:
        cure = "" if error.problem == "not-the-service" else "Check the host of the connection. "
        error.args = (f"This 404 may be that of a proxy, so the record may still exist. {cure}{error}",)
        error.problem = "not-found-by-proxy"
        raise error
    if find is not None and find():
        error.retryable = True
        error.args = (f"The service still shows what it did not find. Try again. {error}",)
        raise error


def check_done(client: WorkspaceClient, what: str, operation: Operation[Any], is_done: Callable[[], bool]) -> bool:
    """
    Look until the effect of a successful request is visible, for the consistency time and a minute at most.

    :param what: what was done, for messages
    :return: whether it was seen; not if the API key may not look
    :raises WorkspaceNotAppliedError: if the effect does not become visible
    """
    seconds = min(client.settings.consistency_time, MAX_CHECK_SECONDS)
    try:
        done = is_done() or look_until(client, is_done, seconds)
    except errors.WorkspacePermissionError as error:
        log.warning("The service says that %s, but this API key may not check it: %s", what, error)
        return False
    except errors.WorkspaceIncompleteListError as error:
        raise _not_seen(what, operation, seconds, " The list is too short to tell.") from error
    else:
        if not done:
            raise _not_seen(what, operation, seconds)
        return True


def _not_seen(what: str, operation: Operation[Any], seconds: float, note: str = "") -> errors.WorkspaceNotAppliedError:
    return errors.WorkspaceNotAppliedError(
        f"The service says that {what}, but did not show it within {seconds:g} s.{note} Check it in the workspace.",
        operation=type(operation).__name__,
        outcome=Outcome.UNKNOWN.value,
        problem="effect-not-shown",
    )
