"""Redis and PostgreSQL from Debian packages, started empty for a test."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DEBIAN_POSTGRES = "/usr/lib/postgresql"


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def program(name: str) -> str:
    """
    Return the path of a program. Debian has those of PostgreSQL in a separate folder.

    :raises FileNotFoundError: with the package to install
    """
    folders = [os.environ.get("PATH", ""), *map(str, sorted(Path(DEBIAN_POSTGRES).glob("*/bin"), reverse=True))]
    found = shutil.which(name, path=os.pathsep.join(folders))
    if found is None:
        msg = f"There is no {name} here. On Debian and Ubuntu:  apt install redis-server postgresql"
        raise FileNotFoundError(msg)
    return found


@contextmanager
def redis() -> Iterator[str]:
    """Run Redis, and yield its URL."""
    port = free_port()
    command = [program("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            wait_for_port(port)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.kill()


@contextmanager
def postgres() -> Iterator[str]:
    """Run PostgreSQL with an empty database, and yield its host and name. Root runs it as the user `postgres`."""
    port, user = free_port(), "postgres" if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder:
        data = Path(folder) / "data"
        if user:
            shutil.chown(folder, user)
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
        control = [program("pg_ctl"), "-D", str(data), "-w"]
        make = [program("initdb"), "-D", str(data), "-U", "airflow", "--auth=trust", "--encoding=UTF8"]
        subprocess.run(make, check=True, capture_output=True, user=user, cwd=folder)
        start = [*control, "-l", f"{folder}/log", "-o", options, "start"]
        subprocess.run(start, check=True, stdout=subprocess.DEVNULL, user=user, cwd=folder)
        try:
            yield f"127.0.0.1:{port}/postgres"
        finally:
            stop = [*control, "-m", "immediate", "stop"]
            subprocess.run(stop, check=True, stdout=subprocess.DEVNULL, user=user, cwd=folder)


def wait_for_port(port: int, seconds: float = 20) -> None:
    """
    Wait until a port accepts connections.

    :raises TimeoutError: if it does not in time
    """
    end = time.monotonic() + seconds
    with socket.socket() as probe:
        while probe.connect_ex(("127.0.0.1", port)):
            if time.monotonic() > end:
                msg = f"nobody listens on port {port}"
                raise TimeoutError(msg)
            time.sleep(0.1)
