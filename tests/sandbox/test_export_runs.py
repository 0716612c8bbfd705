"""Runs of batch exports: one per interval, none during a pause, and backfills."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.sandbox.seed import SEED

if TYPE_CHECKING:
    import httpx

    from airflow_provider_workspace.sandbox.server import SandboxServer

HOURLY, _, DAILY = SEED.batch_export_ids
EXPORT = f"/api/organizations/{SEED.organization_id}/batch_exports/{HOURLY}/"
HOUR = 3600

live = pytest.mark.parametrize("sandbox", ["live"], indirect=True)


def runs(sandbox: SandboxServer) -> tuple[int, int]:
    """Return the numbers of exported and missing intervals."""
    found = sandbox.export_runs(HOURLY)
    return len(found["exported"]), len(found["missing"])


@pytest.fixture(autouse=True)
def just_after_the_hour(sandbox: SandboxServer) -> None:
    """Start one minute after a run, so that no hour ends during a test."""
    now = sandbox.control("POST", "clock", {"advance_seconds": 0})["now"]
    minute, second = int(now[14:16]), int(now[17:19])
    sandbox.advance_clock((61 - minute) * 60 - second)


def since(sandbox: SandboxServer, before: tuple[int, int]) -> tuple[int, int]:
    exported, missing = runs(sandbox)
    return exported - before[0], missing - before[1]


def test_one_run_per_interval(sandbox: SandboxServer) -> None:
    before = runs(sandbox)
    days = len(sandbox.export_runs(DAILY)["exported"])
    sandbox.advance_clock(48 * HOUR)
    assert since(sandbox, before) == (48, 0)
    assert len(sandbox.export_runs(DAILY)["exported"]) - days == 2
    first, second = sandbox.export_runs(HOURLY)["exported"][-2:]
    assert first["interval_end"] == second["interval_start"]
    assert first["interval_start"].endswith(":00:00.000000Z")
    assert first["started_at"] == first["interval_end"]


@live
@pytest.mark.parametrize(
    ("hours", "body", "exported", "missing"),
    [(3, {}, 0, 3), (3, {"backfill": False}, 0, 3), (3, {"backfill": True}, 3, 0), (1 / 6, {}, 0, 0)],
)
def test_intervals_during_a_pause_are_missing_until_a_backfill(
    sandbox: SandboxServer, api: httpx.Client, hours: float, body: dict[str, Any], exported: int, missing: int
) -> None:
    before = runs(sandbox)
    assert api.post(EXPORT + "pause/", json={}).json() == {"paused": True}
    sandbox.advance_clock(hours * HOUR)
    assert since(sandbox, before) == (0, int(hours))
    assert api.post(EXPORT + "unpause/", json=body).json() == {"paused": False}
    assert since(sandbox, before) == (exported, missing)
    for run in sandbox.export_runs(HOURLY)["exported"][-exported:] if exported else ():
        assert (run["status"], run["started_at"] > run["interval_end"]) == ("running", True)
    sandbox.advance_clock(HOUR)
    assert since(sandbox, before) == (exported + 1, missing)


def test_a_pause_does_not_stop_a_started_run(sandbox: SandboxServer, api: httpx.Client) -> None:
    last = sandbox.export_runs(HOURLY)["exported"][-1]
    assert last["status"] == "running"
    api.post(EXPORT + "pause/")
    assert sandbox.export_runs(HOURLY)["exported"][-1] == last
    sandbox.advance_clock(300)
    assert sandbox.export_runs(HOURLY)["exported"][-1] == last | {"status": "completed"}
