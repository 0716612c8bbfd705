"""
The trigger behind all sensors: any number of waiting tasks cost one poll of one list.

On Airflow 3.3 the tasks that wait for the same subject in the same organization share a stream of looks; before, each
looks for itself.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Coroutine, Hashable
from typing import TYPE_CHECKING, Any, TypeVar

from airflow.triggers.base import BaseEventTrigger, TaskFailedEvent, TaskSuccessEvent, TriggerEvent

if TYPE_CHECKING:
    from airflow_provider_workspace.api.looks import Look

T = TypeVar("T")

log = logging.getLogger(__name__)

# Longest time one look may take, all its pages and attempts included.
LOOK_SECONDS = 300.0
# Longest pause between looks while the service fails.
LONGEST_PAUSE = 600.0
# Longest pause a service can ask for with a ``Retry-After``: some name a day, or nonsense.
LONGEST_RETRY_AFTER = 3600.0
# How long after its end a wait still takes a last look, if one comes; then it ends without.
LAST_LOOK_SECONDS = 300.0
# The wall clock may be set forward: it is read at least so often.
CLOCK_SECONDS = 60.0


class Failure:
    """
    A look that failed. No dataclass: making one costs as much as importing ten operators.

    :param permanent: whether the next look would fail in the same way
    """

    def __init__(self, message: str, *, permanent: bool) -> None:
        self.message = message
        self.permanent = permanent


class WorkspaceWaitTrigger(BaseEventTrigger):
    """
    Waits for a condition, and fires once: ``{"status": "done" | "timeout" | "failed", "message": …, "result": …}``.

    :param condition: one of :data:`~airflow_provider_workspace.api.conditions.CONDITIONS`
    :param arguments: fields of the condition
    :param workspace_conn_id: connection to the service
    :param organization_id: organization; by default that of the connection
    :param poll_interval: seconds between two looks
    :param end_at: when to give up, in seconds since 1970 by the wall clock; ``None`` for never
    :param ask_verification: for a domain: ask the service at each look to verify it
    """

    def __init__(
        self,
        *,
        condition: str,
        arguments: dict[str, Any],
        workspace_conn_id: str = "workspace_default",
        organization_id: str | None = None,
        poll_interval: float = 60.0,
        end_at: float | None = None,
        ask_verification: bool = False,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.condition = condition
        self.arguments = arguments
        self.workspace_conn_id = workspace_conn_id
        self.organization_id = organization_id
        self.poll_interval = poll_interval
        self.end_at = end_at
        self.ask_verification = ask_verification

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class and plain JSON."""
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "condition": self.condition,
                "arguments": self.arguments,
                "workspace_conn_id": self.workspace_conn_id,
                "organization_id": self.organization_id,
                "poll_interval": self.poll_interval,
                "end_at": self.end_at,
                "ask_verification": self.ask_verification,
            },
        )

    def shared_stream_key(self) -> Hashable | None:
        """Return what makes two waits look at the same list at the same pace."""
        from airflow_provider_workspace.api.conditions import CONDITIONS

        subject = CONDITIONS[self.condition].subject
        return ("workspace", self.workspace_conn_id, self.organization_id, subject, float(self.poll_interval))

    @classmethod
    async def open_shared_stream(cls, kwargs: dict[str, Any]) -> AsyncIterator[Look | Failure]:
        """Look again and again; a look that fails is told and does not end the stream."""
        from airflow_provider_workspace.api.conditions import CONDITIONS
        from airflow_provider_workspace.errors import WorkspaceAuthenticationError, WorkspaceError
        from airflow_provider_workspace.hooks.shared import SharedHook, gate

        subject = CONDITIONS[kwargs["condition"]].subject
        organization_id = kwargs["organization_id"]
        interval = float(kwargs["poll_interval"])
        before: Look | None = None
        failures = 0
        # The first look was the worker's; a random part of the interval keeps streams from looking all at once.
        pause = interval * random.random()  # noqa: S311 - jitter, not cryptography
        async with SharedHook(kwargs["workspace_conn_id"]) as shared:
            while True:
                await asyncio.sleep(pause)
                try:
                    async with gate():
                        look = shared.hook.look(subject, before=before, organization_id=organization_id)
                        before = await within(LOOK_SECONDS, look)
                    failures, pause = 0, interval
                    shared.fresh = False
                    yield before
                except TimeoutError:
                    failures += 1
                    pause = backoff(interval, failures)
                    yield Failure(f"a look took longer than {LOOK_SECONDS:.0f} s", permanent=False)
                except WorkspaceError as error:
                    if isinstance(error, WorkspaceAuthenticationError) and await shared.renew():
                        pause = 0.0
                        continue
                    failures += 1
                    asked_for = min(LONGEST_RETRY_AFTER, getattr(error, "retry_after", None) or 0.0)
                    pause = max(backoff(interval, failures), asked_for)
                    yield Failure(f"{type(error).__name__}: {error}", permanent=error.permanent)

    async def filter_shared_stream(self, shared_stream: AsyncIterator[Look | Failure]) -> AsyncIterator[TriggerEvent]:
        """Judge look after look until the condition holds, the time is over, or looking makes no sense."""
        from airflow_provider_workspace.api.conditions import condition_of

        condition = condition_of(self.condition, self.arguments)
        message, result = "nothing was seen yet", dict[str, Any]()
        async for seen in until(shared_stream, self.end_at):
            if seen is None:
                yield ended("timeout", message, result)
                return
            if isinstance(seen, Failure):
                if seen.permanent:
                    yield ended("failed", seen.message, {})
                    return
                log.warning("Looking failed and will be tried again: %s", seen.message)
                message = f"the last look failed: {seen.message}"
                result = {}
            else:
                verdict = condition.judge(seen)
                if verdict.done:
                    yield ended("done", verdict.message, verdict.result)
                    return
                if verdict.message != message:
                    log.info("Waiting: %s", verdict.message)
                message, result = verdict.message, verdict.result
            if self.end_at is not None and time.time() >= self.end_at:
                yield ended("timeout", message, result)
                return
            if self.ask_verification:
                await self.ask()

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait with a stream of its own, where Airflow does not share them."""
        async for event in self.filter_shared_stream(self.open_shared_stream(self.serialize()[1])):
            yield event

    async def ask(self) -> None:
        """Ask the service to verify the domain; whether it did, the next look tells."""
        from airflow_provider_workspace.errors import WorkspaceError
        from airflow_provider_workspace.hooks.shared import SharedHook

        try:
            async with SharedHook(self.workspace_conn_id) as shared:
                await shared.hook.verify_domain(
                    domain_id=self.arguments["domain_id"], organization_id=self.organization_id
                )
        except WorkspaceError as error:
            log.warning("Asking for verification failed: %s", error)


class WorkspaceDomainVerifiedTrigger(WorkspaceWaitTrigger):
    """
    Waits for a verified domain in the place of a task: no worker begins or ends it.

    Airflow renders ``domain_id`` and ``organization_id`` before it starts the trigger (from 3.3).

    :param domain_id: domain (UUID)
    :param workspace_conn_id: connection to the service
    :param organization_id: organization; by default that of the connection
    :param poll_interval: seconds between two looks
    :param ask_verification: ask the service at each look to verify the domain
    """

    def __init__(
        self,
        *,
        domain_id: str,
        workspace_conn_id: str = "workspace_default",
        organization_id: str | None = None,
        poll_interval: float = 60.0,
        ask_verification: bool = False,
    ) -> None:
        super().__init__(
            condition="domain_verified",
            arguments={"domain_id": domain_id},
            workspace_conn_id=workspace_conn_id,
            organization_id=organization_id,
            poll_interval=poll_interval,
            ask_verification=ask_verification,
        )
        self.domain_id = domain_id

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class and plain JSON."""
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "domain_id": self.domain_id,
                "workspace_conn_id": self.workspace_conn_id,
                "organization_id": self.organization_id,
                "poll_interval": self.poll_interval,
                "ask_verification": self.ask_verification,
            },
        )

    @classmethod
    async def open_shared_stream(cls, kwargs: dict[str, Any]) -> AsyncIterator[Look | Failure]:
        """Share the stream of those who wait for domains in the ordinary way."""
        async for seen in super().open_shared_stream({**kwargs, "condition": "domain_verified"}):
            yield seen

    async def filter_shared_stream(self, shared_stream: AsyncIterator[Look | Failure]) -> AsyncIterator[Any]:
        """End the task itself, as success with the result or as failed."""
        # Only now it is rendered.
        self.arguments = {"domain_id": str(self.domain_id).strip().lower()}
        async for event in super().filter_shared_stream(shared_stream):
            outcome = event.payload
            log.info("%s: %s", outcome["status"], outcome["message"])
            if outcome["status"] == "done":
                yield TaskSuccessEvent(xcoms={"return_value": outcome["result"]})
            else:
                yield TaskFailedEvent()


async def until(stream: AsyncIterator[T], end_at: float | None) -> AsyncIterator[T | None]:
    """
    Yield what a stream yields, and ``None`` as the last if it keeps silent beyond the end of the wait.

    :param end_at: end of the wait in seconds since 1970; ``None`` for never
    """
    while True:
        coming = asyncio.ensure_future(anext(stream))
        try:
            while not coming.done():
                left = CLOCK_SECONDS if end_at is None else end_at + LAST_LOOK_SECONDS - time.time()
                if left <= 0:
                    yield None
                    return
                await asyncio.wait({coming}, timeout=min(left, CLOCK_SECONDS))
            try:
                item = coming.result()
            except StopAsyncIteration:
                return
            yield item
        finally:
            await give_up(coming)


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """
    Return the result of some work that may take so long.

    Not ``asyncio.wait_for``: before Python 3.12 it forgets that it was cancelled if the work ends at the same moment,
    and a stream would go on without anybody who waits.

    :raises TimeoutError: if it takes longer; then it was cancelled
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            raise TimeoutError
        return task.result()
    finally:
        await give_up(task)


async def give_up(task: asyncio.Future[Any]) -> None:
    """Cancel a task unless it is done, and wait until it has cleaned up."""
    if not task.done():
        task.cancel()
        await asyncio.wait({task})


def ended(status: str, message: str, result: dict[str, Any]) -> TriggerEvent:
    """Return the event that ends a wait."""
    return TriggerEvent({"status": status, "message": message, "result": result})  # type: ignore[no-untyped-call]


def backoff(interval: float, failures: int) -> float:
    """Return the pause after a number of failures in a row."""
    return max(interval, min(LONGEST_PAUSE, interval * 2.0 ** min(failures - 1, 10)))
