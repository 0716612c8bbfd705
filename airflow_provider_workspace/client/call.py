"""One call of either client: what is kept from attempt to attempt, and the arguments both hand to tenacity."""

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
from airflow_provider_workspace.api.models import Page, Resource
from airflow_provider_workspace.api.outcome import Outcome
from airflow_provider_workspace.api.request_errors import final_error
from airflow_provider_workspace.errors import WorkspaceRateLimitError, WorkspaceRequestError

if TYPE_CHECKING:
    from tenacity import RetryCallState

    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.api.retry import RetryPolicy

T = TypeVar("T")

log = logging.getLogger(__name__)
# A line for each write, so that what a task did to a workspace can be found.
audit = logging.getLogger("airflow_provider_workspace.audit")
# Does nothing unless Airflow, which brings the library, has tracing switched on.
tracer = trace.get_tracer("airflow_provider_workspace", __version__)

MAX_REDIRECTS = 5


class Call(Generic[T]):
    """
    The attempts at one operation.

    :param op: what is asked
    :param policy: when to ask again
    :param caller_looks_up: whether the caller looks for the effect of a lost write before it sends again
    :param note: called right before each attempt
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
        self.throttled = False
        """Whether an attempt was answered with 429."""
        self.request_id: str | None = None
        """What the service calls the request that was answered last."""

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Trace the call if Airflow traces, and when it is over log a line if it was a write."""
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
                if method != "GET":
                    seconds = time.monotonic() - began
                    # The path comes last, for a log page cuts long lines at the right.
                    line = "operation=%s outcome=%s rows=%d attempts=%d seconds=%.3f request_id=%s target=%s"
                    request_id = _printable(self.request_id)
                    audit.info(line, name, outcome, self.op.rows, attempts, seconds, request_id, target)

    def tenacity(self) -> dict[str, Any]:
        """Return the arguments that tenacity's two loops share."""
        return {
            "retry": self.should_retry,
            "wait": self.seconds_to_wait,
            "stop": tenacity.stop_after_attempt(self.policy.max_attempts),
            "before_sleep": self.log_retry,
            "reraise": True,
        }

    def should_retry(self, state: RetryCallState) -> bool:
        """Tell tenacity whether to send once more, and remember whether the write may be done already."""
        self.attempts = state.attempt_number
        error = state.outcome.exception() if state.outcome else None
        if error is None:
            return False
        if isinstance(error, WorkspaceRequestError) and error.outcome == Outcome.UNKNOWN.value:
            self.may_have_been_applied = True
        if isinstance(error, WorkspaceRateLimitError):
            self.throttled = True
            if self.op.endpoint.refusals_count:
                return False
        return self.policy.permits(error, repeatable=self.op.endpoint.repeatable)

    def seconds_to_wait(self, state: RetryCallState) -> float:
        """Tell tenacity how many seconds to wait."""
        error = state.outcome.exception() if state.outcome else None
        # Jitter, not cryptography.
        return self.policy.wait(state.attempt_number, getattr(error, "retry_after", None), random.random())  # noqa: S311

    def log_retry(self, state: RetryCallState) -> None:
        """Log why there will be another attempt, and when."""
        error = state.outcome.exception() if state.outcome else None
        pause = state.next_action.sleep if state.next_action else 0.0
        attempts = self.policy.max_attempts
        log.warning("Attempt %d of %d failed, retrying in %.1f s: %s", self.attempts, attempts, pause, error)

    def failure(self, error: WorkspaceRequestError) -> WorkspaceRequestError:
        """Return the error to raise in the end."""
        return final_error(
            self.op,
            error,
            max(1, self.attempts),
            may_have_been_applied=self.may_have_been_applied,
            caller_looks_up=self.caller_looks_up,
        )


def _printable(request_id: str | None) -> str:
    """Return the identifier of a request as one word of a log line."""
    return "".join(char for char in request_id or "-" if char.isprintable() and not char.isspace())[:100]


def secrets_in(result: object) -> Iterator[str]:
    """Yield every secret of an answer, for the log masker."""
    resources = result.results if isinstance(result, Page) else result if isinstance(result, list) else [result]
    for resource in resources:
        # What no field of the interface holds, an unknown field may. Members and invites by the thousand have neither.
        if isinstance(resource, Resource) and (resource.holds_secrets or resource.model_extra):
            yield from resource.secrets()
