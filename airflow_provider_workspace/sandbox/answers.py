"""What the service sends back: JSON, nothing, or a refusal."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

JsonObject = dict[str, Any]

_ENCODER = json.JSONEncoder(separators=(",", ":"))


def dumps(value: object) -> str:
    """
    Write JSON in the one form in which it is stored and sent.

    ASCII only: a lone surrogate in a client's string is legal JSON but cannot be encoded otherwise.

    :param value: What to write.
    """
    return _ENCODER.encode(value)


def answer(value: object, status: int = 200) -> Response:
    """
    Answer a JSON value.

    :param value: The body.
    :param status: The status code.
    """
    return Response(dumps(value), status, media_type="application/json")


def answer_text(text: str) -> Response:
    """
    Answer 200 with JSON that is written already, as stored records are.

    :param text: The body, as JSON text.
    """
    return Response(text, media_type="application/json")


def empty(status: int) -> Response:
    """
    Answer a status and a body of no bytes.

    :param status: The status code.
    """
    return Response(status_code=status)


class Refused(Exception):  # noqa: N818 -- an answer, not a fault of the sandbox
    """
    A request that is not granted; what it changed before is undone.

    :param status: The status code.
    :param kind: The ``type`` of the error body.
    :param code: The machine-readable reason.
    :param detail: The reason for people.
    :param attr: The field at fault.
    :param headers: Headers to send along.
    """

    def __init__(
        self,
        status: int,
        kind: str,
        code: str,
        detail: str,
        attr: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = headers
        self.body = {"type": kind, "code": code, "detail": detail, "attr": attr}

    def response(self) -> Response:
        """Return the answer to send."""
        return Response(dumps(self.body), self.status, self.headers, media_type="application/json")


def invalid(detail: str, attr: str | None = None, code: str = "invalid_input") -> Refused:
    """
    Build the 400 for a request that cannot be taken as it is.

    :param detail: The reason for people.
    :param attr: The field at fault.
    :param code: The machine-readable reason.
    """
    return Refused(400, "validation_error", code, detail, attr)


def not_found() -> Refused:
    """Build the 404 for something that does not exist, or not for this key."""
    return Refused(404, "invalid_request", "not_found", "Not found.")


def denied(detail: str) -> Refused:
    """
    Build the 403 for a key that may not do this.

    :param detail: The reason for people.
    """
    return Refused(403, "authentication_error", "permission_denied", detail)
