"""
Decisions of access reviews about people who were lowered or removed: what other features must not undo.

Each review has one Airflow Variable, written before its decisions are sent. It counts until its end, until a later
review decides the same people, or until a person lifts it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator

from airflow_provider_workspace.access.rules.entitlements import ReviewDecision
from airflow_provider_workspace.access.rules.review_records import (
    COLLABORATOR,
    INVITE,
    KEEP,
    Decision,
    Decisions,
    Lift,
    Population,
    ReviewedPerson,
)
from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.api.timestamps import to_second
from airflow_provider_workspace.errors import WorkspaceError, WorkspaceInputError, with_problem
from airflow_provider_workspace.notes.note import EndingNote, Text, Time, digest, utc_now
from airflow_provider_workspace.notes.registry import NoteRegistry
from airflow_provider_workspace.notes.store import NoteStore, VariableStore
from airflow_provider_workspace.procedures.people import NotedPerson
from airflow_provider_workspace.version_compat import COMMAND, lists_variables

log = logging.getLogger(__name__)

DECISIONS_PREFIX = "workspace_decisions."
# Maximum number of characters of the reason of a lift: the question of the next review shows it.
MAX_LIFT_REASON = 500
NOT_NOTED = (
    "The decisions of this review are not noted, because tasks cannot list Variables before Airflow 3.3. A sync may "
    "give again what this review took"
)


class DecidedPerson(BaseModel):
    """
    A person whom a review lowered or removed.

    :param email: the address; empty if the service does not show it
    :param user_uuid: the user; ``None`` if it is not known
    :param invite_id: the invite; ``None`` if there was none
    :param level: at most this level; ``None`` for no access. A note without it is unreadable, and removes nobody
    :param lifted: who lifted the decision; ``None`` if nobody did
    """

    model_config = ConfigDict(frozen=True, strict=True)

    email: str = ""
    user_uuid: Text | None = None
    invite_id: Text | None = None
    level: int | None
    lifted: Lift | None = None

    @classmethod
    def of(cls, reviewed: ReviewedPerson, decision: Decision) -> DecidedPerson:
        """
        Return somebody in the population of a review.

        :param decision: what was decided: ``keep``, ``remove`` or a level
        """
        level = decision if isinstance(decision, int) else None
        email = reviewed.email or ""
        if reviewed.kind == INVITE:
            return cls(email=email, invite_id=reviewed.id, level=level)
        return cls(email=email, user_uuid=reviewed.id, level=level)

    def to_dict(self) -> dict[str, object]:
        """Return plain JSON, without what is not set; the level is, also ``null``."""
        fields: dict[str, object] = self.model_dump(exclude_none=True, exclude_defaults=True)
        fields["level"] = self.level
        return fields

    def is_called(self, who: str) -> bool:
        """Return whether somebody has an address, or is a user or an invite."""
        if who in (self.user_uuid, self.invite_id):
            return True
        return bool(self.email) and address_key(self.email) == address_key(who)

    @property
    def is_known(self) -> bool:
        """Whether anything tells who it is."""
        return bool(self.email or self.user_uuid or self.invite_id)

    def is_same_as(self, other: DecidedPerson) -> bool:
        """Return whether both are one person: one user, one invite, or one address."""
        if self.user_uuid and other.user_uuid:
            return self.user_uuid == other.user_uuid
        if self.invite_id and self.invite_id == other.invite_id:
            return True
        return bool(self.email) and address_key(self.email) == address_key(other.email)


class ReviewNote(EndingNote):
    """
    What a review decided about the people whom it lowered or removed.

    :param review: what people find the review by
    :param reviewer: who decided
    :param decided_at: when
    """

    review: Text
    reviewer: str
    decided_at: Time
    people: tuple[DecidedPerson, ...] = ()

    @field_validator("people")
    @classmethod
    def _are_known(cls, people: tuple[DecidedPerson, ...]) -> tuple[DecidedPerson, ...]:
        if all(person.is_known for person in people):
            return people
        raise ValueError("a person without email, user_uuid and invite_id is nobody")

    def to_dict(self) -> dict[str, object]:
        """Return plain JSON; the level of each person is in it, also ``null``."""
        people = [person.to_dict() for person in self.people]
        return super().to_dict() | {"people": people}

    @property
    def organization_prefix(self) -> str:
        """The prefix of the Variable keys of all reviews of the organization."""
        return prefix_of(self.service, self.organization_id)

    @property
    def key(self) -> str:
        """The key of its Variable."""
        review = digest(self.dag_id, self.run_id, self.review)
        return self.organization_prefix + review

    @property
    def decisions(self) -> list[ReviewDecision]:
        """The decisions, as entitlements know them."""
        return [self._decision(person) for person in self.people]

    def decisions_about(self, people: Iterable[DecidedPerson]) -> list[ReviewDecision]:
        """Return the decisions about some people."""
        same = [one for one in self.people if any(one.is_same_as(person) for person in people)]
        return [self._decision(one) for one in same]

    def people_with(self, decision: ReviewDecision, lift: Lift) -> tuple[DecidedPerson, ...]:
        """Return the people, of whom a decision is lifted."""
        people: list[DecidedPerson] = []
        for one in self.people:
            is_lifted = self._decision(one) == decision
            person = one.model_copy(update={"lifted": lift}) if is_lifted else one
            people.append(person)
        return tuple(people)

    def with_lifts_of(self, noted: ReviewNote) -> ReviewNote:
        """Return the note as a retry writes it again: what was lifted meanwhile stays lifted."""
        people: list[DecidedPerson] = []
        for one in self.people:
            same = [other for other in noted.people if one.is_same_as(other)]
            lifts = [other.lifted for other in same if other.lifted]
            person = one.model_copy(update={"lifted": lifts[0]}) if lifts else one
            people.append(person)
        return self.model_copy(update={"people": tuple(people)})

    def _decision(self, decided: DecidedPerson) -> ReviewDecision:
        invite_ids = [decided.invite_id] if decided.invite_id else []
        person = NotedPerson(decided.email, self.decided_at, decided.user_uuid, frozenset(invite_ids))
        return ReviewDecision(
            person=person,
            level=decided.level,
            decided_at=self.decided_at,
            until=self.until,
            review=self.review,
            reviewer=self.reviewer,
            key=self.key,
            lifted=decided.lifted,
        )


def note_of_review(
    place: Mapping[str, Any], population: Population, decided: Decisions, counts_for: float
) -> ReviewNote:
    """
    Return the note of a review: whom it lowered or removed.

    :param place: the other fields: Dag, run, map index, service, connection, organization, and ``review``
    :param population: everybody with access
    :param decided: what was decided, by whom and when
    :param counts_for: how long it counts, in seconds
    """
    decided_at = decided.moment(population)
    people: list[DecidedPerson] = []
    for reviewed in population.people:
        decision = decided.decisions[reviewed.who]
        if decision == KEEP or reviewed.kind == COLLABORATOR:
            continue
        person = DecidedPerson.of(reviewed, decision)
        if person.is_known:
            people.append(person)
    reviewer = decided.by.name or decided.by.id
    return ReviewNote(
        **place,
        reviewer=reviewer,
        since=decided_at,
        until=decided_at + counts_for,
        decided_at=decided_at,
        people=tuple(people),
    )


def _over_before(notes: Iterable[ReviewNote], moment: float) -> list[ReviewNote]:
    """
    Return the notes that are certainly not needed any more.

    They ended before a moment that no clock of a worker tells: when a person decided a later review. A note that
    follows one that still counts is not among them: the last decision about somebody is what counts, or has ended, so
    without it an earlier one would count again.

    :param moment: in seconds since 1970
    """
    over: list[ReviewNote] = []
    for note in sorted(notes, key=lambda note: note.decided_at):
        if note.until >= moment:
            break
        over.append(note)
    return over


def lift_of(by: str, reason: str, approved_by: str = "") -> Lift:
    """
    Return how a person lifts a decision now.

    :raises WorkspaceInputError: if the reason is empty or too long
    """
    length = len(reason.strip())
    if not 0 < length <= MAX_LIFT_REASON:
        expected = f"reason must have 1 to {MAX_LIFT_REASON} characters, not {length}"
        raise WorkspaceInputError(f"{expected}. Say why the decision is lifted")
    return Lift(by=by, reason=reason, at=to_second(utc_now()), approved_by=approved_by)


def everybody_in(population: Population) -> list[DecidedPerson]:
    """Return all members and invites of a population, whatever was decided about them."""
    people = [person for person in population.people if person.kind != COLLABORATOR]
    return [DecidedPerson.of(person, KEEP) for person in people]


def prefix_of(service: str, organization_id: str) -> str:
    """Return the prefix of the Variable keys of all reviews of an organization."""
    return f"{DECISIONS_PREFIX}{digest(service, organization_id)}."


class ReviewRegistry(NoteRegistry[ReviewNote, NoteStore]):
    """Reads and writes the decisions of reviews."""

    model = ReviewNote

    @staticmethod
    def describe_unreadable(key: str, why: str) -> str:
        reason = why.rstrip(".")
        msg = (
            f"The decisions of an access review cannot be read: {reason}. Correct the Variable '{key}', or delete it: "
            "then a sync may give again what the review took."
        )
        return with_problem(msg, "decisions-unreadable")

    def of_organization(self, service: str, organization_id: str) -> list[ReviewNote]:
        """
        Return the reviews of an organization.

        :raises WorkspaceError: if one of them is unreadable: what it decided may not be undone
        """
        prefix = prefix_of(service, organization_id)
        notes = self.find(prefix)
        self.raise_if_unreadable(prefix)
        return notes

    def decisions_of(self, service: str, organization_id: str) -> list[ReviewDecision]:
        """
        Return what reviews decided about the people of an organization.

        :raises WorkspaceError: if a note is unreadable
        """
        decisions: list[ReviewDecision] = []
        for note in self.of_organization(service, organization_id):
            decisions += note.decisions
        return decisions

    def all(self) -> list[ReviewNote]:
        """Return all reviews, the latest last; see :attr:`unreadable` for the others."""
        notes = self.find(DECISIONS_PREFIX, skip_failed=True)
        return sorted(notes, key=lambda note: (note.decided_at, note.key))

    def note(self, note: ReviewNote) -> None:
        """Write the note of a review before its decisions are sent; a retry writes it again."""
        if not note.people:
            return
        if not lists_variables():
            log.warning("%s", NOT_NOTED)
            return
        noted = self.read(note.key)
        if noted is not None:
            note = note.with_lifts_of(noted)
        self.add(note)

    def settle(self, note: ReviewNote, decided: Collection[DecidedPerson]) -> None:
        """
        Take people whom a complete review has decided out of the notes of earlier ones, and delete those that are over.

        A decision that was lifted stays in its note until the end, as a proof.

        :param decided: everybody whom the review decided, also those who stay
        """
        notes = self.of_organization(note.service, note.organization_id)
        others = [one for one in notes if one.key != note.key]
        earlier = [one for one in others if one.decided_at <= note.decided_at]
        over = _over_before(earlier, note.decided_at)
        for one in earlier:
            if one in over:
                self.end(one)
            else:
                self._take_out(one, decided)

    def decisions_about(
        self, who: str, organization_id: str | None = None, service: str | None = None
    ) -> list[ReviewDecision]:
        """
        Return what reviews decided about a person, also under another address of the same user; the latest last.

        :param who: an address in the notes, or the id of a user or of an invite
        :param organization_id: the organization; ``None`` if reviews of one only decided about the person
        :param service: base URL of the service; ``None`` for any
        :raises WorkspaceInputError: if there are none, or nobody can tell whom they are about
        :raises WorkspaceError: if a note is unreadable
        """
        named: list[DecidedPerson] = []
        places: set[tuple[str, str]] = set()
        for note in self.all():
            is_here = service in (None, note.service) and organization_id in (None, note.organization_id)
            people = [person for person in note.people if is_here and person.is_called(who)]
            named += people
            if people:
                places.add((note.service, note.organization_id))
        if not named:
            self.raise_if_unreadable()
            raise WorkspaceInputError(f"No decision about {who}. Give an address that '{COMMAND} decisions' shows")
        if len(places) > 1:
            organizations = sorted(organization for _, organization in places)
            why = f"Reviews decided about {who} in {len(places)} organizations"
            raise WorkspaceInputError(f"{why}. Name one: {', '.join(organizations)}")
        users = {person.user_uuid for person in named if person.user_uuid}
        if len(users) > 1:
            why = f"{len(users)} users had the address {who}, so nobody can tell whom this is about"
            raise WorkspaceInputError(f"{why}. Give one of these users instead: {', '.join(sorted(users))}")
        (place,) = places
        notes = sorted(self.of_organization(*place), key=lambda note: note.decided_at)
        decisions: list[ReviewDecision] = []
        for note in notes:
            decisions += note.decisions_about(named)
        return decisions

    def lift(self, decisions: Iterable[ReviewDecision], lift: Lift) -> list[ReviewDecision]:
        """
        Note that decisions do not count any more, and return them; who lifted one before stays.

        :raises WorkspaceError: if somebody changed the note of a review meanwhile
        """
        return [decision if decision.lifted else self._lift(decision, lift) for decision in decisions]

    def _lift(self, decision: ReviewDecision, lift: Lift) -> ReviewDecision:
        note = self.read(decision.key)
        if note is None:
            msg = f"The Variable '{decision.key}' of the review was deleted meanwhile. Try again. Nothing was written."
            raise WorkspaceError(msg, problem="variable-changed")
        self.change(note, people=note.people_with(decision, lift))
        return replace(decision, lifted=lift)

    def _take_out(self, note: ReviewNote, decided: Iterable[DecidedPerson]) -> None:
        gone = list(decided)
        left = tuple(one for one in note.people if one.lifted or not any(one.is_same_as(other) for other in gone))
        if not left:
            self.end(note)
        elif len(left) < len(note.people):
            self.change(note, people=left)


# The store of decisions for tasks. Since Airflow 3.3: before, there are none.
REVIEW_VARIABLES = VariableStore(
    DECISIONS_PREFIX, "workspace_decisions", f"Decisions of an access review: {COMMAND} decisions shows them."
)
