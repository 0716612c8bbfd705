"""Endpoints of an author: one that only a service has, and some that the interface has as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from airflow_provider_workspace.api.models import Page, Resource
from airflow_provider_workspace.api.operation import Cursor, Limit, Offset, Operation, endpoint
from airflow_provider_workspace.sandbox.seed import SEED

if TYPE_CHECKING:
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook


class BatchExport(Resource):
    """A batch export."""

    id: str | None = None
    name: str | None = None
    paused: bool | None = None


class Project(Resource):
    """A project."""

    id: int | None = None
    name: str | None = None
    zone: str | None = Field(default=None, alias="timezone")
    api_token: str | None = None


@endpoint("GET", "/organizations/{organization_id}/batch_exports/", scope="batch_export:read", repeatable=True)
class ListBatchExports(Operation[Page[BatchExport]]):
    """List the batch exports of an organization."""

    organization_id: str
    limit: Limit = None
    offset: Offset = None


@endpoint("GET", "/organizations/{organization_id}/batch_exports/", scope="batch_export:read", repeatable=True)
class ListFewExports(Operation[list[BatchExport]]):
    """List the batch exports of an organization that needs no pages."""

    organization_id: str
    limit: Limit = None


@endpoint("GET", "/organizations/{organization_id}/batch_exports/", scope="batch_export:read", repeatable=True)
class ListExportsByCursor(Operation[Page[BatchExport]]):
    """List the batch exports of an organization by the links of its pages."""

    organization_id: str
    limit: Limit = None
    cursor: Cursor = None


@endpoint("GET", "/organizations/{organization_id}/projects/{id}/", scope="project:read", repeatable=True)
class ReadProject(Operation[Project]):
    """Read a project."""

    organization_id: str
    project: int = Field(alias="id")


@endpoint(
    "POST",
    "/organizations/{organization_id}/projects/",
    scope="project:write",
    repeatable=False,
    effect="create",
    recover="none",
    look_for="Look for the project before you create it again.",
)
class AddProject(Operation[Project]):
    """Create a project."""

    organization_id: str
    title: str = Field(serialization_alias="name")
    zone: str | None = Field(default=None, alias="timezone")
    hook: str | None = Field(default=None, alias="slack_incoming_webhook")


@endpoint("DELETE", "/organizations/{organization_id}/invites/{id}/", scope=None, repeatable=True)
class RemoveInvite(Operation[None]):
    """Delete an invite."""

    organization_id: str
    id: str


@endpoint(
    "DELETE",
    "/organizations/{organization_id}/invites/{access_token}/",
    scope=None,
    repeatable=False,
    recover="none",
    look_for="Look for the invite before you delete it again.",
)
class WithdrawInvite(Operation[None]):
    """Delete an invite, once; its id is the token of its link."""

    organization_id: str
    access_token: str


@endpoint("GET", "/organizations/{organization_id}/invites/{access_token}/", scope=None, repeatable=True)
class ReadInvite(Operation[Project]):
    """Read an invite by its secret."""

    organization_id: str
    access_token: str


# What ``scripted`` shows, one after the other; the last one stays.
SCRIPT: list[Any] = []


def scripted(hook: WorkspaceHook, batch_export_id: str) -> Any:
    """Show what the script says of an export; a function is called, and an error raised."""
    assert batch_export_id in SEED.batch_export_ids
    assert hook.organization_or_default() == SEED.organization_id
    shown = SCRIPT.pop(0) if len(SCRIPT) > 1 else SCRIPT[0]
    if isinstance(shown, BaseException):
        raise shown
    return shown() if callable(shown) else shown


class ProjectAccess(Resource):
    """What a member has in the projects."""

    user_uuid: str
    projects: dict[str, int]


@endpoint(
    "GET",
    "/organizations/{organization_id}/members/project_access/",
    scope="organization_member:read",
    repeatable=True,
)
class ListProjectAccess(Operation[Page[ProjectAccess]]):
    """List what the members have in the projects."""

    organization_id: str
    limit: Limit = None
    offset: Offset = None


def project_access(hook: WorkspaceHook) -> dict[str, dict[str, int]]:
    """Return the levels by project, for an access review."""
    rows = hook.client.rows(ListProjectAccess(organization_id=hook.organization_or_default(None)))
    return {row.user_uuid: row.projects for row in rows}


def odd_project_access(hook: WorkspaceHook) -> list[str]:
    """Return something else."""
    return [hook.client.settings.base_url]
