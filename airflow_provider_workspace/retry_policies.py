"""Airflow's retries of a task, decided by the error. Airflow 3.3 and newer; older ones use the task's own settings."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import RetryDecision, RetryPolicy

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_workspace.errors import WorkspaceError

# Tasks that were asked to come back at the same moment do so over this part of their wait, and over a second at least.
SPREAD = 0.1
# How often a try may come back without using up a retry, where Airflow can do that (3.4).
MAX_RESCHEDULES = 10


class WorkspaceRetryPolicy(RetryPolicy):
    """
    Fails at once what no retry can mend, and comes back when the service said.

    A permanent error (400, 401, 403, 404, 405, a wrong connection, a write that nobody looks up) fails the task. After
    an answer with ``Retry-After`` (429, 503) the task runs again when that time is over. On Airflow 3.4 that uses up no
    retry, ten times in each try, and a task without retries comes back as well. Everything else is up to the task's
    own ``retries`` and ``retry_delay``.

    Operators and sensors of this package have it unless their author gives another ``retry_policy``. A task of your own
    that uses the hook can have it as well: ``@task(retries=3, retry_policy=WorkspaceRetryPolicy())``.
    """

    def evaluate(
        self,
        exception: BaseException,
        try_number: int,  # noqa: ARG002
        max_tries: int,  # noqa: ARG002
        context: Context | None = None,
    ) -> RetryDecision:
        """Decide what becomes of the task."""
        error = _workspace_error(exception)
        if error is None:
            return RetryDecision.default()
        if error.permanent:
            return RetryDecision.fail(reason=f"{type(error).__name__}: a retry fails the same way, or does it twice")
        if error.retry_after is None:
            return RetryDecision.default()
        # Jitter, not cryptography.
        seconds = error.retry_after + random.random() * max(1.0, SPREAD * error.retry_after)  # noqa: S311
        delay, reason = timedelta(seconds=seconds), f"The service asked to come back in {error.retry_after:.0f} s"
        decision: RetryDecision = RetryDecision.retry(delay, reason)
        # At the bound Airflow would retry after the task's own delay: so the bound is kept here.
        reschedule = getattr(RetryDecision, "reschedule", None)
        if reschedule is not None and _reschedules(context) < MAX_RESCHEDULES:
            decision = reschedule(delay, max_reschedules=MAX_RESCHEDULES, reason=reason)
        return decision

    def serialize(self) -> dict[str, Any]:
        """Return plain JSON: there is nothing to set."""
        return {}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> WorkspaceRetryPolicy:  # noqa: ARG003
        """Return the policy."""
        return cls()

    # By hand: making a dataclass would cost every Dag file more than the rest of this module.
    def __eq__(self, other: object) -> bool:
        """Compare: all are alike."""
        return isinstance(other, WorkspaceRetryPolicy)

    def __hash__(self) -> int:
        """All are alike."""
        return hash(WorkspaceRetryPolicy)


def _reschedules(context: Context | None) -> int:
    """Return how often this try was rescheduled before."""
    count: int = (context or {}).get("task_reschedule_count", 0)
    return count


def _workspace_error(exception: BaseException | None) -> WorkspaceError | None:
    """Return the error of this package that an exception is, or that caused it."""
    from airflow_provider_workspace.errors import WorkspaceError

    while exception is not None and not isinstance(exception, WorkspaceError):
        exception = exception.__cause__
    return exception
