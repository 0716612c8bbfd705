"""The commands of ``airflow workspace``, and of ``python -m airflow_provider_workspace``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from airflow_provider_workspace.cli.access_commands import decisions, grants, sweep
from airflow_provider_workspace.cli.console import standard_output
from airflow_provider_workspace.cli.core_commands import ping, resume, sandbox, whoami, windows
from airflow_provider_workspace.cli.organization_commands import import_, plan

if TYPE_CHECKING:
    from argparse import Namespace

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

# Arguments that are no options, and what the help calls them.
POSITIONAL = {"files": "FILE", "export_id": "EXPORT_ID"}


def run(name: str, args: Namespace) -> None:
    """
    Run a command.

    :param name: a key of :data:`COMMANDS`
    """
    _refuse_empty(args)
    with standard_output():
        COMMANDS[name](args)


def _refuse_empty(args: Namespace) -> None:
    """Refuse arguments without a text: without its value, an option would not count."""
    for name, value in vars(args).items():
        if value == "" or (isinstance(value, list) and "" in value):
            argument = POSITIONAL.get(name) or f"--{name.replace('_', '-')}"
            raise SystemExit(
                f"{argument} has an empty value, perhaps of a shell variable that is not set. Give it a value, or "
                "leave it out. Nothing was sent."
            )
