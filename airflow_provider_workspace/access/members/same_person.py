"""Say beside a removal and an invite that both may be about one person, whose address has changed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_provider_workspace.api.operations.invites import CreateInvite
from airflow_provider_workspace.api.operations.members import DeleteMember

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Member
    from airflow_provider_workspace.procedures.plan import Change

NOT_IN_NAMES = re.compile(r"[\W\d_]+")


def with_same_people(changes: Sequence[Change], members: Iterable[Member]) -> list[Change]:
    """
    Return changes that say who may be removed at one address and invited at another one.

    Their first and last names, as far as the service shows them, are in the row and its address; or both addresses
    differ in their domains alone.
    """
    removed = {change.operation.user_uuid: change for change in changes if isinstance(change.operation, DeleteMember)}
    invited = _by_word(changes)
    hints: dict[Change, list[str]] = {}
    for member in members:
        removal = removed.get(member.user_uuid or "")
        if removal is None:
            continue
        for names in _names_of(member):
            sharing = [invited.get(word, {}) for word in names]
            common = [invite for invite in sharing[0] if all(invite in others for others in sharing)]
            for invite in common:
                hints.setdefault(removal, []).append(invite.name)
                hints.setdefault(invite, []).append(removal.name)
    return [_with_hint(change, hints.get(change)) for change in changes]


def _by_word(changes: Iterable[Change]) -> dict[str, dict[Change, None]]:
    """Return the invites by each word in the names and the addresses of their rows."""
    by_word: dict[str, dict[Change, None]] = {}
    for change in changes:
        if isinstance(change.operation, CreateInvite):
            row = change.operation
            for word in _words(f"{row.first_name or ''} {_local_part(row.target_email)}"):
                by_word.setdefault(word, {})[change] = None
    return by_word


def _names_of(member: Member) -> list[frozenset[str]]:
    """Return the words of the first and last name of a member, and of their address; only where there are two."""
    first = member.user.first_name if member.user else None
    last = member.user.last_name if member.user else None
    names: list[frozenset[str]] = []
    if first and last:
        names.append(_words(f"{first} {last}"))
    names.append(_words(_local_part(member.email_address)))
    return [words for words in dict.fromkeys(names) if len(words) > 1]


def _local_part(email: str) -> str:
    return email.rpartition("@")[0]


def _words(text: str) -> frozenset[str]:
    """Return the words of a name as addresses spell them: without case and accents."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(char for char in decomposed if not unicodedata.combining(char))
    return frozenset(NOT_IN_NAMES.sub(" ", plain).split())


def _with_hint(change: Change, others: Sequence[str] | None) -> Change:
    if not others:
        return change
    named = " or ".join(dict.fromkeys(others))
    hint = f"perhaps the same person as {named}"
    return replace(change, why=f"{change.why}, {hint}" if change.why else hint)
