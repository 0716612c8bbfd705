"""Random organization files under faults: a part that succeeds is applied, and nobody else is removed."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.operators.organization import (
    WorkspaceApplyOrganizationOperator,
    WorkspacePlanOrganizationOperator,
)
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.task_groups import STEPS
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.task_instance import TaskStore
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
    """Return a list of unique entries."""
    return st.lists(entry, max_size=most, unique_by=lambda one: one[key])


def entry(fields: dict[str, Any], **optional: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(fields, optional=optional)


def with_collaborators(file: Any) -> Any:
    """Name every collaborator in a complete list of members, which would remove them otherwise."""
    people, named = file["members"]["people"], dict[str, Any]()
    for dashboard in (each for project in file["projects"] for each in project.get("dashboards", ())):
        named |= {one["email"]: {"email": one["email"]} for one in dashboard.get("collaborators", ())}
    if "members" in file["complete"]:
        people[:] = ({**named, **{person["email"]: person for person in people}}).values()
    return file


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
).map(with_collaborators)


def plan(file: Any) -> Any:
    return WorkspacePlanOrganizationOperator(task_id="plan", file=file).execute({})


def publish(sandbox: SandboxServer, key: str, value: Any) -> None:
    for domain in value if key == "unverified" else ():
        sandbox.publish_dns(f"_workspace-challenge.{domain['domain']}", domain["verification_challenge"])


FAULTS: list[tuple[str, dict[str, Any]]] = [
    ("reset_before", {}),
    ("reset_after", {}),
    ("status_before", {"status": 503}),
    ("status_after", {"status": 502, "body": "html"}),
    ("short_pages", {"missing": "last"}),
    ("short_pages", {"missing": "newest"}),
    ("moving_rows", {}),
    ("said_otherwise", {"how": "not_done"}),
    ("said_otherwise", {"how": "other_answer"}),
    ("empty_body", {}),
]
# What an apply would still do.
PENDING = ("create", "change", "remove")
# At most one of each of these may be created.
UNIQUE = ("create_project", "create_domain", "create_invite", "add_dashboard_collaborator")


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(file=organizations, faults=st.lists(st.sampled_from(FAULTS), min_size=1, max_size=4), seed=st.integers(0, 1000))
def test_a_successful_part_is_applied_and_removes_nobody_else(
    sandbox: SandboxServer, connect: Connect, monkeypatch: pytest.MonkeyPatch, file: Any, faults: Any, seed: int
) -> None:
    """A third of the requests hit a fault, and parts are retried."""
    connect(consistency_time=1, max_attempts=2)
    sandbox.reset()
    install(monkeypatch)
    stays = {person["email"] for person in file["members"]["people"]} | {one["domain"] for one in file["domains"]}
    for part in STEPS:
        store, done = TaskStore(), False
        for number in range(1, 10):
            for kind, options in faults:
                sandbox.inject(kind, times=None, probability=0.3, seed=seed + number, **options)
            ti: Any = SimpleNamespace(try_number=number, xcom_push=lambda key, value: publish(sandbox, key, value))
            task = WorkspaceApplyOrganizationOperator(task_id=part, part=part, file=file, poke_interval=5)  # type: ignore[arg-type]
            try:
                task.execute({"ti": ti, "task_state_store": store})  # type: ignore[typeddict-unknown-key]
                done = True
            except (WorkspaceError, AirflowFailException):
                continue
            finally:
                sandbox.clear_faults()
            break
        if not done:
            break  # the later parts do not run
        left = [change for change in plan(file)["changes"] if change["part"] == part and change["action"] in PENDING]
        assert left == [], part
    made: Counter[tuple[str, ...]] = Counter()
    for effect in sandbox.effects():
        detail, operation = effect["detail"], effect["operation"]
        if operation.startswith(("delete_", "remove_")) and "collaborator" not in operation:
            assert detail.get("email", effect["target"]) not in stays
        elif operation in UNIQUE:
            made[operation, str(detail.get("name", effect["target"])), str(detail.get("dashboard_id"))] += 1
    assert [one for one, count in made.items() if count > 1] == []
