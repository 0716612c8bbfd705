"""
The base class of operations, and the decorator that describes their endpoint.

The fields of an operation are its request, and its type parameter is its result. Paths, queries and bodies are encoded
here, because the two HTTP libraries encode differently.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from types import GenericAlias
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar, get_args, get_origin
from urllib.parse import quote, urlencode

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from typing_extensions import get_original_bases

from airflow_provider_workspace.api.ids import canonical_id, canonical_uuid
from airflow_provider_workspace.api.secrets import is_secret, secrets_under, without_secrets, without_url_secrets
from airflow_provider_workspace.errors import WorkspaceInputError, did_you_mean, printable, shown

T = TypeVar("T")
OperationClass = TypeVar("OperationClass", bound="type[Operation[Any]]")

# Longest path of a nested field in a message.
MAX_FIELD_LENGTH = 100
MAX_ID_LENGTH = 300
MAX_DETAIL_LENGTH = 300
# A shorter secret may be part of ordinary text, so it is removed from errors only.
MIN_SECRET_LENGTH = 12
TOO_LONG = "a number exceeds Python's integer string limit"


def _whole_number(value: Any) -> int:
    """Parse an integer id; templates render it as text."""
    text = str(value)  # raises ValueError beyond the integer string limit
    if re.fullmatch(r"\s*\d+\s*", text):
        return int(text)
    raise ValueError(f"expected a whole number, not {shown(value)}")


def _no_boolean(value: Any) -> Any:
    """Refuse a boolean, which pydantic would parse as 0 or 1."""
    if isinstance(value, bool):
        raise ValueError("expected a whole number, not true or false")  # noqa: TRY004 - pydantic collects ValueError only
    return value


def _user_id(value: Any) -> str:
    """Refuse an e-mail address or a number; the interface does not say more about the form of user ids."""
    user_id = canonical_id(value)
    if "@" in user_id or user_id.isdecimal():
        what = "an e-mail address" if "@" in user_id else "a number"
        raise ValueError(
            f"expected the UUID of a user, not {what} ({user_id[:60]!r}); it is user.uuid in the list of members. "
            "Operators look it up if you pass user_email instead"
        )
    return user_id


IntegerId = Annotated[int | str, BeforeValidator(_whole_number)]
"""An integer id."""
TextId = Annotated[str, BeforeValidator(canonical_id)]
"""An id of any form; services give some as a number, and the interface types them as a string in paths."""
Uuid = Annotated[str, BeforeValidator(canonical_uuid)]
"""A UUID."""
Limit = Annotated[int | None, Field(ge=1), BeforeValidator(_no_boolean)]
"""Rows per page of a list."""
Offset = Annotated[int | None, Field(ge=0), BeforeValidator(_no_boolean)]
"""Index of the first row of a page."""
UserId = Annotated[str, BeforeValidator(_user_id)]
"""The UUID of a user; the interface types it as a string in paths."""


Effect = Literal["read", "create", "change", "remove"]
EFFECTS: dict[str, Effect] = {"GET": "read", "PATCH": "change", "DELETE": "remove"}
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """
    The description of an operation, and the decorator of its class.

    :param method: HTTP method
    :param path: template below ``/api`` that begins and ends with a slash
    :param scope: scope that the API key needs; ``None`` if the interface does not show one
    :param repeatable: whether the operation is idempotent
    :param effect: what it does to a resource; optional for ``GET``, ``PATCH`` and ``DELETE``
    :param recover: how an unknown outcome is recovered: ``look-up`` if a read shows whether the operation was applied,
        ``none`` if only a person can tell; ``None`` if the operation is repeatable
    :param look_for: sentence that says what to look for after an unknown outcome; ``None`` if the operation is
        repeatable
    :param already_done_code: error code that means the operation was applied before; ``None`` if there is none
    :param instead: what to do instead of an operation that the service always refuses; ``None`` for all others
    :param passing_statuses: further statuses to retry, unless the error names a field
    :param refusals_count: whether a request that was refused with 429 may count towards the limit; then the caller
        decides when to send it again
    :param shows: fields that the response must show; ``None`` for the fields of the request
    :param result: type of the result, the type parameter of the class; ``None`` if the response has no content
    :param is_write: whether it changes anything
    """

    method: str
    path: str
    _: KW_ONLY
    scope: str | None
    repeatable: bool
    effect: Effect | None = None
    recover: Literal["look-up", "none"] | None = None
    look_for: str | None = None
    already_done_code: str | None = None
    instead: str | None = None
    passing_statuses: tuple[int, ...] = ()
    refusals_count: bool = False
    shows: Mapping[str, Any] | None = None
    result: Any = None
    is_write: bool = False

    def __call__(self, cls: OperationClass) -> OperationClass:
        """
        Describe the endpoint of an operation.

        :raises TypeError: if the declaration is incomplete or contradicts itself
        """
        effect, result = self.effect or EFFECTS.get(self.method), result_type(cls)
        wrong = "; ".join(self._wrong(cls, effect, result))
        if wrong:
            raise TypeError(f"@endpoint of {cls.__name__}: {wrong}")
        cls.endpoint = replace(self, path=f"/api{self.path}", effect=effect, result=result, is_write=effect != "read")
        return cls

    def _wrong(self, cls: type[Operation[Any]], effect: Effect | None, result: Any) -> Iterator[str]:
        """Yield what is wrong with the declaration, each with what is expected."""
        fields, in_path = set(cls.model_fields), set(path_fields(self.path))
        if self.method not in METHODS:
            yield f"the method is {self.method!r}; expected {' or '.join(METHODS)}"
        elif effect is None:
            yield f"a {self.method} needs effect='create', 'change' or 'remove'"
        if self.repeatable is (self.recover is not None) or (self.recover is None) is not (self.look_for is None):
            yield (
                "an operation that is not repeatable needs recover='look-up' or 'none', and look_for='…', what to look "
                "for after an unknown outcome; a repeatable one needs neither"
            )
        if not (self.path.startswith("/") and self.path.endswith("/")) or self.path.startswith("/api/"):
            yield f"the path is {self.path!r}; expected one below /api that begins and ends with a slash"
        if in_path - fields:
            yield f"the path names {_listed(in_path - fields)}: add it to the fields of the class"
        if self.method == "DELETE" and fields - in_path:
            yield f"a DELETE sends its path alone: remove {_listed(fields - in_path)}"
        if fields & vars(Operation).keys():
            yield f"{_listed(fields & vars(Operation).keys())} is a name of Operation: name the field otherwise"
        if not _is_result(result):
            yield "the result must be None, or a class below Resource: X, X | None, list[X] or Page[X]"
        elif is_page(result) and "offset" not in fields:
            yield "a Page needs the field 'offset: Offset = None', for the pages that follow"


endpoint = Endpoint


@dataclass(frozen=True, slots=True)
class Request:
    """
    An encoded request.

    :param target: encoded path and query, which are appended to the base URL
    :param body: JSON in UTF-8; ``None`` if there is no body
    """

    method: str
    target: str
    body: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Response:
    """
    A response, independent of the HTTP library.

    :param headers: case-insensitive
    :param request_id: request id of the service, without secrets; ``None`` if there is none
    """

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class RequestContext:
    """
    The connection of a request, for messages.

    :param source: name of the connection, such as ``connection 'workspace_default'``
    :param secrets: values that must not appear in a message
    """

    source: str
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def with_secrets_of(self, op: Operation[Any]) -> RequestContext:
        """Return a copy with the secrets of an operation, which the response may repeat."""
        return RequestContext(self.source, (*self.secrets, *op.secrets()))

    def cleaned(self, op: Operation[Any], response: Response) -> Response:
        """Return a response without the secrets of the connection, and with its request id."""
        body, headers = response.body, response.headers
        for secret in self.secrets:
            if len(secret) >= MIN_SECRET_LENGTH:
                body = body.replace(secret.encode(), b"***")
        request_id = headers.get("x-request-id") or headers.get("request-id")
        if request_id:
            request_id = self.with_secrets_of(op).redacted(request_id)
        return Response(response.status, headers, body, request_id)

    def redacted(self, text: str) -> str:
        """Remove secrets and unprintable characters from a text, and shorten it."""
        for secret in self.secrets:
            text = text.replace(secret, "***").replace(json.dumps(secret)[1:-1], "***")
        text = without_url_secrets(text)
        text = " ".join(printable(text).split())
        return text if len(text) <= MAX_DETAIL_LENGTH else text[:MAX_DETAIL_LENGTH] + "…"


class Operation(BaseModel, Generic[T]):
    """
    An operation of the interface with a result of type ``T``.

    Fields that the path names go into the path, the others into the query (GET) or the body. A field that is not set is
    not sent; ``None`` is sent as null.

    :raises WorkspaceInputError: if a field is unknown, missing or of the wrong type
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", defer_build=True, hide_input_in_errors=True, protected_namespaces=()
    )
    endpoint: ClassVar[Endpoint]
    rows: ClassVar[int] = 1
    """Number of records in the request."""

    def __class_getitem__(cls, answer: Any) -> Any:
        """Set the type of the result, for :func:`result_type`; pydantic would create another class for each."""
        return GenericAlias(cls, answer)

    def __init__(self, /, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise self.refusal(explain(type(self), error)) from None
        except ValueError:
            raise self.refusal(TOO_LONG) from None

    def refusal(self, why: str) -> WorkspaceInputError:
        """Return the error for a field that cannot be sent."""
        return WorkspaceInputError(f"{type(self).__name__}: {why}")

    def payload(self) -> Any:
        """Return the fields for the body, or for the query of a GET."""
        return self.model_dump(mode="json", exclude_unset=True, exclude=set(path_fields(self.endpoint.path)))

    def request(self) -> Request:
        """
        Encode the request.

        :raises WorkspaceInputError: if a path value is empty or a dot segment, or a value is not JSON serializable
        """
        method = self.endpoint.method
        path = self.path()
        if method == "DELETE":
            return Request(method, path)
        payload = self.payload()
        if method == "GET":
            try:
                query = urlencode({name: value for name, value in payload.items() if value is not None})
            except ValueError:
                raise self.refusal(TOO_LONG) from None
            return Request(method, f"{path}?{query}" if query else path)
        try:
            return Request(method, path, encode_json(payload))
        except ValueError as error:
            raise self.refusal(str(error)) from None

    def path(self) -> str:
        """
        Fill and encode the path.

        :raises WorkspaceInputError: if a value is empty, ``.`` or ``..``
        """
        values = {name: self.segment(name) for name in path_fields(self.endpoint.path)}
        return self.endpoint.path.format_map(values)

    def segment(self, name: str) -> str:
        """Encode one path value."""
        value = str(getattr(self, name))
        # Some servers decode slashes before they resolve dot segments.
        if not value.strip() or any(part.strip() in (".", "..") for part in re.split(r"[/\\]", value)):
            raise self.refusal(f"{name} must be an identifier, not {value[:60]!r}")
        if len(value) > MAX_ID_LENGTH:
            raise self.refusal(f"{name} is longer than {MAX_ID_LENGTH} characters")
        try:
            return quote(value, safe="")
        except UnicodeEncodeError:
            raise self.refusal(f"{name} holds lone surrogates, which cannot be encoded as UTF-8") from None

    def secrets(self) -> Iterator[str]:
        """Yield the secrets in the request, for the log masker."""
        return secrets_under("", self.__dict__)

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Show the fields that are set, without secrets."""
        for name in type(self).model_fields:
            if name in self.model_fields_set:
                value = getattr(self, name)
                kept = without_secrets(value, secret=is_secret(name))
                if kept is not None or value is None:
                    yield name, kept


class OrganizationList(Operation[T]):
    """The list of a kind of resource in an organization."""

    organization_id: TextId
    limit: Limit = None
    offset: Offset = None


def result_type(cls: type[Operation[Any]]) -> Any:
    """Return the ``T`` of an operation class; ``None`` for ``Operation[None]``."""
    for base in get_original_bases(cls):
        kind = get_origin(base)
        if isinstance(kind, type) and issubclass(kind, Operation):
            (answer,) = get_args(base)
            return None if answer is type(None) else answer
    raise TypeError(f"{cls.__name__} must derive from Operation[...]")


def is_page(result: Any) -> bool:
    """Return whether a result is a page of a list."""
    from airflow_provider_workspace.api.models import Page

    return isinstance(result, type) and issubclass(result, Page)


def _is_result(result: Any) -> bool:
    """Return whether a result is nothing, a record, or a list or page of records, whose secrets can be masked."""
    from airflow_provider_workspace.api.models import Resource

    rows = result.__pydantic_generic_metadata__["args"] if is_page(result) else get_args(result)
    kinds = set(rows or (result,)) - {None, type(None)}
    return all(isinstance(kind, type) and issubclass(kind, Resource) for kind in kinds)


def _listed(names: set[str]) -> str:
    return ", ".join(map(repr, sorted(names)))


def encode_json(value: Any) -> bytes:
    """
    Return the JSON of a body, or of a part of one.

    :raises ValueError: if JSON cannot carry it
    """
    try:
        return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        raise ValueError("a value is not JSON serializable (NaN, infinity or half an emoji)") from None


def path_fields(path: str) -> list[str]:
    """Return the names in braces of a path template."""
    return re.findall(r"{(\w+)}", path)


def explain(cls: type[BaseModel], error: ValidationError) -> str:
    """Describe each invalid field and what is expected, without its value."""
    known = sorted(cls.model_fields)
    lines: list[str] = []
    for finding in error.errors(include_url=False, include_context=False, include_input=False):
        name = ".".join(str(part) for part in finding["loc"])[:MAX_FIELD_LENGTH]
        message = finding["msg"].removeprefix("Value error, ")
        if finding["type"] == "extra_forbidden":
            lines.append(f"unknown field {name!r} ({did_you_mean(name, known, 'known fields: ')})")
        elif finding["type"] == "missing":
            lines.append(f"field '{name}' is required")
        else:
            lines.append(f"field '{name}': {message}" if name else message)
    return "; ".join(lines)
