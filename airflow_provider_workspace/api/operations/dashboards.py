"""Dashboards of an environment (a project). Section "Endpoints, Dashboards"."""

from pydantic import BaseModel, ConfigDict, JsonValue

from airflow_provider_workspace.api.endpoint import endpoint
from airflow_provider_workspace.api.fields import IntegerId, Offset, TextId, UserId
from airflow_provider_workspace.api.levels import OptionalNumber
from airflow_provider_workspace.api.models import Dashboard, DashboardCollaborator, DashboardSharing, Page
from airflow_provider_workspace.api.operation import Operation, T

DASHBOARDS_PATH = "/environments/{project_id}/dashboards/"
DASHBOARD_PATH = DASHBOARDS_PATH + "{dashboard_id}/"


class DashboardFields(BaseModel):
    """The writable fields of a dashboard."""

    model_config = ConfigDict(defer_build=True)

    name: str | None = None
    description: str | None = None
    pinned: bool | None = None
    deleted: bool | None = None
    use_template: str | None = None
    use_dashboard: OptionalNumber = None
    delete_insights: bool | None = None
    tags: list[JsonValue] | None = None
    restriction_level: OptionalNumber = None


class DashboardOperation(Operation[T]):
    """An operation on a dashboard."""

    project_id: TextId
    dashboard_id: IntegerId


@endpoint(
    "POST",
    DASHBOARDS_PATH,
    scope="dashboard:write",
    repeatable=False,
    effect="create",
    recover="none",
    look_for="Look for the dashboard in the workspace itself, since the interface has no list of dashboards, and clear "
    "the task only if it does not exist.",
)
class CreateDashboard(DashboardFields, Operation[Dashboard]):
    """Create a dashboard. The interface has no list of dashboards to look it up."""

    project_id: TextId


@endpoint("GET", DASHBOARD_PATH, scope="dashboard:read", repeatable=True)
class GetDashboard(DashboardOperation[Dashboard]):
    """Retrieve a dashboard."""


@endpoint("PATCH", DASHBOARD_PATH, scope="dashboard:write", repeatable=True)
class UpdateDashboard(DashboardFields, DashboardOperation[Dashboard]):
    """Change a dashboard; ``deleted=True`` deletes it."""


@endpoint(
    "DELETE",
    DASHBOARD_PATH,
    scope="dashboard:write",
    repeatable=True,
    instead="Dashboards are never hard-deleted: use delete_dashboard, which sets deleted to true.",
)
class HardDeleteDashboard(DashboardOperation[None]):
    """Always refused with 405. Section "Errors"."""


@endpoint("GET", DASHBOARD_PATH + "access_controls/", scope=None, repeatable=True, shows={})
class GetDashboardAccessControls(DashboardOperation[Dashboard]):
    """Retrieve a dashboard with the access level of the current user; the interface shows no scope."""


@endpoint("GET", DASHBOARD_PATH + "collaborators/", scope="dashboard:read", repeatable=True)
class ListDashboardCollaborators(DashboardOperation[Page[DashboardCollaborator]]):
    """
    List the collaborators of a dashboard.

    The interface does not show whether they are one object, an array or an envelope. An empty object is an empty list.
    ``offset`` is not part of the interface; it is sent only to follow a ``next`` link.
    """

    offset: Offset = None


@endpoint(
    "POST",
    DASHBOARD_PATH + "collaborators/",
    scope="dashboard:write",
    repeatable=False,
    effect="create",
    recover="look-up",
    look_for="Look for the person among the dashboard's collaborators before you add them again.",
)
class AddDashboardCollaborator(DashboardOperation[DashboardCollaborator]):
    """Add a collaborator to a dashboard."""

    user_uuid: UserId
    level: OptionalNumber = None


@endpoint("DELETE", DASHBOARD_PATH + "collaborators/{user_uuid}/", scope="dashboard:write", repeatable=True)
class RemoveDashboardCollaborator(DashboardOperation[None]):
    """Remove a collaborator from a dashboard."""

    user_uuid: UserId


@endpoint("GET", DASHBOARD_PATH + "sharing/", scope="sharing_configuration:read", repeatable=True)
class GetDashboardSharing(DashboardOperation[DashboardSharing]):
    """Retrieve the sharing configuration of a dashboard, which contains the secret ``access_token``."""
