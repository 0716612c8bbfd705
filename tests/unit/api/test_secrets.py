"""Secrets are recognized by the name of their field or their place in a URL."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_workspace.api.models import DashboardCollaborator, DashboardSharing, Project
from airflow_provider_workspace.api.operations import CreateProject
from airflow_provider_workspace.api.secrets import secrets_under, without_secrets, without_url_secrets
from airflow_provider_workspace.client.settings import Settings


def test_secrets_are_found_and_removed_at_any_depth() -> None:
    value = {"scim_token": ["s1"], "a": [{"password": {"old": "s2"}}], "name": "x", "webhook": "{{ var.value.w }}"}
    assert sorted(secrets_under("settings", value)) == ["s1", "s2"]
    assert list(secrets_under("saml_x509_cert", "s3")) == ["s3"]
    assert without_secrets(value) == {"a": [{}], "name": "x"}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"password_required": True, "password": "s"}, {"password_required": True}),
        (
            {"share_passwords": False, "hmacKey": "s", "invite_link": "s"},
            {"share_passwords": False},
        ),
        ({"share_passwords": [{"id": 3, "text": "s", "old": None}, "s"]}, {"share_passwords": [{"id": 3}]}),
        ({"tokens_used": 12, "tokens": ["s"], "X-Api-Key": "s", "api_token": None}, {"tokens_used": 12}),
        ({"a": {"name": None, "list": [None, 1]}}, {"a": {"name": None, "list": [None, 1]}}),
    ],
)
def test_only_strings_are_secrets(value: Any, shown: Any) -> None:
    assert without_secrets(value) == shown
    assert set(secrets_under("", value)) <= {"s"}


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


@pytest.mark.parametrize(("text", "shown"), URLS.items())
def test_credentials_in_a_url_are_hidden(text: str, shown: str) -> None:
    assert without_url_secrets(text) == shown
    assert without_secrets({"app_urls": [text]}) == {"app_urls": [shown]}
    for secret in secrets_under("app_urls", [text]):
        assert secret not in shown


def test_url_credentials_are_masked_encoded_and_decoded() -> None:
    assert list(secrets_under("url", "https://user:p%40ss@db.example.com")) == ["p%40ss", "p@ss"]


def test_secrets_in_a_recursive_value_are_found() -> None:
    value: list[object] = ["x"]
    value.append(value)
    assert list(secrets_under("token", value)) == ["x"]


def test_secrets_in_free_form_fields_are_hidden_and_removed() -> None:
    fields = {"id": 1, "extra_settings": {"scim_token": "s1", "colour": "red"}, "app_urls": ["https://u:s2@a.example"]}
    project = Project.model_validate({**fields, "survey_config": {"hmac_key": "s3"}})
    assert sorted(project.secrets()) == ["s1", "s2", "s3"]
    assert project.to_dict()["extra_settings"] == {"colour": "red"}
    assert project.to_dict(return_secrets=True)["extra_settings"] == {"scim_token": "s1", "colour": "red"}
    assert repr(project) == (
        "Project(id=1, app_urls=['https://u:***@a.example'], survey_config={}, extra_settings={'colour': 'red'})"
    )
    sent = CreateProject(organization_id="o", **{name: fields[name] for name in ("extra_settings", "app_urls")})
    assert sorted(sent.secrets()) == ["s1", "s2"]
    assert repr(sent) == (
        "CreateProject(app_urls=['https://u:***@a.example'], extra_settings={'colour': 'red'}, organization_id='o')"
    )


def test_booleans_for_audits_are_shown() -> None:
    sharing = DashboardSharing.model_validate({"enabled": True, "access_token": "s", "password_required": True})
    assert sharing.to_dict() == {"created_at": None, "enabled": True, "password_required": True}
    assert "user=User(id=3" in repr(DashboardCollaborator.model_validate({"user": {"id": 3}}))


def test_the_proxy_password_is_a_secret() -> None:
    settings = Settings("https://workspace.example.com", "key", proxy="http://user:p%40ss@proxy.example.com:3128")
    assert settings.secrets() == ("key", "p%40ss", "p@ss")
