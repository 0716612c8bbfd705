"""Operators for dashboards and their collaborators."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_workspace.operators.base import WorkspaceListOperator, WorkspaceOperator, WorkspaceWriteOperator

if TYPE_CHECKING:
    from airflow.sdk import XComArg

    from airflow_provider_workspace.api.models import DashboardCollaborator
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook

# The writable fields of section "Dashboard".
WRITABLE = (
    "name",
    "description",
    "pinned",
    "deleted",
    "use_template",
    "use_dashboard",
    "delete_insights",
    "tags",
    "restriction_level",
)


class WorkspaceCreateDashboardOperator(WorkspaceWriteOperator):
    """
    Create a dashboard. Scopes ``dashboard:write`` and, to confirm a remembered one, ``dashboard:read``.

    The interface has no list of dashboards, so an existing one cannot be looked up. With ``variable_key`` Airflow
    remembers it: service, organization, project, name and id. The next run reads the dashboard by its id and creates
    nothing; it fails if the Variable remembers another dashboard. If a try was interrupted or its answer was lost, the
    error says what to look for. A task fails while another one is creating the same dashboard; its
    retry finds that one.

    :param project_id: project; by default that of the connection
    :param variable_key: Airflow Variable that remembers the dashboard, one for each dashboard. ``None`` creates one in
        each run; from Airflow 3.3 on, a retry creates no second one
    :param if_unknown: what to do if an earlier try may have created it: ``fail``, or ``create`` another one
    :param name: name of the dashboard
    :param description: description of the dashboard
    :param pinned: whether it is pinned
    :param deleted: whether it is deleted
    :param use_template: name of a template to start from
    :param use_dashboard: id of a dashboard to copy
    :param delete_insights: whether deleting the dashboard deletes its insights
    :param tags: tags
    :param restriction_level: who may change it, a number; the interface does not show which. Services of this kind have
        21 for everybody and 37 for its collaborators, and take collaborators only with 37
    """

    template_fields: Collection[str] = ("workspace_conn_id", "project_id", "variable_key", *WRITABLE)
    resource_kind = "dashboard"

    def __init__(
        self,
        *,
        project_id: int | str | XComArg | None = None,
        variable_key: str | XComArg | None = None,
        if_unknown: Literal["fail", "create"] = "fail",
        name: str | XComArg | None = None,
        description: str | XComArg | None = None,
        pinned: bool | XComArg | None = None,
        deleted: bool | XComArg | None = None,
        use_template: str | XComArg | None = None,
        use_dashboard: int | XComArg | None = None,
        delete_insights: bool | XComArg | None = None,
        tags: list[Any] | XComArg | None = None,
        restriction_level: int | XComArg | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.project_id: Any = project_id
        self.variable_key: Any = variable_key
        self.if_unknown = if_unknown
        self.name: Any = name
        self.description: Any = description
        self.pinned: Any = pinned
        self.deleted: Any = deleted
        self.use_template: Any = use_template
        self.use_dashboard: Any = use_dashboard
        self.delete_insights: Any = delete_insights
        self.tags: Any = tags
        self.restriction_level: Any = restriction_level

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.api.operations.dashboards import CreateDashboard
        from airflow_provider_workspace.state.memory import DashboardIdentity, DashboardRegistry

        settings = hook.client.settings
        create = CreateDashboard(project_id=hook.project_or_default(self.project_id), **self.given(WRITABLE))
        identity = DashboardIdentity(settings.base_url, str(create.project_id), settings.organization_id, create.name)
        registry = DashboardRegistry(
            self.variable_key, identity, self.task_state, self.try_identity(), read_only=self.is_dry_run
        )
        dashboard, self.created = registry.get_or_create(
            hook.client, create, self.parse_choice("if_unknown", "fail", "create")
        )
        state = (
            "Created dashboard %s, '%s'." if self.created else "Dashboard %s, '%s', exists already: nothing was sent."
        )
        self.log.info(state, dashboard.id, dashboard.name)
        return self.compared(create, dashboard)


class WorkspaceGetDashboardOperator(WorkspaceOperator):
    """
    Retrieve a dashboard. Scope ``dashboard:read``.

    :param dashboard_id: dashboard
    :param project_id: project; by default that of the connection
    """

    template_fields: Collection[str] = ("workspace_conn_id", "project_id", "dashboard_id")
    resource_kind = "dashboard"

    def __init__(
        self, *, dashboard_id: int | str | XComArg, project_id: int | str | XComArg | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.dashboard_id: Any = dashboard_id
        self.project_id: Any = project_id

    def work(self, hook: WorkspaceHook) -> dict[str, Any]:
        return self.plain(hook.get_dashboard(dashboard_id=self.dashboard_id, project_id=self.project_id))


class WorkspaceUpdateDashboardOperator(WorkspaceWriteOperator):
    """
    Change a dashboard; what is not given stays as it is. Scope ``dashboard:write``.

    :param dashboard_id: dashboard
    :param project_id: project; by default that of the connection
    :param name: name of the dashboard
    :param description: description of the dashboard
    :param pinned: whether it is pinned
    :param deleted: whether it is deleted; the interface does not show whether ``False`` brings it back
    :param use_template: name of a template
    :param use_dashboard: id of a dashboard to copy
    :param delete_insights: whether deleting the dashboard deletes its insights
    :param tags: tags
    :param restriction_level: who may change it, a number; the interface does not show which. Services of this kind have
        21 for everybody and 37 for its collaborators, and take collaborators only with 37
    :param set_null: names of fields to set to null
    """

    template_fields: Collection[str] = ("workspace_conn_id", "project_id", "dashboard_id", *WRITABLE, "set_null")
    resource_kind = "dashboard"

    def __init__(
        self,
        *,
        dashboard_id: int | str | XComArg,
        project_id: int | str | XComArg | None = None,
        name: str | XComArg | None = None,
        description: str | XComArg | None = None,
        pinned: bool | XComArg | None = None,
        deleted: bool | XComArg | None = None,
        use_template: str | XComArg | None = None,
        use_dashboard: int | XComArg | None = None,
        delete_insights: bool | XComArg | None = None,
        tags: list[Any] | XComArg | None = None,
        restriction_level: int | XComArg | None = None,
        set_null: Sequence[str] | XComArg = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.dashboard_id: Any = dashboard_id
        self.project_id: Any = project_id
        self.name: Any = name
        self.description: Any = description
        self.pinned: Any = pinned
        self.deleted: Any = deleted
        self.use_template: Any = use_template
        self.use_dashboard: Any = use_dashboard
        self.delete_insights: Any = delete_insights
        self.tags: Any = tags
        self.restriction_level: Any = restriction_level
        self.set_null: Any = set_null

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.api.operations.dashboards import UpdateDashboard
        from airflow_provider_workspace.procedures.ensure import change

        its: dict[str, Any] = {
            "project_id": hook.project_or_default(self.project_id),
            "dashboard_id": self.dashboard_id,
        }
        update = UpdateDashboard(**{**its, **self.given(WRITABLE), **self.nulls(self.set_null, *its)})
        if update.deleted:  # a deleted dashboard cannot be read
            return self.plain(hook.client.send(update))
        return self.plain(change(hook.client, update, lambda: hook.get_dashboard(**its)))


class WorkspaceDeleteDashboardOperator(WorkspaceWriteOperator):
    """
    Delete a dashboard: set ``deleted`` to true, because the service refuses DELETE. Scope ``dashboard:write``.

    :param dashboard_id: dashboard
    :param project_id: project; by default that of the connection
    :param if_missing: ``ignore`` or ``fail`` if the dashboard does not exist
    """

    template_fields: Collection[str] = ("workspace_conn_id", "project_id", "dashboard_id")
    resource_kind = "dashboard"

    def __init__(
        self,
        *,
        dashboard_id: int | str | XComArg,
        project_id: int | str | XComArg | None = None,
        if_missing: Literal["ignore", "fail"] = "ignore",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.dashboard_id: Any = dashboard_id
        self.project_id: Any = project_id
        self.if_missing = if_missing

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.api.operations.dashboards import UpdateDashboard
        from airflow_provider_workspace.errors import WorkspaceNotFoundError

        its: dict[str, Any] = {
            "project_id": hook.project_or_default(self.project_id),
            "dashboard_id": self.dashboard_id,
        }

        def find() -> bool:
            try:
                return not hook.get_dashboard(**its).deleted
            except WorkspaceNotFoundError:
                return False

        what = f"dashboard {self.dashboard_id}"
        deleted = self.remove(hook, what, UpdateDashboard(**its, deleted=True), find=find, in_list=False)
        return {"dashboard_id": self.dashboard_id, "deleted": deleted}


class WorkspaceGetDashboardAccessControlsOperator(WorkspaceGetDashboardOperator):
    """
    Retrieve a dashboard with the access level of the key's owner. The interface shows no scope for this.

    :param dashboard_id: dashboard
    :param project_id: project; by default that of the connection
    """

    def work(self, hook: WorkspaceHook) -> dict[str, Any]:
        return self.plain(
            hook.get_dashboard_access_controls(dashboard_id=self.dashboard_id, project_id=self.project_id)
        )


class WorkspaceGetDashboardSharingOperator(WorkspaceGetDashboardOperator):
    """
    Retrieve the sharing configuration of a dashboard. Scope ``sharing_configuration:read``.

    If there are several, the result is the first one that is enabled, else the first; if there is none, ``enabled`` is
    false. ``access_token`` is a secret: the result includes it only with ``return_secrets=True``.

    :param dashboard_id: dashboard
    :param project_id: project; by default that of the connection
    """

    def work(self, hook: WorkspaceHook) -> dict[str, Any]:
        return self.plain(hook.get_dashboard_sharing(dashboard_id=self.dashboard_id, project_id=self.project_id))


class WorkspaceListDashboardCollaboratorsOperator(WorkspaceListOperator):
    """
    List the collaborators of a dashboard. Scope ``dashboard:read``.

    :param dashboard_id: dashboard
    :param project_id: project; by default that of the connection
    """

    template_fields: Collection[str] = ("project_id", "dashboard_id", *WorkspaceListOperator.template_fields)
    resource_kind = "dashboard"
    row_model = "DashboardCollaborator"

    def __init__(
        self, *, dashboard_id: int | str | XComArg, project_id: int | str | XComArg | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.dashboard_id: Any = dashboard_id
        self.project_id: Any = project_id

    def rows(self, hook: WorkspaceHook) -> Iterable[DashboardCollaborator]:
        return hook.list_dashboard_collaborators(dashboard_id=self.dashboard_id, project_id=self.project_id)


class WorkspaceAddDashboardCollaboratorOperator(WorkspaceWriteOperator):
    """
    Add a collaborator to a dashboard. Scopes ``dashboard:write`` and, for the look-up, ``dashboard:read``.

    :param dashboard_id: dashboard
    :param user_uuid: the person (UUID, ``user.uuid`` of the member)
    :param user_email: the person's e-mail address instead, looked up among the members of the organization. Scope
        ``organization_member:read``
    :param level: access level; the interface does not show the values. Services of this kind require it: 37 lets
        them edit
    :param project_id: project; by default that of the connection
    :param organization_id: organization of the members; by default that of the connection
    :param if_exists: ``return`` an existing collaborator, or ``fail``. The interface cannot change a level; if it
        differs, the log has a warning
    """

    template_fields: Collection[str] = (
        "workspace_conn_id",
        "project_id",
        "dashboard_id",
        "user_uuid",
        "user_email",
        "level",
        "organization_id",
    )
    resource_kind = "dashboard"

    def __init__(
        self,
        *,
        dashboard_id: int | str | XComArg,
        user_uuid: str | XComArg | None = None,
        user_email: str | XComArg | None = None,
        level: int | str | XComArg | None = None,
        project_id: int | str | XComArg | None = None,
        organization_id: str | XComArg | None = None,
        if_exists: Literal["return", "fail"] = "return",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.dashboard_id: Any = dashboard_id
        self.user_uuid: Any = user_uuid
        self.user_email: Any = user_email
        self.level: Any = level
        self.project_id: Any = project_id
        self.organization_id: Any = organization_id
        self.if_exists = if_exists

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.api.operations.dashboards import AddDashboardCollaborator
        from airflow_provider_workspace.procedures.find import find_user

        project_id = hook.project_or_default(self.project_id)
        user_uuid = find_user(
            hook.client,
            self.user_uuid,
            self.user_email,
            lambda: hook.organization_or_default(self.organization_id),
        )
        create = AddDashboardCollaborator(
            project_id=project_id, dashboard_id=self.dashboard_id, user_uuid=user_uuid, **self.given(["level"])
        )
        return self.create(hook, create)


class WorkspaceRemoveDashboardCollaboratorOperator(WorkspaceWriteOperator):
    """
    Remove a collaborator from a dashboard. Scopes ``dashboard:write`` and, for the check, ``dashboard:read``.

    :param dashboard_id: dashboard
    :param user_uuid: the person (UUID, ``user.uuid`` of the member)
    :param user_email: the person's e-mail address instead, looked up among the members of the organization. Scope
        ``organization_member:read``
    :param project_id: project; by default that of the connection
    :param organization_id: organization of the members; by default that of the connection
    :param if_missing: ``ignore`` or ``fail`` if the person is not a collaborator
    """

    template_fields: Collection[str] = (
        "workspace_conn_id",
        "project_id",
        "dashboard_id",
        "user_uuid",
        "user_email",
        "organization_id",
    )
    resource_kind = "dashboard"

    def __init__(
        self,
        *,
        dashboard_id: int | str | XComArg,
        user_uuid: str | XComArg | None = None,
        user_email: str | XComArg | None = None,
        project_id: int | str | XComArg | None = None,
        organization_id: str | XComArg | None = None,
        if_missing: Literal["ignore", "fail"] = "ignore",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.dashboard_id: Any = dashboard_id
        self.user_uuid: Any = user_uuid
        self.user_email: Any = user_email
        self.project_id: Any = project_id
        self.organization_id: Any = organization_id
        self.if_missing = if_missing

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.api.operations.dashboards import (
            ListDashboardCollaborators,
            RemoveDashboardCollaborator,
        )
        from airflow_provider_workspace.api.operations.members import ListMembers
        from airflow_provider_workspace.errors import WorkspaceConfigError
        from airflow_provider_workspace.procedures.find import (
            check_collaborator_id,
            find_by_uuid,
            find_user,
        )

        def organization() -> str:
            return hook.organization_or_default(self.organization_id)

        project_id = hook.project_or_default(self.project_id)
        user_uuid = find_user(hook.client, self.user_uuid, self.user_email, organization)
        collaborators = ListDashboardCollaborators(project_id=project_id, dashboard_id=self.dashboard_id)
        try:
            members = ListMembers(organization_id=organization())
        except WorkspaceConfigError:
            members = None
        deleted = self.remove(
            hook,
            f"collaborator {user_uuid} of dashboard {self.dashboard_id}",
            RemoveDashboardCollaborator(project_id=project_id, dashboard_id=self.dashboard_id, user_uuid=user_uuid),
            find=lambda: find_by_uuid(hook.client, collaborators, user_uuid),
            explain=lambda error: check_collaborator_id(hook.client, error, user_uuid, collaborators, members),
        )
        return {"dashboard_id": self.dashboard_id, "user_uuid": user_uuid, "deleted": deleted}
