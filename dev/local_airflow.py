"""A local workspace service and an Airflow in the folder build/, for `make demo` and `make ui`."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from importlib.metadata import version
from pathlib import Path

from airflow_provider_workspace.sandbox.server import SandboxServer

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "example_dags"
AIRFLOW = Path(sys.executable).with_name("airflow")
# Number of log lines to show after a failure.
LINES = 30
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT")


def run(main: Callable[[], None]) -> None:
    """
    Run a program that Ctrl-C, a closed terminal or `kill` ends without a traceback.

    :raises SystemExit: with 130 if it was interrupted
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        main()
    except KeyboardInterrupt:
        with suppress(OSError):
            say("\nStopped.")
        raise SystemExit(130) from None


def free_port(wanted: int) -> int:
    """Return the wanted port, or 0 if it is in use."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            return 0
        return wanted


@contextmanager
def sandbox(home: Path, *, fresh: bool) -> Iterator[SandboxServer]:
    """
    Run the service with its state in a file of the home, which is locked meanwhile.

    :raises SystemExit: if the home is in use, or the file cannot be read
    """
    home.parent.mkdir(parents=True, exist_ok=True)
    database = home / "workspace.db"
    with (home.parent / f"{home.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SystemExit(f"This runs already, in {short(home)}: wait until it ends, or end it.") from None
        if fresh:
            shutil.rmtree(home, ignore_errors=True)
        home.mkdir(exist_ok=True)
        server = SandboxServer(database=str(database), port=free_port(8765), rate_limit=False)
        try:
            server.start()
        except (sqlite3.Error, ValueError) as error:
            msg = f"{short(database)} holds no workspace that this version can read ({error}). Add ARGS=--fresh."
            raise SystemExit(msg) from error
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def airflow(env: dict[str, str], *arguments: str, log: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """
    Run an airflow command; at the end of the block, stop it and its child processes.

    :param log: file for its output; by default a pipe
    """
    with log.open("w") if log else nullcontext(subprocess.PIPE) as output:
        process = subprocess.Popen(
            [AIRFLOW, *arguments],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            yield process
        finally:
            for number in (signal.SIGTERM, signal.SIGKILL):
                with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                    os.killpg(process.pid, number)
                    process.wait(timeout=20)


def environment(home: Path, server: SandboxServer) -> dict[str, str]:
    """Return the environment variables of an Airflow with a connection ``workspace_default`` to the service."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AIRFLOW", "PYTHONDONTWRITE", "PYTHONWARNINGS"))
    }
    seed = server.seed
    other = {"organization_id": seed.other_organization_id, "project_id": seed.other_project_id}
    return {
        **kept,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}",
        "AIRFLOW_HOME": str(home / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLES),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__LOGGING__COLORED_CONSOLE_LOG": "False",
        "AIRFLOW_CONN_WORKSPACE_DEFAULT": server.connection(web_url=server.url),
        "AIRFLOW_CONN_WORKSPACE_RESEARCH": server.connection(seed.research_key, **other, web_url=server.url),
        # The service is on this machine, so no proxy is used.
        "NO_PROXY": ",".join(filter(None, [kept.get("NO_PROXY", kept.get("no_proxy", "")), "127.0.0.1,localhost"])),
    }


def migrate(home: Path, env: dict[str, str]) -> None:
    """
    Create Airflow's database if it does not exist or was created by another version.

    :raises SystemExit: if that fails, with the end of the log
    """
    made_by = home / "airflow" / "migrated-by"
    wanted = version("apache-airflow")
    database = home / "airflow" / "airflow.db"
    if database.exists() and made_by.exists() and made_by.read_text() == wanted:
        return
    say("Making Airflow's database")
    began = time.monotonic()
    log = home / "migrate.log"
    with airflow(env, "db", "migrate", log=log) as process:
        code = process.wait()
    if code:
        give_up(f"'airflow db migrate' failed with {code}", log)
    made_by.write_text(wanted)
    say(f"  done in {time.monotonic() - began:.0f} s")


def say(text: str) -> None:
    """Print a message."""
    print(text, flush=True)


def short(path: Path) -> str:
    """Return a path relative to the checkout, if it is below it."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def give_up(what: str, log: Path) -> None:
    """
    Exit with the end of the first traceback of a task in a log, else with the end of the log.

    :raises SystemExit: always
    """
    lines = log.read_text(errors="replace").splitlines()
    end = len(lines)
    for number, line in enumerate(lines):
        if "Task failed with exception" in line:
            end = next((n for n in range(number + 1, end) if TIMESTAMP.match(lines[n])), end)
            break
    shown = "\n".join(line[:500] for line in lines[max(0, end - LINES) : end])
    message = f"\n{shown}\n\n{what}: see above, or all of {short(log)}. To start over, add ARGS=--fresh to the command."
    raise SystemExit(message)
