"""``invite_all`` at realistic rate limits, on a clock that jumps over each pause."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.api.models import Invite
from airflow_provider_workspace.api.procedure import Pause
from airflow_provider_workspace.client.settings import Settings
from airflow_provider_workspace.procedures.bulk_invites import invite_all
from airflow_provider_workspace.procedures.invites_report import WorkspaceInvitesIncompleteError
from tests.unit.procedures.drive import send_all
from tests.unit.procedures.true_rates import RatedOrganization

if TYPE_CHECKING:
    from airflow_provider_workspace.procedures.invites_report import InvitesReport


def people(count: int) -> list[str]:
    return [f"p{number}@example.com" for number in range(1, count + 1)]


def campaign(service: RatedOrganization, rows: list[str], *, deferred: bool = True, **extra: Any) -> InvitesReport:
    """Invite people. A pause of more than a minute interrupts the procedure; it restarts with its state."""
    settings = Settings("http://127.0.0.1", "key", **extra)
    kept: dict[str, Any] = {}
    for _ in range(1000):
        procedure = invite_all(
            rows, organization_id="o", settings=settings, clock=lambda: service.now, kept=kept, on_invalid="skip"
        )
        try:
            step = next(procedure)
            while True:
                service.now += 0.2
                if isinstance(step, Pause):
                    service.now += step.seconds
                    if deferred and step.seconds > 60:
                        procedure.close()
                        kept = json.loads(json.dumps(kept))
                        break
                    step = procedure.send([])
                else:
                    step = procedure.send(send_all(step, service.answer))
        except StopIteration as stop:
            report: InvitesReport = stop.value
            return report
    raise AssertionError("no end")


@pytest.mark.parametrize("deferred", [True, False])
@pytest.mark.parametrize(
    ("rows", "extra", "hours", "refusals"),
    [
        (52, {}, 2, 1),
        (300, {}, 30, 2),
        (300, {"invites_per_hour": 50, "invites_per_day": 200}, 26, 0),
        (300, {"invites_per_hour": 50}, 30, 1),
        (1000, {}, 6 * 24, 3),
    ],
)
def test_everybody_is_invited_once_at_realistic_rates(
    rows: int, extra: dict[str, Any], hours: float, refusals: int, *, deferred: bool
) -> None:
    service = RatedOrganization()
    report = campaign(service, people(rows), deferred=deferred, **extra)
    print(f"\n{rows} rows, {extra}: {service.hours():.1f} h, {service.refused} refusals, {service.readings} readings")
    assert report.counts["invited"] == rows
    assert service.mailed == Counter(people(rows))
    assert service.hours() <= hours
    assert service.refused <= refusals


def test_invites_of_others_count() -> None:
    service = RatedOrganization()
    created_at = datetime.fromtimestamp(service.now - 600, timezone.utc).isoformat()
    service.invites = [Invite(id=str(n), target_email=f"o{n}@example.com", created_at=created_at) for n in range(45)]
    for rate in service.rates:
        rate.counted.extend([service.now - 600] * 45)
    campaign(service, people(60))
    assert service.mailed == Counter(people(60))
    assert service.refused <= 2
    assert service.hours() < 3


def test_a_limit_of_requests_is_not_learned_as_a_limit_of_invites() -> None:
    service = RatedOrganization(10**6, 10**6, requests=10)
    campaign(service, people(1000))
    assert service.mailed == Counter(people(1000))
    assert service.hours() < 0.25


def test_a_limit_below_the_chunk_size_leads_to_smaller_chunks() -> None:
    service = RatedOrganization(per_hour=7, per_day=100)
    campaign(service, people(30))
    assert service.mailed == Counter(people(30))
    assert service.hours() < 48


def test_a_retry_after_of_days_is_an_error() -> None:
    service = RatedOrganization(per_hour=0, per_day=0)
    service.rates[0].span = 1e6
    with pytest.raises(WorkspaceInvitesIncompleteError, match="429"):
        campaign(service, people(5))
    assert service.hours() < 1


def test_two_days_without_progress_are_an_error() -> None:
    service = RatedOrganization(per_hour=0, per_day=0)
    with pytest.raises(WorkspaceInvitesIncompleteError, match="429") as error:
        campaign(service, people(5))
    assert error.value.report.counts["not_sent"] == 5
    assert error.value.retry_after is not None
    assert not error.value.permanent
    assert 48 <= service.hours() < 50
