"""What the commands of ``airflow workspace`` do."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.version_compat import AirflowNotFoundException

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.state.leases import LeaseRegistry


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
    from airflow_provider_workspace.hooks.files import file_at
    from airflow_provider_workspace.operators.arguments import parse_access_level
    from airflow_provider_workspace.procedures.member_sync import read_and_plan
    from airflow_provider_workspace.procedures.roster_files import read_roster

    with _hook_of(args.conn_id) as hook:
        planned = hook.client.run(
            read_and_plan(
                read_roster(None, file_at(args.file)),
                hook.organization_or_default(args.organization_id),
                hook.client.settings.page_size,
                protected=args.protected,
                owner_level=parse_access_level("--owner-level", args.owner_level),
            )
        )
    _tell(json.dumps(planned.to_dict(), indent=2) if args.output == "json" else planned.table())


def _plan_organizations(args: Namespace) -> None:
    """Compare each organization of a file; end with status 2 if one is not as the file says."""
    from airflow_provider_workspace.cli.database_store import DatabaseStore
    from airflow_provider_workspace.hooks.files import file_at
    from airflow_provider_workspace.procedures.organization_file import load_organizations
    from airflow_provider_workspace.procedures.organization_plan import plan_organization
    from airflow_provider_workspace.state.organization_memory import reading_of

    plans: dict[str, Any] = {}
    with _hook_of(args.conn_id) as hook:
        organizations = load_organizations(args.file, file_at)
        if args.organization_id and len(organizations) > 1:
            msg = f"Leave out --organization-id: {args.file} describes {len(organizations)} organizations."
            raise SystemExit(msg)
        for name, wanted in organizations.items():
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
    from airflow_provider_workspace.state.leases import LeaseRegistry
    from airflow_provider_workspace.state.resuming import Closer, describe_sweep, sweep

    # As Airflow's own commands: look for connections in the database, too.
    os.environ["_AIRFLOW_PROCESS_CONTEXT"] = "server"
    registry = LeaseRegistry(DatabaseStore())
    swept: list[dict[str, Any]] = []
    with _sentences():
        if args.resume:
            with LeaseServices() as services:
                swept = sweep(Closer(registry, services, f"airflow workspace windows {time.time()}"))
        leases = _leases_of(registry)
    if args.output == "json":
        _tell(json.dumps({"leases": leases, "swept": swept, "unreadable": registry.unreadable}, indent=2))
    else:
        if swept or registry.unreadable:
            _tell(describe_sweep(swept, registry.unreadable))
        _tell(*_lease_lines(leases))
    if any(row["failed"] for row in swept):
        raise SystemExit(1)


def status(args: Namespace) -> None:
    """Say what the status page shows."""
    from airflow_provider_workspace.cli import database_status
    from airflow_provider_workspace.cli.database_store import DatabaseStore
    from airflow_provider_workspace.state.leases import LeaseRegistry, iso

    registry = LeaseRegistry(DatabaseStore())
    with _sentences():
        leases, swept = _leases_of(registry), registry.last_sweep()
        found: dict[str, Any] = {
            "windows": leases,
            "unreadable": registry.unreadable,
            "last_sweep": None if swept is None else iso(swept),
            "campaigns": database_status.campaigns(),
            "waits": database_status.waits(),
            "dashboards": database_status.dashboards(),
        }
    if args.output == "json":
        _tell(json.dumps(found, indent=2))
        return
    broken = [f"Delete or mend the Variable '{key}': {wrong}." for key, wrong in registry.unreadable.items()]
    last = f"Last sweep: {found['last_sweep'] or 'never'}"
    sections = {
        "Windows": [*_lease_lines(leases), *broken, last],
        "Invite campaigns": [_campaign_line(row) for row in found["campaigns"]],
        "Waits": [_wait_line(row) for row in found["waits"]],
        "Remembered dashboards": [_dashboard_line(row) for row in found["dashboards"]],
    }
    for title, lines in sections.items():
        _tell(title, *(f"  {line}" for line in lines or ["None."]))


def _leases_of(registry: LeaseRegistry) -> list[dict[str, Any]]:
    """Return the leases as plain JSON, with why each is abandoned; those that are come first."""
    from airflow_provider_workspace.state.leases import why_abandoned

    now = time.time()
    leases = [{**lease.to_dict(), "abandoned": why_abandoned(registry.store, lease, now)} for lease in registry.all()]
    return sorted(leases, key=lambda lease: lease["abandoned"] is None)


def _lease_lines(leases: list[dict[str, Any]]) -> list[str]:
    """Return a line for each lease."""
    return [
        f"{lease['batch_export_id']}  {lease['dag_id']} / {lease['run_id']} / {lease['close_task_id']}  "
        f"since {lease['since'][:19]}Z until {lease['until'][:19]}Z  "
        + (f"ABANDONED: {lease['abandoned']}" if lease["abandoned"] else lease["state"])
        + (f"  owner {lease['owner']}" if lease.get("owner") not in (None, "", "airflow") else "")
        for lease in leases
    ] or ["No maintenance window holds a batch export."]


def _campaign_line(row: dict[str, Any]) -> str:
    """Return a line for a bulk invite."""
    progress = row["progress"] or {}
    counts = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in progress.get("counts", {}).items())
    left = f", {progress['left']} left" if progress.get("left") else ""
    again = f"  goes on at {progress['again_at'][:19]}Z: {progress['why']}" if progress.get("again_at") else ""
    said = (
        f"{progress['rows']} rows: {counts or 'none done'}{left}{again}" if progress else "has not said how far it is"
    )
    return f"{row['dag_id']} / {row['run_id']} / {row['task_id']}  {row['state']}  {said}"


def _wait_line(row: dict[str, Any]) -> str:
    """Return a line for a sensor that waits."""
    organization = row["organization_id"] or f"of connection {row['workspace_conn_id']}"
    wanted = ", ".join(f"{name} {value}" for name, value in row["waits_for"].items())
    return (
        f"organization {organization}  {row['sensor']} {wanted[:200]}  since {row['since']}  "
        f"{row['dag_id']} / {row['run_id']} / {row['task_id']}"
    )


def _dashboard_line(row: dict[str, Any]) -> str:
    """Return a line for a dashboard that is remembered."""
    which = row["dashboard_id"] or "not known whether it exists"
    return f"{which}  {row.get('name')}  project {row.get('project_id')}  Variable {row['variable_key']}"


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
    with _sentences(), WorkspaceHook(conn_id) as hook:
        yield hook


@contextmanager
def _sentences() -> Iterator[None]:
    """End the command with the message of an error, and not with a traceback."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (AirflowNotFoundException, WorkspaceError) as error:
        raise SystemExit(str(error)) from None
    except SQLAlchemyError as error:
        found = str(getattr(error, "orig", error))
        raise SystemExit(f"Run `airflow db check`: Airflow's database cannot be read: {found}") from None


def _tell(*lines: str) -> None:
    """Write to the terminal."""
    sys.stdout.write("\n".join(lines) + "\n")
