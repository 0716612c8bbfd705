"""Faults: which of them are switched on, which requests they hit, and how often."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.sandbox.connection import reset
from airflow_provider_workspace.sandbox.fault_kinds import KINDS, Kind
from airflow_provider_workspace.sandbox.routes import LISTS, OPERATIONS

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.answers import JsonObject


@dataclass
class Fault:
    """A fault that is switched on; built by :func:`read_fault`, which checks the values."""

    kind: Kind
    parameters: JsonObject
    operation: str | None = None
    """Name or pattern of the operations it is for; None: all of them."""
    times: int | None = 1
    """How many requests it hits; None: for ever."""
    after: int = 0
    """How many requests that it is for it lets pass before."""
    probability: float = 1
    """The share of the remaining ones that it hits."""
    seed: int | None = None
    """Decides which ones these are."""
    number: int = 0
    seen: int = 0
    """How many requests it was for."""
    hits: int = 0
    """How many of them it hit."""
    random: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Roll the dice anew."""
        self.random = random.Random(self.seed)  # noqa: S311 -- no secret

    def is_for(self, operation: str | None, *, later_page: bool) -> bool:
        """
        Tell whether the fault is for a request.

        :param operation: Name of its operation; None where the interface has none such.
        :param later_page: Whether it asks for a page of a list that is not the first.
        """
        if self.kind.lists_only and operation not in LISTS:
            return False
        if self.kind.later_pages_only and not later_page:
            return False
        return self.operation is None or (operation is not None and fnmatchcase(operation, self.operation))

    def is_due(self) -> bool:
        """Count a request that the fault is for, and tell whether it is to be hit."""
        self.seen += 1
        if self.seen <= self.after or (self.times is not None and self.hits >= self.times):
            return False
        return self.probability >= 1 or self.random.random() < self.probability

    def describe(self) -> JsonObject:
        """Return the fault as control calls show it."""
        return {
            "id": self.number,
            "kind": self.kind.name,
            "operation": self.operation,
            "times": self.times,
            "after": self.after,
            "probability": self.probability,
            "seed": self.seed,
            **self.parameters,
            "seen": self.seen,
            "hits": self.hits,
        }


class Faults:
    """
    The faults of a running sandbox.

    :param first: Those that are there from the start, and again after a reset.
    """

    def __init__(self, first: Iterable[Mapping[str, Any]] = ()) -> None:
        self._first = tuple(first)
        self._numbers = itertools.count(1)
        self.held: set[asyncio.Transport] = set()
        """The connections that a fault keeps waiting."""
        self.active: list[Fault] = []
        self.restart()

    def inject(self, wanted: Mapping[str, Any]) -> Fault:
        """
        Switch a fault on.

        :param wanted: Its kind and everything else, by name.
        :raises ValueError: If it cannot be understood.
        """
        fault = read_fault(wanted)
        fault.number = next(self._numbers)
        self.active.append(fault)
        return fault

    def clear(self) -> None:
        """Switch all faults off, and let go of the clients they keep waiting."""
        self.active.clear()
        self.let_go()

    def restart(self) -> None:
        """Go back to the faults that were there from the start."""
        self.clear()
        for wanted in self._first:
            self.inject(wanted)

    def let_go(self) -> None:
        """Reset the connections of the clients that faults keep waiting."""
        for transport in list(self.held):
            reset(transport)

    def choose(self, operation: str | None, *, later_page: bool) -> Fault | None:
        """
        Count a request, and return the fault that hits it: of those that are due, the one switched on first.

        :param operation: Name of its operation; None where the interface has none such.
        :param later_page: Whether it asks for a page of a list that is not the first.
        """
        concerned = [fault for fault in self.active if fault.is_for(operation, later_page=later_page)]
        due = [fault for fault in concerned if fault.is_due()]
        if not due:
            return None
        due[0].hits += 1
        return due[0]


def read_fault(wanted: Mapping[str, Any]) -> Fault:
    """
    Check what is wanted of a fault.

    :param wanted: Its kind and everything else, by name.
    :raises ValueError: If it cannot be understood; the message tells what can be.
    """
    rest = dict(wanted)
    name = rest.pop("kind", None)
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ValueError(f"Unknown fault {name!r}. Kinds are {', '.join(KINDS)}.")
    operation = _operation(kind, rest.pop("operation", None))
    times = rest.pop("times", kind.times)
    if times is not None:
        times = _whole("times", times, 1)
    after = _whole("after", rest.pop("after", 0), 0)
    probability = rest.pop("probability", 1)
    if type(probability) not in (int, float) or not 0 < probability <= 1:
        raise ValueError(f"probability={probability!r}: a number above 0 and up to 1 is expected.")
    # Shown, so that what happened by chance can be had again.
    seed = rest.pop("seed", None if probability >= 1 else random.SystemRandom().randrange(2**31))
    if seed is not None:
        seed = _whole("seed", seed, 0)
    return Fault(kind, kind.read(rest), operation, times, after, probability, seed)


def parse_fault(text: str) -> JsonObject:
    """
    Read a fault of the command line, such as ``reset_after,operation=create_*,times=2``.

    :param text: The kind, and values by name; a value is JSON where it can be read as that.
    :raises ValueError: If a part is no ``name=value``, or the fault cannot be understood.
    """
    kind, *parts = text.split(",")
    wanted: JsonObject = {"kind": kind}
    for part in parts:
        name, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"{part!r}: name=value is expected.")
        try:
            wanted[name] = json.loads(value)
        except ValueError:
            wanted[name] = value
    read_fault(wanted)
    return wanted


def _operation(kind: Kind, operation: object) -> str | None:
    if operation is None:
        return None
    known = LISTS if kind.lists_only else OPERATIONS
    if not isinstance(operation, str) or not any(fnmatchcase(name, operation) for name in known):
        raise ValueError(f"Unknown operation {operation!r} for {kind.name}. Operations are {', '.join(known)}.")
    return operation


def _whole(name: str, value: object, least: int) -> int:
    if type(value) is not int or value < least:
        raise ValueError(f"{name}={value!r}: a whole number of at least {least} is expected.")
    return value
