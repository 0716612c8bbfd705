"""The commands about whole organizations: plan them, and write the file of one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.cli.console import errors_without_traceback, open_hook, print_lines, write
from airflow_provider_workspace.errors import WorkspaceInputError, printable, type_name

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow_provider_workspace.access.notes import AccessNotes
    from airflow_provider_workspace.cli.plan_output import Planned
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.notes.database_store import LeaseDatabase

# Options of `plan` for rosters, and where an organization file says the same.
OPTIONS_OF_ROSTERS = {
    "--protected": "an organization file has 'protected' under 'members'",
    "--owner-level": "an organization file has 'owner_level' under 'members'",
    "--max-removals": "an organization file has 'max_removals' at its top",
    "--columns": "an organization file has 'columns' under 'members'",
    "--where": "an organization file has 'where' under 'members'",
    "--rows": "an organization file has 'rows' under 'members'",
    "--skip-rows": "an organization file has 'skip_rows' under 'members'",
    "--levels": "an organization file has 'levels' under 'members'",
    "--no-value": "an organization file has 'no_value' under 'members'",
    "--leavers": "an organization file removes whomever it does not name, with 'complete: [members]' at its top",
}
# Options of `plan` that are JSON, and an example of each.
JSON_OPTIONS = {
    "columns": '{"Work mail": "email", "*": null}',
    "where": '{"Status": "active"}',
    "levels": '{"Editor": "member", "*": null}',
}


def plan(args: Namespace) -> None:
    """Compare organizations with files or rosters; exit with status 2 if one may differ, and 1 after an error."""
    from airflow_provider_workspace.cli.plan_output import FORMATS

    plans: list[Planned] = []
    errors: dict[str, str] = {}
    with open_hook(args.conn_id) as hook:
        for file in dict.fromkeys(args.files):
            try:
                with errors_without_traceback():
                    for planned in _plan_file(hook, file, args):
                        plans.append(planned)  # noqa: PERF402 - keeps those before an error
                    for one in (one for one in plans if one.file == file):
                        one.plan.check_losses(one.wanted.max_removals, is_asked=True)
            except SystemExit as error:  # noqa: PERF203 - the other files are planned
                errors[file] = str(error)
    for file, message in errors.items():
        # The name first: a CI may take a line that begins otherwise for a command.
        for line in message.split("\n"):
            print(printable(f"{file}: {line}"), file=sys.stderr)  # noqa: T201
    print_lines(*FORMATS[args.output](plans, errors))
    has_changes = any(one.plan.differences or one.plan.counts["set"] for one in plans)
    if errors or has_changes:
        raise SystemExit(1 if errors else 2)


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
        for option, example in JSON_OPTIONS.items():
            text = getattr(args, option)
            if text is not None:
                members[option] = _read_json_option(f"--{option}", text, example)
        members |= {"rows": args.rows, "skip_rows": args.skip_rows, "no_value": args.no_value}
        content = {"members": members, "complete": ["members"]}
        content |= {"max_removals": args.max_removals} if args.max_removals else {}
    else:
        _refuse_options_of_rosters(args)
    organizations = load_organizations(content, file_at, _note_template)
    if args.organization_id and len(organizations) > 1:
        raise WorkspaceInputError(f"{file} describes {len(organizations)} organizations. Leave out --organization-id")
    names: dict[str, str] = {}
    for name, wanted in organizations.items():
        organization_id = hook.organization_or_default(args.organization_id or wanted.organization_id)
        other = names.setdefault(organization_id, name)
        if other != name:
            raise WorkspaceInputError(f"'{other}' and '{name}' are both {organization_id}. Set organization_id of each")
        store = _readable_store()
        access = _access_notes(hook, organization_id) if store else None
        if is_roster and args.leavers and wanted.members:
            columns, where = wanted.members.columns, wanted.members.where
            row_format = wanted.members.row_format
            rows = read_roster(
                None, file_at(file), columns=columns, where=where, row_format=row_format, now=now, is_leaving=True
            )
            noted = access.read() if access else NotedAccess(are_known=False)
            guards = wanted.members.guards
            planned = plan_members(hook.client, organization_id, rows, guards, now=now, leaving=True, noted=noted)
        else:
            reader = AirflowOrganizationReader(hook.client, organization_id, store=store, access=access)
            reader.now = now
            planned = plan_organization(wanted, reader)
        yield Planned(file, name or organization_id, wanted, planned)


def _read_json_option(option: str, text: str, example: str) -> Any:
    """Read the mapping or list that an option holds as JSON."""
    from airflow_provider_workspace.procedures.roster_tables import read_json

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
    return file.lower().endswith((".yaml", ".yml"))


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
    from airflow_provider_workspace.access.members.earlier_invites import INVITED_PREFIX, InvitedRegistry
    from airflow_provider_workspace.access.notes import AccessNotes
    from airflow_provider_workspace.access.reviews.notes import DECISIONS_PREFIX, ReviewRegistry
    from airflow_provider_workspace.notes.database_store import DatabaseStore

    grants = GrantRegistry(DatabaseStore(GRANT_PREFIX))
    reviews = ReviewRegistry(DatabaseStore(DECISIONS_PREFIX))
    invited = InvitedRegistry(DatabaseStore(INVITED_PREFIX))
    return AccessNotes(
        service=hook.client.settings.base_url,
        organization_id=organization_id,
        grants=grants,
        reviews=reviews,
        invited=invited,
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

    with open_hook(args.conn_id) as hook:
        organization_id = hook.organization_or_default(args.organization_id)
        dashboards = remembered_dashboards(organization_id, hook.client.settings, DatabaseStore(DASHBOARD_PREFIX))
        text = import_organization(hook.client, organization_id, dashboards)
    write(text)
