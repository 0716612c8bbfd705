"""Which rows of a list are new, and what an asset watcher remembers of the others in less than 60 kilobytes."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.ids import spellings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

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


@dataclass(slots=True)
class SeenRows:
    """
    The rows that were reported already.

    :param before: rows created until then count as seen, in seconds since 1970; ``None`` if all are in ``ids``
    :param ids: creation times by digest of the row's id; rows without a time are always kept
    """

    before: int | None = None
    ids: dict[str, int | None] = field(default_factory=dict[str, "int | None"])

    @classmethod
    def all_of(cls, rows: Mapping[str, ListedRow]) -> SeenRows:
        """Treat all rows as seen: what exists when a watch begins is not new."""
        seen = cls(before=_cut([row.since for row in rows.values()]))
        seen.ids = {_digest(row_id): row.since for row_id, row in rows.items() if not seen._is_before(row.since)}
        return seen

    @classmethod
    def from_json(cls, value: Any) -> SeenRows | None:
        """Read what was remembered; ``None`` if nothing was."""
        if not isinstance(value, dict) or not isinstance(value.get("ids"), dict):
            return None
        return cls(value.get("before"), value["ids"])

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {"before": self.before, "ids": self.ids}

    def new(self, rows: Mapping[str, ListedRow]) -> list[str]:
        """Return the ids of the rows that were not seen before."""
        later = (row_id for row_id, row in rows.items() if not self._is_before(row.since))
        return [row_id for row_id in later if self.ids.keys().isdisjoint(map(_digest, spellings(row_id)))]

    def add(self, rows: Mapping[str, ListedRow], seen: Iterable[str]) -> None:
        """Remember rows that were reported: the newest :data:`MAX_KEPT`, and more while some as old are not."""
        self.ids.update((_digest(row_id), rows[row_id].since) for row_id in seen)
        cut = _cut(self.ids.values())
        waiting = (rows[row_id].since for row_id in self.new(rows))
        if cut is not None and all(since is None or since > cut for since in waiting):
            self.before = cut
            self.ids = {digest: since for digest, since in self.ids.items() if not self._is_before(since)}

    def _is_before(self, since: int | None) -> bool:
        """Return whether a row is too old to be remembered by its id."""
        return self.before is not None and since is not None and since <= self.before


def _cut(times: Collection[int | None]) -> int | None:
    """Return the time until which rows are dropped; ``None`` if all can be kept, or none has a time."""
    known = sorted(time for time in times if time is not None)
    excess = len(times) - MAX_KEPT
    return known[min(excess, len(known)) - 1] if excess > 0 and known else None


def _digest(row_id: str) -> str:
    return urlsafe_b64encode(blake2b(row_id.encode(), digest_size=6).digest()).decode()
