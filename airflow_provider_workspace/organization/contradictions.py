"""What two organization files say about one organization, and where they want different things."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.comparison import address_key, domain_key
from airflow_provider_workspace.api.levels import describe_level
from airflow_provider_workspace.procedures.find import project_key
from airflow_provider_workspace.procedures.roster import check_roster
from airflow_provider_workspace.procedures.roster_files import read_roster

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_provider_workspace.organization.file import Members, Organization, ProjectEntry
    from airflow_provider_workspace.procedures.roster import Row
    from airflow_provider_workspace.procedures.roster_tables import RosterFile

# Maximum number of differences in one error.
MAX_DIFFERENCES = 20
NOT_NAMED = "not on the complete list"


@dataclass(frozen=True, slots=True)
class FileOfOrganization:
    """
    A file, or one organization of it.

    :param name: for people
    :param is_leavers: whether its people leave
    """

    name: str
    wanted: Organization
    is_leavers: bool = False


def describe_contradictions(
    first: FileOfOrganization, second: FileOfOrganization, file_at: Callable[[str], RosterFile], now: datetime
) -> str:
    """
    Return where two files about one organization want different things; an empty string if they do not.

    :param file_at: opens a path
    :param now: decides which ends are over
    """
    one = _Statements.of(first, file_at, now)
    other = _Statements.of(second, file_at, now)
    differing: list[str] = []
    subjects = one.values.keys() | other.values.keys()
    for subject in sorted(subjects):
        value = one.value_of(subject)
        other_value = other.value_of(subject)
        if value is None or other_value is None or value == other_value:
            continue
        differing.append(f"{subject}: {value} in {first.name}, {other_value} in {second.name}")
    if not differing:
        return ""
    named = differing[:MAX_DIFFERENCES]
    if len(differing) > MAX_DIFFERENCES:
        named.append(f"and {len(differing) - MAX_DIFFERENCES} more")
    return (
        f"{first.name} and {second.name} describe one organization differently ({len(differing)}). Correct one of "
        f"them, or keep one file for each organization: {'; '.join(named)}"
    )


@dataclass(frozen=True, slots=True)
class _Statements:
    """
    What a file says.

    :param values: what it wants, by what it is about
    :param complete: beginnings of what it names completely
    """

    values: Mapping[str, str]
    complete: tuple[str, ...]

    @classmethod
    def of(cls, file: FileOfOrganization, file_at: Callable[[str], RosterFile], now: datetime) -> _Statements:
        """Read a file."""
        wanted = file.wanted
        values: dict[str, str] = {}
        for project in wanted.projects:
            values |= _of_project(project)
        for domain in wanted.domains:
            name = f"domain {domain_key(domain.domain)}"
            values[name + EXISTS] = "yes"
            fields = domain.model_dump(exclude_unset=True, exclude={"domain"})
            values |= _of_entry(name, fields)
        for export in wanted.exports:
            values[f"export {export.batch_export_id}, paused"] = str(export.paused).lower()
        if wanted.members:
            values |= _of_members(wanted.members, file_at, now, is_leavers=file.is_leavers)
        complete: list[str] = []
        if "members" in wanted.complete and not file.is_leavers:
            complete.append("person ")
        if "domains" in wanted.complete:
            complete.append("domain ")
        return cls(values, tuple(complete))

    def value_of(self, subject: str) -> str | None:
        """Return what the file wants; ``None`` if it says nothing."""
        value = self.values.get(subject)
        # Only what exists is missing: of what is there, the other fields need not be named.
        if value is None and subject.endswith(EXISTS) and subject.startswith(self.complete):
            return NOT_NAMED
        return value


# The end of what a file says by naming somebody or something at all.
EXISTS = ", wanted"


def _of_project(project: ProjectEntry) -> dict[str, str]:
    project_name = project_key(project.name)
    settings = project.model_dump(exclude_unset=True, exclude={"name", "dashboards"})
    values = _of_entry(f"project {project_name}", settings)
    for dashboard in project.dashboards:
        name = f"dashboard {project_name} / {project_key(dashboard.name)}"
        settings = dashboard.model_dump(exclude_unset=True, exclude={"name", "collaborators"})
        values |= _of_entry(name, settings)
        for person in dashboard.collaborators or ():
            fields = person.model_dump(exclude_unset=True, exclude={"email"})
            values |= _of_entry(f"collaborator {address_key(person.email)} of {name}", fields)
    return values


def _of_entry(name: str, fields: Mapping[str, Any]) -> dict[str, str]:
    values: dict[str, str] = {}
    for field, value in fields.items():
        values[f"{name}, {field}"] = repr(value)
    return values


def _of_members(
    members: Members, file_at: Callable[[str], RosterFile], now: datetime, *, is_leavers: bool
) -> dict[str, str]:
    """Return what a file says about people, by their address, and about all of them."""
    settings = members.model_dump(exclude_unset=True, include={"owner_level"})
    values = {} if is_leavers else _of_entry("members", settings)
    if members.roster is None and members.rows is None:
        return values
    defaults = members.defaults.model_dump(exclude_unset=True) if members.defaults else None
    file = file_at(members.roster) if members.roster else None
    rows = read_roster(
        members.rows, file, defaults, argument="roster", columns=members.columns, where=members.where, now=now
    )
    roster = check_roster(rows, now, only_addresses=is_leavers)
    people = roster.rows + roster.ended
    for row in people:
        if not is_leavers:
            values.update(_of_row(row))
        elif row.leaves_now:
            values[f"person {row.key}{EXISTS}"] = "leaves"
    return values


def _of_row(row: Row) -> Iterator[tuple[str, str]]:
    """Yield what a row says about its person now."""
    name = f"person {row.key}"
    if row.is_over and row.end.then_level is None:
        yield f"{name}{EXISTS}", row.end.over
        return
    yield f"{name}{EXISTS}", "yes"
    level = row.end.then_level if row.is_over else row.level
    if level is not None:
        yield f"{name}, level", describe_level(level)
    if row.end.until and not row.is_over:
        yield f"{name}, end", str(row.end)
