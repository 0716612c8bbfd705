"""
The client: the only way to the service.

:meth:`WorkspaceClient.send` encodes a request, masks secrets, waits for its turn, retries where that is safe, writes
the audit line and parses the response.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import tenacity
from opentelemetry import trace
from opentelemetry.trace import SpanKind

from airflow_provider_workspace import __version__
from airflow_provider_workspace.api.models import Page, Resource
from airflow_provider_workspace.api.operation import RequestContext
from airflow_provider_workspace.api.outcome import Outcome, is_in_doubt
from airflow_provider_workspace.api.pagination import Pages
from airflow_provider_workspace.api.request_errors import final_error
from airflow_provider_workspace.api.response import follow, parse_response
from airflow_provider_workspace.api.retry import RetryPolicy
from airflow_provider_workspace.client import waits
from airflow_provider_workspace.client.wire import Connections
from airflow_provider_workspace.errors import WorkspaceRateLimitError, WorkspaceRequestError

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from tenacity import RetryCallState
    from typing_extensions import Self

    from airflow_provider_workspace.api.operation import Operation, Request, Response
    from airflow_provider_workspace.client.settings import Settings

T = TypeVar("T")
R = TypeVar("R")

log = logging.getLogger(__name__)
# Gets a line for each write.
audit = logging.getLogger("airflow_provider_workspace.audit")
# Does nothing unless tracing is enabled in Airflow.
tracer = trace.get_tracer("airflow_provider_workspace", __version__)

MAX_REDIRECTS = 5
ASKED_FOR = "the task asks for it"
# The path is last, because Airflow's log page cuts long lines.
AUDIT_LINE = "operation=%s outcome=%s rows=%d attempts=%d seconds=%.3f request_id=%s target=%s"


class Condition(Protocol):
    """The part of :class:`threading.Condition` that a client needs."""

    def __enter__(self) -> object: ...
    def __exit__(self, *_: object) -> object: ...
    def wait_for(self, predicate: Callable[[], bool]) -> object: ...
    def notify_all(self) -> None: ...


class Backend(Protocol):
    """
    Where a client runs: :class:`ThreadBackend` in a worker.

    In an event loop, :class:`~airflow_provider_workspace.client.loop.LoopBackend`.
    """

    condition: Condition

    def exchange(self, op: Operation[Any], request: Request, url: str, context: RequestContext) -> Response:
        """Send a request and read the complete response."""
        ...

    def sleep(self, seconds: float) -> None:
        """Sleep."""

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Return what some work makes of each item, in parallel."""
        ...

    def close(self) -> None:
        """Close the connections."""


class WorkspaceClient:
    """
    Sends operations over persistent connections; proxy and TLS settings are read once.

    :param settings: settings of the connection
    :param mask: called with each secret as soon as it is seen
    :param backend: by default that for the threads of a worker
    :ivar before_write: called with the operation and its reason before each attempt of a write; what it raises stops
        the write: a dry run, an approval that is missing, another try of the task
    :ivar before_pause: called with the seconds before each :meth:`pause`; what it raises replaces the pause: a deferral
    """

    def __init__(
        self, settings: Settings, *, mask: Callable[[str], None] = lambda _: None, backend: Backend | None = None
    ) -> None:
        self.settings = settings
        self.mask = mask
        self.before_write: Callable[[Operation[Any], str], object] = lambda _op, _why: None
        self.before_pause: Callable[[float], object] = lambda _: None
        self._backend = backend or ThreadBackend(settings)
        self._policy = RetryPolicy(settings.max_attempts, settings.max_retry_wait)
        self._context = RequestContext(settings.source, settings.secrets)
        self._width = settings.max_concurrency
        self._under_way: set[_Call] = set()

    def __enter__(self) -> Self:
        """Use the client as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._backend.close()

    def pause(self, seconds: float) -> None:
        """Wait, unless :attr:`before_pause` raises because the task starts again later instead."""
        self.before_pause(seconds)
        self._backend.sleep(seconds)

    def rows(self, op: Operation[Page[T]], page: Page[T] | None = None) -> Iterator[T]:
        """
        Yield each row of a list once, with one page in memory at a time.

        :param page: the first page, if it was read already
        :raises WorkspaceIncompleteListError: after the last row, if there are fewer than the service counts
        """
        for rows in self.pages(op, page):
            yield from rows

    def pages(self, op: Operation[Page[T]], page: Page[T] | None = None) -> Iterator[list[T]]:
        """Yield the rows of each page, as :meth:`rows` does one by one; the page size is that of the connection."""
        if getattr(op, "limit", 0) is None:
            op = op.model_copy(update={"limit": self.settings.page_size})
        pages = Pages(op, self.settings.base_url)
        following: Operation[Page[T]] | None = op
        while following is not None:
            page = page or self.send(following)
            yield pages.new_rows(page)
            following, page = pages.next_operation(page), None

    def send_all(
        self,
        operations: Sequence[Operation[T]],
        *,
        caller_looks_up: bool = False,
        note: Callable[[], object] | None = None,
        must_stop: Callable[[], bool] = lambda: False,
    ) -> list[T | WorkspaceRequestError | None]:
        """
        Send operations in parallel, and return their results or errors in the same order.

        After an error no other operation is started. The result of those that were not sent is ``None``.

        :param must_stop: whether to start no other operation; called before each
        """
        stopped = False

        def attempt(op: Operation[T]) -> T | WorkspaceRequestError | None:
            nonlocal stopped
            if stopped or must_stop():
                return None
            result = self.attempt(op, caller_looks_up=caller_looks_up, note=note)
            stopped |= isinstance(result, WorkspaceRequestError)
            return result

        return [attempt(operations[0])] if len(operations) == 1 else self._backend.map(attempt, operations)

    def attempt(
        self,
        op: Operation[T],
        *,
        why: str = ASKED_FOR,
        caller_looks_up: bool = False,
        note: Callable[[], object] | None = None,
    ) -> T | WorkspaceRequestError:
        """Send an operation, and return its result or the error."""
        try:
            return self.send(op, why=why, caller_looks_up=caller_looks_up, note=note)
        except WorkspaceRequestError as error:
            return error

    def send(
        self,
        op: Operation[T],
        *,
        why: str = ASKED_FOR,
        caller_looks_up: bool = False,
        note: Callable[[], object] | None = None,
    ) -> T:
        """
        Send an operation, with retries where they are safe, and return its result.

        :param why: reason of a write, for a dry run or an approval
        :param caller_looks_up: whether the caller looks up a write whose response was lost before it, or a retry of the
            task, sends it again
        :param note: called before each attempt, so that a task can remember that the request may be under way
        :raises WorkspaceInputError: if the operation cannot be encoded; nothing was sent
        :raises WorkspaceRequestError: see :mod:`airflow_provider_workspace.errors`
        """
        call = _Call(op, op.request(), why, caller_looks_up, note)
        self._mask_all(op.secrets())
        retrying = tenacity.Retrying(
            retry=partial(self._should_retry, call),
            wait=self._seconds_to_wait,
            stop=tenacity.stop_after_attempt(self._policy.max_attempts),
            before_sleep=self._log_retry,
            sleep=self._backend.sleep,
            reraise=True,
        )
        with self._turn(call), _recorded(call):
            try:
                result: T = retrying(self._attempt, call)
            except WorkspaceRequestError as error:
                final = final_error(
                    op,
                    error,
                    max(1, call.attempts),
                    may_have_been_applied=call.may_have_been_applied,
                    caller_looks_up=caller_looks_up,
                )
                raise final from (error.__cause__ if final is error else error)
        self._mask_all(_secrets_in(result))
        return result

    def _mask_all(self, secrets: Iterable[str]) -> None:
        """Mask secrets, in a frame of their own so that no traceback shows them."""
        for secret in [*secrets]:
            self.mask(secret)

    @contextmanager
    def _turn(self, call: _Call) -> Iterator[None]:
        """
        Wait until a call may begin, and count it until it is over.

        While a call waits after a 429, no other starts. Afterwards one may be under way, and one more with each call
        that gets no 429.
        """
        changed = self._backend.condition
        with changed:
            changed.wait_for(self._may_begin)
            self._under_way.add(call)
        try:
            yield
        finally:
            with changed:
                self._under_way.discard(call)
                self._width = 1 if call.throttled else min(self.settings.max_concurrency, self._width + 1)
                changed.notify_all()

    def _may_begin(self) -> bool:
        return len(self._under_way) < self._width and not any(call.throttled for call in self._under_way)

    def _attempt(self, call: _Call) -> Any:
        op, request = call.op, call.request
        if op.endpoint.is_write:
            self.before_write(op, call.why)
        call.begun = True
        if call.note is not None:
            call.note()
        url = self.settings.base_url + request.target
        response = self._backend.exchange(op, request, url, self._context)
        for _ in range(MAX_REDIRECTS):
            if not 300 <= response.status < 400 or (target := follow(op, response, url)) is None:
                break
            url = target
            response = self._backend.exchange(op, request, url, self._context)
        response = self._context.cleaned(op, response)
        call.request_id = response.request_id
        return parse_response(
            op,
            response,
            self._context,
            datetime.now(timezone.utc),
            may_have_been_applied=call.may_have_been_applied,
            caller_looks_up=call.caller_looks_up,
            trust_counts=self.settings.trust_counts,
        )

    # What tenacity asks after each attempt

    def _should_retry(self, call: _Call, state: RetryCallState) -> bool:
        """Return whether to send again, and remember whether the write may have been applied."""
        call.attempts = state.attempt_number
        error = _error_of(state)
        if error is None:
            return False
        if is_in_doubt(error):
            call.may_have_been_applied = True
        if isinstance(error, WorkspaceRateLimitError):
            call.throttled = True
            if call.op.endpoint.refusals_count:
                return False
        return self._policy.permits(error, repeatable=call.op.endpoint.repeatable)

    def _seconds_to_wait(self, state: RetryCallState) -> float:
        # Jitter, not cryptography.
        retry_after = getattr(_error_of(state), "retry_after", None)
        return self._policy.wait(state.attempt_number, retry_after, random.random())  # noqa: S311

    def _log_retry(self, state: RetryCallState) -> None:
        pause = state.next_action.sleep if state.next_action else 0.0
        attempt, attempts = state.attempt_number, self._policy.max_attempts
        log.warning("Attempt %d of %d failed, retrying in %.1f s: %s", attempt, attempts, pause, _error_of(state))


@dataclass(eq=False, slots=True)
class _Call:
    """
    The attempts to send one operation.

    :ivar begun: whether an attempt has begun
    :ivar throttled: whether the response to an attempt was 429
    :ivar request_id: request id of the last response
    """

    op: Operation[Any]
    request: Request
    why: str
    caller_looks_up: bool
    note: Callable[[], object] | None
    may_have_been_applied: bool = False
    attempts: int = 0
    begun: bool = False
    throttled: bool = False
    request_id: str | None = None


@contextmanager
def _recorded(call: _Call) -> Iterator[None]:
    """Trace a call, and log a line at its end if it is a write."""
    began = time.monotonic()
    outcome = Outcome.UNKNOWN.value
    name, method = type(call.op).__name__, call.request.method
    target = call.request.target.partition("?")[0]
    attributes = {"http.request.method": method, "url.path": target}
    with tracer.start_as_current_span(f"workspace {name}", kind=SpanKind.CLIENT, attributes=attributes) as span:
        try:
            yield
            outcome = Outcome.APPLIED.value
        except WorkspaceRequestError as error:
            outcome = error.outcome
            raise
        finally:
            attempts = max(1, call.attempts)
            span.set_attributes({"workspace.outcome": outcome, "http.request.resend_count": attempts - 1})
            if call.op.endpoint.is_write and call.begun:
                seconds = time.monotonic() - began
                request_id = "".join((call.request_id or "-").split())[:100]
                audit.info(AUDIT_LINE, name, outcome, call.op.rows, attempts, seconds, request_id, target)


class ThreadBackend(Connections):
    """The connections, sleeps and threads of a worker."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.condition = threading.Condition()

    def sleep(self, seconds: float) -> None:
        """Sleep."""
        waits.sleep(seconds)

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Return what some work makes of each item, in parallel."""
        from concurrent.futures import wait
        from contextvars import copy_context

        # Threads inherit the context for tracing and logging.
        calls = [self._pool.submit(copy_context().run, work, item) for item in items]
        try:
            return [call.result() for call in calls]
        finally:
            # After an error, or when the task is stopped, wait for the calls under way and start no more.
            for call in calls:
                call.cancel()
            wait(calls)

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        """The threads; each starts on first use, and is reused because starting one costs as much as a call."""
        from concurrent.futures import ThreadPoolExecutor

        return ThreadPoolExecutor(self._settings.max_concurrency, thread_name_prefix="workspace")


def _error_of(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None


def _secrets_in(result: object) -> Iterator[str]:
    """Yield the secrets in a result, for the log masker."""
    resources = result.results if isinstance(result, Page) else result if isinstance(result, list) else [result]
    for resource in resources:
        # An unknown field may contain a secret. Most members and invites have neither kind, so they are skipped.
        if isinstance(resource, Resource) and (resource.holds_secrets or resource.model_extra):
            yield from resource.secrets()
