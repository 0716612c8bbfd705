"""Organization files against the sandbox: plan, approval and the parts of the apply."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from airflow.sdk import DAG
from airflow.sdk.execution_time import task_runner

from airflow_provider_workspace.api.operations.batch_exports import UnpauseBatchExport
from airflow_provider_workspace.client.client import WorkspaceClient
from airflow_provider_workspace.errors import WorkspaceError, WorkspaceInputError, WorkspaceNotAppliedError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.organization import (
    WorkspaceApplyOrganizationOperator,
    WorkspacePlanOrganizationOperator,
)
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.task_groups import STEPS
from airflow_provider_workspace.version_compat import AirflowFailException, TaskDeferred
from tests.audit import effects, say
from tests.interruptions import Interruptions
from tests.task_instance import Killed, Question, Task, TaskStore
from tests.windows import Airflow, Window

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect
    from tests.variables import Variables

pytestmark = pytest.mark.usefixtures("no_waits")

# The seed has Olive Owner (15), Adam Admin (8), Mina, Noah and Grace (1), and Liv with an open invite.
FILE = """\
projects:
  - name: Northwind
    timezone: Europe/Berlin
    dashboards:
      - name: Sign-ups
        restriction_level: 37
        collaborators: [{email: grace.analyst@example.com, level: 37}, ada@example.com]
      - {name: Activation, description: First week}
domains:
  - domain: northwind.example.com
    jit_provisioning_enabled: true
  - {domain: other.example.com, verified: false}
members:
  roster: team.csv
  protected: [adam.admin@example.com]
exports:
  - {batch_export_id: 0190c0de-0000-4000-8000-0000000000e1, paused: true}
  - {batch_export_id: 0190c0de-0000-4000-8000-0000000000e2, paused: false}
"""
EFFECTS = {
    "create_project": 1,
    "create_domain": 2,
    "verify_domain": 1,
    "update_domain": 1,
    "create_invite": 1,
    "update_member": 1,
    "create_dashboard": 2,
    "add_dashboard_collaborator": 1,
    "pause_batch_export": 1,
}


class Run:
    """A Dag run of an organization file: its tasks with their states and XComs."""

    def __init__(self, sandbox: SandboxServer, file: Any, **arguments: Any) -> None:
        self.sandbox = sandbox
        self.file = file
        self.arguments = arguments
        self.stores: dict[str, TaskStore] = {}
        self.tries = 0
        self.pushed: dict[str, Any] = {}

    def plan(self, **arguments: Any) -> Any:
        operator = WorkspacePlanOrganizationOperator(task_id="plan", file=self.file, **self.arguments, **arguments)
        return operator.execute({})

    def plan_of(self, file: Any) -> Any:
        return Run(self.sandbox, file).plan()

    def apply(self, *parts: Any, **arguments: Any) -> dict[str, Any]:
        self.tries += 1
        results = {}
        for part in parts or STEPS:
            task = WorkspaceApplyOrganizationOperator(
                **{"task_id": part or "all", "part": part, "file": self.file, "poke_interval": 5}
                | self.arguments
                | arguments
            )
            ti = SimpleNamespace(try_number=self.tries, xcom_push=self.publish, task_id=task.task_id)
            results[part] = task.execute({"ti": ti, "task_state_store": self.stores.setdefault(part, TaskStore())})
        return results

    def publish(self, key: str, value: Any) -> None:
        """Publish the DNS records, as a task of the author would."""
        self.pushed[key] = value
        if key == "unverified":
            for domain in value:
                self.sandbox.publish_dns(f"_workspace-challenge.{domain['domain']}", domain["verification_challenge"])


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> Variables:
    return Airflow(monkeypatch).variables


@pytest.fixture
def run(sandbox: SandboxServer, connect: Connect, tmp_path: Path, variables: Variables, no_waits: None) -> Run:  # noqa: ARG001
    connect(consistency_time=30)
    (tmp_path / "northwind.yaml").write_text(FILE)
    (tmp_path / "team.csv").write_text("email,level\nmina.member@example.com,8\nada@example.com,1\n")
    return Run(sandbox, str(tmp_path / "northwind.yaml"))


def names(plan: dict[str, Any], *actions: str) -> list[str]:
    return [change["name"] for change in plan["changes"] if change["action"] in actions]


@pytest.mark.parametrize("sandbox", ["strict", "live"], indirect=True)
@pytest.mark.parametrize("parts", [STEPS, [None]], ids=["a task for each part", "one task"])
def test_applying_a_plan_is_idempotent(sandbox: SandboxServer, run: Run, parts: Any) -> None:
    run.apply(*parts, dry_run=True)
    plan = run.plan()
    assert not [request for request in sandbox.requests() if request["method"] != "GET"]
    assert plan["counts"] == {
        "create": 7,
        "change": 3,
        "remove": 0,
        "set": 2,
        "differs": 0,
        "wait": 1,
        "unknown": 0,
        "skip": 0,
    }
    assert names(plan, "wait") == ["collaborator ada@example.com of Northwind / Sign-ups"]
    applied = run.apply(*parts, approved=plan)
    assert list(applied.get(None, applied)) == list(STEPS)
    assert Counter(effects(sandbox)) == EFFECTS
    assert run.pushed["progress"]["counts"] == {"invited": 1}
    again = run.plan(fail_on_difference=True)
    assert (again["pending"], again["differences"]) == (0, 0)
    assert names(again, "wait") == ["collaborator ada@example.com of Northwind / Sign-ups"]
    run.apply(*parts)
    assert Counter(effects(sandbox)) == EFFECTS


def test_one_task_for_all_parts_continues_after_the_wait(sandbox: SandboxServer, run: Run) -> None:
    """Until the challenges are published; what a later part refuses is told from what was applied before it."""
    publish, run.publish = run.publish, lambda **_: None  # type: ignore[method-assign]
    with pytest.raises(TaskDeferred) as deferred:
        run.apply(None, poke_interval=300)
    assert effects(sandbox).count("create_invite") == 0
    with WorkspaceHook() as hook:
        (domain,) = [row for row in hook.list_domains() if row.domain == "northwind.example.com"]
    publish("unverified", [domain.to_dict()])
    state = deferred.value.trigger.serialize()[1]["state"]
    task = WorkspaceApplyOrganizationOperator(task_id="all", file=run.file)
    context: Any = {"ti": SimpleNamespace(try_number=1, xcom_push=run.publish, task_id="all")}
    applied = task.execute_complete(context, {"state": json.loads(json.dumps(state))})
    assert applied["projects"]["counts"]["create"] == 1  # before the wait
    assert Counter(effects(sandbox)) == EFFECTS


@pytest.mark.parametrize(("part", "before"), [("projects", "nothing"), ("members", "projects, domains, verification")])
def test_one_task_for_all_parts_says_what_was_applied(
    sandbox: SandboxServer, run: Run, monkeypatch: pytest.MonkeyPatch, part: str, before: str
) -> None:
    def edited(task: WorkspaceApplyOrganizationOperator, hook: WorkspaceHook, parts: Any = None, **options: Any) -> Any:
        if parts == (part,):
            task.organization = "Elsewhere"
        return planned(task, hook, parts, **options)

    planned = WorkspaceApplyOrganizationOperator.plan
    monkeypatch.setattr(WorkspaceApplyOrganizationOperator, "plan", edited)
    with pytest.raises(AirflowFailException) as failed:
        run.apply(None)
    assert str(failed.value).startswith(f"[input-invalid] Not applied: {part}. Applied before it: {before}. ")
    assert "Nothing was sent" not in str(failed.value)
    assert ("create_project" in effects(sandbox)) == (before != "nothing")


def test_nothing_is_removed_unless_a_list_is_complete(sandbox: SandboxServer, run: Run) -> None:
    project = run.apply("projects", "dashboards")  # these change no members
    assert project["projects"]["pending"] == 1
    run.apply("domains", "collaborators")
    with WorkspaceHook() as hook:
        hook.add_dashboard_collaborator(project_id=3, dashboard_id=2, user_uuid=SEED.member_uuid, level=37)
    run.file = {
        "projects": [{"name": "Northwind", "dashboards": [{"name": "Sign-ups", "collaborators": []}]}],
        "domains": [{"domain": "example.com"}],
        "members": {
            "people": ["ada@example.com", "grace.analyst@example.com"],
            "protected": ["adam.admin@example.com"],
        },
    }
    before = len(sandbox.effects())
    assert run.plan()["counts"]["remove"] == 0
    run.file |= {"complete": ["members", "domains", "collaborators"], "max_removals": None}
    plan = run.plan()
    assert names(plan, "remove") == [
        "domain northwind.example.com",
        "domain other.example.com",
        "invite liv.invited@example.com",
        "member mina.member@example.com",
        "member noah.newton@example.com",
        "collaborator grace.analyst@example.com of Northwind / Sign-ups",
        "collaborator mina.member@example.com of Northwind / Sign-ups",
    ]
    # A share is of the people, three of five.
    del run.file["max_removals"]
    for limit, allowed in (({"max_removals": 6}, 6), ({"max_removals": "7 or 59%"}, 2), ({}, 1)):
        taken = "domains removed: 2, invites withdrawn: 1, members removed: 2, collaborators removed: 2; .* 5 members"
        says = rf"{taken}\); max_removals=.* allows {allowed}\. .* set max_removals=7"
        with pytest.raises(AirflowFailException, match=says):
            run.plan_of({**run.file, **limit})
    run.file["max_removals"] = "7 or 60%"
    with pytest.raises(
        AirflowFailException, match=r"(?s)file: 8 differences.*person olive\.owner@.* kept: .*, but an owner"
    ):
        run.plan(fail_on_difference=True)
    assert len(sandbox.effects()) == before
    run.apply()
    run.file["members"]["protected"] += ["olive.owner@example.com"]
    assert run.plan(fail_on_difference=True)["pending"] == 0


def test_protected_people_and_owners_stay_collaborators(sandbox: SandboxServer, run: Run) -> None:
    run.apply("projects", "dashboards")
    with WorkspaceHook() as hook:
        for user_uuid in (SEED.owner_uuid, SEED.admin_uuid, SEED.member_uuid):
            hook.add_dashboard_collaborator(project_id=3, dashboard_id=2, user_uuid=user_uuid, level=37)
    before = effects(sandbox)
    ended = {"email": "adam.admin@example.com", "until": "2020-12-31"}
    dashboard: dict[str, Any] = {"name": "Sign-ups", "collaborators": [ended]}
    run.file = {
        "projects": [{"name": "Northwind", "dashboards": [dashboard]}],
        "members": {"people": [], "protected": ["*@EXAMPLE.com"], "owner_level": None},
        "complete": ["collaborators"],
    }
    plan = run.plan()
    assert (plan["counts"]["remove"], plan["counts"]["differs"]) == (0, 1)
    assert "by hand: level: 37, access ended 2020-12-31 (UTC), but protected; remove them by hand" in plan["table"]
    assert "kept: level: 37, not in the file, but protected" in plan["table"]
    with pytest.raises(AirflowFailException, match=r"collaborator adam\.admin@"):
        run.apply("collaborators")
    run.file["members"] = {"people": []}
    dashboard["collaborators"] = []
    assert names(run.plan(), "skip") == ["collaborator olive.owner@example.com of Northwind / Sign-ups"]
    assert effects(sandbox) == before
    sandbox.drop_fields("member", ["level"])
    with pytest.raises(AirflowFailException, match=r"mina\.member@.*not show their level"):
        run.apply("collaborators")
    assert effects(sandbox) == before


def test_different_fields_are_changed_or_reported_as_manual(sandbox: SandboxServer, run: Run) -> None:
    run.apply()
    before = len(sandbox.effects())
    run.file = yaml.safe_load(FILE)
    run.file["members"] = {"people": []}
    project = run.file["projects"][0]
    project["timezone"] = "UTC"
    project["dashboards"][0]["collaborators"][0]["level"] = 21
    plan = run.plan()
    assert (plan["pending"], plan["differences"]) == (0, 2)
    assert " project Northwind   " in plan["table"]
    assert "timezone: Europe/Berlin -> UTC, change it by hand" in plan["table"]
    assert "level: 37 -> 21, remove the collaborator by hand" in plan["table"]
    project["dashboards"][1]["description"] = "First days"
    run.file["domains"][0]["jit_provisioning_enabled"] = False
    plan = run.plan()
    assert plan["counts"]["change"] == 2
    assert "description: First week -> First days" in plan["table"]
    run.apply(approved=plan)
    assert sorted(effects(sandbox)[before:]) == ["update_dashboard", "update_domain"]


def test_fields_that_the_service_does_not_show_are_named(
    sandbox: SandboxServer, run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The task is green with a warning; its result and the report of a plan say which fields nobody knows."""
    hidden = ["saml_entity_id"]
    sandbox.drop_fields("domain", hidden)
    (seeded,) = WorkspaceHook().list_domains()
    fields = {"saml_entity_id": "urn:example", "verified": False}
    new = {"domain": "new.example.com", **fields}
    changed = {"domain": seeded.domain, "jit_provisioning_enabled": not seeded.jit_provisioning_enabled, **fields}
    run.file = {"domains": [new, changed]}
    applied = run.apply("domains", "verification")["verification"]["changes"]
    assert [(row["name"], row["action"], row["status"], row["not_shown"]) for row in applied] == [
        ("domain new.example.com", "unknown", "done", hidden),
        (f"domain {seeded.domain}", "change", "done", hidden),
    ]
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    for row, warning in zip(applied, warnings, strict=True):
        assert warning.startswith(f"{row['name']}: ")
        assert warning.endswith("does not show these fields: saml_entity_id")
    run.plan(report_path=str(tmp_path / "report.json"))
    report = json.loads((tmp_path / "report.json").read_text())
    assert [(row["action"], row["not_shown"]) for row in report["changes"]] == [("unknown", hidden)] * 2


@pytest.mark.parametrize(
    ("where", "held"),
    [
        ({}, True),
        ({"organization_id": SEED.organization_id.upper()}, True),
        ({"organization_id": SEED.other_organization_id}, False),
        ({"service": "https://other.example.com"}, False),
    ],
)
def test_an_export_in_a_maintenance_window_of_the_organization_is_not_changed(
    sandbox: SandboxServer, run: Run, connect: Connect, where: dict[str, str], *, held: bool
) -> None:
    service = where.get("service", sandbox.url)
    connect(host=service)
    Window(SEED.batch_export_ids[0], dag_id="nightly", organization_id=where.get("organization_id")).open()
    connect()
    plan = run.apply("exports")["exports"]
    assert ("left alone: the maintenance window nightly" in plan["table"]) == held
    assert (effects(sandbox) == []) == held


def test_a_window_that_opens_after_the_plan_keeps_its_export(
    sandbox: SandboxServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, _ = SEED.batch_export_ids
    send = WorkspaceClient.send

    def window_opens(client: WorkspaceClient, operation: Any, **arguments: Any) -> Any:
        answer = send(client, operation, **arguments)
        if isinstance(operation, UnpauseBatchExport):
            window = Window(second, dag_id="nightly")
            window.open()
            window.pause()
        return answer

    monkeypatch.setattr(WorkspaceClient, "send", window_opens)
    run.file = {"exports": [{"batch_export_id": export_id, "paused": False} for export_id in (first, second)]}
    plan = run.apply("exports")["exports"]
    assert effects(sandbox) == ["pause_batch_export"]  # the first one was not paused
    assert [row["action"] for row in plan["changes"]] == ["set", "wait"]
    assert "later: paused: false, left alone: the maintenance window nightly" in plan["table"]


PEOPLE = {"people": [{"email": "ada@example.com", "level": 1, "message": "Welcome"}]}
GRANTED = {"people": [{**PEOPLE["people"][0], "private_project_access": [{"id": 1, "level": "admin"}]}]}
COLLABORATORS = """\
projects:
  - name: Northwind
    dashboards:
      - name: Sign-ups
        collaborators:
          - mina.member@example.com
          - grace.analyst@example.com
          - olive.owner@example.com
          - Liv.Invited@example.com
          - {email: noah.newton@example.com, until: 2020-12-31}
complete: [members]
"""
CORRECT = (
    r"(?s)Correct (?!.*noah)northwind\.yaml:\n"
    r"  line 7: projects\.0\.dashboards\.0\.collaborators\.1: name grace\.analyst@example\.com under members.*\n"
    r"  line 9: projects\.0\.dashboards\.0\.collaborators\.3: name Liv\.Invited@example\.com under members"
)


@pytest.mark.parametrize(
    ("file", "part", "arguments", "error"),
    [
        ({"projects": [{"name": "Southwind"}]}, "projects", {"approved": {}},
         r"(?s)1 of 1 change is not in the approved plan.*Plan again.*\+ project Southwind"),
        ({"members": GRANTED}, "members", {"approved": {}}, r"(?s)Plan again.*private_project_access: \[\{"),
        ({}, "projects", {"approved": "None"}, "approved has no value"),
        ({}, "projects", {"approved": {"planned_for": "another one"}},
         "The approved plan is for another one, and this"),
        (FILE, "dashboards", {}, "depends on parts that are not applied. Apply the parts before 'dashboards' first"),
        (FILE, "project", {}, "part is 'project'; expected 'projects' or"),
        (" ", "projects", {}, "file has no value"),
        (5, "projects", {}, "file must be the path of an organization file or a mapping"),
        (
            "projects:\n  # {{ x\n",
            "projects",
            {"render_file": True},
            "Invalid template in the organization file, line 2:",
        ),
        (f"{COLLABORATORS}members: {{roster: team.csv}}\n", "members", {}, CORRECT),
    ],
)  # fmt: skip
def test_an_invalid_file_or_approval_is_refused(
    sandbox: SandboxServer, run: Run, tmp_path: Path, file: Any, part: str, arguments: dict[str, Any], error: str
) -> None:
    if isinstance(arguments.get("approved"), dict):
        arguments = {"approved": {**run.plan_of({"members": PEOPLE}), **arguments["approved"]}}
    if isinstance(file, str) and "\n" in file:
        (tmp_path / "northwind.yaml").write_text(file)
    else:
        run.file = file
    with pytest.raises(AirflowFailException, match=error):
        run.apply(part, **arguments)
    assert effects(sandbox) == []


def test_what_only_a_person_can_correct_is_named(run: Run, variables: Variables) -> None:
    run.apply("projects", "dashboards")
    (key,) = [key for key in variables.values if "Sign-ups" in key]
    variables.values[key] = "{}"
    plan = run.plan()
    assert names(plan, "differs") == ["dashboard Northwind / Sign-ups"]
    assert f"the Airflow Variable '{key}'" in plan["table"]
    error = rf"^\[input-invalid\] WorkspaceInputError: The value of the Airflow Variable '{key}'"
    with pytest.raises(AirflowFailException, match=error):
        run.apply("dashboards")
    with WorkspaceHook() as hook:
        hook.create_project(name="Northwind")
    with pytest.raises(
        AirflowFailException, match=r"2 projects are named 'Northwind'. Rename all but one of them.* Ids: 3, 4"
    ):
        run.apply("projects")


def test_people_who_keep_their_level_are_shown(run: Run, tmp_path: Path) -> None:
    (tmp_path / "team.csv").write_text(
        "email,level\nliv.invited@example.com,8\nolive.owner@example.com,1\nadam.admin@example.com,1\n"
        "mina.member@example.com,1\nMina.Member@example.com,1\n"
    )
    plan = run.plan()
    assert [name for name in names(plan, "differs") if "person" in name] == [
        "person olive.owner@example.com",
        "person adam.admin@example.com",
        "person liv.invited@example.com",
    ]
    assert "level: 1 -> 8, holds an open invite" in plan["table"]
    assert "level: 15 -> 1, another level on the roster, but an owner" in plan["table"]
    assert re.search(r"    person Mina.Member@example.com \(Mina Member\) +duplicate: row \d", plan["table"])
    assert "row 6: same address as row 5" in plan["table"]
    remark, summary, *_ = plan["table"].split("\n")
    assert remark.startswith("Levels come from column 'level' (1, 8), which columns=… does not name: check that these")
    assert re.match(r".* 2 cannot be known, 3 to change by hand, 1 left for a later .*, 1 duplicate", summary)
    assert names(run.apply("members")["members"], "change", "create") == []


BOTH, MANY = ("6 Mia@example.com", "7 mia@example.com"), "9 mina.member@example.com"


def test_invalid_rows_of_a_roster_may_be_left_out_and_are_shown(
    sandbox: SandboxServer, run: Run, tmp_path: Path
) -> None:
    people = "ada@example,1\n,\nada@example.com,1\nlin@example.com,high\nMia@example.com,1\nmia@example.com,8\n"
    people += "mina.member@example.com,1,2020-12-31\nmina.member@example.com,boss\n"  # the second one may keep her
    (tmp_path / "team.csv").write_text(f"email,level,until\n{people}")
    with pytest.raises(
        AirflowFailException, match=r"5 rows of the roster.*: row 2 \(ada@example\): .*; row 5 \(lin@example.com\): "
    ):
        run.plan()
    run.file = {"members": {"roster": str(tmp_path / "team.csv"), "on_invalid": "skip"}}
    plan = run.plan()
    assert names(plan, "create") == ["invite ada@example.com"]
    assert names(plan, "differs") == [f"row {who}" for who in ("2 ada@example", "5 lin@example.com", *BOTH, MANY)]
    assert "row 2 ada@example" in plan["table"]
    assert "left out: 'example' is not a domain" in plan["table"]
    assert "left out: conflicts with row 7 (same address): level 1 here, 8 there" in plan["table"]
    with pytest.raises(
        AirflowFailException, match=r"access-left\] .*1 person should lose .*: row 9 mina.member@example.com: left out"
    ):
        run.apply("members")
    assert [effect["target"] for effect in sandbox.effects()] == ["ada@example.com"]
    with pytest.raises(AirflowFailException, match="5 differences"):
        run.plan(fail_on_difference=True)
    run.file["complete"] = ["members"]
    for step in (run.plan, lambda: run.apply("members")):
        with pytest.raises(
            AirflowFailException, match=r"line 3: members\.on_invalid: 'complete: \[members\]' would remove"
        ):
            step()


def test_verification_waits_in_the_triggerer(sandbox: SandboxServer, run: Run) -> None:
    run.publish = lambda **_: None  # type: ignore[method-assign]
    run.apply("domains")
    with pytest.raises(TaskDeferred):
        run.apply("verification", retries=0, poke_interval=300)
    with pytest.raises(AirflowFailException, match=r"not verified in time. Publish a TXT record with the value"):
        run.apply("verification", timeout=0)
    with WorkspaceHook() as hook:
        (domain,) = [row for row in hook.list_domains() if row.domain == "northwind.example.com"]
    sandbox.publish_dns("_workspace-challenge.northwind.example.com", str(domain.verification_challenge))
    assert run.apply("verification")["verification"]["pending"] == 2
    assert run.plan()["counts"]["change"] == 1  # of a member


def test_a_part_that_was_not_applied_fails(sandbox: SandboxServer, run: Run) -> None:
    """The service returns 204 and deletes nothing."""
    run.file = {"domains": [{"domain": "other.example.com", "verified": False}], "complete": ["domains"]}
    sandbox.inject("said_otherwise", "delete_domain", times=None)
    with pytest.raises(WorkspaceNotAppliedError, match=r"Not done: remove domain .* that each change was made"):
        run.apply("domains")
    sandbox.clear_faults()
    assert run.apply("domains")["domains"]["counts"]["remove"] > 0
    assert run.plan()["pending"] == 0


@pytest.mark.parametrize("ends", [{}, {"until": "2020-12-31"}])
def test_an_invite_that_is_accepted_before_its_removal_fails(
    sandbox: SandboxServer, run: Run, monkeypatch: pytest.MonkeyPatch, ends: dict[str, str]
) -> None:
    people = [str(one.user and one.user.email) for one in WorkspaceHook().list_members()]
    run.file = {"members": {"people": people}, "complete": ["members"]}
    if ends:
        run.file = {"members": {"people": [*people, {"email": "liv.invited@example.com", **ends}]}}
    Interruptions(monkeypatch).before("DELETE", lambda: sandbox.accept_invite(SEED.invite_id))
    with pytest.raises(WorkspaceNotAppliedError, match=r"Not done: remove invite liv.* .joined meanwhile: member liv"):
        run.apply("members")
    rows = [row for row in run.apply("members")["members"]["changes"] if row["action"] == "remove"]
    assert [row["status"] for row in rows] == ["refused", "done"], "the invite of the try before, and the member"
    assert effects(sandbox)[-1] == "delete_member"


@pytest.mark.parametrize("scheme", ["", "file://"])
@pytest.mark.parametrize("text", ["projects:\n- name: '{{ name }}'", "projects:\n- name: '{% raw %}{{ name }}'"])
def test_a_file_is_data_unless_the_dag_says_that_it_is_a_template(
    sandbox: SandboxServer, run: Run, tmp_path: Path, scheme: str, text: str
) -> None:
    (tmp_path / "northwind.yaml").write_text(text)
    name = yaml.safe_load(text)["projects"][0]["name"]
    run.file = f"{scheme}{tmp_path}/northwind.yaml"
    with pytest.raises(AirflowFailException, match=r"Line 2 of northwind\.yaml holds .*Set render_file=True"):
        run.apply("projects")
    assert effects(sandbox) == []
    run.apply("projects", render_file=False)
    assert names(run.plan(render_file=False), "create") == []
    with WorkspaceHook() as hook:
        assert [project.name for project in hook.list_projects()] == ["Default project", name]


def test_only_the_dag_file_makes_a_file_a_template() -> None:
    with pytest.raises(WorkspaceInputError, match="Set render_file to True or False in the Dag file: it is not templa"):
        WorkspacePlanOrganizationOperator(task_id="plan", file="a.yaml", render_file="{{ params.x }}")  # type: ignore[arg-type]
    assert "render_file" not in WorkspacePlanOrganizationOperator.template_fields


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize(("native", "name"), [(False, 'East "wind": x'), (True, "Eastwind")])
def test_one_file_serves_each_environment(tmp_path: Path, name: str, *, native: bool) -> None:
    """Also with ``render_template_as_native_obj``, which turns a JSON file into a dict."""
    (tmp_path / "all.yaml").write_text('{"projects": [{"name": {{ name | tojson }}, "timezone": null}]}')
    with DAG("onboard", schedule=None, render_template_as_native_obj=native):
        task = WorkspacePlanOrganizationOperator(task_id="plan", file="all.yaml", render_file=True)
    plan = task.execute({"dag": SimpleNamespace(folder=str(tmp_path)), "name": name})  # type: ignore[typeddict-item]
    assert names(plan, "create") == [f"project {name}"]


def test_long_plans_are_cut_only_in_the_table(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run.file = {"members": {"people": [f"person-{number}@example.com" for number in range(300)]}}
    plan = run.plan(report_path=str(tmp_path / "plan.json"))
    assert plan["pending"] == 300
    assert plan["table"].endswith("\n    … and 100 more members")
    assert capsys.readouterr().out.count("+ invite person-") == 300
    assert json.loads((tmp_path / "plan.json").read_text())["changes"] == plan["changes"]
    with pytest.raises(AirflowFailException, match="300 of 300 changes are not in the approved plan") as refused:
        run.apply("members", approved=run.plan_of({"members": {"people": []}}))
    assert "\n… and 280 more: see the plan" in str(refused.value)


@pytest.mark.slow
@pytest.mark.parametrize("fault", [None, "reset_after", "status_after", "short_pages"])
@pytest.mark.parametrize("parts", [STEPS, [None]], ids=["a task for each part", "one task"])
def test_an_accident_at_any_request_ends_in_the_same_state(
    sandbox: SandboxServer,
    run: Run,
    connect: Connect,
    variables: Variables,
    monkeypatch: pytest.MonkeyPatch,
    fault: str | None,
    parts: Any,
) -> None:
    """The worker is killed, or meets a fault, after the first request, then after the second one, and so on."""
    connect(consistency_time=1, max_attempts=1)
    interruptions = Interruptions(monkeypatch)
    for number in count():
        sandbox.reset()
        variables.values.clear()
        again = Run(sandbox, run.file)
        if fault is None:
            for _ in range(number):
                interruptions.after("", lambda: None)
            interruptions.after("")
        else:
            sandbox.inject(fault, after=number, **({"missing": "newest"} if fault == "short_pages" else {}))
        try:
            again.apply(*parts)
        except (Killed, WorkspaceError, AirflowFailException):
            sandbox.clear_faults()
        else:
            if not any(one["hits"] for one in sandbox.faults()):  # there are not so many requests
                break
        try:
            again.apply(*parts)
        except AirflowFailException as error:
            # A dashboard that may have been created cannot be looked up.
            assert "Look for it. If it exists" in str(error)  # noqa: PT017
            continue
        assert Counter(effects(sandbox)) == EFFECTS
        assert run.plan()["pending"] == 0
    assert number > 15


class Approval:
    """A plan that asks; ``approved`` is its result after a person approved it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, file: Any, **arguments: Any) -> None:
        self.task = Task(Question(refreshes=True))
        monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", self.task.question, raising=False)
        self.plan = WorkspacePlanOrganizationOperator(task_id="plan", file=file, require_approval=True, **arguments)
        self.option = self.task.ask(self.plan)
        self.question = self.task.question.now

    def answer(self, *left_out: str) -> Any:
        """Approve the plan without the changes that begin so, after their number."""
        choices = self.question.params["leave_out"]["schema"]["examples"]
        found = [choice for choice in choices if choice.partition(". ")[2].startswith(left_out)] if left_out else []
        assert len(found) == len(left_out)
        return self.task.answer(
            self.plan,
            self.option,
            chosen_options=[self.option],
            params_input={"leave_out": found},
            responded_at="2026-11-22",
            responded_by_user={"id": "ruth", "name": "ruth"},
        )


def test_what_needs_a_change_that_was_left_out_is_left_out_too(
    sandbox: SandboxServer, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also of an organization in which nothing of it exists yet."""
    file = tmp_path / "plan.json"
    approval = Approval(monkeypatch, run.file, report_path=str(file))
    approved = approval.answer("create project Northwind", "create domain northwind", "create invite ada")
    why = "left out by ruth on 2026-11-22"
    rows = [
        (row["part"], row["name"], row["why"].partition(": ")[0])
        for row in approved["changes"]
        if row["action"] == "differs"
    ]
    project = f"{why}, with project Northwind"
    domain = f"{why}, with domain northwind.example.com"
    assert rows == [
        ("projects", "project Northwind", why),
        ("domains", "domain northwind.example.com", why),
        ("verification", "domain northwind.example.com", domain),
        ("verification", "domain northwind.example.com", domain),
        ("members", "invite ada@example.com", why),
        ("dashboards", "dashboard Northwind / Sign-ups", project),
        ("dashboards", "dashboard Northwind / Activation", project),
        ("collaborators", "collaborator grace.analyst@example.com of Northwind / Sign-ups", project),
        ("collaborators", "collaborator ada@example.com of Northwind / Sign-ups", project),
    ]
    told = [row["why"] for row in json.loads(file.read_text())["changes"] if row["action"] == "differs"]
    assert len(told) == len(rows), "the report has it"
    before = len(sandbox.effects())
    applied = run.apply(approved=approved)
    assert Counter(effects(sandbox)[before:]) == {"create_domain": 1, "update_member": 1, "pause_batch_export": 1}
    assert sum(plan["counts"]["differs"] for plan in applied.values()) == len(rows)
    assert run.apply(None, approved=approved)[None].keys() == applied.keys()


def test_what_needs_a_project_is_left_out_with_it_although_it_exists_meanwhile(
    sandbox: SandboxServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    boards = [{"name": "Board", "restriction_level": 37, "collaborators": ["mina.member@example.com"]}]
    run.file = {"projects": [{"name": "A", "dashboards": boards}, {"name": "B"}]}
    approval = Approval(monkeypatch, run.file)
    with WorkspaceHook() as hook:
        hook.create_project(name="A")
    approved = approval.answer("create project A")
    differs = [row["name"] for row in approved["changes"] if row["action"] == "differs"]
    assert differs == ["dashboard A / Board", "collaborator mina.member@example.com of A / Board"]
    run.apply(approved=approved)
    assert effects(sandbox) == ["create_project", "create_project"]


def test_a_person_is_asked_about_a_file_that_takes_much(
    sandbox: SandboxServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.file = {
        "members": {"people": ["mina.member@example.com"], "owner_level": "owner"},
        "complete": ["members"],
        "max_removals": "ask",
    }
    with pytest.raises(AirflowFailException, match=r"nobody is asked. Set require_approval=True, or set max_removals"):
        run.plan()
    plan_first = r"is asked. Plan with WorkspacePlanOrganizationOperator.require_approval=True. and pass its output as "
    shown = run.plan(dry_run=True, require_approval=True)
    assert "This plan takes a lot away" in shown["table"]
    for approved in (None, shown):
        with pytest.raises(AirflowFailException, match=rf"too-many-removals.*{plan_first}"):
            run.apply("members", approved=approved)
    with pytest.raises(AirflowFailException, match="The organization differs from its file: 4 differences"):
        run.plan(fail_on_difference=True)
    for part in (None, "members"):
        table = run.apply(part, dry_run=True)[part]["table"]
        assert table.startswith("This plan takes a lot away")
    approval = Approval(monkeypatch, run.file)
    assert "This plan takes a lot away" in approval.question.body
    approved = approval.answer("remove member noah.newton")
    assert approved["approved_by"] == "ruth"
    applied = run.apply("members", approved=approved)["members"]
    assert effects(sandbox) == ["delete_invite", "delete_member", "delete_member"]
    for plan in (approved, applied):
        assert "takes a lot away" not in plan["table"]


def test_an_empty_plan_needs_nobody_who_decides(sandbox: SandboxServer, run: Run) -> None:
    people = [f"{name}@example.com" for name in ("olive.owner", "adam.admin")]
    run.file = {"members": {"people": people}, "max_removals": "ask"}
    empty = run.plan()
    assert empty["approved_by"] == ""
    run.apply("members")
    run.file["members"]["people"].append("ada@example.com")
    with pytest.raises(AirflowFailException, match=r"approval-stale.*Plan again"):
        run.apply("members", approved=empty)
    assert effects(sandbox) == []


def test_a_collaborator_who_joins_meanwhile_is_added(sandbox: SandboxServer, run: Run) -> None:
    approved = run.plan()
    run.apply("projects", "dashboards", "members", approved=approved)
    (invite,) = [row["target"] for row in sandbox.effects("create_invite")]
    with WorkspaceHook() as hook:
        (invite_id,) = [row.id for row in hook.list_invites() if row.target_email == invite]
    sandbox.accept_invite(str(invite_id))
    run.apply("collaborators", approved=approved)
    assert effects(sandbox).count("add_dashboard_collaborator") == 2


def test_an_approval_is_valid_only_for_the_organization_of_the_file(
    sandbox: SandboxServer, run: Run, connect: Connect, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "southwind.yaml"
    text = "organizations:\n  south: {{organization_id: '{}', projects: [{{name: Southwind}}]}}\n"
    file.write_text(text.format(SEED.organization_id))
    asked = Approval(monkeypatch, str(file), organization="south")
    where = f"organization south ({SEED.organization_id}) at {sandbox.url}"
    assert asked.question.subject == f"Make these changes to {where}?"
    approved = asked.answer()
    file.write_text(text.format(SEED.other_organization_id))
    connect(key=SEED.research_key)
    said = r"(?s)^\[approval-stale\] .*: 1 of 1 change is not in plan .*Start a new run.*\+ project Southwind"
    with pytest.raises(AirflowFailException, match=said):
        asked.answer()
    run.file = str(file)
    with pytest.raises(AirflowFailException, match=f"is for .* {SEED.organization_id}, and this task is for"):
        run.apply("projects", approved=approved)
    assert effects(sandbox) == []


def test_an_approval_covers_the_board_and_project_of_a_collaborator(
    sandbox: SandboxServer, run: Run, variables: Variables
) -> None:
    boards = [{"name": "Board", "restriction_level": 37, "collaborators": []}]
    run.file = {"projects": [{"name": "A", "dashboards": boards}], "complete": ["collaborators"]}
    run.apply("projects", "dashboards")
    ((key, text),) = variables.values.items()
    board = json.loads(text)
    with WorkspaceHook() as hook:
        other = hook.create_dashboard(project_id=3, name="Board", restriction_level=37)
        for dashboard_id in (board["dashboard_id"], other.id):
            hook.add_dashboard_collaborator(
                project_id=3, dashboard_id=dashboard_id, user_uuid=SEED.member_uuid, level=37
            )
    approved = run.plan()
    assert names(approved, "remove") == ["collaborator mina.member@example.com of A / Board"]
    variables.values[key] = json.dumps({**board, "dashboard_id": other.id})
    before = effects(sandbox)
    with pytest.raises(AirflowFailException, match=r"1 of 1 change is .*\n  - collaborator mina\S+ of A / Board"):
        run.apply("collaborators", approved=approved)
    assert effects(sandbox) == before
    # Before the boards exist, their names are bound.
    run.file = {
        "projects": [
            {"name": name, "dashboards": [{**boards[0], "collaborators": people}]}
            for name, people in {"C": ["grace.analyst@example.com"], "D": []}.items()
        ]
    }
    approved = run.plan()
    assert approved["table"].count("its id is known after apply") == 3
    run.file["projects"][1]["dashboards"][0]["collaborators"] = ["grace.analyst@example.com"]
    run.apply("projects", "dashboards", approved=approved)
    with pytest.raises(AirflowFailException, match=r"1 of 2 .*\n  \+ collaborator grace\S+ of D / Board"):
        run.apply("collaborators", approved=approved)
    run.file["projects"][1]["dashboards"][0]["collaborators"] = []
    run.apply("collaborators", approved=approved)
    assert effects(sandbox)[len(before) :].count("add_dashboard_collaborator") == 1


def test_an_approval_of_a_new_domain_covers_its_settings(sandbox: SandboxServer, run: Run) -> None:
    """One of the settings is the service's default, and no change any more once the domain exists."""
    settings = {"jit_provisioning_enabled": True, "sso_enforcement": ""}
    run.file = {"domains": [{"domain": "northwind.example.com", **settings}]}
    approved = run.plan()
    run.file["domains"][0]["jit_provisioning_enabled"] = False
    run.apply("domains", approved=approved)
    run.file["domains"][0] |= {"jit_provisioning_enabled": True, "sso_enforcement": "google-oauth2"}
    with pytest.raises(AirflowFailException, match=r'1 of 2 .*\n  ~ domain northwind.* sso_enforcement: "" -> google'):
        run.apply("verification", approved=approved)
    run.file["domains"][0] |= settings
    result = run.apply("verification", approved=approved)["verification"]
    assert result["table"].startswith("0 created, 2 changed (domains verified: 1), 0 removed\n")
    assert effects(sandbox) == ["create_domain", "verify_domain", "update_domain"]


def test_an_approval_of_a_new_domain_does_not_cover_one_that_somebody_has_claimed(
    sandbox: SandboxServer, run: Run
) -> None:
    run.file = {"domains": [{"domain": "northwind.example.com", "jit_provisioning_enabled": True}]}
    approved = run.plan()
    with WorkspaceHook() as hook:
        hook.create_domain(domain="northwind.example.com", sso_enforcement="saml")
    with pytest.raises(AirflowFailException, match="2 of 2 changes are not in the approved plan, or start from other"):
        run.apply("verification", approved=approved, timeout=0)
    assert effects(sandbox) == ["create_domain"]


def test_what_the_service_does_not_show_is_sent_and_never_taken_as_equal(sandbox: SandboxServer, run: Run) -> None:
    """Of a domain and of a project, which cannot be changed."""
    domain = {"domain": "northwind.example.com", "verified": False, "sso_enforcement": "saml"}
    run.file = {"domains": [domain], "projects": [{"name": "Default project", "timezone": "UTC"}]}
    approved = run.plan()
    run.apply("domains", approved=approved)
    with WorkspaceHook() as hook:
        rows = [row.to_dict() for row in hook.list_domains()]
    say(sandbox, "list_domains", *({key: row[key] for key in ("id", "domain")} for row in rows))
    applied = run.apply("verification", approved=approved)["verification"]
    assert applied["table"].startswith("0 created, 0 changed, 0 removed, 1 cannot be known\n    domain northwind.")
    assert "sso_enforcement: saml, sent each time: the service does not show sso_enforcement" in applied["table"]
    assert [row["status"] for row in applied["changes"]] == ["done"]
    assert effects(sandbox) == ["create_domain", "update_domain"]
    sandbox.inject("say", "retrieve_project", body={"id": 1, "name": "Default project"}, times=None)
    drifts(
        run,
        "of which 2 cannot be known.* project Default project .*cannot be known: .*does not show timezone",
    )


def drifts(run: Run, said: str) -> None:
    with pytest.raises(AirflowFailException, match=f"(?s){said}"):
        run.plan(fail_on_difference=True)


@pytest.mark.parametrize("sandbox", ["live"], indirect=True)
def test_a_collaborator_who_cannot_be_known_is_drift(sandbox: SandboxServer, variables: Variables) -> None:
    entry = {"name": "Weekly overview", "variable_key": "overview", "collaborators": ["grace.analyst@example.com"]}
    identity = {"service": sandbox.url, "organization_id": SEED.organization_id, "name": entry["name"]}
    variables.values["overview"] = json.dumps({**identity, "project_id": "1", "dashboard_id": 1})
    run = Run(sandbox, {"projects": [{"name": "Default project", "dashboards": [entry]}]})
    assert run.plan(fail_on_difference=True)["changes"] == []
    run.file["complete"] = ["collaborators"]
    assert run.plan(fail_on_difference=True)["changes"] == []
    with WorkspaceHook() as hook:
        rows = [row.to_dict() for row in hook.list_dashboard_collaborators(project_id=1, dashboard_id=1)]
    # A collaborator who is no member, and whose address is not shown.
    rows.append({**rows[0], "id": "x", "user": None, "user_uuid": SEED.research_uuid})
    sandbox.inject("say", "list_dashboard_collaborators", body=rows, times=None)
    drifts(run, rf"1 differences, of which 1 cannot be known\..*\n    collaborator {SEED.research_uuid} of Default")
    entry["collaborators"] += ["guest@example.com"]  # type: ignore[operator]
    del run.file["complete"]
    drifts(run, r"    collaborator guest@example\.com .*, unless one of 1")
    sandbox.clear_faults()
    assert run.plan(fail_on_difference=True)["counts"]["wait"] == 1, "a guest may join later"


YEARS = {"until": "9998-12-31", "then": "removed"}


@pytest.mark.parametrize("sandbox", ["live", pytest.param("strict", marks=pytest.mark.slow)], indirect=True)
@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([("grace.analyst", 37, "2020-12-31")], [("remove", {}, "level: 37, access ended 2020-12-31 (UTC)")]),
        ([("grace.analyst", None, "2020-12-31")], [("remove", {}, "level: 37, access ended 2020-12-31 (UTC)")]),
        (
            [("grace.analyst", 21, "2020-12-31")],
            [("differs", {}, "level: 37, access ended 2020-12-31 (UTC), but it was ch")],
        ),
        ([("mina.member", 37, "2020-12-31"), ("guest", 37, "2020-12-31")], []),
        ([("grace.analyst", 37, "9998-12-31")], [("wait", {}, "until 9998-12-31, then removed")]),
        (
            [("mina.member", 37, "9998-12-31")],
            [("create", {"level": 37, **YEARS}, "level: 37, until 9998-12-31, then removed")],
        ),
        (
            [("guest", None, "9998-12-31")],
            [("wait", YEARS, "not a member yet; added after joining, until 9998-12-31, th")],
        ),
        ([("grace.analyst", 37, "2020-12-31"), ("grace.analyst", 37, None), ("grace.analyst", 37, "9998-12-31")], []),
        (
            [("grace.analyst", 37, "9998-12-31"), ("grace.analyst", 21, "2020-12-31")],
            [("wait", {}, "until 9998-12-31")],
        ),
    ],
)
def test_collaborators_with_an_end(
    sandbox: SandboxServer, variables: Variables, rows: list[Any], found: list[tuple[str, dict[str, Any], str]]
) -> None:
    variables.values["overview"] = '{"project_id": "1", "dashboard_id": 1}'
    people = [{"email": f"{name}@example.com", "level": level, "until": until} for name, level, until in rows]
    entry = {"name": "Weekly overview", "variable_key": "overview", "collaborators": people}
    run = Run(sandbox, {"projects": [{"name": "Default project", "dashboards": [entry]}], "max_removals": 1})
    plan = run.plan()
    assert [(change["action"], change["after"]) for change in plan["changes"]] == [one[:2] for one in found]
    assert all(why in plan["table"] for *_, why in found)
    run.apply("collaborators", approved=plan)
    assert run.plan()["pending"] == 0
    if plan["counts"]["create"]:
        people[0]["until"] = "9999-12-31"
        assert run.plan_of(run.file)["changes"][0]["why"] == "until 9999-12-31, then removed"


def test_a_collaborator_whose_end_is_over_may_be_one_whom_nobody_knows(
    sandbox: SandboxServer, variables: Variables
) -> None:
    variables.values["overview"] = '{"project_id": "1", "dashboard_id": 1}'
    guest = {"email": "guest@example.com", "until": "2020-12-31"}
    entry = {"name": "Weekly overview", "variable_key": "overview", "collaborators": [guest]}
    sandbox.inject("say", "list_dashboard_collaborators", body=[{"user_uuid": SEED.research_uuid}], times=None)
    run = Run(sandbox, {"projects": [{"name": "Default project", "dashboards": [entry]}]})
    drifts(run, r"    collaborator guest@example\.com .*access ended 2020-12-31 \(UTC\), unless one of 1")


def test_a_domain_is_removed_by_its_name_only(sandbox: SandboxServer) -> None:
    run = Run(sandbox, {"domains": [{"domain": "bücher.example.com", "verified": False}], "complete": ["domains"]})
    own = {"id": SEED.domain_id, "domain": "xn--bcher-kva.example.com"}
    say(sandbox, "list_domains", own, {"id": SEED.absent_uuid})
    assert run.plan()["changes"] == []
    odd = {"id": SEED.absent_uuid, "domain": "x.example.com\n  + all well\x1b[2J"}
    sandbox.clear_faults()
    say(sandbox, "list_domains", own, odd)
    (change,) = (removed := run.plan())["changes"]
    assert change["action"] == "remove"
    assert len(removed["table"].splitlines()) == 2
    assert removed["table"].replace("\n", "").isprintable()


GRACE = {"user_uuid": SEED.analyst_uuid.replace("-", "")}
MINA = {"user_uuid": SEED.member_uuid.upper()}


@pytest.mark.parametrize(
    ("rows", "removed"),
    [
        ([GRACE], []),
        ([GRACE, MINA], ["mina.member@example.com"]),
        ([GRACE, {"user": {"uuid": "u", "email": "guest@example.com"}}], ["guest@example.com"]),
    ],
)
def test_collaborators_are_matched_by_user_id(
    sandbox: SandboxServer, variables: Variables, rows: list[Any], removed: list[str]
) -> None:
    variables.values["overview"] = '{"project_id": "1", "dashboard_id": 1}'
    entry = {"name": "Weekly overview", "variable_key": "overview", "collaborators": ["grace.analyst@example.com"]}
    file = {"projects": [{"name": "Default project", "dashboards": [entry]}], "complete": ["collaborators"]}
    sandbox.inject("say", "list_dashboard_collaborators", body=rows, times=None)
    changes = Run(sandbox, file).plan()["changes"]
    assert [(change["action"], change["name"].split()[1]) for change in changes] == [
        ("remove", email) for email in removed
    ]


@pytest.mark.parametrize("sandbox", ["live"], indirect=True)
def test_a_member_who_cannot_be_known_is_drift(sandbox: SandboxServer) -> None:
    people: list[Any] = ["adam.admin@example.com", "grace.analyst@example.com", "liv.invited@example.com"]
    people += ["noah.newton@example.com", {"email": "mina.member@example.com", "level": 1}]
    run = Run(sandbox, {"members": {"people": people}, "complete": ["members"]})
    assert names(run.plan(fail_on_difference=True), "skip") == ["person olive.owner@example.com"]
    with WorkspaceHook() as hook:
        rows = {row.user.uuid: row.to_dict() for row in hook.list_members() if row.user}
    rows[SEED.member_uuid]["level"] = None
    rows[SEED.absent_uuid]["user"]["email"] = None
    say(sandbox, "list_members", *rows.values())
    people.remove("noah.newton@example.com")
    drifts(run, "2 differences, of which 2 cannot be known")
    del run.file["complete"]
    drifts(run, r"of which 1 cannot be known.* person mina\.member")
