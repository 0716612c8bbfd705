"""Records and operations keep all fields and hide secrets, which the name of a field or a place in a URL tells."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_workspace.api.models import DashboardCollaborator, DashboardSharing, Project
from airflow_provider_workspace.api.operations import CreateProject, UpdateDomain


def project_with(settings: Any) -> Project:
    return Project.model_validate({"extra_settings": settings})


# What a service or an author writes, what is shown of it, and the secrets. Only texts are secrets.
VALUES: list[tuple[Any, Any, list[str]]] = [
    ({"scim_token": ["s1"], "a": [{"password": {"old": "s2"}}], "name": "x"}, {"a": [{}], "name": "x"}, ["s1", "s2"]),
    ({"webhook": "{{ var.value.w }}"}, {}, []),
    ({"password_required": True, "password": "s"}, {"password_required": True}, ["s"]),
    ({"share_passwords": False, "hmacKey": "s", "invite_link": "t"}, {"share_passwords": False}, ["s", "t"]),
    ({"share_passwords": [{"id": 3, "text": "s", "old": None}, "t"]}, {"share_passwords": [{"id": 3}]}, ["s", "t"]),
    ({"tokens_used": 12, "tokens": ["s"], "X-Api-Key": "t", "api_token": None}, {"tokens_used": 12}, ["s", "t"]),
    ({"a": {"name": None, "list": [None, 1]}}, {"a": {"name": None, "list": [None, 1]}}, []),
    *(({name: "s"}, {}, ["s"]) for name in ("access_token", "live_events_token", "slack_incoming_webhook")),
    *(({name: "s"}, {}, ["s"]) for name in ("saml_x509_cert", "secret_api_key", "New_Password_Hash")),
    ({"client_credentials": "s"}, {}, ["s"]),
    ({"name": "s", "verification_challenge": "c"}, {"name": "s", "verification_challenge": "c"}, []),
]


@pytest.mark.parametrize(("given", "shown", "secrets"), VALUES)
def test_secrets_are_found_and_hidden_at_any_depth(given: Any, shown: Any, secrets: list[str]) -> None:
    record = project_with(given)
    assert record.to_dict()["extra_settings"] == shown
    assert record.to_dict(return_secrets=True)["extra_settings"] == given
    assert sorted(record.secrets()) == secrets
    assert (repr(record), str(record)) == (f"Project(extra_settings={shown!r})", f"extra_settings={shown!r}")
    sent = CreateProject(organization_id="o", extra_settings=given)
    assert sorted(sent.secrets()) == secrets
    assert repr(sent) == f"CreateProject(extra_settings={shown!r}, organization_id='o')"


URLS = {
    "https://user:p%40ss@db.example.com/x": "https://user:***@db.example.com/x",
    "postgres://:p@ss@db.example.com": "postgres://:***@db.example.com",
    "see https://a.example/?id=1&token=s3 and https://u:s4@b.example": "see https://a.example/?id=1&token=*** and "
    "https://u:***@b.example",
    "?api_key=s5#access_token=s6": "?api_key=***#access_token=***",
    "https://a.example/?X-Amz-Signature=s7;key=s8": "https://a.example/?X-Amz-Signature=***;key=***",
    "https://hooks.example.com/services/T0/B0?token=s9": "https://hooks.example.com/***",
    "https://a.example/?page=2&sort=name": "https://a.example/?page=2&sort=name",
    "https://user@a.example/a:b@c": "https://user@a.example/a:b@c",
    "what? token = x, a=b": "what? token = x, a=b",
    "mailto:ada@example.com": "mailto:ada@example.com",
}


@pytest.mark.parametrize("text", URLS)
def test_credentials_in_a_url_are_hidden(text: str) -> None:
    record = Project.model_validate({"id": 1, "app_urls": [text]})
    assert record.to_dict()["app_urls"] == [URLS[text]]
    assert repr(record) == f"Project(id=1, app_urls={[URLS[text]]!r})"
    assert not [secret for secret in record.secrets() if secret in URLS[text]]
    if "p%40ss" in text:
        assert list(record.secrets()) == ["p%40ss", "p@ss"]


@pytest.mark.parametrize(
    ("record", "shown"),
    [
        (DashboardSharing(enabled=True, access_token="s3cret"), "DashboardSharing(enabled=True)"),
        (Project(name="Shop", api_token="s3cret", live_events_token=None), "Project(name='Shop')"),
        (DashboardCollaborator.model_validate({"user": {"id": 3}, "invite_token": "s3cret"}),
         "DashboardCollaborator(user=User(id=3))"),
        (UpdateDomain(organization_id="o", domain_id="0190c0de-0000-4000-8000-0000000000d1", saml_x509_cert="s3cret"),
         "UpdateDomain(organization_id='o', domain_id='0190c0de-0000-4000-8000-0000000000d1')"),
    ],
    ids=lambda record: type(record).__name__,
)  # fmt: skip
def test_fields_that_are_secrets_are_hidden(record: Any, shown: str) -> None:
    assert list(record.secrets()) == ["s3cret"]
    assert repr(record) == shown
    assert "s3cret" not in str(record)
    if hasattr(record, "to_dict"):
        assert "s3cret" not in f"{record.to_dict()} {record.model_dump()}"
        assert "s3cret" in record.to_dict(return_secrets=True).values()


def test_secrets_in_a_value_that_holds_itself_are_found() -> None:
    value: list[object] = ["s"]
    value.append(value)
    assert list(Project.model_construct(extra_settings={"token": value}).secrets()) == ["s"]
