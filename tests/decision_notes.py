"""The Variables of what reviews decided, written as a release writes them."""

from __future__ import annotations

import json
from typing import Any

from tests.leases import digest

PREFIX = "workspace_decisions."


def variable(*people: dict[str, Any], **fields: Any) -> tuple[str, str]:
    """Return the key and the value of the Variable of a review that decided about people."""
    usual: dict[str, Any] = {
        "dag_id": "access_review",
        "run_id": "manual__1",
        "service": "https://workspace.example.com",
        "workspace_conn_id": "workspace_default",
        "organization_id": "organization",
        "since": "2026-10-01T00:00:00Z",
        "until": "2999-01-01T00:00:00Z",
        "decided_at": "2026-10-01T00:00:00Z",
        "review": "autumn",
        "reviewer": "ruth",
    }
    note = usual | fields
    organization = digest(note["service"], note["organization_id"])
    review = digest(note["dag_id"], note["run_id"], note["review"])
    return f"{PREFIX}{organization}.{review}", json.dumps({**note, "people": people})
