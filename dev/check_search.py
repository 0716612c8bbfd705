"""Check that the search of the built documentation finds the right page first; part of ``make docs``."""

from __future__ import annotations

import sys
from pathlib import Path

from py_mini_racer import MiniRacer

DOCS = Path(__file__).resolve().parents[1] / "build" / "docs"
# The page that must come first, and queries for it.
EXPECTED = {
    "connection": "connection, proxy, self-signed, timeout",
    "endpoints": "scope",
    "faults": "backoff, duplicate, idempotent, lost answer, retry",
    "glossary": "glossary",
    "guides/audits": "audit",
    "guides/bulk-invites": "bulk invites, csv, rate limit invites, sso",
    "guides/maintenance-windows": (
        "alert, backfill, maintenance window, on_failure_callback, resume export, sweep, teardown"
    ),
    "guides/mapping": "mapped",
    "guides/offboarding": "offboarding",
    "guides/onboarding": "onboarding, txt record",
    "guides/organization-file": "drift",
    "guides/pull-request": "github actions, pull request",
    "guides/recipes": "slack",
    "guides/status-page": "airflow ui",
    "guides/waiting": "deferrable",
    "guides/warehouse": "hr system, okta, scim, sql, warehouse",
    "migrating": "migrate",
    "operators/index": "dry run",
    "production": (
        "429, api key, kubernetes, openlineage, pool, rate limit, rotation, secrets backend, service account, triggerer"
    ),
    "sandbox": "sandbox",
    "scale": "performance",
    "testing": "pytest",
    "troubleshooting": "401, 403, 404, error message, troubleshooting",
    "upgrading": "deprecation, uninstall, upgrade",
}
# What Sphinx's search asks of a browser, and the page that it shows first.
BROWSER = """
var window = globalThis, document = { getElementById() {} }, SPHINX_HIGHLIGHT_ENABLED = false;
var _ready = () => {}, _ = (text) => text;
"""
FIRST = "(query) => Search._performSearch(...Search._parseQuery(query)).at(-1)?.[0] ?? 'nothing'"


def main() -> int:
    """Print the queries that find another page first."""
    engine = MiniRacer()
    engine.eval(BROWSER)
    for script in ("_static/language_data.js", "_static/searchtools.js", "searchindex.js"):
        engine.eval((DOCS / script).read_text())
    engine.eval(f"var first = {FIRST};")
    wrong = [
        f"A search for '{query}' finds {found} first, not {page}: add ```{{index}} ! {query}``` to that page."
        for page, queries in EXPECTED.items()
        for query in queries.split(", ")
        if (found := engine.call("first", query)) != page
    ]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
