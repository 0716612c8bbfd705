"""
The Variables of maintenance windows, written as a release writes them.

They outlive a release: what stands in Airflow's database today, the next release must read.
"""

from __future__ import annotations

import json
from datetime import datetime, timezone
from hashlib import sha256
from typing import Any

PREFIX = "workspace_lease."
# The Variable that a sweep writes.
SWEEP = "workspace_window_sweep"
TIMES = ("since", "until", "paused_at", "resumed_at", "late_pause_until")


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_of(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def lease(**fields: Any) -> dict[str, Any]:
    """Return a lease; its times are seconds since 1970, and None is no value."""
    usual = {
        "dag_id": "nightly",
        "run_id": "manual__1",
        "close_task_id": "window.close",
        "map_index": -1,
        "service": "https://workspace.example.com",
        "workspace_conn_id": "workspace_default",
        "organization_id": "organization",
        "batch_export_id": "0190c0de-0000-4000-8000-0000000000e1",
        "state": "paused",
    }
    given = {name: value for name, value in (usual | fields).items() if value is not None}
    return {name: iso(value) if name in TIMES else value for name, value in given.items()}


def window_of(lease: dict[str, Any]) -> str:
    """Return the digest of a window in keys, and in the Variable of a sweep."""
    return digest(lease["dag_id"], lease["run_id"], lease["close_task_id"], str(lease["map_index"]))


def variable(lease: dict[str, Any]) -> tuple[str, str]:
    """Return key and value of the Variable."""
    service = digest(lease["service"], lease["organization_id"].strip().lower())[:12]
    return f"{PREFIX}{window_of(lease)}.{lease['batch_export_id']}.{service}", json.dumps(lease)


def swept(lease: dict[str, Any], state: str, why: str = "", *, at: float) -> str:
    """Return what a sweep writes of a window."""
    seen = {"state": state, "why": why, "text": f"{state}: {why}" if why else state, "since": iso(at)}
    return json.dumps({"at": iso(at), "windows": {window_of(lease): seen}})


def digest(*parts: str) -> str:
    return sha256("\n".join(parts).encode()).hexdigest()[:20]
