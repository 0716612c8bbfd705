"""Notes in Variables: what earlier commits wrote, and what others change meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.access.grants.notes import GRANT_VARIABLES, Grant, GrantRegistry
from airflow_provider_workspace.errors import WorkspaceConfigError, WorkspaceError
from airflow_provider_workspace.notes.lease_store import LeaseVariables
from airflow_provider_workspace.notes.leases import LeaseRegistry
from airflow_provider_workspace.notes.note_hooks import NoteHooks
from tests.grant_notes import variable
from tests.variables import Variables, install

if TYPE_CHECKING:
    from airflow_provider_workspace.notes.registry import NoteRegistry

# As it stood in a Variable before notes had one model: the order of the fields was another.
LEASE_KEY = "workspace_lease.eb1762afa12a97b8f746.0190c0de-0000-4000-8000-0000000000e1.b24927ee96ae"
LEASE = (
    '{"dag_id": "maintenance", "run_id": "manual__1", "close_task_id": "window.close", "map_index": -1, '
    '"group_id": "", "owner": "", "service": "https://workspace.example.com", '
    '"workspace_conn_id": "workspace_default", "organization_id": "organization", '
    '"batch_export_id": "0190c0de-0000-4000-8000-0000000000e1", "state": "paused", '
    '"since": "2026-09-01T08:00:00.000Z", "until": "2026-09-01T12:00:00.000Z", "leave_paused": false, '
    '"paused_at": "2026-09-01T08:00:01.000Z", "paused_before": false, "exports": 0, "work_task_ids": []}'
)
GRANT_KEY = "workspace_grant.0d49567aa324913d751a.235bb331fe702f97e8cb"
GRANT = (
    '{"dag_id":"grant_access","run_id":"manual__1","task_id":"grant","map_index":-1,'
    '"service":"https://workspace.example.com","workspace_conn_id":"workspace_default",'
    '"organization_id":"organization","user_email":"ada@example.com","level":8,"then":1,'
    '"since":"2026-09-01T08:00:00.000Z","until":"2026-09-01T12:00:00.000Z","reason":"rollout",'
    '"requested_by":"ada","approved_by":"ruth"}'
)


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> Variables:
    return install(monkeypatch)


@pytest.mark.parametrize(
    ("registry", "key", "text", "task"),
    [
        (GrantRegistry(GRANT_VARIABLES), GRANT_KEY, GRANT, "grant"),
        (LeaseRegistry(LeaseVariables()), LEASE_KEY, LEASE, "window.close"),
    ],
)
def test_what_an_earlier_commit_wrote_is_found(
    variables: Variables, registry: NoteRegistry[Any, Any], key: str, text: str, task: str
) -> None:
    variables.values[key] = text
    (note,) = registry.find("workspace_")
    fields = note.to_dict()
    assert (note.key, note.since, note.until, registry.unreadable) == (key, 1788249600.0, 1788264000.0, {})
    assert task in (fields.get("task_id"), fields.get("close_task_id"))


@pytest.fixture
def registry(variables: Variables) -> GrantRegistry:
    key, text = variable(until="2026-09-01T12:00:00Z")
    variables.values[key] = text
    return GrantRegistry(GRANT_VARIABLES)


@pytest.mark.parametrize("is_precise", [False, True])
def test_a_note_ends_and_changes_while_it_is_what_was_read(
    variables: Variables, registry: GrantRegistry, *, is_precise: bool
) -> None:
    (grant,) = registry.all()
    if is_precise:  # as in the task that wrote it: a Variable has milliseconds
        grant = grant.model_copy(update={"since": grant.since + 0.00001})
    changed = registry.change(grant, reason="holiday")
    assert [note.reason for note in registry.all()] == ["holiday"]
    assert (registry.end(grant), len(variables.values)) == (False, 1)
    assert (registry.end(changed), variables.values) == (True, {})
    assert registry.end(changed) is True


@pytest.mark.parametrize("text", [None, "{", "another"])
def test_a_note_that_others_changed_stays(variables: Variables, registry: GrantRegistry, text: str | None) -> None:
    (grant,) = registry.all()
    if text is None:
        variables.values.clear()
    else:
        variables.values[grant.key] = (
            variables.values[grant.key].replace("rollout", text) if text == "another" else text
        )
    written = dict(variables.values)
    with pytest.raises(WorkspaceError, match=r"changed or deleted meanwhile\. Try again\. Nothing was written"):
        registry.change(grant, reason="holiday")
    assert registry.end(grant) is (text is None)
    assert variables.values == written


def test_a_hook_leads_where_its_note_led(monkeypatch: pytest.MonkeyPatch) -> None:
    def grant_of(**fields: Any) -> Grant:
        _, text = variable(until="2026-09-01T12:00:00Z", **fields)
        return Grant.model_validate_json(text)

    monkeypatch.setenv("AIRFLOW_CONN_HERE", "workspace://:key@workspace.example.com")
    otherwise = "or delete the Variable"
    with NoteHooks() as hooks:
        here = hooks.hook_of(grant_of(workspace_conn_id="here"), otherwise)
        assert hooks.hook_of(grant_of(workspace_conn_id="here", user_email="bo@example.com"), otherwise) is here
        with pytest.raises(
            WorkspaceConfigError, match=r"^Connection 'here' leads to .*\. Set its host back, or delete the V"
        ):
            hooks.hook_of(grant_of(workspace_conn_id="here", service="https://elsewhere.example.com"), otherwise)
        with pytest.raises(
            WorkspaceConfigError,
            match=r"^Connection 'gone' does not exist any more\. Add it again, or delete the Variable",
        ):
            hooks.hook_of(grant_of(workspace_conn_id="gone"), otherwise)
