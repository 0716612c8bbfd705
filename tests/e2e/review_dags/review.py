"""A Dag for `test_access_review.py`: an access review whose evidence, reviewers and time the run says."""

from __future__ import annotations

from airflow.sdk import DAG, Param

from airflow_provider_workspace.task_groups import access_review

PARAMS = {
    "evidence": Param("", type="string"),
    "reviewers": Param(["ruth"], type="array"),
    "seconds": Param(600, type="integer"),
}

with DAG("review", schedule=None, params=PARAMS, render_template_as_native_obj=True):
    access_review(
        evidence="{{ params.evidence }}",
        reviewers="{{ params.reviewers }}",
        review_timeout="{{ params.seconds }}",
        protected=["olive.owner@example.com"],
        max_removals=None,
        retry_delay=2,
        retry_exponential_backoff=False,
    )
