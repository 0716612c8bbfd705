"""Which rows of a list are new, and what an asset watcher remembers of the others in less than 60 kilobytes."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Rows that are remembered one by one, at 24 bytes each: the newest ones of a longer list.
MAX_KEPT = 2000


@dataclass(frozen=True, slots=True)
class ListedRow:
    """
    A row of a list that is watched.

    :param name: name for people; ``None`` if the service shows none
    :param since: creation time in whole seconds since 1970; ``None`` if the service does not show it
    """

    name: str | None
    since: int | None


@dataclass(frozen=True, slots=True)
class SeenRows:
    """
    What the complete lists so far showed, without the rows whose event is still to come.

    :param before: rows with a time until then count as seen, in seconds since 1970; 0 if all are in ``ids``
    :param ids: times by digest of the row's id
    """

    before: int
    ids: Mapping[str, int | None]

    @classmethod
    def of(
        cls,
        rows: Mapping[str, ListedRow],
        waiting: set[str] | frozenset[str] = frozenset(),
        earlier: Iterable[SeenRows | None] = (),
    ) -> SeenRows:
        """
        Remember a list: the newest :data:`MAX_KEPT` rows by id, and of the others the latest time.

        :param waiting: rows whose event is still to come; rows that are as old are remembered by id
        :param earlier: what was remembered before; rows that only it has stay remembered as far as there is room,
            because a list may miss them for one poll
        """
        seen = {row_id: row.since for row_id, row in rows.items() if row_id not in waiting}
        known = sorted(since for since in seen.values() if since is not None)
        excess = min(len(seen) - MAX_KEPT, len(known))
        before = 0
        if excess > 0:
            before = known[excess - 1]
            for row_id in waiting:
                since = rows[row_id].since
                if since is not None:
                    before = min(before, since - 1)
        remembered = [each for each in earlier if each]
        before = max(before, min((each.before for each in remembered), default=0))
        ids: dict[str, int | None] = {}
        for row_id, since in seen.items():
            if since is None or since > before:
                ids[_digest(row_id)] = since
        missed: dict[str, int | None] = {}
        listed = {_digest(row_id) for row_id in rows}
        for each in remembered:
            missed |= {digest: since for digest, since in each.ids.items() if digest not in listed}
        newest_first = sorted(missed.items(), key=lambda row: -(row[1] or 0))
        ids |= dict(newest_first[: max(0, MAX_KEPT - len(ids))])
        return cls(before, ids)

    @classmethod
    def from_json(cls, value: object) -> SeenRows | None:
        """Read what was remembered; ``None`` if nothing was."""
        if not isinstance(value, dict) or not isinstance(value.get("ids"), dict):
            return None
        return cls(value.get("before") or 0, value["ids"])

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {"before": self.before, "ids": self.ids}

    def new(self, rows: Mapping[str, ListedRow]) -> list[str]:
        """Return the ids of the rows that no list has shown, or only with an earlier time."""
        return [row_id for row_id, row in rows.items() if self._is_new(row_id, row.since)]

    def _is_new(self, row_id: str, since: int | None) -> bool:
        if since is not None and since <= self.before:  # too old to be remembered by its id
            return False
        last = self.ids.get(_digest(row_id), -1)
        if last is None:  # it had no time
            return False
        return (since or 0) > last


def unseen_rows(rows: Mapping[str, ListedRow], remembered: Iterable[SeenRows | None]) -> dict[str, None]:
    """
    Return the ids of the rows that are new to an asset, as the keys of a mapping, which keep their order.

    :param remembered: what is remembered for each asset; ``None`` for nothing, then all rows are known
    """
    unseen: dict[str, None] = {}
    for seen in remembered:
        if seen:
            unseen |= dict.fromkeys(seen.new(rows))
    return unseen


def _digest(row_id: str) -> str:
    return urlsafe_b64encode(blake2b(row_id.encode(), digest_size=6).digest()).decode()
