"""
Run the example `onboard_organization` in Airflow against a local workspace service, and show the result.

The workspace is kept in build/demo, so a second run finds everything and changes nothing. --fresh starts over.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local_airflow import ROOT, airflow, environment, give_up, migrate, run, sandbox, say, short

if TYPE_CHECKING:
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.sandbox.server import SandboxServer

DAG = "onboard_organization"
# The lines of Airflow's log to show. A step is a task instance.
STEP = re.compile(r"\[DAG TEST\] (starting|end task) task_id=(\S+) map_index=(-?\d+)")
FACT = re.compile(
    r"\] (?:Organization \S+: )?(Created (?:the|dashboard) .*?\.(?= )|\d+ to create, [^\[]*|"
    r"The domain '\S+' is verified\.|Invites: \d[^\[]*?second|\d+ rows: [^\[]*)"
)


def main() -> None:
    """Run the Dag, then show the workspace."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="start with a new workspace and a new Airflow")
    parser.add_argument("--home", type=Path, default=ROOT / "build" / "demo", help="folder for both")
    options = parser.parse_args()
    home: Path = options.home.resolve()
    began = time.monotonic()
    with sandbox(home, fresh=options.fresh) as server:
        say(f"A workspace service runs at {server.url}; open it in a browser to watch")
        env = environment(home, server)
        migrate(home, env)
        before = len(server.effects())
        run_dag(env, home / "run.log")
        show_workspace(env, home)
        show_changes(server, before)
        say(f"It took {time.monotonic() - began:.0f} s. Again: make demo    From scratch: make demo ARGS=--fresh")
        say("In the Airflow UI: make ui")


def run_dag(env: dict[str, str], log: Path) -> None:
    """
    Run the Dag and show its progress.

    :raises SystemExit: if it fails
    """
    say(f"Running the Dag '{DAG}' through Airflow, whose log goes to {short(log)}")
    say("  (Airflow takes some seconds to start, and some more for its first task)")
    began = time.monotonic()
    failed = False
    with airflow(env, "dags", "test", DAG) as process, log.open("w") as output:
        for line in process.stdout or ():
            output.write(line)
            output.flush()
            failed = failed or line.startswith("DagRun failed")
            if step := STEP.search(line):
                what, task_id, number = step.groups()
                if what == "starting":
                    say(f"  {time.monotonic() - began:5.1f} s  {task_id}{'' if number == '-1' else f' {number}'}")
            elif fact := FACT.search(line):
                say(f"             {fact[1].strip()}")
            elif "new_state=failed" in line:
                say("             failed")
        code = process.wait()
    if code or failed:
        give_up(f"The Dag '{DAG}' failed", log)
    say(f"  {time.monotonic() - began:5.1f} s  done")


def show_workspace(env: dict[str, str], home: Path) -> None:
    """Print the content of the workspace, read with the hook and the connection of the Dag."""
    say("Reading back what the workspace holds now")
    remembered = home / "variables.json"
    log = home / "variables.log"
    with airflow(env, "variables", "export", str(remembered), log=log) as process:
        if process.wait():
            give_up("Airflow's Variables could not be read", log)
    os.environ.update(env)

    from airflow_provider_workspace.errors import WorkspaceError
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook

    hook = WorkspaceHook()
    try:
        rows = [*workspace_rows(hook), *dashboard_rows(hook, json.loads(remembered.read_text()))]
    except WorkspaceError as error:
        raise SystemExit(
            f"\nThe workspace could not be read back: {error}\nTo start over, add ARGS=--fresh."
        ) from error
    finally:
        hook.close()
    width = max(len(name) for name, _ in rows)
    say("")
    for name, value in rows:
        say(f"  {name:<{width}}  {value}")


def workspace_rows(hook: WorkspaceHook) -> list[tuple[str, str]]:
    """Return a row for each record in the lists."""
    invites = Counter("expired" if invite.is_expired else "open" for invite in hook.list_invites())
    rows = [("Project", f"{project.name} ({project.id})") for project in hook.list_projects()]
    rows += [
        ("Domain", f"{domain.domain}, {'verified' if domain.is_verified else 'not verified'}")
        for domain in hook.list_domains()
    ]
    rows.append(("Invites", ", ".join(f"{count} {state}" for state, count in invites.items())))
    rows += [("Member", str(member.user and member.user.email)) for member in hook.list_members()]
    return rows


def dashboard_rows(hook: WorkspaceHook, variables: dict[str, Any]) -> list[tuple[str, str]]:
    """Return a row for each dashboard in Airflow's Variables; the interface has no list of dashboards."""
    remembered = [ids for key, ids in variables.items() if key.startswith("workspace_dashboard_")]
    return [
        ("Dashboard", describe_dashboard(hook, ids["project_id"], ids["dashboard_id"]))
        for ids in sorted(remembered, key=lambda ids: ids["dashboard_id"])
    ]


def describe_dashboard(hook: WorkspaceHook, project_id: str, dashboard_id: int) -> str:
    """Describe a dashboard and its collaborators."""
    dashboard = hook.get_dashboard(project_id=project_id, dashboard_id=dashboard_id)
    collaborators = hook.list_dashboard_collaborators(project_id=project_id, dashboard_id=dashboard_id)
    people = ", ".join(str(entry.user and entry.user.email) for entry in collaborators)
    return f"{dashboard.name} ({dashboard.id}) in project {project_id}, with {people}"


def show_changes(server: SandboxServer, before: int) -> None:
    """Print what this run changed, according to the audit of the service."""
    counted = Counter(effect["operation"] for effect in server.effects()[before:])
    if not counted:
        say("\nThis run created nothing and changed nothing: everything was there.")
        return
    say("\nThis run changed, by the service's own list:")
    for name, count in counted.items():
        say(f"  {count:>4} x {name.replace('_', ' ')}")


if __name__ == "__main__":
    run(main)
