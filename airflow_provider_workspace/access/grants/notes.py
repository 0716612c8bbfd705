"""
Grants: who has which access until when, and what they have then.

Each grant is an Airflow Variable of its own, written before anything is sent, so that the end comes although its task,
its run or its Dag is gone. Its key names the person and the task; its value is plain JSON.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any, Literal

from pydantic import Field

from airflow_provider_workspace.access.rules.entitlements import NotedGrant
from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.errors import WorkspaceError, with_problem
from airflow_provider_workspace.notes.note import EndingNote, Text, Time, digest, utc_now
from airflow_provider_workspace.notes.registry import NoteRegistry
from airflow_provider_workspace.notes.store import NoteStore, VariableStore
from airflow_provider_workspace.procedures.people import NotedPerson
from airflow_provider_workspace.procedures.until import REMOVED
from airflow_provider_workspace.version_compat import COMMAND, lists_variables, variable_keys

log = logging.getLogger(__name__)

# Who had a level cannot be noted.
UNKNOWN_HOLDERS: Literal["unknown"] = "unknown"
HadLevel = tuple[str, ...] | Literal["unknown"]
NotedLevel = Annotated[int, Field(ge=0)]
# What a note learns after it was written; the other fields say what was agreed.
LEARNED = {"user_uuid", "invite_id", "given_at", "had_level", "ending_since", "writer"}

# The order in which grants end.
BY_END = attrgetter("until", "key")
GRANT_PREFIX = "workspace_grant."
NEEDS_AIRFLOW_3_3 = (
    "Temporary access needs Airflow 3.3 or newer, because only there can tasks list Variables: a grant that is not "
    "listed would never end"
)


class Grant(EndingNote):
    """
    Temporary access of a person.

    :param then: the level after the end; ``None`` if the person is removed
    :param requested_by: who started the Dag run; empty if nobody did, or it is not known
    :param approved_by: who approved it; empty if nobody was asked
    :param user_uuid: the user of the person; ``None`` as long as no list has shown it
    :param invite_id: the invite of the person; ``None`` if there was none, or no list has shown it
    :param approved_at: when; ``None`` if nobody was asked
    :param given_at: when the service confirmed that it was given; ``None`` before
    :param had_level: the users who had the level, or a higher one, before the person was invited: anybody else who has
        it may have accepted the invite; ``unknown`` if too many had it, or one was hidden; ``None`` if nobody can have
        been raised by it, as the person was not invited, or all members had the level
    :param ending_since: since when a run ends it, which may have been killed; ``None`` before, and if it took nothing
    :param ended_by: who ended it early; empty if nobody did
    :param agreed_until: the end that was agreed, if somebody ended it early
    :param writer: the try or sweep that may act on it; ``None`` if no note says, as in one that people wrote
    """

    task_id: Text
    user_email: Text
    level: NotedLevel
    then: NotedLevel | None = None
    reason: Text
    requested_by: str = ""
    approved_by: str = ""
    user_uuid: Text | None = None
    invite_id: Text | None = None
    given_at: Time | None = None
    approved_at: Time | None = None
    had_level: HadLevel | None = None
    ending_since: Time | None = None
    ended_by: str = ""
    agreed_until: Time | None = None
    writer: Text | None = None

    @property
    def request(self) -> str:
        """Whom it serves, for people: who asked and approved, why, and the task that gave it."""
        people: list[str] = []
        if self.requested_by:
            people.append(f"asked by {self.requested_by}")
        if self.approved_by:
            people.append(f"approved by {self.approved_by}")
        if self.ended_by:
            people.append(f"ended early by {self.ended_by}")
        who = ", ".join(people) or "asked by nobody"
        return f"{who}: {self.reason} ({self.task})"

    @property
    def task(self) -> str:
        """The task that gave it, for people."""
        return f"{self.dag_id} / {self.run_id} / {self.task_id}"

    @property
    def person(self) -> str:
        """The prefix of the Variable keys of all grants of the person."""
        person = digest(self.service, self.organization_id, address_key(self.user_email))
        return f"{GRANT_PREFIX}{person}."

    @property
    def key(self) -> str:
        """The key of its Variable: a retry finds its own."""
        task = digest(self.dag_id, self.run_id, self.task_id, str(self.map_index))
        return self.person + task

    @property
    def identity(self) -> tuple[str, str, str]:
        """Who has it, as far as the note knows: the same for all notes of a user, whatever their addresses."""
        return self.service, self.organization_id, self.user_uuid or self.person

    def may_be_for_person_of(self, other: Grant) -> bool:
        """Return whether two notes may be for one person: by their user, and by their address if one lacks it."""
        if self.user_uuid and other.user_uuid:
            return self.identity == other.identity
        return self.person == other.person

    @property
    def terms(self) -> dict[str, object]:
        """What was agreed, without what the note has learned."""
        return self.model_dump(mode="json", exclude=LEARNED)

    def only_leaves_more_than(self, other: Grant) -> bool:
        """Return whether the person only has more after it than another note of it said: a row gives that by now."""
        if self.then is None or (other.then is not None and self.then <= other.then):
            return False
        return self.model_copy(update={"then": other.then}).terms == other.terms

    @property
    def row(self) -> dict[str, Any]:
        """The grant as a row of a roster."""
        then = REMOVED if self.then is None else self.then
        until = self.to_dict()["until"]
        return {"target_email": self.user_email, "level": self.level, "until": until, "then": then}


class GrantRegistry(NoteRegistry[Grant, NoteStore]):
    """Reads and writes grants."""

    model = Grant

    def __init__(self, store: NoteStore) -> None:
        super().__init__(store)
        self._noted: dict[str, Grant] = {}

    @staticmethod
    def describe_unreadable(key: str, why: str) -> str:
        reason = why.rstrip(".")
        msg = (
            f"The grant in Variable '{key}' cannot be read, so nothing ends its access: {reason}. Correct the "
            "Variable, or take the access away by hand and delete it."
        )
        return with_problem(msg, "grant-unreadable")

    def all(self) -> list[Grant]:
        """Return all grants, the one that ends first first; see :attr:`unreadable` for the others."""
        return sorted(self.find(GRANT_PREFIX, skip_failed=True), key=BY_END)

    def read(self, key: str) -> Grant | None:
        """Return the grant of a key; ``None`` if there is none."""
        grant = super().read(key)
        if grant is not None:
            self._noted[key] = grant
        return grant

    def change(self, note: Grant, /, **changes: Any) -> Grant:
        """
        Change a grant, and return it.

        :raises WorkspaceError: if it is not what was read any more
        """
        changed = super().change(note, **changes)
        self._noted[changed.key] = changed
        return changed

    def of_organization(self, grant: Grant) -> list[Grant]:
        """
        Return all grants in the organization of a grant.

        :raises WorkspaceError: if one of its person is unreadable
        """
        place = grant.identity[:2]
        return self._find([grant], lambda noted: noted.identity[:2] == place)

    def of_person(self, *grants: Grant) -> list[Grant]:
        """
        Return all grants that may be for the person of some grants: of their user, and of their addresses.

        :raises WorkspaceError: if one of their addresses is unreadable
        """
        return self._find(grants, lambda noted: any(map(noted.may_be_for_person_of, grants)))

    def active(self, *grants: Grant) -> list[Grant]:
        """Return the grants that may be for the person of some grants and are not over now."""
        now = utc_now()
        return [other for other in self.of_person(*grants) if not other.is_over(now)]

    def _find(self, grants: Sequence[Grant], concerns: Callable[[Grant], bool]) -> list[Grant]:
        """Return the grants of interest; the others are read once, since nobody changes whom they are for."""
        addresses = tuple({grant.person for grant in grants})
        found: list[Grant] = []
        for key in self.keys(GRANT_PREFIX):
            known = self._noted.get(key)
            if known is not None and not concerns(known):
                continue
            noted = self._read_again(key, is_needed=key.startswith(addresses))
            if noted is not None and concerns(noted):
                found.append(noted)
        return found

    def _read_again(self, key: str, *, is_needed: bool) -> Grant | None:
        """
        Return the grant of a key; ``None`` if there is none.

        :raises WorkspaceError: if it is unreadable, and needed
        """
        try:
            grant = self.read(key)
        except WorkspaceError as error:
            if is_needed:
                raise
            log.warning("%s", error)
            return None
        if is_needed:
            self.raise_if_unreadable(key)
        return grant

    def check(self, grant: Grant, *, is_over: bool, is_own: bool = True) -> Grant:
        """
        Return a note as it is now, if its grant may still be acted on.

        :param is_over: whether its end must have passed, or must not
        :param is_own: whether this try must be the one that acts on it
        :raises WorkspaceError: which says what happened to it
        """
        noted = self.read(grant.key)
        if noted is None:
            why = "was deleted or made unreadable"
        elif is_own and noted.writer != grant.writer:
            why = "belongs to another try or sweep now"
        elif noted.terms != grant.terms and (is_over or not noted.only_leaves_more_than(grant)):
            row = noted.row
            why = f"was changed, and now says level {row['level']} until {row['until']}, then {row['then']}"
        elif noted.is_over(utc_now()) and not is_over:
            why = f"is over since {noted.row['until']}"
        elif is_over and not noted.is_over(utc_now()):
            why = f"is not over before {noted.row['until']}"
        else:
            return noted
        msg = (
            f"The grant of {grant.user_email} {why}, so nothing more was sent. Check what they have, then run this "
            f"again. Variable '{grant.key}'"
        )
        raise WorkspaceError(msg, permanent=is_own and not is_over, problem="grant-changed")


def rows_of(grants: Iterable[Grant], person: NotedPerson) -> list[dict[str, Any]]:
    """
    Return grants of a person as rows of a roster; of those that end together, the one with the highest level.

    :param person: whose address the rows have; the notes may have several
    """
    highest_by_end: dict[int, Grant] = {}
    for grant in sorted(grants, key=attrgetter("level")):
        highest_by_end[int(grant.until)] = grant
    return [{**grant.row, "target_email": person.email} for grant in highest_by_end.values()]


def person_of(grants: Iterable[Grant], user_uuid: str | None = None) -> NotedPerson:
    """
    Return the person of some grants of one person, from all that their notes have learned.

    :param user_uuid: the user, if it is known otherwise
    """
    noted = sorted(grants, key=attrgetter("since"))
    first = noted[0]
    newest = noted[-1]
    noted_user: str | None = None
    invite_ids: set[str] = set()
    levels: list[int] = []
    had_level: list[tuple[int, frozenset[str] | None]] = []
    for grant in noted:
        if grant.invite_id:
            invite_ids.add(grant.invite_id)
        if grant.user_uuid:
            noted_user = grant.user_uuid
        elif grant.then is not None:
            levels.append(grant.level)
        if grant.had_level is not None:
            holders = None if grant.had_level == UNKNOWN_HOLDERS else frozenset(grant.had_level)
            had_level.append((grant.level, holders))
    emails = frozenset(grant.user_email for grant in noted)
    return NotedPerson(
        email=newest.user_email,
        since=first.since,
        user_uuid=user_uuid or noted_user,
        invite_ids=frozenset(invite_ids),
        emails=emails,
        level=min(levels, default=None),
        had_level=tuple(had_level),
    )


def noted_grant_of(grant: Grant, *, is_over: bool = False) -> NotedGrant:
    """Return a grant, as entitlements know it."""
    invite_ids = [grant.invite_id] if grant.invite_id else []
    person = NotedPerson(
        email=grant.user_email,
        since=grant.since,
        user_uuid=grant.user_uuid,
        invite_ids=frozenset(invite_ids),
    )
    since = grant.since if grant.approved_at is None else grant.approved_at
    until = grant.row["until"]
    return NotedGrant(
        person=person,
        level=grant.level,
        since=since,
        until=str(until),
        approved_by=grant.approved_by,
        key=grant.key,
        then=grant.then,
        requested_by=grant.requested_by,
        is_over=is_over,
    )


def raise_if_unsupported() -> None:
    """
    Refuse temporary access before Airflow 3.3.

    :raises WorkspaceError: which says so
    """
    if not lists_variables():
        raise WorkspaceError(f"{NEEDS_AIRFLOW_3_3}. Nothing was sent.", problem="airflow-too-old")


@dataclass(frozen=True)
class GrantVariables(VariableStore):
    """Stores grants as Variables, for tasks. Since Airflow 3.3."""

    prefix: str = GRANT_PREFIX
    index: str = "workspace_grants"
    description: str = f"Temporary access: {COMMAND} grants shows it."

    def list_keys(self) -> list[str]:
        """Return the keys of all grants; before Airflow 3.3 there are none."""
        if lists_variables():
            return variable_keys(self.prefix)
        log.info("%s. There are no grants to end.", NEEDS_AIRFLOW_3_3)
        return []

    def add(self, key: str, value: str) -> None:
        """Write a value whose key may be new."""
        raise_if_unsupported()
        self.write(key, value)


# The store of grants for tasks.
GRANT_VARIABLES = GrantVariables()
