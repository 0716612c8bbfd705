"""One call of either client: its state across attempts, and the arguments for tenacity."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import tenacity
from opentelemetry import trace
from opentelemetry.trace import SpanKind

from airflow_provider_workspace import __version__
from airflow_provider_workspace.api.comparison import printable
from airflow_provider_workspace.api.models import Page, Resource
from airflow_provider_workspace.api.outcome import Outcome, is_in_doubt
from airflow_provider_workspace.api.request_errors import final_error
from airflow_provider_workspace.errors import WorkspaceRateLimitError, WorkspaceRequestError

if TYPE_CHECKING:
    from tenacity import RetryCallState

    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.api.retry import RetryPolicy

T = TypeVar("T")

log = logging.getLogger(__name__)
# Gets a line for each write.
audit = logging.getLogger("airflow_provider_workspace.audit")
# Does nothing unless tracing is enabled in Airflow.
tracer = trace.get_tracer("airflow_provider_workspace", __version__)

MAX_REDIRECTS = 5


class Call(Generic[T]):
    """
    The attempts to send one operation.

    :param op: operation to send
    :param policy: retry policy
    :param caller_looks_up: whether the caller looks up a lost write before it sends it again
    :param note: called before each attempt
    """

    def __init__(
        self,
        op: Operation[T],
        policy: RetryPolicy,
        *,
        caller_looks_up: bool = False,
        note: Callable[[], object] | None = None,
    ) -> None:
        self.op = op
        self.policy = policy
        self.caller_looks_up = caller_looks_up
        self.note = note or (lambda: None)
        self.request = op.request()
        self.may_have_been_applied = False
        self.attempts = 0
        self.begun = False
        self.throttled = False
        """Whether the response to an attempt was 429."""
        self.request_id: str | None = None
        """Request id of the last response."""

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Trace the call, and log a line at its end if it is a write."""
        began = time.monotonic()
        outcome = Outcome.UNKNOWN.value
        name, method = type(self.op).__name__, self.request.method
        target = self.request.target.partition("?")[0]
        attributes = {"http.request.method": method, "url.path": target}
        with tracer.start_as_current_span(f"workspace {name}", kind=SpanKind.CLIENT, attributes=attributes) as span:
            try:
                yield
                outcome = Outcome.APPLIED.value
            except WorkspaceRequestError as error:
                outcome = error.outcome
                raise
            finally:
                attempts = max(1, self.attempts)
                span.set_attributes({"workspace.outcome": outcome, "http.request.resend_count": attempts - 1})
                if method != "GET" and self.begun:
                    seconds = time.monotonic() - began
                    # The path is last, because Airflow's log page cuts long lines.
                    line = "operation=%s outcome=%s rows=%d attempts=%d seconds=%.3f request_id=%s target=%s"
                    request_id = "".join(printable(self.request_id or "-").split())[:100]
                    audit.info(line, name, outcome, self.op.rows, attempts, seconds, request_id, target)

    def begin_attempt(self, before_write: Callable[[], None]) -> None:
        """Ask whether a write may still be sent, and note that it is."""
        if self.request.method != "GET":
            before_write()
        self.begun = True
        self.note()

    def tenacity(self) -> dict[str, Any]:
        """Return the arguments for ``Retrying`` and ``AsyncRetrying``."""
        return {
            "retry": self.should_retry,
            "wait": self.seconds_to_wait,
            "stop": tenacity.stop_after_attempt(self.policy.max_attempts),
            "before_sleep": self.log_retry,
            "reraise": True,
        }

    def should_retry(self, state: RetryCallState) -> bool:
        """Return whether to send again, and remember whether the write may have been applied."""
        self.attempts = state.attempt_number
        error = state.outcome.exception() if state.outcome else None
        if error is None:
            return False
        if is_in_doubt(error):
            self.may_have_been_applied = True
        if isinstance(error, WorkspaceRateLimitError):
            self.throttled = True
            if self.op.endpoint.refusals_count:
                return False
        return self.policy.permits(error, repeatable=self.op.endpoint.repeatable)

    def seconds_to_wait(self, state: RetryCallState) -> float:
        """Return the seconds to wait before the next attempt."""
        error = state.outcome.exception() if state.outcome else None
        # Jitter, not cryptography.
        return self.policy.wait(state.attempt_number, getattr(error, "retry_after", None), random.random())  # noqa: S311

    def log_retry(self, state: RetryCallState) -> None:
        """Log why and when the next attempt is made."""
        error = state.outcome.exception() if state.outcome else None
        pause = state.next_action.sleep if state.next_action else 0.0
        attempts = self.policy.max_attempts
        log.warning("Attempt %d of %d failed, retrying in %.1f s: %s", self.attempts, attempts, pause, error)

    def failure(self, error: WorkspaceRequestError) -> WorkspaceRequestError:
        """Return the error to raise after the last attempt."""
        return final_error(
            self.op,
            error,
            max(1, self.attempts),
            may_have_been_applied=self.may_have_been_applied,
            caller_looks_up=self.caller_looks_up,
        )


def secrets_in(result: object) -> Iterator[str]:
    """Yield the secrets in a result, for the log masker."""
    resources = result.results if isinstance(result, Page) else result if isinstance(result, list) else [result]
    for resource in resources:
        # An unknown field may contain a secret. Most members and invites have neither kind, so they are skipped.
        if isinstance(resource, Resource) and (resource.holds_secrets or resource.model_extra):
            yield from resource.secrets()
