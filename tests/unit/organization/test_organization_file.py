"""Validation of organization files: each mistake is reported with its line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import jsonschema
import pendulum
import pytest
import yaml

import airflow_provider_workspace
from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.operators.organization import WorkspaceApplyOrganizationOperator
from airflow_provider_workspace.organization.file import read_organizations
from airflow_provider_workspace.version_compat import AirflowFailException

if TYPE_CHECKING:
    from tests.conftest import Connect

ID = "0190c0de-0000-4000-8000-0000000000a1"
PARTS = ("projects", "dashboards", "collaborators", "domains", "members", "exports")
# A field that no model has, for each model; and the fields that the schema does not name.
Q = {"qqq": 1}
UNKNOWN: dict[str, dict[str, Any]] = {
    "Organization": Q,
    "ProjectEntry": {"projects": [Q]},
    "DashboardEntry": {"projects": [{"dashboards": [Q]}]},
    "Collaborator": {"projects": [{"dashboards": [{"collaborators": [Q]}]}]},
    "DomainEntry": {"domains": [Q]},
    "Members": {"members": Q},
    "Person": {"members": {"people": [Q]}},
    "ProtectedPerson": {"members": {"protected": [Q]}},
    "Defaults": {"members": {"defaults": Q}},
    "ExportEntry": {"exports": [Q]},
}
SECRET = {"ProjectEntry": {"slack_incoming_webhook"}, "DomainEntry": {"saml_x509_cert"}}
SCHEMA = json.loads(Path(airflow_provider_workspace.__file__).with_name("organization.schema.json").read_text())
WHOLE = """\
organization_id: 0190c0de-0000-4000-8000-000000000001
projects:
  - name: Northwind
    timezone: Europe/Berlin
    dashboards:
      - name: Sign-ups
        restriction_level: 37
        collaborators: [grace.analyst@example.com, {email: mina.member@example.com, level: 37}]
domains:
  - domain: northwind.example.com
    jit_provisioning_enabled: true
members:
  people:
    - ada@example.com
    - {email: lin@example.com, level: admin, first_name: Lin}
    - grace.analyst@example.com
    - mina.member@example.com
  defaults: {send_email: false}
  protected: [olive.owner@example.com]
exports:
  - {batch_export_id: 0190c0de-0000-4000-8000-0000000000e1, paused: false}
complete: [members]
max_removals: 5
"""


# As many mistakes as one error names.
MAX_FINDINGS = 100
Plan = Callable[..., Any]


@pytest.fixture
def plan(connect: Connect, tmp_path: Path) -> Plan:
    """Plan a part of an organization file, which is a text or a mapping."""
    connect()
    path = tmp_path / "northwind.yaml"

    def plan_part(content: str | dict[str, Any], part: str = "exports", organization: Any = None) -> Any:
        if isinstance(content, str):
            path.write_text(content)
        file: Any = str(path) if isinstance(content, str) else content
        return WorkspaceApplyOrganizationOperator(
            task_id="plan", part=part, file=file, organization=organization, dry_run=True
        ).execute({})

    return plan_part


@pytest.fixture
def mistakes(plan: Plan) -> Callable[[Any], str]:
    """Return the error about a file."""

    def error_of(content: Any) -> str:
        with pytest.raises(AirflowFailException) as caught:
            plan(content)
        return str(caught.value)

    return error_of


def test_a_complete_file_is_read(plan: Plan) -> None:
    found = {part: plan(WHOLE, part)["changes"] for part in PARTS}
    on_board = "of Northwind / Sign-ups"
    assert {row["name"]: row["after"] for rows in found.values() for row in rows if row["action"] != "remove"} == {
        "project Northwind": {"timezone": "Europe/Berlin"},
        "dashboard Northwind / Sign-ups": {"restriction_level": 37},
        f"collaborator grace.analyst@example.com {on_board}": {},
        f"collaborator mina.member@example.com {on_board}": {"level": 37},
        "domain northwind.example.com": {},
        "invite ada@example.com": {"send_email": False},
        "invite lin@example.com": {"first_name": "Lin", "level": 8, "send_email": False},
        "person olive.owner@example.com": {},
        "export 0190c0de-0000-4000-8000-0000000000e1": {"paused": False},
    }
    assert {part: plan(yaml.safe_load(WHOLE), part)["changes"] for part in PARTS} == found


def test_the_json_schema_matches_the_model(mistakes: Callable[[Any], str]) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for text in (WHOLE, "organizations:\n  north: {projects: [{name: Northwind}]}"):
        jsonschema.validate(yaml.safe_load(text), SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"projects": [{"name": "x", "timezon": "UTC"}]}, SCHEMA)
    for model, content in UNKNOWN.items():
        entry = SCHEMA["$defs"][model]
        properties = (entry["anyOf"][1] if "anyOf" in entry else entry)["properties"]
        (known,) = re.findall(r"qqq: unknown field \(known: (.*)\)", mistakes(content))
        assert {*known.split(", ")} == {*properties, *SECRET.get(model, ())}
    assert {*UNKNOWN, "JsonValue"} == {*SCHEMA["$defs"]}


def test_the_example_files_are_valid(plan: Plan) -> None:
    root = Path(__file__).resolve().parents[3]
    files = [*(root / "example_dags" / "data").glob("north*.yaml")]
    assert files
    for file in files:
        assert plan(file.read_text())["changes"] == []
        jsonschema.validate(yaml.safe_load(file.read_text()), SCHEMA)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("projects:\n  - name: x\n    timezon: UTC", "line 3: projects.0.timezon: unknown field (did you mean 'timez"),
        ("domains:\n  - {}", "line 2: domains.0.domain: this field is required"),
        ("members:\n  people:\n    - ada@example\n", "line 3: members.people.0.email: 'example' is not a domain"),
        ('members:\n  people:\n  - {email: a@b.example,\n     first_name: "Ann \\ud83d"}',
         "line 4: members.people.0.first_name: a value is not JSON serializable (NaN, infinity or half an emoji)"),
        ("members:\n  protected: [{email: a}]", "line 2: members.protected.0.email: the address needs exactly one @"),
        *(
            (f"members:\n  protected:\n  - {{email: a@b.example,\n     {field}: 1}}",
             f"line 4: members.protected.0.{field}: unknown field (known: email)")
            for field in ("until", "then", "level", "first_name")
        ),
        ("complete: [members]\nmembers:\n  people: []",
         "line 3: complete names members, but people is empty: this would remove all of them"),
        ("complete: [members]\nmembers:\n  roster: a.csv\n  on_invalid: skip",
         "line 4: members.on_invalid: 'complete: [members]' would remove the people of the rows"),
        ("members:\n  people: [{email: 3}]", "line 2: members.people.0.email: expected a string; put it in quotes"),
        ("members:\n  defaults: {lvel: 1}\n  people: []", "line 2: members.defaults.lvel: unknown field (did you mean"),
        ("projects:\n  - name: x\n    dashboards: 3", "line 3: projects.0.dashboards: expected a list, as in "),
        ("members: {roster: a.csv, people: []}", "line 1: members: give either roster or people"),
        ("name: x", "line 1: name: unknown field (known: complete, domains"),
        *((f"members:\n  roster: a.csv\n  {name}: 3",
           f"line 3: members.{name}: unknown field (move it to the top, beside 'members', not below it)")
          for name in ("max_removals", "complete", "organization_id", "domains")),
        ("members:\n  people:\n  - {email: a@b.example, max_removals: 3}",
         "line 3: members.people.0.max_removals: unknown field (move it to the top, beside 'members'"),
        ("exports: [{batch_export_id: 7, paused: true}]", "exports.0.batch_export_id: expected a UUID"),
        ("complete: [projects]", "complete.0: Input should be 'members'"),
        ("complete: [members]", "complete names members, but the file has none: this would remove all"),
        ("complete: [domains]\ndomains: []", "complete names domains, but the file has none"),
        ("projects:\n  - name: a b\n  - {name: a  b}", "line 3: projects: a b is repeated"),
        ("domains: [{domain: A.example.com}, {domain: a.example.com.}]", "domains: a.example.com is repeated"),
        ("projects: [{name: a, dashboards: [{name: x},\n {name: x}]}]", "line 2: dashboards of a: x is repeated"),
        ("projects: [{name: a, dashboards: [{name: x, collaborators: [a@b.example,\n A@b.example]}]}]",
         "line 2: collaborators of x: a@b.example is repeated"),
        ("members:\n  people:\n  - a@b.example\n  - A@b.example", "line 4: members: people: a@b.example is repeated"),
        ("members:\n  defaults: {}\n  people:" + "\n  - {email: a@b.example, until: 2026-11-30}" * 2,
         "line 5: members: people: a@b.example until 2026-11-30 is repeated"),
        *(
            (f"members:\n  people:\n  - level: 8\n    email: a@b.example\n    {end}", f"line {line}: {said}")
            for end, line, said in (
                ("until: 2027-02-30", 5, "2027-02-30 is no day or time that exists"),
                ("until: 20270331", 5, "members.people.0.until: expected a date such as 2026-12-31, or a time with"),
                ("until: 18:00", 5, "write 18:00 as a decimal number, or in quotes if it is a text; a time needs its"),
                ("until: 2026-12-31 18:00:00", 5, "members.people.0.until: expected a date such as 2026-12-31, or a"),
                ("then: 1", 5, "members: then: give until as well, or leave it out"),
                ("until: 2026-12-31\n    then: owner", 6, "members: then: 15 must not be above the level, which the"),
                ("until: 2026-12-31\n    utnil: 1", 6, "members.people.0.utnil: unknown field (did you mean 'until'?"),
            )
        ),
        *(
            (f"projects: [{{name: a, dashboards: [{{name: x, collaborators: [{{email: a@b.example,\n {end}}}]}}]}}]",
             f"line 2: projects.0.dashboards.0.collaborators.0{said}")
            for end, said in (
                ("then: removed", ": then: give until as well, or leave it out"),
                ("until: 2026-12-31, then: 21", ": then: expected 'removed': the interface cannot change the level of"),
                ("until: 18", ".until: expected a date such as 2026-12-31, or a time with its zone such as"),
            )
        ),
        ("projects: [{name: a, dashboards: [{name: x, variable_key: k}, {name: y, variable_key: k}]}]",
         "variable_key, without regard to case: k is repeated"),
        ("organization_id: ''", "organization_id: expected an id, a number or text"),
        ("organizations: {a: {organization_id: x}, b: {organization_id: x}}", "organization_id: x is repeated"),
        (f"organizations: {{a: {{organization_id: {ID}}}, b: {{organization_id: {ID.replace('-', '').upper()}}}}}",
         f"organization_id: {ID} is repeated"),
        ("organizations: {yes: {}, true: {}}", "organizations: put the name True in quotes"),
        ("projects:\n\t- name: x", "line 2: found character '\\t'"),
        ("projects: []\n---\nprojects: []", "line 2: expected a single document in the stream, but found another"),
        ("projects: [{name: 2026-11-22}]", "projects.0.name: expected a string; put it in quotes"),
        *(
            (f"{before}{number}{after}", f"line 2: write {number} as a decimal number, or in quotes")
            for before, number, after in (
                *(("members: {people: [{email: a@b.example,\n level: ", level, "}]}") for level in ("010", "1_5")),
                ("projects: [{name: x,\n week_start_day: ", "1:30", "}]"),
                ("projects: [{name: x,\n extra_settings: {a: [", "0x1F", "]}}]"),
                ("projects: [{name: x,\n session_recording_sample_rate: ", ".inf", "}]"),
                ("projects: [{\n name: ", "010", "}]"),
            )
        ),
        *(
            (text, f"line 2: {field}: expected a whole")
            for text, field in (
                ("members: {people: [{email: a@b.example,\n level: yes}]}", "members.people.0.level"),
                ("members: {people: [],\n owner_level: yes}", "members.owner_level"),
                ("\nmax_removals: yes", "max_removals"),
                ("projects: [{name: x,\n primary_dashboard: yes}]", "projects.0.primary_dashboard"),
            )
        ),
        ("max_removals: -1",
         "line 1: max_removals: expected a whole number, a share such as '50%', both as in '10 or 30%'"),
        ("projects: [{name: x,\n session_recording_sample_rate: yes}]", "line 2: projects.0.session_recording_sample"),
        pytest.param("#" * 2_000_001, "put the people into a roster", id="10 MB"),
        ("projects:\n  - name: x\n    slack_incoming_webhook: abc", "line 3: 'slack_incoming_webhook' is a secret"),
        ("domains:\n  - domain: x\n    saml_x509_cert: abc", "line 3: 'saml_x509_cert' is a secret"),
        *(
            (f"projects:\n- name: x\n  {field}", f"line 3: '{name}' is a secret: leave it out")
            for field, name in (
                ("app_urls: ['https://user:abc@x.example']", "app_urls"),
                ("extra_settings: {slack_webhooks: [[abc]]}", "slack_webhooks"),
                ("extra_settings: {credentials: {user: {name: abc}}}", "credentials"),
                ("dashboards: [{name: y, tags: ['https://user:abc@x.example']}]", "tags"),
            )
        ),
        ("projects: []\nprojects: []", "line 2: the key 'projects' is repeated"),
        ("? [a]\n: 3", "line 1: a key must be a string"),
        ("- a", "line 1: expected a mapping such as"),
        ("", "line 1: expected a mapping such as"),
        ("a: [", "line 1: expected the node content"),
        ("a: !x 3", "could not determine a constructor for the tag '!x'"),
        ("a: 2026-99-99", "line 1: 2026-99-99 is no day or time that exists"),
        ("a: !!timestamp today", "line 1: today is no day or time that exists"),
        ("[" * 2_500, "nested too deeply"),
        ("a: &a [*a]", "too many values"),
        ("organizations: {}", "organizations must map names to organizations"),
        ("organizations: {a: {}}\nprojects: []", "organizations must map names to organizations"),
        ("organizations:\n  a: {}\n  b:\n    exports: {}", "line 4: organizations.b.exports: expected a list"),
        ("organizations:\n  a: 3", "line 2: organizations.a: expected fields"),
    ],
)  # fmt: skip
def test_each_mistake_is_named_with_its_line(mistakes: Callable[[Any], str], text: str, said: str) -> None:
    error = mistakes(text)
    assert "Correct northwind.yaml:\n  line " in error
    assert said in error
    assert "abc" not in error


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("domains: [{}, {}]", 3),
        ({"domains": [{} for _ in range(101)]}, MAX_FINDINGS + 2),
        ("\n".join(f"key_{number}: 1" for number in range(2_000)), MAX_FINDINGS + 2),
        ("organizations:\n" + "\n".join(f"  {number}: {{}}" for number in range(200)), MAX_FINDINGS + 2),
    ],
    ids=["two", "mapping", "keys", "names"],
)
def test_only_the_first_of_many_mistakes_are_named(mistakes: Callable[[Any], str], text: Any, lines: int) -> None:
    found = mistakes(text).splitlines()
    assert len(found) == lines
    assert found[-1].startswith("  … there may be more") is (lines > MAX_FINDINGS)


DAY, TIME = "9998-12-31", "9998-12-31T18:00:00Z"


def ends(plan: Plan, content: Any) -> list[str]:
    """Return what the plan says about the end of each person."""
    return [row["why"] for row in plan(content, "members")["changes"]]


@pytest.mark.parametrize(
    ("until", "found"),
    [(DAY, DAY), (f"'{DAY}'", DAY), (f"{DAY} 20:00:00 +02:00", TIME), (TIME, TIME), ("", "")],
)
def test_ends_in_yaml_are_dates_or_times(plan: Plan, until: str, found: str) -> None:
    content = f"members: {{people: [{{email: a@b.example, until: {until}}}]}}"
    assert ends(plan, content) == [found and f"until {found}, then removed"]


@pytest.mark.parametrize(
    ("until", "found"),
    [
        (date(9998, 12, 31), DAY),
        (datetime(9998, 12, 31, 20, tzinfo=timezone(timedelta(hours=2))), TIME),
        (pendulum.date(9998, 12, 31), DAY),
        (pendulum.datetime(9998, 12, 31, 18), TIME),
    ],
)
def test_ends_in_a_mapping_are_dates_or_times(plan: Plan, until: object, found: str) -> None:
    person = {"email": "a@b.example", "until": until}
    assert ends(plan, {"members": {"people": [person]}}) == [f"until {found}, then removed"]


def test_a_mapping_may_hold_what_rows_of_databases_hold(mistakes: Callable[[Any], str]) -> None:
    class Access(str, Enum):
        ADMIN = "admin"

    class Text(str):
        __slots__ = ()

    people = [
        {"email": Text("ada@example.com"), "level": Decimal(8)},
        {"email": "lin@example.com", "level": Access.ADMIN},
        {"email": "zoe@example.com", "level": HTTPStatus.OK},
    ]
    (found,) = read_organizations({"organization_id": UUID(ID), "members": {"people": people}}, "x").values()
    assert found.organization_id == ID
    assert found.members is not None
    assert [(person.email, person.level) for person in found.members.people or ()] == [
        ("ada@example.com", 8),
        ("lin@example.com", 8),
        ("zoe@example.com", 200),
    ]
    assert "line 1: something of type object is no value of a file: pass texts" in mistakes({"projects": [object()]})


def test_an_end_may_be_a_default(plan: Plan) -> None:
    people = "people: [a@b.example, {email: c@b.example, then: 1}]"
    content = f"members: {{defaults: {{until: {DAY}, level: 8}}, {people}}}"
    assert ends(plan, content) == [f"until {DAY}, then removed", f"until {DAY}, then 1"]


def test_anchors_and_merged_keys_work(plan: Plan) -> None:
    text = "projects:\n  - &base {name: a, timezone: UTC}\n  - {<<: *base, name: b}"
    created = plan(text, "projects")["changes"]
    assert [row["name"] for row in created] == ["project a", "project b"]
    assert [row["after"] for row in created] == [{"timezone": "UTC"}] * 2


def test_an_organization_is_selected_by_name(plan: Plan) -> None:
    text = "organizations: {secret north: {projects: [{name: N}]}, south: {projects: [{name: S}]}}"
    assert [row["name"] for row in plan(text, "projects", "south")["changes"]] == ["project S"]
    unknown: list[tuple[Any, str]] = [
        ("sout", r"did you mean 'south'\?.*no 'sout' in northwind.yaml"),
        (None, r"one of secret north, south.*several in northwind.yaml"),
    ]
    for name, says in unknown:
        with pytest.raises(AirflowFailException, match=says):
            plan(text, "projects", name)


def test_roster_paths_are_relative_to_the_file(plan: Plan, tmp_path: Path) -> None:
    rosters = {"a": "team.csv", "b": "/shared/team.csv", "c": "memory://bucket/team.csv"}
    text = "\ufefforganizations:\n" + "".join(
        f"  {name}: {{members: {{roster: '{roster}'}}}}\n" for name, roster in rosters.items()
    )
    for name, path in {**rosters, "a": f"{tmp_path}/team.csv"}.items():
        with pytest.raises(AirflowFailException, match=path.replace("memory://", "memory:///?")):
            plan(text, "members", name)


def test_unreadable_files_are_an_error(connect: Connect, tmp_path: Path) -> None:
    connect()
    (tmp_path / "a.yaml").write_bytes("projects: [{name: Größe}]".encode("latin-1"))
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    for name, says in {
        "none.yaml": r"There is no file '.*none\.yaml' on this worker",
        "": "is a directory; expected a regular file",
        "a.yaml": r"Byte 20 is not UTF-8\. Save the file with the encoding UTF-8 .*a\.yaml",
        "loop.yaml": r"The file cannot be read: .*symbolic links.*loop\.yaml",
        "north\0wind.yaml": r"is not a path: .*embedded null",
    }.items():
        task = WorkspaceApplyOrganizationOperator(task_id="plan", part="exports", file=f"{tmp_path}/{name}")
        with pytest.raises(AirflowFailException, match=says):
            task.execute({})


def test_keys_for_anchors_are_left_alone() -> None:
    text = "x-team: &team\n- {email: ada@example.com, level: member}\nmembers:\n  people: *team\n"
    found = read_organizations(text, "north.yaml")[""]
    assert found.members is not None
    assert found.members.people is not None
    assert [person.email for person in found.members.people] == ["ada@example.com"]
    with pytest.raises(WorkspaceInputError, match="line 1: y-team: unknown field"):
        read_organizations("y-team: 1\n", "north.yaml")
