"""Write the organization file of an existing organization."""

from __future__ import annotations

import re
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
from airflow_provider_workspace.procedures.ensure import read_dashboard
from airflow_provider_workspace.procedures.find import read_rows
from airflow_provider_workspace.procedures.organization_file import DashboardEntry
from airflow_provider_workspace.procedures.people import read_people

if TYPE_CHECKING:
    from airflow_provider_workspace.client.client import WorkspaceClient

NAMES = {number: name for name, number in LEVELS.items()}
HEAD = """\
# The organization as it was. Whatever this file does not name is left alone; to remove it instead, add
# complete: [members, domains, collaborators]
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
    projects: list[dict[str, Any]] = []
    for item in read_rows(client, ops.projects.ListProjects(organization_id=organization_id)):
        project_id = str(item.id)
        get = ops.projects.GetProject(organization_id=organization_id, project_id=project_id)
        entry = _fields(client.send(get), ProjectFields.model_fields)
        entry["dashboards"] = _dashboards(client, project_id, dashboards.get(project_id, {}))
        if "name" in entry:  # not if it holds a secret
            projects.append({key: value for key, value in entry.items() if value})
    domains = [
        {"domain": row.domain, **_fields(row, DomainFields.model_fields)}
        | ({} if row.is_verified else {"verified": False})
        for row in read_rows(client, ops.domains.ListDomains(organization_id=organization_id))
    ]
    present = read_people(client, organization_id)
    levels = {invite.target_email: invite.level for invite in present.invites}
    people = {address_key(email): _person(email, level) for email, level in levels.items() if email}
    for member in present.members:
        if member.user and member.user.email:
            people[address_key(member.user.email)] = _person(member.user.email, member.level)
    found = {
        "organization_id": organization_id,
        "projects": projects,
        "domains": domains,
        "members": {"people": [*people.values()]} if people else None,
    }
    return HEAD + _dump({key: value for key, value in found.items() if value})


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """Writes a text in double quotes if a part of it must be escaped."""


def _represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None if text.isprintable() and not template_line(text) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent)


def _dump(value: Any) -> str:
    """
    Return YAML that holds each text with the same characters.

    Characters that cannot be printed, and what would start a Jinja template, are escaped: the file stays the same if
    somebody renders it.
    """
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    text = re.sub(TEMPLATE, r"\\u007B", text)
    return "".join(char if char.isprintable() or char == "\n" else f"\\u{ord(char):04X}" for char in text)


def _dashboards(client: WorkspaceClient, project_id: str, remembered: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the entries of the dashboards that Airflow remembers of a project and that still exist."""
    entries: list[dict[str, Any]] = []
    for dashboard_id, key in remembered.items():
        where: dict[str, Any] = {"project_id": project_id, "dashboard_id": dashboard_id}
        dashboard = read_dashboard(client, ops.dashboards.GetDashboard(**where))
        entry = _fields(dashboard, DashboardEntry.model_fields) if dashboard else {}
        if "name" not in entry:
            continue
        people = [
            {"email": row.user.email, **({} if row.level is None else {"level": row.level})}
            for row in read_rows(client, ops.dashboards.ListDashboardCollaborators(**where))
            if row.user and row.user.email
        ]
        entries.append({**entry, "variable_key": key, **({"collaborators": people} if people else {})})
    return entries


def _fields(record: BaseModel, names: Iterable[str]) -> dict[str, Any]:
    """Return the fields of a record that are set, without secrets."""
    shown = BaseModel.model_dump(record, mode="json", include=set(names))  # not masked
    fields = {name: shown[name] for name in names if shown.get(name)}
    return {name: value for name, value in fields.items() if without_secrets({name: value}) == {name: value}}


def _person(email: str, level: int | None) -> Any:
    return email if level is None else {"email": email, "level": NAMES.get(level, level)}
