"""A server with incomplete, changing or endless lists that records every write."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from typing_extensions import Self


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


class ListService:
    """
    Lists of organization ``o``; their rows are numbered from 1.

    :ivar lists: the numbers of the rows of each list
    :ivar faults: the fault of each list
    :ivar reads: number of requested pages of each list
    :ivar writes: method and path of every other request
    """

    def __init__(self, **lists: int) -> None:
        self.lists = {name: list(range(1, lists.get(name, 0) + 1)) for name in ROWS}
        self.faults: dict[str, Fault] = {}
        self.reads = dict.fromkeys(ROWS, 0)
        self.chance = random.Random(7)  # noqa: S311 - the same each time
        self.writes: list[str] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                url = urlsplit(self.path)
                *_, kind, name = url.path.rstrip("/").split("/")
                query = {key: int(values[0]) for key, values in parse_qs(url.query).items()}
                if name in ROWS:
                    answer = service.page(name, query.get("offset", 0), query["limit"])
                else:
                    answer = ROWS[kind](int(name))
                self.answer(200, json.dumps(answer).encode())

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"] or 0))
                service.writes.append(f"{self.command} {self.path}")
                self.answer(403, b'{"detail": "nothing is written here"}')

            do_PATCH = do_DELETE = do_POST  # noqa: N815 - the names of http.server

            def answer(self, status: int, body: bytes) -> None:
                head = f"HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
                self.wfile.write(head.encode() + body)

            def log_message(self, *_: object) -> None:
                """Write nothing to the terminal."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def page(self, name: str, offset: int, limit: int) -> dict[str, Any]:
        """Return a page of a list."""
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
