"""What a reviewer may decide, the form and the question that ask it, and what an answer decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from airflow_provider_workspace import errors
from airflow_provider_workspace.access.rules.review_records import (
    KEEP,
    MEMBER,
    REMOVE,
    Decision,
    Population,
    ReviewedPerson,
)
from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.api.levels import LEVELS
from airflow_provider_workspace.api.timestamps import for_people, parse_time
from airflow_provider_workspace.errors import visible
from airflow_provider_workspace.procedures.markdown import fit, inert, table
from airflow_provider_workspace.procedures.plan import counted
from airflow_provider_workspace.procedures.roster_tables import records_of_csv

AGAIN = "Start a new run to decide again"
ANOTHER_USER = f"{AGAIN}, and let another user answer"
ASK_AGAIN = "Start a new run to ask again, with other reviewers or a longer review_timeout"
LOWER_TO = "lower to "
FACT_NOT_SHOWN = "not shown"
DECISION_HEADERS = ("who", "reasons to look", "access", "joined", "last log-in", "second factor")
# For more people than a question has room for with all of that; the reasons say who has no second factor.
SHORT_HEADERS = ("who", "reasons to look", "access", "last log-in")
# How the two lines begin that begin a table.
HEADS_OF_TABLES = (f"| {DECISION_HEADERS[0]} |", "| --- |")
# More rows than any question has room for.
MAX_DECISION_ROWS = 1_500
# Of more people, only those to look at first have a field of their own.
MAX_FIELDS = 25
MAX_PROBLEMS, MAX_SHOWN, MAX_WORD = 10, 60, 40
# The fields of the form that are about nobody.
ALL_OTHERS, FILE, FILE_DIGEST, EXCEPTIONS = "everybody_else", "decisions_file", "decisions_sha256", "exceptions"
# The columns of a decisions file that are read.
WHO, DECISION = "who", "decision"

Form = Mapping[str, Mapping[str, Any]]


def choices_of(person: ReviewedPerson) -> dict[str, Decision]:
    """Return what may be decided about somebody, by its words: the interface can lower members only."""
    choices: dict[str, Decision] = {KEEP: KEEP}
    if person.kept:
        return choices
    choices[REMOVE] = REMOVE
    if person.kind == MEMBER:
        level = person.level_under or 0
        for name, number in LEVELS.items():
            if number < level:
                choices[LOWER_TO + name] = number
    return choices


def refuse_what_was_not_offered(population: Population, decisions: Mapping[str, Decision]) -> list[str]:
    """Return the mistakes of decisions that come out of a file: somebody else, nobody, or another choice."""
    people = {person.who: person for person in population.people}
    mistakes = [f"{who!r} is not in the population" for who in decisions if who not in people]
    for who, person in people.items():
        if who not in decisions:
            mistakes.append(f"{who!r} is not decided")
        elif decisions[who] not in choices_of(person).values():
            mistakes.append(f"{decisions[who]!r} was not offered for {who!r}")
    return mistakes


# The question


def form_of(population: Population, *, has_file: bool = False) -> dict[str, dict[str, Any]]:
    """
    Return the fields of the question, as Airflow serializes a ``Param``.

    :param has_file: whether the author of the Dag named a folder of decisions files
    """
    is_long = len(population.people) > MAX_FIELDS
    is_optional = is_long and has_file  # the file has the decision
    form: dict[str, dict[str, Any]] = {}
    for person in population.people:
        if person.group or not is_long:
            form[person.who] = _field_of(person, is_optional=is_optional)
    if is_long:
        form |= _fields_of_others(population.groups.get("", []), is_optional=is_optional)
    if is_optional:
        form[FILE] = _field("or a file: population.csv with each decision", "null", "string")
        form[FILE_DIGEST] = _field("sha256 of this file", "null", "string")
    form[EXCEPTIONS] = _field("exceptions, as address: reason", "null", "string", format="multiline")
    return form


def _field(title: str, *types: str, value: Any = "", description: str | None = None, **schema: Any) -> dict[str, Any]:
    kind = types[0] if len(types) == 1 else list(types)
    schema = {**schema, "title": title, "type": kind}
    return {"value": value, "description": description, "schema": schema, "source": "task"}


def _choice(title: str, words: list[str], *, is_optional: bool, description: str | None = None) -> dict[str, Any]:
    """Return a field in which nothing is chosen yet; Airflow answers no question in which a choice is missing."""
    if is_optional:
        return _field(title, "null", "string", value=None, description=description, enum=[None, *words])
    return _field(title, "string", description=description, enum=words)


def _field_of(person: ReviewedPerson, *, is_optional: bool) -> dict[str, Any]:
    """Return the field of somebody, with what a reviewer must know of them."""
    facts = [person.kind, person.level_name or FACT_NOT_SHOWN]
    if person.kind == MEMBER:
        facts.append(f"last log-in {_day(person.last_login)}")
        facts.append(f"joined {_day(person.joined_at)}")
        facts.append(f"second factor {fact(person.is_2fa_enabled)}")
    facts += person.projects or ()
    facts += person.look
    title = visible(person.called)
    words = list(choices_of(person))
    description = visible(", ".join(facts))
    return _choice(title, words, is_optional=is_optional, description=description)


def _fields_of_others(people: Sequence[ReviewedPerson], *, is_optional: bool) -> dict[str, dict[str, Any]]:
    """Return the fields for all who are not looked at first: whom to remove, and that the others of them stay."""
    removable = [person for person in people if REMOVE in choices_of(person)]
    names = [person.who for person in removable]
    called = {person.who: visible(person.called) for person in removable}
    removed = _field(
        f"of the {len(people)} others, remove",
        *("null", "array"),
        value=None,
        examples=names,
        values_display=called,
        items={"type": "string"},
    )
    kept = _choice("all others of them", [KEEP], is_optional=is_optional)
    return {REMOVE: removed, ALL_OTHERS: kept}


def question_of(population: Population, folder: str) -> str:
    """Return the Markdown body of the question: everybody, first those whom a reviewer must look at."""
    count = len(population.people)
    organization_id = inert(population.organization_id)
    where = f"organization {organization_id} at {inert(population.service)}"
    file = inert(f"{folder}/population.csv")
    read_at = for_people(parse_time(population.read_at))
    first = len([person for person in population.people if person.group])
    opening = [
        f"{count} people and invites have access to {where}.",
        "",
        f"- **Lists read at**: {read_at}",
        f"- **All of them**: {file}",
        f"- **Projects**: {describe_scope_of_levels(population)}",
        "",
        *since_last_review(population),
        "",
        f"To look at first: {first} of {count}.",
        "",
        *too_many_to_look_at(population),
    ]
    tables = _tables_of(population, DECISION_HEADERS, cells_of)
    lines = [*opening, *tables]
    if len(fit(lines)) < len(lines):
        short_tables = _tables_of(population, SHORT_HEADERS, _short_cells_of)
        lines = [*opening, *short_tables]
    shown = fit(lines)
    table_lines = [line for line in shown if line.startswith("| ")]
    rows_shown = [line for line in table_lines if not line.startswith(HEADS_OF_TABLES)]
    hidden = count - len(rows_shown)
    if hidden:
        shown.append(f"\n**{hidden} of {count} are not shown here. Decide about them too: they are in {file}.**")
    return "\n".join(shown)


def _tables_of(
    population: Population, headers: Sequence[str], cells: Callable[[ReviewedPerson], list[str]]
) -> list[str]:
    """Return a table for each group of people, with its heading and their number."""
    lines: list[str] = []
    for group, people in population.groups.items():
        initial = group[:1].upper()
        title = f"{initial}{group[1:]}" or "Everybody else, by name"
        people_shown = people[:MAX_DECISION_ROWS]
        rows = table(headers, map(cells, people_shown))
        lines += [f"**{title}: {len(people)}**", "", *rows, ""]
    return lines


def describe_scope_of_levels(population: Population) -> str:
    """Return whether levels in projects are reviewed, too."""
    if not population.shows_projects:
        return "only levels of the organization are reviewed, since nobody read who has which access to a project"
    return "the levels in projects are beside those of the organization, as far as the service shows them"


def too_many_to_look_at(population: Population) -> list[str]:
    """Return what is true of too many people to be a reason to look at them first; nothing if there is none."""
    if not population.too_many:
        return []
    return [f"True of too many to look at them first: {'; '.join(population.too_many)}.", ""]


def since_last_review(population: Population) -> list[str]:
    """Return the numbers since the last review, which add up, who joined and is gone, and what was lifted."""
    lifted: list[str] = []
    if population.lifted:
        names = _names(population.lifted, "lifted in population.json")
        lifted = ["", f"What reviewers decided and people lifted since: {names}."]
    previous = population.previous
    if previous is None:
        return ["There is no earlier review.", *lifted]
    joined = population.joined
    gone = population.left or ()
    now = len(population.people)
    numbers = f"+ {len(joined)} joined - {len(gone)} gone = {now} now"
    joined_names = _names(joined, "those who are new in population.csv")
    gone_names = _names(gone, "left in population.json")
    since = previous.read_at
    return [
        f"The last review, read {since}, left {previous.people}, {numbers}.",
        "",
        f"- Joined since {since}: {joined_names}.",
        f"- Gone since {since}: {gone_names}.",
        *lifted,
    ]


def _names(names: Sequence[str], everything: str) -> str:
    """Return as many names as people read, and where the others are."""
    return inert(errors.name_first(names, everything, ", ")) or "nobody"


def cells_of(person: ReviewedPerson) -> list[str]:
    """Return the row of somebody in a table with :data:`DECISION_HEADERS`."""
    who = person.called
    access = person.level_name or f"level {FACT_NOT_SHOWN}"
    if person.kind != MEMBER:
        access = f"{person.kind}, {access}"
    if person.projects:
        projects = ", ".join(person.projects)
        access = f"{access}; {projects}"
    reasons = ", ".join(person.look)
    return [
        who,
        reasons,
        access,
        _day(person.joined_at),
        _day(person.last_login),
        fact(person.is_2fa_enabled),
    ]


def _short_cells_of(person: ReviewedPerson) -> list[str]:
    """Return the row of somebody in a table with :data:`SHORT_HEADERS`."""
    _, reasons, access, _, last_login, _ = cells_of(person)
    return [person.who, reasons, access, last_login]


def _day(time: str | None) -> str:
    return FACT_NOT_SHOWN if time is None else time[:10]


def fact(value: object) -> str:
    """Return what the service says, or that it says nothing."""
    if value is None:
        return FACT_NOT_SHOWN
    return "yes" if value else "no"


# The answer


@dataclass(frozen=True)
class ReadAnswer:
    """
    What an answer decides.

    :param by_default: who stay because everybody else does
    :param exceptions: the reason for each person
    """

    decisions: dict[str, Decision]
    by_default: list[str]
    exceptions: dict[str, str]


@dataclass
class _Words:
    """
    What an answer says about each person, and where.

    :param said: by name of the person, then by where it stands
    """

    people: Mapping[str, ReviewedPerson]
    said: dict[str, dict[str, object]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def add(self, name: object, where: str, word: object) -> None:
        """Add what is said about somebody."""
        who = _find(self.people, name)
        if who not in self.people:
            name_shown = who[:MAX_SHOWN]
            self.problems.append(f"{name_shown!r} ({where}): expected somebody in the population")
            return
        self.said.setdefault(who, {})[where] = word

    def decision(self, who: str) -> Decision | None:
        """Return what is decided about somebody; ``None``, and a problem, if nothing is or several things are."""
        person = self.people[who]
        words = self.said.get(who, {})
        decisions: set[Decision | None] = {_parse(person, word) for word in words.values()}
        if len(decisions) == 1:
            (decision,) = decisions
            if decision is not None:
                return decision
        places: list[str] = []
        for where, word in words.items():
            text = str(word or "")
            places.append(f"{where}: {text[:MAX_WORD]!r}")
        found = ", ".join(places) or "not decided"
        expected = ", ".join(choices_of(person))
        name_shown = who[:MAX_SHOWN]
        self.problems.append(f"{name_shown!r} ({found}): expected one of {expected}")
        return None


def read_answer(
    population: Population, answer: Mapping[str, Any], form: Form, file_rows: list[dict[str, str]] | None = None
) -> ReadAnswer:
    """
    Return what was decided about each person: ``keep``, ``remove`` or a lower level.

    :param answer: the values of the form
    :param form: what :func:`form_of` returned
    :param file_rows: the rows of the decisions file that the answer names
    :raises WorkspaceInputError: if it does not decide everybody, or is not an answer to this form
    """
    words = _Words({person.who: person for person in population.people})
    for name in answer:
        if name not in form:
            words.problems.append(f"{errors.shown(name)} is no field of the form")
    _read_fields(words, answer, form)
    for number, row in enumerate(file_rows or (), start=2):
        words.add(row[WHO], f"row {number} of the file", row[DECISION])
    by_default: list[str] = []
    if file_rows is None and answer.get(ALL_OTHERS) == KEEP:
        without_words = [who for who in words.people if who not in words.said]
        by_default = [who for who in without_words if who not in form]
        for who in by_default:
            words.add(who, "everybody else", KEEP)
    undecided = [who for who in words.people if who not in words.said]
    if by_default and undecided:
        people = counted(len(undecided), "person", "people")
        words.problems.append(f"{people} to look at first without a choice")
    decisions: dict[str, Decision] = {}
    for who in words.people:
        decision = words.decision(who)
        if decision is not None:
            decisions[who] = decision
    exceptions = _read_exceptions(words, answer)
    if words.problems:
        mistakes = counted(len(words.problems), "mistake", "mistakes")
        refuse(f"The answer has {mistakes}", words.problems)
    return ReadAnswer(decisions, by_default, exceptions)


def _read_fields(words: _Words, answer: Mapping[str, Any], form: Form) -> None:
    """Read the fields about people: one for each who is looked at first, and a list of whom to remove."""
    for name in form:
        value = answer.get(name)
        if name in words.people and value:
            words.add(name, "the form", value)
        elif name == REMOVE and value:
            for who in value if isinstance(value, list) else [value]:
                words.add(who, f"field '{REMOVE}'", REMOVE)


def _read_exceptions(words: _Words, answer: Mapping[str, Any]) -> dict[str, str]:
    """Return the exceptions of an answer: the reason for each person."""
    exceptions: dict[str, str] = {}
    for line in str(answer.get(EXCEPTIONS) or "").splitlines():
        if not line.strip():
            continue
        name, _, reason = line.partition(":")
        who = _find(words.people, name)
        if who not in words.people or not reason.strip():
            expected = "expected somebody in the population, ':' and the reason"
            name_shown = name[:MAX_SHOWN]
            words.problems.append(f"exceptions, {name_shown!r}: {expected}")
        elif who in exceptions:
            name_shown = who[:MAX_SHOWN]
            words.problems.append(f"exceptions, {name_shown!r}: expected one line for each person")
        exceptions[who] = reason.strip()
    return exceptions


def refuse(why: str, mistakes: Sequence[str] = ()) -> NoReturn:
    """
    Refuse an answer.

    :param mistakes: what is wrong with single people and fields
    :raises WorkspaceInputError: always
    """
    message = f"{why}. {AGAIN}"
    if mistakes:
        mistakes_shown = "; ".join(mistakes[:MAX_PROBLEMS])
        message += f": {mistakes_shown}"
    raise errors.WorkspaceInputError(message, problem="answer-refused")


def refuse_silence(due_at: str) -> NoReturn:
    """
    Refuse to decide anything, since nobody answered.

    :raises WorkspaceInputError: always
    """
    raise errors.WorkspaceInputError(f"Nobody answered by {due_at}. {ASK_AGAIN}", problem="not-answered")


def reason_of(refusal: errors.WorkspaceInputError) -> str:
    """Return why an answer does not count, without what to do then."""
    reason = refusal.why
    for cure in (ANOTHER_USER, ASK_AGAIN, AGAIN):
        reason = reason.replace(f". {cure}", "")
    return reason


def read_decisions_file(text: str) -> list[dict[str, str]]:
    """
    Return ``who`` and ``decision`` of each row of a decisions file, also as a spreadsheet saves it.

    :raises WorkspaceInputError: if it is no such file
    """
    try:
        rows = records_of_csv(text)
    except ValueError as error:
        refuse(f"The decisions file cannot be read ({error})")
    for column in (WHO, DECISION):
        if not rows or column not in rows[0]:
            refuse(f"The decisions file has no column {column!r}, or no rows")
    decisions: list[dict[str, str]] = []
    for row in rows:
        who = row[WHO].strip()
        decision = row[DECISION].strip()
        decisions.append({WHO: who, DECISION: decision})
    return decisions


def _find(people: Mapping[str, ReviewedPerson], name: object) -> str:
    """Return somebody as the population names them, also after a spreadsheet; else what was given."""
    text = str(name or "").strip()
    address = visible(address_key(text))
    for spelling in (text, text.removeprefix("'"), address):
        if spelling in people:
            return spelling
    return text


def _parse(person: ReviewedPerson, word: object) -> Decision | None:
    text = str(word or "").strip().lower()
    for name, decision in choices_of(person).items():
        level = name.removeprefix(LOWER_TO)
        if text in (name, level, str(decision)):
            return decision
    return None
