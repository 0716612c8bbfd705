"""Invites many people from a list with some invalid rows."""

from __future__ import annotations

from airflow.sdk import DAG

from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator

PEOPLE = [f"person{number:03}@example.com" for number in range(1, 221)]
# Invalid rows, by their row number.
WRONG = {
    31: "elo.barksted@example.com.",
    93: "PERSON017@example.com",
    121: "dalen.weselin.example.com",
    142: "joris.wesovic@",
    171: "jora.holtovic x@example.com",
    190: "person104@example.com",
    202: {"target_email": "coren.barkovic@example.org", "level": "chief"},
    209: "grace.analyst@example.com",
}

with DAG("bulk_invites", schedule=None):
    rows = [*PEOPLE]
    for number, row in WRONG.items():
        rows.insert(number - 1, row)
    WorkspaceCreateInvitesOperator(task_id="invite_everybody", invites=rows, on_invalid="skip")
