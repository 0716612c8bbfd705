"""From the bytes of a successful answer to what an operation returns, tolerant of every shape left open."""

from __future__ import annotations

import json
import logging
from typing import Any, get_args, get_origin

from pydantic import TypeAdapter, ValidationError

from airflow_provider_workspace.api.models import Page

log = logging.getLogger(__name__)

PAGE = "an HTML or XML page"

_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}


class UnreadableAnswerError(ValueError):
    """The bytes are not what was expected; the message says what they are."""


def decode(answer: Any, body: bytes) -> Any:
    """
    Read the body of a 2xx answer.

    :param answer: ``None``, a resource, ``Resource | None``, ``list[Resource]`` or ``Page[Resource]``
    :param body: the body as received
    :return: an instance of ``answer``
    :raises UnreadableAnswerError: if the body is cut, is not JSON, or has not the expected shape
    """
    if answer is None:
        if is_page(body):
            msg = f"{PAGE} ({len(body)} bytes) where nothing or JSON was expected"
            raise UnreadableAnswerError(msg)
        return None
    if not body.strip():
        if get_origin(answer) is list:
            return []
        if type(None) in get_args(answer):
            return None
        msg = "an empty body where a record was expected"
        raise UnreadableAnswerError(msg)
    try:
        return adapter(answer).validate_json(body)
    except ValidationError as error:
        finding = error.errors(include_url=False, include_context=False, include_input=False)[0]
        if "recursion limit" in finding["msg"]:
            msg = f"JSON that is nested too deeply ({len(body)} bytes)"
            raise UnreadableAnswerError(msg) from None
        return repair(answer, parse(body))


def adapter(answer: Any) -> TypeAdapter[Any]:
    """Return the validator of a type; each is built once, when it is first needed."""
    if answer not in _ADAPTERS:
        _ADAPTERS[answer] = TypeAdapter(answer)
    return _ADAPTERS[answer]


def parse(body: bytes) -> Any:
    """Parse JSON, or say what the body is instead."""
    try:
        return writable(json.loads(body))
    except (ValueError, RecursionError):
        if is_page(body):
            kind = PAGE
        elif body.lstrip()[:1] in (b"{", b"["):
            kind = "JSON that is cut off or broken"
        else:
            kind = "something that is not JSON"
        msg = f"{kind} ({len(body)} bytes)"
        raise UnreadableAnswerError(msg) from None


def writable(value: Any) -> Any:
    """Replace halves of characters, which JSON can spell and which nothing can write: not to XCom and to no log."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, list):
        return [writable(item) for item in value]
    if isinstance(value, dict):
        return {writable(name): writable(item) for name, item in value.items()}
    return value


def is_page(body: bytes) -> bool:
    """Tell whether a body is a page for people, as proxies and logins answer in place of the service."""
    return body.lstrip()[:1] == b"<"


def repair(answer: Any, value: Any) -> Any:
    """
    Fit another reasonable shape into the expected one, then read fields of unexpected types as null.

    A list may come as an array, an envelope or a single object; one object may come as an array of one.
    """
    value = reshape(answer, value)
    for _ in range(2):
        try:
            return adapter(answer).validate_python(value)
        except ValidationError as error:  # noqa: PERF203 - two rounds
            fields: set[str] = set()
            for finding in error.errors(include_url=False, include_context=False, include_input=False):
                path = field_path(finding["loc"], value)
                if not path or not isinstance(path[-1], str):
                    msg = f"JSON of another shape ({finding['msg']})"
                    raise UnreadableAnswerError(msg) from None
                blank(value, path)
                fields.add(".".join(part for part in path if isinstance(part, str)))
            for name in sorted(fields):
                log.warning("Field %s of the answer has another type than the interface says: read as null", name)
    msg = "JSON of another shape"
    raise UnreadableAnswerError(msg)


def reshape(answer: Any, value: Any) -> Any:
    """Bring arrays, envelopes and single objects into the one that is expected."""
    if isinstance(answer, type) and issubclass(answer, Page):
        if isinstance(value, list):
            return {"results": value}
        if isinstance(value, dict) and "results" not in value and "id" in value:
            return {"results": [value]}
        return value
    if get_origin(answer) is list:
        if isinstance(value, dict) and isinstance(value.get("results"), list):
            return value["results"]
        if isinstance(value, dict):
            return [value] if "id" in value else []
        return [] if value is None else value
    if isinstance(value, list) and len(value) == 1:
        return value[0]
    return value


def field_path(loc: tuple[int | str, ...], value: Any) -> list[int | str]:
    """Return the part of a location that exists in the value: pydantic adds names of its own for unions."""
    path: list[int | str] = []
    for part in loc:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            continue
        path.append(part)
    return path


def blank(value: Any, path: list[int | str]) -> None:
    """Set one field to null."""
    for part in path[:-1]:
        value = value[part]
    value[path[-1]] = None
