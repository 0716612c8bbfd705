"""
Calls of the asynchronous hook, whose methods are made from those of the other one. ``make lint`` type-checks this file.

Lines that must be errors have an ignore comment, and mypy warns about unused ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import assert_type

from airflow_provider_workspace.api.models import Dashboard, Member

if TYPE_CHECKING:
    from airflow_provider_workspace.hooks.workspace import WorkspaceAsyncHook


async def calls(hook: WorkspaceAsyncHook) -> None:
    assert_type(await hook.create_dashboard(project_id=1, name="Sales"), Dashboard)
    await hook.create_dashboard(nme="Sales")  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    await hook.get_dashboard(dashboard_id=[])  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    assert_type([row async for row in hook.list_members(limit=5)], list[Member])
    assert_type(await hook.organization_or_default("1"), str)
