"""Random organizations: an import needs no change, an applied file none either, and again nothing is sent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.organization import (
    WorkspaceApplyOrganizationOperator,
    WorkspacePlanOrganizationOperator,
)
from airflow_provider_workspace.procedures.organization_import import describe_organization
from airflow_provider_workspace.procedures.organization_plan import PARTS
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.state.lease_store import VariableStore
from airflow_provider_workspace.state.organization_memory import PREFIX, remembered_dashboards
from tests.variables import install

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner"),
    pytest.mark.usefixtures("no_waits"),
]

MEMBERS = ["adam.admin", "mina.member", "noah.newton", "grace.analyst"]
PEOPLE = [f"{name}@example.com" for name in (*MEMBERS, "liv.invited", "ada", "lin")]


def several(entry: st.SearchStrategy[Any], *, key: str, most: int = 3) -> st.SearchStrategy[list[Any]]:
    """Up to some entries, no two of the same."""
    return st.lists(entry, max_size=most, unique_by=lambda one: one[key])


def entry(fields: dict[str, Any], **optional: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(fields, optional=optional)


emails = st.sampled_from(PEOPLE)
dashboards = entry(
    {"name": st.sampled_from(["Sign-ups", "Activation", "Größe 2"]), "restriction_level": st.just(37)},
    description=st.sampled_from(["", "First week", "0042"]),
    pinned=st.booleans(),
    tags=st.lists(st.sampled_from(["a", "b"]), unique=True),
    collaborators=several(entry({"email": emails, "level": st.just(37)}), key="email"),
)
organizations = entry(
    {
        "projects": several(
            entry(
                {"name": st.sampled_from(["Northwind", "Southwind", "Default project"])},
                anonymize_ips=st.booleans(),
                app_urls=st.just(["https://app.example.com"]),
                dashboards=several(dashboards, key="name"),
            ),
            key="name",
        ),
        "domains": st.lists(
            entry(
                {"domain": st.sampled_from(["a.example.net", "b.example.net", "example.com"])},
                jit_provisioning_enabled=st.booleans(),
            ),
            min_size=1,
            max_size=3,
            unique_by=lambda one: one["domain"],
        ),
        "members": entry(
            {
                "people": st.lists(
                    entry({"email": emails}, level=st.sampled_from(["member", "admin"])),
                    min_size=1,
                    unique_by=lambda one: one["email"],
                )
            }
        ),
        "complete": st.lists(st.sampled_from(["members", "domains", "collaborators"]), unique=True),
        "max_removals": st.none(),
    },
    exports=several(
        entry({"batch_export_id": st.sampled_from(SEED.batch_export_ids), "paused": st.booleans()}),
        key="batch_export_id",
    ),
)


def plan(file: Any) -> Any:
    return WorkspacePlanOrganizationOperator(task_id="plan", file=file).execute({})


def apply(sandbox: SandboxServer, file: Any) -> None:
    def publish(key: str, value: Any) -> None:
        for domain in value if key == "unverified" else ():
            sandbox.publish_dns(f"_workspace-challenge.{domain['domain']}", domain["verification_challenge"])

    ti: Any = SimpleNamespace(try_number=1, xcom_push=publish)
    for part in PARTS:
        task = WorkspaceApplyOrganizationOperator(task_id=part, part=part, file=file, poke_interval=5)  # type: ignore[arg-type]
        task.execute({"ti": ti})


def imported() -> Any:
    hook = WorkspaceHook()
    remembered = remembered_dashboards(SEED.organization_id, hook.client.settings, VariableStore(PREFIX))
    return yaml.safe_load(hook.client.run(describe_organization(SEED.organization_id, 3, remembered)))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(first=organizations, second=organizations)
def test_import_plan_apply_and_apply_again(
    sandbox: SandboxServer, connect: Connect, monkeypatch: pytest.MonkeyPatch, first: Any, second: Any
) -> None:
    connect(consistency_time=1)
    sandbox.reset()
    variables = install(monkeypatch)
    variables.values.clear()
    apply(sandbox, first)
    whole = {**imported(), "complete": ["members", "domains", "collaborators"], "max_removals": 0}
    assert plan(whole)["changes"] == []
    apply(sandbox, second)
    assert plan(second)["pending"] == 0, plan(second)["table"]
    before = sandbox.effects()
    apply(sandbox, second)
    assert sandbox.effects() == before
