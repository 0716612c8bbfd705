"""Check that the search of the built documentation finds the right page first; part of ``make docs``."""

from __future__ import annotations

import re
import sys
from functools import partial
from itertools import cycle
from pathlib import Path

from py_mini_racer import MiniRacer

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs" / "_ext"))
from messages import FIRST_WORDS, Message, messages  # noqa: E402 - from the path above

DOCS = ROOT / "build" / "docs"
# The page that must come first, and queries for it.
EXPECTED = {
    "api/errors": "WorkspaceNotFoundError",
    "api/index": "WorkspaceHook, list_members",
    "connection": "connection, create connection in ui, proxy, self-signed, timeout, project id, consistency_time",
    "cli": "exit code, exit status, run without scheduler",
    "errors": "401, 403, 404, error message, troubleshooting, task deferred forever",
    "endpoints": "scope, list of scopes for a key, does it fit my service, what permissions does the api key need",
    "examples": "example dags, gallery, write dag with chatgpt, coding assistant",
    "faq": (
        "airflow 2, already paused, dbt, delete a project, get help, email changed, mwaa, rehire, rename project, "
        "restore member, revoke access, roll back, second approver, staging and production, support, undo"
    ),
    "faults": (
        "backoff, duplicate, idempotent, lost answer, retry, retry on timeout, is it safe to clear a task, "
        "worker dies while inviting, two runs at once"
    ),
    "glossary": "glossary",
    "guides/temporary-access": (
        "temporary access, elevated access, grant, just-in-time access, break-glass, give someone access for a day"
    ),
    "guides/access-review": "access review, recertification, audit evidence, soc 2",
    "guides/approve": "approve, require_approval, human in the loop, four eyes, segregation of duties",
    "guides/audits": "audit, what changed since last week, two factor authentication",
    "guides/bulk-invites": (
        "resend invite, invite stuck pending, bulk invites, rate limit invites, sso, "
        "how to add many users to an organization"
    ),
    "guides/maintenance-windows": (
        "alert, backfill, maintenance window, where are leases stored, on_failure_callback, resume export, sweep, "
        "teardown"
    ),
    "guides/events": "trigger dag when a new member joins, start dag on new user signup",
    "guides/endpoints": "own endpoint, call an api endpoint that is not supported, list batch exports",
    "guides/mapping": "mapped, run for each organization, create several projects at once",
    "guides/members": (
        "offboarding, slack notification on failure, slack, deactivate user account, "
        "preview changes before applying, protect the owner account"
    ),
    "guides/organization-file": "drift, multiple organizations, onboarding, organization file, txt record",
    "guides/pull-request": "github actions, gitlab, pull request, read-only api key for ci",
    "how-it-works": "how it works",
    "index": "license",
    "limits": "cost, how many requests does it send, limitations, pagination limit, quota",
    "guides/rosters": (
        "csv, duplicate rows, email typo in roster, roster, file in s3, max removals safety limit, "
        "prevent deleting everyone, schema of the members csv, sync users from okta"
    ),
    "guides/status-page": "airflow ui",
    "guides/waiting": (
        "deferrable, deferrable operator triggerer, deferrable sensor stuck, sensor, async operator, "
        "wait until user accepts invite"
    ),
    "guides/warehouse": "bigquery, hr system, okta, read members from postgres, scim, snowflake, sql, warehouse",
    "migrating": "migrate, move from python scripts to this provider, terraform, infrastructure as code",
    "organization-file-format": "jinja in yaml file, delete projects not in the file",
    "operators/batch_exports": "max_length",
    "operators/dashboards": "share dashboard with team, variable_key",
    "operators/index": "dry run, if_exists, which operator do i need",
    "operators/send": "add another endpoint",
    "operators/members": "WorkspaceSyncMembersOperator, change level of a member",
    "production": (
        "docker compose, cron, postgres, 429, api key, kubernetes, openlineage, pool, rate limit, rotation, "
        "key rotation, secrets backend, service account, triggerer, where is the key stored"
    ),
    "sandbox": "sandbox",
    "scale": "performance, slow dag parsing",
    "security": "mask secret in log",
    "sensors": "WorkspaceDomainVerifiedSensor",
    "still-paused": "stuck paused, my export is stuck paused",
    "testing": "pytest, pytest hangs",
    "upgrading": "compatibility, deprecation, uninstall, upgrade, what is missing on airflow 3.1",
}
# What Sphinx's search asks of a browser, and the page that it shows first.
BROWSER = """
var window = globalThis, document = { getElementById() {} }, SPHINX_HIGHLIGHT_ENABLED = false;
var _ready = () => {}, _ = (text) => text;
"""
# What a message is pasted with: where it stands in the log, and names and figures in place of "…".
LINE = "[2026-01-01T06:00:00.123Z] {{taskinstance.py:1234}} ERROR - Task failed with exception {} northwind-4711"
# How many characters of a message Airflow's list of logs and most alerts show, and how many messages may be lost.
CUT, MOST_MISSED = 120, 20
FIRST = "(query) => Search._performSearch(...Search._parseQuery(query)).at(-1) ?? ['nothing']"


def _places(message: Message) -> list[str]:
    """Return where the search may lead: to the section of the problem, or else to the page of the topic."""
    if message.problem:
        return [f"errors#{message.problem}"]
    return [message.page]


def main() -> int:
    """Print the queries that find another page first."""
    engine = MiniRacer()
    engine.eval(BROWSER)
    for script in ("_static/searchtools.js", "_static/language_data.js", "searchindex.js"):
        engine.eval((DOCS / script).read_text())
    engine.eval(
        f"var hit = {FIRST}, first = (query) => hit(query)[0], section = (query) => hit(query)[0] + hit(query)[2];"
    )
    wrong = [
        f"A search for '{query}' finds {found} first, not {page}: add <!-- index: ! {query} --> to that page."
        for page, queries in EXPECTED.items()
        for query in queries.split(", ")
        if (found := engine.call("first", query)) != page
    ]
    found_at = partial(engine.call, "section")
    missed: list[str] = []
    asked = [message for message in messages() if len(re.findall(r"\w{4,}", message.text)) > 3 and not message.is_end]
    sections: dict[str, set[str]] = {}
    for message in asked:
        sections.setdefault(message.beginning, set()).update(_places(message))
        sections.setdefault(message.text, set()).update(_places(message))
    for message in asked:
        text = message.text.replace("…", "4711")
        wrong += [
            f"The line '{pasted}' finds {found_at(pasted)} first."
            for pasted in (LINE.format(text), text[:CUT])
            if found_at(pasted) not in sections[message.text]
        ]
        if found_at(message.beginning) not in sections[message.beginning]:
            missed.append(f"'{message.beginning}' finds {found_at(message.beginning)} first.")
    # Before whatever message it stands; in a list, an alert or a chat that cuts the line at the right, too.
    problems = re.findall(r"^### (.+)", (ROOT / "docs" / "errors.md").read_text(), re.MULTILINE)
    for problem, message in zip(problems, cycle(asked)):
        text = f"[{problem}] {message.text}"
        wrong += [
            f"'{pasted}' does not find the section of its problem first."
            for pasted in (problem, LINE.format(text), text[:CUT])
            if found_at(pasted) != f"errors#{problem}"
        ]
    print(f"{len(missed)} of {len(asked)} messages are not found by their first {FIRST_WORDS} words.")
    if len(missed) > MOST_MISSED:
        wrong += missed
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
