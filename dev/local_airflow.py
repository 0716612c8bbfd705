"""What `make demo` and `make ui` share: a local service, and an Airflow of its own in the folder build/."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from airflow_provider_workspace.sandbox.server import SandboxServer

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "example_dags"
AIRFLOW = Path(sys.executable).with_name("airflow")


def free_port(wanted: int) -> int:
    """Return the port that is wanted, or any free one if somebody has it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            return 0
        return wanted


@contextmanager
def sandbox(home: Path, *, fresh: bool) -> Iterator[SandboxServer]:
    """Run the service; its state stays in a file of the home."""
    if fresh:
        shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True, exist_ok=True)
    with SandboxServer("lenient", str(home / "workspace.db"), free_port(8765)) as server:
        yield server


def environment(home: Path, server: SandboxServer) -> dict[str, str]:
    """Return the environment of an Airflow that knows the service as ``workspace_default``."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AIRFLOW", "PYTHONDONTWRITE", "PYTHONWARNINGS"))
    }
    connection = {
        "conn_type": "workspace",
        "host": server.url,
        "password": server.seed.admin_key,
        "extra": {"organization_id": server.seed.organization_id, "project_id": server.seed.project_id},
    }
    return {
        **kept,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}",
        "AIRFLOW_HOME": str(home / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLES),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__LOGGING__COLORED_CONSOLE_LOG": "False",
        "AIRFLOW_CONN_WORKSPACE_DEFAULT": json.dumps(connection),
        # The service is on this machine: no proxy of the surroundings is asked for it.
        "NO_PROXY": ",".join(filter(None, [kept.get("NO_PROXY", kept.get("no_proxy", "")), "127.0.0.1,localhost"])),
    }


def migrate(home: Path, env: dict[str, str]) -> None:
    """
    Make Airflow's database if it is not there.

    :raises SystemExit: if that fails, with the end of the log
    """
    ready = home / "airflow" / ".migrated"
    if ready.exists():
        return
    say("Making Airflow's database")
    began = time.monotonic()
    log = home / "migrate.log"
    with log.open("w") as output:
        code = subprocess.run(
            [AIRFLOW, "db", "migrate"], env=env, stdout=output, stderr=subprocess.STDOUT, check=False
        ).returncode
    if code:
        give_up(f"'airflow db migrate' failed with {code}", log)
    ready.touch()
    say(f"  done in {time.monotonic() - began:.0f} s")


def say(text: str) -> None:
    """Tell the person at the terminal."""
    print(text, flush=True)


def give_up(what: str, log: Path) -> None:
    """
    Show the end of a log and end.

    :raises SystemExit: always
    """
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-30:])
    message = f"\n{tail}\n\n{what}. The end of {log.relative_to(ROOT)} is above; `make clean` and try again."
    raise SystemExit(message)
