"""The Variables of grants, written as a release writes them: what stands in Airflow's database, the next must read."""

from __future__ import annotations

import json
from typing import Any

from tests.leases import digest

PREFIX = "workspace_grant."


def grant(**fields: Any) -> dict[str, Any]:
    """Return the note of a grant, without its end."""
    usual = {
        "dag_id": "grant_access",
        "run_id": "manual__1",
        "task_id": "grant",
        "map_index": -1,
        "service": "https://workspace.example.com",
        "workspace_conn_id": "workspace_default",
        "organization_id": "organization",
        "user_email": "ada@example.com",
        "level": 8,
        "then": 1,
        "since": "2026-09-01T08:00:00Z",
        "reason": "rollout",
        "requested_by": "ada",
        "approved_by": "ruth",
    }
    return usual | fields


def variable(**fields: Any) -> tuple[str, str]:
    """Return the key and the value of the Variable of a grant."""
    note = {name: value for name, value in grant(**fields).items() if value is not None}
    person = digest(note["service"], note["organization_id"], note["user_email"].strip().lower())
    task = digest(note["dag_id"], note["run_id"], note["task_id"], str(note["map_index"]))
    return f"{PREFIX}{person}.{task}", json.dumps(note)
