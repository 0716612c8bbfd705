"""The commands about who has access: temporary access, decisions of reviews; and the sweep, which ends it, too."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.cli.console import errors_without_traceback, find_connections_in_database, print_lines
from airflow_provider_workspace.errors import printable
from airflow_provider_workspace.version_compat import COMMAND

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow_provider_workspace.access.grants.notes import Grant, GrantRegistry
    from airflow_provider_workspace.access.reviews.notes import ReviewRegistry
    from airflow_provider_workspace.access.rules.entitlements import ReviewDecision
    from airflow_provider_workspace.notes.leases import LeaseRegistry


def grants(args: Namespace) -> None:
    """
    List temporary access, or end that of a person early.

    Exit with status 2 if some is overdue, and 1 if a Variable is unreadable, or access could not be ended.
    """
    from airflow_provider_workspace.access.grants.notes import GRANT_PREFIX, GrantRegistry
    from airflow_provider_workspace.notes.database_store import DatabaseStore
    from airflow_provider_workspace.notes.note import utc_now

    find_connections_in_database()
    registry = GrantRegistry(DatabaseStore(GRANT_PREFIX))
    if args.end:
        with errors_without_traceback():
            _end_early(registry, args)
        return
    _refuse(args, ("organization_id", "dry_run", "protected", "evidence"), "access that ends early. Add --end")
    with errors_without_traceback():
        noted = registry.all()
    now = utc_now()
    found: list[dict[str, Any]] = []
    lines = [registry.describe_unreadable(key, why) for key, why in registry.unreadable.items()]
    for grant in noted:
        is_overdue = grant.is_over(now)
        found.append({**grant.to_dict(), "then": grant.row["then"], "overdue": is_overdue})
        lines.append(_grant_line(grant, is_overdue=is_overdue))
    if args.output == "json":
        print_lines(json.dumps({"grants": found, "unreadable": registry.unreadable}, indent=2))
    else:
        print_lines(*map(printable, lines or ["No active grants."]))
    if registry.unreadable:
        raise SystemExit(1)
    if any(one["overdue"] for one in found):
        raise SystemExit(2)


def _refuse(args: Namespace, options: Iterable[str], needed_for: str) -> None:
    """Refuse options that mean nothing for what is asked."""
    for option in options:
        if getattr(args, option):
            raise SystemExit(f"--{option.replace('_', '-')} is for {needed_for}")


def _grant_line(grant: Grant, *, is_overdue: bool) -> str:
    from airflow_provider_workspace.api.timestamps import iso

    since = iso(grant.since, "seconds")
    until = iso(grant.until, "seconds")
    late = "OVERDUE  " if is_overdue else ""
    times = f"since {since} until {until}, then {grant.row['then']}"
    return f"{late}{grant.user_email}  level {grant.level} {times}  {grant.request}"


def _end_early(registry: GrantRegistry, args: Namespace) -> None:
    """End the temporary access of a person."""
    from airflow_provider_workspace.access.grants.end_grants import EarlyEnd, end_early
    from airflow_provider_workspace.access.grants.evidence import GrantEvidence
    from airflow_provider_workspace.access.reviews.notes import DECISIONS_PREFIX, ReviewRegistry
    from airflow_provider_workspace.notes.database_store import DatabaseStore

    user = _user_of("grants")
    wish = EarlyEnd(args.end, user, args.organization_id)
    evidence = GrantEvidence(_absolute(args.evidence), user) if args.evidence else None
    reviews = ReviewRegistry(DatabaseStore(DECISIONS_PREFIX))
    ended = end_early(registry, reviews, wish, args.protected, dry_run=args.dry_run, evidence=evidence)
    verb = "Would end" if args.dry_run else "Ended"
    if args.output == "json":
        print_lines(json.dumps(ended.to_dict(), indent=2))
    else:
        lines = [f"{verb}: {end.line}" for end in ended.ended]
        print_lines(*map(printable, lines))
    if ended.error:
        raise ended.error


def decisions(args: Namespace) -> None:
    """List what access reviews decided about people whom they lowered or removed, or lift what they did about one."""
    from airflow_provider_workspace.access.reviews.notes import DECISIONS_PREFIX, ReviewRegistry
    from airflow_provider_workspace.notes.database_store import DatabaseStore
    from airflow_provider_workspace.notes.note import utc_now

    find_connections_in_database()
    registry = ReviewRegistry(DatabaseStore(DECISIONS_PREFIX))
    now = utc_now().timestamp()
    if args.lift:
        with errors_without_traceback():
            _lift(registry, args)
        return
    _refuse(args, ("organization_id", "reason"), "a decision that is lifted. Add --lift")
    with errors_without_traceback():
        reviews = registry.all()
    if args.output == "json":
        found = [{**review.to_dict(), "expired": review.until < now} for review in reviews]
        print_lines(json.dumps({"reviews": found, "unreadable": registry.unreadable}, indent=2))
    else:
        lines = [registry.describe_unreadable(key, why) for key, why in registry.unreadable.items()]
        for review in reviews:
            lines += [_decision_line(decision, now) for decision in review.decisions]
        print_lines(*map(printable, lines or ["No access review has lowered or removed anybody."]))
    if registry.unreadable:
        raise SystemExit(1)


def _decision_line(decision: ReviewDecision, now: float) -> str:
    from airflow_provider_workspace.api.levels import describe_level
    from airflow_provider_workspace.api.timestamps import iso

    most = "no access" if decision.level is None else f"at most {describe_level(decision.level)}"
    late = "EXPIRED  " if now > decision.until else ""
    until = iso(decision.until, "seconds")
    counts = f"{late}{decision.who}  {most} until {until}  {decision}"
    return f"LIFTED  {counts}, {decision.lifted}" if decision.lifted else counts


def _lift(registry: ReviewRegistry, args: Namespace) -> None:
    """Lift what reviews decided about a person."""
    from airflow_provider_workspace.access.reviews.notes import lift_of

    lift = lift_of(_user_of("decisions"), args.reason or "")
    decided = registry.decisions_about(args.lift, args.organization_id)
    lifted = registry.lift(decided, lift)
    if args.output == "json":
        rows = [decision.lifted_row for decision in lifted]
        print_lines(json.dumps({"lifted": rows}, indent=2))
    else:
        lines = [f"Lifted: {decision.lifting}" for decision in lifted]
        print_lines(*map(printable, lines))


def sweep(args: Namespace) -> None:
    """End what is due, as the Dag of the sweep does; exit with status 1 if something is left or has failed."""
    from airflow_provider_workspace.access.grants.notes import GRANT_PREFIX, GrantRegistry
    from airflow_provider_workspace.access.grants.overdue_grants import OverdueGrants
    from airflow_provider_workspace.access.reviews.notes import DECISIONS_PREFIX, ReviewRegistry
    from airflow_provider_workspace.notes.database_store import DatabaseStore, LeaseDatabase
    from airflow_provider_workspace.notes.due_notes import Due, end_all, failure_of, reports_of
    from airflow_provider_workspace.notes.leases import LeaseRegistry
    from airflow_provider_workspace.windows.sweep import AbandonedWindows

    find_connections_in_database()
    leases = LeaseRegistry(LeaseDatabase())
    with errors_without_traceback():
        _import_as_tasks_do(leases)
    due: list[Due] = []
    if "windows" in args.kinds:
        swept_by = f"{COMMAND} sweep {time.time()}"
        due.append(AbandonedWindows(leases, swept_by, at_once=True))
    if "grants" in args.kinds:
        reviews = ReviewRegistry(DatabaseStore(DECISIONS_PREFIX))
        registry = GrantRegistry(DatabaseStore(GRANT_PREFIX))
        ended_by = _user_of("sweep") if args.evidence else ""
        evidence = _absolute(args.evidence)
        overdue = OverdueGrants(registry, reviews, args.protected, evidence=evidence, ended_by=ended_by)
        due.append(overdue)
    ends = end_all(due, dry_run=args.dry_run)
    failure = failure_of(ends)
    if args.output == "json":
        print_lines(json.dumps(reports_of(ends, dry_run=args.dry_run), indent=2))
    else:
        lines = [line for ended in ends for line in ended.lines]
        if not lines and failure is None:
            lines = ["Nothing is due."]
        print_lines(*map(printable, lines))
    if failure:
        raise SystemExit(str(failure))
    if any(ended.is_left for ended in ends):
        raise SystemExit(1)


def _import_as_tasks_do(registry: LeaseRegistry) -> None:
    """Let the modules that the ``state_of`` of a lease names be found beside the Dags."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager

    if any(lease.state_of for lease in registry.all(skip_failed=True)):
        bundles: Any = DagBundlesManager()  # type: ignore[no-untyped-call]
        for bundle in bundles.get_all_dag_bundles():
            try:
                bundle.initialize()
                sys.path.append(str(bundle.path))
            except Exception as error:  # noqa: BLE001, PERF203 - of somebody else's bundle: the exports must resume
                print(f"The Dag bundle '{bundle.name}' cannot be read: {error}", file=sys.stderr)  # noqa: T201


def _user_of(command: str) -> str:
    """Return who runs a command."""
    from getpass import getuser

    return f"{getuser()} ({COMMAND} {command})"


def _absolute(folder: str | None) -> str | None:
    """Return a folder of this machine with its whole path, and a URL as it is."""
    if folder is None or "://" in folder:
        return folder
    return str(Path(folder).absolute())
