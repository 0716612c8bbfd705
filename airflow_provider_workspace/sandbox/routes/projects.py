"""Projects of an organization: list, create, retrieve."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from airflow_provider_workspace.sandbox import fields, records
from airflow_provider_workspace.sandbox.answers import answer, dumps, not_found
from airflow_provider_workspace.sandbox.call import Call, Endpoint, integer

if TYPE_CHECKING:
    from starlette.responses import Response


def list_projects(call: Call) -> Response:
    """
    List the projects, oldest first, with the fewer fields of a list.

    :param call: The request.
    """
    return call.page("projects", call.organization(), shorten=_list_item)


def create_project(call: Call) -> Response:
    """
    Create a project. Two of the same name are two projects.

    :param call: The request.
    """
    organization_id = call.organization()
    given = call.fields(fields.PROJECT)
    if call.profile.names_trimmed and isinstance(given.get("name"), str):
        given["name"] = given["name"].strip()
    record = call.state.add_project(organization_id, given)
    call.effect("create_project", organization_id, str(record["id"]), name=record["name"])
    return answer(record, 201)


def retrieve_project(call: Call) -> Response:
    """
    Retrieve a full project record.

    :param call: The request.
    """
    organization_id = call.organization()
    sql = "SELECT record FROM projects WHERE id = ? AND organization_id = ?"
    record = call.state.record(sql, integer(call.path["id"]), organization_id)
    if record is None:
        raise not_found()
    return answer(record)


def _list_item(record: str) -> str:
    project = json.loads(record)
    return dumps({name: project[name] for name in records.PROJECT_LIST_FIELDS})


PROJECTS = "/api/organizations/{organization_id}/projects/"
ENDPOINTS = (
    Endpoint("GET", PROJECTS, "project:read", list_projects, query=("limit", "offset")),
    Endpoint("POST", PROJECTS, "project:write", create_project),
    Endpoint("GET", PROJECTS + "{id}/", "project:read", retrieve_project),
)
