"""Check the rows of a roster."""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.api.operation import explain
from airflow_provider_workspace.api.operations.invites import InviteFields
from airflow_provider_workspace.errors import WorkspaceInputError, type_name

log = logging.getLogger(__name__)

MAX_ADDRESS_LENGTH = 254
MAX_LOCAL_PART_LENGTH = 64
MAX_LABEL_LENGTH = 63
# The fields of a row in a report.
ENTRY_FIELDS = ("row", "email", "status", "reason", "invite_id")
_LOCAL = re.compile(r"[^\s@,;:<>()\[\]\\\"]+\Z")


@dataclass(frozen=True, slots=True)
class Row:
    """
    A row that can be invited.

    :param number: position in the input, as a spreadsheet shows it: the header of a CSV file is row 1
    :param key: the address in the form in which addresses are compared
    """

    number: int
    key: str
    invite: InviteFields

    @property
    def level(self) -> int | None:
        """The access level; ``None`` if the row names none."""
        return None if self.invite.level is None else int(self.invite.level)


@dataclass(frozen=True, slots=True)
class Entry:
    """
    The result of one row.

    :param row: position in the input, as a spreadsheet shows it: the header of a CSV file is row 1
    :param email: the address as given; empty if the row has none
    :param status: one of :data:`~airflow_provider_workspace.procedures.invites_report.STATUSES`
    :param reason: the reason, for people; empty if there is none
    :param invite_id: id of the new invite, if the service returned it
    """

    row: int
    email: str
    status: str
    reason: str = ""
    invite_id: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {name: getattr(self, name) for name in ENTRY_FIELDS}


@dataclass(slots=True)
class Roster:
    """The valid rows of a roster, the invalid ones and the duplicates, and the number of blank ones."""

    rows: list[Row] = field(default_factory=list[Row])
    invalid: list[Entry] = field(default_factory=list[Entry])
    duplicates: list[Entry] = field(default_factory=list[Entry])
    blank: int = 0


def check_roster(rows: Iterable[Mapping[str, Any] | str]) -> Roster:
    """
    Check the fields, types and address of every row, and separate rows that repeat an address.

    Blank rows, which are empty mappings, are skipped and counted.

    :param rows: fields of an invite (``email`` is accepted for ``target_email``), or addresses; their numbers begin
        with ``rows.first_number``, or 1
    :raises WorkspaceInputError: if ``rows`` is not iterable, or a single row
    """
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise WorkspaceInputError(f"invites must be rows or addresses, not {type_name(rows)}")
    roster = Roster()
    first_seen: dict[str, int] = {}
    for number, row in enumerate(rows, start=getattr(rows, "first_number", 1)):
        if row == {}:
            roster.blank += 1
            continue
        found = _check_row(number, row)
        if isinstance(found, Entry):
            roster.invalid.append(found)
        elif found.key in first_seen:
            email = found.invite.target_email
            roster.duplicates.append(Entry(number, email, "duplicate", f"same address as row {first_seen[found.key]}"))
        else:
            first_seen[found.key] = number
            roster.rows.append(found)
    if roster.blank:
        log.info("Skipped the blank rows of the roster: %d.", roster.blank)
    return roster


def _check_row(number: int, row: Mapping[str, Any] | str) -> Row | Entry:
    """Return a valid row, or the entry that says why it is invalid."""
    given = _tidy({"target_email": row} if isinstance(row, str) else row)
    address = given.get("target_email")
    email = address if isinstance(address, str) else ""
    try:
        invite = InviteFields.model_validate(given)
    except ValidationError as error:
        return Entry(number, email, "invalid", explain(InviteFields, error))
    problem = address_problem(invite.target_email)
    if problem:
        return Entry(number, email, "invalid", problem)
    return Row(number, address_key(invite.target_email), invite)


def _tidy(row: Mapping[str, Any] | Any) -> dict[str, Any]:
    """Trim texts and drop empty values: an empty cell means "not given"."""
    if not isinstance(row, Mapping):
        return {}
    given: dict[str, Any] = {}
    for name, value in row.items():
        text = value.strip() if isinstance(value, str) else value
        if text is None or text == "":
            continue
        given["target_email" if name == "email" else name] = text
    if isinstance(given.get("target_email"), str):
        local, at, domain = given["target_email"].rpartition("@")
        given["target_email"] = local + at + domain.lower()
    return given


def check_address(name: str, address: Any) -> str:
    """
    Return an address as it is sent: trimmed, the domain in lower case.

    :param name: the argument, for messages
    :raises WorkspaceInputError: if it is not an e-mail address
    """
    if not isinstance(address, str):
        raise WorkspaceInputError(f"Correct {name}: an e-mail address must be a string, not {type_name(address)}")
    email = str(_tidy({"target_email": address}).get("target_email", ""))
    problem = address_problem(email)
    if problem:
        raise WorkspaceInputError(
            f"Correct {name}: {address[:MAX_ADDRESS_LENGTH]!r} is not an e-mail address: {problem}"
        )
    return email


def address_problem(address: str) -> str | None:
    """
    Return what is wrong with an e-mail address; ``None`` if it is valid.

    This finds typing and spreadsheet errors. Only a mail can show whether an address exists.
    """
    if len(address) > MAX_ADDRESS_LENGTH:
        return f"the address is longer than {MAX_ADDRESS_LENGTH} characters"
    if not address.isprintable():
        hidden = [char for char in address if unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp")]
        if hidden:
            return f"the address contains an invisible character (U+{ord(hidden[0]):04X})"
    if "".join(address.split()) != address:
        return "the address contains a blank"
    if address.count("@") != 1:
        return "the address needs exactly one @"
    local, domain = address.split("@")
    if not local or len(local) > MAX_LOCAL_PART_LENGTH:
        return f"the part before the @ must have 1 to {MAX_LOCAL_PART_LENGTH} characters"
    if not _LOCAL.match(local) or local.startswith(".") or local.endswith(".") or ".." in local:
        return "the part before the @ is invalid"
    labels = domain.split(".")
    if len(labels) < 2 or not all(_is_label(label) for label in labels) or labels[-1].isdigit():
        return f"'{domain}' is not a domain"
    return None


def _is_label(label: str) -> bool:
    """Return whether a text is a label of a domain: letters of any script, digits, hyphens inside."""
    if not 0 < len(label) <= MAX_LABEL_LENGTH or label[0] == "-" or label[-1] == "-":
        return False
    letters = label.replace("-", "")
    # Marks, such as the vowel signs of Devanagari, are not alphanumeric.
    return letters.isalnum() or all(char.isalnum() or unicodedata.category(char)[0] == "M" for char in letters)
