"""The progress of a bulk invite, which the status page shows."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.procedures.invites_report import MAX_NAMED
from airflow_provider_workspace.procedures.roster import Entry
from airflow_provider_workspace.state import campaigns
from airflow_provider_workspace.state.campaigns import CampaignNote

NOW = 1_750_000_000.0


class Task:
    def __init__(self) -> None:
        self.written: list[dict[str, Any]] = []

    def xcom_push(self, *, key: str, value: Any) -> None:
        assert key == "progress"
        self.written.append(value)


def test_progress_counts_remaining_rows_and_lists_rows_to_fix() -> None:
    note = CampaignNote(None, "organization")
    note.report.rows = 100
    note.report.add(Entry(1, "ada@example.com", "invited"), Entry(2, "grace@example.com", "failed", "no seat"))
    note.report.waits_for = "the limit of invites is reached"
    assert note.value(NOW, NOW + 60) == {
        "organization_id": "organization",
        "rows": 100,
        "counts": {"invited": 1, "failed": 1},
        "left": 98,
        "at": "2025-06-15T15:06:40.000Z",
        "again_at": "2025-06-15T15:07:40.000Z",
        "why": "the limit of invites is reached",
        "needs_person": [
            {"row": 2, "email": "grace@example.com", "status": "failed", "reason": "no seat", "invite_id": None}
        ],
    }
    assert note.value(NOW, None)["why"] == ""


def test_progress_has_a_maximum_size() -> None:
    note = CampaignNote(None, "organization")
    note.report.rows = 20_000
    note.report.add(*(Entry(number, "x", "invalid", "no address") for number in range(20_000)))
    assert len(note.value(NOW, None)["needs_person"]) == MAX_NAMED


def test_progress_is_written_every_few_seconds_and_at_the_end(monkeypatch: Any) -> None:
    task = Task()
    note = CampaignNote(task, "organization")
    seconds = [1000.0]
    monkeypatch.setattr(campaigns.time, "monotonic", lambda: seconds[0])
    for done in range(5):
        note.progress(done, 5)
        seconds[0] += 2
    assert len(task.written) == 2
    with note:
        pass
    assert len(task.written) == 3
    for error, written in ((WorkspaceInputError("no"), 4), (GeneratorExit(), 4)):  # the second write: the task defers
        with pytest.raises(type(error)), note:
            raise error
        assert len(task.written) == written
