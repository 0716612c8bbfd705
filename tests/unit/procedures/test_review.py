"""An access review against the sandbox: population, form, answers, what is sent, and the page."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.api.operations.invites import CreateInvite
from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.procedures import plan as plans
from airflow_provider_workspace.procedures import review
from airflow_provider_workspace.procedures.members import Guards
from airflow_provider_workspace.sandbox.seed import SEED
from tests.audit import effects

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = pytest.mark.usefixtures("linked")

OWNER, ADMIN, MEMBER = "olive.owner@example.com", "adam.admin@example.com", "mina.member@example.com"
ABSENT, ANALYST, INVITED = "noah.newton@example.com", "grace.analyst@example.com", "liv.invited@example.com"
COLLABORATOR = f"{ANALYST} on dashboard {SEED.dashboard_id}"
EVERYBODY = (OWNER, ADMIN, MEMBER, ABSENT, ANALYST, INVITED, COLLABORATOR)
GUARDS = Guards(frozenset({ABSENT}), 15)
DASHBOARD = {"project_id": str(SEED.project_id), "dashboard_id": SEED.dashboard_id}


@pytest.fixture
def linked(connect: Connect) -> None:
    connect()


def read(**options: Any) -> dict[str, Any]:
    with WorkspaceHook() as hook:
        options = {"now": datetime.now(timezone.utc), "dashboards": [DASHBOARD], **options}
        return review.read_population(hook.client, SEED.organization_id, **options)


def rows(population: dict[str, Any], name: str) -> dict[str, Any]:
    return {row["who"]: row[name] for row in population["people"]}


def large() -> dict[str, Any]:
    population = read()
    row = next(row for row in population["people"] if row["who"] == MEMBER)
    more = [{**row, "who": f"sam.{number}@example.com", "look": []} for number in range(30)]
    return {**population, "people": population["people"] + more}


def test_the_population_names_everybody_and_whom_to_look_at() -> None:
    population = read()
    assert set(rows(population, "kind")) == set(EVERYBODY)
    assert rows(population, "kind")[INVITED], rows(population, "kind")[COLLABORATOR] == ("invite", "collaborator")
    look = rows(population, "look")
    assert look[OWNER] == ["owner"]
    assert look[ADMIN] == ["admin"]
    assert look[MEMBER] == look[INVITED] == []
    assert look[ABSENT] == ["no second factor", "not seen for 90 days"]
    assert not population["people"][-1]["look"]
    with WorkspaceHook() as hook:
        for _ in range(2):
            hook.client.send(CreateInvite(organization_id=SEED.organization_id, target_email=INVITED, level=1))
    assert {f"{INVITED} (invite {number})" for number in (6, 7)} < set(rows(read(), "who"))
    assert review.csv_rows(population)[0]["decision"] == ""


def test_people_who_are_new_or_raised_since_the_last_review_are_looked_at() -> None:
    first = read(dashboards=())
    before = {**first, "people": [{**row, "level": 1} for row in first["people"] if row["who"] not in (MEMBER, OWNER)]}
    again = read(previous=before)
    assert {who: change for who, change in rows(again, "change").items() if change} == {
        **dict.fromkeys((OWNER, MEMBER, COLLABORATOR), "new"),
        ADMIN: "raised",
    }
    assert set(rows(first, "change").values()) == {None}
    assert again["previous"] == {"read_at": before["read_at"]}
    assert rows(again, "look")[MEMBER] == ["new"]
    # Who was removed, or raised after the decision, was not reviewed as they are now.
    after = {"people": [{**row, "level": 8} for row in first["people"] if row["who"] not in (ABSENT, OWNER)]}
    left = review.reviewed(first, after)
    assert rows(left, "level") == {ADMIN: 8, MEMBER: 1, ANALYST: 1, INVITED: 1}


def test_the_form_asks_about_each_person_or_about_those_who_do_not_stay() -> None:
    population = read()
    form = review.form_of(population)
    assert list(form) == [*rows(population, "who"), "exceptions"]
    assert form[ADMIN]["schema"]["enum"] == ["keep", "remove", "lower to member"]
    assert form[INVITED]["schema"]["enum"] == form[COLLABORATOR]["schema"]["enum"] == ["keep", "remove"]
    assert form[MEMBER]["value"] == ""
    many = review.form_of(large())
    assert list(many)[:3] == ["remove", "lower_to_member", "lower_to_admin"]
    assert many["lower_to_member"]["schema"]["examples"] == [OWNER, ADMIN]
    assert many["remove"]["schema"]["type"] == ["null", "array"]
    question = review.question_of(population, "/evidence/1")
    assert "population.csv" in question
    assert question.index(ABSENT) > 0 > question.find(MEMBER)
    odd = {**population["people"][0], "who": "<a|b>" * 200}
    cut = review.question_of({**population, "previous": {"read_at": "2026"}, "people": [odd] * 300}, "s3://evidence")
    assert len(cut.encode()) < 61_000
    assert "more are in the file" in cut
    assert "<a|b>" not in cut


SMALL = dict.fromkeys(EVERYBODY, "keep")
LARGE = {"remove": None, "all_others_stay": True, "decisions_file": "", "exceptions": ""}


def test_answers_decide_everybody() -> None:
    population, many = read(), large()
    answer = {**SMALL, ADMIN: "lower to member", INVITED: "remove", "exceptions": f"{OWNER}: runs it\n\n"}
    assert review.read_answer(population, answer) == {**SMALL, ADMIN: 1, INVITED: "remove"}
    assert review.read_exceptions(answer) == {OWNER: "runs it"}
    decided = review.read_answer(many, {**LARGE, "remove": [MEMBER], "lower_to_member": [ADMIN]})
    assert {who: what for who, what in decided.items() if what != "keep"} == {MEMBER: "remove", ADMIN: 1}
    file = [{**row, "decision": "Keep"} for row in review.csv_rows(many)]
    file[0] |= {"who": "'" + file[0]["who"], "decision": "remove"}
    decided = review.read_answer(many, {"decisions_file": "x.csv", "all_others_stay": False}, file)
    assert list(decided.values()).count("keep") == len(file) - 1
    for name, value, message in (
        ("decision", "ad", r"row 2 of the file: 'ad'\): expected one of keep, remove"),
        ("decision", "20", r"row 2 of the file: '20'\): expected one of keep, remove"),
        ("who", "x@example.com", "not decided.*'x@example.com' .*in the population"),
    ):
        with pytest.raises(WorkspaceInputError, match=message):
            review.read_answer(many, {"all_others_stay": True}, [{**file[0], name: value}, *file[1:]])


@pytest.mark.parametrize(
    ("size", "answer", "message"),
    [
        ("small", {**SMALL, MEMBER: ""}, f"'{MEMBER}' .*expected one of keep, remove"),
        ("small", {**SMALL, INVITED: "lower to member"}, f"'{INVITED}' .*expected one of keep, remove"),
        ("small", {**SMALL, "other": 1}, "'other' is no field"),
        ("small", {**SMALL, "exceptions": "x@example.com: why"}, "exceptions, 'x@example.com'"),
        ("small", {**SMALL, "exceptions": OWNER}, f"exceptions, '{OWNER}'"),
        ("large", {**LARGE, "all_others_stay": None}, f"'{OWNER}' .not decided."),
        ("large", {**LARGE, "remove": "x@example.com"}, "'x@example.com' .*expected somebody"),
        ("large", {**LARGE, "remove": [ADMIN], "lower_to_member": [ADMIN]}, f"'{ADMIN}' .*remove.*lower to member"),
        ("large", {**LARGE, "lower_to_admin": [ADMIN]}, f"'{ADMIN}' .*expected one of"),
    ],
)
def test_answers_that_do_not_decide_are_refused(size: str, answer: dict[str, Any], message: str) -> None:
    population = read() if size == "small" else large()
    with pytest.raises(WorkspaceInputError, match=f"^Start a new run to decide again .*{message}"):
        review.read_answer(population, answer)


DECIDED = {OWNER: "keep", ADMIN: 1, MEMBER: "remove", ABSENT: "remove", ANALYST: "keep", INVITED: "remove"} | {
    COLLABORATOR: "remove"
}


def test_only_what_was_decided_is_sent_and_the_page_tells_it(sandbox: SandboxServer) -> None:
    population = read()
    with WorkspaceHook() as hook:
        again = {"present": population, "decided_at": "today"}
        plan, judged = review.plan_decisions(hook.client, population, DECIDED, GUARDS, **again)
        plan.check_losses(4)

        def plan_again() -> plans.Plan:
            return review.plan_decisions(hook.client, population, DECIDED, GUARDS, present=read(), decided_at="")[0]

        plans.apply(hook.client, plan, lambda _: pytest.fail("invited"), plan_again)
    sent = ["delete_invite", "delete_member", "remove_dashboard_collaborator", "update_member"]
    assert sorted(effects(sandbox)) == sent
    done = review.outcomes_of(plan, judged)
    assert {row["who"]: row["outcome"] for row in done} == {
        **dict.fromkeys((OWNER, ANALYST), "kept"),
        **dict.fromkeys((ADMIN, MEMBER, INVITED, COLLABORATOR), "done"),
        ABSENT: "refused",
    }
    last = read()
    last["people"].append({**last["people"][0], "who": "eve|[x](y)@example.com", "id": "new"})
    seen = review.judge(population, DECIDED, GUARDS, last)
    assert {row["who"]: row["detail"] for row in seen if row["outcome"] not in review.FINE} == {ABSENT: "protected"}
    state = {"state": "incomplete", "missing": ["Noah"], "run_id": "r", "files": {"population.json": "ab12"}}
    decisions = {
        "by": {"id": "7", "name": "Rita"},
        "decided_at": "today",
        "decisions": DECIDED,
        "exceptions": {OWNER: "a | b"},
    }
    page = review.page_of(state, population, decisions, [*done, *seen], last, seen)
    for text in (
        "Rita (Airflow user 7)",
        "| done, sent, then done, gone already | done, gone already |",
        "| member (1) |",
        "| previous review | none |",
        "| decided member (1) | ",
        "refused, protected",
        "eve&#124;",
        "ab12",
    ):
        assert text in page
    nothing = review.page_of({**state, "state": "not reviewed"}, {}, {}, [], {}, [])
    assert "nobody" in nothing
    assert "-" in review.page_of(state, population, {}, [], {}, [])


def test_what_changed_since_the_population_is_left_to_the_next_review() -> None:
    population = read()

    def now(who: str, **fields: Any) -> dict[str, Any]:
        return {"people": [{**row, **fields} if row["who"] == who else row for row in population["people"]]}

    joined = {"kind": "member", "id": "x"}
    for who, fields, decision, outcome in (
        (ADMIN, {"level": 15}, 1, "changed"),
        (ADMIN, {"level": 15}, "keep", "changed"),
        (ADMIN, {"level": 1}, "keep", "kept"),
        (ADMIN, {"level": 1}, 1, "done"),
        (INVITED, joined, "remove", "changed"),
        (INVITED, joined, "keep", "kept"),
        (OWNER, {}, "remove", "refused"),
        (MEMBER, {}, "remove", "not sent"),
    ):
        judged = review.judge(population, {**SMALL, who: decision}, GUARDS, now(who, **fields))
        assert {row["who"]: row["outcome"] for row in judged}[who] == outcome, (who, fields, decision)
    # Two invites of one person: whoever is left has the name of the other one, but its id.
    two = [
        {**population["people"][0], "kind": "invite", "who": who, "id": who}
        for who in ("a@b.example", "a@b.example (invite 1)")
    ]
    removed = review.judge(
        {"people": two}, {row["who"]: "remove" for row in two}, GUARDS, {"people": [{**two[1], "who": two[0]["who"]}]}
    )
    assert [row["outcome"] for row in removed] == ["done", "not sent"]
    nameless = {**population, "people": [{**population["people"][0], "kind": "invite", "id": None}]}
    who = nameless["people"][0]["who"]
    assert review.judge(nameless, {who: "remove"}, Guards(frozenset(), 15), nameless)[0]["outcome"] == "refused"
    nobody, options = Guards(frozenset(), None), {"present": population, "decided_at": "today"}
    with pytest.raises(WorkspaceInputError, match="Make somebody else an owner"):
        review.plan_decisions(WorkspaceHook().client, population, {**SMALL, OWNER: "remove"}, nobody, **options)
