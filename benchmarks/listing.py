"""Target 4: lists of 100,000 members, read to their end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import contestants
import measure
from measure import OURS, Result
from service import MEMBERS, Service, running


def main() -> None:
    """Measure."""
    quick = measure.quick(__doc__, "one round, without the peers")
    with running() as service, measure.airflow_home():
        measure.connect(service.url)
        contestants.import_base_classes()
        seen: dict[str, list[dict[str, float]]] = {}
        for _ in range(1 if quick else 3):
            for name, rows in contestants.LISTS.items():
                if quick and name != OURS:
                    continue
                seen.setdefault(name, []).append(measure.in_child(walk(rows, service)))

    def of(figure: str) -> measure.Sample:
        return {name: [walked[figure] for walked in rounds] for name, rounds in seen.items()}

    measure.report(
        "listing",
        [
            Result(4, f"{MEMBERS:,} members: memory above the start, at the peak", "MB", of("memory"), bound=10),
            Result(4, f"{MEMBERS:,} members: requests", "requests", of("requests"), bound=MEMBERS / 100),
            Result(4, "Requests before the first row is there", "requests", of("first"), bound=1),
        ],
    )


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


if __name__ == "__main__":
    main()
