"""The server of the sandbox: web security, invalid requests, the page, control calls, the database file."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
from py_mini_racer import MiniRacer

from airflow_provider_workspace.sandbox.__main__ import main
from airflow_provider_workspace.sandbox.app import create_app
from airflow_provider_workspace.sandbox.control import BUTTON_CALLS, CALLS
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.sandbox.server import SandboxServer
from airflow_provider_workspace.sandbox.service import Service, Settings
from tests.audit import effects
from tests.sandbox.paths import DASHBOARD, DOMAINS, MEMBERS, PROJECTS

DOCS = Path(__file__).resolve().parents[2] / "docs" / "sandbox.md"


# The profiles do not differ here.
PROFILES = ("live",)


@pytest.fixture(scope="module")
def remote() -> Iterator[SandboxServer]:
    """A sandbox that listens on all addresses."""
    with SandboxServer(host="0.0.0.0") as server:
        yield server


def ask(sandbox: SandboxServer, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
    """Send a request with these headers."""
    sent = {"Authorization": f"Bearer {SEED.admin_key}", **headers}
    url = f"http://127.0.0.1:{sandbox.port}{path}"
    response = httpx.request(method, url, content=body, headers=sent, trust_env=False, verify=False)  # noqa: S501
    return response.status_code, response.content


@pytest.mark.parametrize(
    "host", ["evil.example.com", "evil.example.com:80", "192.0.2.7:8765", "localhost.evil.example", "0.0.0.0", "", "["]
)
@pytest.mark.parametrize("path", ["/_sandbox/workspace", MEMBERS])
def test_a_foreign_host_is_refused(sandbox: SandboxServer, host: str, path: str) -> None:
    status, text = ask(sandbox, "GET", path, Host=host)
    assert status == 403
    assert b"Olive" not in text


def test_hosts_of_this_machine_and_of_a_remote_sandbox_private_names_are_accepted(
    sandbox: SandboxServer, remote: SandboxServer
) -> None:
    local = ("LOCALHOST:8765", "127.8.9.1:80", "[::1]:8765", "a.localhost")
    for host in local:
        assert ask(sandbox, "GET", MEMBERS, Host=host)[0] == 200
    for host in (*local, "192.0.2.7:8765", "sandbox", "host.docker.internal:8765"):
        assert ask(remote, "GET", MEMBERS, Host=host)[0] == 200
    assert ask(remote, "GET", MEMBERS, Host="evil.example.com")[0] == 403


@pytest.mark.parametrize("origin", ["https://evil.example.com", "null", "http://127.0.0.1:1", "http://localhost"])
def test_a_foreign_origin_is_refused(sandbox: SandboxServer, origin: str) -> None:
    sandbox.inject("reset_after", "create_domain")
    calls = [call[:2] for call in CALLS]
    for method, path in (("GET", "/_sandbox/workspace"), ("POST", PROJECTS), *calls):
        headers = {"Origin": origin, "Content-Type": "text/plain"}
        assert ask(sandbox, method, path.replace("{invite_id}", SEED.invite_id), b"{}", **headers)[0] == 403
    assert sandbox.faults()
    assert sandbox.audit() == []


def test_requests_of_its_own_page_are_accepted(sandbox: SandboxServer) -> None:
    assert ask(sandbox, "GET", "/_sandbox/workspace", Origin=sandbox.url)[0] == 200
    assert ask(sandbox, "POST", "/_sandbox/reset", Origin=sandbox.url)[0] == 204


def test_the_page_has_a_content_security_policy(sandbox: SandboxServer) -> None:
    page = httpx.get(sandbox.url, trust_env=False)
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert page.headers["X-Frame-Options"] == "DENY"
    # Inline code would be blocked.
    assert not re.search(r"<[^>]+\s(style|on\w+)=", page.text)


BROWSER = """
const elements = {}, sent = [];
let click;
const element = id => elements[id] ??= {id, value: "", addEventListener() {}};
const document = {getElementById: element, addEventListener: (_kind, handler) => { click = handler; }};
const location = {hash: ""}, setInterval = () => 0;
const fetch = async (path, options) => {
  sent.push([options?.method ?? "GET", path, options?.body ?? ""]);
  return {ok: true, status: 200, json: async () => (WORKSPACE)};
};
"""


@pytest.fixture
def browser() -> Iterator[MiniRacer]:
    """The engine of the page; closed here, because old ones crash if a thread of the sandbox collects them."""
    with closing(MiniRacer()) as engine:
        yield engine


def open_page(browser: MiniRacer, page: str, workspace: str) -> str:
    """Run the script of the page; return what the page shows."""
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    browser.eval(BROWSER.replace("WORKSPACE", workspace) + script)
    written = browser.eval("Object.values(elements).map(one => one.innerHTML ?? '').join('')")
    return page.replace(script, "") + str(written)


def test_every_control_call_has_a_button_and_is_documented(
    sandbox: SandboxServer, api: httpx.Client, browser: MiniRacer
) -> None:
    api.post(DOMAINS, json={"domain": "acme.example.org"})
    shown = open_page(browser, api.get("/").text, api.get("/_sandbox/workspace").text)
    assert "acme.example.org" in shown
    browser.eval("element('kinds').value = 'reset_after'; element('operation').value = 'create_*'; sent.length = 0;")
    for tag in re.findall(r"<button ([^>]*)>", shown):
        data = {name: unescape(one or two) for name, one, two in re.findall(r"""([a-z-]+)=(?:"(.*?)"|'(.*?)')""", tag)}
        dataset = {"call": data["data-call"], "body": data.get("data-body")}
        browser.eval(f"click({json.dumps({'target': {'id': data.get('id'), 'dataset': dataset}})}); 0")
    sent = [call for call in json.loads(str(browser.eval("JSON.stringify(sent)"))) if call[0] != "GET"]
    for method, path, body in sent:
        assert ask(sandbox, method, path, body.encode())[0] in (200, 204), (method, path, body)
    offered = {(method, path.replace(SEED.invite_id, "{invite_id}")) for method, path, _ in sent}
    assert offered == {call[:2] for call in BUTTON_CALLS}
    documented = re.findall(r"curl -X (\w+) http://[\w.:]+(\S+)", DOCS.read_text())
    ids = {"ID": "{invite_id}", "EXPORT": "{batch_export_id}"}
    calls = {(method, re.sub("ID|EXPORT", lambda found: ids[found[0]], path)) for method, path in documented}
    assert calls == {call[:2] for call in CALLS}


def with_markup(value: Any) -> Any:
    """Replace the texts and numbers of records by markup."""
    if isinstance(value, dict):
        return {name: with_markup(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [with_markup(inner) for inner in value]
    return value if isinstance(value, bool) else "<img src=x><b title=\"'>"


def test_markup_in_records_is_escaped(api: httpx.Client, browser: MiniRacer) -> None:
    for path in (DOMAINS, PROJECTS):  # an unverified domain, and effects
        api.post(path, json={"domain": "acme.example.org"} if path == DOMAINS else {"name": "Shop"})
    workspace = api.get("/_sandbox/workspace").json()
    for part in workspace.values():
        if isinstance(part, dict) and "results" in part:
            part["results"] = with_markup(part["results"])
    workspace["organizations"] = with_markup(workspace["organizations"])
    shown = open_page(browser, api.get("/").text, json.dumps(workspace))
    assert shown.count("&lt;img src=x&gt;&lt;b title=&quot;&#39;&gt;") >= 15
    assert "<img" not in shown


def test_control_calls_do_what_methods_do(sandbox: SandboxServer) -> None:
    def call(method: str, path: str, body: object = None) -> Any:
        status, text = ask(sandbox, method, f"/_sandbox/{path}", json.dumps(body).encode() if body else b"")
        assert status in (200, 204), text
        return json.loads(text) if text else None

    then = sandbox.advance_clock(0)
    assert call("POST", "clock", {"seconds": 86_400})[:10] > then[:10]
    member = call("POST", f"invites/{SEED.invite_id}/accept")
    assert member["user"]["email"] == "liv.invited@example.com"
    call("POST", "dns", {"name": "a.example.com", "value": "text"})
    fault = call("POST", "faults", {"kind": "status_before", "operation": "list_members", "status": 500})
    assert sandbox.faults() == [fault]
    assert ask(sandbox, "GET", MEMBERS)[0] == 500
    call("DELETE", "faults")
    assert json.loads(ask(sandbox, "GET", MEMBERS)[1])["results"][-1] == member
    call("POST", "reset")
    assert sandbox.advance_clock(0)[:10] == then[:10]


def test_a_control_call_that_fails_changes_nothing() -> None:
    service = Service(":memory:", Settings())
    with pytest.raises(ValueError, match="Not found"):
        service.call(lambda: (service.publish_dns("a.example.com", "text"), service.revoke_key("unheard-of")))
    assert service.state.one("dns", name="a.example.com") is None
    service.state.db.close()


def test_other_machines_get_the_page_but_no_control_call() -> None:
    service = Service(":memory:", Settings())
    app = create_app(service)
    statuses: list[int] = []

    async def ask_from_elsewhere() -> None:
        transport = httpx.ASGITransport(app, client=("192.0.2.7", 50_000))
        async with httpx.AsyncClient(transport=transport, base_url="http://sandbox") as client:
            for method, path in (("GET", "/"), ("GET", "/_sandbox/workspace"), *(call[:2] for call in CALLS)):
                statuses.append((await client.request(method, path)).status_code)

    asyncio.run(ask_from_elsewhere())
    service.state.db.close()
    assert statuses == [200, 200, *([403] * len(CALLS))]


NOT_AN_OBJECT = (b"[" * 50_000, b'{"name": ' + b"[" * 500 + b"]" * 500 + b"}", b"{", b"\xff", b"[]", b'{"latency": 1}')


@pytest.mark.parametrize("body", NOT_AN_OBJECT)
def test_malformed_requests_are_refused(sandbox: SandboxServer, body: bytes) -> None:
    for method, path, _ in CALLS:
        status, text = ask(sandbox, method, path.replace("{invite_id}", "1"), body)
        assert status == 400, text
        json.loads(text)
    assert ask(sandbox, "GET", MEMBERS)[0] == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        *(("clock", body) for body in ({"seconds": 1e18}, {"seconds": "60"}, {})),
        *(("dns", body) for body in ({"name": "\ud800", "value": "x"}, {"name": "x"})),
        (f"invites/{SEED.domain_id}/accept", {}),
        *(("faults", body) for body in ({"kind": "status_before", "status": [503]}, {"kind": "unheard-of"})),
        ("faults", {"kind": "reset_after", "operation": "create_everything"}),
        ("responses", {"method": "GET", "path": MEMBERS, "body": []}),
        ("responses", {"method": "GET", "path": "/api/roles/", "status": "200"}),
        ("moves", {"operation": "list_members", "path": "/api/people/"}),
        ("dropped_fields", {"resource": "domain", "names": ["saml"]}),
    ],
)
def test_invalid_values_are_refused(sandbox: SandboxServer, path: str, body: object) -> None:
    status, _ = ask(sandbox, "POST", f"/_sandbox/{path}", json.dumps(body).encode())
    assert status == (404 if "invites" in path else 400)
    assert sandbox.advance_clock(0) > "2020"
    assert ask(sandbox, "GET", MEMBERS)[0] == 200


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("inject", {"kind": "unheard-of"}, "Unknown fault 'unheard-of'. Kinds are reset_before"),
        ("change_settings", {"profile": "kind"}, "Profiles are live and strict, not 'kind'"),
        ("revoke_key", {"key": "unheard-of"}, "Not found"),
        ("add_members", {"count": 1, "organization_id": "unheard-of"}, "Not found"),
        ("set_project", {"project_id": 999}, "Not found"),
        ("set_project", {"project_id": 1, "colour": "red"}, "A project has no field colour"),
    ],
)
def test_a_method_that_cannot_be_done_says_so(
    sandbox: SandboxServer, method: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(sandbox, method)(**arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--port", "99999"], "port must be 0-65535"),
        (["--database", "/"], "unable to open database file"),
        (["--host", "nowhere.invalid", "--allow-remote"], "did not start"),
        (["--host", "0.0.0.0"], "--allow-remote"),
        (["--profile", "kind"], "invalid choice: 'kind'"),
        (["--port", "{busy}"], "did not start"),
    ],
)
def test_a_failing_start_says_the_reason(
    capsys: pytest.CaptureFixture[str], sandbox: SandboxServer, options: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as raised:
        main([option.format(busy=sandbox.port) for option in options])
    said = f"{raised.value.code} {capsys.readouterr().err}"
    assert message in said
    assert "Traceback" not in said


# What the page shows, and the database file


def test_the_page_and_its_data_contain_no_secret(api: httpx.Client, sandbox: SandboxServer) -> None:
    secrets = {"sekret-webhook", "sekret-certificate"}
    wanted = {"name": "<b>Shop</b>", "slack_incoming_webhook": "sekret-webhook"}
    project = api.post(PROJECTS, json=wanted).json()
    wanted = {"domain": "acme.example.org", "saml_x509_cert": "sekret-certificate"}
    domain = api.post(DOMAINS, json=wanted).json()
    api.patch(f"{DOMAINS}{domain['id']}/", json={"saml_x509_cert": "sekret-certificate-2"})
    secrets |= {project["api_token"], project["live_events_token"]}
    secrets |= {api.get(DASHBOARD + "sharing/").json()["access_token"]}
    secrets |= {value for name, value in vars(type(SEED)).items() if name.endswith("_key")}
    page = api.get("/")
    data = api.get("/_sandbox/workspace")
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page.text)
    for secret in secrets:
        assert secret not in page.text + data.text + str(sandbox.audit())
    workspace = data.json()
    assert [row["name"] for row in workspace["projects"]["results"]] == ["<b>Shop</b>", "Default project"]
    assert (workspace["invites"]["pending"], workspace["invites"]["expired"]) == (1, 1)
    assert (workspace["members"]["count"], workspace["batch_exports"]["count"]) == (5, 3)
    assert [row["operation"] for row in workspace["effects"]["results"]][:2] == ["update_domain", "create_domain"]


def test_a_database_file_survives_a_restart(tmp_path: Path) -> None:
    database = str(tmp_path / "workspace.sqlite")
    headers = {"Authorization": f"Bearer {SEED.admin_key}"}
    with SandboxServer(database=database) as first:
        httpx.post(first.url + PROJECTS, headers=headers, json={"name": "Kept"}, trust_env=False)
        first.revoke_key(SEED.reader_key)
        then = first.advance_clock(-3600)
    with SandboxServer(database=database, profile="strict") as second:
        projects = httpx.get(second.url + PROJECTS, headers=headers, trust_env=False).json()["results"]
        assert [project["name"] for project in projects] == ["Default project", "Kept"]
        assert effects(second) == ["create_project"]
        reader = {"Authorization": f"Bearer {SEED.reader_key}"}
        assert httpx.get(second.url + PROJECTS, headers=reader, trust_env=False).status_code == 401
        assert then < second.advance_clock(0) < time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())


def test_a_database_of_another_version_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "workspace.sqlite")) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(ValueError, match="another version"):
        SandboxServer(database=str(tmp_path / "workspace.sqlite")).start()


def test_new_organizations_are_independent(
    api: httpx.Client, sandbox: SandboxServer, client_for: Callable[[str], httpx.Client]
) -> None:
    made = sandbox.add_organization("Example Shop")
    members = f"/api/organizations/{made['id']}/members/"
    sandbox.add_members(3, made["id"])
    own = client_for(made["key"])
    assert api.get(members).json()["count"] == own.get(members).json()["count"] == 4
    assert own.post(members.replace("members", f"batch_exports/{made['batch_exports'][0]}/pause")).status_code == 200
    assert client_for(SEED.onboarding_key).get(members).status_code == 403
    assert own.get(DASHBOARD).status_code == 403
