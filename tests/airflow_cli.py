"""Airflow's command line for tests. Each command runs in a fork of one process, with its own AIRFLOW_HOME."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self

FORKSERVER = Path(__file__).with_name("airflow_forkserver.py")


class AirflowCli:
    """
    The command ``airflow`` without its import time: see ``airflow_forkserver.py``.

    :param folder: for the home of the forkserver and the output of commands
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = count()
        self._forkserver = subprocess.Popen(
            [sys.executable, FORKSERVER],
            env={**os.environ, "AIRFLOW_HOME": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._forkserver.communicate()

    def run(
        self, *arguments: str | Path, home: Path, cwd: Path | None = None, timeout: float = 240, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; ``env`` extends the environment of the test."""
        stdout, stderr = self._outputs()
        pid = self._start(("airflow", *arguments), home, cwd, env, stdout, stderr)
        return self._finish(pid, arguments, stdout, stderr, timeout)

    def run_tests(self, folder: Path, *options: str) -> str:
        """Run the tests of a folder as a separate project; they must pass. Return the output."""
        return self._succeed("pytest", "-q", "-p", "no:cacheprovider", *options, folder)

    def run_code(self, code: str) -> None:
        """Run Python in a process of its own, with Airflow imported; it must succeed."""
        self._succeed("python", code)

    def _succeed(self, *command: str | Path) -> str:
        stdout, stderr = self._outputs()
        pid = self._start(command, self.folder, self.folder, {}, stdout, stderr)
        run = self._finish(pid, command, stdout, stderr, 180)
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout

    def _finish(
        self, pid: int, arguments: tuple[str | Path, ...], stdout: Path, stderr: Path, timeout: float
    ) -> subprocess.CompletedProcess[str]:
        code = self._ask(wait=[pid, timeout])
        if code is None:
            os.kill(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired([*arguments], timeout, stdout.read_bytes(), stderr.read_bytes())
        # Airflow 3.2 prints this first in commands that need its database.
        lines = stdout.read_text().splitlines(keepends=True)
        said = "".join(line for line in lines if "[alembic.runtime.plugins]" not in line)
        return subprocess.CompletedProcess([*arguments], code, said, stderr.read_text())

    @contextmanager
    def running(self, *arguments: str | Path, home: Path, **env: str) -> Iterator[None]:
        """Run a command during the ``with`` block, then terminate it."""
        pid = self._start(("airflow", *arguments), home, None, env, *self._outputs())
        try:
            yield
        finally:
            os.kill(pid, signal.SIGTERM)
            if self._ask(wait=[pid, 30]) is None:
                os.kill(pid, signal.SIGKILL)

    def preload_dag_test(self) -> None:
        """Import what ``dags test`` needs. It takes seconds, and pays off for several runs."""
        self._ask(preload="dags test")

    def migrated_home(self, home: Path, template: Path, variables: dict[str, str] | None = None) -> None:
        """Copy a migrated database into a home, with Variables. The first xdist worker creates the template."""
        home.mkdir(exist_ok=True)
        template.parent.mkdir(exist_ok=True)
        with template.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not template.exists():
                migrated = self.run("db", "migrate", home=home)
                assert migrated.returncode == 0, migrated.stderr[-3000:]
                shutil.copy(home / "airflow.db", template)
        shutil.copy(template, home / "airflow.db")
        with closing(sqlite3.connect(home / "airflow.db")) as database, database:
            rows = [(key, value, False) for key, value in (variables or {}).items()]
            database.executemany("INSERT INTO variable (key, val, is_encrypted) VALUES (?, ?, ?)", rows)

    def _outputs(self) -> tuple[Path, Path]:
        number = next(self._numbers)
        return self.folder / f"{number}.stdout", self.folder / f"{number}.stderr"

    def _start(
        self,
        arguments: tuple[str | Path, ...],
        home: Path,
        cwd: Path | None,
        env: dict[str, str],
        stdout: Path,
        stderr: Path,
    ) -> int:
        home.mkdir(exist_ok=True)
        database = f"sqlite:///{home / 'airflow.db'}"
        pid: int = self._ask(
            start={
                "arguments": [str(argument) for argument in arguments],
                "env": {
                    **os.environ,
                    "AIRFLOW_HOME": str(home),
                    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database,
                    **env,
                },
                "cwd": str(cwd or Path.cwd()),
                "stdout": str(stdout),
                "stderr": str(stderr),
            }
        )
        return pid

    def _ask(self, **request: Any) -> Any:
        assert self._forkserver.stdin is not None
        assert self._forkserver.stdout is not None
        print(json.dumps(request), file=self._forkserver.stdin, flush=True)
        return json.loads(self._forkserver.stdout.readline())
