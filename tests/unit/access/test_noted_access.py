"""Tests for finding what is noted about a person."""

from __future__ import annotations

from airflow_provider_workspace.access.rules.entitlements import NotedAccess, NotedGrant
from airflow_provider_workspace.procedures.people import NotedPerson

ADA = "ada@example.com"
INVITE = "0190c0de-0000-4000-8002-000000000001"


def grant(user_uuid: str | None, invite_id: str | None = None) -> NotedGrant:
    person = NotedPerson(ADA, 0.0, user_uuid, frozenset({invite_id} if invite_id else ()))
    return NotedGrant(person, 8, 0.0, "2026-12-01T08:00:00Z", "ruth", f"workspace_grant.{user_uuid}")


def test_a_member_whose_user_is_hidden_has_what_is_noted_of_the_address() -> None:
    known = grant("u-ada")
    noted = NotedAccess([known])
    assert noted.of_member(ADA, None).grants == (known,)
    assert noted.of_member(ADA, "u-ada").grants == (known,)
    assert noted.of_member(ADA, "u-other").grants == ()


def test_an_invite_is_known_by_its_id_whatever_its_address_is() -> None:
    invited = grant(None, INVITE)
    noted = NotedAccess([invited])
    assert noted.of_invite("ada.new@example.com", INVITE, {}).grants == (invited,)
    assert noted.of_invite(ADA, INVITE, {}).grants == (invited,)
    assert noted.of_invite("ada.new@example.com", None, {}).grants == ()
