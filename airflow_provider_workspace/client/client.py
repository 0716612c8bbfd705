"""
The client: the only way to the service.

:meth:`WorkspaceClient.send` has an operation encoded (``api/operation``), masks its secrets, waits for its turn, sends
it over a transport (``client/wire`` or ``client/loop``), retries where that is safe, has the answer parsed
(``api/response``) and writes the audit line. The headers are in ``client/exchange``.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import tenacity
from opentelemetry import trace
from opentelemetry.trace import SpanKind

from airflow_provider_workspace import __version__
from airflow_provider_workspace.api.models import Page, Resource
from airflow_provider_workspace.api.operation import MovedPath, RequestContext
from airflow_provider_workspace.api.outcome import Outcome, is_in_doubt
from airflow_provider_workspace.api.pagination import pages_of
from airflow_provider_workspace.api.request_errors import final_error
from airflow_provider_workspace.api.response import KEEPS_METHOD, REDIRECTS, follow, parse_response
from airflow_provider_workspace.api.retry import RetryPolicy
from airflow_provider_workspace.client.settings import operation_key
from airflow_provider_workspace.errors import (
    WorkspaceOutcomeUnknownError,
    WorkspaceRateLimitError,
    WorkspaceRequestError,
)

if TYPE_CHECKING:
    from tenacity import RetryCallState

    from airflow_provider_workspace.api.deprecation import Deprecation
    from airflow_provider_workspace.api.endpoint import Endpoint
    from airflow_provider_workspace.api.operation import Operation, Request, Response
    from airflow_provider_workspace.client.loop import LoopBackend
    from airflow_provider_workspace.client.settings import Settings
    from airflow_provider_workspace.client.wire import ThreadBackend

T = TypeVar("T")

log = logging.getLogger(__name__)
# Gets a line for each write.
audit = logging.getLogger("airflow_provider_workspace.audit")
# Does nothing unless tracing is enabled in Airflow.
tracer = trace.get_tracer("airflow_provider_workspace", __version__)

MAX_REDIRECTS = 5
ASKED_FOR = "the task asks for it"
# The path is last, because Airflow's log page cuts long lines.
AUDIT_LINE = "operation=%s outcome=%s rows=%d attempts=%d seconds=%.3f request_id=%s target=%s"


class WorkspaceClient:
    """
    Sends operations over persistent connections; proxy and TLS settings are read once.

    :param settings: settings of the connection
    :param mask: called with each secret as soon as it is seen
    :param backend: where the client runs; by default the threads of a worker
    :ivar before_write: called with the operation and its reason before each attempt of a write; what it raises stops
        the write: a dry run, another try of the task
    :ivar before_pause: called with the seconds before each :meth:`pause`; what it raises replaces the pause: a deferral
    :ivar unknown_class: class of the error after a lost answer, if a retry could apply the write twice
    :ivar deprecations: what the service announced in its answers, by the name of the operation
    :ivar default_ids: values of placeholders of ``paths`` that an operation has no field for; by default those of the
        connection
    """

    def __init__(
        self,
        settings: Settings,
        *,
        mask: Callable[[str], None],
        backend: LoopBackend | None = None,
    ) -> None:
        self.settings = settings
        self.mask = mask
        self.before_write: Callable[[Operation[Any], str], object] = lambda _op, _why: None
        self.before_pause: Callable[[float], object] = lambda _: None
        self.unknown_class = WorkspaceOutcomeUnknownError
        self._backend = backend or _thread_backend(settings)
        self._policy = RetryPolicy(settings.max_attempts, settings.max_retry_wait)
        self._context = RequestContext(settings.source, settings.secrets, settings.base_url)
        self.deprecations: dict[str, Deprecation] = {}
        self.default_ids = dict(settings.default_ids)
        # New URLs of redirects that keep the method, by method and old URL without its query.
        self._redirects: dict[tuple[str, str], str] = {}
        self._redirected: set[str] = set()
        self._width = settings.max_concurrency
        self._under_way: set[_Call] = set()

    def close(self) -> None:
        """Close the connections."""
        self._backend.close()

    @contextmanager
    def checked(self, check: Callable[[Operation[object]], object]) -> Iterator[None]:
        """
        Check each attempt of a write after :attr:`before_write`, as long as this is open.

        :param check: called with the operation; what it raises stops the write
        """
        earlier = self.before_write

        def before_write(op: Operation[object], why: str) -> None:
            earlier(op, why)
            check(op)

        self.before_write = before_write
        try:
            yield
        finally:
            self.before_write = earlier

    def pause(self, seconds: float) -> None:
        """Wait, unless :attr:`before_pause` raises because the task starts again later instead."""
        self.before_pause(seconds)
        self._backend.sleep(seconds)

    def rows(self, op: Operation[Page[T]]) -> Iterator[T]:
        """
        Yield each row of a list once, with one page in memory at a time.

        :raises WorkspaceIncompleteListError: after the last row, if there are fewer than the service counts
        """
        for rows in self.pages(op):
            yield from rows

    def pages(self, op: Operation[Page[T]], page: Page[T] | None = None) -> Iterator[list[T]]:
        """
        Yield the rows of each page, as :meth:`rows` does one by one; the page size is that of the connection.

        :param page: the first page, if it was read already
        """
        if getattr(op, "limit", 0) is None:
            op = op.model_copy(update={"limit": self.settings.page_size})
        op = self._moved(op)
        pages = pages_of(op, self.settings.base_url)
        following: Operation[Page[T]] | None = op
        while following is not None:
            page = page or self.send(following)
            yield pages.new_rows(page)
            following, page = pages.next_operation(page), None

    def send_all(
        self, operations: Sequence[Operation[T]], *, must_stop: Callable[[], bool], **options: Any
    ) -> list[T | WorkspaceRequestError | None]:
        """
        Send operations in parallel, and return their results or errors in the same order.

        After an error no other operation is started. The result of those that were not sent is ``None``.

        :param must_stop: whether to start no other operation; called before each
        :param options: further arguments of :meth:`send`
        """
        stopped = False

        def attempt(op: Operation[T]) -> T | WorkspaceRequestError | None:
            nonlocal stopped
            if stopped or must_stop():
                return None
            result = self.attempt(op, **options)
            stopped |= isinstance(result, WorkspaceRequestError)
            return result

        if len(operations) == 1:
            return [attempt(operations[0])]
        return self._backend.map(attempt, operations)

    def attempt(self, op: Operation[T], **options: Any) -> T | WorkspaceRequestError:
        """Send an operation, and return its result or the error; the arguments are those of :meth:`send`."""
        try:
            return self.send(op, **options)
        except WorkspaceRequestError as error:
            return error

    def send(
        self,
        op: Operation[T],
        *,
        why: str = ASKED_FOR,
        caller_looks_up: bool = False,
        note: Callable[[bool], object] = lambda _: None,
    ) -> T:
        """
        Send an operation, with retries where they are safe, and return its result.

        :param why: reason of a write, for a dry run or an approval
        :param caller_looks_up: whether the caller looks up a write whose response was lost before it, or a retry of the
            task, sends it again
        :param note: called before each attempt, so that a task can remember that the request may be under way, with
            whether an earlier attempt may have been applied
        :raises WorkspaceInputError: if the operation cannot be encoded; nothing was sent
        :raises WorkspaceRequestError: see :mod:`airflow_provider_workspace.errors`
        """
        op = self._moved(op)
        request = op.request()
        call = _Call(op, request, why, caller_looks_up, note)
        self._mask_all(request.secrets)
        may_retry = partial(self._may_retry, op.endpoint)
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(may_retry),
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
                    call.attempts,
                    may_have_been_applied=call.may_have_been_applied,
                    caller_looks_up=caller_looks_up,
                    unknown_class=self.unknown_class,
                )
                raise final from (error.__cause__ if final is error else error)
        self._mask_all(_secrets_in(result))
        return result

    def _moved(self, op: Operation[T]) -> Operation[T]:
        """Return the operation at the path that the connection gives it."""
        if not self.settings.paths:
            return op
        template = self.settings.paths.get(operation_key(type(op)))
        if template is None:
            return op
        return op.moved_to(MovedPath(template, self.default_ids))

    def _may_retry(self, endpoint: Endpoint, error: BaseException) -> bool:
        if endpoint.refusals_count and isinstance(error, WorkspaceRateLimitError):
            return False
        return self._policy.permits(error, repeatable=endpoint.repeatable)

    def _seconds_to_wait(self, state: RetryCallState) -> float:
        # Jitter, not cryptography.
        jitter = random.random()  # noqa: S311
        retry_after = _error_of(state).retry_after
        return self._policy.wait(state.attempt_number, retry_after, jitter)

    def _log_retry(self, state: RetryCallState) -> None:
        log.warning(
            "Attempt %d of %d failed, retrying in %.1f s: %s",
            state.attempt_number,
            self._policy.max_attempts,
            state.upcoming_sleep,
            _error_of(state),
        )

    def _mask_all(self, secrets: Iterable[str]) -> None:
        """Mask secrets, in a frame of their own so that no traceback shows them."""
        for secret in secrets:
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
                wider = min(self.settings.max_concurrency, self._width + 1)
                self._width = 1 if call.throttled else wider
                changed.notify_all()

    def _may_begin(self) -> bool:
        is_throttled = any(call.throttled for call in self._under_way)
        return len(self._under_way) < self._width and not is_throttled

    def _attempt(self, call: _Call) -> Any:
        call.attempts += 1
        try:
            return self._exchange(call)
        except WorkspaceRequestError as error:
            call.may_have_been_applied |= is_in_doubt(error)
            call.throttled |= isinstance(error, WorkspaceRateLimitError)
            raise

    def _exchange(self, call: _Call) -> Any:
        op, request = call.op, call.request
        if op.endpoint.is_write:
            self.before_write(op, call.why)
        call.note(call.may_have_been_applied)
        call.begun = True
        response = self._context.cleaned(op, self._follow(op, request))
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

    def _follow(self, op: Operation[Any], request: Request) -> Response:
        """
        Send a request, and again to each URL that it is redirected to.

        A redirect that keeps the method (307, 308) is remembered until the client ends, unless nothing is there.
        """
        asked = self.settings.base_url + request.target
        url = self._remembered(request.method, asked)
        response = self._exchange_once(op, request, url)
        keeps_method = True
        for _ in range(MAX_REDIRECTS):
            target = follow(op, response, url) if 300 <= response.status < 400 else None
            if target is None:
                break
            if response.status in KEEPS_METHOD:
                self._log_redirect(op, response.status, target)
            else:
                keeps_method = False
            url = target
            response = self._exchange_once(op, request, url)
        if url != asked:
            is_there = response.status not in (*REDIRECTS, 404, 405, 410)
            new_url = url if is_there and keeps_method else None
            self._remember(request.method, asked, new_url)
        return response

    def _exchange_once(self, op: Operation[Any], request: Request, url: str) -> Response:
        """Send a request once, and note the end of its operation if the answer announces it."""
        response = self._backend.exchange(op, request, url, self._context)
        if "deprecation" in response.headers or "sunset" in response.headers:
            self._note_deprecation(op, response)
        return response

    def _note_deprecation(self, op: Operation[Any], response: Response) -> None:
        """Keep what an answer announces, and say it once for each operation."""
        from airflow_provider_workspace.api.deprecation import parse_deprecation

        name = type(op).__name__
        deprecation = parse_deprecation(response.headers, self._context.with_secrets_of(op))
        if deprecation is None or name in self.deprecations:
            return
        self.deprecations[name] = deprecation
        cure = f"Upgrade this package, or set the new path in 'paths' in the extra of {self.settings.source}."
        log.warning("%s %s. %s", name, deprecation, cure)

    def _remembered(self, method: str, url: str) -> str:
        """Return where a URL was redirected to before; itself if it was not."""
        if not self._redirects:
            return url
        path, question_mark, query = url.partition("?")
        new_path = self._redirects.get((method, path))
        return url if new_path is None else f"{new_path}{question_mark}{query}"

    def _remember(self, method: str, asked: str, url: str | None) -> None:
        """Remember where a URL leads, if its query stays the same; ``None`` forgets it."""
        path, _, query = asked.partition("?")
        new_path, _, new_query = (url or "").partition("?")
        if url is not None and new_query == query:
            self._redirects[method, path] = new_path
        else:
            self._redirects.pop((method, path), None)

    def _log_redirect(self, op: Operation[Any], status: int, target: str) -> None:
        """Say once for each operation that the service redirects it."""
        name = type(op).__name__
        if name in self._redirected:
            return
        self._redirected.add(name)
        path = self._context.with_secrets_of(op).redacted(urlsplit(target).path)
        cure = f"If it has moved for good, set its path in 'paths' in the extra of {self.settings.source}."
        log.warning("%s was redirected (%d) to %s, which is followed. %s", name, status, path, cure)


def _thread_backend(settings: Settings) -> ThreadBackend:
    """Return the backend of a worker; event loops do not need its libraries."""
    from airflow_provider_workspace.client.wire import ThreadBackend

    return ThreadBackend(settings)


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
    note: Callable[[bool], object]
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
    name = type(call.op).__name__
    attributes = {"http.request.method": call.request.method, "url.path": call.request.shown}
    with tracer.start_as_current_span(f"workspace {name}", kind=SpanKind.CLIENT, attributes=attributes) as span:
        try:
            yield
            outcome = Outcome.APPLIED.value
        except WorkspaceRequestError as error:
            outcome = error.outcome
            raise
        finally:
            span.set_attributes({"workspace.outcome": outcome, "http.request.resend_count": call.attempts - 1})
            if call.op.endpoint.is_write and call.begun:
                seconds = time.monotonic() - began
                request_id = "".join((call.request_id or "-").split())[:100]
                audit.info(
                    AUDIT_LINE, name, outcome, call.op.rows, call.attempts, seconds, request_id, call.request.shown
                )


def _secrets_in(result: object) -> list[str]:
    """Return the secrets in a result, for the log masker."""
    if isinstance(result, Page):
        resources: list[Any] = result.results
    elif isinstance(result, list):
        resources = result
    else:
        resources = [result]
    # Rows have one class: it is asked once, because the isinstance of pydantic's models runs Python.
    records = {kind for kind in set(map(type, resources)) if issubclass(kind, Resource)}
    secrets: list[str] = []
    for resource in resources:
        # An unknown field may contain a secret. Most members and invites have neither kind, so they are skipped.
        if type(resource) in records and (resource.holds_secrets or resource.__pydantic_extra__):
            secrets += resource.secrets()
    return secrets


def _error_of(state: RetryCallState) -> WorkspaceRequestError:
    """Return the error of an attempt, which is retried after no other."""
    error = state.outcome.exception() if state.outcome else None
    assert isinstance(error, WorkspaceRequestError)  # noqa: S101 - see retry_if_exception
    return error
