"""
The sweep: one task that ends what is due.

A Dag with it, scheduled every few minutes, serves all windows, grants and connections of an Airflow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.operators.arguments import NEEDED, PROTECTED_ROWS, SWITCH, Arg, arg, choices
from airflow_provider_workspace.operators.base import WorkspaceWriteOperator
from airflow_provider_workspace.version_compat import AirflowFailException

if TYPE_CHECKING:
    from airflow.sdk import ObjectStoragePath

    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.notes.due_notes import Due, Ended

# What has an end, in the order in which it is swept: exports that stay paused lose data.
KINDS = ("windows", "grants")


class WorkspaceSweepOperator(WorkspaceWriteOperator):
    """
    End what is due: maintenance windows that Airflow cannot close, and temporary access that is over.

    Scopes ``batch_export:write`` for windows, ``organization_member:write`` and ``organization_member:read`` for
    grants. Each window and each grant names its connection. A problem with one kind, connection or person stops no
    other, and fails the task at its end.

    - **Windows**: resumes the exports of abandoned windows. A window is abandoned if its run is over or deleted, if its
      closing task was skipped, removed or has failed, if it is overdue, or if its work has ended and its closing task
      has not begun five minutes later. A window at work is never closed, and an export that another window holds stays
      paused.
    - **Grants**: gives people back the level that they had before, removes those who were not members, and withdraws
      open invites; then it reads the lists again. A level that somebody changed meanwhile is left. Nobody keeps
      more than an access review decided.

    The result has an entry for each kind, ``{"windows": {"windows": [{"window", "state", "why", "resumed", "held",
    "failed", …}], "unreadable": {variable: error}}, "grants": {"ended": [...], "left": [...], "active": number}}``. A
    task that fails pushes the same; a kind that could not be read is not in it.

    :param kinds: what to end
    :type kinds: ``list`` of ``"windows"``, ``"grants"``
    :param protected: rows or addresses of members who are never lowered or removed, such as the owner of the
        connection's API key. If access of one of them is over, the task fails
    :param fail_if_any: whether the task fails after it has closed a window, so that its notifiers are called.
        Otherwise, it logs a warning
    :param evidence: folder for a file about each grant that ended: an absolute path on a disk that all workers share,
        or the URL of an object store, such as ``s3://conn_id@bucket/temporary-access``. If a file cannot be written,
        the task fails, and the next run writes it
    """

    resource_kind = "batch_export"
    has_own_dry_run = True
    kinds: Arg[Sequence[str]] = arg(choices(*KINDS), default=KINDS)
    protected: Arg[Sequence[Mapping[str, Any] | Sequence[Any] | str]] = arg(PROTECTED_ROWS, default=())
    fail_if_any: Arg[bool] = arg(SWITCH, default=True)
    evidence: Arg[ObjectStoragePath | str | None] = arg(NEEDED, default=None)

    def work(self, hook: WorkspaceHook) -> dict[str, Any]:  # noqa: ARG002 - each note names its connection
        from airflow_provider_workspace.errors import with_problem
        from airflow_provider_workspace.notes.due_notes import end_all, failure_of, reports_of

        self._journal = None
        ends = end_all(self.due(), dry_run=self.is_dry_run)
        for ended in ends:
            self.log_end(ended)
        reports = reports_of(ends, dry_run=self.is_dry_run)
        failure = failure_of(ends)
        alarms = [
            with_problem(f"{ended.kind}: {ended.alarm}", otherwise="window-abandoned") for ended in ends if ended.alarm
        ]
        if self.fail_if_any and alarms:
            self.push_xcom("return_value", reports)
            # Not for a retry, which would find the windows closed, and succeed.
            raise AirflowFailException("\n".join([*alarms, str(failure or "")]).strip())
        if failure:
            self.push_xcom("return_value", reports)
            raise failure
        return reports

    def due(self) -> list[Due]:
        """Return what to end, in order."""
        from airflow_provider_workspace.access.grants import notes as grants
        from airflow_provider_workspace.access.grants.notes import GrantRegistry
        from airflow_provider_workspace.access.grants.overdue_grants import OverdueGrants
        from airflow_provider_workspace.access.reviews import notes as decisions
        from airflow_provider_workspace.access.reviews.notes import ReviewRegistry
        from airflow_provider_workspace.operators.windows import lease_registry
        from airflow_provider_workspace.windows.sweep import AbandonedWindows

        due: list[Due] = []
        if "windows" in self.kinds:
            identity, try_number = self.try_identity()
            due.append(AbandonedWindows(lease_registry(), f"{identity}#{try_number}"))
        if "grants" in self.kinds:
            ti_id = getattr(self._context.get("ti"), "id", None)
            writer = str(ti_id) if ti_id else ""
            reviews = ReviewRegistry(decisions.REVIEW_VARIABLES)
            ended_by, _ = self.try_identity()
            overdue = OverdueGrants(
                GrantRegistry(grants.GRANT_VARIABLES),
                reviews,
                self.protected,
                writer=writer,
                evidence=self.evidence,
                ended_by=ended_by,
                journal=self.journal,
            )
            due.append(overdue)
        return due

    def log_end(self, ended: Ended) -> None:
        """Log what became of a kind; an error, and an alarm that fails the task, are in its exception."""
        if ended.alarm and not self.fail_if_any:
            self.log.warning("%s: %s", ended.kind, ended.alarm)
        elif not ended.error:
            lines = "\n".join(ended.lines)
            self.log.info("%s: %s", ended.kind, lines or "nothing is due.")
