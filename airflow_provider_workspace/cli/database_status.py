"""Bulk invites, waiting sensors and remembered dashboards in Airflow's database, for the command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from sqlalchemy import select

from airflow_provider_workspace.cli.database_store import DatabaseStore
from airflow_provider_workspace.state.campaigns import PROGRESS
from airflow_provider_workspace.state.organization_memory import PREFIX

# Operators that invite: one that does nothing else, and others, which may have nobody to invite.
INVITES = "WorkspaceCreateInvitesOperator"
ORGANIZATION = "WorkspaceApplyOrganizationOperator"
CAMPAIGNS = (INVITES, "WorkspaceSyncMembersOperator", ORGANIZATION)
DASHBOARDS = ("WorkspaceCreateDashboardOperator",)
SENSORS = (
    "WorkspaceDomainVerifiedSensor",
    "WorkspaceInvitesSettledSensor",
    "WorkspaceMembersJoinedSensor",
    "WorkspaceProjectOnboardedSensor",
    "WorkspaceProjectReceivingEventsSensor",
)
# States of a task that has not ended.
ACTIVE_RUN_STATES = ("running", "deferred", "queued", "scheduled", "restarting", "up_for_retry", "up_for_reschedule")
# Maximum tasks to read, latest start first, and maximum finished campaigns to show.
MAX_TASKS = 1000
RECENT_CAMPAIGNS = 20


def campaigns() -> list[dict[str, Any]]:
    """Return the running and the last finished bulk invites with their progress."""
    tasks = [
        task
        for task in _tasks(CAMPAIGNS)
        if task["operator"] != ORGANIZATION or task["fields"].get("part") == "members"
    ]
    over = [task for task in tasks if task["state"] not in ACTIVE_RUN_STATES][:RECENT_CAMPAIGNS]
    shown = [task for task in tasks if task["state"] in ACTIVE_RUN_STATES or task in over]
    found = [(task, _progress(task)) for task in shown]
    return [{**_place(task), "progress": told} for task, told in found if told or task["operator"] == INVITES]


def waits() -> list[dict[str, Any]]:
    """Return the waiting sensors, sorted by organization."""
    found = [
        {
            **_place(task),
            "sensor": task["operator"],
            "organization_id": task["fields"].get("organization_id"),
            "workspace_conn_id": task["fields"].get("workspace_conn_id"),
            "waits_for": {
                name: task["fields"][name]
                for name in ("domain_id", "emails", "project_id", "product")
                if task["fields"].get(name)
            },
        }
        for task in _tasks(SENSORS, ACTIVE_RUN_STATES)
    ]
    return sorted(found, key=lambda wait: (str(wait["organization_id"]), str(wait["since"])))


def dashboards() -> list[dict[str, Any]]:
    """Return the dashboards in Variables: those of tasks with a ``variable_key``, and those of organization files."""
    store = DatabaseStore(PREFIX)
    keys = [*(task["fields"].get("variable_key") for task in _tasks(DASHBOARDS)), *store.list_keys()]
    found = []
    for key in dict.fromkeys(key for key in keys if isinstance(key, str) and key not in ("", "None")):
        value = _parse_object(store.read(key)) or {}
        found.append({"dashboard_id": None, **value, "variable_key": key})
    return found


def _tasks(operators: Sequence[str], states: Sequence[str] = ()) -> list[dict[str, Any]]:
    wanted = select(TaskInstance).where(TaskInstance.operator.in_(operators))
    if states:
        wanted = wanted.where(TaskInstance.state.in_(states))
    with create_session() as session:
        rows = session.scalars(wanted.order_by(TaskInstance.start_date.desc()).limit(MAX_TASKS))
        return [
            {
                "dag_id": row.dag_id,
                "run_id": row.run_id,
                "task_id": row.task_id,
                "map_index": row.map_index,
                "operator": row.operator,
                "state": None if row.state is None else str(getattr(row.state, "value", row.state)),
                "since": None if row.start_date is None else row.start_date.isoformat(timespec="seconds"),
                "fields": getattr(row.rendered_task_instance_fields, "rendered_fields", None) or {},
            }
            for row in rows
        ]


def _place(task: dict[str, Any]) -> dict[str, Any]:
    return {name: task[name] for name in ("dag_id", "run_id", "task_id", "map_index", "state", "since")}


def _progress(task: dict[str, Any]) -> dict[str, Any] | None:
    """Return the progress of a bulk invite; ``None`` if it has not reported any."""
    place = (getattr(XComModel, name) == task[name] for name in ("dag_id", "run_id", "task_id", "map_index"))
    with create_session() as session:
        value = session.scalar(select(XComModel.value).where(*place, XComModel.key == PROGRESS))
    return parse_progress(value)


def parse_progress(value: Any) -> dict[str, Any] | None:
    """Return a stored XCom if it is a progress; an XCom backend may store a reference instead."""
    progress = _parse_object(value)
    return progress if progress and isinstance(progress.get("counts"), dict) else None


def _parse_object(value: Any) -> dict[str, Any] | None:
    """Return a JSON object, parsed if it is text; ``None`` if it is something else."""
    try:
        parsed = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None
