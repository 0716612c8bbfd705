"""What an author adds to the routes: answers of own endpoints, moved paths, dropped fields."""

from __future__ import annotations

import json
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.api.models import Page, Resource
from airflow_provider_workspace.api.operation import Limit, Offset, Operation, endpoint
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.send import WorkspaceSendOperator
from airflow_provider_workspace.sandbox.seed import SEED
from tests.sandbox.paths import DOMAINS, EXPORT, EXPORTS, MEMBERS, PROJECTS

if TYPE_CHECKING:
    import httpx

    from airflow_provider_workspace.sandbox.request import ApiRequest
    from airflow_provider_workspace.sandbox.server import SandboxServer

pytest_plugins = ["airflow_provider_workspace.sandbox.pytest_fixture"]

ROLES = "/api/projects/1/roles/"
ROWS = [{"id": number} for number in range(1, 6)]
OLD, NEW = f"{EXPORT}pause/", f"/api/projects/1/batch_exports/{SEED.batch_export_ids[0]}/pause/"
TEMPLATE = "/api/projects/{project_id}/batch_exports/{batch_export_id}/pause"


@endpoint("GET", "/projects/{project_id}/roles/", scope="project:read", repeatable=True)
class ListRoles(Operation[Page[Resource]]):
    project_id: int
    limit: Limit = None
    offset: Offset = None


def control(api: httpx.Client, method: str, path: str, /, **body: object) -> None:
    answer = api.request(method, f"/_sandbox/{path}", content=json.dumps(body))
    assert answer.status_code == 204, answer.text


def test_an_own_operation_reads_all_pages_in_spite_of_a_lost_answer(workspace_sandbox: SandboxServer) -> None:
    workspace_sandbox.respond("GET", ROLES, ROWS, name="list_roles", page_size=2)
    workspace_sandbox.inject("reset_after", "list_roles")
    task = WorkspaceSendOperator(task_id="roles", operation=ListRoles, arguments={"project_id": 1})
    assert [row["id"] for row in task.execute({})] == [1, 2, 3, 4, 5]
    names = [request["operation"] for request in workspace_sandbox.requests()]
    assert set(names) == {"list_roles"}
    assert len(names) == 4  # three pages, and one again
    assert workspace_sandbox.effects() == []


def test_a_list_is_paged_by_limit_and_offset(sandbox: SandboxServer, api: httpx.Client) -> None:
    sandbox.respond("GET", ROLES, ROWS)
    first = api.get(ROLES.rstrip("/"), params={"limit": 2}).json()
    assert (first["count"], first["previous"], first["results"]) == (5, None, ROWS[:2])
    second = api.get(api.get(ROLES, params={"limit": 2}).json()["next"]).json()
    assert second["results"] == ROWS[2:4]
    assert api.get(second["previous"]).json()["results"] == ROWS[:2]
    assert api.get(ROLES).json()["next"] is None


def test_a_list_is_paged_by_cursor(api: httpx.Client) -> None:
    control(api, "POST", "responses", method="GET", path=ROLES, body=ROWS, cursor=True, page_size=2)
    found: list[object] = []
    url = f"{ROLES}?kind=all"
    for _ in range(3):
        page = api.get(url).json()
        assert "count" not in page
        found += page["results"]
        url = page["next"]
        assert url is None or ("cursor=" in url and "kind=all" in url)
    assert url is None
    assert found == ROWS
    assert api.get(ROLES, params={"cursor": "unheard-of"}).status_code == 404


@pytest.mark.parametrize(
    ("options", "status", "text"),
    [
        ({"body": {"id": 1}, "headers": {"X-Own": "yes"}}, 200, '{"id":1}'),
        ({"body": None}, 204, ""),
        ({"body": ROWS[:1], "paged": False}, 200, '[{"id":1}]'),
        ({"body": {"detail": "Busy."}, "status": 409}, 409, '{"detail":"Busy."}'),
    ],
)
def test_another_body_is_returned_as_it_is(
    sandbox: SandboxServer, api: httpx.Client, options: dict[str, Any], status: int, text: str
) -> None:
    sandbox.respond("GET", ROLES, **options)
    answer = api.get(ROLES)
    assert (answer.status_code, answer.text) == (status, text)
    assert answer.headers.get("X-Own") == options.get("headers", {}).get("X-Own")


def test_a_write_is_answered_by_a_function_and_has_an_effect(sandbox: SandboxServer, api: httpx.Client) -> None:
    def create(request: ApiRequest) -> object:
        return {"project": request.path["project_id"], **request.body}

    sandbox.respond("POST", "/api/projects/{project_id}/roles/", create, status=201, name="create_role")
    answer = api.post(ROLES, json={"name": "Analyst"})
    assert (answer.status_code, answer.json()) == (201, {"project": "1", "name": "Analyst"})
    (effect,) = sandbox.effects("create_role")
    assert (effect["target"], effect["organization_id"]) == (ROLES, SEED.organization_id)
    assert sandbox.requests()[-1]["body"] == {"name": "Analyst"}
    assert api.get(ROLES).status_code == 405
    sandbox.respond("POST", "/api/projects/{project_id}/roles", {"detail": "Busy."}, status=409, name="create_role")
    assert api.post(ROLES, json={}).status_code == 409
    assert len(sandbox.effects()) == 1


def test_keys_are_checked(sandbox: SandboxServer, api: httpx.Client, client_for: Callable[[str], httpx.Client]) -> None:
    sandbox.respond("GET", ROLES, [], scope="project:read")
    asked = [client_for(key).get(ROLES).status_code for key in (SEED.reader_key, SEED.no_scopes_key, "unheard-of")]
    assert asked == [200, 403, 401]
    sandbox.respond("GET", ROLES, [])
    assert client_for(SEED.no_scopes_key).get(ROLES).status_code == 200
    control(api, "DELETE", "responses")
    assert api.get(ROLES).status_code == 404


def test_the_exact_path_wins_and_a_reset_forgets(sandbox: SandboxServer, api: httpx.Client) -> None:
    sandbox.respond("GET", ROLES, {"id": 1})
    sandbox.respond("GET", "/api/projects/{id}/roles/", {"id": 2})
    assert [api.get(path).json()["id"] for path in (ROLES, "/api/projects/7/roles/")] == [1, 2]
    sandbox.reset()
    assert api.get(ROLES).status_code == 404


def test_a_path_of_the_sandbox_is_refused_until_its_operation_has_moved(
    sandbox: SandboxServer, api: httpx.Client
) -> None:
    with pytest.raises(ValueError, match=r"is served by pause_batch_export .*: choose another path"):
        sandbox.respond("POST", OLD, {})
    sandbox.move("pause_batch_export", TEMPLATE)
    sandbox.respond("POST", OLD, {"own": True})
    assert api.post(OLD).json() == {"own": True}
    with pytest.raises(ValueError, match="is served by pause_batch_export"):
        sandbox.respond("POST", NEW, {})
    for restore in (sandbox.clear_moves, lambda: sandbox.move("pause_batch_export", TEMPLATE, "both")):
        with pytest.raises(ValueError, match="is served by respond"):
            restore()
    sandbox.clear_responses()
    sandbox.clear_moves()
    assert (api.post(OLD).status_code, api.post(NEW).status_code) == (200, 404)


@pytest.mark.parametrize("how", ["gone", "redirect", "both", "deprecated"])
def test_an_operation_is_served_under_another_path(api: httpx.Client, sandbox: SandboxServer, how: str) -> None:
    control(api, "POST", "moves", operation="pause_batch_export", path=TEMPLATE, how=how, sunset="2027-06-30")
    old = api.post(OLD, params={"a": "1"} if how == "redirect" else None)
    assert old.status_code == {"gone": 404, "redirect": 308}.get(how, 200)
    assert bool(sandbox.effects()) is (how in ("both", "deprecated"))
    assert api.post(NEW).status_code == 200
    (effect,) = sandbox.effects()
    assert (effect["operation"], effect["target"]) == ("pause_batch_export", SEED.batch_export_ids[0])
    assert sandbox.requests()[-1]["operation"] == "pause_batch_export"
    plain = NEW.rstrip("/")
    assert old.headers.get("Location") == (f"{plain}?a=1" if how == "redirect" else None)
    if how == "deprecated":
        assert old.headers["Deprecation"] == "true"
        assert parsedate_to_datetime(old.headers["Sunset"]).date().isoformat() == "2027-06-30"
        assert old.headers["Link"] == f'<{plain}>; rel="successor-version"'
    else:
        assert "Deprecation" not in old.headers


def test_a_moved_path_checks_the_project(
    sandbox: SandboxServer, api: httpx.Client, client_for: Callable[[str], httpx.Client]
) -> None:
    sandbox.move("pause_batch_export", TEMPLATE)
    assert api.post(NEW.replace("projects/1", "projects/99")).status_code == 404
    assert client_for(SEED.research_key).post(NEW).status_code in (403, 404)
    assert client_for(SEED.reader_key).post(NEW).status_code == 403
    assert sandbox.effects() == []


def test_of_a_path_with_more_methods_only_the_moved_one_is_gone(sandbox: SandboxServer, api: httpx.Client) -> None:
    sandbox.move("create_project", "/api/v2/{organization_id}/projects/")
    assert api.post(PROJECTS, json={"name": "Northwind"}).status_code == 405
    assert api.get(PROJECTS).status_code == 200


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("pause", TEMPLATE), "Unknown operation 'pause'"),
        (("pause_batch_export", TEMPLATE, "away"), "is one of gone, redirect, both, deprecated"),
        (("pause_batch_export", "/api/projects/{project_id}/pause/"), "needs the placeholders"),
        (("pause_batch_export", "/api/{id}/pause/"), "needs the placeholders"),
        (("pause_batch_export", "https://example.com/api/"), "starts with /api/"),
        (("pause_batch_export", EXPORTS.replace(SEED.organization_id, "{organization_id}") + "{id}/unpause/"),
         "is served by unpause_batch_export"),
    ],
)  # fmt: skip
def test_a_wrong_move_is_refused(sandbox: SandboxServer, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sandbox.move(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "LOOK"}, "Methods are GET"),
        ({"path": "/roles/"}, "starts with /api/"),
        ({"path": "/api/{id/"}, "neither a text nor a placeholder"),
        ({"path": "/api/{id}/roles/{id}/"}, "occurs twice"),
        ({"body": {1, 2}}, "The body is no JSON"),
        ({"body": {}, "cursor": True}, "Only a list is paged by cursor"),
        ({"status": 700}, "A status is from 200 to 599"),
        ({"name": "create_invite"}, "is an operation of the sandbox"),
        ({"headers": {"X-Own": "a\nb"}}, "not printable ASCII"),
        ({"page_size": 0}, "at least 1 row"),
    ],
)
def test_a_wrong_answer_is_refused(sandbox: SandboxServer, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sandbox.respond(**{"method": "GET", "path": ROLES, "body": []} | options)


def test_dropped_fields_are_neither_stored_nor_shown(sandbox: SandboxServer, api: httpx.Client) -> None:
    saml = {"saml_entity_id": "entity", "saml_acs_url": "https://example.com/acs"}
    control(api, "POST", "dropped_fields", resource="domain", names=list(saml))
    domain = f"{DOMAINS}{SEED.domain_id}/"
    created = api.post(DOMAINS, json={"domain": "team.example.com", **saml})
    updated = api.patch(domain, json={**saml, "saml_x509_cert": "certificate"})
    assert (created.status_code, updated.status_code) == (201, 200)
    shown = [created.json(), updated.json(), api.get(domain).json(), *api.get(DOMAINS).json()["results"]]
    assert len(shown) == 5
    assert not [record for record in shown if record.keys() & saml.keys()]
    assert updated.json()["saml_x509_cert"] == "certificate"
    sandbox.drop_fields("domain", [])
    assert api.get(domain).json()["saml_entity_id"] is None
    assert api.get(MEMBERS).status_code == 200
    for resource, names in (("team", []), ("domain", ["saml"])):
        with pytest.raises(ValueError, match=r"Resources are|has no field saml"):
            sandbox.drop_fields(resource, names)


def test_an_operation_that_is_served_twice_is_found_under_both_paths(
    workspace_sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = "/api/v2/{organization_id}/projects/"
    workspace_sandbox.move("list_projects", moved, "both")
    monkeypatch.setenv("AIRFLOW_CONN_MOVED", workspace_sandbox.connection(paths={"ListProjects": moved}))
    for conn_id in ("workspace_default", "moved"):
        with WorkspaceHook(conn_id) as hook:
            assert len(list(hook.list_projects())) == 1
    paths = [request["path"] for request in workspace_sandbox.requests()]
    assert paths == [PROJECTS, moved.format(organization_id=SEED.organization_id)]
