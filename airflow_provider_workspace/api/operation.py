"""
The base class of operations.

The fields of an operation are its request, and its type parameter is its result. Paths, queries and bodies are encoded
here, because the two HTTP libraries encode differently.
"""

# Without postponed annotations: pydantic would have to compile them for each class below.

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import GenericAlias
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar
from urllib.parse import quote, unquote, urlencode

from pydantic import ConfigDict, PrivateAttr, ValidationError

from airflow_provider_workspace.api.endpoint import Described, endpoint, own_ids, path_fields
from airflow_provider_workspace.api.fields import Cursor, Limit, Offset, TextId, explain, interface_names
from airflow_provider_workspace.api.secrets import is_secret, secrets_under, without_secrets, without_url_secrets
from airflow_provider_workspace.errors import WorkspaceInputError, printable

if TYPE_CHECKING:
    from typing_extensions import Self

# What authors import from here, as docs/guides/endpoints.md says.
__all__ = ["Cursor", "Limit", "Offset", "Operation", "endpoint"]

T = TypeVar("T")

MAX_ID_LENGTH = 300
MAX_DETAIL_LENGTH = 300
# A shorter secret may be part of ordinary text, so it is removed from errors only.
MIN_SECRET_LENGTH = 12
TOO_LONG = "a number exceeds Python's integer string limit"


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
    :param base_url: URL of the service; empty if it is not known
    """

    source: str
    secrets: tuple[str, ...] = field(default=(), repr=False)
    base_url: str = ""

    def with_secrets_of(self, op: "Operation[Any]") -> "RequestContext":
        """Return a copy with the secrets of an operation, which the response may repeat."""
        return RequestContext(self.source, (*self.secrets, *op.secrets()), self.base_url)

    def cleaned(self, op: "Operation[Any]", response: Response) -> Response:
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


class MovedPath(NamedTuple):
    """
    Where the service has an operation, in place of the path of its endpoint.

    :param template: path that begins with ``/api``; see ``paths`` of the connection
    :param defaults: values of placeholders that the operation has no field for
    """

    template: str
    defaults: Mapping[str, str]


class Operation(Described, Generic[T]):
    """
    An operation of the interface with a result of type ``T``.

    Fields that the path names go into the path, the others into the query (GET) or the body. A field that is not set is
    not sent; ``None`` is sent as null. A field with an alias has this name in the interface.

    :raises WorkspaceInputError: if a field is unknown, missing or of the wrong type
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", defer_build=True, hide_input_in_errors=True, protected_namespaces=()
    )
    rows: ClassVar[int] = 1
    """Number of records in the request."""
    _moved: MovedPath | None = PrivateAttr(default=None)
    _query_of_link: str | None = PrivateAttr(default=None)

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

    def moved_to(self, moved: MovedPath) -> "Self":
        """Return a copy that is sent to another path; what its own path names stays out of the query and body."""
        copy = self.model_copy()
        copy._moved = moved  # noqa: SLF001 - its own
        return copy

    @property
    def is_moved(self) -> bool:
        """Whether it is sent to another path."""
        return self._moved is not None

    def payload(self) -> Any:
        """Return the fields for the body, or for the query of a GET."""
        return self._sent(in_path=False)

    @classmethod
    def body_fields(cls) -> tuple[str, ...]:
        """Return the names that fields of the body have in the interface; none for reads and deletes."""
        if cls.endpoint.method in ("GET", "DELETE"):
            return ()
        in_path = path_fields(cls.endpoint.path)
        return tuple(name for name in interface_names(cls).values() if name not in in_path)

    def _sent(self, *, in_path: bool) -> dict[str, Any]:
        """Return the fields that are set by their names in the interface, those in the path or the others."""
        path_names = path_fields(self.endpoint.path)
        values = self.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return {name: value for name, value in values.items() if (name in path_names) is in_path}

    def request(self) -> Request:
        """
        Encode the request.

        :raises WorkspaceInputError: if a path value is empty or a dot segment, a value has no form in a path or query,
            or is not JSON serializable
        """
        method = self.endpoint.method
        path = self.path()
        secrets = tuple(self.secrets())
        shown = self.path(shown=True) if secrets else path
        if method == "DELETE":
            return Request(method, path, shown, secrets)
        payload = self.payload()
        if method == "GET":
            return Request(method, path + self._query(payload), shown, secrets)
        try:
            body = encode_json(payload)
        except ValueError as error:
            raise self.refusal(str(error)) from None
        return Request(method, path, shown, secrets, body)

    def with_query(self, query: str) -> "Self":
        """Return a copy whose GET has this encoded query, of a link to the next page, in place of the fields."""
        copy = self.model_copy()
        copy._query_of_link = query  # noqa: SLF001 - of the same class
        return copy

    def _query(self, payload: Mapping[str, Any]) -> str:
        """Return the query of a GET with its question mark; empty if there is none."""
        if self._query_of_link is not None:
            return f"?{self._query_of_link}"
        texts = {name: self._texts(name, value) for name, value in payload.items() if value is not None}
        query = urlencode(texts, doseq=True)
        return f"?{query}" if query else ""

    def path(self, *, shown: bool = False) -> str:
        """
        Fill and encode the path.

        :param shown: whether it is for people, with ``***`` in place of secrets
        :raises WorkspaceInputError: if a value is empty, ``.`` or ``..``
        """
        template = self.endpoint.path
        values = self._sent(in_path=True)
        if self._moved is not None:
            template = self._moved.template
            values = self._values_of(self._moved)
        secrets = set(self.secrets()) if shown else set()
        segments: dict[str, str] = {}
        for name, value in values.items():
            has_secret = any(secret in str(value) for secret in secrets)
            segments[name] = "***" if has_secret else self._segment(name, value)
        return template.format_map(segments)

    def _values_of(self, moved: MovedPath) -> dict[str, Any]:
        """
        Return the values of the placeholders of another path; the operation's own come first.

        :raises WorkspaceInputError: if one has no value
        """
        names = path_fields(moved.template)
        forgotten = [name for name in own_ids(self.endpoint.path) if name not in names]
        if forgotten:
            raise self.refusal(
                f"the path {moved.template} in 'paths' of the connection must name {', '.join(forgotten)}, or it leads "
                "to something else"
            )
        own = self.model_dump(mode="json", by_alias=True, exclude_unset=True)
        values = {**moved.defaults, **own}
        missing = [name for name in names if values.get(name) is None]
        if missing:
            raise self.refusal(
                f"the path {moved.template} in 'paths' of the connection names {', '.join(missing)}, which neither "
                "this operation nor the connection has"
            )
        return {name: values[name] for name in names}

    def keeps_ids(self, path: str) -> bool:
        """Return whether another path, to which the service redirects this operation, is about the same."""
        segments = [unquote(segment).lower() for segment in path.split("/")]
        template = self.endpoint.path.split("/")
        values = self._sent(in_path=True)
        needed: list[str] = []
        if self.endpoint.effect in ("change", "remove"):
            needed = own_ids(self.endpoint.path)
        for word, placeholder in pairwise(template):
            for name in path_fields(placeholder):
                value = unquote(self._segment(name, values[name])).lower()
                if word in segments and segments[segments.index(word) + 1 :][:1] != [value]:
                    return False
                if name in needed and value not in segments:
                    return False
        return True

    def _segment(self, name: str, value: object) -> str:
        """Encode one path value."""
        (value,) = self._texts(name, [value] if isinstance(value, list) else value)
        if not _is_identifier(value):
            wrong = "***" if is_secret(name) else repr(value[:60])
            raise self.refusal(f"{name} must be an identifier, not {wrong}")
        if len(value) > MAX_ID_LENGTH:
            raise self.refusal(f"{name} is longer than {MAX_ID_LENGTH} characters")
        return quote(value, safe="")

    def _texts(self, name: str, value: object) -> list[str]:
        """Return a value of a path or query as text, or those of a list."""
        items = value if isinstance(value, list) else [value]
        if not items or not all(isinstance(item, str | int | float) for item in items):
            raise self.refusal(f"{name} must be a text, a number, true or false; in a query also a list, not empty")
        try:
            texts = [_text_of(item) for item in items]
            "".join(texts).encode()
        except UnicodeEncodeError:
            raise self.refusal(f"{name} holds lone surrogates, which cannot be encoded as UTF-8") from None
        except ValueError:
            raise self.refusal(TOO_LONG) from None
        return texts

    def _named(self) -> dict[str, Any]:
        """Return the fields that are set by their names in the interface."""
        names = interface_names(type(self))
        return {names[name]: getattr(self, name) for name in names if name in self.model_fields_set}

    def secrets(self) -> Iterator[str]:
        """Yield the secrets in the request, as they are and as a path has them, for the log masker."""
        for secret in secrets_under("", self.__dict__ | self._named()):
            yield from dict.fromkeys((secret, quote(secret, safe="", errors="replace")))

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Show the fields that are set, without secrets."""
        yield from without_secrets(self._named()).items()


def _text_of(item: object) -> str:
    """Return a value as paths and queries write it."""
    return str(item).lower() if isinstance(item, bool) else str(item)


def _is_identifier(text: str) -> bool:
    """Return whether a path may hold a text: it prints, and no part of it is a dot segment."""
    if not text.strip() or not text.isprintable():
        return False
    # Some servers decode slashes before they resolve dot segments.
    parts = re.split(r"[/\\]", text)
    return all(part.strip() not in (".", "..") for part in parts)


class OrganizationList(Operation[T]):
    """The list of a kind of resource in an organization."""

    organization_id: TextId
    limit: Limit = None
    offset: Offset = None


def encode_json(value: object) -> bytes:
    """
    Return the JSON of a body, or of a part of one.

    :raises ValueError: if JSON cannot carry it
    """
    try:
        return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        raise ValueError("a value is not JSON serializable (NaN, infinity or half an emoji)") from None
