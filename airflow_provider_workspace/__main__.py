"""The commands ``airflow workspace …`` as ``python -m airflow_provider_workspace …``, also before Airflow 3.2."""

from __future__ import annotations

from argparse import ArgumentParser

from airflow_provider_workspace.cli.definition import get_workspace_commands


def main() -> None:
    """Run the command of ``sys.argv``."""
    (workspace,) = get_workspace_commands()
    parser = ArgumentParser(prog=f"python -m {__package__}", description=workspace.help)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in workspace.subcommands:  # type: ignore[union-attr]
        options = commands.add_parser(command.name, help=command.help, description=command.help)
        options.set_defaults(func=command.func)
        for arg in command.args:
            arg.add_to_parser(options)
    args = parser.parse_args()
    args.func(args)


if __name__ == "__main__":
    main()
