"""Secrets by the names of their fields, wherever they stand."""

from __future__ import annotations

from airflow_provider_workspace.api.models import Project
from airflow_provider_workspace.api.secrets import secrets_under, without_secrets
from airflow_provider_workspace.client.settings import Settings


def test_secrets_are_found_and_removed_at_any_depth() -> None:
    value = {"scim_token": ["s1"], "a": [{"password": {"old": "s2"}}], "name": "x", "webhook": "{{ var.value.w }}"}
    assert sorted(secrets_under("settings", value)) == ["s1", "s2"]
    assert list(secrets_under("saml_x509_cert", "s3")) == ["s3"]
    assert without_secrets(value) == {"a": [{}], "name": "x"}


def test_secrets_in_a_recursive_value_are_found() -> None:
    value: list[object] = ["x"]
    value.append(value)
    assert list(secrets_under("token", value)) == ["x"]


def test_secrets_in_a_free_form_field_are_removed() -> None:
    project = Project.model_validate({"id": 1, "extra_settings": {"scim_token": "s1", "colour": "red"}})
    assert list(project.secrets()) == ["s1"]
    assert project.to_dict()["extra_settings"] == {"colour": "red"}
    assert project.to_dict(return_secrets=True)["extra_settings"] == {"scim_token": "s1", "colour": "red"}


def test_the_password_of_a_proxy_is_a_secret() -> None:
    settings = Settings("https://workspace.example.com", "key", proxy="http://user:p%40ss@proxy.example.com:3128")
    assert settings.secrets() == ("key", "p%40ss", "p@ss")
