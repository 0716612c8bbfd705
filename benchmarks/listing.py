"""Target 4: lists of 100,000 members, read to their end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import contestants
import measure
from measure import OURS, Result
from service import MEMBERS, Service, running

WHERE = f"`where` over {MEMBERS:,} members"


def main() -> None:
    """Measure."""
    quick = measure.quick(__doc__, "one round, without the peers")
    with running() as service, measure.airflow_home():
        measure.connect(service.url)
        contestants.import_base_classes()
        walks: dict[str, list[dict[str, float]]] = {}
        counts: dict[str, list[dict[str, float]]] = {}
        for _ in range(1 if quick else 3):
            for name, rows in contestants.LISTS.items():
                if quick and name != OURS:
                    continue
                walks.setdefault(name, []).append(measure.in_child(walk(rows, service)))
                counts.setdefault(name, []).append(measure.in_child(count(contestants.COUNTS[name], service)))

    measure.report(
        "listing",
        [
            Result(4, f"{MEMBERS:,} members: memory above the start, at the peak", "MB", of(walks, "memory"), bound=10),
            Result(4, f"{MEMBERS:,} members: requests", "requests", of(walks, "requests"), bound=MEMBERS / 100),
            Result(4, "Requests before the first row is there", "requests", of(walks, "first"), bound=1),
            Result(4, f"{WHERE}: processor", "s", of(counts, "seconds")),
            Result(4, f"{WHERE}: memory at the peak", "MB", of(counts, "memory")),
        ],
    )


def of(rounds: dict[str, list[dict[str, float]]], figure: str) -> measure.Sample:
    """Return one figure of all rounds."""
    return {name: [values[figure] for values in all_] for name, all_ in rounds.items()}


def walk(rows: Callable[[str], Iterator[Any]], service: Service) -> Callable[[], dict[str, float]]:
    """Return a walk through the whole list, in a process of its own."""

    def whole() -> dict[str, float]:
        service.report()
        next(rows(service.url))
        first = service.report()["requests"]
        before = measure.peak_memory()
        number = sum(1 for _ in rows(service.url))
        assert number == MEMBERS, number
        return {
            "memory": measure.peak_memory() - before,
            "requests": service.report()["requests"],
            "first": first,
        }

    return whole


def count(members: Callable[[str], int], service: Service) -> Callable[[], dict[str, float]]:
    """Return a count of the members that two conditions select, in a process of its own."""

    def whole() -> dict[str, float]:
        before = measure.peak_memory()

        def counted() -> None:
            number = members(service.url)
            assert number == MEMBERS, number

        return {"seconds": measure.cpu_seconds(counted), "memory": measure.peak_memory() - before}

    return whole


if __name__ == "__main__":
    main()
