"""Plan the changes that make an organization match its file; reads only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api import operations as ops
from airflow_provider_workspace.api.comparison import address_key, differences, domain_key
from airflow_provider_workspace.errors import WorkspaceInputError, WorkspaceOutcomeUnknownError
from airflow_provider_workspace.procedures.member_sync import MemberPlan, check_owner_stays, plan_members
from airflow_provider_workspace.procedures.plan import MAX_LINES, PENDING, SYMBOLS, Change
from airflow_provider_workspace.procedures.resources import check_not_cut, domain_name, project_key
from airflow_provider_workspace.procedures.roster_files import read_roster
from airflow_provider_workspace.procedures.snapshot import read_rows

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Dashboard, DashboardCollaborator, Domain, Member, ProjectItem
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.procedures.organization_file import (
        DashboardEntry,
        DomainEntry,
        Organization,
        ProjectEntry,
    )

# In the order in which they are applied.
PARTS = ("projects", "domains", "verification", "members", "dashboards", "collaborators", "exports")
COLOURS = {"+": 32, "~": 33, "-": 31, "!": 36, "=": 36}
# Fields that are sent with the create of a dashboard and cannot be read.
CREATE_ONLY_FIELDS = {"use_template", "use_dashboard"}
# Fields of an entry that are not fields of the dashboard.
ENTRY_ONLY_FIELDS = {"variable_key", "collaborators"}


@dataclass(slots=True)
class OrganizationPlan:
    """
    The changes, in the order in which they are applied.

    :param planned_for: the service and the organization
    :param changes: changes of all planned parts
    :param members: the changes to members as the member sync applies them
    """

    planned_for: str = ""
    changes: list[Change] = field(default_factory=list[Change])
    members: MemberPlan = field(default_factory=MemberPlan)

    @property
    def counts(self) -> dict[str, int]:
        """Number of changes by action."""
        counted = Counter(change.action for change in self.changes)
        return {action: counted[action] for action in SYMBOLS}

    @property
    def pending(self) -> int:
        """Number of changes to apply, without states that cannot be read."""
        return sum(self.counts[action] for action in PENDING)

    @property
    def differences(self) -> int:
        """Number of differences between the organization and its file, with those that cannot be known."""
        return self.pending + self.counts["differs"] + self.counts["unknown"]

    def to_dict(self, *, applied: bool = False) -> dict[str, Any]:
        """Return plain JSON: numbers, ``changes``, the beginning of the ``table``, and ``planned_for``."""
        return {
            "pending": self.pending,
            "differences": self.differences,
            "counts": self.counts,
            "changes": [change.to_dict(self.planned_for) for change in self.changes],
            "table": self.table(limit=MAX_LINES, applied=applied),
            "planned_for": self.planned_for,
        }

    def summary(self, *, applied: bool = False) -> str:
        """Return the numbers for people; ``applied`` if the changes were sent."""
        counts = self.counts
        if applied:
            verified = sum(isinstance(change.operation, ops.domains.VerifyDomain) for change in self.changes)
            domains = f" (domains verified: {verified})" if verified else ""
            done = f"{counts['create']} created, {counts['change']} changed{domains}, {counts['remove']} removed"
            rest = {"paused or resumed": counts["set"], "cannot be known": counts["unknown"]}
        else:
            done = f"{counts['create']} to create, {counts['change']} to change, {counts['remove']} to remove"
            rest = {"cannot be known": counts["set"] + counts["unknown"]}
        rest |= {"to change by hand": counts["differs"], "left for a later run": counts["wait"]}
        rest["skipped, as duplicates"] = counts["skip"]
        return ", ".join([done, *(f"{count} {what}" for what, count in rest.items() if count)])

    def table(self, *, coloured: bool = False, limit: int | None = None, applied: bool = False) -> str:
        """
        Return the plan for people: a summary, and a line for each change.

        :param limit: maximum number of lines of one part
        """
        lines = [self.summary(applied=applied)]
        for part in PARTS:
            of_part = [change for change in self.changes if change.part == part]
            for change in of_part[:limit]:
                code, line = COLOURS[SYMBOLS[change.action]], change.line()
                lines.append(f"\x1b[{code}m{line}\x1b[0m" if coloured else line)
            if limit is not None and len(of_part) > limit:
                lines.append(f"    … and {len(of_part) - limit} more {part}")
        return "\n".join(lines)

    def check_removals(self, maximum: int | None) -> None:
        """
        Refuse a plan with too many removals.

        :param maximum: maximum number of removals; ``None`` for any number
        :raises WorkspaceInputError: if there are more
        """
        going = self.counts["remove"]
        if maximum is not None and going > maximum:
            raise WorkspaceInputError(
                f"Check that the lists of the file are complete; if they are, raise max_removals={maximum}: {going} "
                "would be removed"
            )


@dataclass(slots=True)
class OrganizationReader:
    """
    Reads an organization; each list is read once, when it is needed first.

    :param find_dashboard: reads a dashboard that Airflow remembers, by name and id of its project; returns ``None`` if
        Airflow remembers none
    :param window_of: returns the maintenance window that holds a batch export; an empty string if none does
    :param planned_for: the service and the organization
    """

    client: WorkspaceClient
    organization_id: str
    find_dashboard: Callable[[str, str, DashboardEntry], Dashboard | None]
    window_of: Callable[[str], str]
    file_at: Callable[[str], Any]
    planned_for: str = ""
    _projects: list[ProjectItem] | None = None
    _members: list[Member] | None = None

    @property
    def page_size(self) -> int:
        return self.client.settings.page_size

    def projects(self) -> list[ProjectItem]:
        if self._projects is None:
            self._projects = read_rows(
                self.client,
                ops.projects.ListProjects(organization_id=self.organization_id, limit=self.page_size),
            )
        return self._projects

    def members(self) -> list[Member]:
        if self._members is None:
            self._members = read_rows(
                self.client,
                ops.members.ListMembers(organization_id=self.organization_id, limit=self.page_size),
            )
        return self._members

    def project_id(self, entry: ProjectEntry) -> str | None:
        """
        Return the id of the project with the name of an entry; ``None`` if there is none.

        :raises WorkspaceInputError: if there are several
        :raises WorkspaceNotAppliedError: if the service would cut the name
        """
        rows = self.projects()
        found = [row.id for row in rows if project_key(row.name) == project_key(entry.name)]
        if not found:
            check_not_cut(entry.name, (row.name for row in rows))
        if len(found) > 1:
            ids = ", ".join(map(str, found))
            raise WorkspaceInputError(f"Rename all but one of the projects named '{entry.name}': ids {ids}")
        return str(found[0]) if found else None


def plan_organization(
    wanted: Organization, reader: OrganizationReader, parts: Collection[str] = PARTS
) -> OrganizationPlan:
    """
    Compare an organization with its file.

    :param parts: which of :data:`PARTS` to plan
    :raises WorkspaceInputError: if the roster is invalid, or the file contradicts itself
    """
    plan = OrganizationPlan(reader.planned_for)
    if "projects" in parts:
        plan.changes += _plan_projects(wanted, reader)
    if wanted.domains and ("domains" in parts or "verification" in parts):
        plan.changes += [change for change in _plan_domains(wanted, reader) if change.part in parts]
    if wanted.members and "members" in parts:
        plan.members = _plan_members(wanted, reader)
        _refuse_contradictions(wanted, plan.members)
        plan.changes += filter(None, (change.planned(reader.organization_id) for change in plan.members.changes))
        plan.changes += [
            Change("differs", "members", f"row {entry.row} {entry.email}".rstrip(), why=f"left out: {entry.reason}")
            for entry in plan.members.invalid
        ]
    for project in wanted.projects:
        for dashboard in project.dashboards:
            if "dashboards" in parts or ("collaborators" in parts and dashboard.collaborators is not None):
                changes = _plan_dashboard(wanted, project, dashboard, reader)
                plan.changes += [change for change in changes if change.part in parts]
    if "exports" in parts:
        plan.changes += _plan_exports(wanted, reader)
    plan.changes.sort(key=lambda change: PARTS.index(change.part))
    return plan


def _plan_projects(wanted: Organization, reader: OrganizationReader) -> list[Change]:
    changes: list[Change] = []
    for entry in wanted.projects:
        fields = entry.model_dump(mode="json", exclude_unset=True, exclude={"dashboards"})
        create = ops.projects.CreateProject(organization_id=reader.organization_id, **fields)
        settings = {name: value for name, value in fields.items() if name != "name"}
        name = f"project {entry.name}"
        project_id = reader.project_id(entry)
        if project_id is None:
            changes.append(Change("create", "projects", name, settings, operation=create))
            continue
        get = ops.projects.GetProject(organization_id=reader.organization_id, project_id=project_id)
        after, before = _changed_fields(create, reader.client.send(get))
        if after:
            why = "change it by hand: the interface cannot"
            changes.append(Change("differs", "projects", name, after, before, why))
    return changes


def _plan_domains(wanted: Organization, reader: OrganizationReader) -> list[Change]:
    organization_id = reader.organization_id
    listed = ops.domains.ListDomains(organization_id=organization_id, limit=reader.page_size)
    rows = {domain_key(row.domain): row for row in read_rows(reader.client, listed) if row.domain}
    changes: list[Change] = []
    for entry in wanted.domains:
        row = rows.pop(domain_key(entry.domain), None)
        if row is None:
            create = ops.domains.CreateDomain(organization_id=organization_id, domain=domain_name(entry.domain))
            changes.append(Change("create", "domains", f"domain {domain_name(entry.domain)}", operation=create))
        changes += _domain_changes(entry, row, organization_id)
    if "domains" in wanted.complete:
        for key, row in rows.items():
            delete = ops.domains.DeleteDomain(organization_id=organization_id, domain_id=str(row.id))
            changes.append(Change("remove", "domains", f"domain {key}", why="not in the file", operation=delete))
    return changes


def _domain_changes(entry: DomainEntry, row: Domain | None, organization_id: str) -> list[Change]:
    """Compare one domain with its entry; ``None`` if it does not exist yet."""
    name = f"domain {domain_name(entry.domain)}"
    settings = entry.model_dump(mode="json", exclude_unset=True, exclude={"domain", "verified"})
    changes: list[Change] = []
    if entry.verified and not (row and row.is_verified):
        verify = row and ops.domains.VerifyDomain(organization_id=organization_id, domain_id=str(row.id))
        before = {"is_verified": False} if row else {}
        after = {"is_verified": True}
        intended = {"domain": domain_key(entry.domain), **after}
        changes.append(
            Change("change", "verification", name, after, before, operation=verify or None, intended=intended)
        )
    if not settings:
        return changes
    intended = {"domain": domain_key(entry.domain), **settings}
    if row is None:
        return [*changes, Change("change", "verification", name, settings, intended=intended)]
    update = ops.domains.UpdateDomain(organization_id=organization_id, domain_id=str(row.id), **settings)
    after, before = _changed_fields(update, row)
    if after:
        changes.append(Change("change", "verification", name, after, before, operation=update, intended=intended))
    return changes


def _plan_members(wanted: Organization, reader: OrganizationReader) -> MemberPlan:
    """Compare the people; nobody is removed unless the list is complete."""
    members = wanted.members
    if members is None or (members.people is not None and not members.people):
        return MemberPlan()
    people = None if members.people is None else [one.model_dump(exclude_unset=True) for one in members.people]
    defaults = members.defaults.model_dump(exclude_unset=True) if members.defaults else None
    invites = read_rows(
        reader.client, ops.invites.ListInvites(organization_id=reader.organization_id, limit=reader.page_size)
    )
    plan = plan_members(
        read_roster(people, members.roster and reader.file_at(members.roster), defaults, argument="people"),
        invites,
        reader.members(),
        protected=members.protected,
        owner_level=None if members.owner_level is None else int(members.owner_level),
        on_invalid="fail" if "members" in wanted.complete else members.on_invalid,
    )
    if "members" not in wanted.complete:
        plan.changes = [change for change in plan.changes if change.is_listed]
    check_owner_stays(reader.members(), plan.changes)
    return plan


def _refuse_contradictions(wanted: Organization, plan: MemberPlan) -> None:
    """
    Refuse to remove people whom the file names as collaborators.

    :raises WorkspaceInputError: with the line of each
    """
    going = {address_key(change.email) for change in plan.changes if change.action in ("remove", "withdraw")}
    why = "name {} under members too, or not here: 'complete: [members]' would remove them"
    mistakes: dict[tuple[str | int, ...], str] = {
        ("projects", number, "dashboards", place, "collaborators", row): why.format(person.email)
        for number, project in enumerate(wanted.projects)
        for place, entry in enumerate(project.dashboards)
        for row, person in enumerate(entry.collaborators or ())
        if address_key(person.email) in going
    }
    if mistakes:
        raise wanted.refusal(mistakes)


def _plan_dashboard(
    wanted: Organization, project: ProjectEntry, entry: DashboardEntry, reader: OrganizationReader
) -> list[Change]:
    """Compare a dashboard that Airflow remembers, and its collaborators."""
    name = f"dashboard {project.name} / {entry.name}"
    fields = entry.model_dump(mode="json", exclude_unset=True, exclude=ENTRY_ONLY_FIELDS)
    project_id = reader.project_id(project)
    dashboard: Dashboard | None = None
    changes: list[Change] = []
    if project_id is not None:
        try:
            dashboard = reader.find_dashboard(project.name, project_id, entry)
        except (WorkspaceInputError, WorkspaceOutcomeUnknownError) as error:
            return [Change("differs", "dashboards", name, why=str(error))]
    if dashboard is None:
        create = project_id and ops.dashboards.CreateDashboard(project_id=project_id, **fields)
        after = {key: value for key, value in fields.items() if key != "name"}
        why = "Airflow remembers none; the interface cannot show whether one exists"
        changes.append(
            Change(
                "create",
                "dashboards",
                name,
                after,
                why=why,
                operation=create or None,
                intended={"project": project.name, **fields},
                project=project.name,
                entry=entry,
            )
        )
    else:
        compared = {key: value for key, value in fields.items() if key not in CREATE_ONLY_FIELDS}
        update = ops.dashboards.UpdateDashboard(project_id=str(project_id), dashboard_id=dashboard.id or 0, **compared)
        after, before = _changed_fields(update, dashboard)
        if after:
            changes.append(Change("change", "dashboards", name, after, before, operation=update))
    if entry.collaborators is not None:
        changes += _plan_collaborators(wanted, project, project_id, dashboard, entry, reader)
    return changes


def _plan_collaborators(
    wanted: Organization,
    project: ProjectEntry,
    project_id: str | None,
    dashboard: Dashboard | None,
    entry: DashboardEntry,
    reader: OrganizationReader,
) -> list[Change]:
    """Compare the collaborators of a dashboard; ``None`` if it does not exist yet."""
    where: dict[str, Any] = {"project_id": project_id, "dashboard_id": dashboard.id} if dashboard else {}
    listed = read_rows(reader.client, ops.dashboards.ListDashboardCollaborators(**where)) if where else []
    users = {
        address_key(member.user.email or ""): member.user.uuid
        for member in reader.members()
        if member.user and member.user.uuid
    }
    keys = {uuid.lower(): key for key, uuid in users.items()}
    rows: dict[str, DashboardCollaborator] = {}
    nameless: list[DashboardCollaborator] = []
    for row in listed:
        key = keys.get((row.label or "").lower()) or address_key((row.user and row.user.email) or "")
        if key:
            rows[key] = row
        else:
            nameless.append(row)
    where_shown = f"of {project.name} / {entry.name}"
    changes: list[Change] = []
    for person in entry.collaborators or ():
        name = f"collaborator {person.email} {where_shown}"
        level: dict[str, Any] = {} if person.level is None else {"level": person.level}
        key = address_key(person.email)
        intended = {"project": project.name, "dashboard": entry.name, "email": key, **level}
        found = rows.pop(key, None)
        if found is not None and (not level or found.level == person.level):
            continue
        if found is not None:
            why = "remove the collaborator by hand and run this again: the interface cannot change a level"
            changes.append(Change("differs", "collaborators", name, level, {"level": found.level}, why))
        elif key not in users:
            why = "not a member yet; added after joining"
            if nameless:
                why += f", unless one of {len(nameless)} collaborators without an e-mail address is this person"
            action = "unknown" if nameless else "wait"
            changes.append(Change(action, "collaborators", name, level, why=why, intended=intended))
        else:
            add = ops.dashboards.AddDashboardCollaborator(**where, user_uuid=users[key], **level) if where else None
            changes.append(Change("create", "collaborators", name, level, operation=add, intended=intended))
    if "collaborators" in wanted.complete:
        for key, row in [*rows.items(), *(("", row) for row in nameless)]:
            name, before = f"collaborator {key or row.label or '-'} {where_shown}", {"level": row.level}
            if not key or not row.label:
                why = "no member, and the service does not show who it is: remove them by hand if they should go"
                changes.append(Change("unknown", "collaborators", name, before=before, why=why))
                continue
            remove = ops.dashboards.RemoveDashboardCollaborator(**where, user_uuid=row.user_uuid or row.label)
            changes.append(
                Change("remove", "collaborators", name, before=before, why="not in the file", operation=remove)
            )
    return changes


def _plan_exports(wanted: Organization, reader: OrganizationReader) -> list[Change]:
    """Plan the exports, whose state cannot be read; exports that a maintenance window holds are left alone."""
    changes: list[Change] = []
    for entry in wanted.exports:
        export_id = str(entry.batch_export_id)
        window = reader.window_of(export_id)
        after = {"paused": entry.paused}
        if window:
            why = f"left alone: the maintenance window {window} holds it"
            changes.append(Change("wait", "exports", f"export {export_id}", after, why=why))
            continue
        kind = ops.batch_exports.PauseBatchExport if entry.paused else ops.batch_exports.UnpauseBatchExport
        operation = kind(organization_id=reader.organization_id, batch_export_id=export_id)
        why = "sent again each time: the interface does not show whether it is paused"
        changes.append(Change("set", "exports", f"export {export_id}", after, why=why, operation=operation))
    return changes


def _changed_fields(operation: Operation[Any], record: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields that differ between an operation and a record: the desired and the current values."""
    rows = differences(operation, record)
    return {row["field"]: row["asked"] for row in rows}, {row["field"]: row["got"] for row in rows}
