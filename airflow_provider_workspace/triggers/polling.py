"""Polling in the triggerer."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from airflow_provider_workspace.api.retry import backoff
from airflow_provider_workspace.client import waits
from airflow_provider_workspace.errors import (
    WorkspaceAuthenticationError,
    WorkspaceError,
    WorkspaceStatusError,
    with_class,
    with_problem,
)
from airflow_provider_workspace.triggers.shared_hook import MAX_CONCURRENT_POLLS, SharedHook
from airflow_provider_workspace.version_compat import AirflowNotFoundException

if TYPE_CHECKING:
    from airflow_provider_workspace.hooks.workspace_async import WorkspaceAsyncHook
    from airflow_provider_workspace.procedures.snapshot import Snapshot

T = TypeVar("T")

log = logging.getLogger(__name__)

# Timeout of reading the connection, and of one poll with all its pages and attempts.
POLL_TIMEOUT = 300.0
# By which part of the interval a poll may come late before that is logged; a second at least.
LATE = 0.25
# Shortest pause between polls, also for an interval of zero, which Airflow's sensors accept.
MIN_INTERVAL = 0.01
# Longest pause between polls while the service fails.
MAX_PAUSE = 600.0
# Longest ``Retry-After`` that is obeyed.
MAX_RETRY_AFTER = 3600.0
# Within which time the first poll comes, however long the interval is.
FIRST_POLL_SECONDS = 60.0
# How long a wait goes on after its end for a last poll, or after its beginning if that is later.
LAST_POLL_SECONDS = 300.0
# How long a connection may be missing: to Airflow, one that a failing secrets backend holds is not defined either.
MISSING_SECONDS = 600.0
# How long something other than the service may answer, such as its proxy.
FOREIGN_SECONDS = 600.0
# How long a key may be refused: it may be revoked a moment before the connection has the new one.
REFUSED_SECONDS = 60.0
# Longest time between two readings of the wall clock, which may be set forward.
CLOCK_SECONDS = 60.0


class PollFailure(NamedTuple):
    """
    A failed poll.

    :param permanent: whether the next one would fail in the same way
    :param fails_at_end: whether a wait that ends with it has failed, rather than that its time is over
    """

    message: str
    permanent: bool
    fails_at_end: bool = False


@dataclass
class _SinceSuccess:
    """
    What failed since a poll succeeded.

    :ivar failures: how often
    :ivar missing: for how many seconds the connection was not defined
    :ivar refused: for how many seconds the key was refused
    :ivar foreign: for how many seconds errors were not those of the service
    """

    failures: int = 0
    missing: float = 0.0
    refused: float = 0.0
    foreign: float = 0.0


async def poll(
    read: Callable[[WorkspaceAsyncHook], Coroutine[Any, Any, T]], *, workspace_conn_id: str, interval: float
) -> AsyncIterator[T | PollFailure]:
    """
    Poll forever; a failure is yielded and does not end the stream.

    :param interval: seconds between two polls
    """
    interval = max(interval, MIN_INTERVAL)
    since = _SinceSuccess()
    # The worker made the first poll, or a triggerer before a restart; jitter spreads the polls of different streams.
    pause = min(interval, FIRST_POLL_SECONDS) * random.random()  # noqa: S311 - jitter, not cryptography
    async with SharedHook(workspace_conn_id) as shared:
        while True:
            await waits.async_sleep(pause)
            if since.failures:
                await shared.renew_if_old()
            try:
                result = await _read_in_time(shared, read, interval)
                since = _SinceSuccess()
                pause = interval
                shared.fresh = False
                yield result
            except (TimeoutError, AirflowNotFoundException) as error:
                since.failures += 1
                pause = max(interval, backoff(interval, since.failures, MAX_PAUSE))
                if isinstance(error, TimeoutError):
                    yield PollFailure(with_problem(str(error), "no-answer"), permanent=False)
                    continue
                message = (
                    f"The triggerer cannot find connection '{workspace_conn_id}'. Define it where the triggerer can "
                    "read it"
                )
                message = with_problem(message, "connection-invalid")
                yield PollFailure(message, permanent=since.missing >= MISSING_SECONDS, fails_at_end=True)
                since.missing += pause
            except WorkspaceError as error:
                if isinstance(error, WorkspaceAuthenticationError) and await shared.renew():
                    pause = 0.0
                    continue
                since.failures += 1
                if isinstance(error, WorkspaceAuthenticationError) and since.refused < REFUSED_SECONDS:
                    shared.fresh = False  # the next refusal reads the connection again
                    pause = min(backoff(interval, since.failures, MAX_PAUSE), REFUSED_SECONDS)
                    since.refused += pause
                    yield PollFailure(with_class(error), permanent=False, fails_at_end=True)
                    continue
                is_foreign = isinstance(error, WorkspaceStatusError) and not error.from_service
                permanent = error.permanent and (not is_foreign or since.foreign >= FOREIGN_SECONDS)
                # A revoked key may be replaced, so watchers go on polling, slowly.
                pause = MAX_PAUSE if permanent else backoff(interval, since.failures, MAX_PAUSE)
                asked = getattr(error, "retry_after", None) or 0.0
                pause = max(pause, interval, min(MAX_RETRY_AFTER, asked))
                since.foreign += pause if is_foreign else 0.0
                yield PollFailure(with_class(error), permanent=permanent)


async def _read_in_time(
    shared: SharedHook, read: Callable[[WorkspaceAsyncHook], Coroutine[Any, Any, T]], interval: float
) -> T:
    """
    Poll once.

    :raises TimeoutError: if it took too long
    """
    due = time.monotonic()
    source = f"connection '{shared.hook.workspace_conn_id}'"
    try:
        await waits.within(POLL_TIMEOUT, shared.hook.client())
    except TimeoutError:
        raise TimeoutError(f"the triggerer could not read {source} within {POLL_TIMEOUT:g} s") from None
    try:
        async with shared.polls:
            result = await waits.within(POLL_TIMEOUT, read(shared.hook))
    except TimeoutError:
        cure = f"If its list has many pages, raise page_size in the extra of {source}"
        raise TimeoutError(f"a poll took longer than {POLL_TIMEOUT:g} s. {cure}") from None
    _check_late(shared, time.monotonic() - due, interval)
    return result


def _check_late(shared: SharedHook, seconds: float, interval: float) -> None:
    """Log once for each connection that the interval cannot be held."""
    if shared.polls.is_late or seconds <= max(1.0, interval * LATE):
        return
    shared.polls.is_late = True
    log.warning(
        "Connection '%s' is polled every %.0f s instead of every %g s: its service is slow, or more than %d polls "
        "would run at once. Raise poke_interval.",
        shared.hook.workspace_conn_id,
        seconds + interval,
        interval,
        MAX_CONCURRENT_POLLS,
    )


def snapshots(
    subject: str, *, workspace_conn_id: str, organization_id: str | None, interval: float
) -> AsyncIterator[Snapshot | PollFailure]:
    """
    Poll for snapshots.

    :param subject: ``domains``, ``projects`` or ``people``
    :param organization_id: organization; ``None`` for that of the connection
    """
    previous: Snapshot | None = None

    async def read(hook: WorkspaceAsyncHook) -> Snapshot:
        from airflow_provider_workspace.procedures.snapshot import take_snapshot

        nonlocal previous
        organization = await hook.organization_or_default(organization_id)
        now = time.monotonic()
        previous = await hook.run(take_snapshot, subject, organization, previous=previous, now=now)
        return previous

    return poll(read, workspace_conn_id=workspace_conn_id, interval=interval)


class _Alarm:
    """
    Wakes a wait at its end: one timer for all its polls, which costs less than a timeout of each.

    :param end_at: see :func:`until`
    """

    def __init__(self, end_at: float | None) -> None:
        self.end_at = None if end_at is None else max(end_at, time.time())
        self._woken = asyncio.get_running_loop().create_future()
        self._look_again()

    def seconds_left(self) -> float:
        """Return how long the wait still waits for a poll."""
        return CLOCK_SECONDS if self.end_at is None else self.end_at + LAST_POLL_SECONDS - time.time()

    async def sleep(self) -> None:
        """Sleep until something wakes the wait."""
        self._woken = asyncio.get_running_loop().create_future()
        await self._woken

    def wake(self, _: object = None) -> None:
        """Wake the wait, if it sleeps."""
        if not self._woken.done():
            self._woken.set_result(None)

    def stop(self) -> None:
        """Look no more."""
        self._timer.cancel()

    def _look_again(self) -> None:
        self.wake()
        left = self.seconds_left()
        soon = left if 0 < left < CLOCK_SECONDS else CLOCK_SECONDS
        self._timer = asyncio.get_running_loop().call_later(soon, self._look_again)


async def until(stream: AsyncIterator[T], end_at: float | None) -> AsyncIterator[T | None]:
    """
    Yield the items of a stream, and ``None`` at the end if it yields nothing after the end of the wait.

    :param end_at: end of the wait in seconds since 1970; ``None`` for no end
    """
    alarm = _Alarm(end_at)
    try:
        while True:
            coming = asyncio.ensure_future(anext(stream))
            coming.add_done_callback(alarm.wake)
            try:
                while not coming.done():
                    if alarm.seconds_left() <= 0:
                        yield None
                        return
                    await alarm.sleep()
                try:
                    item = coming.result()
                except StopAsyncIteration:
                    return
                yield item
            finally:
                await waits.cancel(coming)
    finally:
        alarm.stop()
