"""The client for workers: requests carries, tenacity repeats, ``api`` decides."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, TypeVar

import requests
import tenacity
import urllib3.exceptions
from requests.adapters import HTTPAdapter
from requests.structures import CaseInsensitiveDict

from airflow_provider_workspace.api.operation import Response
from airflow_provider_workspace.api.outcome import refuses_all
from airflow_provider_workspace.api.pagination import Pages
from airflow_provider_workspace.api.procedure import Pause
from airflow_provider_workspace.api.request_errors import RequestContext, not_sent, transport_error
from airflow_provider_workspace.api.response import follow, parse_response
from airflow_provider_workspace.client import waits
from airflow_provider_workspace.client.call import MAX_REDIRECTS, Call, headers_for, secrets_in
from airflow_provider_workspace.client.throttle import Throttle
from airflow_provider_workspace.client.transport import proxy_for, tls_context, tls_refused
from airflow_provider_workspace.errors import WorkspaceRequestError

if TYPE_CHECKING:
    from typing_extensions import Self

    from airflow_provider_workspace.api.models import Page
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.api.procedure import Procedure, Send
    from airflow_provider_workspace.client.settings import Settings

T = TypeVar("T")

BEFORE_SENDING = (
    urllib3.exceptions.NewConnectionError,
    urllib3.exceptions.ConnectTimeoutError,
    urllib3.exceptions.EmptyPoolError,
)


class WorkspaceClient:
    """
    Sends operations over one pool of connections; the surroundings (proxy, authorities) are looked up once.

    Of requests it uses the adapter, not the session: a session reads ``.netrc``, keeps cookies, and parses the
    ``Location`` of every redirect, whether it follows it or not, with whatever error that leads to.

    :param settings: where and as whom to ask
    :param mask: called with each secret as soon as it is seen
    :param sleep: how to wait between attempts; by default as :mod:`airflow_provider_workspace.client.waits` says
    """

    def __init__(
        self,
        settings: Settings,
        *,
        mask: Callable[[str], None] = lambda _: None,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        self.settings = settings
        self.mask = mask
        self._sleep = sleep or waits.sleep
        self._policy = settings.retry_policy()
        self._context = RequestContext(settings.source, settings.secrets())
        self._headers = headers_for(settings)
        self._throttle = Throttle(settings.max_concurrency)
        self._timeout = (settings.connect_timeout, settings.read_timeout)
        proxy = proxy_for(settings)
        self._proxies = {"http": proxy, "https": proxy} if proxy else {}
        https = settings.base_url.startswith("https://")
        self._adapter = _Adapter(tls_context(settings.verify)) if https else HTTPAdapter()

    def __enter__(self) -> Self:
        """Use the client in a ``with`` statement."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._adapter.close()

    def send(self, op: Operation[T], *, looks_first: bool = False, note: Callable[[], object] | None = None) -> T:
        """
        Send an operation, again where that is safe, and return its result.

        :param looks_first: whether the caller looks for the effect of a write whose answer was lost before it, or a
            retry of the task, sends it again
        :param note: called right before each attempt
        :raises WorkspaceInputError: if the operation cannot be written out; nothing was sent
        :raises WorkspaceRequestError: see :mod:`airflow_provider_workspace.errors`
        """
        call = Call(op, self._policy, looks_first=looks_first, note=note)
        for secret in op.secrets():
            self.mask(secret)
        retrying = tenacity.Retrying(**call.tenacity(), sleep=self._sleep)
        with self._throttle.acquire(call), call.recorded():
            try:
                result = retrying(lambda: self._attempt(call))
            except WorkspaceRequestError as error:
                final = call.failure(error)
                raise final from (error.__cause__ if final is error else error)
        for secret in secrets_in(result):
            self.mask(secret)
        return result

    def run(self, procedure: Procedure[T]) -> T:
        """Carry a procedure out and return its result; see :mod:`airflow_provider_workspace.api.procedure`."""
        try:
            step = next(procedure)
            while True:
                if isinstance(step, Pause):
                    self._sleep(step.seconds)
                    step = procedure.send([])
                else:
                    step = procedure.send(self._send_all(step))
        except StopIteration as stop:
            result: T = stop.value
            return result

    def _send_all(self, step: Send) -> list[Any]:
        """Send operations, several at once, until one is refused as the others would be; return results and errors."""
        refused: list[WorkspaceRequestError] = []

        def send(op: Operation[Any]) -> Any:
            if refused:
                return refused[0]
            try:
                return self.send(op, looks_first=step.looks_first, note=step.note)
            except WorkspaceRequestError as error:
                if refuses_all(error):
                    refused.append(error)
                return error

        if len(step.operations) == 1:
            return [send(step.operations[0])]
        from concurrent.futures import ThreadPoolExecutor
        from contextvars import copy_context

        pool = ThreadPoolExecutor(self.settings.max_concurrency, thread_name_prefix="workspace")
        try:
            # Each thread traces and logs as this one does.
            return [sent.result() for sent in [pool.submit(copy_context().run, send, op) for op in step.operations]]
        finally:
            # A task that is stopped waits for what is under way, and sends no more.
            pool.shutdown(cancel_futures=True)

    def pages(self, op: Operation[Page[T]]) -> Iterator[Page[T]]:
        """Yield page after page of a list."""
        pages = Pages(op, self.settings.base_url)
        following: Operation[Page[T]] | None = op
        while following is not None:
            page = self.send(following)
            if pages.repeats(page):
                return
            yield page
            following = pages.following(page)

    def rows(self, op: Operation[Page[T]]) -> Iterator[T]:
        """Yield row after row of a list, holding one page at a time."""
        for page in self.pages(op):
            yield from page.results

    def _attempt(self, call: Call[T]) -> T:
        call.note()
        url = self.settings.base_url + call.request.target
        response = self._exchange(call, url)
        for _ in range(MAX_REDIRECTS):
            target = follow(call.op, response, url)
            if target is None:
                break
            url = target
            response = self._exchange(call, url)
        if response.request_id is not None:
            call.request_id = self._context.with_secrets_of(call.op).redacted(response.request_id)
        return parse_response(
            call.op,
            response,
            self._context,
            datetime.now(timezone.utc),
            may_have_been_applied=call.may_have_been_applied,
        )

    def _exchange(self, call: Call[Any], url: str) -> Response:
        prepared = _prepare(call.request.method, url, self._headers, call.request.body)
        verify = self.settings.verify is not False
        try:
            answer = self._adapter.send(prepared, timeout=self._timeout, verify=verify, proxies=self._proxies)
            body = answer.content
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            raise _failure(call.op, error, self._context) from error
        return Response(answer.status_code, answer.headers, body)


def _prepare(method: str, url: str, headers: dict[str, str], body: bytes | None) -> requests.PreparedRequest:
    """Fill a request by hand: ``api`` has encoded everything, and requests must not encode it once more."""
    prepared = requests.PreparedRequest()
    prepared.method = method
    prepared.url = url
    prepared.headers = CaseInsensitiveDict(headers)
    if body is not None:
        prepared.headers["Content-Type"] = "application/json"
        prepared.headers["Content-Length"] = str(len(body))
        prepared.body = body
    return prepared


def _failure(op: Operation[Any], error: Exception, context: RequestContext) -> WorkspaceRequestError:
    """Tell an exception before sending from one after it; in doubt, after."""
    reason: Any = error
    while True:
        inner = getattr(reason, "reason", None) or (reason.args[0] if getattr(reason, "args", None) else None)
        if not isinstance(inner, Exception):
            break
        reason = inner
    why = f"{type(reason).__name__}: {reason}"
    if _caused_by(error, (urllib3.exceptions.SSLError,)) and tls_refused(why):
        return not_sent(op, f"TLS failed, {why}", context, retryable=False)
    if isinstance(error, requests.exceptions.InvalidURL):
        return not_sent(op, why, context, retryable=False)
    # A ProxyError says little: urllib3 raises it also where an answer that comes through a proxy breaks off.
    if _caused_by(error, BEFORE_SENDING) or "Tunnel connection failed" in why:
        return not_sent(op, why, context)
    return transport_error(op, why, context, timeout=_caused_by(error, (urllib3.exceptions.ReadTimeoutError,)))


def _caused_by(error: BaseException, classes: tuple[type[BaseException], ...]) -> bool:
    """Look through the wrappers of requests and urllib3."""
    pending: list[Any] = [error]
    while pending:
        item = pending.pop()
        if isinstance(item, classes):
            return True
        pending += [
            part for part in (*getattr(item, "args", ()), getattr(item, "reason", None)) if isinstance(part, Exception)
        ]
    return False


class _Adapter(HTTPAdapter):
    """Uses the process's TLS context, instead of reading the authorities for each pool."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, ssl_context=self._context, **kwargs)

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        return super().proxy_manager_for(proxy, ssl_context=self._context, **kwargs)

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
        """Do nothing: the context holds the authorities."""
