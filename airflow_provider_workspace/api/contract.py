"""
Operations compared with an OpenAPI document of a service: which are there, and which fields their bodies know.

Of the document it reads paths, methods, ``deprecated`` and the properties of JSON bodies, and nothing else.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote

import yaml

from airflow_provider_workspace.api.endpoint import EFFECTS, path_fields
from airflow_provider_workspace.api.fields import interface_names
from airflow_provider_workspace.errors import WorkspaceInputError, printable

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation

EndpointState = Literal["gone", "moved", "unreadable", "deprecated", "fields", "there"]
# The worst first.
STATES: tuple[EndpointState, ...] = ("gone", "moved", "unreadable", "deprecated", "fields", "there")
Shape = tuple[str, ...]
PARAMETER = "{}"
# The segments of a path that a move may replace, such as organizations/{id}.
PREFIX_LENGTH = 2
NO_DATE = "no date"
SUNSET_KEYS = ("x-sunset-date", "x-sunset", "sunset")
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
COMBINATIONS = ("allOf", "anyOf", "oneOf")
# References that follow each other.
MAX_REFERENCES = 50
# Levels of nesting in YAML: the loader in C crashes the process where others raise RecursionError.
MAX_DEPTH = 200
MAX_DOCUMENT_TEXT = 200
# Without the types of YAML: an example with an invalid date must not hide the paths.
YAML_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


@dataclass(frozen=True, slots=True)
class Finding:
    """
    What a document says about an operation.

    :param operation: its name
    :param state: ``gone``; ``moved`` if the document has its method and ending under another prefix; ``unreadable`` if
        the document does not tell; ``deprecated``; ``fields`` if its body does not know some; ``there``
    :param request: method and path that are sent
    :param until: until when a deprecated one is there, or ``no date``; ``None`` if it is not deprecated
    :param successor: path that it moved to, or that may replace it; ``None`` if there is none
    :param unknown_fields: fields that its body does not know
    :param note: what else to know
    """

    operation: str
    state: EndpointState
    request: str
    until: str | None = None
    successor: str | None = None
    unknown_fields: tuple[str, ...] = ()
    note: str = ""

    def line(self) -> str:
        """Return it for people."""
        reasons = [self.note]
        if self.until:
            reasons.append("deprecated without a date" if self.until == NO_DATE else f"deprecated until {self.until}")
        if self.successor:
            reasons.append(f"the document has {self.successor}")
        if self.unknown_fields:
            reasons.append(f"its body does not know {', '.join(self.unknown_fields)}")
        text = "; ".join(filter(None, reasons))
        line = f"{self.state}: {self.operation} ({self.request})"
        return printable(f"{line}: {text}" if text else line)


@dataclass(frozen=True, slots=True)
class Report:
    """
    What a document says about several operations.

    :param findings: one for each operation, the worst first
    """

    findings: tuple[Finding, ...]

    @property
    def breaks(self) -> bool:
        """Whether an operation breaks now or later, or the document does not tell."""
        return any(finding.state != "there" for finding in self.findings)

    def summary(self) -> str:
        """Return how many operations there are of each state."""
        counts = Counter(finding.state for finding in self.findings)
        present = [state for state in STATES if counts[state]]
        parts = [f"{counts[state]} {state}" for state in present]
        return f"{len(self.findings)} operations: {', '.join(parts)}."

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {"breaks": self.breaks, "operations": [asdict(finding) for finding in self.findings]}


@dataclass(frozen=True, slots=True)
class _Documented:
    """An operation of a document: its path, and what stands there."""

    path: str
    content: object


class Contract:
    """
    An OpenAPI document of a service.

    :param text: JSON or YAML
    :raises WorkspaceInputError: if it is neither, or not OpenAPI 3
    """

    def __init__(self, text: str) -> None:
        content = _parsed(text)
        paths = _entry(content, "paths")
        if _entry(content, "openapi") is None or not isinstance(paths, dict):
            raise WorkspaceInputError("Pass an OpenAPI 3 document: it has no 'openapi' or no 'paths'")
        self._content = content
        self._operations: dict[tuple[str, Shape], _Documented] = {}
        self._unreadable: set[Shape] = set()
        for path, item in paths.items():
            self._add(path, self._resolved(item))

    def _add(self, path: str, item: object) -> None:
        """Add the operations of a path."""
        shape = shape_of(path)
        if not isinstance(item, dict):
            self._unreadable.add(shape)
            return
        for method in EFFECTS:
            if method.lower() in item:
                documented = _Documented(path, item[method.lower()])
                self._operations.setdefault((method, shape), documented)

    def compare(self, operations: Mapping[str, type[Operation[Any]]], paths: Mapping[str, str]) -> Report:
        """
        Compare operations with the document.

        :param operations: operations by name
        :param paths: templates of paths by the name of the operation, where they differ from the operation's own
        :raises WorkspaceInputError: if it has none of them, so that it is of another service
        """
        findings: list[Finding] = []
        for name, cls in operations.items():
            path = paths.get(name, cls.endpoint.path)
            findings.append(self._find(name, cls, path))
        if all(finding.state == "gone" for finding in findings):
            raise WorkspaceInputError(
                f"Check that the document is of this service: it has none of the {len(findings)} operations"
            )
        findings.sort(key=lambda finding: STATES.index(finding.state))
        return Report(tuple(findings))

    def _find(self, name: str, cls: type[Operation[Any]], path: str) -> Finding:
        """Return what the document says about an operation."""
        method, shape = cls.endpoint.method, shape_of(path)
        request = f"{method} {path}"
        documented = self._operations.get((method, shape))
        if documented is None:
            return self._missing(name, request, method, shape)
        content = documented.content
        if not isinstance(content, dict):
            return Finding(name, "unreadable", request, note="the document does not describe it")
        unknown_fields: tuple[str, ...] = ()
        sent = cls.body_fields()
        known = self._properties(content.get("requestBody")) if sent else set()
        if known is not None:
            unknown_fields = tuple(field for field in sent if field not in known)
        until = _end_of(content)
        if until:
            successor = self._same_ending(method, shape)
            return Finding(name, "deprecated", request, until, successor, unknown_fields)
        if unknown_fields:
            return Finding(name, "fields", request, unknown_fields=unknown_fields)
        if known is None:
            note = "the document does not describe its body"
            return Finding(name, "unreadable" if _needs_body(cls) else "there", request, note=note)
        return Finding(name, "there", request)

    def _missing(self, name: str, request: str, method: str, shape: Shape) -> Finding:
        """Return the finding for an operation that the document does not have at its path."""
        if shape in self._unreadable:
            return Finding(name, "unreadable", request, note="the document does not describe its path")
        successor = self._same_ending(method, shape)
        if successor:
            return Finding(name, "moved", request, successor=successor)
        others = [other for other, other_shape in self._operations if other_shape == shape]
        note = f"the path has only {', '.join(others)}" if others else "not in the document"
        return Finding(name, "gone", request, note=note)

    def _same_ending(self, method: str, shape: Shape) -> str | None:
        """Return the shortest path with a method and an ending that is not deprecated; ``None`` if there is none."""
        for ending in (shape, shape[PREFIX_LENGTH:]):
            if not set(ending) - {PARAMETER}:
                continue
            paths: list[str] = []
            for (other_method, other_shape), documented in self._operations.items():
                has_ending = other_shape != shape and other_shape[-len(ending) :] == ending
                if other_method == method and has_ending and _end_of(documented.content) is None:
                    paths.append(documented.path)
            if paths:
                return min(paths, key=lambda path: (len(path), path))
        return None

    def _properties(self, body: object) -> set[str] | None:
        """Return the names of the fields of a JSON body; ``None`` if they are not described, or it takes any."""
        content = _entry(self._resolved(body), "content")
        waiting = [_entry(_entry(content, "application/json"), "schema")]
        names: set[str] = set()
        seen: set[int] = set()
        while waiting:
            schema = waiting.pop()
            if not isinstance(schema, dict) or _takes_any(schema):
                return None
            if id(schema) in seen:
                continue
            seen.add(id(schema))
            names |= _writable(schema)
            if "$ref" in schema:
                waiting.append(self._target(schema["$ref"]))
            if "items" in schema:
                waiting.append(schema["items"])
            for key in COMBINATIONS:
                parts = schema.get(key)
                waiting.extend(parts if isinstance(parts, list) else [])
        return names or None

    def _resolved(self, value: object) -> object:
        """Return what a reference leads to; ``None`` if it is not in the document."""
        for _ in range(MAX_REFERENCES):
            reference = _entry(value, "$ref")
            if reference is None:
                return value
            value = self._target(reference)
        return None

    def _target(self, reference: object) -> object:
        """Return what a reference names; ``None`` if it is not in the document."""
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return None
        value = self._content
        for part in reference.removeprefix("#/").split("/"):
            value = _entry(value, unquote(part).replace("~1", "/").replace("~0", "~"))
        return value


def shape_of(path: str) -> Shape:
    """Return the segments of a path without ``/api``; parameters are equal whatever their names."""
    segments = re.sub(r"{[^{}]*}", PARAMETER, path).strip("/").split("/")
    return tuple(segments[1:] if segments[0] == "api" else segments)


def _parsed(text: str) -> object:
    """Parse JSON or YAML."""
    try:
        content: object = json.loads(text)
    except (ValueError, RecursionError):
        pass
    else:
        return content
    try:
        _raise_if_too_deep(text)
        content = yaml.load(text, YAML_LOADER)  # noqa: S506 - a base loader makes only texts, lists and mappings
    except (yaml.YAMLError, ValueError) as error:
        reason = printable(str(error))[:MAX_DOCUMENT_TEXT]
        raise WorkspaceInputError(f"Pass an OpenAPI 3 document in JSON or YAML: {reason}") from None
    return content


def _raise_if_too_deep(text: str) -> None:
    """Refuse YAML that is nested too deeply, before it is loaded."""
    depth = 0
    for event in yaml.parse(text, YAML_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise ValueError(f"more than {MAX_DEPTH} levels of nesting")


def _entry(value: object, key: str) -> object:
    """Return an entry of a mapping; ``None`` if there is none."""
    return value.get(key) if isinstance(value, dict) else None


def _is_true(value: object) -> bool:
    """Return whether a value of JSON, or the text of YAML, is true."""
    return value is True or (isinstance(value, str) and value.lower() == "true")


def _end_of(content: object) -> str | None:
    """Return until when a deprecated operation is there, or that it has no date; ``None`` if it is not deprecated."""
    if not isinstance(content, dict):
        return None
    for key, value in content.items():
        if key.lower() in SUNSET_KEYS and isinstance(value, str) and value:
            return value[:MAX_DOCUMENT_TEXT]
    if not _is_true(content.get("deprecated")):
        return None
    description = content.get("description")
    date = DATE.search(description) if isinstance(description, str) else None
    return date[0] if date else NO_DATE


def _takes_any(schema: dict[str, object]) -> bool:
    """Return whether an object may have properties that the schema does not name."""
    others = schema.get("additionalProperties")
    return isinstance(others, dict) or _is_true(others)


def _writable(schema: dict[str, object]) -> set[str]:
    """Return the names of the properties that a request may set."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return set()
    return {name for name, each in properties.items() if not _is_true(_entry(each, "readOnly"))}


def _needs_body(cls: type[Operation[Any]]) -> bool:
    """Return whether an operation always sends a body."""
    in_path = path_fields(cls.endpoint.path)
    names = interface_names(cls)
    return any(field.is_required() and names[name] not in in_path for name, field in cls.model_fields.items())
