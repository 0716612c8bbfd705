"""A request for a handler, and the checks that handlers share."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import Response

from airflow_provider_workspace.sandbox.limits import Limits
from airflow_provider_workspace.sandbox.responses import (
    ApiError,
    JsonObject,
    forbidden,
    invalid,
    not_found,
    page_response,
)
from airflow_provider_workspace.sandbox.schedules import Schedules
from airflow_provider_workspace.sandbox.state import Key, State

PAGE_SIZE = 100
MAX_NUMBER = 2**53
MAX_DEPTH = 100
"""Maximum nesting of a JSON body; a deeper one might not be serializable."""

Fields = Mapping[str, tuple[str, Any]]
"""The fields of a request by name: kind of value, and default in a new record."""

_NEVER_NULL = {"target_email", "domain", "user_uuid", "level"}
_EMAIL = re.compile(r"[^@\s]+@[^@\s.]+(\.[^@\s.]+)+")
_DOMAIN = re.compile(r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}", re.IGNORECASE)
_INTEGERS = range(-(2**31), 2**31)


@dataclass(frozen=True)
class ApiRequest:
    """The argument of an operation's handler."""

    state: State
    live: bool
    """Whether it behaves like known services, or else refuses what the interface does not show."""
    limits: Limits | None
    """The rate limits, or None if they are off."""
    key: Key
    path: Mapping[str, str]
    """The path parameters, decoded."""
    query: Mapping[str, str]
    body: Any
    """The parsed JSON; an empty object if there is no body."""
    url: str
    """The absolute URL without the query."""
    query_text: str = ""
    """The query as it was sent."""
    schedules: Schedules | None = None
    """The schedules of batch exports, while their runs are played."""

    def organization(self) -> str:
        """Return the organization in the path, after checking that the key belongs to it."""
        organization_id = self.path["organization_id"]
        self.state.find("organizations", id=organization_id)
        self._check_membership(organization_id)
        return organization_id

    def project(self) -> tuple[int, str]:
        """Return the project in the path and its organization, after checking that the key belongs to it."""
        project_id = path_integer(self.path["project_id"])
        organization_id = str(self.state.find("projects", id=project_id)["organization_id"])
        self._check_membership(organization_id)
        return project_id, organization_id

    def fields(self, allowed: Fields) -> JsonObject:
        return check_fields(self.body, allowed, unnamed_refused=not self.live)

    def user(self) -> JsonObject:
        return self.state.record("users", uuid=self.key.user_uuid)

    def page(
        self, table: str, column: str = "record", *values: object, shorten: Callable[[str], str] = str
    ) -> Response:
        """
        Return a page of a list of the organization, by ``limit`` and ``offset``.

        :param column: SQL expression to select
        :param values: parameters of ``column``
        :param shorten: converts a stored record to that in the list
        """
        organization_id = self.organization()
        limit, offset = self.number("limit", 1, PAGE_SIZE), self.number("offset", 0, 0)
        count = self.state.count(table, organization_id)
        records = self.state.page(table, organization_id, limit, offset, column, *values)
        return page_response(self.url, limit, offset, count, map(shorten, records))

    def audit(self, operation: str, organization_id: str, target: str, **detail: object) -> None:
        self.state.audit(operation, organization_id, target, self.key.name, detail)

    def _check_membership(self, organization_id: str) -> None:
        if organization_id in self.key.organizations:
            return
        if self.live:
            raise forbidden("You don't have access to the organization.")
        raise not_found()

    def url_path(self) -> str:
        return urlsplit(self.url).path

    def cursor_start(self) -> int:
        """Return the number of the first row of the page that the cursor of the query asks for, or raise a 404."""
        cursor = self.query.get("cursor")
        if cursor is None:
            return 0
        try:
            text = base64.urlsafe_b64decode(cursor.encode()).decode()
        except (binascii.Error, ValueError):
            text = ""
        start = parse_number(text.removeprefix("row="))
        if start is None:
            raise ApiError(404, "invalid_request", "not_found", "Invalid cursor.")
        return start

    def number(self, name: str, minimum: int, default: int) -> int:
        """Return a number in the query; the default if it is not valid, or a 400 in ``strict``."""
        text = self.query.get(name)
        if text is None:
            return default
        number = parse_number(text, 20)
        if number is not None and number >= minimum:
            return min(number, MAX_NUMBER)
        if not self.live:
            raise invalid("A valid integer is required.", name)
        return default


@dataclass(frozen=True)
class ApiRoute:
    """The route of an operation."""

    method: str
    path: str
    scope: str | None
    """The scope that the key needs; None if the interface does not show one."""
    handler: Callable[[ApiRequest], object]
    """Returns the body of the response, None for an empty one, or a whole response if the status varies."""
    status: int = 200
    query: tuple[str, ...] = ()
    session_only: bool = False
    """Whether known services refuse it for every personal API key."""
    live_only: bool = False
    """Whether only known services have it: it is not part of the interface."""
    name: str = ""
    """The name of the operation; empty: that of its handler."""
    own: bool = False
    """Whether it is an author's: it takes any query, and needs no scope unless it names one."""

    @property
    def operation(self) -> str:
        return self.name or self.handler.__name__


# The check of each kind of value.
_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: type(value) is int and value in _INTEGERS,
    "array": lambda value: isinstance(value, list),
    "strings": lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    "email": lambda value: isinstance(value, str) and len(value) <= 254 and bool(_EMAIL.fullmatch(value)),
    "domain": lambda value: isinstance(value, str) and len(value) <= 128 and bool(_DOMAIN.fullmatch(value)),
    "model": lambda value: value in ("events", "persons"),
    "any": lambda _value: True,
}


def check_fields(body: object, allowed: Fields, *, unnamed_refused: bool) -> JsonObject:
    """
    Return the known fields of a body; raise an error if one is invalid.

    :param unnamed_refused: whether to refuse unknown fields instead of dropping them
    """
    if not isinstance(body, dict):
        raise invalid(f"Expected an object, but got {type(body).__name__}.")
    for name, value in body.items():
        if name not in allowed:
            if unnamed_refused:
                raise invalid("This field is not part of the interface.", name, "unknown_field")
        elif value is None:
            if name in _NEVER_NULL:
                raise invalid("This field may not be null.", name, "null")
        elif value == "" and name in _NEVER_NULL:
            raise invalid("This field may not be blank.", name, "blank")
        elif not _KINDS[allowed[name][0]](value):
            raise invalid(f"Not a valid value of the kind {allowed[name][0]!r}.", name)
    return {name: body[name] for name in allowed if name in body}


def require(fields: JsonObject, name: str) -> None:
    if name not in fields:
        raise invalid("This field is required.", name, "required")


def with_defaults(allowed: Fields, given: JsonObject) -> JsonObject:
    """Return the given fields of a new record, with defaults for the others."""
    return {name: given.get(name, default) for name, (_, default) in allowed.items()}


def parse_json(raw: bytes) -> Any:
    """Parse JSON strictly: NaN, infinities and lone surrogates, which Python accepts, are refused."""
    try:
        value = json.loads(raw)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise invalid("JSON parse error.", code="parse_error") from error
    if _is_deeper(value, MAX_DEPTH):
        raise invalid(f"JSON is nested deeper than {MAX_DEPTH} levels.", code="parse_error")
    return value


def parse_number(text: str, digits: int = 16) -> int | None:
    """Parse a non-negative integer with fewer than ``digits`` digits; None if the text is anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < digits else None


def path_integer(text: str) -> int:
    """Parse the id of a dashboard or project in a path, or raise a 404."""
    number = parse_number(text)
    if number is None:
        raise not_found()
    return number


def _is_deeper(value: object, levels: int) -> bool:
    if not isinstance(value, (dict, list)):
        return False
    items = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(item, levels - 1) for item in items)
