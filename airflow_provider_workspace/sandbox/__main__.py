"""The command line: ``python -m airflow_provider_workspace.sandbox``."""

from __future__ import annotations

import argparse
import dataclasses
import signal
import sqlite3
import sys
import threading

from airflow_provider_workspace.sandbox.profiles import PROFILES


def main(arguments: list[str] | None = None) -> None:
    """Run a sandbox until it is interrupted."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.faults:
        _print_faults()
        return

    # Only now: --help is answered without the weight of a web server.
    from airflow_provider_workspace.sandbox.faults import parse_fault
    from airflow_provider_workspace.sandbox.guard import is_loopback
    from airflow_provider_workspace.sandbox.server import SandboxServer

    if not options.allow_remote and not is_loopback(options.host):
        parser.error(
            f"--host {options.host} would let other machines in, and the sandbox's keys are public. "
            "Use 127.0.0.1, or add --allow-remote if that is what you want."
        )
    try:
        server = SandboxServer(
            options.profile,
            options.database,
            options.port,
            host=options.host,
            latency_ms=options.latency_ms,
            rate_limit=options.rate_limit == "on",
            faults=[parse_fault(text) for text in options.fault],
            allow_hosts=options.allow_host,
        )
    except ValueError as error:
        parser.error(f"--fault {error}")
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: stopped.set())
    try:
        server.start()
    except (OSError, OverflowError, ValueError, sqlite3.Error) as error:
        parser.exit(1, f"Workspace sandbox did not start: {error}\n")
    lines = [f"Workspace sandbox on {server.url} (profile {options.profile}, database {options.database})"]
    for name, value in dataclasses.asdict(server.seed).items():
        if isinstance(value, tuple):
            lines += [f"  {name.removesuffix('s'):24} {item}" for item in value]
        else:
            lines.append(f"  {name:24} {value}")
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
    stopped.wait()
    server.stop()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m airflow_provider_workspace.sandbox",
        description="A complete local workspace administration service.",
    )
    parser.add_argument("--port", type=int, default=8765, help="0 picks a free one (default: %(default)s)")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    parser.add_argument("--allow-remote", action="store_true", help="allow a --host that other machines can reach")
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="another name by which a browser or a client may reach it; may be given several times",
    )
    parser.add_argument("--database", default=":memory:", help="a file that is kept, or %(default)s")
    parser.add_argument("--profile", choices=PROFILES, default="lenient", help="how to fill what is left open")
    parser.add_argument("--latency-ms", type=float, default=0, help="added to each request of the interface")
    parser.add_argument("--rate-limit", choices=("on", "off"), default="on", help="only the live profile has rates")
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="KIND[,NAME=VALUE]",
        help="a fault from the start, such as reset_after,operation=create_*,times=2; may be given several times",
    )
    parser.add_argument("--faults", action="store_true", help="say which kinds of faults there are, and stop")
    return parser


def _print_faults() -> None:
    from airflow_provider_workspace.sandbox.faults import COMMON, KINDS

    lines = [f"All take {', '.join(COMMON)}."]
    for kind in KINDS:
        lines += ["", kind.name, f"    {kind.about}"]
        lines += [f"    {item.name}={item.default}: {item.about}" for item in kind.parameters]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
