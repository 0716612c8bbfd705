"""Who may answer a question under **Required Actions**: the one rule for approvals and access reviews."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from airflow_provider_workspace.api.comparison import address_key, normal_text
from airflow_provider_workspace.errors import WorkspaceInputError

# What Airflow calls everybody where it does not ask who they are.
ANONYMOUS = "Anonymous"
# An address in the name of a user, as in "Mina Meyer <mina@example.com>".
ADDRESS_IN_NAME = re.compile(r"(?<![^\s<>()\[\]\",;:])[^\s<>()\[\]\",;:]+@[^\s<>()\[\]\",;:]+")
# What stands around the names of a person, as in "Ruth R. (ruth), adam".
AROUND_NAMES = re.compile(r" \((?:run started by )?|\)|, ")
CURE = "Clear the task to ask again, and let another user answer"


@dataclass(frozen=True, slots=True)
class Answerer:
    """
    Who answered, as the auth manager of Airflow knows them.

    :param id: id of the Airflow user
    :param name: their name; with the simple auth manager the same
    """

    id: str
    name: str

    @classmethod
    def read(cls, user: object) -> Answerer | None:
        """Read ``responded_by_user`` of an answer; ``None`` if it names nobody."""
        if not isinstance(user, Mapping):
            return None
        user_id = str(user.get("id") or "")
        if not user_id:
            return None
        return cls(user_id, str(user.get("name") or user_id))

    def __str__(self) -> str:
        return self.name if self.name == self.id else f"{self.name} ({self.id})"

    def is_person(self, name: str) -> bool:
        """Return whether a name or an address may be of this user, or of one whose address their name shows."""
        known = (self.id, self.name, *self._addresses)
        return any(is_same_person(each, name) for each in known)

    def is_named_in(self, text: str) -> bool:
        """Return whether a text that names people, such as who approved a grant, may name this user."""
        names = (text, *AROUND_NAMES.split(text), *ADDRESS_IN_NAME.findall(text))
        return any(map(self.is_person, names))

    @property
    def email(self) -> str:
        """The address, if the id or the name has it; else empty."""
        return next(iter(self._addresses), "")

    @property
    def _addresses(self) -> list[str]:
        return ADDRESS_IN_NAME.findall(f"{self.id} {self.name}")


@dataclass(frozen=True, slots=True)
class AnswerRules:
    """
    Who may answer a question; they are fixed when it is asked.

    :param approvers: ids of the Airflow users who were asked; empty for everybody
    :param started_by: the Airflow user who started the Dag run; empty if Airflow names nobody
    :param requested_by: for whom the author of the Dag says that the run asks; empty if they do not say it
    :param about: addresses of the people whom it is about
    :param allow_self_approval: whether the people of the last three may approve
    """

    approvers: tuple[str, ...] = ()
    started_by: str = ""
    requested_by: str = ""
    about: tuple[str, ...] = ()
    allow_self_approval: bool = False

    @classmethod
    def read(cls, value: object) -> AnswerRules | None:
        """Read what :meth:`to_dict` returned; ``None`` if it is something else."""
        names = {field.name for field in fields(cls)}
        if not isinstance(value, Mapping) or value.keys() != names:
            return None
        approvers = tuple(value["approvers"])
        about = tuple(value["about"])
        return cls(**{**value, "approvers": approvers, "about": about})

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {**asdict(self), "approvers": list(self.approvers), "about": list(self.about)}

    @property
    def requester(self) -> str:
        """Who asks, for people; empty if nobody is known."""
        if not self.requested_by or not self.started_by:
            return self.requested_by or self.started_by
        if is_same_person(self.requested_by, self.started_by):
            return self.requested_by
        return f"{self.requested_by} (run started by {self.started_by})"

    def is_requester(self, answerer: Answerer) -> bool:
        """Return whether whoever answered is who asks."""
        return answerer.is_named_in(self.started_by) or answerer.is_named_in(self.requested_by)

    def is_subject(self, answerer: Answerer) -> bool:
        """Return whether it is about whoever answered."""
        return any(answerer.is_person(email) for email in self.about)

    def raise_if_nobody_may_answer(self) -> None:
        """
        Refuse to ask a question to which every answer would be refused, or that who asks could answer unseen.

        :raises WorkspaceInputError: naming the arguments to change
        """
        if self.allow_self_approval:
            return
        cure = "or allow_self_approval=True for a trial of one person"
        if self.approvers:
            users = [Answerer(user_id, user_id) for user_id in self.approvers]
            if all(self.is_requester(user) or self.is_subject(user) for user in users):
                named = ", ".join(self.approvers)
                why = "Each of the approvers asks for this, or is whom it is about, and nobody else may answer"
                msg = f"{why}. Name somebody else, {cure}: approvers={named}"
                raise WorkspaceInputError(msg, problem="answerer-refused")
            return
        if not self.requester or ANONYMOUS in (self.started_by, self.requested_by):
            why = f"Airflow does not say who asks ({self.requester or 'no user started this run'})"
            msg = f"{why}, so nobody could tell whether they approve it themselves. Set approvers=[…], {cure}"
            raise WorkspaceInputError(msg, problem="answerer-refused")

    def judge(self, user: object, *, approves: bool = True, cure: str = CURE) -> Answerer:
        """
        Return who answered.

        :param user: ``responded_by_user`` of the answer
        :param approves: whether the answer lets something happen; who asked may withdraw it
        :param cure: what to do after a refusal
        :raises WorkspaceInputError: if they may not answer
        """
        answerer = Answerer.read(user)
        if answerer is None:
            raise _refusal("Airflow does not say who answered", cure)
        why = self._refusal_of(answerer, approves=approves)
        if why:
            raise _refusal(why, cure)
        return answerer

    def _refusal_of(self, answerer: Answerer, *, approves: bool) -> str:
        """Return why somebody may not answer; empty if they may."""
        if self.approvers and answerer.id not in self.approvers:
            return f"{answerer} answered, and only these users were asked: {', '.join(self.approvers)}"
        if self.allow_self_approval or not approves:
            return ""
        if self.is_requester(answerer):
            return f"{answerer} asked for this, and self-approval is off"
        if self.is_subject(answerer):
            return f"{answerer} answered, and nobody decides about their own access"
        if answerer.id == ANONYMOUS and not self.approvers:
            return "Everybody is 'Anonymous' in this Airflow, also who asked for this"
        return ""


def is_same_person(one: str, other: str) -> bool:
    """
    Return whether two names of people may be of one person: ids and names of Airflow users, or addresses.

    Two addresses are compared whole. A name without a domain is compared with the part of an address before the ``@``.
    Letter case, and what follows a ``+`` in an address, do not count. An empty text is nobody.
    """
    name, domain = _parts(one)
    other_name, other_domain = _parts(other)
    if not name or name != other_name:
        return False
    return not domain or not other_domain or domain == other_domain


def _parts(text: str) -> tuple[str, str]:
    """Return what names a person, and the domain of an address."""
    if "@" not in text:
        return normal_text(text).lower(), ""
    local, _, domain = address_key(text).rpartition("@")
    name, _, _ = local.partition("+")
    return name or local, domain


def _refusal(why: str, cure: str) -> WorkspaceInputError:
    return WorkspaceInputError(f"{why}. {cure}", problem="answerer-refused")
