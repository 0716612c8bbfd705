"""What a task sends, noted before each request: a later try tells what the earlier ones have sent, too."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from threading import Lock
from typing import Any, Protocol

from airflow_provider_workspace.api.database_limits import storable

# The longest page of a journal that gets one entry more, in characters of JSON. It is written whole each time.
MAX_PAGE = 20_000


class JournalPage(Protocol):
    """A value that survives the tries of a task, as :class:`~airflow_provider_workspace.notes.task_state.TaskState`."""

    def read(self) -> Any:
        """Return the value; ``None`` if there is none."""

    def write(self, value: object) -> None:
        """Store plain JSON."""


@dataclass(frozen=True, slots=True)
class Sending:
    """
    What a try was about to send, and what came of it.

    :param place: the service and the organization
    :param key: what it is known by there in a later try
    :param row: it as a report shows it, as plain JSON
    :param by: the try, and who approved it, for people
    :param status: what came of it; empty if nobody noted it, because the try was killed or deferred
    :param reason: the reason, for people
    """

    place: str
    key: str
    row: Mapping[str, Any] = field(default_factory=dict[str, Any])
    by: str = ""
    status: str = ""
    reason: str = ""

    @property
    def told(self) -> str:
        """What a later try says about it if nothing of it is left to do."""
        if self.status:
            return ", ".join(filter(None, [self.reason, f"sent by {self.by}"]))
        return f"done, or done by somebody else: {self.by} was about to send it"


class Journal:
    """
    What the tries of a task send; threads may share it.

    :param page_of: returns the page with a number, from 0
    :param by: this try, and who approved what it sends, for people
    :param knows_all: whether it has all that was sent before; before Airflow 3.3, a retry does not know it
    :param check: fails if another try has taken over, which writes the journal now
    :ivar earlier: what earlier tries, and this one before a deferral, were about to send, anywhere
    """

    def __init__(
        self,
        page_of: Callable[[int], JournalPage],
        by: str,
        *,
        knows_all: bool = True,
        check: Callable[[], object] = lambda: None,
    ) -> None:
        self.by = by
        self._check = check
        self.knows_all = knows_all
        self._page_of = page_of
        self.earlier: list[Sending] = []
        self._pages: dict[int, dict[tuple[str, str], Sending]] = {}
        self._page_numbers: dict[tuple[str, str], int] = {}
        self._changed: set[int] = set()
        self._lock = Lock()
        self._number = 0
        self._length = 0
        while entries := page_of(self._number).read():
            sendings = [Sending(**entry) for entry in entries]
            self.earlier += sendings
            self._length = len(json.dumps(entries))
            self._pages = {self._number: {(one.place, one.key): one for one in sendings}}
            self._number += 1
        if self._pages:  # the last one goes on while it has room
            self._number -= 1
            self._page_numbers = dict.fromkeys(self._pages[self._number], self._number)

    def earlier_at(self, place: str) -> dict[str, Sending]:
        """Return what was sent to an organization earlier, as it was noted last."""
        return {sending.key: sending for sending in self.earlier if sending.place == place}

    def begin(self, sendings: Iterable[Sending]) -> None:
        """Note what is about to be sent, and what came of what was sent before."""
        with self._lock:
            for sending in sendings:
                self._add(replace(sending, by=self.by))
            self._write()

    def end(self, place: str, key: str, status: str, reason: str = "") -> None:
        """Say what came of something that this try has begun; that is noted with what is sent next, or at the end."""
        with self._lock:
            number = self._page_numbers.get((place, key))
            if number is None:
                return
            page = self._pages[number]
            ended = replace(page[place, key], status=status, reason=reason)
            if ended != page[place, key]:
                page[place, key] = ended
                self._changed.add(number)

    def write(self) -> None:
        """Note what came of all that was sent."""
        with self._lock:
            self._write()

    def _add(self, sending: Sending) -> None:
        if self._length > MAX_PAGE:
            self._number += 1
            self._length = 0
        key = sending.place, sending.key
        number = self._page_numbers.setdefault(key, self._number)
        self._pages.setdefault(number, {})[key] = sending
        self._changed.add(number)
        self._length += len(json.dumps(asdict(sending)))

    def _write(self) -> None:
        if self._changed:
            self._check()
        for number in sorted(self._changed):
            entries = [asdict(sending) for sending in self._pages[number].values()]
            self._page_of(number).write(storable(entries))
        self._changed.clear()
