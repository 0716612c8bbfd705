"""Operators for organization files: plan all parts, and apply them."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_workspace.operators import arguments as kinds
from airflow_provider_workspace.operators.approval import WorkspaceApprovalMixin, describe_organization
from airflow_provider_workspace.operators.arguments import Arg, arg, choice, fixed
from airflow_provider_workspace.operators.base import WorkspaceWriteOperator
from airflow_provider_workspace.version_compat import AirflowFailException

if TYPE_CHECKING:
    from typing import Literal

    from airflow.sdk import ObjectStoragePath

    from airflow_provider_workspace.access.door import WithdrawnInvites
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.notes.task_state import TaskState
    from airflow_provider_workspace.organization.file import Organization
    from airflow_provider_workspace.organization.plan import PlannedOrganization
    from airflow_provider_workspace.procedures.invites_report import InvitesReport
    from airflow_provider_workspace.procedures.plan import ApprovedPlan, Change, Plan

    Part = Literal["projects", "domains", "verification", "members", "dashboards", "collaborators", "exports"]


class WorkspaceOrganizationOperator(WorkspaceWriteOperator):
    """
    Base of the operators for organization files.

    :param file: the organization file: a path relative to the Dag file, a URL for ``airflow.sdk.ObjectStoragePath``,
        such as ``s3://conn_id@bucket/northwind.yaml``, or the content as a mapping
    :param organization: name of the organization, if the file has several
    :param roster: the people, if the file names none under ``members``: rows (mappings with ``email``, ``level`` and
        other fields of an invite) or addresses. Only the part ``members`` needs it
    :param columns: names of the columns of these rows or of the file's roster, as of a member sync; by default
        ``columns`` under ``members``
    :param where: which of these rows to read, as of a member sync; by default ``where`` under ``members``
    :param render_file: whether the file is a Jinja template. It sees connections and Variables, so render only files
        that nobody but the authors of Dags can write. By default, a file with ``{{``, ``{%`` or ``{#`` is refused;
        ``False`` takes it as it is
    :raises WorkspaceInputError: if ``render_file`` is not a boolean
    """

    resource_kind = "projects"
    has_own_dry_run = True
    file: Arg[ObjectStoragePath | Mapping[str, Any]] = arg(kinds.CONTENT)
    organization: Arg[str | None] = arg(kinds.OPTIONAL_NAME, default=None)
    roster: Arg[Sequence[Mapping[str, Any] | Sequence[Any] | str] | None] = arg(kinds.ROWS, default=None)
    columns: Arg[Sequence[str | None] | Mapping[str, str | None] | None] = arg(kinds.COLUMNS, default=None)
    where: Arg[Mapping[str, Any] | None] = arg(kinds.FILTER, default=None)
    render_file: bool | None = fixed(kinds.FLAG, default=None)

    def plan(self, hook: WorkspaceHook, parts: Collection[str] | None = None) -> PlannedOrganization:
        """
        Read the file, plan, and log the plan.

        :param parts: which parts; ``None`` for all
        :raises WorkspaceInputError: if the file is invalid
        """
        from airflow_provider_workspace.access.notes import AccessNotes
        from airflow_provider_workspace.files.storage import file_at
        from airflow_provider_workspace.links import url_for
        from airflow_provider_workspace.notes.lease_store import LeaseVariables
        from airflow_provider_workspace.organization.file import choose_organization, load_organizations
        from airflow_provider_workspace.organization.plan import PARTS, PlannedOrganization, plan_organization
        from airflow_provider_workspace.organization.reader import AirflowOrganizationReader

        parts = parts or PARTS
        organizations = load_organizations(self.checked_file(), file_at, self.render, self.folder)
        wanted = choose_organization(organizations, self.organization, self.file_name)
        organization_id = hook.organization_or_default(wanted.organization_id)
        self.workspace_url = url_for(hook.client.settings, "projects", {"organization_id": organization_id})
        access = AccessNotes.of_tasks(hook.client.settings, organization_id)
        owner = self.try_identity()
        reader = AirflowOrganizationReader(
            hook.client, organization_id, store=LeaseVariables(), access=access, owner=owner
        )
        if "members" in parts:
            wanted = wanted.with_rows(self.roster, self.columns, self.where)
        plan = plan_organization(wanted, reader, parts)
        self.log.info("Organization %s: %s", organization_id, plan.table())
        return PlannedOrganization(organization_id, wanted, plan)

    @property
    def file_name(self) -> str:
        """Name of the file, for messages."""
        if isinstance(self.file, Mapping):
            return "the organization"
        _, _, name = str(self.file).rpartition("/")
        return name

    @property
    def title(self) -> str:
        """Name of the organization, for mapped tasks and approvals."""
        return self.organization or self.file_name

    @property
    def map_label(self) -> str:
        """What Airflow shows in place of the map index: with native rendering, 360 alone would become a number."""
        from airflow_provider_workspace.api.database_limits import label

        return label(f"Organization {self.title}")

    def checked_file(self) -> str | Mapping[str, Any]:
        """Return the path of the file, or its content."""
        from airflow_provider_workspace.errors import WorkspaceInputError, type_name

        file = str(self.file) if hasattr(self.file, "storage_options") else self.file
        if not isinstance(file, str | Mapping):
            raise WorkspaceInputError(
                f"file must be the path of an organization file or a mapping, not {type_name(file)}"
            )
        return file

    def render(self, text: str) -> str:
        """
        Render a file if it is a template.

        :raises WorkspaceInputError: if a template is invalid or has no value, or the Dag does not say if the file is
            one
        """
        from jinja2 import TemplateError

        from airflow_provider_workspace.api.templates import template_line
        from airflow_provider_workspace.errors import WorkspaceInputError

        if not self.render_file:
            line = template_line(text)
            if line and self.render_file is None:
                why = f"Line {line} of {self.file_name} holds '{{{{', '{{%' or '{{#'"
                cure = "Set render_file=True if it is a Jinja template that only authors of Dags write, else False"
                raise WorkspaceInputError(f"{why}. {cure}")
            return text
        try:
            env = self.get_template_env().overlay(finalize=_check_value)
            rendered = self.render_template(text, self._context, env)
        except TemplateError as error:
            number = getattr(error, "lineno", None)
            where = f", line {number}" if number else ""
            reason = str(error).rstrip(".")
            msg = f"Invalid template in the organization file{where}: {reason}. Correct it"
            raise WorkspaceInputError(msg) from None
        if isinstance(rendered, str):
            return rendered
        # With render_template_as_native_obj, text that looks like a Python value becomes one.
        return json.dumps(rendered, default=str)


def _check_value(value: object) -> Any:
    """Refuse a template without a value, which would become the word "None" in the file."""
    from jinja2 import UndefinedError

    if value is None:
        raise UndefinedError("a template returned no value; give it a default, such as {{ name | default('', true) }}")
    return value


class WorkspacePlanOrganizationOperator(WorkspaceOrganizationOperator, WorkspaceApprovalMixin):
    """
    Compare an organization with its file, and plan the changes; sends no writes.

    Scopes ``project:read``, ``organization:read``, ``organization_member:read`` and ``dashboard:read``, if the file has
    projects, domains, members and dashboards.

    The log shows the plan as a table: ``+`` create, ``~`` change, ``-`` remove, and in words what nobody but a
    person can change (*by hand*) and what the service hides (*cannot be known*).

    The result is ``pending`` (number of changes), ``differences`` (these, changes that a person must make, and what
    cannot be known), ``counts``, ``changes``, the beginning of the ``table``, ``planned_for``, and ``approved_by``,
    which is empty if nobody was asked.

    :param fail_on_difference: whether the task fails if the organization differs from its file, or may differ: a drift
        check
    :param report_path: file for the whole plan, ``.csv`` or ``.json``, on the worker or in an object store, but not in
        a versioned Dag bundle; it is written before the question
    """

    may_leave_out = True
    fail_on_difference: Arg[bool] = arg(kinds.SWITCH, default=False)
    report_path: Arg[ObjectStoragePath | None] = arg(kinds.PATH, default=None)

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.errors import with_problem
        from airflow_provider_workspace.files.reports import raise_if_read
        from airflow_provider_workspace.procedures.plan import MAX_LINES, REPORT_FIELDS

        source = None if isinstance(self.file, Mapping) else self.file
        file = self.open_report("changes", REPORT_FIELDS, (), self.report_path, sources=[source])
        planned = self.plan(hook)
        plan = planned.plan
        members = planned.wanted.members
        raise_if_read(self.report_path, [members.roster if members else None])
        is_only_shown = self.is_dry_run or self.fail_on_difference
        plan.check_losses(
            planned.wanted.max_removals,
            is_asked=self.require_approval or is_only_shown,
            is_approved=self.approved_by != "",
        )
        self.reported(file, plan.to_dict())
        if self.fail_on_difference and plan.differences:
            unknown = plan.counts["unknown"]
            of_which = f", of which {unknown} cannot be known" if unknown else ""
            summary = f"The organization differs from its file: {plan.differences} differences{of_which}."
            msg = f"{summary}\n{plan.table(limit=MAX_LINES)}"
            raise AirflowFailException(with_problem(msg, "differences-found"))
        has_name = self.organization or not isinstance(self.file, Mapping)
        name = self.title if has_name else ""
        organization = describe_organization(hook.client.settings, planned.organization_id, name)
        self.await_approval(f"Make these changes to {organization}?", plan, report=file)
        report = plan.to_dict()
        if file:
            self.reported(file, report)
        return {**self.reported(None, report), "approved_by": self.approved_by}


class WorkspaceApplyOrganizationOperator(WorkspaceOrganizationOperator):
    """
    Apply an organization file, or one part of it.

    The task plans the part again and sends only the differences, with the look-ups and retries of the operators for
    single resources. So a retry continues where the earlier try ended, and a second run changes nothing. Without
    ``part``, the task applies all of them, one after another; a part that fails stops those that follow.

    The result is the applied plan of the part; without ``part``, the applied plans by part.

    ==================== =========================================================== ================================
    part                 what it does                                                scopes
    ==================== =========================================================== ================================
    ``projects``         creates projects                                            ``project:write``
    ``domains``          claims domains; removes others if ``complete`` says so. The ``organization:write``
                         XCom ``unverified`` has the ``domain`` and the
                         ``verification_challenge`` of each one to be published
    ``verification``     asks for verification and waits for it, then sets settings  ``organization:write``
    ``members``          invites, changes levels; removes if complete, or at an end  ``organization_member:write``
    ``dashboards``       creates and changes dashboards; a Variable remembers each   ``dashboard:write``
    ``collaborators``    adds to dashboards; removes if complete, or at an end       ``dashboard:write``
    ``exports``          pauses and resumes; skips exports that a window holds       ``batch_export:write``
    ==================== =========================================================== ================================

    :param part: the part; by default all, in this order. The challenges of new domains are then in the log, to be
        published while the task waits for the verification
    :type part: ``str``
    :param approved: an earlier plan, the result of
        :class:`~airflow_provider_workspace.operators.organization.WorkspacePlanOrganizationOperator`. If this plan has
        a change that the earlier one does not have, or that starts from other values, the task fails and sends nothing
    :param poke_interval: time between two requests to verify the domains. If it is more than a minute, the task defers
    :param timeout: how long to wait for the verification
    """

    part: Arg[Part | None] = arg(kinds.NAME, default=None)
    approved: Arg[Mapping[str, Any] | None] = arg(kinds.NEEDED, default=None)
    poke_interval: timedelta | float = fixed(kinds.SECONDS_FROM_ONE, default=300.0)
    timeout: timedelta | float = fixed(kinds.SECONDS, default=3 * 86_400.0)

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.errors import WorkspaceInputError, with_problem
        from airflow_provider_workspace.organization.plan import PARTS
        from airflow_provider_workspace.procedures.apply_plan import raise_if_access_is_left
        from airflow_provider_workspace.procedures.invites import WITHDRAWING, wait_for_consistency
        from airflow_provider_workspace.procedures.plan import ApprovedPlan

        parts = PARTS if self.part is None else (choice(*PARTS).read("part", self.part),)
        approved = ApprovedPlan.read(self.approved, "WorkspacePlanOrganizationOperator")
        if "members" in parts:
            wait_for_consistency(hook.client, self.task_state, WITHDRAWING)
        planned = self.approved_plan(hook, parts, approved)
        if self.is_dry_run:
            return self.reported(None, planned.plan.to_dict())
        withdrawn = self.withdrawn_invites(hook.client, planned.plan.planned_for)
        unproven: list[str] = self._carried.setdefault("unproven", [])
        left: list[str] = self._carried.setdefault("left", [])
        if self.part is not None:
            result = self.apply(hook, self.part, planned, withdrawn)
            raise_if_access_is_left(withdrawn.unproven(planned.plan), planned.plan.left_by_hand)
            return result
        results: dict[str, Any] = self._carried.setdefault("parts", {})
        try:
            for part in PARTS[len(results) :]:
                planned = self.approved_plan(hook, (part,), approved)
                results[part] = self.apply(hook, part, planned, withdrawn)
                unproven += withdrawn.unproven(planned.plan)
                left += planned.plan.left_by_hand
        except WorkspaceInputError as error:  # it says that nothing was sent, which is true of this part alone
            failed = PARTS[len(results)]
            before = ", ".join(results) or "nothing"
            msg = f"Not applied: {failed}. Applied before it: {before}. {error.why}"
            raise AirflowFailException(with_problem(msg, otherwise=error.general_problem)) from None
        raise_if_access_is_left(unproven, left)
        return results

    def approved_plan(
        self, hook: WorkspaceHook, parts: Collection[str], approved: ApprovedPlan | None
    ) -> PlannedOrganization:
        """Plan, and refuse changes that were not approved."""
        from airflow_provider_workspace.access.notes import AccessNotes

        planned = self.plan(hook, parts)
        if not self.is_dry_run:
            AccessNotes.of_tasks(hook.client.settings, planned.organization_id).note_leaves(planned.plan)
        planned.plan.check_approved_plan(approved)
        is_approved = approved is not None and approved.approved_by != ""
        planned.plan.check_losses(
            planned.wanted.max_removals,
            is_asked=self.is_dry_run,
            is_approved=is_approved,
            cure="Plan with WorkspacePlanOrganizationOperator(require_approval=True) and pass its output as approved=",
        )
        return planned

    def apply(
        self, hook: WorkspaceHook, part: str, planned: PlannedOrganization, withdrawn: WithdrawnInvites
    ) -> dict[str, Any]:
        """Send the changes of a part, and return the applied plan."""
        from airflow_provider_workspace.access.notes import AccessNotes
        from airflow_provider_workspace.notes.lease_store import LeaseVariables
        from airflow_provider_workspace.organization.plan import plan_organization
        from airflow_provider_workspace.organization.reader import AirflowOrganizationReader
        from airflow_provider_workspace.procedures.apply_plan import apply
        from airflow_provider_workspace.procedures.invites import WITHDRAWING
        from airflow_provider_workspace.procedures.plan import ChangeResult

        plan = planned.plan
        plan.take_over(self.journal, part)
        organization_id = planned.organization_id
        access = AccessNotes.of_tasks(hook.client.settings, organization_id)
        verifications = [change for change in plan.changes if "is_verified" in change.after and change.operation]
        noted = self.journal.earlier_at(plan.planned_for)
        self.journal.begin([plan.sending_of(change) for change in verifications if change.key not in noted])
        self.wait_for_verification(hook.client, verifications)
        for change in verifications:
            plan.outcomes[change] = ChangeResult("done")

        def plan_again() -> Plan:
            reader = AirflowOrganizationReader(hook.client, organization_id, store=LeaseVariables(), access=access)
            return plan_organization(planned.wanted, reader, (part,))

        def invite(rows: list[dict[str, Any]]) -> InvitesReport:
            return self.invite_people(rows, hook, organization_id, withdrawn=plan.withdrawn)

        if part == "members":
            self.show_by_hand(plan, organization_id)
        withdrawn.begin(plan)
        if plan.withdraws_invites:
            self.task_state.begin(WITHDRAWING)
        with access.watched(hook.client, plan):
            apply(hook.client, plan, invite, plan_again, memory_of=self.memory_of, journal=self.journal)
        if part == "members":
            plan.joined += withdrawn.joined(plan_again)
        access.settle(plan)
        if part == "domains" and "ti" in self._context:
            self.push_xcom("unverified", self.unverified(hook, planned.wanted, organization_id))
        return self.reported(None, plan.to_dict(applied=True))

    def memory_of(self, change: Change) -> TaskState:
        """Return the task state of one change."""
        from airflow_provider_workspace.notes.note import digest
        from airflow_provider_workspace.notes.task_state import KEY, TaskState

        carried = self._carried.setdefault(change.name, {})
        return TaskState(self._context, carried, clock=time.time, key=f"{KEY}.{digest(change.name)}")

    def wait_for_verification(self, client: WorkspaceClient, changes: Sequence[Change]) -> None:
        """
        Request the verification of domains until all are verified.

        :raises AirflowFailException: if one is not verified in time
        """
        from airflow_provider_workspace.errors import with_problem

        poke_interval = cast("float", self.poke_interval)
        timeout = cast("float", self.timeout)
        end_at: float = self._carried.setdefault("end_at", time.time() + timeout)
        left = list(changes)
        while True:
            instructions = {change: change.send(client) for change in left}
            left = [change for change in left if instructions[change]]
            if not left:
                return
            for change in left:
                if time.time() > end_at:
                    msg = f"The domain was not verified in time. {instructions[change]}, then clear this task"
                    raise AirflowFailException(with_problem(msg, "domain-not-verified"))
                self.log.info("%s: it is not verified yet.", instructions[change])
            client.pause(poke_interval)

    def unverified(self, hook: WorkspaceHook, wanted: Organization, organization_id: str) -> list[dict[str, Any]]:
        """Return the domains of the file that are not verified yet."""
        from airflow_provider_workspace.api.comparison import domain_key
        from airflow_provider_workspace.api.operations.domains import ListDomains
        from airflow_provider_workspace.procedures.find import read_rows

        wanted_keys = {domain_key(entry.domain) for entry in wanted.domains if entry.verified}
        domains = read_rows(hook.client, ListDomains(organization_id=organization_id))
        unverified = [domain for domain in domains if not domain.is_verified]
        return [self.plain(domain) for domain in unverified if domain_key(domain.domain or "") in wanted_keys]
