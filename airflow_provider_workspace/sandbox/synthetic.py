"""Lists of any length whose rows are made up while they are sent, and forgotten."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.responses import StreamingResponse

from airflow_provider_workspace.sandbox import records
from airflow_provider_workspace.sandbox.answers import JsonObject, dumps
from airflow_provider_workspace.sandbox.call import PAGE_SIZE

if TYPE_CHECKING:
    from starlette.requests import Request

ROWS_AT_ONCE = 500
AT = "2024-01-01T00:00:00.000000Z"

# Stand for the number of a row in the template that all rows of a list are made from.
NUMBER = "@number@"
HEX = "@hex@"
UUID = f"0190c0de-0000-4000-8002-{HEX}"


def large_page(request: Request, operation: str, rows: int) -> StreamingResponse:
    """
    Answer the page of a made-up list that ``limit`` and ``offset`` ask for; the same row is the same each time.

    :param request: A request that was allowed.
    :param operation: Name of the operation, one of ``TEMPLATES``.
    :param rows: How many rows the list has.
    """
    limit, offset = _number(request, "limit") or PAGE_SIZE, _number(request, "offset")

    def address(start: int) -> str:
        return f"{request.url.replace(query='')}?{urlencode({'limit': limit, 'offset': start})}"

    following = address(offset + limit) if offset + limit < rows else None
    previous = address(max(0, offset - limit)) if offset > 0 else None
    head = f'{{"count":{rows},"next":{dumps(following)},"previous":{dumps(previous)},"results":['
    template = dumps(TEMPLATES[operation](request)).replace(f'"{NUMBER}"', NUMBER)

    async def pieces() -> AsyncIterator[str]:
        yield head
        end = min(offset + limit, rows)
        for start in range(offset, end, ROWS_AT_ONCE):
            numbers = range(start + 1, min(start + ROWS_AT_ONCE, end) + 1)
            texts = [template.replace(NUMBER, str(number)).replace(HEX, f"{number:012x}") for number in numbers]
            yield ("," if start > offset else "") + ",".join(texts)
        yield "]}"

    return StreamingResponse(pieces(), media_type="application/json")


def _number(request: Request, name: str) -> int:
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


def _user() -> JsonObject:
    record = records.user(0, UUID, "Sam", f"Sample {NUMBER}", f"sam.sample.{NUMBER}@example.com")
    return record | {"id": NUMBER, "distinct_id": f"user-{NUMBER}"}


def _member(_request: Request) -> JsonObject:
    return records.member(_user(), records.MEMBER_LEVEL, AT) | {"id": UUID}


def _invite(_request: Request) -> JsonObject:
    fields = {"target_email": f"invited.{NUMBER}@example.com"}
    return records.invite(fields, _user(), AT) | {"id": UUID}


def _domain(_request: Request) -> JsonObject:
    record = records.domain({"domain": f"domain-{NUMBER}.example.org"})
    return record | {"id": UUID, "is_verified": True, "verified_at": AT, "verification_challenge": f"text-{NUMBER}"}


def _project(request: Request) -> JsonObject:
    fields = {"name": f"Project {NUMBER}", "uuid": UUID, "api_token": f"token-{NUMBER}"}
    record = records.project(0, request.path_params["organization_id"], fields, AT) | {"id": NUMBER}
    return {name: record[name] for name in records.PROJECT_LIST_FIELDS}


TEMPLATES: dict[str, Callable[[Any], JsonObject]] = {
    "list_domains": _domain,
    "list_invites": _invite,
    "list_members": _member,
    "list_projects": _project,
}
