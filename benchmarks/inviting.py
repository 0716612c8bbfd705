"""Target 3: thousands of invites to a service that takes 50 ms per request."""

from __future__ import annotations

import math
import time
from typing import Any

import measure
from measure import OURS, Result
from service import INVITES, Service, running

LATENCY = 0.05
PER_REQUEST = 20
AT_ONCE = 4
# The loops invite one in so many: of 10,000, one by one would take nine minutes.
PART = 100


def main() -> None:
    """Measure."""
    people = 4_000 if measure.quick(__doc__, "4,000 invites instead of 10,000") else 10_000
    emails = [f"person{number}@example.com" for number in range(people)]
    limit = math.ceil(people / PER_REQUEST / AT_ONCE) * LATENCY
    with running(LATENCY) as service, measure.airflow_home():
        measure.connect(service.url)
        ours = measure.in_child(lambda: invite(emails, service))
        loop = measure.in_child(lambda: invite_in_a_loop(emails[: people // PART], service))
    seconds = {
        OURS: [ours["seconds"]],
        f"the limit: {AT_ONCE} requests at a time": [limit],
        f"requests in a loop, {PER_REQUEST} per request": [PART * loop["chunked"]],
        "requests in a loop, one per request": [PART * loop["single"]],
    }
    measure.report(
        "inviting",
        [
            Result(3, f"{people:,} invites", "s", seconds, {f"the limit: {AT_ONCE} requests at a time": 1.3}),
            Result(3, "Invites lost", "invites", {OURS: [people - ours["invited"]]}, bound=0),
            Result(3, "Invites sent twice", "invites", {OURS: [ours["twice"]]}, bound=0),
        ],
    )


def invite(emails: list[str], service: Service) -> dict[str, Any]:
    """Invite with the hook: checks, look at who is there, chunks, report."""
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook

    hook = WorkspaceHook(organization_id="small")
    hook.create_invites(["somebody@example.com"])
    service.report()
    began = time.monotonic()
    hook.create_invites(emails)
    return {"seconds": time.monotonic() - began, **service.report()}


def invite_in_a_loop(emails: list[str], service: Service) -> dict[str, float]:
    """Invite as a script would."""
    import requests

    session = requests.Session()
    address = f"{service.url}{INVITES}"
    rows = [{"target_email": email} for email in emails]
    began = time.monotonic()
    for start in range(0, len(rows), PER_REQUEST):
        session.post(f"{address}bulk/", json=rows[start : start + PER_REQUEST], timeout=30).raise_for_status()
    chunked = time.monotonic() - began
    began = time.monotonic()
    for row in rows:
        session.post(address, json=row, timeout=30).raise_for_status()
    service.report()
    return {"chunked": chunked, "single": time.monotonic() - began}


if __name__ == "__main__":
    main()
