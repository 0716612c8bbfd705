"""The link from a task to what it made or changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class WorkspaceLink(BaseOperatorLink):
    """Leads to what the task made or changed: its page for people if ``web_url`` is set, else its API address."""

    @property
    def name(self) -> str:
        """Name of the link, as the button shows it."""
        return "Workspace"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002
        """Return the address that the operator left when it ran; empty if there is none."""
        return str(getattr(operator, "workspace_url", ""))
