"""
An operation is a class: its fields are the request, its decorator the row of the table, its type parameter the answer.

Everything that is sent gets its final form here: paths are percent-encoded, queries and bodies are written out, so that
no HTTP library has anything left to encode in its own way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import GenericAlias
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar, get_args, get_origin
from urllib.parse import quote, urlencode
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from typing_extensions import get_original_bases

from airflow_provider_workspace.api.secrets import is_secret, secrets_under, without_secrets
from airflow_provider_workspace.errors import WorkspaceInputError

T = TypeVar("T")

# A path into a value that is nested hundreds of levels deep is of no help in full.
MAX_FIELD_LENGTH = 100
MAX_ID_LENGTH = 300


def _whole_number(value: Any) -> int:
    """Read an integer id, which templates deliver as text."""
    if isinstance(value, str) and re.fullmatch(r"\s*\d+\s*", value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return int(str(value))  # refuses what is too long to be written out
    shown = repr(value[:40]) if isinstance(value, str) else f"something of type {type(value).__name__}"
    msg = f"expected a whole number, not {shown}"
    raise ValueError(msg)


def _uuid(value: Any) -> str:
    """Read a UUID and write it the usual way."""
    try:
        return str(value if isinstance(value, UUID) else UUID(str.strip(value)))
    except (TypeError, ValueError):
        shown = repr(value[:60]) if isinstance(value, str) else f"something of type {type(value).__name__}"
        msg = f"expected a UUID, not {shown}"
        raise ValueError(msg) from None


def _user_id(value: Any) -> Any:
    """Refuse what is another property of a user than their UUID; the interface says no more of its form."""
    if isinstance(value, str) and ("@" in value or value.strip().isdecimal()):
        what = "an e-mail address" if "@" in value else "a number"
        msg = f"expected the UUID of a user, not {what} ({value[:60]!r}); it is user.uuid in the list of members"
        raise ValueError(msg)
    return value


IntegerId = Annotated[int | str, BeforeValidator(_whole_number)]
"""An id that the interface types as an integer."""
Uuid = Annotated[UUID | str, BeforeValidator(_uuid)]
"""An id that the interface types as a UUID."""
UserId = Annotated[str, BeforeValidator(_user_id)]
"""The id of a user, which the interface types as a string in paths and as a UUID in records."""


Effect = Literal["read", "create", "change", "remove"]
EFFECTS: dict[str, Effect] = {"GET": "read", "PATCH": "change", "DELETE": "remove"}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """
    The row of an operation in the table of the interface, and all that is decided about it.

    :param method: HTTP method
    :param path: template that begins with ``/api`` and ends with a slash
    :param scope: scope the API key needs; ``None`` where the interface shows none
    :param repeatable: whether sending it twice has the effect of sending it once
    :param answer: type of the answer; ``None`` if it carries nothing
    :param effect: what it does to a resource
    :param recover: how an unknown outcome is recovered: ``look-up`` where the interface can tell by reading whether it
        was applied, ``none`` where only a person can; ``None`` for what is repeatable
    :param look_for: what to look for after an unknown outcome, as a sentence; ``None`` for what is repeatable
    :param already_done_code: error code which says that the effect is there already; ``None`` if there is none
    :param instead: what to do instead of an operation that the service always refuses; ``None`` for all others
    :param passing_statuses: statuses that are worth a retry here, unless they complain of a field
    :param refusals_count: whether the service may count a request that it refused for a limit: its caller decides when
        it is sent again
    :param shows: what an answer must show once it is done; ``None`` for the fields that are sent
    """

    method: str
    path: str
    scope: str | None
    repeatable: bool
    answer: Any
    effect: Effect
    recover: Literal["look-up", "none"] | None = None
    look_for: str | None = None
    already_done_code: str | None = None
    instead: str | None = None
    passing_statuses: tuple[int, ...] = ()
    refusals_count: bool = False
    shows: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """
    A request in its final form.

    :param target: encoded path and query, to be appended to the base URL as it is
    :param body: JSON in UTF-8; ``None`` if there is no body
    """

    method: str
    target: str
    body: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Response:
    """
    An answer, whichever library received it.

    :param headers: must find names whatever their case
    """

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    @property
    def request_id(self) -> str | None:
        """The service's identifier of the request; ``None`` if it sends none. It may repeat a secret."""
        return self.headers.get("x-request-id") or self.headers.get("request-id")


class Operation(BaseModel, Generic[T]):
    """
    One operation of the interface; ``T`` is what comes back.

    Fields named in the path go there, the others into the query (GET) or the body. A field that is not given is not
    sent; a field given as ``None`` is sent as null.

    :raises WorkspaceInputError: for a field that is unknown, missing or of the wrong type
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", defer_build=True, hide_input_in_errors=True, protected_namespaces=()
    )
    endpoint: ClassVar[Endpoint]

    def __class_getitem__(cls, answer: Any) -> Any:
        """Name the answer, for :func:`answer_type`; pydantic would build one more class for each."""
        return GenericAlias(cls, answer)

    def __init__(self, /, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            msg = f"{type(self).__name__}: {explain(type(self), error)}"
            raise WorkspaceInputError(msg) from None
        except ValueError:  # beyond Python's integer string limit
            msg = f"{type(self).__name__}: a number exceeds Python's integer string limit"
            raise WorkspaceInputError(msg) from None

    @property
    def rows(self) -> int:
        """How many records the request is about."""
        return 1

    def payload(self) -> Any:
        """Return what goes into the body (or, for GET, the query): the given fields that are not in the path."""
        return self.model_dump(mode="json", exclude_unset=True, exclude=set(path_fields(self.endpoint.path)))

    def request(self) -> Request:
        """
        Write the request out.

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
            except ValueError:  # beyond Python's integer string limit
                msg = f"{type(self).__name__}: a number exceeds Python's integer string limit"
                raise WorkspaceInputError(msg) from None
            return Request(method, f"{path}?{query}" if query else path)
        return Request(method, path, _encode(type(self).__name__, payload))

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
        # Some servers decode a slash before they resolve dots, so dots between slashes would lead elsewhere, too.
        if not value.strip() or any(part.strip() in (".", "..") for part in re.split(r"[/\\]", value)):
            msg = f"{type(self).__name__}: {name} must be an identifier, not {value[:60]!r}"
            raise WorkspaceInputError(msg)
        if len(value) > MAX_ID_LENGTH:
            msg = f"{type(self).__name__}: {name} is longer than {MAX_ID_LENGTH} characters"
            raise WorkspaceInputError(msg)
        try:
            return quote(value, safe="")
        except UnicodeEncodeError:
            msg = f"{type(self).__name__}: {name} holds lone surrogates, which cannot be encoded as UTF-8"
            raise WorkspaceInputError(msg) from None

    def secrets(self) -> Iterator[str]:
        """Yield the secret values that are sent, for the log masker."""
        return secrets_under("", {name: getattr(self, name) for name in type(self).model_fields})

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Print the fields that are given and no secrets."""
        for name in type(self).model_fields:
            if name in self.model_fields_set:
                value = getattr(self, name)
                shown = without_secrets(value, secret=is_secret(name))
                if shown is not None or value is None:
                    yield name, shown


OperationClass = TypeVar("OperationClass", bound="type[Operation[Any]]")


def endpoint(
    method: str,
    path: str,
    *,
    scope: str | None,
    repeatable: bool,
    effect: Effect | None = None,
    recover: Literal["look-up", "none"] | None = None,
    look_for: str | None = None,
    already_done_code: str | None = None,
    instead: str | None = None,
    passing_statuses: tuple[int, ...] = (),
    refusals_count: bool = False,
    shows: Mapping[str, Any] | None = None,
) -> Callable[[OperationClass], OperationClass]:
    """
    Give an operation its row; the answer's type is read from the class's own type parameter.

    The arguments are those of :class:`Endpoint`.

    :param path: path below ``/api``, with a slash at both ends
    :param effect: may be left out where the method says it: ``GET``, ``PATCH`` and ``DELETE``
    :raises TypeError: if the row lacks something that its method or its not being repeatable asks for
    """

    def decorate(cls: OperationClass) -> OperationClass:
        does = effect or EFFECTS.get(method)
        if does is None:
            msg = f"@endpoint of {cls.__name__}: a {method} needs effect='create', 'change' or 'remove'"
            raise TypeError(msg)
        if repeatable is (recover is not None) or (recover is None) is not (look_for is None):
            msg = (
                f"@endpoint of {cls.__name__}: what is not repeatable needs recover='look-up' or 'none' and "
                "look_for='…', what to look for after an unknown outcome; what is repeatable needs neither"
            )
            raise TypeError(msg)
        cls.endpoint = Endpoint(
            method=method,
            path=f"/api{path}",
            scope=scope,
            repeatable=repeatable,
            answer=answer_type(cls),
            effect=does,
            recover=recover,
            look_for=look_for,
            already_done_code=already_done_code,
            instead=instead,
            passing_statuses=passing_statuses,
            refusals_count=refusals_count,
            shows=shows,
        )
        return cls

    return decorate


def answer_type(cls: type[Operation[Any]]) -> Any:
    """Return the ``T`` of an operation class; ``None`` for ``Operation[None]``."""
    for base in get_original_bases(cls):
        if get_origin(base) is Operation:
            (answer,) = get_args(base)
            return None if answer is type(None) else answer
    msg = f"{cls.__name__} must derive from Operation[...]"
    raise TypeError(msg)


def path_fields(path: str) -> list[str]:
    """Return the names in braces of a path template."""
    return re.findall(r"{(\w+)}", path)


def _encode(name: str, payload: Any) -> bytes:
    """
    Write a body as JSON.

    :param name: the operation, for the error
    :raises WorkspaceInputError: if a value is not JSON serializable
    """
    try:
        return json.dumps(payload, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    except ValueError:  # NaN, infinity, lone surrogates
        msg = f"{name}: a value is not JSON serializable (NaN, infinity or a lone surrogate)"
        raise WorkspaceInputError(msg) from None


def explain(cls: type[BaseModel], error: ValidationError) -> str:
    """Turn pydantic's findings into one line per field: which field, what was expected; never the value."""
    known = sorted(cls.model_fields)
    lines: list[str] = []
    for finding in error.errors(include_url=False, include_context=False, include_input=False):
        name = ".".join(str(part) for part in finding["loc"])[:MAX_FIELD_LENGTH]
        message = finding["msg"].removeprefix("Value error, ")
        if finding["type"] == "extra_forbidden":
            from difflib import get_close_matches

            close = get_close_matches(name, known, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"known fields: {', '.join(known)}"
            lines.append(f"unknown field {name!r} ({hint})")
        elif finding["type"] == "missing":
            lines.append(f"field '{name}' is required")
        else:
            lines.append(f"field '{name}': {message}" if name else message)
    return "; ".join(lines)
