"""An access review against the sandbox: population, form, answers, what is sent, and the page."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.api.operations.invites import CreateInvite
from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.procedures import review
from airflow_provider_workspace.procedures.members import Guards
from airflow_provider_workspace.sandbox.seed import SEED

if TYPE_CHECKING:
    from tests.conftest import Connect

pytestmark = pytest.mark.usefixtures("linked")

OWNER, ADMIN, MEMBER = "olive.owner@example.com", "adam.admin@example.com", "mina.member@example.com"
ABSENT, ANALYST, INVITED = "noah.newton@example.com", "grace.analyst@example.com", "liv.invited@example.com"
COLLABORATOR = f"{ANALYST} on dashboard {SEED.dashboard_id}"
EVERYBODY = (OWNER, ADMIN, MEMBER, ABSENT, ANALYST, INVITED, COLLABORATOR)
WORDS = ("not sent", "gone already")
AT: dict[str, Any] = {"decided_at": "2026-11-22T00:00:00Z"}
GUARDS = Guards(frozenset({ABSENT}), 15)
DASHBOARD = {"project_id": str(SEED.project_id), "dashboard_id": SEED.dashboard_id}


@pytest.fixture
def linked(connect: Connect) -> None:
    connect()


def read(**options: Any) -> dict[str, Any]:
    with WorkspaceHook() as hook:
        options = {"now": datetime.now(timezone.utc), "dashboards": [DASHBOARD], "previous": None, **options}
        return review.read_population(hook.client, SEED.organization_id, GUARDS, **options)


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
    assert look[OWNER] == ["owner", "stays: an owner (owner_level=15)"]
    assert look[ADMIN] == ["admin"]
    assert look[MEMBER] == look[INVITED] == []
    assert look[ABSENT] == ["no second factor", "not seen for 90 days", "stays: protected"]
    assert not population["people"][-1]["look"]
    with WorkspaceHook() as hook:
        for _ in range(2):
            hook.client.send(CreateInvite(organization_id=SEED.organization_id, target_email=INVITED, level=1))
    assert {f"{INVITED} (invite {number})" for number in (6, 7)} < set(rows(read(), "who"))
    assert review.csv_rows(population)[0]["decision"] == ""


def test_people_who_are_new_or_raised_since_the_last_review_are_looked_at() -> None:
    first = read(dashboards=())
    before = {**first, "people": [{**row, "level": 1} for row in first["people"] if row["who"] not in (MEMBER, OWNER)]}
    again = read(previous={**before, "folder": "last", "sha256": "1"})
    assert {who: change for who, change in rows(again, "change").items() if change} == {
        **dict.fromkeys((OWNER, MEMBER, COLLABORATOR), "new"),
        ADMIN: "raised",
    }
    assert set(rows(first, "change").values()) == {None}
    assert again["previous"] == {"folder": "last", "read_at": before["read_at"], "sha256": "1"}
    assert rows(again, "look")[MEMBER] == ["new"]
    # Who was removed, or raised after the decision, was not reviewed as they are now.
    after = {"people": [{**row, "level": 8} for row in first["people"] if row["who"] not in (ABSENT, OWNER)]}
    left = review.reviewed(first, after)
    assert rows(left, "level") == {ADMIN: 8, MEMBER: 1, ANALYST: 1, INVITED: 1}


def test_the_form_asks_about_each_person_or_about_those_who_do_not_stay() -> None:
    population = read()
    form = review.form_of(population)
    assert list(form) == [*rows(population, "who"), "exceptions"]
    assert form[INVITED]["schema"]["enum"] == form[COLLABORATOR]["schema"]["enum"] == ["keep", "remove"]
    assert form[OWNER]["schema"]["enum"] == form[ABSENT]["schema"]["enum"] == ["keep"]
    assert form[MEMBER]["value"] == ""
    many = review.form_of(large())
    assert list(many)[:3] == ["remove", "lower_to_member", "all_others_stay"]
    assert many["lower_to_member"]["schema"]["examples"] == [ADMIN]
    assert many["remove"]["schema"]["type"] == ["null", "array"]
    question = review.question_of(population, "/evidence/1")
    assert "population.csv" in question
    assert question.index(ABSENT) > 0 > question.find(MEMBER)
    odd = {**population["people"][0], "who": "<a|b>" * 200}
    cut = review.question_of(
        {**population, "previous": {"read_at": "2026"}, "left": ["<a|b>"], "people": [odd] * 300}, "s3://evidence"
    )
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
    file[1] |= {"who": "'" + file[1]["who"], "decision": "remove"}
    decided = review.read_answer(many, {"decisions_file": "x.csv", "all_others_stay": False}, file)
    assert list(decided.values()).count("keep") == len(file) - 1
    for name, value, message in (
        ("decision", "ad", r"row 2 of the file: 'ad'\): expected one of keep"),
        ("decision", "20", r"row 2 of the file: '20'\): expected one of keep"),
        ("who", "x@example.com", "not decided.*'x@example.com' .*in the population"),
    ):
        with pytest.raises(WorkspaceInputError, match=message):
            review.read_answer(many, {"all_others_stay": True}, [{**file[0], name: value}, *file[1:]])


@pytest.mark.parametrize(
    ("size", "answer", "message"),
    [
        ("small", {**SMALL, INVITED: "lower to member"}, f"'{INVITED}' .*expected one of keep, remove"),
        ("small", {**SMALL, "exceptions": "x@example.com: why"}, "exceptions, 'x@example.com'"),
        ("small", {**SMALL, "exceptions": OWNER}, f"exceptions, '{OWNER}'"),
        ("large", {**LARGE, "remove": "x@example.com"}, "'x@example.com' .*expected somebody"),
        ("large", {**LARGE, "remove": [ADMIN], "lower_to_member": [ADMIN]}, f"'{ADMIN}' .*remove.*lower to member"),
        ("large", {**LARGE, "lower_to_member": [MEMBER]}, f"'{MEMBER}' .*expected one of"),
    ],
)
def test_answers_that_do_not_decide_are_refused(size: str, answer: dict[str, Any], message: str) -> None:
    population = read() if size == "small" else large()
    with pytest.raises(WorkspaceInputError, match=rf"^\[answer-refused\] {review.AGAIN}.*{message}"):
        review.read_answer(population, answer)


def test_the_page_tells_what_was_done() -> None:
    population, decided = read(), {**SMALL, ADMIN: 1, MEMBER: "remove"}
    gone = [row for row in population["people"] if row["who"] != MEMBER]
    last = {**population, "people": [*gone, {**gone[0], "who": "eve|[x](y)@example.com", "id": "new"}]}
    before = review.judge(population, decided, last, review.NOT_SENT, "gone already", **AT)
    seen = review.judge(population, decided, last, "not done", "gone", **AT)
    assert review.left_of(seen) == [f"{ADMIN} (1): not done"]
    state = {"state": "incomplete", "missing": ["Noah"], "run_id": "r__1", "files": {"last_look.json": "ab12"}}
    state |= {"rules": {"owner_level": None, "protected": []}, "outcomes": seen}
    decisions = {"by": {"id": "7", "name": "Rita"}, "decided_at": "today", "decisions": decided}
    decisions["exceptions"] = {OWNER: "a | b"}
    sent = [{**row, "outcome": "done", "detail": "sent"} for row in before if row["who"] == MEMBER]
    page = review.page_of(state, population, decisions, [*sent, *before], last)
    for text in (
        *("Rita (Airflow user 7)", "| run id | r__1 |", "| last_look.json | ab12 |", "| owner level | not set |"),
        *("| done, sent, then done, gone already | done, gone |", "| member (1) | not sent | not done |"),
        *("| previous review | none |", "| protected | none |", "| decided member (1) | ", "eve&#124;", "a &#124; b"),
    ):
        assert text in page
    assert "nobody" in review.page_of({**state, "outcomes": []}, {}, {}, [], {})


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
        (MEMBER, {"kept": "protected"}, "remove", "refused"),
        (MEMBER, {}, "remove", "not sent"),
    ):
        judged = review.judge(population, {**SMALL, who: decision}, now(who, **fields), *WORDS, **AT)
        assert {row["who"]: row["outcome"] for row in judged}[who] == outcome, (who, fields, decision)
    # Two invites of one person: whoever is left has the name of the other one, but its id.
    two = [
        {**population["people"][0], "kind": "invite", "who": who, "id": who, "kept": ""}
        for who in ("a@b.example", "a@b.example (invite 1)")
    ]
    removed = review.judge(
        {"people": two},
        {row["who"]: "remove" for row in two},
        {"people": [{**two[1], "who": two[0]["who"]}]},
        *WORDS,
        **AT,
    )
    assert [row["outcome"] for row in removed] == ["done", "not sent"]
    nameless = {**population, "people": [{**population["people"][0], "kind": "invite", "id": None, "kept": ""}]}
    who = nameless["people"][0]["who"]
    assert review.judge(nameless, {who: "remove"}, nameless, *WORDS, **AT)[0]["outcome"] == "refused"
    options = {"present": now(OWNER, kept=""), "decided_at": "today"}
    with pytest.raises(WorkspaceInputError, match="Make somebody else an owner"):
        review.plan_decisions(WorkspaceHook().client, population, {**SMALL, OWNER: "remove"}, **options)
