"""Operators for dashboards and their collaborators."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow_provider_workspace.operators import arguments as kinds
from airflow_provider_workspace.operators.arguments import Arg, DeclaredArguments, arg, choice, fixed
from airflow_provider_workspace.operators.base import OfUser, WorkspaceWriteOperator
from airflow_provider_workspace.operators.crud import (
    WorkspaceCreateOperator,
    WorkspaceDeleteOperator,
    WorkspaceGetOperator,
    WorkspaceListOperator,
    WorkspaceUpdateOperator,
)

if TYPE_CHECKING:
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook


class OfProject(DeclaredArguments):
    """
    What belongs to a project.

    :param project_id: the project; by default that of the connection
    """

    project_id: Arg[int | str | None] = arg(kinds.ID, default=None)


class OfDashboard(OfProject):
    """
    What belongs to a dashboard.

    :param dashboard_id: the dashboard
    """

    resource_kind: ClassVar[str] = "dashboard"
    dashboard_id: Arg[int | str] = arg(kinds.ID)


class DashboardArguments(OfProject):
    """
    The writable fields of section "Dashboard".

    :param name: name of the dashboard
    :param description: description of the dashboard
    :param pinned: whether it is pinned
    :param deleted: whether it is deleted; the API does not show whether ``False`` brings it back
    :param use_template: name of a template to start from
    :param use_dashboard: id of a dashboard to copy
    :param delete_insights: whether deleting the dashboard deletes its insights
    :param tags: tags
    :param restriction_level: who may change it, a :doc:`number </glossary>` that the API does not show. In known
        services, 21 is everybody in the project and 37 only its collaborators, who can be added only with 37
    """

    name: Arg[str | None] = arg(kinds.NAME, default=None)
    description: Arg[str | None] = arg(kinds.TEXT, default=None)
    pinned: Arg[bool | None] = arg(kinds.FIELD, default=None)
    deleted: Arg[bool | None] = arg(kinds.FIELD, default=None)
    use_template: Arg[str | None] = arg(kinds.TEXT, default=None)
    use_dashboard: Arg[int | None] = arg(kinds.FIELD, default=None)
    delete_insights: Arg[bool | None] = arg(kinds.FIELD, default=None)
    tags: Arg[list[Any] | None] = arg(kinds.ITEMS, default=None)
    restriction_level: Arg[int | None] = arg(kinds.FIELD, default=None)


class WorkspaceCreateDashboardOperator(DashboardArguments, WorkspaceWriteOperator):
    """
    Create a dashboard. Scopes ``dashboard:write`` and, to confirm a remembered one, ``dashboard:read``.

    The API has no list of dashboards, so an existing one cannot be looked up. With ``variable_key`` Airflow
    remembers it: service, organization, project, name and id. The next run reads the dashboard by its id and creates
    nothing. A task fails while another one is creating the same dashboard; its retry finds that one.

    :param variable_key: Airflow Variable that remembers the dashboard, one for each dashboard. With ``None``, each run
        creates one; since Airflow 3.3, a retry creates no second one
    :param if_unknown: what to do if an earlier try may have created it: ``fail``, or ``create`` another one
    """

    resource_kind = "dashboard"
    variable_key: Arg[str | None] = arg(kinds.NAME, default=None)
    if_unknown: Literal["fail", "create"] = fixed(choice("fail", "create"), default="fail")

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.notes.dashboards import DashboardNote, DashboardRegistry

        create = self.operation_from_arguments(hook, "dashboards.CreateDashboard")
        task, try_number = self.try_identity()
        settings = hook.client.settings
        wanted = DashboardNote(
            service=settings.base_url,
            project_id=str(create.project_id),
            organization_id=settings.organization_id,
            name=create.name,
            dashboard_id=None,
            variable_key=self.variable_key or "",
            task=task,
            try_number=int(try_number),
        )
        registry = DashboardRegistry(wanted, self.task_state)
        if self.is_dry_run:
            dashboard = registry.find(hook.client, self.if_unknown)
            if dashboard is None:
                dashboard = hook.client.send(create)  # the dry run ends here
            self.created = False
        else:
            dashboard, self.created = registry.get_or_create(hook.client, create, self.if_unknown)
        if self.created:
            self.log.info("Created dashboard %s, '%s'.", dashboard.id, dashboard.name)
        else:
            self.log.info("Dashboard %s, '%s', exists already: nothing was sent.", dashboard.id, dashboard.name)
        return self.compared(create, dashboard)


class WorkspaceGetDashboardOperator(OfDashboard, WorkspaceGetOperator):
    """Retrieve a dashboard. Scope ``dashboard:read``."""

    operation = "dashboards.GetDashboard"


class WorkspaceUpdateDashboardOperator(OfDashboard, DashboardArguments, WorkspaceUpdateOperator):
    """Change a dashboard; what is not given stays as it is. Scope ``dashboard:write``."""

    operation = "dashboards.UpdateDashboard"
    read_operation = "dashboards.GetDashboard"

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.procedures.ensure import check_done, read_dashboard

        update = self.operation_from_arguments(hook, self.operation, "set_null")
        if not update.deleted:
            return super().write(hook)
        dashboard = hook.client.send(update)
        if not dashboard.deleted:  # the answer does not show it, and a deleted dashboard cannot be read
            read = self.operation_from_arguments(hook, self.read_operation)
            what = f"dashboard {update.dashboard_id} was deleted"
            is_seen = check_done(hook.client, what, update, lambda: read_dashboard(hook.client, read) is None)
            if is_seen:
                dashboard = dashboard.model_copy(update={"deleted": True})
        return self.compared(update, dashboard)


class WorkspaceDeleteDashboardOperator(OfDashboard, WorkspaceDeleteOperator):
    """Delete a dashboard: set ``deleted`` to true, because the service refuses DELETE. Scope ``dashboard:write``."""

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.procedures.ensure import read_dashboard

        delete = self.operation_from_arguments(hook, "dashboards.UpdateDashboard", deleted=True)
        read = self.operation_from_arguments(hook, "dashboards.GetDashboard")
        find = partial(read_dashboard, hook.client, read)
        deleted = self.remove(hook, f"dashboard {self.dashboard_id}", delete, find=find)
        return {"dashboard_id": delete.dashboard_id, "deleted": deleted}


class WorkspaceGetDashboardAccessControlsOperator(WorkspaceGetDashboardOperator):
    """Retrieve a dashboard with the access level of the key's owner. The API shows no scope for this."""

    operation = "dashboards.GetDashboardAccessControls"


class WorkspaceGetDashboardSharingOperator(WorkspaceGetDashboardOperator):
    """
    Retrieve the sharing configuration of a dashboard. Scope ``sharing_configuration:read``.

    If there are several, the result is the first one that is enabled, else the first; if there is none, ``enabled`` is
    false. ``access_token`` is a secret: the result includes it only with ``return_secrets=True``.
    """

    operation = "dashboards.GetDashboardSharing"


class WorkspaceListDashboardCollaboratorsOperator(OfDashboard, WorkspaceListOperator):
    """List the collaborators of a dashboard. Scope ``dashboard:read``."""

    operation = "dashboards.ListDashboardCollaborators"


class WorkspaceAddDashboardCollaboratorOperator(OfDashboard, OfUser, WorkspaceCreateOperator):
    """
    Add a collaborator to a dashboard. Scopes ``dashboard:write`` and, for the look-up, ``dashboard:read``.

    The API cannot change the level of a collaborator; if it differs, the log has a warning.

    :param level: access level, a :doc:`number </glossary>` that the API does not show. Known services require it:
        37 lets them edit
    """

    operation = "dashboards.AddDashboardCollaborator"
    level: Arg[int | None] = arg(kinds.FIELD, default=None)

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        user_uuid = self.find_user(hook)
        operation = self.operation_from_arguments(hook, self.operation, user_uuid=user_uuid)
        return self.create(hook, operation)


class WorkspaceRemoveDashboardCollaboratorOperator(OfDashboard, OfUser, WorkspaceDeleteOperator):
    """Remove a collaborator from a dashboard. Scopes ``dashboard:write`` and, for the check, ``dashboard:read``."""

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.errors import WorkspaceConfigError
        from airflow_provider_workspace.procedures.find import check_collaborator_id, find_by_uuid

        user_uuid = self.find_user(hook)
        collaborators = self.operation_from_arguments(hook, "dashboards.ListDashboardCollaborators")
        try:
            members = self.operation_from_arguments(hook, "members.ListMembers")
            members.request()  # refuse now an organization that could not be asked after the removal
        except WorkspaceConfigError:
            members = None
        collaborator = f"collaborator {user_uuid} of dashboard {self.dashboard_id}"
        delete = self.operation_from_arguments(hook, "dashboards.RemoveDashboardCollaborator", user_uuid=user_uuid)
        deleted = self.remove(
            hook,
            collaborator,
            delete,
            find=lambda: find_by_uuid(hook.client, collaborators, user_uuid),
            explain=lambda error: check_collaborator_id(hook.client, error, user_uuid, collaborators, members),
        )
        return {"dashboard_id": collaborators.dashboard_id, "user_uuid": user_uuid, "deleted": deleted}
