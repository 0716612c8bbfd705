"""Plan the changes that make an organization match its file."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from airflow_provider_workspace.access.members.plan import NOT_ON_ROSTER, plan_members
from airflow_provider_workspace.access.rules.guards import HIDDEN, NO_GUARDS
from airflow_provider_workspace.api import operations as ops
from airflow_provider_workspace.api.comparison import address_key, differences, domain_key, unshown
from airflow_provider_workspace.api.operations.domains import DomainFields
from airflow_provider_workspace.api.secrets import without_secrets
from airflow_provider_workspace.errors import WorkspaceInputError, WorkspaceOutcomeUnknownError
from airflow_provider_workspace.organization.collaborators import DashboardCollaborators, plan_collaborators
from airflow_provider_workspace.procedures.conditions import ask_verification
from airflow_provider_workspace.procedures.find import domain_name, find_project, read_rows
from airflow_provider_workspace.procedures.plan import Action, Change, Plan
from airflow_provider_workspace.procedures.roster_files import read_roster
from airflow_provider_workspace.procedures.until import remark_on_midnight

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Dashboard, Domain
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.organization.file import (
        DashboardEntry,
        DomainEntry,
        Organization,
        ProjectEntry,
    )
    from airflow_provider_workspace.organization.reader import AirflowOrganizationReader
    from airflow_provider_workspace.procedures.access_list import AccessList

log = logging.getLogger(__name__)

# In the order in which they are applied.
PARTS = ("projects", "domains", "verification", "members", "dashboards", "collaborators", "exports")
# Fields that are sent with the create of a dashboard and cannot be read.
CREATE_ONLY_FIELDS = {"use_template", "use_dashboard"}
# Fields of an entry that are not fields of the dashboard.
ENTRY_ONLY_FIELDS = {"variable_key", "collaborators"}


@dataclass(frozen=True, slots=True)
class PlannedOrganization:
    """
    The plan of an organization.

    :param organization_id: its id
    :param wanted: the organization of the file
    """

    organization_id: str
    wanted: Organization
    plan: Plan


def plan_organization(wanted: Organization, reader: AirflowOrganizationReader, parts: Collection[str] = PARTS) -> Plan:
    """
    Compare an organization with its file.

    :param parts: which of :data:`PARTS` to plan
    :raises WorkspaceInputError: if the roster is invalid, or the file contradicts itself
    """
    changes: list[Change] = []
    if "projects" in parts:
        changes += _plan_projects(wanted, reader)
    if wanted.domains and ("domains" in parts or "verification" in parts):
        changes += _plan_domains(wanted, reader)
    people = _plan_members(wanted, reader) if "members" in parts else Plan()
    changes += people.changes
    hidden = 0
    for project in wanted.projects:
        for dashboard in project.dashboards:
            if not reader.knows_dashboards and _project_id(reader, project):
                hidden += 1
            elif "dashboards" in parts or ("collaborators" in parts and dashboard.collaborators is not None):
                changes += _plan_dashboard(wanted, project, dashboard, reader, access_list=people.access_list)
    if "exports" in parts:
        changes += _plan_exports(wanted, reader)
    planned = [change for change in changes if change.part in parts]
    planned.sort(key=lambda change: PARTS.index(change.part))
    if hidden:
        why = "known only to Airflow, as are their collaborators"
        planned.append(Change("skip", "dashboards", f"dashboards of existing projects: {hidden}", why=why))
    where = reader.client.settings.organization_at_service(reader.organization_id)
    remarks = [people.remark, _remark_on_collaborators(wanted) if "collaborators" in parts else ""]
    remark = "\n".join(filter(None, remarks))
    return Plan(
        where,
        planned,
        members=people.members,
        remark=remark,
        outcomes=people.outcomes,
        access_list=people.access_list,
        check_rest=people.check_rest,
    )


def _remark_on_collaborators(wanted: Organization) -> str:
    """Ask about ends of collaborators at midnight, see :func:`remark_on_midnight`."""
    ends: dict[str, str | None] = {}
    for project in wanted.projects:
        for dashboard in project.dashboards:
            for person in dashboard.collaborators or ():
                ends[f"of collaborator {person.email} of {project.name} / {dashboard.name}"] = person.until
    return remark_on_midnight(ends)


def _project_id(reader: AirflowOrganizationReader, entry: ProjectEntry) -> str | None:
    """Return the id of the project of an entry; ``None`` if there is none. See :func:`find_project`."""
    found = find_project(entry.name, reader.projects)
    return str(found.id) if found else None


def _plan_projects(wanted: Organization, reader: AirflowOrganizationReader) -> list[Change]:
    changes: list[Change] = []
    for entry in wanted.projects:
        fields = entry.model_dump(mode="json", exclude_unset=True, exclude={"dashboards"})
        create = ops.projects.CreateProject(organization_id=reader.organization_id, **fields)
        name = f"project {entry.name}"
        project_id = _project_id(reader, entry)
        if project_id is None:
            del fields["name"]
            changes.append(Change("create", "projects", name, after=without_secrets(fields), operation=create))
            continue
        get = ops.projects.GetProject(organization_id=reader.organization_id, project_id=project_id)
        changes += _compare("differs", "projects", name, operation=create, record=reader.client.send(get))
    return changes


def _plan_domains(wanted: Organization, reader: AirflowOrganizationReader) -> list[Change]:
    ids: dict[str, Any] = {"organization_id": reader.organization_id}
    listed = read_rows(reader.client, ops.domains.ListDomains(**ids))
    rows = {domain_key(row.domain): row for row in listed if row.domain}
    changes: list[Change] = []
    for entry in wanted.domains:
        row = rows.pop(domain_key(entry.domain), None)
        if row is None:
            create = ops.domains.CreateDomain(**ids, domain=domain_name(entry.domain))
            changes.append(Change("create", "domains", f"domain {create.domain}", operation=create))
        changes += _domain_changes(entry, row, ids)
    if "domains" not in wanted.complete:
        return changes
    for key, row in rows.items():
        delete = ops.domains.DeleteDomain(**ids, domain_id=str(row.id))
        changes.append(Change("remove", "domains", f"domain {key}", why="not in the file", operation=delete))
    return changes


def _domain_changes(entry: DomainEntry, row: Domain | None, ids: dict[str, Any]) -> list[Change]:
    """Compare one domain with its entry; ``None`` if it does not exist yet."""
    name = f"domain {domain_name(entry.domain)}"
    key = {"domain": domain_key(entry.domain)}
    settings = entry.model_dump(mode="json", exclude_unset=True, exclude={"domain", "verified"})
    is_as_new = _is_as_new(row, settings)
    changes: list[Change] = []
    if entry.verified and not (row and row.is_verified):
        changes.append(_verification(name, row, ids, {**key, "is_verified": True} if is_as_new else None))
    if not settings:
        return changes
    intended = {**key, **settings} if is_as_new else None
    if row is None:
        changes.append(Change("change", "verification", name, after=without_secrets(settings), intended=intended))
    else:
        update = ops.domains.UpdateDomain(**ids, domain_id=str(row.id), **settings)
        changes += _compare("change", "verification", name, operation=update, record=row, intended=intended)
    return changes


def _is_as_new(row: Domain | None, settings: Mapping[str, Any]) -> bool:
    """
    Return whether a domain has no other settings than those of its entry.

    Somebody else may have claimed it since a plan for a new one was approved.
    """
    for field in DomainFields.model_fields:
        value = getattr(row, field, None)
        if value and value != settings.get(field):
            return False
    return True


def _verification(name: str, row: Domain | None, ids: Mapping[str, Any], intended: Mapping[str, Any] | None) -> Change:
    """Return the verification of a domain; ``None`` if it does not exist yet."""
    verify: ops.domains.VerifyDomain | None = None
    before: dict[str, Any] = {}
    if row:
        verify = ops.domains.VerifyDomain(**ids, domain_id=str(row.id))
        before = {"is_verified": False}
    return Change(
        "change",
        "verification",
        name,
        after={"is_verified": True},
        before=before,
        operation=verify,
        intended=intended,
        apply=lambda client, _: _verify(client, verify),
    )


def _verify(client: WorkspaceClient, verify: Any) -> str:
    """Request the verification of a domain, and return what is to be done; an empty string if it is verified."""
    ask_verification(client, verify.organization_id, verify.domain_id)
    domain = client.send(ops.domains.GetDomain(organization_id=verify.organization_id, domain_id=verify.domain_id))
    if domain.is_verified:
        log.info("The domain '%s' is verified.", domain.domain)
        return ""
    return f"Publish a TXT record with the value {domain.verification_challenge} in the DNS of {domain.domain}"


def _plan_members(wanted: Organization, reader: AirflowOrganizationReader) -> Plan:
    """Compare the people; nobody is removed unless the list is complete, or whom the file names as collaborator."""
    members = wanted.members
    if members is None or members.people == []:
        return Plan()
    if members.roster is None and members.given_rows is None:
        return Plan(changes=[Change("skip", "members", "people", why="a task passes them as roster=…")])
    rows = read_roster(
        members.given_rows,
        reader.file_at(members.roster),
        members.defaults.model_dump(exclude_unset=True) if members.defaults else None,
        argument="roster",
        columns=members.columns,
        where=members.where,
        row_format=members.row_format,
        now=reader.now,
        levels_are_named=members.people is not None,
    )
    plan = plan_members(
        reader.client,
        reader.organization_id,
        rows,
        members.guards,
        now=reader.now,
        complete="members" in wanted.complete,
        read_members=lambda: reader.members,
        noted=reader.noted,
        renew_invites=members.renew_invites,
        again=reader.invite_again(members.invite_again),
    )
    removals = [change for change in plan.changes if change.action == "remove"]
    going = {change.person for change in removals if NOT_ON_ROSTER in change.why}
    _refuse_collaborators_who_go(wanted, going, reader.now)
    return plan


def _refuse_collaborators_who_go(wanted: Organization, going: Collection[str], now: datetime) -> None:
    """
    Refuse a file that adds people to dashboards whom it removes from the organization.

    :param going: the keys of their addresses
    """
    mistakes: dict[tuple[str | int, ...], str] = {}
    for number, project in enumerate(wanted.projects):
        for position, entry in enumerate(project.dashboards):
            for row, person in enumerate(entry.collaborators or ()):
                # An end may come when the file is correct.
                if address_key(person.email) not in going or person.is_over(now):
                    continue
                path = ("projects", number, "dashboards", position, "collaborators", row)
                mistakes[path] = (
                    f"name {person.email} under members too, or not here: 'complete: [members]' would remove them"
                )
    if mistakes:
        raise wanted.refusal(mistakes)


def _plan_dashboard(
    wanted: Organization,
    project: ProjectEntry,
    entry: DashboardEntry,
    reader: AirflowOrganizationReader,
    *,
    access_list: AccessList,
) -> list[Change]:
    """Compare a dashboard that Airflow remembers, and its collaborators."""
    name = f"dashboard {project.name} / {entry.name}"
    fields = entry.model_dump(mode="json", exclude_unset=True, exclude=ENTRY_ONLY_FIELDS)
    project_id = _project_id(reader, project)
    dashboard: Dashboard | None = None
    if project_id:
        try:
            dashboard = reader.find_dashboard(project.name, project_id, entry)
        except (WorkspaceInputError, WorkspaceOutcomeUnknownError) as error:
            why = str(error)

            def refuse(*_: object) -> NoReturn:
                raise WorkspaceInputError(why)

            return [Change("differs", "dashboards", name, why=why, apply=refuse)]
    changes: list[Change] = []
    if dashboard is None:
        create = ops.dashboards.CreateDashboard(project_id=project_id, **fields) if project_id else None
        changes.append(_creation(name, create, fields, project=project, entry=entry, reader=reader))
    else:
        compared = {key: value for key, value in fields.items() if key not in CREATE_ONLY_FIELDS}
        update = ops.dashboards.UpdateDashboard(project_id=str(project_id), dashboard_id=dashboard.id or 0, **compared)
        changes += _compare("change", "dashboards", name, operation=update, record=dashboard)
    if entry.collaborators is not None:
        ids = {"project_id": project_id, "dashboard_id": dashboard.id} if dashboard else None
        changes += plan_collaborators(
            reader.client,
            DashboardCollaborators(project.name, entry.name, ids),
            entry.collaborators,
            members=reader.members,
            now=reader.now,
            access_list=access_list,
            guards=wanted.members.guards if wanted.members else NO_GUARDS,
            is_complete="collaborators" in wanted.complete,
        )
    return changes


def _creation(
    name: str,
    create: ops.dashboards.CreateDashboard | None,
    fields: Mapping[str, Any],
    *,
    project: ProjectEntry,
    entry: DashboardEntry,
    reader: AirflowOrganizationReader,
) -> Change:
    """
    Return the creation of a dashboard that Airflow does not remember.

    :param create: the operation; ``None`` if its project does not exist yet
    """

    def apply(_: WorkspaceClient, memory: Any) -> object:
        return create and reader.create_dashboard(project.name, create, entry, memory)

    return Change(
        "create",
        "dashboards",
        name,
        after=without_secrets({field: value for field, value in fields.items() if field != "name"}),
        why="Airflow remembers none; the interface cannot show whether one exists",
        operation=create,
        intended={"project": project.name, **fields},
        apply=apply,
    )


def _plan_exports(wanted: Organization, reader: AirflowOrganizationReader) -> list[Change]:
    """Plan the exports, whose state cannot be read; exports that a maintenance window holds are left alone."""
    changes: list[Change] = []
    for entry in wanted.exports:
        export_id = entry.batch_export_id
        kind = ops.batch_exports.PauseBatchExport if entry.paused else ops.batch_exports.UnpauseBatchExport
        change = Change(
            "set",
            "exports",
            f"export {export_id}",
            after={"paused": entry.paused},
            why="sent again each time: the interface does not show whether it is paused",
            operation=kind(organization_id=reader.organization_id, batch_export_id=export_id),
            held=partial(_held_by_window, reader, export_id),
        )
        changes.append(change.unless_held())
    return changes


def _held_by_window(reader: AirflowOrganizationReader, export_id: str) -> str:
    """Return why an export is left alone; empty if no maintenance window holds it."""
    window = reader.window_of(export_id)
    return f"left alone: the maintenance window {window} holds it" if window else ""


def _compare(
    action: Action,
    part: str,
    name: str,
    *,
    operation: Operation[Any],
    record: Any,
    intended: Mapping[str, Any] | None = None,
) -> list[Change]:
    """
    Return the change for the fields in which a record differs from an operation, or which it does not show.

    :param action: ``change``, or ``differs`` if the operation cannot change the record
    """
    rows = differences(operation, record)
    hidden = unshown(operation, record)
    if not rows and not hidden:
        return []
    after = {row["field"]: row["asked"] for row in rows}
    before = {row["field"]: row["got"] for row in rows}
    if hidden:
        payload = operation.payload()
        after |= {field: payload[field] for field in hidden}
    by_hand = action == "differs"
    reasons: list[str] = []
    if by_hand and rows:
        reasons.append("change it by hand: the interface cannot")
    if hidden:
        reason = HIDDEN + ", ".join(hidden)
        reasons.append(reason if by_hand else f"sent each time: {reason}")
    change = Change(
        action if rows else "unknown",
        part,
        name,
        after=without_secrets(after),
        before=before,
        why=", ".join(reasons),
        operation=None if by_hand else operation,
        intended=intended,
        not_shown=hidden,
    )
    return [change]
