"""Operators for the projects of an organization."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.operators.arguments import FIELD, FIELDS, ID, ITEMS, NAME, TEXT, Arg, arg
from airflow_provider_workspace.operators.base import OfOrganization
from airflow_provider_workspace.operators.crud import (
    WorkspaceCreateOperator,
    WorkspaceGetOperator,
    WorkspaceListOperator,
)

if TYPE_CHECKING:
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook


class WorkspaceListProjectsOperator(OfOrganization, WorkspaceListOperator):
    """List the projects of an organization. Scope ``project:read``."""

    operation = "projects.ListProjects"
    resource_kind = "projects"


class WorkspaceCreateProjectOperator(OfOrganization, WorkspaceCreateOperator):
    """
    Create a project. Scopes ``project:write`` and, for the look-up, ``project:read``.

    The service does not require unique names, so the task looks the name up before and after the create. If another
    task creates a project of the same name at the same time, the task fails and names both. Names are compared
    regardless of the number of blanks and of the Unicode form.

    :param name: name of the project
    :param product_description: description of the product
    :param timezone: time zone of the project, such as ``Europe/Berlin``
    :param app_urls: URLs of the product
    :param is_demo: whether the project holds demonstration data
    :param anonymize_ips: whether IP addresses are anonymized
    :param access_control: whether access is controlled
    :param settings: any other :class:`field of a project <airflow_provider_workspace.api.bodies.ProjectBody>`, by its
        name
    """

    operation = "projects.CreateProject"
    resource_kind = "project"
    name: Arg[str] = arg(NAME)
    product_description: Arg[str | None] = arg(TEXT, default=None)
    timezone: Arg[str | None] = arg(TEXT, default=None)
    app_urls: Arg[list[str] | None] = arg(ITEMS, default=None)
    is_demo: Arg[bool | None] = arg(FIELD, default=None)
    anonymize_ips: Arg[bool | None] = arg(FIELD, default=None)
    access_control: Arg[bool | None] = arg(FIELD, default=None)
    settings: Arg[Mapping[str, Any] | None] = arg(FIELDS, default=None)

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        return self.create(hook, self.operation_from_arguments(hook, self.operation, "settings"))


class WorkspaceGetProjectOperator(OfOrganization, WorkspaceGetOperator):
    """
    Retrieve a project. Scope ``project:read``.

    :param project_id: the project
    """

    operation = "projects.GetProject"
    resource_kind = "project"
    project_id: Arg[int | str] = arg(ID)
