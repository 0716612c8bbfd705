"""The organization file: the desired state of an organization, checked with line numbers for each error."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn
from uuid import UUID

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError
from yaml.composer import ComposerError
from yaml.representer import RepresenterError

from airflow_provider_workspace.access.members.earlier_invites import TIMES_AGAIN
from airflow_provider_workspace.access.rules.guards import Guards, is_pattern, pattern_problem, protected_key
from airflow_provider_workspace.api.comparison import address_key, domain_key
from airflow_provider_workspace.api.database_limits import compared_key
from airflow_provider_workspace.api.fields import DomainName, TextId, Uuid, expected_by
from airflow_provider_workspace.api.levels import OptionalLevel, OptionalNumber
from airflow_provider_workspace.api.operations.domains import DomainFields
from airflow_provider_workspace.api.operations.invites import InviteDetails
from airflow_provider_workspace.api.operations.projects import ProjectFields
from airflow_provider_workspace.api.secrets import is_secret, secrets_under
from airflow_provider_workspace.errors import WorkspaceInputError, did_you_mean, type_name
from airflow_provider_workspace.procedures.find import project_key
from airflow_provider_workspace.procedures.plan import checked_limit_or_ask
from airflow_provider_workspace.procedures.roster import address_problem
from airflow_provider_workspace.procedures.roster_columns import RowFormat
from airflow_provider_workspace.procedures.until import End, parse_until

if TYPE_CHECKING:
    from typing_extensions import Self

    from airflow_provider_workspace.procedures.roster_tables import RosterFile

# Maximum number of values: YAML aliases can make a small file large.
MAX_NODES = 200_000
# Maximum length of a file; one of this length takes about a minute to read.
MAX_CHARACTERS = 2_000_000
# Maximum number of mistakes in one error.
MAX_FINDINGS = 100
# A number as JSON writes it. YAML also reads 010 as 8, 1_5 as 15 and 1:30 as 90.
NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
TIMESTAMP = "tag:yaml.org,2002:timestamp"
DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]*)?(\.[0-9]*)?([eE][-+]?[0-9]+)?")


def _checked_address(value: str) -> str:
    problem = address_problem(value.strip())
    if problem:
        raise ValueError(problem)
    return value.strip()


Address = Annotated[str, AfterValidator(_checked_address)]


def _checked_protected(text: str) -> str:
    if not is_pattern(text):
        return _checked_address(text)
    problem = pattern_problem(text)
    if problem:
        raise ValueError(problem)
    return text.strip()


def _person(value: object) -> Any:
    return {"email": value} if isinstance(value, str) else value


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class Person(InviteDetails, End, _Entry):
    """A person who is to be a member; may be written as an address alone."""

    email: Address


class ProtectedPerson(_Entry):
    """A person who is never removed or changed, or everybody of a domain, as ``*@partner.example``."""

    email: Annotated[str, AfterValidator(_checked_protected)]


class Defaults(InviteDetails, End, _Entry):
    """Fields of people who do not have them."""


class Members(_Entry):
    """The people: a roster file or a list; without both, the rows that a task passes."""

    roster: str | None = Field(default=None, description="CSV, JSON or JSON lines file, relative to this one")
    columns: list[str | None] | dict[str, str | None] | None = Field(
        default=None, description="By position, or by name"
    )
    where: dict[str, Any] | None = Field(
        default=None, description="Rows of the roster to read only: wanted values by the name of a column"
    )
    rows: str | None = Field(default=None, description="Where the list of rows is in JSON, such as Resources")
    skip_rows: int = Field(default=0, ge=0, description="Lines above the header of the roster to skip")
    levels: dict[str, OptionalLevel] | None = Field(
        default=None, description="Levels by their texts in the roster; null stands for none, and * for all others"
    )
    no_value: list[str] = Field(default=[], description="Texts of the roster that are no value")
    people: list[Annotated[Person, BeforeValidator(_person)]] | None = None
    defaults: Defaults | None = Field(default=None, description="Fields for all people who do not have them")
    on_invalid: Literal["fail", "skip"] = Field(
        default="fail",
        description="Whether an invalid row of the roster is an error, or is left out; not with complete: [members], "
        "because its person would be removed",
    )
    protected: list[Annotated[ProtectedPerson, BeforeValidator(_person)]] = Field(
        default=[],
        description="People who are never removed or changed, such as the owner of the API key; "
        "*@partner.example for everybody of a domain",
    )
    owner_level: OptionalLevel = Field(default=15, description="Nobody of this level or above is removed or changed")
    renew_invites: bool = Field(
        default=False, description="Whether an open invite with another level is withdrawn and sent again"
    )
    invite_again: Annotated[int, Field(ge=0)] = Field(
        default=TIMES_AGAIN,
        description="How often somebody who does not join is invited again, a week after the last invite",
    )

    _rows: Any = None

    @property
    def given_rows(self) -> Any:
        """The rows of the list, or those that a task passes; ``None`` if there is neither."""
        return self._rows if self.people is None else [one.model_dump(exclude_unset=True) for one in self.people]

    @property
    def row_format(self) -> RowFormat:
        """How the rows are written; those of ``people`` have levels of the interface."""
        levels: dict[str, int | str | None] | None = None
        if self.levels is not None and self.people is None:
            levels = {text: None if level is None else int(level) for text, level in self.levels.items()}
        return RowFormat(self.rows, self.skip_rows, levels, self.no_value)

    @property
    def guards(self) -> Guards:
        """Whom a plan leaves alone."""
        level = None if self.owner_level is None else int(self.owner_level)
        return Guards(frozenset(protected_key(one.email) for one in self.protected), level, self.on_invalid)

    @model_validator(mode="after")
    def roster_or_people(self) -> Self:
        """Refuse both a roster and a list."""
        if self.roster is not None and self.people is not None:
            raise ValueError("give either roster or people")
        if self.where is not None and self.people is not None:
            _refuse("where: it selects rows of a roster; delete it, or the people whom it leaves out", "where")
        _refuse_repeated("people", [_period(person) for person in self.people or ()], "people")
        common = self.defaults.model_dump(exclude_none=True) if self.defaults else {}
        for number, person in enumerate(self.people or ()):
            if {person.then, common.get("then")} != {None}:
                _refuse_end(Person(**{**common, **person.model_dump(exclude_none=True)}), "people", number)
        return self


class Collaborator(End, _Entry):
    """A collaborator of a dashboard; may be written as an address alone."""

    email: Address
    level: OptionalNumber = None

    @model_validator(mode="after")
    def end_is_removal(self) -> Self:
        """Refuse a level after the end, and what comes after an end that is not there."""
        if self.then_level is not None:
            _refuse("then: expected 'removed': the interface cannot change the level of a collaborator", "then")
        _refuse_end(self)
        return self


class DashboardEntry(_Entry):
    """A dashboard; the interface cannot list dashboards, so an Airflow Variable remembers it."""

    name: str = Field(min_length=1)
    description: str | None = None
    pinned: bool | None = None
    tags: list[str] | None = None
    restriction_level: OptionalNumber = None
    use_template: str | None = Field(default=None, description="Used for its creation only")
    use_dashboard: OptionalNumber = Field(default=None, description="Used for its creation only")
    variable_key: str | None = Field(default=None, description="Airflow Variable that remembers it")
    collaborators: list[Annotated[Collaborator, BeforeValidator(_person)]] | None = None


class ProjectEntry(ProjectFields, _Entry):
    """A project, its settings and its dashboards. The interface cannot change the settings of one that exists."""

    name: str = Field(min_length=1)  # pyright: ignore[reportIncompatibleVariableOverride] - nobody writes to it
    dashboards: list[DashboardEntry] = []


class DomainEntry(DomainFields, _Entry):
    """A domain and its settings."""

    domain: DomainName
    verified: bool = Field(default=True, description="Whether to wait until it is verified")


class ExportEntry(_Entry):
    """A batch export."""

    batch_export_id: Uuid
    paused: bool


class Organization(_Entry):
    """What an organization should look like."""

    organization_id: TextId | None = Field(default=None, min_length=1, description="By default that of the connection")
    projects: list[ProjectEntry] = []
    domains: list[DomainEntry] = []
    members: Members | None = None
    exports: list[ExportEntry] = []
    complete: list[Literal["members", "domains", "collaborators"]] = Field(
        default=[], description="Lists that are complete: whatever they do not name is removed"
    )
    max_removals: Annotated[int | str | None, BeforeValidator(checked_limit_or_ask)] = Field(
        default="10 or 30%",
        description="How much one run may remove, with the members who get a lower level: a number, a share of the "
        "members, or both, of which the lower one counts; null for any number; 'ask' lets whoever approves the plan "
        "decide",
    )

    _source: tuple[str, Any, tuple[str, ...]] = ("the organization", None, ())

    def located(self, name: str, root: object, above: tuple[str, ...]) -> Self:
        """Note the file, its YAML, and the keys above the organization, for the lines of mistakes."""
        self._source = (name, root, above)
        return self

    def with_rows(self, rows: object, columns: object, where: Mapping[str, Any] | None) -> Self:
        """
        Return it with the rows that a task passes for its people.

        :param rows: the rows; ``None`` if the task passes none
        :param columns: names of columns; ``None`` for those of the file
        :param where: which rows to read; ``None`` for what the file says
        :raises WorkspaceInputError: if ``members`` names people too, or if neither does
        """
        if self.members is None and rows is None:
            return self
        passed = {"columns": columns, "where": where}
        given = {name: value for name, value in passed.items() if value is not None}
        members = (self.members or Members()).model_copy(update=given)
        if (rows is None) == (members.roster is None and members.people is None):
            raise self.refusal({("members",): "give one of roster and people, or neither and the task's roster=…"})
        members._rows = rows  # noqa: SLF001 - a copy of the same module
        return self.model_copy(update={"members": members})

    def refusal(self, mistakes: Mapping[tuple[str | int, ...], str]) -> WorkspaceInputError:
        """Return the error for mistakes that the service shows, by their paths in the file."""
        name, root, above = self._source
        named: list[tuple[int, str]] = []
        for path, message in mistakes.items():
            field = ".".join(str(part) for part in path)
            line = _line(_find(root, (*above, *path)))
            named.append((line, f"{field}: {message}"))
        return _wrong(name, named)

    @model_validator(mode="after")
    def consistent(self) -> Self:
        """Refuse repeated entries, and a complete list that is missing."""
        _refuse_repeated("projects", [project_key(entry.name) for entry in self.projects], "projects")
        _refuse_repeated("domains", [domain_key(entry.domain) for entry in self.domains], "domains")
        _refuse_repeated("exports", [entry.batch_export_id for entry in self.exports], "exports")
        self._refuse_repeated_dashboards()
        if "members" in self.complete and self.members and self.members.on_invalid == "skip":
            why = "members.on_invalid: 'complete: [members]' would remove the people of the rows it skips: leave it out"
            _refuse(why, "members", "on_invalid")
        if "members" in self.complete and self.members and self.members.people == []:
            _refuse("complete names members, but people is empty: this would remove all of them", "members", "people")
        sections = {"members": self.members, "domains": self.domains}
        for name in self.complete:
            if name in sections and not sections[name]:
                raise ValueError(f"complete names {name}, but the file has none: this would remove all of them")
        return self

    def _refuse_repeated_dashboards(self) -> None:
        """Refuse repeated dashboards of a project, Variables of dashboards, and collaborators of a dashboard."""
        dashboards = [dashboard for project in self.projects for dashboard in project.dashboards]
        keys = [compared_key(entry.variable_key) for entry in dashboards if entry.variable_key]
        _refuse_repeated("variable_key, without regard to case", keys)
        for number, project in enumerate(self.projects):
            path = ("projects", number, "dashboards")
            names = [project_key(entry.name) for entry in project.dashboards]
            _refuse_repeated(f"dashboards of {project.name}", names, *path)
            for position, dashboard in enumerate(project.dashboards):
                people = [_period(entry) for entry in dashboard.collaborators or ()]
                _refuse_repeated(f"collaborators of {dashboard.name}", people, *path, position, "collaborators")


def _refuse_repeated(what: str, names: list[str], *path: str | int) -> None:
    """Refuse a repeated name; the path leads from the model to the list, for the line of the mistake."""
    seen: set[str] = set()
    for number, name in enumerate(names):
        if name in seen:
            place = (*path, number) if path else ()
            _refuse(f"{what}: {name} is repeated", *place)
        seen.add(name)


def _refuse(why: str, *path: str | int) -> NoReturn:
    """Refuse something; the path leads from the model to it, for the line of the mistake."""
    raise PydanticCustomError("refused", "{why}", {"why": why, "path": path})


def _refuse_end(person: Person | Collaborator, *path: str | int) -> None:
    problem = person.problem(None if person.level is None else int(person.level))
    if problem:
        _refuse(problem, *path, "then")


def _period(person: Person | Collaborator) -> str:
    """Return what nobody may have two rows of: an address, with the end."""
    return " until ".join(filter(None, [address_key(person.email), person.until]))


# The model of each section of the file, for suggestions.
SECTIONS: dict[str, type[BaseModel]] = {
    "projects": ProjectEntry,
    "dashboards": DashboardEntry,
    "collaborators": Collaborator,
    "domains": DomainEntry,
    "members": Members,
    "people": Person,
    "protected": ProtectedPerson,
    "defaults": Defaults,
    "exports": ExportEntry,
}


class _Loader(yaml.SafeLoader):  # type: ignore[misc] # it is not typed
    """Leaves as texts what YAML takes for times and rows do not, so that one rule says what an end is."""


def _construct_timestamp(loader: _Loader, node: Any) -> Any:
    try:
        parse_until(node.value)
    except ValueError:
        return node.value
    return loader.construct_yaml_timestamp(node)


_Loader.add_constructor(TIMESTAMP, _construct_timestamp)


class _Dumper(yaml.SafeDumper):  # type: ignore[misc] # it is not typed
    """Takes what rows of databases hold too, and subclasses, such as the dates of pendulum and members of enums."""


_Dumper.add_multi_representer(date, lambda dumper, day: dumper.represent_scalar(TIMESTAMP, day.isoformat()))
_Dumper.add_multi_representer(str, lambda dumper, text: dumper.represent_str(str.__str__(text)))
_Dumper.add_multi_representer(int, lambda dumper, number: dumper.represent_int(int(number)))
_Dumper.add_multi_representer(Decimal, lambda dumper, number: dumper.represent_float(float(number)))
_Dumper.add_multi_representer(UUID, lambda dumper, uuid: dumper.represent_str(str(uuid)))


def read_organizations(source: str | Mapping[str, Any], name: str) -> dict[str, Organization]:
    """
    Read an organization file.

    :param source: YAML of one organization, or of several by name under ``organizations``; or the same as a mapping
    :param name: name of the file, for messages
    :return: organizations by name; the name of a single one is ``""``
    :raises WorkspaceInputError: naming the line of each mistake
    """
    node, data = _parse(source, name)
    several = data.get("organizations")
    if "organizations" in data and not (len(data) == 1 and several and isinstance(several, dict)):
        mistake = "organizations must map names to organizations, and must be the only key"
        raise _wrong(name, [(_line(node), mistake)])
    mistakes: list[tuple[int, str]] = []
    found: dict[str, Organization] = {}
    for key, fields in several.items() if several else [("", data)]:
        if len(mistakes) >= MAX_FINDINGS:
            break
        path = ("organizations", str(key)) if several else ()
        if not isinstance(key, str):
            mistakes.append((_line(node), f"organizations: put the name {key} in quotes"))
            continue
        try:
            found[key] = Organization.model_validate(fields).located(name, node, path)
        except ValidationError as error:
            # Explaining one searches the file.
            findings = error.errors(include_url=False)[: MAX_FINDINGS - len(mistakes)]
            mistakes += [_explain(node, path, finding) for finding in findings]
    ids = Counter(one.organization_id for one in found.values() if one.organization_id)
    for organization_id, count in ids.items():
        if count > 1:
            mistakes.append((_line(node), f"organization_id: {organization_id} is repeated"))
    if mistakes:
        raise _wrong(name, mistakes)
    return found


def _parse(source: str | Mapping[str, Any], name: str) -> tuple[Any, dict[Any, Any]]:
    """
    Return the node of a file and its data.

    :raises WorkspaceInputError: for what is no YAML, or has a mistake that YAML permits
    """
    if len(source) > MAX_CHARACTERS:
        raise _wrong(name, [(1, f"more than {MAX_CHARACTERS:,} characters: put the people into a roster")])
    try:
        text = source if isinstance(source, str) else yaml.dump(dict(source), Dumper=_Dumper, sort_keys=False)
        loader = _Loader(text)
        node = loader.get_single_node()
        mistakes = list(_mistakes_of_yaml(node))
        content: dict[Any, Any] = {} if mistakes else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        why = error.problem or "this is not YAML"
        if isinstance(error, ComposerError) and error.context:  # its problem is half a sentence
            why = f"{error.context}, {why}"
        raise _wrong(name, [(line, why)]) from None
    except RepresenterError as error:
        kind = type_name(error.args[-1])
        raise _wrong(
            name, [(1, f"{kind} is no value of a file: pass texts, numbers, dates, lists and mappings")]
        ) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error).partition("\n")[0]
        raise _wrong(name, [(1, why)]) from None
    if mistakes:
        raise _wrong(name, mistakes)
    # What such keys hold is only for anchors.
    return node, {key: value for key, value in content.items() if not str(key).startswith("x-")}


def choose_organization(found: Mapping[str, Organization], organization: str | None, name: str) -> Organization:
    """
    Return one organization of a file.

    :param organization: its name; ``None`` if the file has only one
    :param name: name of the file, for messages
    :raises WorkspaceInputError: if the name is unknown, or missing although there are several
    """
    if organization is None and len(found) == 1:
        return next(iter(found.values()))
    if organization is not None and organization in found:
        return found[organization]
    hint = did_you_mean(organization or "", found, "one of ")
    there = f"there is no '{organization}' in {name}" if organization else f"there are several in {name}"
    raise WorkspaceInputError(f"Set organization ({hint}): {there}")


def load_organizations(
    file: str | Mapping[str, Any],
    file_at: Callable[[str], RosterFile],
    render: Callable[[str], str],
    folder: str = "",
) -> dict[str, Organization]:
    """
    Read an organization file; paths of rosters in it are relative to it, or to the folder of its content.

    :param file: path of an organization file, or its content as a mapping
    :param file_at: opens a path
    :param render: renders the text of a file that is a template
    :param folder: where the content comes from, if it is no file: the folder of the Dag file
    :return: organizations by name; the name of a single one is ``""``
    :raises WorkspaceInputError: naming the line of each mistake
    """
    if isinstance(file, str):
        folder, name = os.path.split(file)
        found = read_organizations(render(file_at(file).read()), name)
    else:
        found = read_organizations(file, "the organization")
    for key, one in found.items():
        roster = one.members and one.members.roster
        if one.members and roster and "://" not in roster:
            members = one.members.model_copy(update={"roster": os.path.join(folder, roster)})  # noqa: PTH118 - or a URL
            found[key] = one.model_copy(update={"members": members})
    return found


def _mistakes_of_yaml(root: object) -> Iterator[tuple[int, str]]:
    """Yield mistakes that YAML permits: repeated keys, and secrets; refuse aliases that make the file too large."""
    if not isinstance(root, yaml.MappingNode):
        yield (1, "expected a mapping such as 'projects: …'")
        return
    _, several = _step(root, "organizations")
    # With each node, the key whose value it is, or is in; none for the names of organizations.
    pending: list[tuple[Any, Any]] = [(None, root)]
    for _ in range(MAX_NODES):
        if not pending:
            return
        holder, node = pending.pop()
        if isinstance(node, yaml.ScalarNode):
            yield from _mistakes_of_value(holder, node)
        elif isinstance(node, yaml.SequenceNode):
            pending += [(holder, item) for item in node.value]
        else:
            seen: set[str] = set()
            for key, value in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    yield (_line(key), "a key must be a string")
                    continue
                name = key.value
                if name in seen and name != "<<":
                    yield (_line(key), f"the key '{name}' is repeated")
                seen.add(name)
                if node is several:
                    pending.append((None, value))
                elif holder and is_secret(holder.value):
                    pending.append((holder, value))
                else:
                    pending.append((key, value))
    raise ValueError("too many values: check for an alias that refers to itself")


def _mistakes_of_value(holder: Any, node: Any) -> Iterator[tuple[int, str]]:
    """
    Yield mistakes of one value that YAML permits.

    :param holder: the key whose value it is, or is in; ``None`` if there is none
    """
    if holder and any(secrets_under(holder.value, node.value)):
        yield (_line(holder), f"'{holder.value}' is a secret: leave it out, and set it in the workspace")
    if node.tag in NUMBERS and not DECIMAL.fullmatch(node.value):
        hint = "; a time needs its day, as in 2026-12-31T18:00:00Z" if ":" in node.value else ""
        yield (_line(node), f"write {node.value} as a decimal number, or in quotes if it is a text{hint}")
    elif node.tag == TIMESTAMP:
        try:
            yaml.SafeLoader("").construct_object(node)
        except (ValueError, AttributeError):  # the latter for the tag !!timestamp before any text
            yield (_line(node), f"{node.value} is no day or time that exists")


def _explain(root: Any, above: Iterable[str], finding: Any) -> tuple[int, str]:
    """Return line and message for an error of pydantic, without the value."""
    path = [*above, *finding["loc"]]
    below = finding.get("ctx", {}).get("path", ())
    where = _find(root, (*path, *below))
    section = next((part for part in reversed(path[:-1]) if part in SECTIONS), None)
    name = ".".join(str(part) for part in path)
    kind = finding["type"]
    message = expected_by(finding)
    if kind == "extra_forbidden" and section and path[-1] in Organization.model_fields:
        message = f"unknown field (move it to the top, beside '{finding['loc'][0]}', not below it)"
    elif kind == "extra_forbidden":
        model = SECTIONS[section] if section else Organization
        message = f"unknown field ({did_you_mean(str(path[-1]), sorted(model.model_fields))})"
    return _line(where), f"{name}: {message}" if name else message


def _find(root: object, path: Iterable[str | int]) -> Any:
    """Return the node of the deepest part of a path that is there."""
    node, where = root, root
    for part in path:
        key, node = _step(node, part)
        where = key or where
    return where


def _step(node: object, part: str | int) -> tuple[Any, Any]:
    """Return the node that a part of a path names, and the node below it; ``None`` if there is none."""
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int):
        return node.value[part], node.value[part]
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(part):
                return key, value
    return None, None


def _line(node: Any) -> int:
    line: int = node.start_mark.line
    return line + 1


def _wrong(name: str, mistakes: list[tuple[int, str]]) -> WorkspaceInputError:
    lines = [f"line {line}: {message}" for line, message in sorted(mistakes)[:MAX_FINDINGS]]
    if len(mistakes) >= MAX_FINDINGS:
        lines.append("… there may be more")
    return WorkspaceInputError("\n  ".join([f"Correct {name}:", *lines]))
