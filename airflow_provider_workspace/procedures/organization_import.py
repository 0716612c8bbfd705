"""Write the organization file of an existing organization."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import BaseModel

from airflow_provider_workspace.api import operations as ops
from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.api.levels import LEVELS
from airflow_provider_workspace.api.operations.domains import DomainFields
from airflow_provider_workspace.api.operations.projects import ProjectFields
from airflow_provider_workspace.api.secrets import without_secrets
from airflow_provider_workspace.errors import WorkspaceNotFoundError
from airflow_provider_workspace.procedures.organization_file import DashboardEntry
from airflow_provider_workspace.procedures.snapshot import read_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_provider_workspace.client.client import WorkspaceClient

# The brace that starts a Jinja template.
TEMPLATE = re.compile(r"\{(?=[{%#])")
NAMES = {number: name for name, number in LEVELS.items()}
HEAD = """\
# The organization as it was. Whatever this file does not name is left alone; to remove it instead, add
# complete: [members, domains, collaborators]
# The interface lists neither batch exports nor dashboards: add the exports, and the dashboards that Airflow does not
# remember yet.
"""


def describe_organization(
    client: WorkspaceClient, organization_id: str, dashboards: Mapping[str, Mapping[str, str]]
) -> str:
    """
    Read an organization, and return its file.

    :param dashboards: keys of Variables by dashboard id, by project id
    """
    where: dict[str, Any] = {"organization_id": organization_id, "limit": client.settings.page_size}
    found: dict[str, Any] = {"organization_id": organization_id}
    found["projects"] = []
    for item in read_rows(client, ops.projects.ListProjects(**where)):
        project_id = str(item.id)
        get = ops.projects.GetProject(organization_id=organization_id, project_id=project_id)
        entry = _fields(client.send(get), ProjectFields.model_fields)
        entry["dashboards"] = _dashboards(client, project_id, dashboards.get(project_id, {}))
        if "name" in entry:  # not if it holds a secret
            found["projects"].append({key: value for key, value in entry.items() if value})
    rows = read_rows(client, ops.domains.ListDomains(**where))
    found["domains"] = [
        {"domain": row.domain, **_fields(row, DomainFields.model_fields)}
        | ({} if row.is_verified else {"verified": False})
        for row in rows
    ]
    people = {
        address_key(invite.target_email): _person(invite.target_email, invite.level)
        for invite in read_rows(client, ops.invites.ListInvites(**where))
        if invite.target_email and not invite.is_expired
    }
    people |= {
        address_key(member.user.email): _person(member.user.email, member.level)
        for member in read_rows(client, ops.members.ListMembers(**where))
        if member.user and member.user.email
    }
    found["members"] = {"people": [*people.values()]} if people else None
    kept = {key: value for key, value in found.items() if value}
    return HEAD + _dump(kept)


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """Writes a text in double quotes if a part of it must be escaped."""


def _represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None if text.isprintable() and not TEMPLATE.search(text) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent)


def _dump(value: Any) -> str:
    """
    Return YAML that holds each text with the same characters.

    Characters that cannot be printed, and what would start a Jinja template, are escaped: the file stays the same if
    somebody renders it.
    """
    text = TEMPLATE.sub(r"\\u007B", yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120))
    return "".join(char if char.isprintable() or char == "\n" else f"\\u{ord(char):04X}" for char in text)


def _dashboards(client: WorkspaceClient, project_id: str, remembered: Mapping[str, str]) -> list[dict[str, Any]]:
    """Describe the dashboards that Airflow remembers of a project, without those that were deleted meanwhile."""
    entries: list[dict[str, Any]] = []
    for dashboard_id, key in remembered.items():
        where: dict[str, Any] = {"project_id": project_id, "dashboard_id": dashboard_id}
        try:
            dashboard = client.send(ops.dashboards.GetDashboard(**where))
        except WorkspaceNotFoundError as error:
            if not error.from_service:
                raise
            continue
        entry = _fields(dashboard, DashboardEntry.model_fields)
        if dashboard.deleted or "name" not in entry:
            continue
        listed = read_rows(client, ops.dashboards.ListDashboardCollaborators(**where))
        people = [
            {"email": row.user.email, **({} if row.level is None else {"level": row.level})}
            for row in listed
            if row.user and row.user.email
        ]
        entries.append({**entry, "variable_key": key, **({"collaborators": people} if people else {})})
    return entries


def _fields(record: BaseModel, names: Iterable[str]) -> dict[str, Any]:
    """Return the fields of a record that are set, without secrets."""
    shown = BaseModel.model_dump(record, mode="json", include=set(names))  # not masked
    return {
        name: shown[name]
        for name in names
        if shown.get(name) and without_secrets({name: shown[name]}) == {name: shown[name]}
    }


def _person(email: str, level: int | None) -> Any:
    return email if level is None else {"email": email, "level": NAMES.get(level, level)}
