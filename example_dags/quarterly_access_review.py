"""
Review every quarter who has access: a person decides about everybody, and the evidence is kept.

The first task reads all members and open invites. The second asks a reviewer, under **Required Actions**, who is
removed or lowered. What they decided is done, and read back. Everything is in one folder per review, with a page for
auditors: `review.md`. **Nobody is decided by silence**: without an answer the run fails, and the evidence says so.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from airflow.sdk import Param, dag

from airflow_provider_workspace.task_groups import access_review


@dag(
    schedule="0 6 1 1,4,7,10 *",
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
    tags=["workspace", "example"],
    doc_md=__doc__,
    params={
        "evidence": Param(
            "/var/lib/airflow/access-reviews",
            type="string",
            title="Evidence",
            description="Folder of all reviews: on a disk that all workers share, or the URL of an object store.",
        ),
        "reviewers": Param(
            ["olivia", "adam"],
            type="array",
            items={"type": "string"},
            title="Reviewers",
            description="Ids of the Airflow users who may decide; one of them is enough.",
        ),
    },
)
def quarterly_access_review() -> None:
    """Read, ask, apply, prove."""
    # [START howto_access_review]
    access_review(
        evidence="{{ params.evidence }}",
        reviewers="{{ params.reviewers | tojson }}",
        review_timeout=timedelta(days=14),
        protected=["olive.owner@example.com"],  # whose API key the connection holds
        max_removals="10 or 30%",
    )
    # [END howto_access_review]


quarterly_access_review()
