"""
What ``airflow workspace`` takes. Every ``airflow`` command reads this, so it imports nothing of its own.

The commands themselves are in :mod:`airflow_provider_workspace.cli.commands`, which is imported when one runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow.cli.cli_config import CLICommand

COMMANDS = "airflow_provider_workspace.cli.commands"


def get_workspace_commands() -> list[CLICommand]:
    """Return the commands, as Airflow's command line asks for them."""
    from airflow.cli.cli_config import ActionCommand, Arg, GroupCommand, lazy_load_command

    conn_id = Arg(("-c", "--conn-id"), default="workspace_default", help="Connection to the service")
    organization_id = Arg(("--organization-id",), help="Organization; by default that of the connection")
    plan = (
        Arg(("file",), help="Organization file (.yaml), or file of the members that shall be (.csv, .json, .jsonl)"),
        conn_id,
        organization_id,
        Arg(
            ("--protected",),
            action="append",
            default=[],
            metavar="EMAIL",
            help="With a roster: address of somebody who is never removed or changed; may be given several times",
        ),
        Arg(
            ("--owner-level",),
            default="owner",
            help="With a roster: the same for members of this level, a number or a name, and above",
        ),
        Arg(("-o", "--output"), choices=("table", "json"), default="table", help="How the plan is shown"),
    )
    windows = (
        Arg(("--resume",), action="store_true", help="Resume the exports of windows that are abandoned"),
        Arg(("-o", "--output"), choices=("table", "json"), default="table", help="How the leases are shown"),
    )
    status = (Arg(("-o", "--output"), choices=("table", "json"), default="table", help="How it is shown"),)
    sandbox = (
        Arg(("--port",), default="8765", help="0 picks a free one"),
        Arg(("--profile",), default="lenient", help="lenient, strict or live"),
        Arg(("--database",), default=":memory:", help="A file that is kept"),
    )
    return [
        GroupCommand(
            name="workspace",
            help="The workspace administration service",
            subcommands=(
                ActionCommand(
                    name="ping",
                    help="Say whether the service answers and takes the key",
                    func=lazy_load_command(f"{COMMANDS}.ping"),
                    args=(conn_id,),
                ),
                ActionCommand(
                    name="whoami",
                    help="Say what the key of a connection may do, as far as reading tells",
                    func=lazy_load_command(f"{COMMANDS}.whoami"),
                    args=(conn_id,),
                ),
                ActionCommand(
                    name="plan",
                    help="Say what it takes to make an organization what its file says; change nothing",
                    func=lazy_load_command(f"{COMMANDS}.plan"),
                    args=plan,
                ),
                ActionCommand(
                    name="import",
                    help="Write the organization file of an organization as it is",
                    func=lazy_load_command(f"{COMMANDS}.import_organization"),
                    args=(conn_id, organization_id),
                ),
                ActionCommand(
                    name="windows",
                    help="List the maintenance windows that hold batch exports; resume those of abandoned ones",
                    func=lazy_load_command(f"{COMMANDS}.windows"),
                    args=windows,
                ),
                ActionCommand(
                    name="status",
                    help="Say what is paused, how far invites are, who waits, and which dashboards are remembered",
                    func=lazy_load_command(f"{COMMANDS}.status"),
                    args=status,
                ),
                ActionCommand(
                    name="sandbox",
                    help="Start a local workspace service, to try things out",
                    func=lazy_load_command(f"{COMMANDS}.sandbox"),
                    args=sandbox,
                ),
            ),
        )
    ]
