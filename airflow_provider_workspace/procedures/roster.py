"""Check the rows of a roster."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any

from pydantic import ValidationError

from airflow_provider_workspace.api.comparison import address_key, show
from airflow_provider_workspace.api.fields import explain
from airflow_provider_workspace.api.ids import canonical_text
from airflow_provider_workspace.api.operations.invites import InviteFields
from airflow_provider_workspace.api.secrets import without_secrets
from airflow_provider_workspace.errors import WorkspaceInputError, shown
from airflow_provider_workspace.procedures.matching import text_of
from airflow_provider_workspace.procedures.roster_columns import USER_FIELD
from airflow_provider_workspace.procedures.row_shape import addresses_in
from airflow_provider_workspace.procedures.until import END_FIELDS, LAST_DAY, End, remark_on_midnight

MAX_ADDRESS_LENGTH = 254
MAX_LOCAL_PART_LENGTH = 64
MAX_LABEL_LENGTH = 63
MAX_LEVEL_SHOWN = 40
# The fields of a row in a report.
ENTRY_FIELDS = ("row", "email", "status", "reason", "invite_id")
NO_END = End()
# For so long, no run may have come after an end.
MISSED_RUNS = timedelta(days=30)
_LOCAL = re.compile(r"[^\s@,;:<>()\[\]\\\"]+\Z")
# What a spreadsheet writes before a text, or makes of it.
APOSTROPHES = "'\u2018\u2019`\u00b4\u02bc\u2032\uff07\u201b\u201c\u201d"
# What stands before a line of a list, or a formula.
BULLETS = "=*-/&|\u2022\u00b7\u2010\u2011\u2012\u2013\u2014\u2212\u25aa\u25cf\u25e6\u2023"
# An address with more than the address: Mia <mia@example.com>, mailto:mia@example.com, mia@example.com (Sales).
_ADDRESS_WITH_MORE = re.compile(
    r"[^<>]*<\s*(?P<in_brackets>[^\s<>]+@[^\s<>]+)\s*>"
    r"|(?:mailto|smtp|sip):\s*(?P<after_scheme>\S+)"
    r"|[\"\u201e](?P<in_quotes>[^\s\"]+)[\"\u201c\u201d]"
    r"|(?P<before_comment>\S+@\S+)\s+\(.*\)",
    re.IGNORECASE,
)
# What every cell has that holds more than an address; most do not.
_MAY_HOLD_MORE = re.compile(rf"\A[{re.escape(APOSTROPHES + BULLETS)}]|[<:\"\u201e(]")
# The sign-in name of a guest at Entra ID.
GUEST = "#ext#"


class RosterRows(list[dict[str, Any]]):
    """
    The rows of a roster, with the names of the interface; a blank row is an empty mapping.

    :ivar first_number: number of the first row, as a spreadsheet shows it: the header of a CSV file is row 1
    :ivar left_out: by the numbers of rows that ``where`` leaves out, which are empty mappings too, whom they name:
        address and user
    :ivar misshapen: by the number of a row whose cells may stand in wrong columns, what is wrong with it
    :ivar hints: by the number of a row whose address may be invalid, what helps to find or correct it
    :ivar columns: the name of the column of each field, where it has another one
    :ivar remarks: what people must know about how the rows were read
    :ivar origin_of_levels: what they must know about where levels come from; empty if there is nothing
    """

    def __init__(self, first_number: int = 1) -> None:
        super().__init__()
        self.first_number = first_number
        self.left_out: dict[int, tuple[Any, Any]] = {}
        self.misshapen: dict[int, str] = {}
        self.hints: dict[int, str] = {}
        self.columns: dict[str, str] = {}
        self.remarks: list[str] = []
        self.origin_of_levels = ""


@dataclass(frozen=True, slots=True)
class Row:
    """
    A row that can be invited.

    :param number: position in the input, as a spreadsheet shows it: the header of a CSV file is row 1
    :param key: the address in the form in which addresses are compared
    :param ended: rows of the same person whose end is over, the latest last; with itself, if there are no others
    :param recent: those of them after which the next run may not have come yet. Rows follow each other: what one gave
        that ended long before, somebody gave again by hand
    :param user_uuid: the user whom it names; empty if it names none
    :param row_left_out: the number of another row of the same person that ``where`` leaves out; 0 without one
    """

    number: int
    key: str
    invite: InviteFields
    end: End = NO_END
    ended: tuple[Row, ...] = ()
    recent: tuple[Row, ...] = ()
    user_uuid: str = ""
    row_left_out: int = 0

    @property
    def level(self) -> int | None:
        """The access level; ``None`` if the row names none."""
        return None if self.invite.level is None else int(self.invite.level)

    @property
    def is_over(self) -> bool:
        """Whether its end is over, and the person has no other row that counts."""
        return bool(self.ended) and self.ended[-1].number == self.number

    @property
    def leaves_now(self) -> bool:
        """
        Of a row of leavers, whether its person leaves now.

        A row without an end keeps whom an earlier one ended, and so does one that ``where`` leaves out.
        """
        if self.row_left_out:
            return False
        if self.is_over:
            return True
        return self.end.until is None and not self.ended

    def had(self, level: int | None) -> bool:
        """Return whether a row of the same person gave a level until an end that is over, and this one does not."""
        if level is None or (not self.is_over and level == self.level):
            return False
        return any(row.level == level for row in self.recent)

    @property
    def fields(self) -> dict[str, Any]:
        """What the row says of the person."""
        user = {USER_FIELD: self.user_uuid} if self.user_uuid else {}
        return self.invite.model_dump(exclude_unset=True, exclude={"target_email"}) | self.end.fields | user


@dataclass(frozen=True, slots=True)
class Entry:
    """
    The result of one row.

    :param row: position in the input, as a spreadsheet shows it: the header of a CSV file is row 1
    :param email: the address as given; empty if the row has none
    :param status: one of :data:`~airflow_provider_workspace.procedures.invites_report.STATUSES`
    :param reason: the reason, for people; empty if there is none
    :param invite_id: id of the new invite, if the service returned it
    :param user_uuid: of an invalid row, the user whom it names; empty if it names none
    """

    row: int
    email: str
    status: str
    reason: str = ""
    invite_id: str | None = None
    user_uuid: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {name: getattr(self, name) for name in ENTRY_FIELDS}


@dataclass(slots=True)
class Roster:
    """
    The people of a roster, those whose end is over, its invalid rows and duplicates.

    :param blank: how many rows are blank
    :param left_out: how many rows ``where`` leaves out
    :param with_end: numbers of the invalid rows that have an end, which may be over
    :param doubtful: numbers of the invalid rows of people of whom another row has ended
    :param remarks: what people must know about how the rows were read
    :param people_left_out: the number of a row that ``where`` leaves out, by the address and the user of
        its person
    """

    rows: list[Row] = field(default_factory=list[Row])
    ended: list[Row] = field(default_factory=list[Row])
    invalid: list[Entry] = field(default_factory=list[Entry])
    duplicates: list[Entry] = field(default_factory=list[Entry])
    blank: int = 0
    left_out: int = 0
    with_end: set[int] = field(default_factory=set[int])
    doubtful: set[int] = field(default_factory=set[int])
    remarks: list[str] = field(default_factory=list[str])
    people_left_out: dict[str, int] = field(default_factory=dict[str, int])

    def note_rows_left_out(self) -> None:
        """Note in the rows of people that ``where`` leaves out another one about them: they may be back."""
        for rows in (self.rows, self.ended):
            rows[:] = [self._with_row_left_out(row) for row in rows]

    def _with_row_left_out(self, row: Row) -> Row:
        number = self.people_left_out.get(row.key) or self.people_left_out.get(row.user_uuid)
        return replace(row, row_left_out=number) if number else row


def check_roster(
    rows: Iterable[Mapping[str, Any]], now: datetime | None = None, *, only_addresses: bool = False
) -> Roster:
    """
    Check the fields, types and address of every row, and bring together the rows about one person.

    Rows that say the same of a person are duplicates; if they say different things, none of them is valid. Rows with
    different ends do not conflict: the one with the highest level counts until its end, then the next.
    Blank rows, which are empty mappings, are skipped and counted.

    :param rows: fields of an invite, see :func:`~airflow_provider_workspace.procedures.roster_files.read_roster`; their
        numbers begin with ``rows.first_number``, or 1
    :param now: decides which ends are over; ``None`` if it does not matter
    :param only_addresses: whether it does not matter what rows say of a person
    """
    given = rows if isinstance(rows, RosterRows) else RosterRows()
    roster = Roster(left_out=len(given.left_out), remarks=[*given.remarks])
    if given.origin_of_levels and not only_addresses:
        roster.remarks.append(given.origin_of_levels)
    people: dict[str, dict[str | None, list[Row]]] = {}
    for number, row in enumerate(rows, start=given.first_number):
        if not row:
            roster.blank += number not in given.left_out
            continue
        problem = given.misshapen.get(number)
        checked = _misshapen(number, row, problem) if problem else _check_row(number, row)
        if isinstance(checked, Entry):
            user_uuid = canonical_text(str(row.get(USER_FIELD) or ""))
            roster.invalid.append(replace(_with_hints(checked, row, given), user_uuid=user_uuid))
            if row.get("until") is not None:
                roster.with_end.add(number)
            continue
        if checked.end.until == LAST_DAY and not only_addresses:  # of a leaver, it is no end of the work
            checked = replace(checked, end=NO_END)
        periods = people.setdefault(checked.key, {})
        until = checked.end.until if now else None
        periods.setdefault(until, []).append(checked)
    for periods in people.values():
        _add_person(roster, [*periods.values()], now, only_addresses=only_addresses)
    roster.people_left_out = _people_left_out(given.left_out)
    roster.note_rows_left_out()
    roster.invalid.sort(key=attrgetter("row"))
    with_end = [row for row in (*roster.rows, *roster.ended) if row.end is not NO_END]
    with_end.sort(key=attrgetter("number"))
    midnight = remark_on_midnight({f"in row {row.number}": row.end.until for row in with_end})
    if midnight:
        roster.remarks.append(midnight)
    return roster


def _people_left_out(left_out: Mapping[int, tuple[Any, Any]]) -> dict[str, int]:
    """Return the first row that ``where`` leaves out by the address, and by the user, of its person."""
    numbers: dict[str, int] = {}
    for number, (address, user_uuid) in left_out.items():
        for each in addresses_in(address):
            numbers.setdefault(address_key(each), number)
        if user_uuid:
            numbers.setdefault(canonical_text(str(user_uuid)), number)
    numbers.pop("", None)
    return numbers


def _add_person(roster: Roster, periods: list[list[Row]], now: datetime | None, *, only_addresses: bool) -> None:
    """Add the rows of a person, which are together if they have the same end, to a roster."""
    has_conflict = False
    for rows in periods:
        first, *others = rows
        different = [row for row in others if row.fields != first.fields]
        if not different or only_addresses:
            reason = f"same address as row {first.number}"
            for row in others:
                roster.duplicates.append(Entry(row.number, row.invite.target_email, "duplicate", reason))
            continue
        has_conflict = True
        for row in rows:
            other = different[0] if row.fields == first.fields else first
            roster.invalid.append(_conflict(row, other))
            if row.end.until:
                roster.with_end.add(row.number)
    if has_conflict:
        return
    counts = _row_now([rows[0] for rows in periods], now)
    (roster.ended if counts.is_over else roster.rows).append(counts)


def _with_hints(entry: Entry, row: Mapping[str, Any], given: RosterRows) -> Entry:
    """Return the entry of an invalid row with the names of the columns in its file, and what helps to correct it."""
    reason = entry.reason
    for name, column in given.columns.items():
        reason = reason.replace(f"field '{name}'", f"field '{name}' (column {shown(column)})")
    hint = given.hints.get(entry.row)
    level = row.get("level")
    if "field 'level'" in reason and level is not None:
        found = shown(level) if isinstance(level, str) else text_of(level)[:MAX_LEVEL_SHOWN]
        hint = f"found {found}; levels=… says what such texts stand for"
    return replace(entry, reason=f"{reason} ({hint})" if hint else reason)


def _row_now(periods: list[Row], now: datetime | None) -> Row:
    """Return the row of a person that counts now: the best one whose end is not over, else the last one that is."""
    if len(periods) == 1 and periods[0].end is NO_END:  # as most rows, of which there may be many
        return periods[0]
    ended: list[Row] = []
    active: list[Row] = []
    for row in sorted(periods, key=attrgetter("end.moment")):
        is_over = now is not None and row.end.is_over(now)
        (ended if is_over else active).append(row)
    if active:
        best = max(active, key=_level_and_end)
        last_run = now or best.end.moment
    else:
        best = ended[-1]
        last_run = best.end.moment
    recent = [row for row in ended if row.end.moment >= last_run - MISSED_RUNS]
    return replace(best, ended=tuple(ended), recent=tuple(recent))


def _level_and_end(row: Row) -> tuple[float, datetime]:
    """Return by what rows of a person are compared: the level, no level being the lowest, then the end."""
    level = -math.inf if row.level is None else row.level
    return level, row.end.moment


def _check_row(number: int, row: Mapping[str, Any]) -> Row | Entry:
    """Return a valid row, or the entry that says why it is invalid."""
    given = {name: cell for name, cell in row.items() if cell is not None}
    address = given.get("target_email")
    if isinstance(address, str):
        given["target_email"] = address = _tidy(address)
    # Half a character cannot be written into a report.
    email = address.encode(errors="replace").decode() if isinstance(address, str) else ""
    for name, cell in given.items():
        if isinstance(cell, bytes | bytearray | memoryview):
            return Entry(number, email, "invalid", f"field '{name}': expected text, not bytes: decode the column")
    user_uuid = canonical_text(str(given.pop(USER_FIELD, "")))
    model: type[InviteFields | End] = End
    try:
        ends = {name: given.pop(name) for name in END_FIELDS if name in given}
        end, model = End.model_validate(ends) if ends else NO_END, InviteFields
        found = Row(number, address_key(email), InviteFields.model_validate(given), end, user_uuid=user_uuid)
    except ValidationError as error:
        return Entry(number, email, "invalid", explain(model, error))
    problem = address_problem(email) or end.problem(found.level)
    return Entry(number, email, "invalid", problem) if problem else found


def _misshapen(number: int, row: Mapping[str, Any], problem: str) -> Entry:
    """Return the entry of a row whose cells may stand in wrong columns."""
    return Entry(number, row.get("target_email") or "", "invalid", problem)


def _conflict(row: Row, other: Row) -> Entry:
    """Return the entry of a row of which another one about the same person says something else."""
    differences: list[str] = []
    for name in {**row.fields, **other.fields}:
        here, there = without_secrets([row.fields.get(name), other.fields.get(name)])
        if row.fields.get(name) != other.fields.get(name):
            differences.append(f"{name} {show(here)} here, {show(there)} there")
    reason = f"conflicts with row {other.number} (same address): {'; '.join(differences)}"
    return Entry(row.number, row.invite.target_email, "invalid", reason, user_uuid=row.user_uuid)


def _tidy(address: str) -> str:
    """Return an address trimmed, and its domain in lower case."""
    local, at, domain = address.strip().rpartition("@")
    return local + at + domain.lower() if at else domain


def check_address(name: str, address: str) -> str:
    """
    Return an address as it is sent: trimmed, the domain in lower case.

    :param name: the argument, for messages
    :raises WorkspaceInputError: if it is not an e-mail address
    """
    email = _tidy(address)
    problem = address_problem(email)
    if problem:
        raise WorkspaceInputError(f"{name}: {address[:MAX_ADDRESS_LENGTH]!r} is not an e-mail address: {problem}")
    return email


def address_problem(address: str) -> str | None:
    """
    Return what is wrong with an e-mail address; ``None`` if it is valid.

    This finds typing and spreadsheet errors. Only a mail can show whether an address exists. An apostrophe before the
    address is refused and not removed: with it, the address may be that of another person, whom nobody named.
    """
    addresses = addresses_in(address) if address.count("@") > 1 else []
    if len(addresses) > 1:
        return _several_addresses(addresses)
    if len(address) > MAX_ADDRESS_LENGTH:
        return f"the address is longer than {MAX_ADDRESS_LENGTH} characters"
    more = _more_than_address(address)
    if more is not None:
        return more
    if not address.isprintable():
        hidden = [char for char in address if unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp")]
        if hidden:
            return f"the address contains an invisible character (U+{ord(hidden[0]):04X})"
    if "".join(address.split()) != address:
        return "the address contains a blank"
    if address.count("@") != 1:
        return "the address needs exactly one @"
    local, domain = address.split("@")
    if GUEST in local.lower():
        return "it is the sign-in name of a guest (#EXT#), not a mailbox: take the column with the mailbox"
    if not local or len(local) > MAX_LOCAL_PART_LENGTH:
        return f"the part before the @ must have 1 to {MAX_LOCAL_PART_LENGTH} characters"
    if not _LOCAL.match(local) or local.startswith(".") or local.endswith(".") or ".." in local:
        return "the part before the @ is invalid"
    labels = domain.split(".")
    if len(labels) < 2 or not all(_is_label(label) for label in labels) or labels[-1].isdigit():
        return f"'{domain}' is not a domain"
    return None


def _several_addresses(addresses: list[str]) -> str:
    """Return what is wrong with a cell that holds several addresses, perhaps the same one twice."""
    keys = {address_key(address) for address in addresses}
    if len(keys) == 1:
        return f"the cell holds one address {len(addresses)} times: write {addresses[0]} alone"
    return f"the cell holds {len(addresses)} addresses: write each into a row of its own"


def _more_than_address(text: str) -> str | None:
    """Return what a cell holds besides one address, such as a mark or a name; ``None`` if nothing is found."""
    if not _MAY_HOLD_MORE.search(text):
        return None
    if text.startswith(tuple(APOSTROPHES)):
        return "the address begins with an apostrophe, as a spreadsheet marks a text: delete it"
    if text.startswith(tuple(BULLETS)):
        return f"the address begins with {text[0]!r}, as a line of a list or a formula: delete it"
    match = _ADDRESS_WITH_MORE.fullmatch(text)
    if match is None or match.lastgroup is None:
        return None
    address = match[match.lastgroup]
    if address_problem(address) is not None:
        return None
    return f"the cell holds more than an address: write {address} alone"


def _is_label(label: str) -> bool:
    """Return whether a text is a label of a domain: letters of any script, digits, hyphens inside."""
    if not label or len(label) > MAX_LABEL_LENGTH:
        return False
    if label.startswith("-") or label.endswith("-"):
        return False
    letters = label.replace("-", "")
    if letters.isalnum():
        return True
    # Marks, such as the vowel signs of Devanagari, are not alphanumeric.
    return all(char.isalnum() or unicodedata.category(char).startswith("M") for char in letters)
