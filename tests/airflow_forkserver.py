"""
A process that has imported Airflow and forks for each command: `airflow …` without its seconds of imports.

It reads requests from its standard input and answers each with a line, both in JSON. A command sees what it would see
in a process of its own: arguments, environment, working directory, database, output and exit code.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any


def main() -> None:
    """Serve until the standard input ends."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what imports print is no reply

    from airflow.cli import cli_parser

    cli_parser.get_parser()
    for line in sys.stdin:
        request = json.loads(line)
        reply: Any = None
        if "start" in request:
            reply = os.fork()
            if not reply:
                run(**request["start"])
        elif "wait" in request:
            reply = wait(*request["wait"])
        else:
            import_dag_test()
        print(json.dumps(reply), file=replies, flush=True)


def run(arguments: list[str], env: dict[str, str], cwd: str, stdout: str, stderr: str) -> None:
    """Be the command, in a fork."""
    for number, path in ((0, os.devnull), (1, stdout), (2, stderr)):
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        os.dup2(file, number)
        os.close(file)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)

    from airflow import settings

    settings.dispose_orm()
    settings.configure_vars()
    settings.configure_orm()

    from airflow.__main__ import main as airflow

    sys.argv = ["airflow", *arguments]
    airflow()
    sys.exit()


def wait(pid: int, seconds: float) -> int | None:
    """Return the exit code of a command, or none if it takes longer."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    return None


def import_dag_test() -> None:
    """Import what runs a Dag, and build its API server, which each `airflow dags test` would do for itself."""
    import asyncio

    import airflow.cli.commands.dag_command
    import airflow.utils.db  # noqa: F401
    import httpx

    for module in ("dashboards", "batch_exports", "invites", "projects", "windows"):
        __import__(f"airflow_provider_workspace.operators.{module}")
    with suppress(ImportError):  # its place in Airflow 3.3
        from airflow.sdk.execution_time.supervisor import in_process_api_server

        app = in_process_api_server().app

        async def ask() -> None:
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://in-process") as client:
                await client.get("/")

        asyncio.run(ask())


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    main()
