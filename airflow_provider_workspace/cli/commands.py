"""The commands of ``airflow workspace``, and of ``python -m airflow_provider_workspace``."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from airflow_provider_workspace.errors import WorkspaceError, WorkspaceInputError, printable, type_name, with_problem
from airflow_provider_workspace.version_compat import COMMAND, AirflowNotFoundException

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow_provider_workspace.access.grants.notes import Grant, GrantRegistry
    from airflow_provider_workspace.access.notes import AccessNotes
    from airflow_provider_workspace.access.reviews.notes import ReviewRegistry
    from airflow_provider_workspace.access.rules.entitlements import ReviewDecision
    from airflow_provider_workspace.api.contract import Report
    from airflow_provider_workspace.cli.plan_output import Planned
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.notes.database_store import LeaseDatabase
    from airflow_provider_workspace.notes.leases import LeaseRegistry

# Options of `plan` for rosters, and where an organization file says the same.
OPTIONS_OF_ROSTERS = {
    "--protected": "an organization file has 'protected' under 'members'",
    "--owner-level": "an organization file has 'owner_level' under 'members'",
    "--max-removals": "an organization file has 'max_removals' at its top",
    "--columns": "an organization file has 'columns' under 'members'",
    "--where": "an organization file has 'where' under 'members'",
    "--leavers": "an organization file removes whomever it does not name, with 'complete: [members]' at its top",
}
# Where a command prints; see run().
_output: TextIO = sys.stdout


def run(name: str, args: Namespace) -> None:
    """
    Run a command: to standard output goes what it prints, and nothing else.

    Everything else, such as Airflow's log, goes to standard error, whoever holds standard output.

    :param name: a key of :data:`COMMANDS`
    """
    global _output
    sys.stdout.flush()
    # Files are UTF-8, as the commands read them.
    encoding = sys.stdout.encoding if os.isatty(1) else "utf-8"
    with os.fdopen(os.dup(1), "w", encoding=encoding, errors="backslashreplace") as _output:
        os.dup2(2, 1)
        try:
            COMMANDS[name](args)
        finally:
            sys.stdout.flush()
            os.dup2(_output.fileno(), 1)


def ping(args: Namespace) -> None:
    """
    Test the connection, and list moved and deprecated operations.

    With a schema, exit with status 2 if an operation will break, and 1 after an error.
    """
    from airflow_provider_workspace.hooks.connection_test import moves

    if args.operation and not args.schema:
        raise SystemExit("--operation names what is compared with a schema. Add --schema")
    with _open_hook(args.conn_id) as hook:
        began = time.perf_counter()
        accepted = _test_connection(hook)[0].rstrip(".")
        milliseconds = (time.perf_counter() - began) * 1000
        line = f"{accepted} ({milliseconds:.0f} ms for a few reads)."
        moved = moves(hook.client)
        report = _contract_report(hook, args) if args.schema else None
    if args.output == "json":
        contract = report.to_dict() if report else {}
        _print(json.dumps({"connection": line, "moves": moved, **contract}, indent=2))
    else:
        _print(line, *moved)
        if report:
            _print(*(finding.line() for finding in report.findings), report.summary())
    if report and report.breaks:
        raise SystemExit(2)


def _contract_report(hook: WorkspaceHook, args: Namespace) -> Report:
    """Compare the operations with the document of ``--schema``."""
    from airflow_provider_workspace.operators.contract import check_contract

    return check_contract(hook, args.schema, args.operation, argument="--operation")


def whoami(args: Namespace) -> None:
    """Show the scopes of the API key; the interface does not tell who owns it."""
    with _open_hook(args.conn_id) as hook:
        _print(*_test_connection(hook))
        project_id = hook.client.settings.project_id
        if project_id is not None:
            level = hook.get_project(project_id=project_id).effective_membership_level
            _print(f"Level of the key's owner in project {project_id}: {level}.")


def plan(args: Namespace) -> None:
    """
    Compare organizations with files or rosters; exit with status 2 if one may differ, and 1 after an error.

    Files that say different things about one organization are an error too.
    """
    from airflow_provider_workspace.cli.plan_output import FORMATS

    plans: list[Planned] = []
    errors: dict[str, str] = {}
    with _open_hook(args.conn_id) as hook:
        for file in dict.fromkeys(args.files):
            try:
                with _errors_without_traceback():
                    for planned in _plan_file(hook, file, args):
                        plans.append(planned)  # noqa: PERF402 - keeps those before an error
                    for one in (one for one in plans if one.file == file):
                        one.plan.check_losses(one.wanted.max_removals)
            except SystemExit as error:  # noqa: PERF203 - the other files are planned
                errors[file] = str(error)
    errors |= _contradictions(plans)
    for file, message in errors.items():
        # The name first: a CI may take a line that begins otherwise for a command.
        print(*(printable(f"{file}: {line}") for line in message.split("\n")), sep="\n", file=sys.stderr)  # noqa: T201
    _print(*FORMATS[args.output](plans, errors))
    if errors or any(one.plan.differences or one.plan.counts["set"] for one in plans):
        raise SystemExit(1 if errors else 2)


def _contradictions(plans: Sequence[Planned]) -> dict[str, str]:
    """Return what is said differently of one organization, by the names of the two files."""
    from airflow_provider_workspace.files.storage import file_at
    from airflow_provider_workspace.organization.contradictions import FileOfOrganization, describe_contradictions

    errors: dict[str, str] = {}
    for one, other in combinations(plans, 2):
        if one.plan.planned_for != other.plan.planned_for:
            continue
        is_same_file = one.file == other.file
        first, second = [
            FileOfOrganization(
                f"{planned.organization} in {planned.file}" if is_same_file else planned.file,
                planned.wanted,
                planned.is_leavers,
            )
            for planned in (one, other)
        ]
        message = describe_contradictions(first, second, file_at, one.now)
        if message:
            errors[f"{first.name} and {second.name}"] = with_problem(message, "files-contradict")
    return errors


def _plan_file(hook: WorkspaceHook, file: str, args: Namespace) -> Iterator[Planned]:
    """Plan each organization of a file, or the members of a roster."""
    from airflow_provider_workspace.access.members.plan import plan_members
    from airflow_provider_workspace.access.rules.entitlements import NotedAccess
    from airflow_provider_workspace.api.timestamps import moment_of
    from airflow_provider_workspace.cli.plan_output import Planned
    from airflow_provider_workspace.files.storage import file_at
    from airflow_provider_workspace.notes.note import utc_now
    from airflow_provider_workspace.organization.file import load_organizations
    from airflow_provider_workspace.organization.plan import plan_organization
    from airflow_provider_workspace.organization.reader import AirflowOrganizationReader
    from airflow_provider_workspace.procedures.roster_files import read_roster
    from airflow_provider_workspace.procedures.until import parse_until

    content: Any = file
    try:
        now = moment_of(parse_until(args.at)) if args.at else utc_now()  # of a day its last moment
    except ValueError as error:
        raise WorkspaceInputError(f"Correct --at: {error}") from None
    is_roster = not _is_organization_file(file)
    if is_roster:
        members = {"roster": file, "protected": args.protected, "owner_level": args.owner_level or "owner"}
        columns = _read_json_option("--columns", args.columns, '{"Work mail": "email", "*": null}')
        members |= {} if columns is None else {"columns": columns}
        selected = _read_json_option("--where", args.where, '{"Status": "active"}')
        members |= {} if selected is None else {"where": selected}
        content = {"members": members, "complete": ["members"]}
        content |= {"max_removals": args.max_removals} if args.max_removals else {}
    else:
        _refuse_options_of_rosters(args)
    organizations = load_organizations(content, file_at, _note_template)
    if args.organization_id and len(organizations) > 1:
        raise WorkspaceInputError(f"{file} describes {len(organizations)} organizations. Leave out --organization-id")
    for name, wanted in organizations.items():
        organization_id = hook.organization_or_default(args.organization_id or wanted.organization_id)
        store = _readable_store()
        access = _access_notes(hook, organization_id) if store else None
        is_leavers = is_roster and args.leavers
        if is_leavers and wanted.members:
            columns, where = wanted.members.columns, wanted.members.where
            rows = read_roster(None, file_at(file), columns=columns, where=where, now=now)
            noted = access.read() if access else NotedAccess(are_known=False)
            guards = wanted.members.guards
            planned = plan_members(hook.client, organization_id, rows, guards, now=now, leaving=True, noted=noted)
        else:
            reader = AirflowOrganizationReader(hook.client, organization_id, store, access)
            reader.now = now
            planned = plan_organization(wanted, reader)
        yield Planned(file, name or organization_id, wanted, planned, now, is_leavers=is_leavers)


def _read_json_option(option: str, text: str | None, example: str) -> Any:
    """Read the mapping or list that an option holds as JSON; ``None`` if it is not given."""
    from airflow_provider_workspace.procedures.roster_tables import read_json

    if text is None:
        return None
    try:
        value = read_json(text)
    except ValueError as error:
        raise WorkspaceInputError(f"{option} is not JSON ({error}); write it as in '{example}'") from None
    is_columns_by_position = option == "--columns" and isinstance(value, list)
    if not isinstance(value, dict) and not is_columns_by_position:
        raise WorkspaceInputError(f"{option} is {type_name(value)}; expected JSON such as '{example}'")
    return value


def _refuse_options_of_rosters(args: Namespace) -> None:
    """Refuse what an organization file says itself."""
    has_roster = not all(map(_is_organization_file, args.files))
    for option, place in OPTIONS_OF_ROSTERS.items():
        if option == "--leavers" and has_roster:  # it says what the rosters are, and promises nothing about others
            continue
        if getattr(args, option.removeprefix("--").replace("-", "_")):
            raise WorkspaceInputError(f"{option} is for rosters: {place}. Leave it out")


def _is_organization_file(file: str) -> bool:
    return file.endswith((".yaml", ".yml"))


@cache
def _readable_store() -> LeaseDatabase | None:
    """Return the store in Airflow's database; ``None``, with a note, if it cannot be read."""
    from sqlalchemy.exc import SQLAlchemyError

    from airflow_provider_workspace.notes.database_store import LeaseDatabase

    store = LeaseDatabase()
    try:
        store.list_keys()
    except SQLAlchemyError as error:
        found = getattr(error, "orig", error)
        print(f"What only Airflow knows is left out: its database cannot be read ({found}).", file=sys.stderr)  # noqa: T201
        return None
    return store


def _access_notes(hook: WorkspaceHook, organization_id: str) -> AccessNotes:
    """Return the notes about the people of an organization in Airflow's database."""
    from airflow_provider_workspace.access.grants.notes import GRANT_PREFIX, GrantRegistry
    from airflow_provider_workspace.access.notes import AccessNotes
    from airflow_provider_workspace.access.reviews.notes import DECISIONS_PREFIX, ReviewRegistry
    from airflow_provider_workspace.notes.database_store import DatabaseStore

    return AccessNotes(
        service=hook.client.settings.base_url,
        organization_id=organization_id,
        grants=GrantRegistry(DatabaseStore(GRANT_PREFIX)),
        reviews=ReviewRegistry(DatabaseStore(DECISIONS_PREFIX)),
    )


def _note_template(text: str) -> str:
    """Say that a file is taken as it is."""
    from airflow_provider_workspace.api.templates import template_line

    line = template_line(text)
    if line:
        print(  # noqa: T201
            f"Line {line} looks like a Jinja template. It is taken as it is: only a task with render_file=True renders "
            "the file.",
            file=sys.stderr,
        )
    return text


def import_(args: Namespace) -> None:
    """Print an organization file that describes an organization."""
    from airflow_provider_workspace.notes.dashboards import DASHBOARD_PREFIX, remembered_dashboards
    from airflow_provider_workspace.notes.database_store import DatabaseStore
    from airflow_provider_workspace.organization.importing import import_organization

    with _open_hook(args.conn_id) as hook:
        organization_id = hook.organization_or_default(args.organization_id)
        dashboards = remembered_dashboards(organization_id, hook.client.settings, DatabaseStore(DASHBOARD_PREFIX))
        text = import_organization(hook.client, organization_id, dashboards)
    _write(text)


def windows(args: Namespace) -> None:
    """List the leases of maintenance windows and the last sweep."""
    from airflow_provider_workspace.api.timestamps import iso
    from airflow_provider_workspace.notes.database_store import LeaseDatabase
    from airflow_provider_workspace.notes.leases import LeaseRegistry

    _find_connections_in_database()
    registry = LeaseRegistry(LeaseDatabase())
    with _errors_without_traceback():
        leases = _sorted_leases(registry)
        last = registry.last_sweep().at
    if args.output == "json":
        found = {"leases": leases, "unreadable": registry.unreadable}
        _print(json.dumps({**found, "last_sweep": None if last is None else iso(last)}, indent=2))
        return
    unreadable = [registry.describe_unreadable(key, why) for key, why in registry.unreadable.items()]
    age = "never" if last is None else f"{iso(last, 'seconds')}, {(time.time() - last) / 60:.0f} min ago"
    _print(*map(printable, [*unreadable, *_lease_lines(leases), f"Last sweep: {age}."]))


def grants(args: Namespace) -> None:
    """
    List temporary access, or end that of a person early.

    Exit with status 2 if some is overdue, and 1 if a Variable is unreadable, or access could not be ended.
    """
    from airflow_provider_workspace.access.grants.notes import GRANT_PREFIX, GrantRegistry
    from airflow_provider_workspace.notes.database_store import DatabaseStore
    from airflow_provider_workspace.notes.note import utc_now

    _find_connections_in_database()
    registry = GrantRegistry(DatabaseStore(GRANT_PREFIX))
    if args.end:
        with _errors_without_traceback():
            _end_early(registry, args)
        return
    for option in ("organization_id", "dry_run", "protected", "evidence"):
        if getattr(args, option):
            raise SystemExit(f"--{option.replace('_', '-')} is for access that ends early. Add --end")
    with _errors_without_traceback():
        noted = registry.all()
    now = utc_now()
    found = [{**grant.to_dict(), "then": grant.row["then"], "overdue": grant.is_over(now)} for grant in noted]
    if args.output == "json":
        _print(json.dumps({"grants": found, "unreadable": registry.unreadable}, indent=2))
    else:
        unreadable = [registry.describe_unreadable(key, why) for key, why in registry.unreadable.items()]
        lines = unreadable + [_grant_line(grant, is_overdue=grant.is_over(now)) for grant in noted]
        _print(*map(printable, lines or ["No active grants."]))
    if registry.unreadable:
        raise SystemExit(1)
    if any(one["overdue"] for one in found):
        raise SystemExit(2)


def sweep(args: Namespace) -> None:
    """End what is due, as the Dag of the sweep does; exit with status 1 if something is left or has failed."""
    from airflow_provider_workspace.access.grants.notes import GRANT_PREFIX, GrantRegistry
    from airflow_provider_workspace.access.grants.overdue_grants import OverdueGrants
    from airflow_provider_workspace.access.reviews.notes import DECISIONS_PREFIX, ReviewRegistry
    from airflow_provider_workspace.notes.database_store import DatabaseStore, LeaseDatabase
    from airflow_provider_workspace.notes.due_notes import Due, end_all, failure_of, reports_of
    from airflow_provider_workspace.notes.leases import LeaseRegistry
    from airflow_provider_workspace.windows.sweep import AbandonedWindows

    _find_connections_in_database()
    leases = LeaseRegistry(LeaseDatabase())
    with _errors_without_traceback():
        _import_as_tasks_do(leases)
    due: list[Due] = []
    if "windows" in args.kinds:
        # The note of the sweep says that a Dag sweeps, so a command does not write it.
        due.append(AbandonedWindows(leases, f"{COMMAND} sweep {time.time()}", at_once=True, is_recorded=False))
    if "grants" in args.kinds:
        reviews = ReviewRegistry(DatabaseStore(DECISIONS_PREFIX))
        overdue = OverdueGrants(
            GrantRegistry(DatabaseStore(GRANT_PREFIX)),
            reviews,
            args.protected,
            evidence=_absolute(args.evidence),
            ended_by=_user_of("sweep") if args.evidence else "",
        )
        due.append(overdue)
    ends = end_all(due, dry_run=args.dry_run)
    failure = failure_of(ends)
    if args.output == "json":
        _print(json.dumps(reports_of(ends, dry_run=args.dry_run), indent=2))
    else:
        lines = [line for ended in ends for line in ended.lines]
        if not lines and failure is None:
            lines = ["Nothing is due."]
        _print(*map(printable, lines))
    if failure:
        raise SystemExit(str(failure))
    if any(ended.is_left for ended in ends):
        raise SystemExit(1)


def _grant_line(grant: Grant, *, is_overdue: bool) -> str:
    from airflow_provider_workspace.api.timestamps import iso

    since = iso(grant.since, "seconds")
    until = iso(grant.until, "seconds")
    late = "OVERDUE  " if is_overdue else ""
    times = f"since {since} until {until}, then {grant.row['then']}"
    return f"{late}{grant.user_email}  level {grant.level} {times}  {grant.request}"


def _user_of(command: str) -> str:
    """Return who runs a command."""
    from getpass import getuser

    return f"{getuser()} ({COMMAND} {command})"


def _absolute(folder: str | None) -> str | None:
    """Return a folder of this machine with its whole path, and a URL as it is."""
    if folder is None or "://" in folder:
        return folder
    return str(Path(folder).absolute())


def _end_early(registry: GrantRegistry, args: Namespace) -> None:
    """End the temporary access of a person."""
    from airflow_provider_workspace.access.grants.end_grant_early import EarlyEnd, end_early
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
        _print(json.dumps(ended.to_dict(), indent=2))
    else:
        _print(*(printable(f"{verb}: {end.line}") for end in ended.ended))
    if ended.error:
        raise ended.error


def decisions(args: Namespace) -> None:
    """List what access reviews decided about people whom they lowered or removed, or lift what they decided of one."""
    from airflow_provider_workspace.access.reviews.notes import DECISIONS_PREFIX, ReviewRegistry
    from airflow_provider_workspace.notes.database_store import DatabaseStore
    from airflow_provider_workspace.notes.note import utc_now

    _find_connections_in_database()
    registry = ReviewRegistry(DatabaseStore(DECISIONS_PREFIX))
    now = utc_now().timestamp()
    with _errors_without_traceback():
        if args.lift:
            _lift(registry, args)
            return
        reviews = registry.all()
    if args.output == "json":
        found = [{**review.to_dict(), "expired": review.until < now} for review in reviews]
        _print(json.dumps({"reviews": found, "unreadable": registry.unreadable}, indent=2))
    else:
        lines = [registry.describe_unreadable(key, why) for key, why in registry.unreadable.items()]
        for review in reviews:
            lines += [_decision_line(decision, now) for decision in review.decisions]
        _print(*map(printable, lines or ["No access review has lowered or removed anybody."]))
    if registry.unreadable:
        raise SystemExit(1)


def _decision_line(decision: ReviewDecision, now: float) -> str:
    from airflow_provider_workspace.api.levels import describe_level
    from airflow_provider_workspace.api.timestamps import iso

    person = decision.person
    who = person.email or f"user {person.user_uuid}"
    most = "no access" if decision.level is None else f"at most {describe_level(decision.level)}"
    late = "EXPIRED  " if now > decision.until else ""
    return f"{late}{who}  {most} until {iso(decision.until, 'seconds')}  {decision}"


def _lift(registry: ReviewRegistry, args: Namespace) -> None:
    """Let what reviews decided about a person not count any more."""
    from airflow_provider_workspace.api.comparison import address_key

    key = address_key(args.lift)
    lifted: list[ReviewDecision] = []
    for review in registry.all():
        if args.organization_id in (None, review.organization_id):
            lifted += [decision for decision in review.decisions if address_key(decision.person.email) == key]
    if not lifted:
        raise WorkspaceInputError(f"No decision about {args.lift}. Give an address that '{COMMAND} decisions' shows")
    for decision in lifted:
        registry.lift(decision)
        _print(printable(f"Lifted: {args.lift}: {decision}"))


def resume(args: Namespace) -> None:
    """Resume one batch export, unless a maintenance window holds it."""
    from airflow_provider_workspace.notes.database_store import LeaseDatabase
    from airflow_provider_workspace.notes.leases import LeaseRegistry, export_key
    from airflow_provider_workspace.operators.reading import read_exports

    with _open_hook(args.conn_id) as hook:
        organization_id = hook.organization_or_default(args.organization_id)
        (export_id,) = read_exports("EXPORT_ID", [args.export_id], at_least=1)
        registry = LeaseRegistry(LeaseDatabase())
        key = export_key(hook.client.settings.base_url, organization_id, export_id)
        for lease in registry.read_all(registry.keys_of(key)):
            raise SystemExit(
                f"A maintenance window holds batch export {export_id}, so nothing was sent. Run '{COMMAND} sweep', "
                "which resumes what abandoned windows hold. To resume the export in the middle of a window, delete the "
                f"Variable '{lease.key}' first: no further task of the work then begins. Window: {lease.window}."
            )
        hook.unpause_batch_export(organization_id=organization_id, batch_export_id=export_id)
    _print(f"Resumed batch export {export_id}.")


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


def sandbox(args: Namespace) -> None:
    """Replace this process with a sandbox, which this package does not import."""
    command = [sys.executable, "-m", "airflow_provider_workspace.sandbox"]
    command += ["--port", args.port, "--profile", args.profile]
    os.dup2(_output.fileno(), 1)
    os.execv(sys.executable, command)  # noqa: S606 - no shell


def _test_connection(hook: WorkspaceHook) -> list[str]:
    """Return the sentences of the connection test; end the command if it fails."""
    from airflow_provider_workspace.hooks.connection_test import check_connection

    works, lines = check_connection(hook.send, hook.client)
    if not works:
        raise SystemExit(with_problem("\n".join(lines)))
    return lines


@contextmanager
def _open_hook(conn_id: str) -> Iterator[WorkspaceHook]:
    """Open a hook; an error ends the command with its message."""
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook

    _find_connections_in_database()
    with _errors_without_traceback(), WorkspaceHook(conn_id) as hook:
        yield hook


def _find_connections_in_database() -> None:
    """Let the Task SDK find connections in the database, as in Airflow's own commands."""
    os.environ["_AIRFLOW_PROCESS_CONTEXT"] = "server"


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


@contextmanager
def _errors_without_traceback() -> Iterator[None]:
    """End the command with the message of an error."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (AirflowNotFoundException, WorkspaceError) as error:
        raise SystemExit(str(error)) from None
    except SQLAlchemyError as error:
        found = str(getattr(error, "orig", error))
        raise SystemExit(f"Airflow's database cannot be read: {found}. Run `airflow db check`") from None


def _print(*lines: str) -> None:
    """Print lines."""
    _write("".join(f"{line}\n" for line in lines))


def _write(text: str) -> None:
    """Write a text; a reader that has closed the pipe, such as ``head``, ends the command."""
    try:
        _output.write(text)
        _output.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), _output.fileno())  # for what Python writes at its end
        raise SystemExit(1) from None


COMMANDS: Mapping[str, Callable[[Namespace], None]] = {
    "ping": ping,
    "whoami": whoami,
    "plan": plan,
    "import": import_,
    "windows": windows,
    "grants": grants,
    "decisions": decisions,
    "sweep": sweep,
    "resume": resume,
    "sandbox": sandbox,
}
