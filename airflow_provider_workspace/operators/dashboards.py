"""Operators for the dashboards of a project and the people who work on them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_workspace.operators.base import (
    WorkspaceListOperator,
    WorkspaceOperator,
    WorkspaceWriteOperator,
    given,
)

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_workspace.api.models import DashboardCollaborator
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook


class WorkspaceCreateDashboardOperator(WorkspaceWriteOperator):
    """
    Create a dashboard. Scopes ``dashboard:write`` and, to confirm a remembered one, ``dashboard:read``.

    The interface has no list of dashboards, so whether one is there cannot be looked up. With ``variable_key`` Airflow
    remembers it: before the create that it is about to happen, afterwards the id. The next run confirms the id by
    reading it and creates nothing. A try that was cut off between the two fails and says what to look for.

    :param project_id: project; by default that of the connection
    :param variable_key: Airflow Variable that remembers the dashboard; ``None`` creates one in each run, and from
        Airflow 3.3 on no second one when a task is tried again
    :param if_unknown: what to do if an earlier try may have created it: ``fail``, or ``create`` another one
    :param name: name of the dashboard
    :param description: description of the dashboard
    :param pinned: whether it is pinned
    :param deleted: whether it is deleted
    :param use_template: name of a template to start from
    :param use_dashboard: id of a dashboard to copy
    :param delete_insights: whether deleting the dashboard deletes its insights
    :param tags: tags
    :param restriction_level: who may change it; the interface does not show which levels there are
    """

    template_fields: Collection[str] = (
        "workspace_conn_id",
        "project_id",
        "variable_key",
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

    def __init__(
        self,
        *,
        project_id: int | str | None = None,
        variable_key: str | None = None,
        if_unknown: Literal["fail", "create"] = "fail",
        name: str | None = None,
        description: str | None = None,
        pinned: bool | None = None,
        deleted: bool | None = None,
        use_template: str | None = None,
        use_dashboard: int | None = None,
        delete_insights: bool | None = None,
        tags: list[Any] | None = None,
        restriction_level: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.project_id = project_id
        self.variable_key = variable_key
        self.if_unknown = if_unknown
        self.name = name
        self.description = description
        self.pinned = pinned
        self.deleted = deleted
        self.use_template = use_template
        self.use_dashboard = use_dashboard
        self.delete_insights = delete_insights
        self.tags = tags
        self.restriction_level = restriction_level

    def work(self, hook: WorkspaceHook, context: Context) -> dict[str, Any]:
        """Create it unless it is remembered and still there."""
        from airflow_provider_workspace.state.dashboard_registry import DashboardRegistry

        project_id = hook.project_or_default(self.project_id)
        memory = DashboardRegistry(self.variable_key, project_id, self.memory(context))
        dashboard = memory.confirmed(hook, self.if_unknown)
        self.created = dashboard is None
        if dashboard is None:
            fields = given(
                name=self.name,
                description=self.description,
                pinned=self.pinned,
                deleted=self.deleted,
                use_template=self.use_template,
                use_dashboard=self.use_dashboard,
                delete_insights=self.delete_insights,
                tags=self.tags,
                restriction_level=self.restriction_level,
            )
            if self.plan_only:
                memory.key = None  # a plan is nothing to remember
            dashboard = memory.create(hook, fields)
            self.log.info("Created dashboard %s, '%s'.", dashboard.id, dashboard.name)
        else:
            self.log.info("Dashboard %s, '%s', is there: nothing was sent.", dashboard.id, dashboard.name)
        self.show(hook, "dashboard", dashboard_id=dashboard.id, project_id=project_id)
        return self.plain(dashboard)


class WorkspaceGetDashboardOperator(WorkspaceOperator):
    """
    Retrieve a dashboard. Scope ``dashboard:read``.

    :param dashboard_id: dashboard
    :param project_id: project; by default that of the connection
    """

    template_fields: Collection[str] = ("workspace_conn_id", "project_id", "dashboard_id")

    def __init__(self, *, dashboard_id: int | str, project_id: int | str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dashboard_id = dashboard_id
        self.project_id = project_id

    def work(self, hook: WorkspaceHook, context: Context) -> dict[str, Any]:  # noqa: ARG002
        """Read it."""
        self.show(hook, "dashboard", dashboard_id=self.dashboard_id, project_id=self.project_id)
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
    :param restriction_level: who may change it; the interface does not show which levels there are
    :param set_null: names of fields to set to null
    """

    template_fields: Collection[str] = (
        "workspace_conn_id",
        "project_id",
        "dashboard_id",
        "name",
        "description",
        "pinned",
        "deleted",
        "use_template",
        "use_dashboard",
        "delete_insights",
        "tags",
        "restriction_level",
        "set_null",
    )

    def __init__(
        self,
        *,
        dashboard_id: int | str,
        project_id: int | str | None = None,
        name: str | None = None,
        description: str | None = None,
        pinned: bool | None = None,
        deleted: bool | None = None,
        use_template: str | None = None,
        use_dashboard: int | None = None,
        delete_insights: bool | None = None,
        tags: list[Any] | None = None,
        restriction_level: int | None = None,
        set_null: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.dashboard_id = dashboard_id
        self.project_id = project_id
        self.name = name
        self.description = description
        self.pinned = pinned
        self.deleted = deleted
        self.use_template = use_template
        self.use_dashboard = use_dashboard
        self.delete_insights = delete_insights
        self.tags = tags
        self.restriction_level = restriction_level
        self.set_null = set_null

    def work(self, hook: WorkspaceHook, context: Context) -> dict[str, Any]:  # noqa: ARG002
        """Change it."""
        self.show(hook, "dashboard", dashboard_id=self.dashboard_id, project_id=self.project_id)
        fields = given(
            name=self.name,
            description=self.description,
            pinned=self.pinned,
            deleted=self.deleted,
            use_template=self.use_template,
            use_dashboard=self.use_dashboard,
            delete_insights=self.delete_insights,
            tags=self.tags,
            restriction_level=self.restriction_level,
        )
        fields.update(self.nulls(self.set_null, "dashboard_id", "project_id"))
        return self.plain(hook.update_dashboard(dashboard_id=self.dashboard_id, project_id=self.project_id, **fields))


class WorkspaceDeleteDashboardOperator(WorkspaceWriteOperator):
    """
    Delete a dashboard the only way there is: set ``deleted`` to true. Scope ``dashboard:write``.

    :param dashboard_id: dashboard
    :param project_id: project; by default that of the connection
    :param if_missing: ``ignore`` or ``fail`` if there is no such dashboard, or no longer
    """

    template_fields: Collection[str] = ("workspace_conn_id", "project_id", "dashboard_id")

    def __init__(
        self,
        *,
        dashboard_id: int | str,
        project_id: int | str | None = None,
        if_missing: Literal["ignore", "fail"] = "ignore",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.dashboard_id = dashboard_id
        self.project_id = project_id
        self.if_missing = if_missing

    def work(self, hook: WorkspaceHook, context: Context) -> dict[str, Any]:  # noqa: ARG002
        """Mark it as deleted."""
        self.show(hook, "dashboard", dashboard_id=self.dashboard_id, project_id=self.project_id)
        deleted = self.delete_once(
            f"dashboard {self.dashboard_id}",
            lambda: hook.delete_dashboard(dashboard_id=self.dashboard_id, project_id=self.project_id),
            self.if_missing,
        )
        return {"dashboard_id": self.dashboard_id, "deleted": deleted}


class WorkspaceGetDashboardAccessControlsOperator(WorkspaceGetDashboardOperator):
    """
    Retrieve a dashboard with the access level of the key's owner. The interface shows no scope for this.

    :param dashboard_id: dashboard
    :param project_id: project; by default that of the connection
    """

    def work(self, hook: WorkspaceHook, context: Context) -> dict[str, Any]:  # noqa: ARG002
        """Read it."""
        self.show(hook, "dashboard", dashboard_id=self.dashboard_id, project_id=self.project_id)
        return self.plain(
            hook.get_dashboard_access_controls(dashboard_id=self.dashboard_id, project_id=self.project_id)
        )


class WorkspaceGetDashboardSharingOperator(WorkspaceGetDashboardOperator):
    """
    Retrieve how a dashboard is shared. Scope ``sharing_configuration:read``.

    ``access_token`` is a secret: the result holds it only with ``return_secrets=True``.

    :param dashboard_id: dashboard
    :param project_id: project; by default that of the connection
    """

    def work(self, hook: WorkspaceHook, context: Context) -> dict[str, Any]:  # noqa: ARG002
        """Read it."""
        self.show(hook, "dashboard", dashboard_id=self.dashboard_id, project_id=self.project_id)
        return self.plain(hook.get_dashboard_sharing(dashboard_id=self.dashboard_id, project_id=self.project_id))


class WorkspaceListDashboardCollaboratorsOperator(WorkspaceListOperator):
    """
    List the people who may work on a dashboard. Scope ``dashboard:read``.

    :param dashboard_id: dashboard
    :param project_id: project; by default that of the connection
    """

    template_fields: Collection[str] = ("project_id", "dashboard_id", *WorkspaceListOperator.template_fields)

    def __init__(self, *, dashboard_id: int | str, project_id: int | str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dashboard_id = dashboard_id
        self.project_id = project_id

    def rows(self, hook: WorkspaceHook) -> Iterable[DashboardCollaborator]:
        """Ask for the collaborators."""
        self.show(hook, "dashboard", dashboard_id=self.dashboard_id, project_id=self.project_id)
        return hook.list_dashboard_collaborators(dashboard_id=self.dashboard_id, project_id=self.project_id)


class WorkspaceAddDashboardCollaboratorOperator(WorkspaceWriteOperator):
    """
    Let a person work on a dashboard. Scopes ``dashboard:write`` and, to look whether they do, ``dashboard:read``.

    :param dashboard_id: dashboard
    :param user_uuid: the person (UUID)
    :param level: access level; the interface does not show which there are
    :param project_id: project; by default that of the connection
    :param if_exists: ``return`` the person's entry as it is, or ``fail``. The interface cannot change a level, so an
        entry with another level stays as it is and the log warns
    """

    template_fields: Collection[str] = ("workspace_conn_id", "project_id", "dashboard_id", "user_uuid", "level")

    def __init__(
        self,
        *,
        dashboard_id: int | str,
        user_uuid: str,
        level: int | str | None = None,
        project_id: int | str | None = None,
        if_exists: Literal["return", "fail"] = "return",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.dashboard_id = dashboard_id
        self.user_uuid = user_uuid
        self.level = level
        self.project_id = project_id
        self.if_exists = if_exists

    def work(self, hook: WorkspaceHook, context: Context) -> dict[str, Any]:
        """Add them unless they are there."""
        from airflow_provider_workspace.api.operations import AddDashboardCollaborator

        self.show(hook, "dashboard", dashboard_id=self.dashboard_id, project_id=self.project_id)

        create = AddDashboardCollaborator(
            project_id=hook.project_or_default(self.project_id),
            dashboard_id=self.dashboard_id,
            user_uuid=self.user_uuid,
            **given(level=self.level),
        )

        wanted = create.user_uuid.strip().lower()

        def find() -> DashboardCollaborator | None:
            for row in hook.list_dashboard_collaborators(dashboard_id=self.dashboard_id, project_id=self.project_id):
                if wanted in ((row.user_uuid or "").lower(), ((row.user and row.user.uuid) or "").lower()):
                    return row
            return None

        collaborator = self.create_once(
            context,
            f"collaborator {self.user_uuid} of dashboard {self.dashboard_id}",
            find=find,
            create=lambda: hook.send(create),
            if_exists=self.if_exists,
        )
        if self.level is not None and str(collaborator.level) != str(self.level):
            self.log.warning(
                "Collaborator %s has level %s and not %s: the interface cannot change it; remove and add them.",
                self.user_uuid,
                collaborator.level,
                self.level,
            )
        return self.plain(collaborator)


class WorkspaceRemoveDashboardCollaboratorOperator(WorkspaceWriteOperator):
    """
    Take a person off a dashboard. Scope ``dashboard:write``.

    :param dashboard_id: dashboard
    :param user_uuid: the person (UUID)
    :param project_id: project; by default that of the connection
    :param if_missing: ``ignore`` or ``fail`` if the person is not on the dashboard
    """

    template_fields: Collection[str] = ("workspace_conn_id", "project_id", "dashboard_id", "user_uuid")

    def __init__(
        self,
        *,
        dashboard_id: int | str,
        user_uuid: str,
        project_id: int | str | None = None,
        if_missing: Literal["ignore", "fail"] = "ignore",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.dashboard_id = dashboard_id
        self.user_uuid = user_uuid
        self.project_id = project_id
        self.if_missing = if_missing

    def work(self, hook: WorkspaceHook, context: Context) -> dict[str, Any]:  # noqa: ARG002
        """Remove them."""
        self.show(hook, "dashboard", dashboard_id=self.dashboard_id, project_id=self.project_id)
        deleted = self.delete_once(
            f"collaborator {self.user_uuid} of dashboard {self.dashboard_id}",
            lambda: hook.remove_dashboard_collaborator(
                dashboard_id=self.dashboard_id, user_uuid=self.user_uuid, project_id=self.project_id
            ),
            self.if_missing,
        )
        return {"dashboard_id": self.dashboard_id, "user_uuid": self.user_uuid, "deleted": deleted}
