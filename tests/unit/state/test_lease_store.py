"""Leases in Airflow Variables, listed by prefix or, before Airflow 3.3, by an index."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import airflow.sdk
import pytest

from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.state import lease_store
from airflow_provider_workspace.state.lease_store import VariableStore
from airflow_provider_workspace.state.leases import PREFIX, Lease, Run, Window, parse_time
from airflow_provider_workspace.state.window import closing_state, why_over

WINDOW = Window("dag", "run", "close")


class Variables:
    """Airflow Variables in memory; before Airflow 3.3 without ``keys``."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.lost_reads = 0

    def get(self, key: str, default: Any) -> Any:
        if self.lost_reads:
            self.lost_reads -= 1
            return default
        return self.values.get(key, default)

    def set(self, key: str, value: str, description: str | None = None) -> None:
        assert description
        self.values[key] = value

    def delete(self, key: str) -> None:
        self.values.pop(key, None)


@pytest.fixture(params=["3.2", "3.3"])
def variables(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Variables:
    fake: Any = Variables()
    if request.param == "3.3":
        fake.keys = lambda prefix: [key for key in fake.values if key.startswith(prefix)]
    monkeypatch.setattr(airflow.sdk, "Variable", fake)
    monkeypatch.setattr(lease_store, "SECONDS_BETWEEN_CHECKS", 0.01)
    return fake


def test_lease_keys_do_not_depend_on_the_spelling_of_ids() -> None:
    keys = {
        Lease(
            dag_id="dag",
            run_id="run",
            close_task_id="close",
            service="https://workspace.example.com",
            workspace_conn_id="c",
            organization_id=organization_id,
            batch_export_id="e",
            since=0.0,
            until=1.0,
        ).export_key
        for organization_id in ("0190c0de-abcd", " 0190C0DE-ABCD ")
    }
    assert len(keys) == 1


def test_a_time_without_a_time_zone_is_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person may edit the Variable, and machines have different time zones."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert parse_time("until", "2026-03-29T02:30:00") == parse_time("until", "2026-03-29T02:30:00Z")
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.usefixtures("variables")
def test_leases_are_listed_read_and_deleted() -> None:
    store = VariableStore()
    assert store.list_keys() == []
    keys = [f"{PREFIX}a", f"{PREFIX}b"]
    for key in keys:
        store.add(key, "{}")
    store.write(keys[0], "[]")
    assert store.list_keys() == keys
    assert [store.read(key) for key in keys] == ["[]", "{}"]
    store.delete(keys[0])
    assert store.list_keys() == keys[1:]
    assert store.read(keys[0]) is None


def test_a_transient_read_failure_does_not_count_as_absent(variables: Variables) -> None:
    store = VariableStore()
    store.add(f"{PREFIX}a", "{}")
    variables.lost_reads = 2
    assert store.read(f"{PREFIX}a") == "{}"
    variables.lost_reads = 2
    store.add(f"{PREFIX}b", "{}")
    assert store.list_keys() == [f"{PREFIX}a", f"{PREFIX}b"]


def test_a_listed_lease_that_cannot_be_read_is_an_error(variables: Variables) -> None:
    if not hasattr(variables, "keys"):
        pytest.skip("nothing can be proven there")
    store = VariableStore()
    store.add(f"{PREFIX}a", "{}")
    variables.lost_reads = 99
    with pytest.raises(WorkspaceError, match="cannot be read"):
        store.read(f"{PREFIX}a")


@pytest.mark.parametrize(
    ("states", "why"),
    [
        ({"close": None}, ""),
        ({"close": "running"}, ""),
        ({"close": "up_for_retry"}, ""),
        ({"close": "deferred"}, ""),
        ({"close": "skipped"}, "its closing task is skipped"),
        ({"close": SimpleNamespace(value="removed")}, "its closing task is removed"),
        ({"close": "failed"}, "its closing task is failed"),
        ({}, "its closing task is gone"),
    ],
)
def test_reasons_why_a_window_cannot_close_itself(states: dict[str, Any], why: str) -> None:
    assert why_over(Run(tasks=states), WINDOW) == why


def test_a_mapped_window_has_its_own_closing_task() -> None:
    window = Window("dag", "run", "close", 1)
    assert closing_state(Run(tasks={"close_0": "success", "close_1": "running"}), window) == (True, "running")
    assert str(window) == "dag / run / close [1]"
    assert window.key != WINDOW.key
