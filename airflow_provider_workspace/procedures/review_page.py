"""The page about an access review, for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from airflow_provider_workspace.api.levels import describe_level
from airflow_provider_workspace.api.timestamps import parse_timestamp
from airflow_provider_workspace.procedures.markdown import inert, table
from airflow_provider_workspace.procedures.review_answer import HEADERS, cells_of
from airflow_provider_workspace.procedures.review_records import (
    COMPLETE,
    KEEP,
    REMOVE,
    ClosedReview,
    Decision,
    Decisions,
    Outcome,
    Population,
    ReviewedPerson,
)

NEVER_KNOWN = (
    "Who granted access and why; other API keys; access to single projects, and to dashboards that are not listed; "
    "whose API key read all this. The service does not show what is *not shown*. Expired invites give no access."
)


@dataclass(frozen=True)
class ReviewPage:
    """
    What the page is about; what there is none of is ``None``.

    :param sent: the outcomes of all tries, the earliest first
    """

    review: ClosedReview
    population: Population | None
    decided: Decisions | None
    sent: tuple[Outcome, ...]
    last_look: Population | None

    def text(self) -> str:
        """Return the page, in Markdown."""
        review = self.review
        since = self._people_since()
        left = self.population.left if self.population else None
        exceptions = self.decided.exceptions.items() if self.decided else ()
        sections = [
            ("Not done", table(("what",), zip(review.missing))),
            (f"Everybody with access ({review.read_at or 'not read'})", self._everybody()),
            ("Exceptions", table(("who", "why"), exceptions)),
            ("Access that ended since the previous review", table(("who",), zip(left or ()))),
            ("Access since then, left to the next review", table(HEADERS, map(cells_of, since))),
            ("What this cannot know", [NEVER_KNOWN]),
            ("Facts", table(("what", ""), self._facts())),
            ("Files", [*table(("file", "sha256"), review.files.items()), "", "That of this page is in review.json."]),
        ]
        if review.other_files:
            sections.append(("Other files, which nothing has read", table(("file",), zip(review.other_files))))
        lines = [f"## Access review: {review.state}", "", *self._headline(), ""]
        for title, content in sections:
            lines += [f"## {title}", "", *content, ""]
        return "\n".join(lines)

    def _headline(self) -> list[str]:
        """Return in sentences what was decided, whether it is proven, and who reviewed whom."""
        if self.population is None:
            return ["Nobody was reviewed: who has access was not read."]
        if self.decided is None:
            return [f"Nobody was reviewed: {len(self.population.people)} people and invites have access."]
        decisions = list(self.decided.decisions.values())
        kept = decisions.count(KEEP)
        removed = decisions.count(REMOVE)
        lowered = len(decisions) - kept - removed
        read_at = self.last_look.read_at if self.last_look else ""
        proof = f"all of it is proven by the last look at {read_at}"
        if self.review.state != COMPLETE:
            proof = f"not all of it is done ({len(self.review.missing)} open, listed below)"
        result = f"{len(decisions)} people and invites: {kept} kept, {lowered} lowered, {removed} removed; {proof}."
        return [result, "", _reviewed_by(self.decided)]

    def _everybody(self) -> list[str]:
        decisions = self.decided.decisions if self.decided else {}
        sent = _told(self.sent)
        seen = _told(self.review.outcomes)
        rows: list[list[str]] = []
        for person in self.population.people if self.population else ():
            who = person.who
            decision = _decision(decisions[who]) if who in decisions else "-"
            rows.append([*cells_of(person), decision, sent.get(who, "-"), seen.get(who, "-")])
        return table((*HEADERS, "decision", "done", "last look"), rows)

    def _people_since(self) -> list[ReviewedPerson]:
        if self.population is None or self.last_look is None:
            return []
        found = [now for _, now in self.population.pairs_in(self.last_look) if now is not None]
        known = {person.who for person in found}
        return [person for person in self.last_look.people if person.who not in known]

    def _facts(self) -> list[tuple[str, str]]:
        review = self.review
        names = (
            "state",
            "dag_id",
            "run_id",
            "airflow",
            "package",
            "organization_id",
            "service",
            "read_at",
            "closed_at",
        )
        facts = [(name.replace("_", " "), _fact(getattr(review, name))) for name in names]
        if self.population:
            previous = self.population.previous
            facts.append(("people", str(len(self.population.people))))
            facts.append(("verified domains", _fact(self.population.verified_domains)))
            facts.append(
                (
                    "previous review",
                    f"{previous.folder}, read {previous.read_at} (sha256 {previous.sha256})" if previous else "none",
                )
            )
        facts.append(("last look at", self.last_look.read_at if self.last_look else "none"))
        facts += self._facts_of_answer()
        facts += [(name.replace("_", " "), _rule(value)) for name, value in review.rules.model_dump().items()]
        return facts

    def _facts_of_answer(self) -> list[tuple[str, str]]:
        decided = self.decided
        if decided is None:
            return [("decided by", "nobody")]
        facts = [("decided by", str(decided.by)), ("reviewer is reviewed", _fact(decided.reviewer_is_reviewed))]
        names = ("asked_at", "due_at", "decided_at", "decisions_file", "population_sha256")
        facts += [(name.replace("_", " "), _fact(getattr(decided, name))) for name in names]
        counts = Counter(_decision(decision) for decision in decided.decisions.values())
        return [*facts, *((f"decided {word}", str(count)) for word, count in counts.items())]


def _reviewed_by(decided: Decisions) -> str:
    """Return who reviewed whom, how, and how long it took."""
    one_by_one = len(decided.decisions) - decided.by_default
    how = f'{one_by_one} were decided one by one, {decided.by_default} by "all others stay"'
    times = [f"answered {decided.decided_at or 'at an unknown time'}"]
    if decided.due_at:
        times.insert(0, f"due {decided.due_at}")
    if decided.asked_at:
        times.insert(0, f"asked {decided.asked_at}")
    asked = parse_timestamp(decided.asked_at)
    answered = parse_timestamp(decided.decided_at)
    if asked is not None and answered is not None and answered >= asked:
        times.append(f"after {_duration(answered - asked)}")
    about = "."
    if decided.reviewer_is_reviewed is True:
        about = ". **They are one of these people, and decided about themselves.**"
    return f"Reviewed by {inert(str(decided.by))}: {how}; {', '.join(times)}{about}"


def _duration(seconds: float) -> str:
    minutes = int(seconds // 60)
    if minutes == 0:
        return f"{int(seconds)} seconds"
    days, minutes = divmod(minutes, 24 * 60)
    hours, minutes = divmod(minutes, 60)
    parts = [(days, "days"), (hours, "hours"), (minutes, "minutes")]
    return " ".join(f"{number} {unit}" for number, unit in parts if number)


def _decision(decision: Decision) -> str:
    return describe_level(decision) if isinstance(decision, int) else decision


def _fact(value: object) -> str:
    if value is None:
        return "not shown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value)


def _rule(value: object) -> str:
    return "not set" if value is None else _fact(value)


def _told(outcomes: Iterable[Outcome]) -> Mapping[str, str]:
    """Return what became of each person, in words; of several tries, each that says something else."""
    told: dict[str, dict[str, None]] = {}
    for outcome in outcomes:
        told.setdefault(outcome.who, {})[str(outcome)] = None
    return {who: ", then ".join(words) for who, words in told.items()}
