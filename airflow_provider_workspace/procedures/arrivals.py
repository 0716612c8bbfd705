"""What is new in a list, and what an asset watch remembers of it, in some ten kilobytes."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

# Rows that are remembered one by one, at 24 bytes each. Of a longer list they are the newest.
MAX_KEPT = 2000


@dataclass(frozen=True, slots=True)
class ListedRow:
    """
    A row of a list that is watched.

    :param name: name for people; ``None`` if the service shows none
    :param since: when it came, in whole seconds since 1970; ``None`` if the service does not show it
    """

    name: str | None
    since: int | None


@dataclass(slots=True)
class ToldRows:
    """
    The rows that were told of.

    :param before: rows that came then or earlier count as told, in seconds since 1970; ``None`` if all are in ``ids``
    :param ids: digest of a row's id -> when it came; those without a time are never left out
    """

    before: int | None = None
    ids: dict[str, int | None] = field(default_factory=dict[str, "int | None"])

    @classmethod
    def all_of(cls, rows: Mapping[str, ListedRow]) -> ToldRows:
        """Take all rows for told: what is there when a watch begins is not new."""
        told = cls(before=_cut([row.since for row in rows.values()]))
        told.ids = {_digest(row_id): row.since for row_id, row in rows.items() if not told._is_before(row.since)}
        return told

    @classmethod
    def from_json(cls, value: Any) -> ToldRows | None:
        """Read what was remembered; ``None`` if nothing was."""
        if not isinstance(value, dict) or not isinstance(value.get("ids"), dict):
            return None
        return cls(value.get("before"), value["ids"])

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {"before": self.before, "ids": self.ids}

    def new(self, rows: Mapping[str, ListedRow]) -> list[str]:
        """Return the ids of the rows that were not told of."""
        later = (row_id for row_id, row in rows.items() if not self._is_before(row.since))
        return [row_id for row_id in later if _digest(row_id) not in self.ids]

    def add(self, rows: Mapping[str, ListedRow], told: Iterable[str]) -> None:
        """
        Remember rows; beyond :data:`MAX_KEPT` the oldest are left out.

        :param told: ids of the rows that were told of
        """
        self.ids.update((_digest(row_id), rows[row_id].since) for row_id in told)
        cut = _cut(self.ids.values())
        if cut is not None:
            self.before = cut
            self.ids = {digest: since for digest, since in self.ids.items() if not self._is_before(since)}

    def _is_before(self, since: int | None) -> bool:
        """Tell whether a row is too old to be remembered one by one."""
        return self.before is not None and since is not None and since <= self.before


def _cut(times: Collection[int | None]) -> int | None:
    """Return the time up to which rows are left out; ``None`` if all can be kept, or none has a time."""
    known = sorted(time for time in times if time is not None)
    excess = len(times) - MAX_KEPT
    return known[min(excess, len(known)) - 1] if excess > 0 and known else None


def _digest(row_id: str) -> str:
    """Return eight letters for an id."""
    return urlsafe_b64encode(blake2b(row_id.encode(), digest_size=6).digest()).decode()
