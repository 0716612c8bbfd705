"""The connection test: reads that show which scopes the API key has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.operations.domains import ListDomains
from airflow_provider_workspace.api.operations.invites import ListInvites
from airflow_provider_workspace.api.operations.members import ListMembers
from airflow_provider_workspace.api.operations.projects import GetProject, ListProjects
from airflow_provider_workspace.errors import (
    WorkspaceAuthenticationError,
    WorkspaceNotFoundError,
    WorkspacePermissionError,
    WorkspaceRequestError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.client.settings import Settings

# Scopes that only writes, or reads of a dashboard, could confirm.
NOT_CONFIRMABLE = (
    "batch_export:write, dashboard:read, dashboard:write, organization:write, organization_member:write, "
    "project:write, sharing_configuration:read"
)


def check_connection(send: Callable[[Operation[Any]], Any], settings: Settings) -> tuple[bool, list[str]]:
    """
    Read one row of each list and the project of the connection.

    :param send: sends an operation
    :return: whether the service accepts the API key, and sentences about its scopes
    """
    if settings.organization_id is None:
        msg = (
            "Put organization_id into the extra: the connection test needs an organization. Without it, the connection "
            "works for tasks that set their own."
        )
        return False, [msg]
    confirmed: list[str] = []
    refused: list[str] = []
    notes: list[str] = []
    for operation in _probes(settings.organization_id, settings.project_id):
        scope = str(operation.endpoint.scope)
        try:
            result = send(operation)
        except WorkspacePermissionError:
            refused.append(scope)
        except WorkspaceNotFoundError as error:
            return False, [f"The service accepts the API key, but not these ids. {error}"]
        except WorkspaceAuthenticationError as error:
            return False, [f"The service refuses the API key. {error}"]
        except WorkspaceRequestError as error:
            return False, [str(error)]
        else:
            confirmed.append(scope)
            if isinstance(operation, GetProject):
                notes.append(f"Project {settings.project_id} is '{result.name}'")
    lines = [
        f"The service at {settings.base_url} accepts the API key",
        f"Organization {settings.organization_id} can be read"
        if confirmed
        else "Nothing of its organization can be read",
        *notes,
        f"Scopes confirmed by reading: {', '.join(dict.fromkeys(confirmed)) or 'none'}",
        *([f"Scopes that are missing: {', '.join(dict.fromkeys(refused))}"] if refused else []),
        f"Scopes that reading cannot confirm: {NOT_CONFIRMABLE}",
    ]
    return bool(confirmed), [f"{line}." for line in lines]


def _probes(organization_id: str, project_id: str | None) -> Iterator[Operation[Any]]:
    """Yield the cheapest read for each scope."""
    for list_operation in (ListProjects, ListDomains, ListMembers, ListInvites):
        yield list_operation(organization_id=organization_id, limit=1)
    if project_id is not None:
        yield GetProject(organization_id=organization_id, project_id=project_id)
