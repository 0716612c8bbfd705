"""People whose address has changed: a row may name their user, or a removal and an invite may be about one person."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.api.operations.invites import CreateInvite
from airflow_provider_workspace.api.operations.members import DeleteMember
from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.procedures.access_list import users_by_address
from airflow_provider_workspace.procedures.roster import Entry

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Member
    from airflow_provider_workspace.procedures.plan import Change
    from airflow_provider_workspace.procedures.roster import Roster, Row

NOT_IN_NAMES = re.compile(r"[\W\d_]+")


def find_people_by_user(roster: Roster, members: Sequence[Member], *, is_leaving: bool) -> dict[str, str]:
    """
    Give rows that name a user the address that the user has now.

    :param is_leaving: whether the people of the rows are removed, whatever their levels
    :return: the keys of the addresses in such rows, by those of the addresses now
    :raises WorkspaceInputError: if the address of a row is that of another user, or two rows of a user differ
    """
    addresses = {member.user_uuid: member.email_address for member in members if member.user_uuid}
    for user_uuid, number in list(roster.people_left_out.items()):
        key = address_key(addresses.get(user_uuid, ""))
        if key:
            roster.people_left_out.setdefault(key, number)
    roster.note_rows_left_out()
    renamed: dict[str, str] = {}
    if not any(row.user_uuid for row in (*roster.rows, *roster.ended)):
        return renamed
    users = users_by_address(members)
    taken = {row.key: row for row in (*roster.rows, *roster.ended)}
    for rows in (roster.rows, roster.ended):
        found = list(rows)
        rows.clear()
        for row in found:
            _raise_if_of_another_user(row, users.get(row.key, []))
            email = addresses.get(row.user_uuid, "")
            key = address_key(email)
            given = row.invite.target_email
            if not email or key == row.key:
                rows.append(row)
                continue
            renamed[key] = row.key
            if key in taken:
                _raise_if_different(row, taken[key], is_leaving=is_leaving)
                reason = f"its user has the address {email} now, which another row has"
                roster.duplicates.append(Entry(row.number, given, "duplicate", reason))
            else:
                invite = row.invite.model_copy(update={"target_email": email})
                taken[key] = replace(row, key=key, invite=invite)
                rows.append(taken[key])
                roster.remarks.append(f"The user of row {row.number}, {given}, has the address {email} now.")
    roster.note_rows_left_out()
    return renamed


def _raise_if_of_another_user(row: Row, users: Sequence[str]) -> None:
    """Refuse a row that names a user, and whose address is that of others."""
    if not row.user_uuid or not users or row.user_uuid in users:
        return
    named = users[0] or "-"
    raise WorkspaceInputError(
        f"Row {row.number} names user {row.user_uuid}, but {row.invite.target_email} is the address of user {named}. "
        "Correct the row",
        problem="rows-invalid",
    )


def _raise_if_different(row: Row, other: Row, *, is_leaving: bool) -> None:
    """Refuse two rows of one user that say different things: nobody knows which of them counts."""
    if row.end == other.end and (is_leaving or row.level == other.level):
        return
    raise WorkspaceInputError(
        f"Rows {other.number} and {row.number} are about one user, and differ in their level or end: user "
        f"{row.user_uuid} has the address {other.invite.target_email} now. Keep one of them",
        problem="rows-invalid",
    )


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
