"""The words about a window: one source for the sweep, the command line and the page."""

from __future__ import annotations

import re
from argparse import Namespace
from typing import Any, cast

import pytest

from airflow_provider_workspace.api.timestamps import iso as iso_of
from airflow_provider_workspace.cli import core_commands
from airflow_provider_workspace.notes import database_store
from airflow_provider_workspace.notes.leases import LeaseRegistry, LeaseStore, Run, SweepRecord
from airflow_provider_workspace.windows.requests import LeaseHooks
from airflow_provider_workspace.windows.resuming import Closer
from airflow_provider_workspace.windows.sweep import sweep_windows
from tests.leases import lease, variable
from tests.unit.ui.conftest import NOW, View

LEASE = {"since": NOW - 3600, "paused_at": NOW - 3600}


class Store(dict[str, str]):
    """Airflow's Variables, and the run of a window."""

    run_of = Run(tasks={"window.close": None})
    list_keys, read, write, add = dict.keys, dict.get, dict.__setitem__, dict.__setitem__

    def run(self, *_: object) -> Run:
        return self.run_of


@pytest.mark.parametrize(
    ("changes", "run", "words"),
    [
        ({}, Store.run_of, "open"),
        ({"state": "opening"}, Store.run_of, "opening"),
        ({"state": "closing"}, Store.run_of, "closing: not all of its exports are paused any more"),
        ({"until": NOW}, Store.run_of, f"overdue since {iso_of(NOW, 'seconds')}"),
        ({}, Run("over"), "abandoned: its run is over"),
    ],
)
def test_the_sweep_the_page_and_the_command_line_have_the_same_words(
    view: View, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], run: Run, words: str
) -> None:
    """The sweep resumes nothing, for want of a connection."""
    store = Store([variable(lease(**LEASE | {"until": 9 * 10**9} | changes))])
    monkeypatch.setattr(store, "run_of", run)
    registry: Any = LeaseRegistry(cast("LeaseStore", store))
    with LeaseHooks() as hooks:
        swept = sweep_windows(Closer(registry, hooks, "sweep"))
    registry.record_sweep(SweepRecord(at=NOW, windows=swept.records))
    assert all(f"({words})" in line for line in str(swept).splitlines())
    (row,) = view(variables={"value": [{"key": key, "value": value} for key, value in store.items()]})["windows"][
        "rows"
    ]
    assert row["verdict"] == re.sub(r"T(\d\d:\d\d):\d\dZ", r" \1 UTC", words), "times as people read them"
    printed: list[str] = []
    monkeypatch.setattr(database_store, "LeaseDatabase", lambda: store)
    monkeypatch.setattr(core_commands, "print_lines", lambda *lines: printed.extend(lines))
    core_commands.windows(Namespace(resume=False, output="table"))
    assert printed[0].endswith(f"Z  {words}")
