"""The 27 operations of the interface, in its order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    InviteFields,
    ListInvites,
)
from airflow_provider_workspace.api.operations.members import DeleteMember, ListMembers, UpdateMember
from airflow_provider_workspace.api.operations.projects import CreateProject, GetProject, ListProjects

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation

OPERATIONS: tuple[type[Operation[Any]], ...] = (
    CreateDashboard,
    GetDashboard,
    UpdateDashboard,
    HardDeleteDashboard,
    GetDashboardAccessControls,
    ListDashboardCollaborators,
    AddDashboardCollaborator,
    RemoveDashboardCollaborator,
    GetDashboardSharing,
    PauseBatchExport,
    UnpauseBatchExport,
    ListDomains,
    CreateDomain,
    GetDomain,
    UpdateDomain,
    DeleteDomain,
    VerifyDomain,
    ListInvites,
    CreateInvite,
    DeleteInvite,
    CreateInvites,
    ListMembers,
    UpdateMember,
    DeleteMember,
    ListProjects,
    CreateProject,
    GetProject,
)

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
    "InviteFields",
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
