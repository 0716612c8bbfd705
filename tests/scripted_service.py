"""Services whose answers a test decides: by a function, or lists in memory whose pages a fault changes."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.raw_server import RawServer, Received, Scene, answer, read_request


class ScriptedService(RawServer):
    """
    A service that responds to each request by a function.

    :param respond: returns what happens to a request: a response, or a reset
    """

    def __init__(self, respond: Callable[[Received], Scene]) -> None:
        super().__init__(Scene(reads=False, handler=self._answer))
        self.respond = respond

    def _answer(self, connection: socket.socket) -> None:
        request = read_request(connection)
        self.requests.append(request)
        scene = self.respond(request)
        if scene.resets:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            connection.sendall(scene.answer(self.url) if callable(scene.answer) else scene.answer)


class Recorder(ScriptedService):
    """
    A service that responds to each request alike.

    :ivar answer: status, headers and body
    """

    def __init__(self) -> None:
        super().__init__(lambda _: answer(self.answer[0], self.answer[2], packed=False, **self.answer[1]))
        self.answer: tuple[int, dict[str, str], bytes] = (200, {}, b"{}")

    @property
    def received(self) -> list[bytes]:
        """The text of every request."""
        return [repr(request).encode() for request in self.requests]


@dataclass
class PageContent:
    """
    The contents of a page, for a fault to change.

    :param following: offset of the next page, if any
    :param chance: random numbers, the same in each run
    """

    offset: int
    limit: int
    ids: list[int]
    following: int | None
    everything: list[int]
    chance: random.Random


def next_null(sent: PageContent) -> None:
    sent.following = None


def last_row_missing(sent: PageContent) -> None:
    if sent.following is not None:
        sent.ids.pop()


def empty_page(sent: PageContent) -> None:
    if sent.offset == 20:
        sent.ids.clear()


def moving(sent: PageContent) -> None:
    sent.ids = sent.chance.sample(sent.everything, len(sent.ids))


def hidden(sent: PageContent) -> None:
    sent.ids = [number for number in sent.ids if number % 9]


def at_most_seven(sent: PageContent) -> None:
    sent.ids = sent.ids[:7]
    sent.following = sent.offset + 7 if sent.offset + len(sent.ids) < len(sent.everything) else None


def one_by_chance(sent: PageContent) -> None:
    sent.ids, sent.following = [] if sent.offset else sent.chance.sample(sent.everything, 1), None


def more_than_counted(sent: PageContent) -> None:
    sent.ids = [sent.offset * 2 + 1, sent.offset * 2 + 2]
    sent.following = sent.offset + 1 if sent.offset < 9 else None


def endless(sent: PageContent) -> None:
    sent.ids = list(range(sent.offset + 1, sent.offset + sent.limit + 1))
    sent.following = sent.offset + sent.limit


Fault = Callable[[PageContent], object]


def email(number: int) -> str:
    return f"person{number}@example.com"


def uuid(number: int) -> str:
    return f"0190c0de-0000-4000-8000-{number:012x}"


ROWS: dict[str, Callable[[int], dict[str, Any]]] = {
    "domains": lambda number: {"id": uuid(number), "domain": f"d{number}.example.com", "is_verified": True},
    "invites": lambda number: {"id": uuid(number), "target_email": email(number), "is_expired": False, "level": 1},
    "members": lambda number: {
        "id": uuid(number),
        "user": {"uuid": uuid(number), "email": email(number)},
        "level": 1,
        "joined_at": f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z",
    },
    "projects": lambda number: {"id": number, "name": f"Project {number}"},
}


class ListService(ScriptedService):
    """
    Lists of organization ``o``; their rows are numbered from 1.

    :ivar lists: the numbers of the rows of each list
    :ivar faults: the fault of each list
    :ivar reads: number of requested pages of each list
    :ivar writes: method and path of every other request; each is refused
    """

    def __init__(self, **lists: int) -> None:
        super().__init__(self._respond)
        self.lists = {name: list(range(1, lists.get(name, 0) + 1)) for name in ROWS}
        self.faults: dict[str, Fault] = {}
        self.reads = dict.fromkeys(ROWS, 0)
        self.chance = random.Random(7)  # noqa: S311 - the same each time
        self.writes: list[str] = []

    def _respond(self, request: Received) -> Scene:
        if request.method != "GET":
            self.writes.append(f"{request.method} {request.target}")
            return answer(403, {"detail": "nothing is written here"})
        url = urlsplit(request.target)
        *_, kind, name = url.path.rstrip("/").split("/")
        query = {key: int(values[0]) for key, values in parse_qs(url.query).items()}
        return answer(
            body=self._page(name, query.get("offset", 0), query["limit"]) if name in ROWS else ROWS[kind](int(name))
        )

    def _page(self, name: str, offset: int, limit: int) -> dict[str, Any]:
        self.reads[name] += 1
        everything = self.lists[name]
        following = offset + limit if offset + limit < len(everything) else None
        sent = PageContent(offset, limit, everything[offset : offset + limit], following, everything, self.chance)
        if name in self.faults:
            self.faults[name](sent)
        return {
            "count": len(everything),
            "next": None if sent.following is None else f"{self.url}/?limit={limit}&offset={sent.following}",
            "results": [ROWS[name](number) for number in sent.ids],
        }
