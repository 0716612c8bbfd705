"""Records keep all fields and hide secrets."""

from __future__ import annotations

import pytest

from airflow_provider_workspace.api.models import (
    DashboardSharing,
    Domain,
    Invite,
    Project,
    ProjectItem,
    Resource,
    is_secret,
)

SECRET = "s3cret-value"


@pytest.mark.parametrize(
    ("field", "secret"),
    [
        ("access_token", True),
        ("api_token", True),
        ("live_events_token", True),
        ("slack_incoming_webhook", True),
        ("saml_x509_cert", True),
        ("secret_api_key", True),
        ("New_Password_Hash", True),
        ("client_credentials", True),
        ("name", False),
        ("verification_challenge", False),
        ("id", False),
    ],
)
def test_secret_fields(field: str, secret: bool) -> None:  # noqa: FBT001
    assert is_secret(field) is secret


@pytest.mark.parametrize(
    "resource",
    [
        DashboardSharing(enabled=True, access_token=SECRET),
        Domain(domain="example.com", saml_x509_cert=SECRET),
        Project(name="Shop", api_token=SECRET, live_events_token=None, slack_incoming_webhook=""),
        ProjectItem(name="Shop", api_token=SECRET),
        Invite.model_validate({"id": "i1", "invite_token": SECRET}),
    ],
    ids=lambda resource: type(resource).__name__,
)
def test_secrets_are_found_redacted_and_dropped(resource: Resource) -> None:
    assert list(resource.secrets()) == [SECRET]
    assert SECRET not in repr(resource) + str(resource)
    assert SECRET not in str(resource.to_dict())
    assert SECRET not in str(resource.model_dump())
    assert SECRET in resource.to_dict(return_secrets=True).values()


def test_repr_of_a_model_hides_secrets() -> None:
    assert repr(Domain(id="d1", is_verified=False)) == "Domain(id='d1', is_verified=False)"
