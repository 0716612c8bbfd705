"""An operator that keeps the members of an organization in step with a roster."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.operators.base import WorkspaceWriteOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_workspace.api.member_sync import Change, MemberPlan
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook

# After so many refusals it is not the people: the key may lack the scope.
MOST_REFUSALS = 5


class WorkspaceSyncMembersOperator(WorkspaceWriteOperator):
    """
    Make the members of an organization those of a roster.

    Scopes ``organization_member:read`` and, to carry the plan out, ``organization_member:write``.

    Who is missing is invited; who holds an open invite counts as there. Levels that differ are changed; where a row
    has no level, any is right. Members who are not on the roster are removed, their open invites withdrawn. All of it
    is planned before anything is sent, and the plan is a table in the log. A second run finds nothing to do, and a
    retry goes on where the try before ended.

    The result is the plan: ``pending`` (how many changes), ``counts``, ``changes`` (``action``, ``email``,
    ``old_level``, ``level``, ``why``, ``target``) and the ``table``.

    :param roster: rows (mappings with ``email``, ``level`` and other fields of an invite) or just addresses: a list, or
        the XCom of another task
    :param path: file to read the rows from instead: ``.csv`` with a header, ``.json`` with an array, or ``.jsonl``
    :param protected: addresses of members who are never removed or changed. Name the owner of the connection's API key:
        the interface cannot tell whose it is, and a key whose owner is removed is worth nothing
    :param organization_id: organization; by default that of the connection
    :param defaults: fields for all rows that do not have them, such as ``{"send_email": False}``. A ``level`` here is
        the level of every member whose row names none
    :param max_removals: how many members and open invites may go in one run; if it would be more, the task fails and
        sends nothing, for the roster may have been cut. ``None`` for any number
    :param owner_level: members of this level and above are neither removed nor changed. The interface does not show
        which levels there are; services of its kind have 1 for members, 8 for administrators, 15 for owners. ``None``
        treats owners like others
    :param approved: an earlier plan, the result of a task with ``dry_run=True``: if there is a change now that it does
        not hold, the task fails and sends nothing
    """

    template_fields: Collection[str] = (
        "workspace_conn_id",
        "organization_id",
        "roster",
        "path",
        "protected",
        "defaults",
        "approved",
    )
    plans_itself = True

    def __init__(
        self,
        *,
        roster: Sequence[Mapping[str, Any] | str] | str | None = None,
        path: str | None = None,
        protected: Sequence[str] | str,
        organization_id: str | None = None,
        defaults: Mapping[str, Any] | None = None,
        max_removals: int | None = 10,
        owner_level: int | None = 15,
        approved: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.roster = roster
        self.path = path
        self.protected = protected
        self.organization_id = organization_id
        self.defaults = defaults
        self.max_removals = max_removals
        self.owner_level = owner_level
        self.approved = approved

    def work(self, hook: WorkspaceHook, context: Context) -> dict[str, Any]:
        """Plan, and carry it out unless only the plan is wanted."""
        from airflow_provider_workspace.api.member_sync import plan_members
        from airflow_provider_workspace.errors import WorkspaceInputError
        from airflow_provider_workspace.rosters import read_roster, rows_of_value

        self.show(hook, "members", organization_id=self.organization_id)
        self.settle(hook, context)
        plan = plan_members(
            read_roster(self.roster, self.path, self.defaults, argument="roster"),
            hook.list_invites(organization_id=self.organization_id),
            hook.list_members(organization_id=self.organization_id),
            protected=rows_of_value(self.protected, "protected"),
            owner_level=self.owner_level,
        )
        self.log.info("%s", plan.table())
        plan.check_removals(self.max_removals)
        if self.approved is not None:
            if not isinstance(self.approved, Mapping):
                msg = "approved is no plan. Pass the output of the task with dry_run=True itself. Nothing was sent."
                raise WorkspaceInputError(msg)
            plan.check_approved(self.approved)
        if not self.plan_only:
            self.carry_out(hook, plan)
        return plan.to_dict()

    def carry_out(self, hook: WorkspaceHook, plan: MemberPlan) -> None:
        """
        Send the changes; what the service refuses for one person does not keep the others from theirs.

        :raises WorkspaceSyncIncompleteError: if something was refused
        """
        from airflow_provider_workspace.api.member_sync import WorkspaceSyncIncompleteError
        from airflow_provider_workspace.errors import WorkspaceBadRequestError, WorkspacePermissionError

        refused: list[str] = []
        for change in plan.changes:
            if change.action not in ("withdraw", "remove", "change_level"):
                continue
            try:
                self.send(hook, change)
            except (WorkspaceBadRequestError, WorkspacePermissionError) as error:
                self.log.error("Refused: %s", error)  # noqa: TRY400 - another error tells of all of them
                refused.append(f"{change.action} {change.email}: {error.detail or error}")
                if len(refused) == MOST_REFUSALS:
                    break
        invites = [change.row.invite.model_dump(exclude_unset=True) for change in plan.changes if change.row]
        if invites and len(refused) < MOST_REFUSALS:
            self.log.info("%s", hook.create_invites(invites, organization_id=self.organization_id).table())
        if refused:
            msg = f"The service refused {len(refused)} changes. {'; '.join(refused)}"
            raise WorkspaceSyncIncompleteError(msg)

    def send(self, hook: WorkspaceHook, change: Change) -> None:
        """Send one change."""
        from airflow_provider_workspace.errors import WorkspaceNotFoundError

        target, email = str(change.target), change.email
        if change.action == "withdraw":
            self.delete_once(
                f"invite of {email}",
                lambda: hook.delete_invite(invite_id=target, organization_id=self.organization_id),
                "ignore",
            )
        elif change.action == "remove":
            self.delete_once(
                f"member {email}",
                lambda: hook.delete_member(user_uuid=target, organization_id=self.organization_id),
                "ignore",
            )
        elif change.level is not None:
            try:
                hook.update_member(user_uuid=target, level=change.level, organization_id=self.organization_id)
            except WorkspaceNotFoundError:
                self.log.warning("%s has left since the members were read; the next run invites them.", email)
            else:
                self.log.info("Changed the level of %s from %s.", email, change.levels)
