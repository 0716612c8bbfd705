"""The operations of the interface, in its order."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.api.operations.batch_exports import PauseBatchExport, UnpauseBatchExport
    from airflow_provider_workspace.api.operations.dashboards import (
        AddDashboardCollaborator,
        CreateDashboard,
        GetDashboard,
        GetDashboardAccessControls,
        GetDashboardSharing,
        HardDeleteDashboard,
        ListDashboardCollaborators,
        RemoveDashboardCollaborator,
        UpdateDashboard,
    )
    from airflow_provider_workspace.api.operations.domains import (
        CreateDomain,
        DeleteDomain,
        GetDomain,
        ListDomains,
        UpdateDomain,
        VerifyDomain,
    )
    from airflow_provider_workspace.api.operations.invites import (
        CreateInvite,
        CreateInvites,
        DeleteInvite,
        ListInvites,
    )
    from airflow_provider_workspace.api.operations.members import DeleteMember, ListMembers, UpdateMember
    from airflow_provider_workspace.api.operations.projects import CreateProject, GetProject, ListProjects

    OPERATIONS: tuple[type[Operation[Any]], ...]

# In the order of the interface. A group is imported when one of its operations is first asked for: a task needs one or
# two operations, and each is a class that takes pydantic a millisecond.
GROUPS: dict[str, tuple[str, ...]] = {
    "dashboards": (
        "CreateDashboard",
        "GetDashboard",
        "UpdateDashboard",
        "HardDeleteDashboard",
        "GetDashboardAccessControls",
        "ListDashboardCollaborators",
        "AddDashboardCollaborator",
        "RemoveDashboardCollaborator",
        "GetDashboardSharing",
    ),
    "batch_exports": (
        "PauseBatchExport",
        "UnpauseBatchExport",
    ),
    "domains": (
        "ListDomains",
        "CreateDomain",
        "GetDomain",
        "UpdateDomain",
        "DeleteDomain",
        "VerifyDomain",
    ),
    "invites": (
        "ListInvites",
        "CreateInvite",
        "DeleteInvite",
        "CreateInvites",
    ),
    "members": (
        "ListMembers",
        "UpdateMember",
        "DeleteMember",
    ),
    "projects": (
        "ListProjects",
        "CreateProject",
        "GetProject",
    ),
}


def __getattr__(name: str) -> Any:
    """Return an operation, or ``OPERATIONS``: all of them. Python asks once for each: they are attributes then."""
    if name == "OPERATIONS":
        globals()[name] = tuple(operation for group in GROUPS for operation in import_group(group))
    for group, names in GROUPS.items():
        if name in names:
            import_group(group)
    if name not in globals():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals()[name]


def import_group(group: str) -> list[type[Operation[Any]]]:
    """Import the operations of one kind of resource, and make them attributes of this module."""
    module = import_module(f"{__name__}.{group}")
    operations = {name: getattr(module, name) for name in GROUPS[group]}
    globals().update(operations)
    return list(operations.values())


__all__ = [
    "OPERATIONS",
    "AddDashboardCollaborator",
    "CreateDashboard",
    "CreateDomain",
    "CreateInvite",
    "CreateInvites",
    "CreateProject",
    "DeleteDomain",
    "DeleteInvite",
    "DeleteMember",
    "GetDashboard",
    "GetDashboardAccessControls",
    "GetDashboardSharing",
    "GetDomain",
    "GetProject",
    "HardDeleteDashboard",
    "ListDashboardCollaborators",
    "ListDomains",
    "ListInvites",
    "ListMembers",
    "ListProjects",
    "PauseBatchExport",
    "RemoveDashboardCollaborator",
    "UnpauseBatchExport",
    "UpdateDashboard",
    "UpdateDomain",
    "UpdateMember",
    "VerifyDomain",
]
