"""Connections, as JSON and as URI, become settings or a message that names the part and the cure."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import pytest
from airflow.sdk import Connection

from airflow_provider_workspace.client.settings import read_connection
from airflow_provider_workspace.errors import WorkspaceConfigError
from airflow_provider_workspace.get_provider_info import get_provider_info
from airflow_provider_workspace.hooks.workspace import WorkspaceAsyncHook, WorkspaceHook

if TYPE_CHECKING:
    from pathlib import Path

HOST = "https://workspace.example.com"
PARTS: dict[str, Any] = {"conn_type": "workspace", "host": HOST, "password": "s3cret-key"}
# The keys of the extra, in the order of the connection form.
(FORM,) = (kind["conn-fields"] for kind in get_provider_info()["connection-types"])
EXTRAS = tuple(FORM)
MOVED = "/api/projects/{project_id}/batch_exports/{batch_export_id}/pause"


def as_json(**parts: Any) -> str:
    return json.dumps({**PARTS, **parts})


def as_uri(host: str = HOST, extra: dict[str, Any] | None = None, password: str = "s3cret-key") -> str:
    """Return the connection as Airflow's CLI writes it: JSON in the query if a value is no text."""
    query = urlencode({"__extra__": json.dumps(extra)} if extra else {})
    return f"workspace://:{quote(password, safe='')}@{quote(host, safe='')}/?{query}"


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that sets a connection and returns the settings of the hook."""

    def read(connection: str | None = None, **parts: Any) -> Any:
        monkeypatch.setenv("AIRFLOW_CONN_WORKSPACE_DEFAULT", connection or as_json(**parts))
        with WorkspaceHook() as hook:
            return hook.get_conn().settings

    return read


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that sets a connection and returns the message of the hook."""

    def message(connection: str | None = None, **parts: Any) -> str:
        monkeypatch.setenv("AIRFLOW_CONN_WORKSPACE_DEFAULT", connection or as_json(**parts))
        with pytest.raises(WorkspaceConfigError) as error:
            WorkspaceHook().get_conn()
        assert "s3cret" not in str(error.value)
        return str(error.value).replace("connection 'workspace_default'", "C")

    return message


def test_default_settings_and_those_derived_from_the_read_timeout(settings: Any) -> None:
    found = settings()
    assert (found.base_url, found.source) == (HOST, "connection 'workspace_default'")
    assert (found.max_attempts, found.max_retry_wait) == (5, 60.0)
    assert (found.page_size, found.max_concurrency) == (100, 4)
    assert (found.verify, found.trust_counts, found.bulk_invite_body) == (True, True, "array")
    derived = settings(extra={"read_timeout": 30})
    assert (derived.total_timeout, derived.consistency_time) == (300.0, 60.0)
    assert settings(extra=dict.fromkeys(EXTRAS, ""), password=" s3cret-key\n") == found
    assert settings(extra=dict.fromkeys(EXTRAS)) == found


# A value as an author writes it, and as it is read.
SETTINGS: dict[str, tuple[Any, Any]] = {
    "organization_id": ("o1", "o1"),
    "project_id": (7, "7"),
    "connect_timeout": (1.5, 1.5),
    "read_timeout": ("30", 30.0),
    "total_timeout": (90, 90.0),
    "max_response_bytes": ("1000000", 1_000_000),
    "consistency_time": (45, 45.0),
    "trust_counts": ("false", False),
    "count_members": ("true", True),
    "invites_per_hour": (50, 50),
    "invites_per_day": ("200", 200),
    "max_attempts": ("3", 3),
    "max_retry_wait": (0, 0.0),
    "page_size": (50.0, 50),
    "max_concurrency": (8, 8),
    "bulk_invite_limit": (5, 5),
    "bulk_invite_body": ("object", "object"),
    "verify": ("{bundle}", "{bundle}"),
    "proxy": ("http://proxy.example.com:3128/", "http://proxy.example.com:3128"),
    "web_url": ("https://app.example.com/", "https://app.example.com"),
    "allow_http": ("TRUE", True),
    "paths": ({"PauseBatchExport": MOVED}, {"PauseBatchExport": MOVED}),
}


def test_every_setting_is_read_from_json_and_from_a_uri(settings: Any, tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.touch()
    assert set(SETTINGS) == set(EXTRAS)
    extra = {name: written for name, (written, _) in SETTINGS.items()}
    expected = {name: read for name, (_, read) in SETTINGS.items()}
    extra["verify"] = expected["verify"] = str(bundle)
    by_json = settings(host="http://workspace.example.com", extra=extra)
    assert {name: getattr(by_json, name) for name in expected} == expected
    assert settings(as_uri("http://workspace.example.com", extra)) == by_json


@pytest.mark.parametrize(("verify", "read"), [(" False ", False), ("true", True)])
def test_verify_may_be_a_text(settings: Any, verify: str, *, read: bool) -> None:
    assert settings(extra={"verify": verify}).verify is read


# Paths

START = "The extra 'paths' of C must be paths by operation. "
OF_PAUSE = f"{START}The path of PauseBatchExport must "
FORM_OF_PATH = f"{OF_PAUSE}begin with /api/, and have no host, query or blanks; it is "
A_MAPPING = "The extra 'paths' of C must be a JSON object of operations and paths, such as {"


@pytest.mark.parametrize(
    ("paths", "says"),
    [
        ("{", A_MAPPING),
        ([MOVED], A_MAPPING),
        (7, A_MAPPING),
        ({"PauseBatchExports": MOVED}, f"{START}PauseBatchExports is no operation: did you mean 'PauseBatchExport'?"),
        (
            {"PauseBatchExport": MOVED.replace("export_id", "id")},
            f"{OF_PAUSE}name only batch_export_id, organization_id",
        ),
        *(
            ({"PauseBatchExport": path}, f"{FORM_OF_PATH}{path!r}."[:150])
            for path in (
                "/projects/{project_id}/",
                "https://evil.example/api/x",
                "//evil.example/api/x",
                "/api/",
                "/api/x?y=1",
                "/api/x#y",
                "/api/../x",
                "/api/./x/",
                "/api/a\\b",
                "/api/ä/",
                "/api/x y/",
                "/api/{project_id!r}/",
                "/api/{/",
            )
        ),
        (
            {"PauseBatchExport": "/api/projects/{project_id}/pause/"},
            f"{OF_PAUSE}name batch_export_id, or it leads to something else; it is '/api/projects/",
        ),
        (
            {"DeleteMember": "/api/organizations/{organization_id}/"},
            f"{START}The path of DeleteMember must name user_uuid, or it leads to something else",
        ),
        (
            {"ListMembers": "/api/organizations/@current/members/"},
            f"{START}The path of ListMembers must name organization_id, or it leads to something else",
        ),
        ({"PauseBatchExport": 7}, f"{FORM_OF_PATH}something of type int."),
        ({"my_package.endpoints.Runs": "/x/"}, f"{START}The path of my_package.endpoints.Runs must begin with /api/"),
    ],
)
def test_paths_that_no_request_could_have_are_refused(refused: Any, paths: Any, says: str) -> None:
    assert refused(extra={"project_id": 1, "paths": paths}).startswith(says)


def test_a_path_may_name_the_ids_that_the_connection_has(refused: Any, settings: Any) -> None:
    extra = {"paths": json.dumps({"PauseBatchExport": MOVED})}
    assert refused(extra=extra).startswith(f"{OF_PAUSE}name only batch_export_id, organization_id (of")
    assert settings(extra={**extra, "project_id": 7}).paths == {"PauseBatchExport": MOVED}
    own = {"my_package.endpoints.Runs": "/api/{anything}/runs"}
    assert settings(extra={"paths": own}).paths == own


# Host


@pytest.mark.parametrize(
    ("host", "port", "schema", "base_url"),
    [
        (" https://Workspace.EXAMPLE.com:443// ", None, None, HOST),
        ("HTTPS://workspace.example.com/base/", None, None, f"{HOST}/base"),
        ("https://workspace.example.com/base", 8443, None, f"{HOST}:8443/base"),
        ("https://workspace.example.com:9443", 8443, None, f"{HOST}:9443"),
        ("https://workspace.example.com", 443, "https", HOST),
        ("http://localhost:80", 8000, None, "http://localhost"),
        ("http://127.8.9.1:8000", None, None, "http://127.8.9.1:8000"),
        ("http://workspace.localhost", 8000, None, "http://workspace.localhost:8000"),
        ("http://[::1]", 8000, None, "http://[::1]:8000"),
        ("workspace.example.com", 8443, "", f"{HOST}:8443"),
        ("workspace.example.com:8443", None, "https", f"{HOST}:8443"),
        ("workspace.example.com/base/", 8443, "HTTPS", f"{HOST}:8443/base"),
        ("127.0.0.1", 8765, None, "http://127.0.0.1:8765"),
        ("localhost:8765", None, None, "http://localhost:8765"),
        ("localhost", 8765, "https", "https://localhost:8765"),
        ("::1", 8765, None, "http://[::1]:8765"),
        ("[::1]:8765", None, None, "http://[::1]:8765"),
        ("2001:db8::1", 8443, None, "https://[2001:db8::1]:8443"),
    ],
)
def test_valid_hosts_are_accepted(
    settings: Any, host: str, port: int | None, schema: str | None, base_url: str
) -> None:
    assert settings(host=host, port=port, schema=schema).base_url == base_url


NOT_A_URL = "The host of C is not a URL: expected something like https://workspace.example.com."
TOO_MUCH = "The host of C must not contain a user, query or fragment. Put the API key into the password."
NO_HOST = "No host in C. Put the URL of the service there, such as https://workspace.example.com."
SCHEMA = (
    "The schema of C must be https or http, as the host has it, or be left out. As a URI: "
    "workspace://:<key>@workspace.example.com:443/https?organization_id=<id>"
)
PLAIN = (
    "The host of C is plain http://, which would send the API key unencrypted to {}. "
    'Use https://, or set "allow_http": true in the extra if the network between is trusted.'
)


@pytest.mark.parametrize(
    ("host", "message"),
    [
        (None, NO_HOST),
        (" / ", NO_HOST),
        ("user:s3cret@workspace.example.com", TOO_MUCH),
        ("workspace.example.com?key=s3cret", TOO_MUCH),
        ("https://@workspace.example.com", TOO_MUCH),
        ("https://workspace.example.com/#s3cret", TOO_MUCH),
        *((host, NOT_A_URL) for host in ("work space", "ftp://workspace.example.com", "https://", "https://:443")),
        *((f"https://{host}", NOT_A_URL) for host in ("[::1", "example.com:port", "example.com:99999")),
        *((f"https://{host}", NOT_A_URL) for host in ("work space.example.com", "workspace\x7f.example.com")),
        *((f"https://{host}", NOT_A_URL) for host in ("workspace\u200b.example.com", "workspace..example.com")),
        *((f"https://{host}", NOT_A_URL) for host in (f"{'x' * 64}.example.com", "example.com\\@evil.example")),
        ("https://workspace.example.com/api/", "The host of C ends with /api, which every request adds. Leave it out."),
        *((f"http://{host}", PLAIN.format(host)) for host in ("workspace.example.com", "10.0.0.1")),
        *((f"http://{host}", PLAIN.format(host)) for host in ("localhost.example.com", "127.0.0.1.example.com")),
    ],
)  # fmt: skip
def test_invalid_hosts_are_refused(refused: Any, host: str | None, message: str) -> None:
    assert refused(host=host) == message


@pytest.mark.parametrize(("host", "schema"), [(HOST, "http"), ("workspace.example.com", "api"), (HOST, "v1")])
def test_a_schema_that_contradicts_the_host_is_refused(refused: Any, host: str, schema: str) -> None:
    assert refused(host=host, schema=schema) == SCHEMA


def test_plain_http_is_allowed_only_by_name(refused: Any, settings: Any) -> None:
    assert refused(host="workspace.example.com", schema="http") == PLAIN.format("workspace.example.com")
    plain = {"host": "workspace.example.com", "schema": "http", "extra": {"allow_http": True}}
    assert settings(**plain).base_url == "http://workspace.example.com"


# Password


def test_a_missing_key_is_an_error(refused: Any) -> None:
    for password in (None, "", "  "):
        assert refused(password=password) == "No API key in the password of C. Put the personal API key there."


def test_a_key_that_is_no_header_value_is_refused(refused: Any) -> None:
    for password in ("s3cret key", "s3cret\nkey", "s3crét", "s3cret\x7f"):
        for connection in (as_json(password=password), as_uri(password=password)):
            assert refused(connection).startswith("The API key in the password of C has characters that cannot be sent")


def test_a_header_in_place_of_the_key_is_named(refused: Any) -> None:
    for password in ("Bearer s3cret", " bearer  s3cret"):
        says = "The password of C begins with 'Bearer '. Leave that out: it is sent anyway."
        assert refused(as_json(password=password)) == says


# Extra


@pytest.mark.parametrize(
    ("key", "values", "expected"),
    [
        ("organization_id", [True, [1], {"a": 1}, " ", "None", "a\nb"], "an id, a number or text that can be printed"),
        ("project_id", [1.5, False], "an id, a number or text that can be printed"),
        ("connect_timeout", [0, -1, 601, "soon", True, [1], 10**400, "nan", "inf"], "a number from 0.01 to 600"),
        ("max_attempts", [0, 21], "a number from 1 to 20"),
        ("max_attempts", [1.5, "x", True], "a whole number from 1 to 20"),
        ("bulk_invite_body", ["list", ["array"], 7], "'array' or 'object'"),
        ("verify", [1, ["x"]], "true, false, or the path of a CA file"),
        ("verify", ["/no/such/file"], "true, false, or the path of a CA file that exists on this machine"),
        ("proxy", ["proxy:3128", "socks5://p:1", "http://p:x", "http://[p", "http://p p", "http://:1", 7, {"a": 1}],
         "a URL that begins with http:// or https://"),
        ("web_url", ["app.example.com", 7, {"dashboard": "https://x"}], "a URL that begins with http:// or https://"),
        ("allow_http", ["yes", 1, ["x"]], "true or false"),
    ],
)  # fmt: skip
def test_extras_of_the_wrong_type_are_refused(refused: Any, key: str, values: list[Any], expected: str) -> None:
    for value in values:
        for connection in (as_json(extra={key: value}), as_uri(extra={key: value})):
            assert refused(connection) == f"The extra '{key}' of C must be {expected}."


@pytest.mark.parametrize(("key", "hint"), [("organisation_id", "did you mean 'organization_id'? "), ("headers", "")])
def test_an_unknown_extra_is_an_error_that_lists_the_known_ones(refused: Any, key: str, hint: str) -> None:
    for connection in (as_json(extra={key: "x"}), as_uri(extra={key: "x"})):
        assert refused(connection) == (
            f"The extra of C has an unknown key '{key}': {hint}Known are {', '.join(EXTRAS)}."
        )


@pytest.mark.parametrize("extra", ["[1]", '"text"', "5", "{", "[]"])
def test_an_extra_that_is_no_json_object_is_refused(extra: str) -> None:
    """In a connection as tasks receive it: Airflow 3.1 itself refuses it in an environment variable."""
    connection = Connection(conn_id="workspace_default", conn_type="workspace", password="s3cret-key", extra=extra)
    with pytest.raises(WorkspaceConfigError, match=r"^The extra of connection .* must be a JSON object"):
        read_connection(connection, "workspace_default")


def test_all_mistakes_are_reported_together(refused: Any) -> None:
    message = refused(extra={"max_attempts": 0, "verify": 1})
    assert message.startswith("The extra 'max_attempts' of C must be a number from 1 to 20. The extra 'verify' of C")


# Secrets


def test_hooks_clients_and_settings_hide_secrets(settings: Any) -> None:
    found = settings(extra={"proxy": "http://user:s3cret@proxy.example.com:3128"})
    with pytest.raises(ValueError, match="frozen") as error:
        found.page_size = 1

    async def shown() -> str:
        async with WorkspaceAsyncHook() as hook:
            client: Any = await hook.client()
            return f"{hook!r} {client!r} {client.settings!r}"

    with WorkspaceHook() as hook:
        texts = f"{hook!r} {hook.get_conn()!r} {found} {found!r} {error.value} {asyncio.run(shown())}"
    assert texts.count("Settings('https://workspace.example.com', source=\"connection 'workspace_default'\")") == 2
    assert "s3cret" not in texts
