"""
Check that the search of the built documentation finds the right page first; part of ``make docs``.

It ranks like Sphinx's searchtools.js with ``docs/_static/scorer.js``.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SCORER = (ROOT / "docs" / "_static" / "scorer.js").read_text()
INTERNALS = re.compile(re.search(r"INTERNALS = /(.*)/;", SCORER).group(1).replace(r"\/", "/"))  # type: ignore[union-attr]
PENALTY = int(re.search(r"score - (\d+)", SCORER).group(1))  # type: ignore[union-attr]
WEIGHTS = {name: int(weight) for name, weight in re.findall(r"(\w+): (\d+),", SCORER)}
# Queries, and the page that must come first.
EXPECTED = {
    "401": "troubleshooting",
    "403": "troubleshooting",
    "404": "troubleshooting",
    "429": "production",
    "airflow ui": "guides/status-page",
    "alert": "guides/maintenance-windows",
    "api key": "production",
    "audit": "guides/audits",
    "backfill": "guides/maintenance-windows",
    "backoff": "faults",
    "bulk invites": "guides/bulk-invites",
    "connection": "connection",
    "csv": "guides/bulk-invites",
    "deferrable": "guides/waiting",
    "deprecation": "upgrading",
    "drift": "guides/organization-file",
    "dry run": "operators/index",
    "duplicate": "faults",
    "error message": "troubleshooting",
    "glossary": "glossary",
    "idempotent": "faults",
    "kubernetes": "production",
    "lost answer": "faults",
    "maintenance window": "guides/maintenance-windows",
    "mapped": "guides/mapping",
    "migrate": "migrating",
    "offboarding": "guides/offboarding",
    "on_failure_callback": "guides/maintenance-windows",
    "onboarding": "guides/onboarding",
    "openlineage": "production",
    "performance": "scale",
    "pool": "production",
    "proxy": "connection",
    "pytest": "testing",
    "rate limit": "production",
    "rate limit invites": "guides/bulk-invites",
    "resume export": "guides/maintenance-windows",
    "retry": "faults",
    "rotation": "production",
    "sandbox": "sandbox",
    "scope": "endpoints",
    "secrets backend": "production",
    "self-signed": "connection",
    "service account": "production",
    "slack": "guides/recipes",
    "sso": "guides/bulk-invites",
    "sweep": "guides/maintenance-windows",
    "teardown": "guides/maintenance-windows",
    "timeout": "connection",
    "triggerer": "production",
    "troubleshooting": "troubleshooting",
    "txt record": "guides/onboarding",
    "uninstall": "upgrading",
    "upgrade": "upgrading",
}


def found(index: dict[str, Any], query: str) -> Iterator[tuple[float, str]]:
    """Yield the score and page of each result of a lower-case query."""
    pages, titles = index["docnames"], index["titles"]
    for title, places in index["alltitles"].items():
        if query in title.lower() and len(query) >= len(title) / 2:
            for page, _ in places:
                yield round(WEIGHTS["title"] * len(query) / len(title)) + (titles[page] == title), pages[page]
    for entry, places in index["indexentries"].items():
        if query in entry and len(query) >= len(entry) / 2:
            for page, _, main in places:
                if main:  # the others rank last
                    yield round(100 * len(query) / len(entry)), pages[page]
    for prefix, objects in index["objects"].items():
        for page, _, priority, _, name in objects:
            last = f"{prefix}.{name}".lower().split(".")[-1]
            if query in last:
                weight = WEIGHTS["objNameMatch" if query == last else "objPartialMatch"]
                yield weight + {0: 15, 1: 5, 2: -5}.get(priority, 0), pages[page]
    stemmer = importlib.import_module("snowballstemmer").stemmer("english")  # comes with Sphinx
    words = stemmer.stemWords(re.findall(r"\w+", query))
    scores = [word_scores(index, word) for word in words]
    for page in set.intersection(*map(set, scores)):
        yield max(of_word[page] for of_word in scores), pages[page]


def word_scores(index: dict[str, Any], word: str) -> dict[int, int]:
    """Return the score of a word on each page; in a title it counts more than in the text."""
    scores: dict[int, int] = {}
    for kind, weight, partial in (("terms", "term", "partialTerm"), ("titleterms", "title", "partialTitle")):
        exact = index[kind].get(word)
        matches = [(exact, WEIGHTS[weight])]
        if exact is None:
            matches = [(places, WEIGHTS[partial]) for term, places in index[kind].items() if word in term]
        for places, score in matches:
            for page in places if isinstance(places, list) else [places]:
                scores[page] = max(score, scores.get(page, 0))
    return scores


def first(index: dict[str, Any], query: str) -> str | None:
    """Return the first result; ``None`` if there is none."""
    results = [(score - PENALTY * bool(INTERNALS.match(page)), page) for score, page in found(index, query)]
    return max(results, key=lambda result: result[0])[1] if results else None


def main() -> int:
    """Print the queries that find another page first."""
    text = (ROOT / "build" / "docs" / "searchindex.js").read_text()
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    wrong = [
        f"A search for '{query}' finds {there} first, not {page}: add ```{{index}} ! {query}``` to that page."
        for query, page in EXPECTED.items()
        if (there := first(index, query)) != page
    ]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
