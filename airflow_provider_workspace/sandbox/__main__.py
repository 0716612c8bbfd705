"""The command line: ``python -m airflow_provider_workspace.sandbox``."""

from __future__ import annotations

import argparse
import dataclasses
import signal
import sqlite3
import sys
import threading
from typing import get_args

from airflow_provider_workspace.sandbox.faults import COMMON, KINDS
from airflow_provider_workspace.sandbox.guard import is_loopback
from airflow_provider_workspace.sandbox.server import SandboxServer
from airflow_provider_workspace.sandbox.service import PROFILES


def main(arguments: list[str] | None = None) -> None:
    """Run a sandbox until it is interrupted."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.faults:
        _print_faults()
        return
    if not options.allow_remote and not is_loopback(options.host):
        parser.error(
            f"--host {options.host} lets other machines connect, and the sandbox's keys are public. "
            "Use 127.0.0.1, or add --allow-remote."
        )
    rate_limit = options.rate_limit == "on"
    server = SandboxServer(options.profile, options.database, options.port, host=options.host, rate_limit=rate_limit)
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: stopped.set())
    try:
        server.start()
    except (OSError, OverflowError, ValueError, sqlite3.Error) as error:
        parser.exit(1, f"Workspace sandbox did not start: {error}\n")
    sys.stdout.write(f"Workspace sandbox on {server.url} (profile {options.profile}, database {options.database})\n")
    for name, value in dataclasses.asdict(server.seed).items():
        for item in value if isinstance(value, tuple) else (value,):
            sys.stdout.write(f"  {name.removesuffix('s') if isinstance(value, tuple) else name:24} {item}\n")
    sys.stdout.flush()
    stopped.wait()
    server.stop()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m airflow_provider_workspace.sandbox",
        description="A complete local workspace administration service.",
    )
    parser.add_argument("--port", type=int, default=8765, help="port; 0 picks a free one (default: %(default)s)")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    parser.add_argument("--allow-remote", action="store_true", help="allow a --host that other machines can reach")
    parser.add_argument("--database", default=":memory:", help="SQLite file (default: %(default)s)")
    parser.add_argument("--profile", choices=PROFILES, default="live", help="behavior where the interface is open")
    parser.add_argument("--rate-limit", choices=("on", "off"), default="on", help="rate limits of the live profile")
    parser.add_argument("--faults", action="store_true", help="list the kinds of faults and exit")
    return parser


def _print_faults() -> None:
    lines = [f"All take {', '.join(COMMON)}."]
    for kind in KINDS:
        lines += ["", kind.name, f"    {kind.about}"]
        for name, field in kind.options.model_fields.items():
            if name not in COMMON:
                about = field.description or f"one of {', '.join(get_args(field.annotation))}"
                lines.append(f"    {name}={field.default}: {about}")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
