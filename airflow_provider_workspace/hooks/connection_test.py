"""The connection test: reads that show which scopes the API key has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.models import Page
from airflow_provider_workspace.api.operations.domains import ListDomains
from airflow_provider_workspace.api.operations.invites import ListInvites
from airflow_provider_workspace.api.operations.members import ListMembers
from airflow_provider_workspace.api.operations.projects import GetProject, ListProjects
from airflow_provider_workspace.errors import WorkspacePermissionError, WorkspaceRequestError, WorkspaceStatusError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.client.client import WorkspaceClient

# Scopes that only writes, or reads of a dashboard, could confirm.
NOT_CONFIRMABLE = (
    "batch_export:write, dashboard:read, dashboard:write, organization:write, organization_member:write, "
    "project:write, sharing_configuration:read"
)

# What a status means for the API key, if the service itself returns it.
BEGINNINGS = {401: "The service refuses the API key. ", 404: "The service accepts the API key, but not these ids. "}


def check_connection(send: Callable[[Operation[Any]], Any], client: WorkspaceClient) -> tuple[bool, list[str]]:
    """
    Read one row of each list and the project of the connection.

    :param send: sends an operation with the client
    :return: whether the service accepts the API key, and sentences about its scopes, moved paths and deprecations
    """
    settings = client.settings
    if settings.organization_id is None:
        msg = (
            "The connection test needs an organization. Put organization_id into the extra; without it, the connection "
            "works for tasks that set their own."
        )
        return False, [msg]
    confirmed: list[str] = []
    missing: list[str] = []
    refused: dict[str | None, str] = {}
    notes: list[str] = []
    for operation in _probes(settings.organization_id, settings.project_id):
        scope = str(operation.endpoint.scope)
        try:
            result = send(operation)
        except WorkspacePermissionError as error:
            if not error.from_service:
                return False, [f"This may be the answer of a proxy or of another service: check the host. {error}"]
            if error.problem == "scope-missing":
                missing.append(scope)
            else:
                refused.setdefault(error.detail, str(error).rstrip("."))
            continue
        except WorkspaceRequestError as error:
            beginning = ""
            if isinstance(error, WorkspaceStatusError) and error.from_service:
                beginning = BEGINNINGS.get(error.status, "")
            return False, [f"{beginning}{error}"]
        oddity = _oddity(operation, result)
        if oddity:
            return False, [f"Another service responds at this host: {oddity}. Check the host."]
        confirmed.append(scope)
        if isinstance(operation, GetProject):
            notes.append(f"Project {settings.project_id} is '{result.name}'")
    lines = [f"The service at {settings.base_url} accepts the API key"]
    if confirmed:
        lines.append(f"Organization {settings.organization_id} can be read")
    else:
        lines.append("Nothing of its organization can be read")
    lines += notes
    lines.append(f"Scopes confirmed by reading: {', '.join(dict.fromkeys(confirmed)) or 'none'}")
    if missing:
        lines.append(f"Scopes that are missing: {', '.join(dict.fromkeys(missing))}")
    lines += refused.values()
    lines.append(f"Scopes that reading cannot confirm: {NOT_CONFIRMABLE}")
    sentences = [f"{line}." for line in lines]
    return bool(confirmed), sentences + moves(client)


def moves(client: WorkspaceClient) -> list[str]:
    """Return sentences about the operations that have a path of their own, and about those that will end."""
    paths = client.settings.paths or {}
    moved = [f"Path of {name}: {path} (set in the extra)." for name, path in paths.items()]
    ending = [f"{name} {deprecation}." for name, deprecation in client.deprecations.items()]
    return [*moved, *ending]


def _oddity(operation: Operation[Any], result: Any) -> str | None:
    """Return what no workspace returns: a row with nothing but an id, or an organization without members."""
    rows = result.results if isinstance(result, Page) else [result]
    for row in rows:
        known_fields = type(row).model_fields.keys() - {"id"}
        if not row.model_fields_set & known_fields:
            return f"{type(operation).__name__} returned a row with {sorted(row.model_fields_set)}"
    if not rows and isinstance(operation, ListMembers):
        return "ListMembers returned nobody"
    return None


def _probes(organization_id: str, project_id: str | None) -> Iterator[Operation[Any]]:
    """Yield the cheapest read for each scope."""
    for list_operation in (ListProjects, ListDomains, ListMembers, ListInvites):
        yield list_operation(organization_id=organization_id, limit=1)
    if project_id is not None:
        yield GetProject(organization_id=organization_id, project_id=project_id)
