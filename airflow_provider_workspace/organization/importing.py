"""Write the organization file of an existing organization."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import BaseModel

from airflow_provider_workspace.api import operations as ops
from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.api.levels import LEVELS
from airflow_provider_workspace.api.operations.domains import DomainFields
from airflow_provider_workspace.api.operations.projects import ProjectFields
from airflow_provider_workspace.api.secrets import without_secrets
from airflow_provider_workspace.api.templates import TEMPLATE, template_line
from airflow_provider_workspace.organization.file import DashboardEntry
from airflow_provider_workspace.procedures.ensure import read_dashboard
from airflow_provider_workspace.procedures.find import project_key, read_rows
from airflow_provider_workspace.procedures.people import read_people

if TYPE_CHECKING:
    from airflow_provider_workspace.client.client import WorkspaceClient

LEVEL_NAMES = {number: name for name, number in LEVELS.items()}
HEAD = """\
# The organization as it was. Whatever this file does not name is left alone; to remove it instead, add
# complete: [{complete}]
# The interface lists neither batch exports nor dashboards: add the exports, and the dashboards that Airflow does not
# remember yet.
"""


def import_organization(
    client: WorkspaceClient, organization_id: str, dashboards: Mapping[str, Mapping[str, str]]
) -> str:
    """
    Read an organization, and return its file.

    :param dashboards: keys of Variables by dashboard id, by project id
    """
    left_out: list[str] = []
    projects = _projects(client, organization_id, dashboards, left_out)
    domains = _domains(client, organization_id)
    people = _people(client, organization_id)
    sections: dict[str, Any] = {"organization_id": organization_id}
    if projects:
        sections["projects"] = projects
    if domains:
        sections["domains"] = domains
    if people:
        sections["members"] = {"people": people}
    # A complete list that is missing is refused.
    complete = [*(section for section in ("members", "domains") if section in sections), "collaborators"]
    head = HEAD.format(complete=", ".join(complete))
    if left_out:
        head += f"# Left out, because others have the same name: {', '.join(sorted(left_out))}\n"
    return head + _dump(sections)


def _projects(
    client: WorkspaceClient,
    organization_id: str,
    dashboards: Mapping[str, Mapping[str, str]],
    left_out: list[str],
) -> list[dict[str, Any]]:
    """Return the entries of the projects; ``left_out`` gets those, and dashboards, whose names are repeated."""
    entries: dict[str, dict[str, Any]] = {}
    for item in read_rows(client, ops.projects.ListProjects(organization_id=organization_id)):
        project_id = str(item.id)
        get = ops.projects.GetProject(organization_id=organization_id, project_id=project_id)
        entry = _fields(client.send(get), ProjectFields.model_fields)
        of_project = _dashboards(client, project_id, dashboards.get(project_id, {}), left_out)
        if "name" not in entry:  # it holds a secret
            continue
        if of_project:
            entry["dashboards"] = of_project
        entries[f"project {project_id}"] = entry
    return _distinct(entries, left_out)


def _distinct(entries: Mapping[str, dict[str, Any]], left_out: list[str]) -> list[dict[str, Any]]:
    """Return the entries whose name no other has; ``left_out`` gets what the others are called here."""
    counts = Counter(project_key(entry["name"]) for entry in entries.values())
    distinct: list[dict[str, Any]] = []
    for label, entry in entries.items():
        if counts[project_key(entry["name"])] == 1:
            distinct.append(entry)
        else:
            left_out.append(label)
    return distinct


def _domains(client: WorkspaceClient, organization_id: str) -> list[dict[str, Any]]:
    """Return the entries of the domains."""
    entries: list[dict[str, Any]] = []
    for row in read_rows(client, ops.domains.ListDomains(organization_id=organization_id)):
        entry = {"domain": row.domain, **_fields(row, DomainFields.model_fields)}
        if not row.is_verified:
            entry["verified"] = False
        entries.append(entry)
    return entries


def _people(client: WorkspaceClient, organization_id: str) -> list[Any]:
    """Return the entries of the people: members, and who has an open invite."""
    present = read_people(client, organization_id)
    people: dict[str, Any] = {}
    for invite in present.invites:
        if invite.target_email:
            people[address_key(invite.target_email)] = _person(invite.target_email, invite.level)
    for member in present.members:
        if member.user and member.user.email:
            people[address_key(member.user.email)] = _person(member.user.email, member.level)
    return list(people.values())


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """Writes a text in double quotes if a part of it must be escaped."""


def _represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None if text.isprintable() and not template_line(text) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent)


def _dump(value: object) -> str:
    """
    Return YAML that holds each text with the same characters.

    Characters that cannot be printed, and what would start a Jinja template, are escaped: the file stays the same if
    somebody renders it.
    """
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    text = re.sub(TEMPLATE, r"\\u007B", text)
    return "".join(_escaped(char) for char in text)


def _escaped(char: str) -> str:
    """Return a character as it is written between double quotes; the end of a line as it is."""
    if char == "\n" or char.isprintable():
        return char
    return f"\\u{ord(char):04X}"


def _dashboards(
    client: WorkspaceClient, project_id: str, remembered: Mapping[str, str], left_out: list[str]
) -> list[dict[str, Any]]:
    """Return the entries of the dashboards that Airflow remembers of a project and that still exist."""
    entries: dict[str, dict[str, Any]] = {}
    for dashboard_id, key in remembered.items():
        where: dict[str, Any] = {"project_id": project_id, "dashboard_id": dashboard_id}
        dashboard = read_dashboard(client, ops.dashboards.GetDashboard(**where))
        entry = _fields(dashboard, DashboardEntry.model_fields) if dashboard else {}
        if "name" not in entry:
            continue
        entry["variable_key"] = key
        entry["collaborators"] = _collaborators(client, where)
        entries[f"dashboard {dashboard_id} of project {project_id}"] = entry
    return _distinct(entries, left_out)


def _collaborators(client: WorkspaceClient, dashboard: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the entries of the collaborators of a dashboard."""
    entries: list[dict[str, Any]] = []
    for row in read_rows(client, ops.dashboards.ListDashboardCollaborators(**dashboard)):
        if not (row.user and row.user.email):
            continue
        entry: dict[str, Any] = {"email": row.user.email}
        if row.level is not None:
            entry["level"] = row.level
        entries.append(entry)
    return entries


def _fields(record: BaseModel, names: Iterable[str]) -> dict[str, Any]:
    """Return the fields of a record that are set, without secrets."""
    shown = BaseModel.model_dump(record, mode="json", include=set(names))  # not masked
    fields: dict[str, Any] = {}
    for name in names:
        field = {name: shown.get(name)}
        if field[name] and without_secrets(field) == field:
            fields |= field
    return fields


def _person(email: str, level: int | None) -> Any:
    if level is None:
        return email
    return {"email": email, "level": LEVEL_NAMES.get(level, level)}
