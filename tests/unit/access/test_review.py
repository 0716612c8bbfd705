"""An access review against the sandbox: population, form, answers, what is planned, and the page."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.access.reviews.answer import (
    AGAIN,
    form_of,
    question_of,
    read_answer,
    refuse_what_was_not_offered,
    since_last_review,
)
from airflow_provider_workspace.access.reviews.outcome import plan_decisions
from airflow_provider_workspace.access.reviews.page import ReviewPage
from airflow_provider_workspace.access.reviews.population import (
    ReviewedDashboard,
    _Access,
    _named,
    csv_rows,
    read_population,
    reviewed,
)
from airflow_provider_workspace.access.rules.guards import Guards
from airflow_provider_workspace.access.rules.review_outcomes import AFTER, BEFORE, judge
from airflow_provider_workspace.access.rules.review_records import (
    NOT_SENT,
    ClosedReview,
    DecisionOutcome,
    Decisions,
    LastReview,
    Population,
    PreviousReview,
    ReadList,
    ReviewedPerson,
    Reviewer,
    Rules,
    left_of,
)
from airflow_provider_workspace.api.models import User
from airflow_provider_workspace.api.operations.invites import CreateInvite, DeleteInvite
from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.procedures.markdown import fit, inert
from airflow_provider_workspace.sandbox.seed import SEED
from tests.audit import say

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = pytest.mark.usefixtures("linked")

OWNER, ADMIN, MEMBER = "olive.owner@example.com", "adam.admin@example.com", "mina.member@example.com"
ABSENT, ANALYST, INVITED = "noah.newton@example.com", "grace.analyst@example.com", "liv.invited@example.com"
COLLABORATOR = f"{ANALYST} on dashboard {SEED.dashboard_id}"
EVERYBODY = (OWNER, ADMIN, MEMBER, ABSENT, ANALYST, INVITED, COLLABORATOR)
GUARDS = Guards(frozenset({ABSENT}), 15)
BOARD = ReviewedDashboard(str(SEED.project_id), str(SEED.dashboard_id))
RULES = Rules(
    reviewers=("7",),
    allow_self_approval=False,
    owner_level=None,
    max_removals=None,
    protected=(),
    review_timeout="1 day",
    decisions_count_for="400 days",
)


@pytest.fixture
def linked(connect: Connect) -> None:
    connect()


def read(**options: Any) -> Population:
    with WorkspaceHook() as hook:
        options = {"now": datetime.now(timezone.utc), "boards": [BOARD], **options}
        return read_population(hook.client, SEED.organization_id, GUARDS, **options)


def rows(population: Population, name: str) -> dict[str, Any]:
    return {person.who: getattr(person, name) for person in population.people}


def changed(population: Population, who: str, **fields: Any) -> Population:
    """Return a population in which somebody is different."""
    people = [one.model_copy(update=fields) if one.who == who else one for one in population.people]
    return population.model_copy(update={"people": tuple(people)})


def of(population: Population, *people: ReviewedPerson) -> Population:
    return population.model_copy(update={"people": people})


def large() -> Population:
    population = read()
    (member,) = [person for person in population.people if person.who == MEMBER]
    fields = {"look": (), "group": ""}
    more = [member.model_copy(update={"who": f"sam.{n}@example.com", "id": f"sam-{n}", **fields}) for n in range(30)]
    return of(population, *population.people, *more)


def decisions(decided: dict[str, Any], **fields: Any) -> Decisions:
    known: dict[str, Any] = {
        "decided_at": "2026-11-22T00:00:00Z",
        "by": Reviewer(id="7", name="Rita"),
        "asked_at": "2026-11-21T00:00:00Z",
        "due_at": "2026-12-05T00:00:00Z",
        "notified": (),
        "rules": RULES,
        "answer": {},
        "exceptions": {},
        "reviewer_is_reviewed": False,
        "population_sha256": "1",
    }
    return Decisions(**{**known, **fields}, decisions=decided)


def test_the_population_names_everybody_and_whom_to_look_at() -> None:
    population = read()
    kinds = rows(population, "kind")
    assert set(kinds) == set(EVERYBODY)
    assert (kinds[INVITED], kinds[COLLABORATOR]) == ("invite", "collaborator")
    look = rows(population, "look")
    assert look[OWNER] == ("owner", "stays: an owner (owner_level=15)")
    assert look[ADMIN] == ("admin",)
    assert look[MEMBER] == ()
    assert look[INVITED] == ()
    assert look[ABSENT] == ("not seen for 90 days", "no second factor", "stays: protected")
    assert {group: [person.who for person in people] for group, people in population.groups.items()} == {
        "owners and administrators": [OWNER, ADMIN],
        "not seen for 90 days": [ABSENT],
        "no second factor": [ANALYST],
        "": [COLLABORATOR, INVITED, MEMBER],
    }
    row = csv_rows(population)[0]
    assert (row["decision"], row["level"], row["outside_verified_domains"]) == ("", "owner (15)", False)


def test_several_invites_of_one_address_are_named_with_their_ids() -> None:
    create = CreateInvite(organization_id=SEED.organization_id, target_email=INVITED, level=1)
    with WorkspaceHook() as hook:
        hook.client.send(create)
        hook.client.send(create)
    invites = [person for person in read().people if person.email == INVITED]
    others = [f"{INVITED} (invite {person.id})" for person in invites[1:]]
    assert len(others) == 2
    assert [person.who for person in invites] == [INVITED, *others]


def test_not_shown_is_not_never_and_what_is_true_of_nearly_everybody_is_said_once(sandbox: SandboxServer) -> None:
    """Administrators come first, at most a fifth are looked at first, and all others stand there by name."""
    sandbox.add_members(55)
    members = [member.to_dict() for member in WorkspaceHook().list_members()]
    for number, member in enumerate(members):
        member["is_2fa_enabled"] = number == 0
        if number in (2, 3):
            member["last_login"] = None
        elif number == 4:
            del member["last_login"]
        else:
            member["last_login"] = datetime.now(timezone.utc).isoformat()
    say(sandbox, "list_members", *members)
    population = read()
    groups = population.groups
    assert list(groups) == ["owners and administrators", "never logged in", ""]
    assert sum(map(len, groups.values())) - len(groups[""]) <= len(population.people) / 5
    assert [person.who for person in groups[""]] == sorted(person.who for person in groups[""])
    assert population.too_many == ("no second factor: 59 of 62",)
    assert "no second factor" not in str(rows(population, "look"))
    never = {who for who, look in rows(population, "look").items() if "never logged in" in look}
    assert never == {str(members[number]["user"]["email"]) for number in (2, 3)}
    question = question_of(population, "/evidence/1").replace("<wbr>", "")
    for line in question.splitlines():
        assert ("never" in line.split(" | ")) == line.startswith(tuple(f"| {who}" for who in never))
        assert not ("never logged in" in line and "not shown" in line)
    assert "**Owners and administrators: 2**" in question
    assert "True of too many to look at them first: no second factor: 59 of 62." in question
    assert "To look at first: 4 of 62." in question


def test_two_people_never_look_the_same(sandbox: SandboxServer) -> None:
    members = [member.to_dict() for member in WorkspaceHook().list_members()]
    first, second = ("mi\u200bna.member@example.com", "m\u0456na.member@example.com")
    for email, member in zip((first, second), members[:2], strict=True):
        member["user"] |= {"email": email, "first_name": "Mina\u202e"}
    say(sandbox, "list_members", *members)
    population = read()
    form = form_of(population)
    assert {"mi<U+200B>na.member@example.com", "m\u0456<U+0456>na.member@example.com"} <= set(form)
    shown = f"{form} {question_of(population, '/evidence/1')} {csv_rows(population)}"
    assert [char for char in ("\u200b", "\\u200b", "\u202e", "\\u202e", "m\u0456n") if char in shown] == []
    decided = answered(population, dict.fromkeys(rows(population, "who"), "keep"))
    assert set(decided.decisions) == set(form) - {"exceptions"}


def test_the_population_says_which_lists_were_read() -> None:
    members, invites = ReadList(name="members", rows=5, counted=5), ReadList(name="invites", rows=2, counted=2)
    board = {"project_id": BOARD.project_id, "dashboard_id": BOARD.dashboard_id}
    assert set(read(boards=()).lists) == {members, invites}
    (read_board,) = set(read().lists) - {members, invites}
    assert read_board.model_dump(exclude={"counted"}) == {"name": "collaborators", "rows": 1, **board}


def test_people_who_are_new_or_raised_since_the_last_review_are_looked_at() -> None:
    first = read(boards=())
    known = [person for person in first.people if person.who not in (MEMBER, OWNER)]
    before_now = [person.model_copy(update={"level": 1}) for person in known]
    gone = before_now[0].model_copy(update={"who": "gone@example.com", "id": "gone"})
    before = of(first, *before_now, gone)
    place = PreviousReview(folder="last", read_at=before.read_at, sha256="1", people=5)
    again = read(last=LastReview(review=place, population=before))
    changes = {who: change for who, change in rows(again, "change").items() if change}
    assert changes == {OWNER: "new", MEMBER: "new", COLLABORATOR: "new", ADMIN: "raised"}
    assert rows(again, "look")[MEMBER] == ("new",)
    assert again.previous == place
    assert since_last_review(again) == [
        f"The last review, read {first.read_at}, left 5, + 3 joined - 1 gone = 7 now.",
        "",
        f"- Joined since {first.read_at}: {OWNER}, {COLLABORATOR}, {MEMBER}.",
        f"- Gone since {first.read_at}: gone@example.com.",
    ]


def test_without_an_earlier_review_nobody_is_new() -> None:
    first = read(boards=())
    assert set(rows(first, "change").values()) == {None}
    assert since_last_review(first) == ["There is no earlier review."]


def test_who_was_removed_or_raised_after_the_decision_was_not_reviewed_as_they_are_now() -> None:
    first = read(boards=())
    staying = [person for person in first.people if person.who not in (ABSENT, OWNER)]
    raised = [person.model_copy(update={"level": 8}) for person in staying]
    left = reviewed(first, of(first, *raised))
    assert rows(left, "level") == {ADMIN: 8, MEMBER: 1, ANALYST: 1, INVITED: 1}


def test_two_invites_of_one_person_are_told_apart_by_their_ids_and_not_by_position() -> None:
    with WorkspaceHook() as hook:
        hook.client.send(CreateInvite(organization_id=SEED.organization_id, target_email=INVITED, level=1))
        first = read()
        hook.client.send(DeleteInvite(organization_id=SEED.organization_id, invite_id=SEED.invite_id))
    place = PreviousReview(folder="last", read_at=first.read_at, sha256="1", people=len(first.people))
    again = read(last=LastReview(review=place, population=first))
    (invite,) = [person for person in again.people if person.email == INVITED]
    (before,) = [person for person in first.people if person.id == invite.id]
    assert (invite.change, len(again.left or ())) == ("", 1)
    assert before.who != invite.who, "it has the plain name now"


def test_one_dashboard_id_in_two_projects_is_two_boards() -> None:
    population = read()
    (first,) = [person for person in population.people if person.kind == "collaborator"]
    second = first.model_copy(update={"project_id": "99", "who": f"{first.who} of project 99"})
    both = of(population, *population.people, second)
    decided = decisions({**SMALL, first.who: "keep", second.who: "remove"})
    (due,) = [one for one in judge(both, decided, both, BEFORE) if one.outcome == NOT_SENT]
    assert due.who == second.who
    gone = judge(both, decided, population, AFTER)
    assert {one.outcome for one in gone if one.who == second.who} == {"done"}


def test_each_access_has_a_name_that_no_other_has() -> None:
    user = User(uuid="u-1", email="ada@example.com")
    north, south = (ReviewedDashboard(project_id=project, dashboard_id="1") for project in ("1", "2"))
    hidden = _Access("member", User(), None)
    found = [_Access("collaborator", user, None, board) for board in (north, south, south, south)]
    assert list(_named([*found, hidden, hidden, hidden])) == [
        "ada@example.com on dashboard 1",
        "ada@example.com on dashboard 1 of project 2",
        "ada@example.com on dashboard 1 of project 2 (collaborator u-1)",
        "ada@example.com on dashboard 1 of project 2 (collaborator u-1) 3",
        "member None",
        "member None (member None)",
        "member None (member None) 6",
    ]


def test_a_population_with_one_name_twice_or_without_somebody_decided_is_refused() -> None:
    population = read()
    first = population.people[0]
    with pytest.raises(ValueError, match="two rows have the same name"):
        Population(**{**population.model_dump(), "people": (first, first)})
    mistakes = refuse_what_was_not_offered(population, {"mallory@example.com": "keep"})
    assert mistakes[:2] == ["'mallory@example.com' is not in the population", f"{first.who!r} is not decided"]


def test_whether_somebody_is_outside_depends_on_verified_domains() -> None:
    outside = "bo@elsewhere.example"
    with WorkspaceHook() as hook:
        hook.client.send(CreateInvite(organization_id=SEED.organization_id, target_email=outside, level=1))
        assert "outside the verified domains" in rows(read(), "look")[outside]
        for domain in hook.list_domains():
            hook.delete_domain(domain_id=str(domain.id))
        assert set(rows(read(), "outside").values()) == {None}


def test_the_form_asks_about_each_person() -> None:
    population = read()
    form = form_of(population)
    assert list(form) == [*rows(population, "who"), "exceptions"]
    choices = {who: form[who]["schema"]["enum"] for who in (INVITED, COLLABORATOR, OWNER, ABSENT)}
    assert choices[INVITED] == ["keep", "remove"]
    assert choices[COLLABORATOR] == ["keep", "remove"]
    assert choices[OWNER] == ["keep"]
    assert choices[ABSENT] == ["keep"]
    assert form[MEMBER]["value"] == ""
    assert form[ADMIN]["description"].startswith("member, admin (8), last log-in ")


def test_of_many_people_those_to_look_at_first_have_a_field_and_all_others_one_choice() -> None:
    form = form_of(large())
    assert list(form) == [OWNER, ADMIN, ABSENT, ANALYST, "remove", "everybody_else", "exceptions"]
    assert form[ADMIN]["schema"]["title"] == f"{ADMIN} (Adam Admin)"
    assert {form[who]["value"] for who in FIRST} == {""}, "Done is off until each is chosen"
    assert form[ADMIN]["schema"]["enum"] == ["keep", "remove", "lower to member"]
    assert form["remove"]["schema"]["type"] == ["null", "array"]
    assert form["remove"]["schema"]["title"] == "of the 33 others, remove"
    assert form["remove"]["schema"]["values_display"][MEMBER] == f"{MEMBER} (Mina Member)"
    assert form["everybody_else"]["schema"]["enum"] == ["keep"]


def test_with_a_file_nobody_has_to_be_chosen_in_the_form() -> None:
    form = form_of(large(), has_file=True)
    choices = {name: field["schema"]["type"] for name, field in form.items() if "enum" in field["schema"]}
    assert choices == {name: ["null", "string"] for name in (*FIRST, "everybody_else")}


def test_the_question_begins_with_whom_to_look_at() -> None:
    question = question_of(read(), "/evidence/1").replace("<wbr>", "")
    assert "population.csv" in question
    assert 0 < question.index(ABSENT) < question.index(MEMBER), "everybody, first whom to look at"


def test_a_question_that_is_too_long_says_how_many_are_not_shown() -> None:
    population = read()
    long_name = population.people[0].model_copy(update={"who": "<a|b>" * 200})
    place = PreviousReview(folder="last", read_at="2026", sha256="1", people=1)
    compared = {"previous": place, "left": ("<a|b>",)}
    many = of(population, *[long_name] * 300).model_copy(update=compared)
    question = question_of(many, "s3://evidence")
    assert len(question.encode()) < 61_000
    assert re.search(r"\*\*\d+ of 300 are not shown here\. .* in `s3://evidence/population\.csv`\.\*\*$", question)
    assert "<a|b>" not in question


@pytest.mark.parametrize("count", [40, 500])
def test_everybody_is_on_the_question(count: int) -> None:
    population = read()
    (member,) = [person for person in population.people if person.who == MEMBER]
    fields = {"look": ("no second factor", "not seen for 90 days", "new")}
    people = [
        member.model_copy(update={"who": f"a.rather.long.name.{n:03}@example.com", **fields}) for n in range(count)
    ]
    question = question_of(of(population, *people), "s3://evidence").replace("<wbr>", "")
    called = "{person.who} (Mina Member)" if count == 40 else "{person.who}"
    rows = [f"| {called.format(person=person)} | no second factor, " for person in people]
    assert [row for row in rows if row not in question] == []
    assert "not shown here" not in question


@pytest.mark.parametrize(
    ("text", "readable"),
    [
        ("http://127.0.0.1:80/a_b", "`http://127.0.0.1:80/a_b`"),
        ("see https://x.example/z, or HTTP://a|b", "see `https://x.example/z`, or `HTTP://a`&#124;b"),
        ("www.x.example", "`www.x.example`"),
        ("1http://`x`", "1http://&#96;x&#96;"),
        ("[a](s3://b)", "&#91;a&#93;(`s3://b`)"),
        ("orgs:read at 06:00", "orgs:read at 06:00"),
    ],
)
def test_a_url_of_others_is_readable_and_no_link(text: str, readable: str) -> None:
    """Airflow's Markdown makes a link also of a URL whose characters are escaped, and none of code."""
    assert inert(text) == readable


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("member olive.owner@x.example, kept", "member olive.owner@<wbr>x.example, kept"),
        ("a_@x.example <b@x.example>", "a&#95;@<wbr>x.example &#60;b@<wbr>x.example&#62;"),
        ("https://a@x.example/ and a@x.example", "`https://a@x.example/` and a@<wbr>x.example"),
        ("@team at 6 @ 7", "&#64;team at 6 &#64; 7"),
    ],
)
def test_an_address_in_a_question_is_no_link(text: str, line: str) -> None:
    """Airflow's Markdown makes a link of an address, whatever is escaped; it leaves out HTML, which parts the text."""
    assert fit([inert(text)]) == [line]


SMALL = dict.fromkeys(EVERYBODY, "keep")
FIRST = dict.fromkeys((OWNER, ADMIN, ABSENT, ANALYST), "keep")
LARGE = {**FIRST, "remove": None, "everybody_else": "keep", "decisions_file": "", "exceptions": ""}


def answered(population: Population, answer: dict[str, Any], file: list[dict[str, str]] | None = None) -> Any:
    return read_answer(population, answer, form_of(population, has_file=True), file)


def test_an_answer_decides_each_person() -> None:
    answer = {**SMALL, ADMIN: "lower to member", INVITED: "remove", "exceptions": f"{OWNER}: runs it\n\n"}
    decided = answered(read(), answer)
    assert decided.decisions == {**SMALL, ADMIN: 1, INVITED: "remove"}
    assert decided.exceptions == {OWNER: "runs it"}
    assert decided.by_default == []


def test_an_answer_decides_those_to_look_at_first_and_that_all_others_stay() -> None:
    many = large()
    decided = answered(many, {**LARGE, "remove": [MEMBER], ADMIN: "lower to member"})
    leaving = {who: decision for who, decision in decided.decisions.items() if decision != "keep"}
    assert leaving == {MEMBER: "remove", ADMIN: 1}
    assert len(decided.by_default) == len(many.people) - 5


def test_an_answer_that_keeps_everybody_without_a_look_is_refused() -> None:
    with pytest.raises(WorkspaceInputError, match=r"4 people to look at first without a choice; '.*not decided"):
        answered(large(), {"everybody_else": "keep"})


def rows_of_file(population: Population) -> list[dict[str, str]]:
    """Return the rows of a decisions file in which everybody stays."""
    return [{"who": row["who"], "decision": "Keep"} for row in csv_rows(population)]


def test_a_file_decides_everybody() -> None:
    many = large()
    file = rows_of_file(many)
    file[-1] = {"who": "'" + file[-1]["who"], "decision": "remove"}
    decided = answered(many, {"decisions_file": "x.csv", "everybody_else": None}, file)
    decisions = list(decided.decisions.values())
    assert decisions.count("keep") == len(file) - 1


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("decision", "ad", r"row 2 of the file: 'ad'\): expected one of keep"),
        ("decision", "20", r"row 2 of the file: '20'\): expected one of keep"),
        ("who", "x@example.com", "'x@example.com' .*in the population.*not decided"),
    ],
)
def test_a_file_with_a_mistake_decides_nobody(name: str, value: str, message: str) -> None:
    many = large()
    first, *others = rows_of_file(many)
    with pytest.raises(WorkspaceInputError, match=message):
        answered(many, {"everybody_else": "keep"}, [{**first, name: value}, *others])


@pytest.mark.parametrize(
    ("size", "answer", "message"),
    [
        ("small", {**SMALL, INVITED: "lower to member"}, f"'{INVITED}' .*expected one of keep, remove"),
        ("small", {**SMALL, "exceptions": "x@example.com: why"}, "exceptions, 'x@example.com'"),
        ("small", {**SMALL, "exceptions": OWNER}, f"exceptions, '{OWNER}'"),
        ("large", {**LARGE, "remove": "x@example.com"}, "'x@example.com' .*expected somebody"),
        ("large", {**LARGE, "remove": [ADMIN]}, f"'{ADMIN}' .*'keep', field 'remove': 'remove'"),
        ("large", {**LARGE, ADMIN: "lower to owner"}, f"'{ADMIN}' .*expected one of"),
        ("large", {**LARGE, "everybody_else": None}, r"'sam\.\d@example\.com' \(not decided\)"),
    ],
)
def test_answers_that_do_not_decide_are_refused(size: str, answer: dict[str, Any], message: str) -> None:
    population = read() if size == "small" else large()
    with pytest.raises(
        WorkspaceInputError, match=rf"^\[answer-refused\] The answer has \d+ mistakes?\. {AGAIN}: .*{message}"
    ):
        answered(population, answer)


def closed_review(population: Population, outcomes: list[DecisionOutcome]) -> ClosedReview:
    """Return an incomplete review."""
    return ClosedReview(
        dag_id="quarterly",
        run_id="r__1",
        package="1",
        airflow="not set",
        organization_id=population.organization_id,
        service=population.service,
        rules=RULES,
        state="incomplete",
        read_at=population.read_at,
        closed_at=population.read_at,
        missing=("Noah",),
        files={"last_look.json": "ab12"},
        outcomes=tuple(outcomes),
    )


PAGE_TEXTS = (
    "Rita (Airflow user 7)",
    "| run id | r__1 |",
    "| last_look.json | ab12 |",
    "| owner level | not set |",
    "| done, sent, then done, gone already | done, gone |",
    "| lower to member (1) | not sent | not done |",
    "| previous review | none |",
    "| protected | none |",
    "| decided lower to member (1) | ",
    "eve&#124;",
    "a &#124; b",
    "decided: 5 kept, 1 lowered, 1 removed; done: 1 of 2 changes; see *Not done* below.",
)


def test_the_page_tells_what_was_done() -> None:
    population = read()
    decided = decisions({**SMALL, ADMIN: 1, MEMBER: "remove"}, exceptions={OWNER: "a | b"}, decisions_file="none")
    staying = [person for person in population.people if person.who != MEMBER]
    eve = staying[0].model_copy(update={"who": "eve|[x](y)@example.com", "id": "new"})
    last = of(population, *staying, eve)
    before = judge(population, decided, last, BEFORE)
    after = judge(population, decided, last, AFTER)
    assert left_of(after) == [f"{ADMIN} (lower to member (1)): not done"]
    removals = [outcome for outcome in before if outcome.who == MEMBER]
    sent = [outcome.model_copy(update={"outcome": "done", "detail": "sent"}) for outcome in removals]
    page = ReviewPage(
        closed_review(population, after), population=population, decided=decided, sent=(*sent, *before), last_look=last
    ).text()
    assert [text for text in PAGE_TEXTS if text not in page] == []
    headings = ["## Scope", "## Since the last review", "## Decisions by exception", "## Everybody"]
    places = [page.index(heading) for heading in headings]
    assert places == sorted(places)
    exceptions = page[places[2] : places[3]].splitlines()
    first_cells = [line.split(" | ")[0].removeprefix("| ") for line in exceptions if "@" in line]
    assert first_cells == [OWNER, ADMIN, MEMBER]


def test_the_page_says_that_nobody_was_reviewed() -> None:
    closed = closed_review(read(), [])
    assert "Nobody was reviewed" in ReviewPage(closed, population=None, decided=None, sent=(), last_look=None).text()


JOINED = {"kind": "member", "id": "x"}


@pytest.mark.parametrize(
    ("who", "fields", "decision", "outcome"),
    [
        (ADMIN, {"level": 15}, 1, "changed"),
        (ADMIN, {"level": 15}, "keep", "changed"),
        (ADMIN, {"level": 1}, "keep", "kept"),
        (ADMIN, {"level": 1}, 1, "done"),
        (INVITED, JOINED, "remove", "changed"),
        (INVITED, JOINED, "keep", "kept"),
        (MEMBER, {"kept": "protected"}, "remove", "refused"),
        (MEMBER, {}, "remove", "not sent"),
    ],
)
def test_what_changed_since_the_population_is_left_to_the_next_review(
    who: str, fields: dict[str, Any], decision: Any, outcome: str
) -> None:
    population = read()
    present = changed(population, who, **fields)
    judged = judge(population, decisions({**SMALL, who: decision}), present, BEFORE)
    (found,) = [judged_one.outcome for judged_one in judged if judged_one.who == who]
    assert found == outcome


def some_invite(population: Population, **fields: Any) -> ReviewedPerson:
    return population.people[0].model_copy(update={"kind": "invite", "kept": "", **fields})


def test_of_two_invites_of_one_person_the_one_that_is_left_is_known_by_its_id() -> None:
    """It has the name of the other one now."""
    population = read()
    names = ("a@b.example", "a@b.example (invite 1)")
    first, second = [some_invite(population, who=name, id=name) for name in names]
    left = of(population, second.model_copy(update={"who": names[0]}))
    judged = judge(of(population, first, second), decisions(dict.fromkeys(names, "remove")), left, BEFORE)
    assert [outcome.outcome for outcome in judged] == ["done", "not sent"]


def test_who_has_no_id_is_not_removed() -> None:
    population = read()
    nameless = some_invite(population, id=None)
    alone = of(population, nameless)
    (refused,) = judge(alone, decisions({nameless.who: "remove"}), alone, BEFORE)
    assert refused.outcome == "refused"


def test_who_stays_and_is_gone_was_not_removed_by_the_review() -> None:
    population = read()
    judged = judge(population, decisions(SMALL), of(population), AFTER)
    assert {(outcome.outcome, outcome.detail) for outcome in judged} == {("gone", "not by this review")}


def test_the_last_owner_is_not_removed() -> None:
    population = read()
    present = changed(population, OWNER, kept="")
    decided = decisions({**SMALL, OWNER: "remove"})
    with pytest.raises(WorkspaceInputError, match="Make somebody else an owner"):
        plan_decisions(WorkspaceHook().client, population, decided, present=present)
