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
from functools import lru_cache
from importlib import import_module
from types import GenericAlias
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar, get_args, get_origin
from urllib.parse import quote, urlencode

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from typing_extensions import get_original_bases

from airflow_provider_workspace.api.ids import canonical_id, canonical_uuid
from airflow_provider_workspace.api.models import Page, Resource
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
    text = str(value) if isinstance(value, int | str) else ""  # raises ValueError beyond the integer string limit
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
WRITES: tuple[Effect, ...] = ("create", "change", "remove")
# The effects that each method may have, and that of those that need not say it.
EFFECTS = {"GET": ("read",), "POST": (*WRITES, "read"), "PUT": WRITES, "PATCH": WRITES, "DELETE": WRITES}
USUAL_EFFECTS: dict[str, Effect] = {"GET": "read", "PATCH": "change", "DELETE": "remove"}
PATH = re.compile(r"/api/(?!api/)(([^/{}?#\s]|{\w+})+/)*")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """
    The description of an operation, and the decorator of its class.

    :param method: HTTP method
    :param path: template below ``/api`` that begins and ends with a slash; it names fields as the interface does
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
        effect = self.effect or USUAL_EFFECTS.get(self.method)
        row = replace(self, path=f"/api{self.path}", effect=effect, result=result_type(cls), is_write=effect != "read")
        row.check(cls)
        cls.endpoint = row
        return cls

    def check(self, cls: type[Operation[Any]]) -> None:
        """
        Check the complete row of an operation, or of a class below it.

        :raises TypeError: if it is incomplete or contradicts itself
        """
        wrong = "; ".join(self._wrong(cls))
        if wrong:
            raise TypeError(f"@endpoint of {cls.__name__}: {wrong}")

    def _wrong(self, cls: type[Operation[Any]]) -> Iterator[str]:
        """Yield what is wrong with the declaration, each with what is expected."""
        names, in_path = interface_names(cls), set(path_fields(self.path))
        fields, effects = set(names.values()), EFFECTS.get(self.method, ())
        if not effects:
            yield f"the method is {self.method!r}; expected {' or '.join(EFFECTS)}"
        elif self.effect not in effects:
            yield f"a {self.method} needs effect={' or '.join(map(repr, effects))}, not {self.effect!r}"
        recoveries = {True: (None,), False: ("look-up", "none")}.get(self.repeatable, ())
        if self.recover not in recoveries or (self.recover is None) is not (self.look_for is None):
            yield (
                "an operation that is not repeatable (False) needs recover='look-up' or 'none', and look_for='…', what "
                "to look for after an unknown outcome; a repeatable one (True) needs neither"
            )
        if not PATH.fullmatch(self.path):
            expected = "one below /api that begins and ends with a slash, and names fields as {id}"
            yield f"the path is {self.path.removeprefix('/api')!r}; expected {expected}"
        if in_path - fields:
            yield f"the path names {_listed(in_path - fields)}: add it to the fields of the class, or as their alias"
        for name, each in cls.model_fields.items():
            if names[name] in in_path and (not each.is_required() or type(None) in get_args(each.annotation)):
                yield f"the path names {names[name]!r}: it must be required, and never None"
        if self.method == "DELETE" and fields - in_path:
            yield f"a DELETE sends its path alone: remove {_listed(fields - in_path)}"
        for name in sorted(names.keys() & vars(Operation).keys()):
            yield f"{name!r} is a name of Operation: name the field otherwise, with Field(alias={name!r})"
        if not _is_result(self.result):
            yield "the result must be None, or a class below Resource: X, X | None, list[X] or Page[X]"
        elif is_page(self.result) and "offset" not in names:
            yield "a Page needs the field 'offset: Offset = None', for the pages that follow"


endpoint = Endpoint


@dataclass(frozen=True, slots=True)
class Request:
    """
    An encoded request.

    :param target: encoded path and query, which are appended to the base URL
    :param shown: the path for people, without secrets
    :param secrets: the secrets in the request, for the log masker
    :param body: JSON in UTF-8; ``None`` if there is no body
    """

    method: str
    target: str
    shown: str
    secrets: tuple[str, ...] = field(repr=False)
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
    not sent; ``None`` is sent as null. A field with an alias has this name in the interface.

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

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Check the fields of a class below one that ``@endpoint`` decorates."""
        if hasattr(cls, "endpoint"):
            cls.endpoint.check(cls)

    def __init__(self, /, **fields: Any) -> None:
        for name, each in type(self).model_fields.items():  # pydantic expects here the name of the field
            if each.serialization_alias in fields and not each.validation_alias and name not in fields:
                fields[name] = fields.pop(each.serialization_alias)
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
        return self._sent(in_path=False)

    def _sent(self, *, in_path: bool) -> dict[str, Any]:
        """Return the fields that are set by their names in the interface, those in the path or the others."""
        names, sent = path_fields(self.endpoint.path), self.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return {name: value for name, value in sent.items() if (name in names) is in_path}

    def request(self) -> Request:
        """
        Encode the request.

        :raises WorkspaceInputError: if a path value is empty or a dot segment, a value has no form in a path or query,
            or is not JSON serializable
        """
        method, path, secrets = self.endpoint.method, self.path(), tuple(self.secrets())
        shown = self.path(shown=True) if secrets else path
        if method == "DELETE":
            return Request(method, path, shown, secrets)
        payload = self.payload()
        if method == "GET":
            given = {name: self._texts(name, value) for name, value in payload.items() if value is not None}
            query = urlencode(given, doseq=True)
            return Request(method, f"{path}?{query}" if query else path, shown, secrets)
        try:
            return Request(method, path, shown, secrets, encode_json(payload))
        except ValueError as error:
            raise self.refusal(str(error)) from None

    def path(self, *, shown: bool = False) -> str:
        """
        Fill and encode the path.

        :param shown: whether it is for people, with ``***`` in place of secrets
        :raises WorkspaceInputError: if a value is empty, ``.`` or ``..``
        """
        secrets = {*self.secrets()} if shown else ()
        segments = {
            name: "***" if any(secret in str(value) for secret in secrets) else self._segment(name, value)
            for name, value in self._sent(in_path=True).items()
        }
        return self.endpoint.path.format_map(segments)

    def _segment(self, name: str, value: Any) -> str:
        """Encode one path value."""
        (value,) = self._texts(name, [value] if isinstance(value, list) else value)
        # Some servers decode slashes before they resolve dot segments.
        is_text = value.strip() and value.isprintable()
        if not is_text or any(part.strip() in (".", "..") for part in re.split(r"[/\\]", value)):
            raise self.refusal(f"{name} must be an identifier, not {'***' if is_secret(name) else repr(value[:60])}")
        if len(value) > MAX_ID_LENGTH:
            raise self.refusal(f"{name} is longer than {MAX_ID_LENGTH} characters")
        return quote(value, safe="")

    def _texts(self, name: str, value: Any) -> list[str]:
        """Return a value of a path or query as text, or those of a list."""
        items = value if isinstance(value, list) else [value]
        if not items or not all(isinstance(item, str | int | float) for item in items):
            raise self.refusal(f"{name} must be a text, a number, true or false; in a query also a list, not empty")
        try:
            texts = [str(item).lower() if isinstance(item, bool) else str(item) for item in items]
            "".join(texts).encode()
        except UnicodeEncodeError:
            raise self.refusal(f"{name} holds lone surrogates, which cannot be encoded as UTF-8") from None
        except ValueError:
            raise self.refusal(TOO_LONG) from None
        return texts

    def _named(self) -> dict[str, Any]:
        """Return the fields that are set by their names in the interface."""
        names = interface_names(type(self)).items()
        return {given: getattr(self, name) for name, given in names if name in self.model_fields_set}

    def secrets(self) -> Iterator[str]:
        """Yield the secrets in the request, as they are and as a path has them, for the log masker."""
        for secret in secrets_under("", self.__dict__ | self._named()):
            yield from dict.fromkeys((secret, quote(secret, safe="", errors="replace")))

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Show the fields that are set, without secrets."""
        yield from without_secrets(self._named()).items()


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
    return isinstance(result, type) and issubclass(result, Page)


def _is_result(result: Any) -> bool:
    """Return whether a result is nothing, a record, or a list or page of records, whose secrets can be masked."""
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


@lru_cache(maxsize=1024)
def interface_names(cls: type[BaseModel]) -> dict[str, str]:
    """Return the name in the interface of each field, its alias if it has one, by the name in Python."""
    return {name: each.serialization_alias or name for name, each in cls.model_fields.items()}


@lru_cache(maxsize=1024)
def path_fields(path: str) -> list[str]:
    """Return the names in braces of a path template."""
    return re.findall(r"{(\w+)}", path)


def explain(cls: type[BaseModel], error: ValidationError) -> str:
    """Describe each invalid field and what is expected, without its value."""
    names = interface_names(cls)
    known = sorted(names.values())
    lines: list[str] = []
    for finding in error.errors(include_url=False, include_context=False, include_input=False):
        name = ".".join(str(part) for part in finding["loc"])[:MAX_FIELD_LENGTH]
        message = finding["msg"].removeprefix("Value error, ")
        if finding["type"] == "extra_forbidden":
            lines.append(f"unknown field {name!r} ({did_you_mean(name, known, 'known fields: ')})")
        elif finding["type"] == "missing":
            lines.append(f"field '{names.get(name, name)}' is required")
        else:
            lines.append(f"field '{names.get(name, name)}': {message}" if name else message)
    return "; ".join(lines)


def load_operation(name: str, value: Any, *, functions: bool = False) -> Any:
    """
    Return the operation of an argument.

    :param name: the argument
    :param value: a class that ``@endpoint`` decorates, or its name such as ``my_package.endpoints.ListBatchExports``
    :param functions: whether it may also be a function, or its name
    :raises WorkspaceInputError: if it is something else, or cannot be imported here
    """
    found, names = value, isinstance(value, str) and re.fullmatch(r"(\w+(?:\.\w+)*)\.(\w+)", value)
    try:
        if names:
            found = getattr(import_module(names[1]), names[2])
    except (ImportError, AttributeError) as error:
        raise WorkspaceInputError(f"{name}: {value!r} cannot be imported here: {error}") from None
    if isinstance(found, type) and issubclass(found, Operation) and hasattr(found, "endpoint"):
        return found
    if functions and callable(found) and not isinstance(found, type):
        return found
    raise WorkspaceInputError(
        f"{name} must be a class that @endpoint decorates{' or a function' * functions}, or its name such as "
        f"'my_package.endpoints.ListBatchExports', not {getattr(value, '__qualname__', None) or shown(value)}"
    )
