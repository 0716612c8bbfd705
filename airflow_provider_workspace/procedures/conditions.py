"""The conditions that sensors and triggers wait for."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import ceil, inf
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.api.fields import TextId, Uuid, explain
from airflow_provider_workspace.api.operations.domains import GetDomain, VerifyDomain
from airflow_provider_workspace.api.operations.projects import GetProject
from airflow_provider_workspace.api.outcome import is_refused, refuses_kind_of_key
from airflow_provider_workspace.errors import (
    MAX_NAMED,
    WorkspaceError,
    WorkspaceInputError,
    WorkspaceNotFoundError,
    shown,
)

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import ProjectItem
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.procedures.snapshot import Snapshot

log = logging.getLogger(__name__)

# Why somebody has not joined, by the state of their invite.
WHY_MISSING = {"open": "invited", "expired": "invite expired", "gone": "no invite"}


@dataclass(frozen=True, slots=True)
class Result:
    """
    The result of evaluating a condition.

    :param done: whether the condition is met
    :param message: the progress, for people
    :param result: plain JSON, the result of the task that waited
    :param found: whether the record that is waited for exists
    :param absent: addresses because of whose missing rows it is met
    """

    done: bool
    message: str
    result: dict[str, Any] = field(default_factory=dict)
    found: bool = True
    absent: Collection[str] = ()


class Condition(BaseModel, ABC):
    """A condition on a snapshot; ``subject`` says which lists it needs."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    subject: ClassVar[str]

    @abstractmethod
    def evaluate(self, seen: Snapshot) -> Result:
        """Evaluate the condition."""

    def read_record(self, client: WorkspaceClient, organization_id: str) -> None:
        """Read the record that is waited for; conditions on people have none."""


class PeopleCondition(Condition):
    """Base of the conditions on people."""

    emails: Annotated[list[str], Field(min_length=1)]
    subject: ClassVar[str] = "people"

    def states(self, seen: Snapshot) -> list[tuple[str, str]]:
        """Return each address, and ``accepted`` for a member, ``open`` or ``expired`` for an invite, or ``gone``."""
        found: list[tuple[str, str]] = []
        for email in self.emails:
            key = address_key(email)
            if key in seen.members:
                found.append((email, "accepted"))
            elif key in seen.invites:
                found.append((email, "expired" if seen.invites[key] else "open"))
            else:
                found.append((email, "gone"))
        return found


class DomainVerified(Condition):
    """A domain is verified."""

    domain_id: Uuid
    subject: ClassVar[str] = "domains"

    def evaluate(self, seen: Snapshot) -> Result:
        domain = seen.domains.get(self.domain_id)
        if domain is None:
            return Result(done=False, message=f"domain {self.domain_id} not found", found=False)
        result = {"domain_id": self.domain_id, "domain": domain.domain, "verified_at": domain.verified_at}
        if domain.is_verified:
            return Result(done=True, message=f"{domain.domain} is verified", result=result)
        challenge = domain.verification_challenge
        todo = f"; the TXT record in its DNS must have the value {challenge}" if challenge else ""
        return Result(done=False, message=f"{domain.domain} is not verified{todo}", result=result)

    def read_record(self, client: WorkspaceClient, organization_id: str) -> None:
        client.send(GetDomain(organization_id=organization_id, domain_id=self.domain_id))


class MembersJoined(PeopleCondition):
    """
    People are members.

    :param share: share of them that must be members, above 0 and up to 1; 0 means any one
    """

    share: Annotated[float, Field(ge=0, le=1)] = 1.0

    def evaluate(self, seen: Snapshot) -> Result:
        joined: list[str] = []
        missing: dict[str, str] = {}
        for email, state in self.states(seen):
            if state == "accepted":
                joined.append(email)
            else:
                missing[email] = WHY_MISSING[state]
        total = len(self.emails)
        # Rounded first: 0.07 of 100 people is 7.000000000000001, which must be 7 and not 8.
        needed = max(1, ceil(round(total * self.share, 6)))
        message = f"{len(joined)} of {total} joined, {needed} needed{_named(missing)}{_hidden(seen, missing)}"
        return Result(len(joined) >= needed, message, {"joined": joined, "missing": missing})


class InvitesSettled(PeopleCondition):
    """No invite is open: each was accepted, has expired or is gone."""

    def evaluate(self, seen: Snapshot) -> Result:
        by_state: dict[str, list[str]] = {"accepted": [], "expired": [], "gone": [], "open": []}
        for email, state in self.states(seen):
            by_state[state].append(email)
        pending = dict.fromkeys(by_state["open"], "open")
        by_state["open"] = list(pending)
        counts = [f"{len(emails)} {state}" for state, emails in by_state.items()]
        message = f"of {len(self.emails)} invites {', '.join(counts)}{_named(pending)}"
        message += _hidden(seen, by_state["gone"])
        absent = by_state["expired"] + by_state["gone"]
        return Result(not pending, message, dict(by_state), absent=absent)


class ProjectCondition(Condition):
    """Base of the conditions on a project."""

    project_id: TextId
    subject: ClassVar[str] = "projects"

    @abstractmethod
    def state(self, project: ProjectItem) -> tuple[bool, str, dict[str, Any]]:
        """Return whether it is met, what the project is, and more of the result."""

    def evaluate(self, seen: Snapshot) -> Result:
        project = seen.projects.get(self.project_id)
        if project is None:
            return Result(done=False, message=f"project {self.project_id} not found", found=False)
        done, says, more = self.state(project)
        result = {"project_id": self.project_id, "name": project.name, **more}
        return Result(done, f"project {self.project_id} ('{project.name}') {says}", result)

    def read_record(self, client: WorkspaceClient, organization_id: str) -> None:
        client.send(GetProject(organization_id=organization_id, project_id=self.project_id))


class ProjectReceivingEvents(ProjectCondition):
    """A project has received its first event."""

    def state(self, project: ProjectItem) -> tuple[bool, str, dict[str, Any]]:
        if project.ingested_event:
            return True, "has received events", {}
        return False, "has received no event yet", {}


class ProjectOnboarded(ProjectCondition):
    """
    A project is onboarded.

    :param product: key in ``has_completed_onboarding_for`` that must be true; ``None`` for any of them, or
        ``completed_snippet_onboarding``
    """

    product: str | None = None

    def state(self, project: ProjectItem) -> tuple[bool, str, dict[str, Any]]:
        products = project.has_completed_onboarding_for
        completed: list[str] = []
        if isinstance(products, dict):
            completed = sorted(name for name, is_done in products.items() if is_done)
        if self.product is None:
            done = bool(completed or project.completed_snippet_onboarding)
        else:
            done = self.product in completed
        says = "is onboarded" if done else "is not yet onboarded"
        if self.product:
            says += f" for {self.product}"
        return done, says, {"completed": completed}


CONDITIONS: dict[str, type[Condition]] = {
    "domain_verified": DomainVerified,
    "members_joined": MembersJoined,
    "invites_settled": InvitesSettled,
    "project_receiving_events": ProjectReceivingEvents,
    "project_onboarded": ProjectOnboarded,
}


def build_condition(name: object, arguments: object) -> Condition:
    """
    Build a condition from plain JSON.

    :param name: key of :data:`CONDITIONS`
    :param arguments: its fields
    :raises WorkspaceInputError: if the name or a field is unknown or a value has the wrong type
    """
    kind = condition_class(name)
    try:
        return kind.model_validate(arguments)
    except ValidationError as error:
        raise WorkspaceInputError(f"Invalid arguments of the condition {name}: {explain(kind, error)}") from None


def condition_class(name: object) -> type[Condition]:
    """
    Return the class of a condition.

    :raises WorkspaceInputError: if the name is unknown
    """
    if not isinstance(name, str) or name not in CONDITIONS:
        raise WorkspaceInputError(f"condition must be one of {', '.join(CONDITIONS)}")
    return CONDITIONS[name]


def evaluate(condition: Condition, seen: Snapshot, waited: float) -> Result:
    """
    Evaluate a condition.

    A missing row proves nothing if a list has fewer rows than it counts, or if new records may not be listed yet: an
    invite that is gone may be a member whom the list does not show yet. Members of an earlier poll prove nothing
    either. Then the wait continues, and the message says why.

    :param waited: seconds from the first poll of the wait to the beginning of this one
    """
    result = condition.evaluate(seen)
    if result.done and seen.reuses:
        seen.must_read_all = True
        return _not_yet(result, "Polling again: not all members were read")
    if result.done and not result.absent:
        return result
    if seen.incomplete:
        return _not_yet(result, f"A list is short: {seen.incomplete}")
    if not result.done:
        return result
    absent_for = min(waited, _missing_for(result.absent, seen))
    if absent_for >= seen.consistency_time:
        return result
    seen.must_read_all = True
    seconds = f"{seen.consistency_time:g} s"
    return _not_yet(result, f"Polling again: new invites and members may not be listed for {seconds}")


class RecordCheck:
    """
    When a wait reads the record that its list does not show: at its first poll, and after the consistency time.

    A list may not show a new record yet. What was deleted is never shown again, and the wait must not go on.
    """

    def __init__(self) -> None:
        self._known_at = -inf

    def is_due(self, result: Result, seen: Snapshot) -> bool:
        """Return whether to call :func:`check_exists` after this poll."""
        is_due = not result.found and seen.read_at - self._known_at >= seen.consistency_time
        if result.found or is_due:
            self._known_at = seen.read_at
        return is_due


def check_exists(client: WorkspaceClient, condition: Condition, organization_id: str, result: Result) -> None:
    """
    Read the record that is waited for.

    :raises WorkspaceInputError: if the service itself says that it does not exist
    """
    from airflow_provider_workspace.procedures.ensure import check_gone

    try:
        condition.read_record(client, organization_id)
    except WorkspaceNotFoundError as error:
        check_gone(error)
        kind = condition.subject.removesuffix("s")
        raise WorkspaceInputError(
            f"{result.message} in organization {organization_id}. Check {kind}_id, and whether the {kind} was deleted"
        ) from None


def _not_yet(result: Result, why: str) -> Result:
    """Return a result that proves nothing yet, and why."""
    return replace(result, done=False, message=f"{result.message}. {why}")


def check_share(join: object) -> float:
    """
    Parse ``all``, ``any`` or a share.

    :param join: as authors give it, or the text of it, as a template renders it
    :return: the share of addresses that must have joined; 0 for ``any``
    :raises WorkspaceInputError: if it is none of these
    """
    shares = {"all": 1.0, "any": 0.0}
    if isinstance(join, str) and join in shares:
        return shares[join]
    if isinstance(join, int | float | str) and not isinstance(join, bool):
        with suppress(ValueError, OverflowError):
            share = float(join)
            if 0 < share <= 1:
                return share
    raise WorkspaceInputError(f"join is {shown(join)}; expected 'all', 'any', or a share above 0 and up to 1")


def _missing_for(emails: Collection[str], seen: Snapshot) -> float:
    """Return for how many seconds none of these addresses has had an open invite, as far as the polls have shown."""
    keys = [address_key(email) for email in emails]
    closed_at = [seen.closed_at[key] for key in keys if key in seen.closed_at]
    return seen.read_at - max(closed_at) if closed_at else inf


def _hidden(seen: Snapshot, missing: Collection[str]) -> str:
    """Return the hint that missing people may be members whose address the service does not show."""
    if not missing or not seen.hidden_members:
        return ""
    return f"; may be among {seen.hidden_members} members without a shown address"


def _named(missing: Mapping[str, str]) -> str:
    if not missing:
        return ""
    people = [f"{email} ({why})" for email, why in missing.items()]
    named = ", ".join(people[:MAX_NAMED])
    more = f" and {len(people) - MAX_NAMED} more" if len(people) > MAX_NAMED else ""
    return f"; missing: {named}{more}"


def ask_verification(client: WorkspaceClient, organization_id: str, domain_id: str) -> bool:
    """
    Request the verification of a domain; the next poll shows the result. A refusal may only mean that it is too early.

    :return: whether to request it again; false if API keys may not, and the service verifies domains on its own
    :raises WorkspaceRequestError: if the refusal is permanent
    """
    verify = VerifyDomain(organization_id=organization_id, domain_id=domain_id)
    answer = client.attempt(verify, why="somebody waits for the domain")
    if refuses_kind_of_key(answer):
        log.warning("Waiting without requesting verification, which this kind of API key may not: %s", answer)
        return False
    if isinstance(answer, WorkspaceError):
        if answer.permanent and not is_refused(answer):
            raise answer
        log.warning("The request for verification failed: %s", answer)
    return True
