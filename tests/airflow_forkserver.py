"""
A process that has imported Airflow and forks for each `airflow …`, `pytest …` or piece of Python, which saves time.

It reads JSON requests from standard input and replies to each with a line of JSON. A command has what it would have
in a process of its own: arguments, environment, working directory, database, output and exit code.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import importlib
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NoReturn


def main() -> None:
    """Serve until standard input is closed."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of imports must not mix with the replies
    # As in ``conftest.py``.
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
    sys.modules["trio"] = None  # type: ignore[assignment]

    from airflow import settings  # noqa: F401 - which takes most of the time of all that runs here

    for line in sys.stdin:
        request = json.loads(line)
        reply: Any = None
        if "start" in request:
            if request["start"]["arguments"][0] == "airflow":
                import_commands()
            reply = os.fork()
            if not reply:
                end(lambda start=request["start"]: run(**start))
        elif "wait" in request:
            reply = wait(*request["wait"])
        else:
            import_dag_test()
        print(json.dumps(reply), file=replies, flush=True)


def run(arguments: list[str], env: dict[str, str], cwd: str, stdout: str, stderr: str) -> None:
    """Run the command in a fork."""
    for number, path in ((0, os.devnull), (1, stdout), (2, stderr)):
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        os.dup2(file, number)
        os.close(file)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)

    from airflow import settings

    from airflow_provider_workspace.version_compat import COMMAND

    settings.dispose_orm()
    settings.configure_vars()
    settings.configure_orm()

    sys.argv = arguments
    if arguments[0] == "pytest":
        del sys.modules["trio"]  # which hypothesis imports at the end

        import pytest

        sys.exit(pytest.main(arguments[1:]))
    if arguments[0] == "python":
        exec(arguments[1], {})  # noqa: S102 - code of a test
        sys.exit()
    if arguments[1] == "workspace" and not COMMAND.startswith("airflow"):
        del sys.argv[0]
        from airflow_provider_workspace.__main__ import main as airflow
    else:
        from airflow.__main__ import main as airflow

    airflow()
    sys.exit()


def end(action: Callable[[], None]) -> NoReturn:
    """End the process after an action as Python does, without the second that it takes to clear all modules."""
    code = 0
    try:
        action()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001 - Python prints it as well
        traceback.print_exc()
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        code = 120
    sys.stderr.flush()
    os._exit(code)


def wait(pid: int, seconds: float) -> int | None:
    """Return the exit code of a command, or None on a timeout."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    return None


@cache
def import_commands() -> None:
    """Import what all commands need."""
    from airflow.cli import cli_parser
    from sqlalchemy.orm import configure_mappers

    cli_parser.get_parser()
    configure_mappers()


# Modules that `airflow dags test` imports late.
DAG_TEST = (
    "airflow.cli.commands.dag_command",
    "airflow.providers.standard.decorators.python",
    "airflow.sdk.execution_time.supervisor",
    "airflow.utils.db",
    "alembic.context",
)


def import_dag_test() -> None:
    """Import what runs a Dag and build its API server, as each ``airflow dags test`` does."""
    from airflow_provider_workspace.get_provider_info import get_provider_info

    ours = [module for kind in ("hooks", "operators") for module in get_provider_info()[kind][0]["python-modules"]]
    for module in (*DAG_TEST, *ours):
        with suppress(ImportError):  # in Airflow 3.3
            importlib.import_module(module)
    with suppress(ImportError):  # in Airflow 3.3
        from airflow.sdk.execution_time.supervisor import in_process_api_server

        asyncio.run(ask(in_process_api_server().app))
    gc.collect()
    gc.freeze()


async def ask(app: Any) -> None:
    """Send a first request, so that the app builds its routes."""
    import httpx

    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://in-process") as client:
        await client.get("/")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    end(main)
