"""
Run the example `onboard_organization` through Airflow against a local workspace service, and show what came of it.

The workspace stays in build/demo, so the second run finds everything there and changes nothing. --fresh starts over.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import time
from collections import Counter
from typing import TYPE_CHECKING

from local_airflow import AIRFLOW, ROOT, environment, give_up, migrate, sandbox, say

if TYPE_CHECKING:
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.sandbox.server import SandboxServer

HOME = ROOT / "build" / "demo"
DAG = "onboard_organization"
# What is worth showing of Airflow's log, and how.
STEP = re.compile(r"\[DAG TEST\] starting task_id=(\S+)")
FACTS = re.compile(
    r"\] (Created (?:the|dashboard) .*?\.(?= )|There is a .*? nothing was sent\.|Dashboard .*? nothing was sent\.|"
    r"Invites: \d.*?second[^\[]*|\S+ is verified|Waiting: [^\[]*)"
)


def main() -> None:
    """Run the Dag, then read everything back from the service."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="start with a new workspace and a new Airflow")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
    began = time.monotonic()
    with sandbox(HOME, fresh=options.fresh) as server:
        say(f"A workspace service runs at {server.url}; open it in a browser to watch")
        env = environment(HOME, server)
        migrate(HOME, env)
        before = len(server.effects())
        say(f"Running the Dag '{DAG}' through Airflow")
        run_dag(env)
        # The provider's own hook reads everything back, with the connection the Dag used.
        os.environ.update(env)
        show_workspace()
        changed = changes(server, before)
        say(f"\nThis run {changed}; it took {time.monotonic() - began:.0f} s.")
        say("Again: make demo    From scratch: make demo ARGS=--fresh    In Airflow's pages: make ui")


def run_dag(env: dict[str, str]) -> None:
    """
    Run the Dag and show its steps as they happen.

    :raises SystemExit: if it fails
    """
    log = HOME / "run.log"
    began = time.monotonic()
    process = subprocess.Popen(
        [AIRFLOW, "dags", "test", DAG], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    failed = False
    try:
        with log.open("w") as output:
            for line in process.stdout or ():
                output.write(line)
                failed = failed or line.startswith("DagRun failed")
                if step := STEP.search(line):
                    say(f"  {time.monotonic() - began:5.1f} s  {step[1]}")
                elif fact := FACTS.search(line):
                    say(f"             {fact[1].strip()}")
        code = process.wait()
    finally:
        process.kill()
    if code or failed:
        give_up(f"The Dag failed ({code})", log)


def show_workspace() -> None:
    """Print what the workspace holds now, read back from the service."""
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook

    hook = WorkspaceHook()
    invites = Counter("expired" if invite.is_expired else "open" for invite in hook.list_invites())
    rows = [
        ("Projects", ", ".join(f"{project.name} ({project.id})" for project in hook.list_projects())),
        (
            "Domains",
            ", ".join(
                f"{domain.domain} ({'verified' if domain.is_verified else 'not verified'})"
                for domain in hook.list_domains()
            ),
        ),
        ("Invites", ", ".join(f"{count} {state}" for state, count in invites.items())),
        ("Members", ", ".join(str(member.user and member.user.email) for member in hook.list_members())),
        *dashboard_rows(hook),
    ]
    hook.close()
    say("\nThe workspace now holds, read back from the service:\n")
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        say(f"  {name:<{width}}  {value}")


def dashboard_rows(hook: WorkspaceHook) -> list[tuple[str, str]]:
    """Confirm the dashboards that Airflow remembers by reading each."""
    file = HOME / "variables.json"
    subprocess.run([AIRFLOW, "variables", "export", file], capture_output=True, check=True)
    remembered = json.loads(file.read_text())
    rows = []
    for key, ids in sorted(remembered.items()):
        if not key.startswith("workspace_dashboard_"):
            continue
        dashboard = hook.get_dashboard(**ids)
        people = ", ".join(
            str(person.user and person.user.email) for person in hook.list_dashboard_collaborators(**ids)
        )
        rows.append((f"Dashboard {dashboard.id}", f"{dashboard.name}, in project {ids['project_id']}, for {people}"))
    return rows


def changes(server: SandboxServer, before: int) -> str:
    """Say what this run changed, by the list of effects the service keeps."""
    counted = Counter(effect["operation"] for effect in server.effects()[before:])
    # Asking for verification of what is verified is a question.
    if not counted:
        return "changed nothing: everything was there"
    return "changed the workspace: " + ", ".join(f"{count} x {name}" for name, count in sorted(counted.items()))


if __name__ == "__main__":
    main()
