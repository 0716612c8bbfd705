"""The page about an access review, for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from airflow_provider_workspace.access.reviews.answer import (
    DECISION_HEADERS,
    FACT_NOT_SHOWN,
    cells_of,
    describe_scope_of_levels,
    fact,
    since_last_review,
    too_many_to_look_at,
)
from airflow_provider_workspace.access.reviews.notes import NOT_NOTED
from airflow_provider_workspace.access.rules.review_records import (
    COMPLETE,
    DONE,
    FINE,
    KEEP,
    LATER,
    OVERRULED,
    REMOVE,
    Answered,
    ClosedReview,
    Decision,
    DecisionOutcome,
    Decisions,
    NotDecided,
    Population,
    ReadList,
    ReviewedPerson,
    Rules,
    describe_decision,
)
from airflow_provider_workspace.api.levels import describe_level
from airflow_provider_workspace.api.timestamps import parse_timestamp
from airflow_provider_workspace.procedures.markdown import inert, table

NEVER_KNOWN = (
    "Who granted access and why; other API keys; access to dashboards, and to projects, that are not listed; "
    "whose API key read all this; the name of the organization. The service does not show what is *not shown*. Expired "
    "invites give no access, and are left out."
)


@dataclass(frozen=True)
class ReviewPage:
    """
    What the page is about; what there is none of is ``None``.

    :param sent: the outcomes of all tries, the earliest first
    :param refused: the latest answer that does not count
    """

    review: ClosedReview
    population: Population | None
    decided: Decisions | None
    sent: tuple[DecisionOutcome, ...]
    last_look: Population | None
    refused: NotDecided | None = None

    def text(self) -> str:
        """Return the page, in Markdown."""
        review = self.review
        lines = [f"## Access review: {review.state}", "", *self._opening(), ""]
        if not review.are_noted:
            lines += [f"**{NOT_NOTED}.**", ""]
        if self.population is not None:
            lines += _section("Scope", _scope(self.population))
            lines += _section("Since the last review", since_last_review(self.population))
            lines += _section("Temporary access", _temporary(self.population, self.decided))
        missing = [[reason] for reason in review.missing]
        lines += _section("Not done", table(("what",), missing))
        lines += _section("Decisions by exception", self._decisions_by_exception())
        lines += _section(f"Everybody with access ({review.read_at or 'not read'})", self._everybody())
        lines += _section("Access since then, left to the next review", self._access_since())
        lines += _section("What this cannot know", [NEVER_KNOWN])
        lines += _section("Facts", table(("what", ""), self._facts()))
        lines += _section("Files", self._files())
        if review.other_files:
            others = [[name] for name in review.other_files]
            names = table(("file",), others)
            lines += _section("Other files, which nothing has read", names)
        return "\n".join(lines)

    # What was decided, in sentences

    def _opening(self) -> list[str]:
        """Return what was decided, whether it is proven, and who reviewed whom."""
        if self.population is None:
            return ["Nobody was reviewed: who has access was not read."]
        if self.decided is None:
            sentence = f"Nobody was reviewed: {len(self.population.people)} people and invites have access."
            return [sentence, "", self._not_decided()]
        result = self._result(self.decided)
        return [f"{result}.", "", _reviewed_by(self.decided)]

    def _result(self, decided: Decisions) -> str:
        """Return what was decided, and how much of it the last look proves."""
        people = f"{len(decided.decisions)} people and invites"
        counts = _numbers_of(decided.decisions.values())
        changed = [outcome for outcome in self.review.outcomes if outcome.decision != KEEP]
        later = sum(outcome.outcome == LATER for outcome in changed)
        waiting = ""
        if later:
            waiting = f" ({later} later, at the end of temporary access)"
        overruled = sum(outcome.outcome == OVERRULED for outcome in changed)
        if overruled:
            waiting += f" ({overruled} overruled: lifted, or decided again by a later review)"
        if self.review.state == COMPLETE:
            read_at = self.last_look.read_at if self.last_look else ""
            return f"{people}: {counts}{waiting}; all of it is proven by the last look at {read_at}"
        done = sum(outcome.outcome == DONE for outcome in changed)
        progress = f"done: {done} of {len(changed)} changes{waiting}"
        return f"{people}; decided: {counts}; {progress}; see *Not done* below"

    def _not_decided(self) -> str:
        """Return what is known of the question that has no answer that counts."""
        if self.refused is None:
            return "Nobody was asked, or the question still stands."
        answered = "no answer counts"
        if self.refused.by is not None:
            reviewer = inert(str(self.refused.by))
            answered = f"the answer of {reviewer} does not count"
        times = ", ".join([*_times_of(self.refused), answered])
        return f"The question: {times}. {_notified(self.refused)}"

    # Each person

    @cached_property
    def _outcomes_sent(self) -> Mapping[str, str]:
        return _outcomes_by_name(self.sent)

    @cached_property
    def _outcomes_seen(self) -> Mapping[str, str]:
        return _outcomes_by_name(self.review.outcomes)

    def _outcome_cells(self, who: str) -> list[str]:
        """Return what was decided about somebody, what was done, and what the last look shows."""
        decision = self.decided.decisions.get(who) if self.decided else None
        described = "-" if decision is None else describe_decision(decision)
        sent = self._outcomes_sent.get(who, "-")
        seen = self._outcomes_seen.get(who, "-")
        return [described, sent, seen]

    def _decisions_by_exception(self) -> list[str]:
        """Return the table of who does not simply stay: lowered, removed, with an exception, or not done."""
        if self.decided is None:
            return ["Nothing was decided."]
        decisions = self.decided.decisions
        exceptions = self.decided.exceptions
        open_names = {outcome.who for outcome in self.review.outcomes if outcome.outcome not in FINE}
        rows: list[list[str]] = []
        for who, decision in decisions.items():
            if decision != KEEP or who in exceptions or who in open_names:
                reason = exceptions.get(who, "")
                rows.append([who, *self._outcome_cells(who), reason])
        return table(("who", "decision", "done", "last look", "exception"), rows)

    def _everybody(self) -> list[str]:
        people = self.population.people if self.population else ()
        rows: list[list[str]] = []
        for person in people:
            outcome = self._outcome_cells(person.who)
            rows.append([*cells_of(person), *outcome])
        columns = (*DECISION_HEADERS, "decision", "done", "last look")
        too_many = too_many_to_look_at(self.population) if self.population else []
        return [*too_many, *table(columns, rows)]

    def _access_since(self) -> list[str]:
        return table(DECISION_HEADERS, map(cells_of, self._people_since()))

    def _people_since(self) -> list[ReviewedPerson]:
        """Return who has access at the last look, and had none when the population was read."""
        if self.population is None or self.last_look is None:
            return []
        pairs = self.population.pairs_in(self.last_look)
        known = {now.who for _, now in pairs if now is not None}
        return [person for person in self.last_look.people if person.who not in known]

    # Facts

    def _facts(self) -> list[tuple[str, str]]:
        review = self.review
        facts = [
            ("state", review.state),
            ("Dag id", review.dag_id),
            ("run id", review.run_id),
            ("airflow", review.airflow),
            ("package", review.package),
            ("organization id", review.organization_id),
            ("service", review.service),
            ("read at", _said(review.read_at)),
            ("closed at", review.closed_at),
        ]
        if self.population is not None:
            facts += _facts_of_population(self.population)
        last_look_at = self.last_look.read_at if self.last_look else "none"
        facts.append(("last look at", last_look_at))
        if self.decided is None:
            facts.append(("decided by", "nobody"))
        else:
            facts += _facts_of_decisions(self.decided)
        return facts + _facts_of_rules(review.rules)

    def _files(self) -> list[str]:
        digests = table(("file", "sha256"), self.review.files.items())
        return [*digests, "", "That of this page is in review.json."]


def _numbers_of(decisions: Iterable[Decision]) -> str:
    """Return how many people each kind of decision is about."""
    listed = list(decisions)
    kept = listed.count(KEEP)
    removed = listed.count(REMOVE)
    lowered = len(listed) - kept - removed
    return f"{kept} kept, {lowered} lowered, {removed} removed"


def _section(title: str, content: Iterable[str]) -> list[str]:
    return [f"## {title}", "", *content, ""]


def _scope(population: Population) -> list[str]:
    """Return what was read: the organization, and each list with its number of rows."""
    domains = ", ".join(population.verified_domains) or "none"
    organization_id = inert(population.organization_id)
    organization = f"{organization_id} at {inert(population.service)}"
    lines = [f"Organization {organization}; verified domains: {inert(domains)}.", ""]
    lines += [_described_list(each) for each in population.lists]
    if not any(each.name == "collaborators" for each in population.lists):
        lines.append("- no boards: no collaborators of dashboards were read")
    lines.append(f"- projects: {describe_scope_of_levels(population)}")
    read_with = ["", inert(population.read_with)] if population.read_with else []
    return [*lines, *read_with]


def _temporary(population: Population, decided: Decisions | None) -> list[str]:
    """Return who had temporary access when the population was read, and what the reviewer did for it."""
    parts = decided.part_in_grants if decided else {}
    rows: list[list[str]] = []
    for person in population.people:
        if person.temporary is None:
            continue
        after = person.level_under_name or "no access"
        part = parts.get(person.who, "-")
        grants = person.temporary.grants or (person.temporary.says,)
        rows += [[person.called, grant, after, part] for grant in grants]
    note = "Temporary access that ended since the last review is in the evidence files of the sweep, if it keeps them."
    columns = ("who", "temporary access", "after it", "the reviewer")
    return [*table(columns, rows), "", note]


def _described_list(each: ReadList) -> str:
    name: str = each.name
    if each.dashboard_id is not None:
        name = f"collaborators of dashboard {each.dashboard_id} in project {each.project_id}"
    count = "the service states no count"
    if each.counted is not None:
        count = f"the service counts {each.counted}"
    return f"- {inert(name)}: {each.rows} rows read, {count}"


# Who reviewed, and when


def _reviewed_by(decided: Decisions) -> str:
    """Return who reviewed whom, how, how long it took, and who was notified."""
    one_by_one = len(decided.decisions) - decided.by_default
    how = f'{one_by_one} were decided one by one, {decided.by_default} by "everybody else stays"'
    decided_at = decided.decided_at or "at an unknown time"
    times = [*_times_of(decided), f"answered {decided_at}"]
    asked = parse_timestamp(decided.asked_at)
    answered = parse_timestamp(decided.decided_at)
    if asked is not None and answered is not None and answered >= asked:
        duration = _duration(answered - asked)
        times.append(f"after {duration}")
    reviewer = inert(str(decided.by))
    when = ", ".join(times)
    sentences = [f"Reviewed by {reviewer}: {how}; {when}."]
    if decided.reviewer_is_reviewed is True:
        sentences.append("**They are one of these people, and decided about themselves.**")
    elif decided.reviewer_is_reviewed:
        sentences.append(f"Whether they are one of these people {decided.reviewer_is_reviewed}.")
    for who, part in decided.part_in_grants.items():
        sentences.append(f"**They reviewed the temporary access of {inert(who)}, and {part} themselves.**")
    sentences.append(_notified(decided))
    return " ".join(sentences)


def _times_of(answered: Answered) -> list[str]:
    """Return when the question was asked and due."""
    return [f"asked {answered.asked_at}", f"due {answered.due_at}"]


def _notified(answered: Answered) -> str:
    """Return who was told of the question: Airflow itself reminds nobody."""
    if not answered.notified:
        return "Nobody was notified; the question stood under Required Actions."
    return f"Notified when it was asked: {inert(', '.join(answered.notified))}. Nobody was reminded later."


def _duration(seconds: float) -> str:
    minutes = int(seconds // 60)
    if minutes == 0:
        return f"{int(seconds)} seconds"
    days, minutes = divmod(minutes, 24 * 60)
    hours, minutes = divmod(minutes, 60)
    parts: list[str] = []
    for number, unit in ((days, "days"), (hours, "hours"), (minutes, "minutes")):
        if number:
            parts.append(f"{number} {unit}")
    return " ".join(parts)


# The table of facts


def _facts_of_population(population: Population) -> list[tuple[str, str]]:
    previous = population.previous
    before = "none"
    if previous is not None:
        before = f"{previous.folder}, read {previous.read_at} (sha256 {previous.sha256})"
    count = len(population.people)
    return [
        ("people", str(count)),
        ("verified domains", _said(population.verified_domains)),
        ("previous review", before),
    ]


def _facts_of_decisions(decided: Decisions) -> list[tuple[str, str]]:
    facts = [
        ("decided by", str(decided.by)),
        ("address of the reviewer", decided.by.email or FACT_NOT_SHOWN),
        ("reviewer is reviewed", _said(decided.reviewer_is_reviewed)),
        ("asked at", decided.asked_at),
        ("due at", decided.due_at),
        ("decided at", _said(decided.decided_at)),
        ("decisions file", _said(decided.decisions_file)),
        ("population sha256", decided.population_sha256),
    ]
    counts = Counter(map(describe_decision, decided.decisions.values()))
    for decision, count in counts.items():
        facts.append((f"decided {decision}", str(count)))
    return facts


def _facts_of_rules(rules: Rules) -> list[tuple[str, str]]:
    owner_level = None if rules.owner_level is None else describe_level(rules.owner_level)
    values = {**rules.model_dump(), "owner_level": owner_level}
    facts: list[tuple[str, str]] = []
    for name, value in values.items():
        words = name.replace("_", " ")
        said = "not set" if value is None else _said(value)
        facts.append((words, said))
    return facts


def _said(value: object) -> str:
    if value is None or isinstance(value, bool):
        return fact(value)
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value)


def _outcomes_by_name(outcomes: Iterable[DecisionOutcome]) -> Mapping[str, str]:
    """Return what became of each person, in words; of several tries, each that says something else."""
    words: dict[str, dict[str, None]] = {}  # a dictionary keeps each once, in order
    for outcome in outcomes:
        of_person = words.setdefault(outcome.who, {})
        of_person[str(outcome)] = None
    return {who: ", then ".join(of_person) for who, of_person in words.items()}
