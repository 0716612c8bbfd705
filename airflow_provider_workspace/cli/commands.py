"""What the commands of ``airflow workspace`` do."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowNotFoundException

from airflow_provider_workspace.errors import WorkspaceError

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow_provider_workspace.hooks.workspace import WorkspaceHook


def ping(args: Namespace) -> None:
    """Ask the service for a little."""
    with _hook_of(args.conn_id) as hook:
        began = time.perf_counter()
        says = _confirmed(hook)[0].rstrip(".")
        _tell(f"{says} ({(time.perf_counter() - began) * 1000:.0f} ms for a few reads).")


def whoami(args: Namespace) -> None:
    """Say what the key may do; whose it is, the interface cannot tell."""
    with _hook_of(args.conn_id) as hook:
        _tell(*_confirmed(hook))
        project_id = hook.client.settings.project_id
        if project_id is not None:
            level = hook.get_project(project_id=project_id).effective_membership_level
            _tell(f"Level of the key's owner in project {project_id}: {level}.")


def plan(args: Namespace) -> None:
    """Compare an organization with its file, or its members with a roster."""
    if args.file.endswith((".yaml", ".yml")):
        _plan_organizations(args)
        return
    from airflow_provider_workspace.procedures.member_sync import read_and_plan
    from airflow_provider_workspace.procedures.roster_files import read_roster

    with _hook_of(args.conn_id) as hook:
        planned = hook.client.run(
            read_and_plan(
                read_roster(None, args.file),
                hook.organization_or_default(args.organization_id),
                hook.client.settings.page_size,
                protected=args.protected,
                owner_level=args.owner_level,
            )
        )
    _tell(json.dumps(planned.to_dict(), indent=2) if args.output == "json" else planned.table())


def _plan_organizations(args: Namespace) -> None:
    """Compare each organization of a file; end with status 2 if one is not as the file says."""
    from airflow_provider_workspace.cli.database_store import DatabaseStore
    from airflow_provider_workspace.procedures.organization_file import load_organizations
    from airflow_provider_workspace.procedures.organization_plan import plan_organization
    from airflow_provider_workspace.state.organization_memory import reading_of

    plans: dict[str, Any] = {}
    with _hook_of(args.conn_id) as hook:
        for name, wanted in load_organizations(args.file).items():
            organization_id = hook.organization_or_default(args.organization_id or wanted.organization_id)
            reading = reading_of(organization_id, hook.client.settings, DatabaseStore)
            plans[name or organization_id] = hook.client.run(plan_organization(wanted, reading))
    if args.output == "json":
        _tell(json.dumps({name: planned.to_dict() for name, planned in plans.items()}, indent=2))
    else:
        for name, planned in plans.items():
            _tell(f"Organization {name}: {planned.table(coloured=sys.stdout.isatty())}")
    if any(planned.differences for planned in plans.values()):
        raise SystemExit(2)


def import_organization(args: Namespace) -> None:
    """Write the file of an organization as it is."""
    from airflow_provider_workspace.cli.database_store import DatabaseStore
    from airflow_provider_workspace.procedures.organization_import import describe_organization
    from airflow_provider_workspace.state.organization_memory import PREFIX, remembered_dashboards

    with _hook_of(args.conn_id) as hook:
        organization_id = hook.organization_or_default(args.organization_id)
        settings = hook.client.settings
        dashboards = remembered_dashboards(organization_id, settings, DatabaseStore(PREFIX))
        text = hook.client.run(describe_organization(organization_id, settings.page_size, dashboards))
    sys.stdout.write(text)


def windows(args: Namespace) -> None:
    """List the leases of maintenance windows, and resume what abandoned ones have left paused."""
    from airflow_provider_workspace.cli.database_store import DatabaseStore
    from airflow_provider_workspace.state.lease_requests import LeaseServices
    from airflow_provider_workspace.state.leases import LeaseRegistry, why_abandoned
    from airflow_provider_workspace.state.resuming import Closer, describe_sweep, sweep

    # As Airflow's own commands: look for connections in the database, too.
    os.environ["_AIRFLOW_PROCESS_CONTEXT"] = "server"
    registry = LeaseRegistry(DatabaseStore())
    swept: list[dict[str, Any]] = []
    if args.resume:
        with LeaseServices() as services:
            swept = sweep(Closer(registry, services, f"airflow workspace windows {time.time()}"))
    now = time.time()
    leases = [{**lease.to_dict(), "abandoned": why_abandoned(registry.store, lease, now)} for lease in registry.all()]
    if args.output == "json":
        _tell(json.dumps({"leases": leases, "swept": swept, "unreadable": registry.unreadable}, indent=2))
    else:
        if swept or registry.unreadable:
            _tell(describe_sweep(swept, registry.unreadable))
        for lease in leases:
            state = f"ABANDONED: {lease['abandoned']}" if lease["abandoned"] else lease["state"]
            _tell(
                f"{lease['batch_export_id']}  {lease['dag_id']} / {lease['run_id']} / {lease['close_task_id']}  "
                f"since {lease['since'][:19]}Z until {lease['until'][:19]}Z  {state}"
            )
        if not leases:
            _tell("No maintenance window holds a batch export.")
    if any(row["failed"] for row in swept):
        raise SystemExit(1)


def sandbox(args: Namespace) -> None:
    """Run a sandbox until it is interrupted, in place of this process: nothing here imports it."""
    options = ["--port", args.port, "--profile", args.profile, "--database", args.database]
    os.execv(sys.executable, [sys.executable, "-m", "airflow_provider_workspace.sandbox", *options])  # noqa: S606 - no shell


def _confirmed(hook: WorkspaceHook) -> list[str]:
    """Return what reading confirmed; if it is not enough to work with, end with what is wrong."""
    from airflow_provider_workspace.hooks.connection_test import check_connection

    works, lines = check_connection(hook.send, hook.client.settings)
    if not works:
        raise SystemExit("\n".join(lines))
    return lines


@contextmanager
def _hook_of(conn_id: str) -> Iterator[WorkspaceHook]:
    """Open a connection; an error ends the command with its message."""
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook

    # As Airflow's own commands about connections: look for them in the database, too.
    os.environ["_AIRFLOW_PROCESS_CONTEXT"] = "server"
    try:
        with closing(WorkspaceHook(conn_id)) as hook:
            yield hook
    except (AirflowNotFoundException, WorkspaceError) as error:
        raise SystemExit(str(error)) from None


def _tell(*lines: str) -> None:
    """Write to the terminal."""
    sys.stdout.write("\n".join(lines) + "\n")
