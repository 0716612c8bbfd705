"""Settings from the parts of a connection, and a message for each invalid part."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_workspace.client.settings import EXTRAS, Settings
from airflow_provider_workspace.errors import WorkspaceConfigError
from airflow_provider_workspace.client.settings import read_settings

HOST = "https://workspace.example.com"
SOURCE = "connection 'w'"


def read(
    host: str | None = HOST,
    *,
    password: str | None = "key",
    port: int | None = None,
    schema: str | None = None,
    **extra: Any,
) -> Settings:
    return read_settings(host=host, password=password, port=port, schema=schema, extra=json.dumps(extra), source=SOURCE)


def refused(host: str | None = HOST, **parts: Any) -> str:
    with pytest.raises(WorkspaceConfigError) as error:
        read(host, **parts)
    return str(error.value)


def test_default_settings() -> None:
    assert read() == Settings(base_url=HOST, api_key="key", source=SOURCE)
    policy = read().retry_policy()
    assert (policy.max_attempts, policy.max_wait) == (5, 60.0)


def test_all_settings(tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.touch()
    extra = {
        "organization_id": "o1",
        "project_id": 7,
        "connect_timeout": 1.5,
        "read_timeout": "30",
        "total_timeout": 90,
        "max_response_bytes": "1000000",
        "consistency_time": 45,
        "trust_counts": "false",
        "invites_per_hour": 50,
        "invites_per_day": "200",
        "max_attempts": "3",
        "max_retry_wait": 0,
        "page_size": 50.0,
        "max_concurrency": 8,
        "bulk_invite_limit": 5,
        "bulk_invite_body": "object",
        "verify": str(bundle),
        "proxy": "http://proxy.example.com:3128/",
        "web_url": "https://app.example.com/",
        "allow_http": "TRUE",
    }
    assert set(extra) == set(EXTRAS)
    assert read("http://workspace.example.com", **extra) == Settings(
        base_url="http://workspace.example.com",
        api_key="key",
        source=SOURCE,
        organization_id="o1",
        project_id="7",
        connect_timeout=1.5,
        read_timeout=30.0,
        total_timeout=90.0,
        max_response_bytes=1_000_000,
        consistency_time=45.0,
        trust_counts=False,
        invites_per_hour=50,
        invites_per_day=200,
        max_attempts=3,
        max_retry_wait=0.0,
        page_size=50,
        max_concurrency=8,
        bulk_invite_limit=5,
        bulk_invite_body="object",
        verify=str(bundle),
        proxy="http://proxy.example.com:3128",
        web_url="https://app.example.com",
        allow_http=True,
    )


def test_settings_derived_from_the_read_timeout() -> None:
    settings = read(read_timeout=30)
    assert (settings.total_timeout, settings.consistency_time) == (300.0, 60.0)


def test_empty_form_fields_are_ignored() -> None:
    assert read(**dict.fromkeys(EXTRAS, ""), password=" key\n") == read(**dict.fromkeys(EXTRAS)) == read()


@pytest.mark.parametrize("extra", [None, "", "  ", "{}"])
def test_the_extra_is_optional(extra: str | None) -> None:
    assert read_settings(host=HOST, password="key", extra=extra, source=SOURCE) == read()


# Host


@pytest.mark.parametrize(
    ("host", "port", "base_url"),
    [
        ("https://workspace.example.com/", None, HOST),
        (" https://workspace.example.com// ", None, HOST),
        ("HTTPS://workspace.example.com", None, HOST),
        ("https://workspace.example.com/base/", None, f"{HOST}/base"),
        ("https://workspace.example.com:8443", None, f"{HOST}:8443"),
        ("https://workspace.example.com/base", 8443, f"{HOST}:8443/base"),
        ("https://workspace.example.com:9443", 8443, f"{HOST}:9443"),
        ("https://Workspace.EXAMPLE.com:443/", None, HOST),
        ("https://workspace.example.com", 443, HOST),
        ("http://localhost:80", 8000, "http://localhost"),
        ("http://127.0.0.1:8000", None, "http://127.0.0.1:8000"),
        ("http://127.8.9.1", None, "http://127.8.9.1"),
        ("http://localhost", 8000, "http://localhost:8000"),
        ("http://workspace.localhost", None, "http://workspace.localhost"),
        ("http://[::1]", 8000, "http://[::1]:8000"),
    ],
)
def test_valid_hosts_are_accepted(host: str, port: int | None, base_url: str) -> None:
    assert read(host, port=port).base_url == base_url


@pytest.mark.parametrize(
    ("host", "port", "schema", "base_url"),
    [
        ("workspace.example.com", None, None, HOST),
        ("workspace.example.com", 8443, "", f"{HOST}:8443"),
        ("workspace.example.com:8443", None, "https", f"{HOST}:8443"),
        ("workspace.example.com/base/", 8443, "HTTPS", f"{HOST}:8443/base"),
        ("https://workspace.example.com", 443, "https", HOST),
        ("127.0.0.1", 8765, None, "http://127.0.0.1:8765"),
        ("localhost:8765", None, None, "http://localhost:8765"),
        ("localhost", 8765, "https", "https://localhost:8765"),
        ("::1", 8765, None, "http://[::1]:8765"),
        ("[::1]:8765", None, None, "http://[::1]:8765"),
        ("2001:db8::1", 8443, None, "https://[2001:db8::1]:8443"),
    ],
)
def test_a_host_without_a_scheme_gets_a_default(host: str, port: int | None, schema: str | None, base_url: str) -> None:
    assert read(host, port=port, schema=schema).base_url == base_url


def test_a_schema_does_not_downgrade_an_https_host() -> None:
    assert "unencrypted" in refused("workspace.example.com", schema="http")
    assert read("workspace.example.com", schema="http", allow_http=True).base_url == "http://workspace.example.com"
    for host, schema in (("https://workspace.example.com", "http"), ("workspace.example.com", "api"), (HOST, "v1")):
        assert "workspace://:<key>@workspace.example.com:443/https?organization_id=<id>" in refused(host, schema=schema)


NOT_A_URL = "The host of connection 'w' is not a URL: expected something like https://workspace.example.com."
TOO_MUCH = "Put the API key into the password: the host of connection 'w' must not contain a user, query or fragment."
NO_HOST = "Put the URL of the service, such as https://workspace.example.com, into the host of connection 'w'."

PLAIN = (
    'Use https://, or set "allow_http": true in the extra if the network between is trusted: the host of connection '
    "'w' is plain http://, which would send the API key unencrypted to workspace.example.com."
)


@pytest.mark.parametrize(
    ("host", "message"),
    [
        (None, NO_HOST),
        (" / ", NO_HOST),
        ("user:s3cret@workspace.example.com", TOO_MUCH),
        ("workspace.example.com?key=s3cret", TOO_MUCH),
        ("work space", NOT_A_URL),
        ("ftp://workspace.example.com", NOT_A_URL),
        ("https://", NOT_A_URL),
        ("https://:443", NOT_A_URL),
        ("https://[::1", NOT_A_URL),
        ("https://workspace.example.com:port", NOT_A_URL),
        ("https://workspace.example.com:99999", NOT_A_URL),
        ("https://work space.example.com", NOT_A_URL),
        ("https://workspace\x7f.example.com", NOT_A_URL),
        ("https://workspace\u200b.example.com", NOT_A_URL),
        ("https://workspace..example.com", NOT_A_URL),
        (f"https://{'x' * 64}.example.com", NOT_A_URL),
        ("https://workspace.example.com\\@evil.example", NOT_A_URL),
        ("https://user:s3cret@workspace.example.com", TOO_MUCH),
        ("https://@workspace.example.com", TOO_MUCH),
        ("https://workspace.example.com/?key=s3cret", TOO_MUCH),
        ("https://workspace.example.com/#s3cret", TOO_MUCH),
        (
            "https://workspace.example.com/api/",
            "Leave /api out of the host of connection 'w': every request adds it.",
        ),
        ("http://workspace.example.com", PLAIN),
    ],
)
def test_invalid_hosts_are_refused(host: str | None, message: str) -> None:
    assert refused(host) == message


@pytest.mark.parametrize("host", ["http://10.0.0.1", "http://localhost.example.com", "http://127.0.0.1.example.com"])
def test_plain_http_is_refused_except_for_loopback(host: str) -> None:
    assert "unencrypted" in refused(host)
    assert read(host, allow_http=True).base_url == host


# Password


@pytest.mark.parametrize("password", [None, "", "  "])
def test_a_missing_key_is_an_error(password: str | None) -> None:
    assert (
        refused(password=password) == "Put the personal API key into the password of connection 'w': it has no API key."
    )


@pytest.mark.parametrize("password", ["s3cret key", "s3cret\nkey", "s3crét", "s3cret\u200b", "s3cret\x7f"])
def test_a_key_that_is_no_header_value_is_refused(password: str) -> None:
    assert refused(password=password) == (
        "connection 'w': the API key in the password contains characters that cannot be sent in a header."
    )


# Extra


@pytest.mark.parametrize("extra", ["{", "[]", '"organization_id"', "7", "null", "[" * 100_000])
def test_an_extra_must_be_a_json_object(extra: str) -> None:
    with pytest.raises(WorkspaceConfigError) as error:
        read_settings(host=HOST, password="key", extra=extra, source=SOURCE)
    assert str(error.value) == (
        'The extra of connection \'w\' must be a JSON object, such as {"organization_id": "…"}.'
    )


@pytest.mark.parametrize(
    ("key", "hint"),
    [("organisation_id", "did you mean 'organization_id'? "), ("headers", ""), ("Verify", "did you mean 'verify'? ")],
)
def test_an_unknown_extra_is_an_error_that_lists_the_known_ones(key: str, hint: str) -> None:
    assert refused(**{key: "x"}) == (
        f"The extra of connection 'w' has an unknown key '{key}': {hint}Known are organization_id, project_id, "
        f"{', '.join(EXTRAS[2:])}."
    )


PAGES = "batch_export, dashboard, domain, domains, invites, members, project, projects"


@pytest.mark.parametrize(
    ("key", "values", "expected"),
    [
        ("organization_id", [True, [], {}, " "], "an id"),
        ("project_id", [1.5, False], "an id"),
        ("connect_timeout", [0, -1, 601, "soon", True, [], 10**400, "nan"], "a number from 0.01 to 600"),
        ("read_timeout", [0, 3601, "inf"], "a number from 0.01 to 3600"),
        ("max_attempts", [0, 21, 1.5, "x"], ["a number from 1 to 20", "a whole number from 1 to 20"]),
        ("max_retry_wait", [-0.1, 3601], "a number from 0 to 3600"),
        ("page_size", [0, 10_001], "a number from 1 to 10000"),
        ("max_concurrency", [0, 101], "a number from 1 to 100"),
        ("bulk_invite_limit", [0, 10_001], "a number from 1 to 10000"),
        ("bulk_invite_body", ["list", ["array"], 7], "'array' or 'object'"),
        ("verify", [1, ["x"]], "true, false, or the path of a CA file"),
        ("verify", ["/no/such/file"], "true, false, or the path of a CA file that exists on this machine"),
        (
            "proxy",
            ["proxy:3128", "socks5://p:1", "http://p:x", "http://[p", "http://p p", "http://:1", 7, {}],
            "a URL that begins with http:// or https://",
        ),
        ("web_url", ["app.example.com", 7], "a URL that begins with http:// or https://"),
        (
            "web_url",
            [{"dashboards": "https://x"}, {"dashboard": "x"}, {"dashboard": 7}],
            f"a URL, or an object of URL templates for {PAGES}",
        ),
        ("allow_http", ["yes", 1, []], "true or false"),
    ],
)
def test_extras_of_the_wrong_type_are_refused(key: str, values: list[Any], expected: str | list[str]) -> None:
    messages = [expected] if isinstance(expected, str) else expected
    for value in values:
        assert refused(**{key: value}) in [f"The extra '{key}' of connection 'w' must be {text}." for text in messages]


def test_all_mistakes_are_reported_together() -> None:
    assert refused(max_attempts=0, verify=1) == (
        "The extra 'max_attempts' of connection 'w' must be a number from 1 to 20. "
        "The extra 'verify' of connection 'w' must be true, false, or the path of a CA file."
    )


def test_settings_are_checked_without_a_connection() -> None:
    with pytest.raises(
        WorkspaceConfigError, match="'page_size' of the settings must be a whole number from 1 to 10000"
    ):
        Settings(HOST, "key", page_size=True)
    with pytest.raises(WorkspaceConfigError, match="unknown key 'pagesize': did you mean 'page_size'"):
        Settings(base_url=HOST, api_key="key", pagesize=1)
    with pytest.raises(WorkspaceConfigError, match="'base_url' of the settings must be text"):
        Settings(base_url=None, api_key="key")  # type: ignore[arg-type]


def test_settings_are_frozen_and_hide_secrets() -> None:
    settings = Settings(HOST, "s3cret", proxy="http://user:s3cret@proxy.example.com:3128")
    with pytest.raises(ValueError, match="frozen") as error:
        settings.page_size = 1  # type: ignore[misc]
    assert "s3cret" not in f"{settings} {settings!r} {error.value}"


@pytest.mark.parametrize(("given", "verify"), [(True, True), ("true", True), (False, False), (" False ", False)])
def test_verify_may_be_text(given: Any, verify: bool) -> None:  # noqa: FBT001
    assert read(verify=given).verify is verify


def test_web_url_may_be_a_template() -> None:
    templates = {"dashboard": "https://app.example.com/d/{dashboard_id}"}
    assert read(web_url=templates).web_url == templates
