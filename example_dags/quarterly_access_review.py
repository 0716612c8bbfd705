"""
Review every quarter who has access: a person decides about each member, and the evidence is kept.

1. The first task reads all members and open invites.
2. The second asks a reviewer, under **Required Actions**, whom to remove or lower.
3. The next ones apply the decisions and read back the result.

Each review has a folder with its evidence, and `review.md` in it is a page for auditors. **A missing answer is never a
decision**: without one the run fails, and the evidence says so.

When the Dag is unpaused, Airflow starts the run of the last quarter, even with `catchup=False`. `is_due` skips it.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from airflow.sdk import Param, dag, task

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
            description="Folder of all reviews, on a disk that all workers share, or in an object store (its URL).",
        ),
        "reviewers": Param(
            ["olivia", "adam"],
            type="array",
            items={"type": "string"},
            title="Reviewers",
            description="Ids of the Airflow users who may decide. The answer of one is enough.",
        ),
    },
)
def quarterly_access_review() -> None:
    """Read, ask, apply, prove."""

    # [START howto_skip_late_review]
    @task.short_circuit(task_display_name="Skip a late start", ignore_downstream_trigger_rules=False)
    def is_due(dag_run: Any = None) -> bool:
        """Skip a run that was due long ago, which Airflow starts when the Dag is unpaused."""
        return datetime.now(timezone.utc) - dag_run.run_after < timedelta(days=7)

    # [END howto_skip_late_review]

    review = access_review(
        evidence="{{ params.evidence }}",
        reviewers="{{ params.reviewers | tojson }}",
        review_timeout=timedelta(days=14),
        protected=["olive.owner@example.com"],  # owns the API key of the connection
        max_removals="10 or 30%",
    )
    is_due() >> review


quarterly_access_review()
