"""The commands of the core: the connection, maintenance windows, the sandbox."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.cli.console import (
    errors_without_traceback,
    find_connections_in_database,
    open_hook,
    print_lines,
    release,
)
from airflow_provider_workspace.errors import printable, with_problem
from airflow_provider_workspace.version_compat import COMMAND

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow_provider_workspace.api.contract import Report
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.notes.leases import LeaseRegistry


def ping(args: Namespace) -> None:
    """
    Test the connection, and list moved and deprecated operations.

    With a schema, exit with status 2 if an operation will break, and 1 after an error.
    """
    from airflow_provider_workspace.hooks.connection_test import moves

    if args.operation and not args.schema:
        raise SystemExit("--operation names what is compared with a schema. Add --schema")
    with open_hook(args.conn_id) as hook:
        began = time.perf_counter()
        accepted = _test_connection(hook)[0].rstrip(".")
        milliseconds = (time.perf_counter() - began) * 1000
        line = f"{accepted} ({milliseconds:.0f} ms for a few reads)."
        moved = moves(hook.client)
        report = _contract_report(hook, args) if args.schema else None
    if args.output == "json":
        contract = report.to_dict() if report else {}
        print_lines(json.dumps({"connection": line, "moves": moved, **contract}, indent=2))
    else:
        print_lines(line, *moved)
        if report:
            findings = [finding.line() for finding in report.findings]
            print_lines(*findings, report.summary())
    if report and report.breaks:
        raise SystemExit(2)


def _contract_report(hook: WorkspaceHook, args: Namespace) -> Report:
    """Compare the operations with the document of ``--schema``."""
    from airflow_provider_workspace.operators.contract import check_contract

    return check_contract(hook, args.schema, args.operation, argument="--operation")


def whoami(args: Namespace) -> None:
    """Show the scopes of the API key; the interface does not tell who owns it."""
    with open_hook(args.conn_id) as hook:
        print_lines(*_test_connection(hook))
        project_id = hook.client.settings.project_id
        if project_id is not None:
            level = hook.get_project(project_id=project_id).effective_membership_level
            print_lines(f"Level of the key's owner in project {project_id}: {level}.")


def windows(args: Namespace) -> None:
    """List the leases of maintenance windows and the last sweep; exit with status 1 if a lease is unreadable."""
    from airflow_provider_workspace.api.timestamps import iso
    from airflow_provider_workspace.notes.database_store import LeaseDatabase
    from airflow_provider_workspace.notes.leases import LeaseRegistry

    find_connections_in_database()
    registry = LeaseRegistry(LeaseDatabase())
    with errors_without_traceback():
        leases = _sorted_leases(registry)
        last = registry.last_sweep().at
    if args.output == "json":
        found = {"leases": leases, "unreadable": registry.unreadable}
        print_lines(json.dumps({**found, "last_sweep": None if last is None else iso(last)}, indent=2))
    else:
        print_lines(*map(printable, _window_lines(registry, leases, last)))
    if registry.unreadable:
        raise SystemExit(1)


def _window_lines(registry: LeaseRegistry, leases: list[dict[str, Any]], last: float | None) -> list[str]:
    from airflow_provider_workspace.api.timestamps import iso

    unreadable = [registry.describe_unreadable(key, why) for key, why in registry.unreadable.items()]
    age = "never"
    if last is not None:
        minutes = (time.time() - last) / 60
        age = f"{iso(last, 'seconds')}, {minutes:.0f} min ago"
    return [*unreadable, *_lease_lines(leases), f"Last sweep: {age}."]


def _sorted_leases(registry: LeaseRegistry) -> list[dict[str, Any]]:
    """Return the leases as plain JSON, with what their windows are; those that others have to close first."""
    from airflow_provider_workspace.windows.window_state import find_states

    leases = []
    for state, held in find_states(registry, time.time):
        window = {"window": str(state), "abandoned": state.why if state.needs_sweep else None}
        leases += [{**lease.to_dict(), **window} for lease in held]
    return sorted(leases, key=lambda lease: lease["abandoned"] is None)


def _lease_lines(leases: list[dict[str, Any]]) -> list[str]:
    if not leases:
        return ["No maintenance window holds a batch export."]
    return [_lease_line(lease) for lease in leases]


def _lease_line(lease: dict[str, Any]) -> str:
    from airflow_provider_workspace.api.timestamps import to_second

    task = f"{lease['dag_id']} / {lease['run_id']} / {lease['close_task_id']}"
    times = f"since {to_second(lease['since'])} until {to_second(lease['until'])}"
    parts = [lease["batch_export_id"], task, times, lease["window"]]
    if lease["paused_before"]:
        parts.append("paused before the window")
    if lease.get("seen"):
        parts.append(f"seen {lease['seen']}")
    if lease.get("owner") not in (None, "", "airflow"):
        parts.append(f"owner {lease['owner']}")
    return "  ".join(parts)


def resume(args: Namespace) -> None:
    """Resume one batch export, unless a maintenance window holds it."""
    from airflow_provider_workspace.api.ids import canonical_uuid
    from airflow_provider_workspace.notes.database_store import LeaseDatabase
    from airflow_provider_workspace.notes.leases import LeaseRegistry, export_key

    try:
        export_id = canonical_uuid(args.export_id)
    except ValueError as error:
        raise SystemExit(f"EXPORT_ID: {error}. Nothing was sent.") from None
    with open_hook(args.conn_id) as hook:
        organization_id = hook.organization_or_default(args.organization_id)
        registry = LeaseRegistry(LeaseDatabase())
        key = export_key(hook.client.settings.base_url, organization_id, export_id)
        for lease in registry.read_all(registry.keys_of(key)):
            raise SystemExit(
                f"A maintenance window holds batch export {export_id}, so nothing was sent. Run '{COMMAND} sweep', "
                "which resumes what abandoned windows hold. To resume the export in the middle of a window, delete the "
                f"Variable '{lease.key}' first: no further task of the work then begins. Window: {lease.window}."
            )
        hook.unpause_batch_export(organization_id=organization_id, batch_export_id=export_id)
    print_lines(f"Resumed batch export {export_id}.")


def sandbox(args: Namespace) -> None:
    """Replace this process with a sandbox, which this package does not import."""
    command = [sys.executable, "-m", "airflow_provider_workspace.sandbox"]
    command += ["--port", args.port, "--profile", args.profile]
    release()
    os.execv(sys.executable, command)  # noqa: S606 - no shell


def _test_connection(hook: WorkspaceHook) -> list[str]:
    """Return the sentences of the connection test; end the command if it fails."""
    from airflow_provider_workspace.hooks.connection_test import check_connection

    works, lines = check_connection(hook.send, hook.client)
    if not works:
        raise SystemExit(with_problem("\n".join(lines)))
    return lines
