"""Unusual values for arguments."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

NASTY_TEXTS = (
    *("", " ", "\t\r\n", "\x00", "\x1b[31m", ".", "..", "../..", "/", "//", "\\", "?", "#", "%", "%2e%2e", "%00"),
    *("a/../b", "?limit=1", "a b", "é", "e\u0301", "日本", "\u202eabc", "\u200b", "\ufeff", "\ud800", "\U0001f600"),
    *("None", "null", "true", "0", "-1", "1.5", "1e400", "NaN", "inf", "٣", "9" * 5000, "=1+1", "{{ x }}", "{0}"),
    *("[]", "{}", '["a@example.com"]', "a" * 9000, "a@example.com", "a@münchen.example"),
)
# Hypothesis omits lone surrogates, which JSON and file names can contain.
texts = st.sampled_from(NASTY_TEXTS) | st.text(st.characters(exclude_categories=()), max_size=40)


@dataclass(frozen=True)
class Made:
    """A placeholder for a value that Hypothesis cannot print; :func:`build` creates it."""

    what: str

    @property
    def is_deep(self) -> bool:
        """Whether it is nested deeper than the recursion limit."""
        return self.what in ("deep", "endless", "deep mapping")

    def make(self) -> Any:
        endless: list[Any] = []
        endless.append(endless)
        return {
            "huge": 10**4400,
            "hugely negative": -(10**4400),
            "deep": nested(5_000),
            "endless": endless,
            "deep mapping": {"a": nested(5_000)},
            "huge in a list": [10**4400],
        }[self.what]


def build(drawn: dict[str, Any]) -> dict[str, Any]:
    """Replace the placeholders by their values."""
    return {name: value.make() if isinstance(value, Made) else value for name, value in drawn.items()}


def nested(levels: int) -> Any:
    """A deeply nested list."""
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


NASTY_THINGS = (
    *(0, -1, True, 10**30, 1.5, 7.0, float("nan"), float("inf"), 1e308, Decimal("1.5")),
    *(timedelta.max, timedelta(days=-1), datetime(2024, 1, 1, tzinfo=timezone.utc), uuid.UUID(int=7)),
    *(b"\xff", object(), object, len, {"a", "b"}, (1, 2), range(3), nested(300)),
    *(Made(what) for what in ("huge", "hugely negative", "deep", "endless", "deep mapping", "huge in a list")),
    *({"self": 1}, {"organization_id": "x"}, {"cls": 1, "": 2}, {5: 6}, {"a": {"b": [1]}}),
    *(["name"], [5], [None], [["a"]]),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
anything = st.none() | texts | st.sampled_from(NASTY_THINGS) | json_values
