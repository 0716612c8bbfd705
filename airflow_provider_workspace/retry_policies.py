"""A retry policy for tasks, which decides by the error; needs Airflow 3.3."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import RetryDecision, RetryPolicy

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_workspace.errors import WorkspaceError

# Jitter, as a part of the delay and at least a second, so that delayed tasks do not retry together.
SPREAD = 0.1
# Maximum number of reschedules of a try that use up no retry (Airflow 3.4).
MAX_RESCHEDULES = 10


class WorkspaceRetryPolicy(RetryPolicy):
    """
    Fails a task without retries after a permanent error, and respects ``Retry-After``.

    Permanent errors are 400, 401, 403, 404, 405, an invalid connection, and a create with an unknown outcome that is
    not looked up. After an answer with ``Retry-After`` (429, 503) the task is retried when that time is over. On
    Airflow 3.4 this uses up no retry, up to ten times in each try, and also works for a task without retries. After any
    other error the ``retries`` and ``retry_delay`` of the task apply.

    Operators and sensors of this package use it unless they are given another ``retry_policy``. Tasks that use the hook
    can use it as well: ``@task(retries=3, retry_policy=WorkspaceRetryPolicy())``.
    """

    def evaluate(
        self,
        exception: BaseException,
        try_number: int,  # noqa: ARG002
        max_tries: int,  # noqa: ARG002
        context: Context | None = None,
    ) -> RetryDecision:
        error = _workspace_error(exception)
        if error is None:
            return RetryDecision.default()
        if error.permanent:
            return RetryDecision.fail(
                reason=f"{type(error).__name__}: a retry would fail the same way, or repeat a write"
            )
        if error.retry_after is None:
            return RetryDecision.default()
        # Jitter, not cryptography.
        seconds = error.retry_after + random.random() * max(1.0, SPREAD * error.retry_after)  # noqa: S311
        delay, reason = timedelta(seconds=seconds), f"The service asked to come back in {error.retry_after:.0f} s"
        decision: RetryDecision = RetryDecision.retry(delay, reason)
        # The maximum is checked here, because Airflow would ignore the delay once it is reached.
        reschedule = getattr(RetryDecision, "reschedule", None)
        rescheduled = (context or {}).get("task_reschedule_count", 0)
        if reschedule is not None and rescheduled < MAX_RESCHEDULES:
            decision = reschedule(delay, max_reschedules=MAX_RESCHEDULES, reason=reason)
        return decision

    def serialize(self) -> dict[str, Any]:
        """Return plain JSON: the policy has no parameters."""
        return {}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> WorkspaceRetryPolicy:  # noqa: ARG003
        return cls()

    # Not a dataclass, whose creation would cost every Dag file more than the rest of this module.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, WorkspaceRetryPolicy)

    def __hash__(self) -> int:
        return hash(WorkspaceRetryPolicy)


def _workspace_error(exception: BaseException | None) -> WorkspaceError | None:
    """Return the exception, or the cause of it, that is an error of this package."""
    from airflow_provider_workspace.errors import WorkspaceError

    while exception is not None and not isinstance(exception, WorkspaceError):
        exception = exception.__cause__
    return exception
