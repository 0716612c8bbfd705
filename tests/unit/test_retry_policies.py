"""``WorkspaceRetryPolicy``: what Airflow does with a task after an error."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.errors import (
    WorkspaceAuthenticationError,
    WorkspaceConfigError,
    WorkspaceConnectionError,
    WorkspaceError,
    WorkspaceOutcomeUnknownError,
    WorkspaceRateLimitError,
    WorkspaceServerError,
)
from airflow_provider_workspace.operators.projects import WorkspaceGetProjectOperator
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.sensors.workspace import WorkspaceDomainVerifiedSensor
from airflow_provider_workspace.version_compat import AirflowFailException

if TYPE_CHECKING:
    from tests.conftest import Connect

policies = pytest.importorskip("airflow.sdk.definitions.retry_policy", reason="retry policies came with Airflow 3.3")

from airflow_provider_workspace.retry_policies import MAX_RESCHEDULES, WorkspaceRetryPolicy  # noqa: E402

looked_up = WorkspaceOutcomeUnknownError("maybe", operation="CreateProject")
looked_up.caller_looks_up = True
PERMANENT = [
    WorkspaceConfigError("wrong"),
    WorkspaceAuthenticationError("401", status=401),
    WorkspaceOutcomeUnknownError("maybe", operation="CreateProject"),
]
OTHERS = [
    WorkspaceConnectionError("refused", outcome="not_sent"),
    looked_up,
    WorkspaceRateLimitError("429", status=429, retryable=True),
    ValueError("of somebody else"),
]
WITH_RETRY_AFTER = [
    WorkspaceRateLimitError("429", status=429, retryable=True, retry_after=3600),
    WorkspaceServerError("503", status=503, outcome="unknown", retryable=True, retry_after=3600),
]


def decide(error: BaseException, reschedules: int = MAX_RESCHEDULES) -> Any:
    """Return the decision for an error; by default no reschedules are left."""
    return WorkspaceRetryPolicy().evaluate(error, 1, 3, {"task_reschedule_count": reschedules})


def wrapped(error: WorkspaceError) -> RuntimeError:
    """Return another error with this one as its cause, as a ``@task`` function may raise it."""
    other = RuntimeError("of a task")
    other.__cause__ = error
    return other


def test_permanent_errors_fail_and_others_use_the_retries_of_the_task() -> None:
    for error in PERMANENT:
        assert decide(error).action is decide(wrapped(error)).action is policies.RetryAction.FAIL, error
    for other in OTHERS:
        assert decide(other) == policies.RetryDecision.default(), other


@pytest.mark.parametrize("error", WITH_RETRY_AFTER, ids=lambda error: type(error).__name__)
def test_retry_after_is_honoured_with_jitter(error: WorkspaceError) -> None:
    decisions = [decide(raised) for raised in (error, wrapped(error)) for _ in range(50)]
    assert {decision.action for decision in decisions} == {policies.RetryAction.RETRY}
    assert all(timedelta(seconds=3600) <= decision.retry_delay <= timedelta(seconds=3960) for decision in decisions)
    assert len({decision.retry_delay for decision in decisions}) > 90


@pytest.mark.needs_airflow("3.4", "a retry policy that reschedules")
@pytest.mark.parametrize("error", WITH_RETRY_AFTER, ids=lambda error: type(error).__name__)
def test_retry_after_uses_no_retry_up_to_a_maximum(error: WorkspaceError) -> None:
    first, last = decide(error, 0), decide(error, MAX_RESCHEDULES - 1)
    assert {first.action, last.action} == {policies.RetryAction.RESCHEDULE}
    assert first.max_reschedules == MAX_RESCHEDULES
    assert timedelta(seconds=3600) <= first.retry_delay <= timedelta(seconds=3960)
    assert decide(error, MAX_RESCHEDULES).action is policies.RetryAction.RETRY
    assert WorkspaceRetryPolicy().evaluate(error, 1, 3).action is policies.RetryAction.RESCHEDULE


class AuthorPolicy(policies.RetryPolicy):  # type: ignore[misc,name-defined]
    """A policy of a Dag author."""

    def evaluate(self, *_: object, **__: object) -> Any:
        """Return the default decision."""
        return policies.RetryDecision.default()


def test_operators_have_the_retry_policy_which_survives_serialization() -> None:
    policy = WorkspaceRetryPolicy()
    assert WorkspaceRetryPolicy.deserialize(policy.serialize()) == policy
    assert WorkspaceGetProjectOperator(task_id="t", project_id=1).retry_policy == WorkspaceRetryPolicy()
    assert WorkspaceDomainVerifiedSensor(task_id="t", domain_id="d").retry_policy == WorkspaceRetryPolicy()


def test_the_retry_policy_of_an_author_is_kept(connect: Connect) -> None:
    connect(key="revoked")
    task = WorkspaceGetProjectOperator(task_id="t", project_id=1, retry_policy=AuthorPolicy())
    sensor = WorkspaceDomainVerifiedSensor(task_id="s", domain_id=SEED.domain_id, retry_policy=AuthorPolicy())
    for kept in (task, sensor):
        assert isinstance(kept.retry_policy, AuthorPolicy)
        with pytest.raises(WorkspaceAuthenticationError):
            kept.execute({})
    with pytest.raises(AirflowFailException, match="WorkspaceAuthenticationError"):
        WorkspaceGetProjectOperator(task_id="t", project_id=1).execute({})


@pytest.mark.needs_airflow("3.4", "chains of retry policies")
def test_a_chain_of_policies_is_evaluated_in_order(connect: Connect) -> None:
    """The error must reach the chain, so that an author's policy before ours decides first."""
    connect(key="revoked")
    chain = policies.ChainRetryPolicy([AuthorPolicy(), WorkspaceRetryPolicy()])
    task = WorkspaceGetProjectOperator(task_id="t", project_id=1, retry_policy=chain)
    with pytest.raises(WorkspaceAuthenticationError) as raised:
        task.execute({})
    assert chain.evaluate(raised.value, 1, 3).action is policies.RetryAction.FAIL
