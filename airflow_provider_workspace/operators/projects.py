"""Operators for the projects of an organization."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_workspace.operators.base import (
    WorkspaceOperator,
    WorkspaceOrganizationListOperator,
    WorkspaceWriteOperator,
)

if TYPE_CHECKING:
    from airflow.sdk import XComArg

    from airflow_provider_workspace.api.models import ProjectItem
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook

# The fields of section "Fields accepted on project creation" that are arguments of their own.
FREQUENT = ("name", "product_description", "timezone", "app_urls", "is_demo", "anonymize_ips", "access_control")


class WorkspaceListProjectsOperator(WorkspaceOrganizationListOperator):
    """
    List the projects of an organization. Scope ``project:read``.

    :param organization_id: organization; by default that of the connection
    """

    resource_kind = "projects"
    row_model = "ProjectItem"

    def rows(self, hook: WorkspaceHook) -> Iterable[ProjectItem]:
        return hook.list_projects(organization_id=self.organization_id)


class WorkspaceCreateProjectOperator(WorkspaceWriteOperator):
    """
    Create a project. Scopes ``project:write`` and, for the look-up, ``project:read``.

    The service does not require unique names, so the task looks the name up before and after the create. If another
    task creates a project of the same name at the same time, the task fails and names both. Names are compared
    regardless of the number of blanks and of the Unicode form.

    :param name: name of the project
    :param organization_id: organization; by default that of the connection
    :param if_exists: ``return`` an existing project of this name, or ``fail``
    :param product_description: description of the product
    :param timezone: time zone of the project, such as ``Europe/Berlin``
    :param app_urls: URLs of the product
    :param is_demo: whether the project holds demonstration data
    :param anonymize_ips: whether IP addresses are anonymized
    :param access_control: whether access is controlled
    :param settings: any other field of section "Fields accepted on project creation", by its name there
    """

    template_fields: Collection[str] = ("workspace_conn_id", "organization_id", *FREQUENT, "settings")
    resource_kind = "project"

    def __init__(
        self,
        *,
        name: str | XComArg,
        organization_id: str | XComArg | None = None,
        if_exists: Literal["return", "fail"] = "return",
        product_description: str | XComArg | None = None,
        timezone: str | XComArg | None = None,
        app_urls: list[str] | XComArg | None = None,
        is_demo: bool | XComArg | None = None,
        anonymize_ips: bool | XComArg | None = None,
        access_control: bool | XComArg | None = None,
        settings: Mapping[str, Any] | XComArg | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.name: Any = name
        self.organization_id: Any = organization_id
        self.if_exists = if_exists
        self.product_description: Any = product_description
        self.timezone: Any = timezone
        self.app_urls: Any = app_urls
        self.is_demo: Any = is_demo
        self.anonymize_ips: Any = anonymize_ips
        self.access_control: Any = access_control
        self.settings: Any = settings

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.api.operations.projects import CreateProject

        organization_id = hook.organization_or_default(self.organization_id)
        fields = {**self.parse_fields("settings", "organization_id"), **self.given(FREQUENT)}
        return self.create(hook, CreateProject(organization_id=organization_id, **fields))


class WorkspaceGetProjectOperator(WorkspaceOperator):
    """
    Retrieve a project. Scope ``project:read``.

    :param project_id: project
    :param organization_id: organization; by default that of the connection
    """

    template_fields: Collection[str] = ("workspace_conn_id", "organization_id", "project_id")
    resource_kind = "project"

    def __init__(
        self, *, project_id: int | str | XComArg, organization_id: str | XComArg | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.project_id: Any = project_id
        self.organization_id: Any = organization_id

    def work(self, hook: WorkspaceHook) -> dict[str, Any]:
        return self.plain(hook.get_project(project_id=self.project_id, organization_id=self.organization_id))
