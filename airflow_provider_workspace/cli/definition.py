"""
The definition of ``airflow workspace``.

Every ``airflow`` command imports this module, so it imports nothing else of this package. The commands are in
:mod:`airflow_provider_workspace.cli.commands`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow.cli.cli_config import CLICommand


def get_workspace_commands() -> list[CLICommand]:
    """Return the commands; Airflow's command line calls this."""
    from airflow.cli.cli_config import ActionCommand, Arg, GroupCommand, lazy_load_command

    conn_id = Arg(("-c", "--conn-id"), default="workspace_default", help="Connection to the service")
    organization_id = Arg(("--organization-id",), help="Organization; by default that of the connection")
    output = Arg(("-o", "--output"), choices=("table", "json"), default="table", help="Output format")
    protected = Arg(
        ("--protected",),
        action="append",
        default=[],
        metavar="EMAIL",
        help="Address of a member who is never changed or removed, by a roster or the sweep; may be repeated",
    )
    evidence = Arg(
        ("--evidence",),
        metavar="DIR",
        help="Folder or URL of an object store that gets a file for each temporary access that ended",
    )
    schema = Arg(
        ("--schema",),
        metavar="FILE_OR_URL",
        help="OpenAPI document of the service (JSON or YAML) to compare the operations with",
    )
    operation = Arg(
        ("--operation",),
        nargs="+",
        default=(),
        metavar="CLASS",
        help="With --schema: operations of your own, such as my_package.endpoints.ListBatchExports",
    )
    files = Arg(
        ("files",),
        nargs="+",
        metavar="FILE",
        help="Organization file (.yaml) or roster of the members (.csv, .json, .jsonl)",
    )
    owner_level = Arg(
        ("--owner-level",),
        help="With a roster: members with this level (a number or a name) or above are never changed or removed; "
        "by default owner",
    )
    max_removals = Arg(
        ("--max-removals",), metavar="LIMIT", help="With a roster: as the argument of the member sync, such as 25"
    )
    columns = Arg(
        ("--columns",),
        metavar="JSON",
        help="With a roster: the columns argument of the member sync as JSON, such as "
        """'{"Work mail": "email", "*": null}', or a list of fields by position""",
    )
    where = Arg(
        ("--where",),
        metavar="JSON",
        help="""With a roster: the where argument as JSON, such as '{"Status": "active"}'""",
    )
    rows = Arg(
        ("--rows",), metavar="PATH", help="With a roster: where the list of rows is in JSON, such as 'Resources'"
    )
    skip_rows = Arg(
        ("--skip-rows",), type=int, default=0, metavar="N", help="With a roster: lines above its header to skip"
    )
    levels = Arg(
        ("--levels",),
        metavar="JSON",
        help="""With a roster: levels by their texts as JSON, such as '{"Editor": "member", "*": null}'""",
    )
    no_value = Arg(
        ("--no-value",),
        action="append",
        default=[],
        metavar="TEXT",
        help="With a roster: a text that is no value, such as '0000-00-00'; repeat it for others",
    )
    leavers = Arg(("--leavers",), action="store_true", help="Rosters are of people who leave; nobody else is changed")
    at = Arg(("--at",), metavar="DATE", help="Show the plan of that day or time, which decides what access has ended")
    plan_output = Arg(("-o", "--output"), choices=("table", "json", "markdown"), default="table", help="Output format")
    organization_of_person = Arg(("--organization-id",), help="The organization, if the person is noted in several")
    end = Arg(("--end",), metavar="EMAIL", help="End the temporary access of this person now, as the sweep does")
    dry_run_of_end = Arg(
        ("--dry-run",), action="store_true", help="With --end: send and write nothing; print what would be ended"
    )
    lift = Arg(("--lift",), metavar="EMAIL", help="Lift what was decided about this person: it does not count any more")
    reason = Arg(
        ("--reason",), metavar="TEXT", help="With --lift: why; the note of the review and the next one have it"
    )
    dry_run = Arg(("--dry-run",), action="store_true", help="Send and write nothing; print what would be ended")
    kinds = Arg(
        ("--kinds",),
        nargs="+",
        choices=("windows", "grants"),
        default=("windows", "grants"),
        help="What to end; both by default",
    )
    export_id = Arg(("export_id",), help="Batch export (UUID)")
    port = Arg(("--port",), default="8765", help="Port; 0 picks a free one")
    profile = Arg(("--profile",), default="live", help="live or strict")
    run = lazy_load_command("airflow_provider_workspace.cli.commands.run")

    def command(name: str, text: str, *args: Arg) -> ActionCommand:
        return ActionCommand(name=name, help=text, func=partial(run, name), args=args)

    ping = command(
        "ping",
        "Test the API key; with --schema, exit status 2: an operation will break, 1: error",
        *(conn_id, schema, operation, output),
    )
    whoami = command("whoami", "Show the scopes of the API key that reads can confirm", conn_id)
    plan = command(
        "plan",
        "Compare with files, read-only; exit status 0: equal, 2: may differ, 1: error",
        *(files, conn_id, organization_id, protected, owner_level, max_removals, columns, where),
        *(rows, skip_rows, levels, no_value, leavers, at),
        plan_output,
    )
    import_ = command("import", "Print an organization file that describes an organization", conn_id, organization_id)
    windows = command("windows", "List maintenance windows and the last sweep", output)
    grants = command(
        "grants",
        "List temporary access, or end it early; exit status 2: some is overdue, 1: error",
        *(end, organization_of_person, dry_run_of_end, protected, evidence, output),
    )
    decisions = command(
        "decisions",
        "List whom access reviews have lowered or removed, which other features do not undo",
        *(lift, reason, organization_of_person, output),
    )
    sweep = command(
        "sweep",
        "Resume the exports of abandoned windows, and end temporary access that is over",
        *(dry_run, kinds, protected, evidence, output),
    )
    resume = command(
        "resume",
        "Resume one batch export, unless a maintenance window holds it",
        *(export_id, conn_id, organization_id),
    )
    sandbox = command("sandbox", "Start a local workspace service for tests and trials", port, profile)
    subcommands = [ping, whoami, plan, import_, windows, grants, decisions, sweep, resume, sandbox]
    return [GroupCommand(name="workspace", help="The workspace administration service", subcommands=subcommands)]
