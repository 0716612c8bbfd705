"""A complete Airflow for tests, started with `airflow standalone`."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from tests.dags.human import call
from tests.e2e.processes import find_child, kill_tree
from tests.e2e.services import free_port

if TYPE_CHECKING:
    from typing_extensions import Self

    from airflow_provider_workspace.sandbox.server import SandboxServer

AIRFLOW = Path(sys.executable).with_name("airflow")
# Final states of a run.
OVER = ("success", "failed")
# An answer within a second meets a scheduler that counts the waiting task as failed (Airflow 3.3.2).
READING_SECONDS = 5.0


class LiveAirflow:
    """
    `airflow standalone` with scheduler, triggerer, LocalExecutor and API server.

    :param home: an empty folder
    :param dags: folder with the Dags
    :param server: the service of the connection `workspace_default`
    :param users: names and roles of users, whose passwords are their names; by default everybody is an admin
    :param postgres: host and name of the database; by default SQLite
    """

    def __init__(
        self,
        home: Path,
        dags: Path,
        server: SandboxServer,
        *,
        users: dict[str, str] | None = None,
        postgres: str | None = None,
        **settings: str,
    ) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        seed = server.seed
        self.home = home
        self.postgres = postgres
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW_")},
            "PATH": f"{AIRFLOW.parent}{os.pathsep}{os.environ.get('PATH', '')}",
            "AIRFLOW_HOME": str(home),
            "AIRFLOW_CONN_WORKSPACE_DEFAULT": server.connection(consistency_time=10),
            "AIRFLOW_CONN_WORKSPACE_LIMITED": server.connection(invites_per_hour=20),
            "AIRFLOW_CONN_WORKSPACE_RESEARCH": server.connection(
                seed.research_key, organization_id=seed.other_organization_id
            ),
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(port),
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__PARALLELISM": "4",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": str(users is None),
            "AIRFLOW__API__WORKERS": "1",
            # Long timeouts, for busy machines.
            "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
            "NO_PROXY": "127.0.0.1,localhost",
            **settings,
        }
        if postgres is not None:
            self.env["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] = f"postgresql+psycopg2://airflow@{postgres}"
        self.user = ""
        self._tokens: dict[str, str] = {}
        if users:
            self.user = next(iter(users))
            passwords = home.with_name(f"{home.name}-passwords.json")
            passwords.write_text(json.dumps({name: name for name in users}))
            self.env["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"] = ",".join(map(":".join, users.items()))
            self.env["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"] = str(passwords)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start; return when the API responds and the Dags are parsed."""
        subprocess.run([AIRFLOW, "db", "migrate"], env=self.env, check=True, capture_output=True)
        self.begin("standalone", "standalone")
        self.wait_for(lambda: bool(self.dags()), 600, "the Dags")

    def begin(self, name: str, *command: str) -> None:
        """Start an airflow command in the background; its output goes to a file with its name."""
        with (self.home / f"{name}.log").open("a") as log:
            self.processes[name] = subprocess.Popen(
                [AIRFLOW, *command], env=self.env, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def stop(self) -> None:
        """Stop all started processes."""
        for process in self.processes.values():
            end_session(process)
        self.processes.clear()

    def start_triggerer(self) -> None:
        """Start a triggerer to replace a killed one."""
        self.begin("triggerer", "triggerer")

    def kill_triggerer(self) -> int:
        """Kill the triggerer and its children with SIGKILL; return the number of processes."""
        if "triggerer" in self.processes:
            return self.kill("triggerer")
        return kill_tree(find_child(self.processes["standalone"].pid, "triggerer"))

    def kill(self, name: str) -> int:
        """Kill a started process and its children with SIGKILL; return the number of processes."""
        process = self.processes.pop(name)
        killed = kill_tree(psutil.Process(process.pid))
        process.wait()
        return killed

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Call the API of Airflow, as ``user`` if there are users."""
        headers = {"Authorization": f"Bearer {self.token()}"} if self.user else {}
        return call(method, f"{self.url}/api/v2/{path}", body, **headers)

    def token(self, user: str = "") -> str:
        """Log a user in, by default ``user``, and return the token."""
        name = user or self.user
        if name not in self._tokens:
            answer = call("POST", f"{self.url}/auth/token", {"username": name, "password": name})
            self._tokens[name] = answer["access_token"]
        return self._tokens[name]

    def dags(self) -> list[str]:
        """Return the ids of the Dags; none until the API responds."""
        try:
            return [dag["dag_id"] for dag in self.call("GET", "dags?limit=200")["dags"]]
        except OSError:
            return []

    def trigger(self, dag_id: str, **conf: Any) -> str:
        """Start a run and return its id."""
        self.wait_for(lambda: dag_id in self.dags(), 60, dag_id)
        run: str = self.call("POST", f"dags/{dag_id}/dagRuns", {"logical_date": None, "conf": conf})["dag_run_id"]
        return run

    def run(self, dag_id: str, run_id: str) -> str:
        """Return the state of a run."""
        state: str = self.call("GET", f"dags/{dag_id}/dagRuns/{run_id}")["state"]
        return state

    def tasks(self, dag_id: str, run_id: str) -> dict[str, str]:
        """Return the states of the tasks of a run."""
        rows = self.call("GET", f"dags/{dag_id}/dagRuns/{run_id}/taskInstances?limit=1000")["task_instances"]
        return {row["task_id"]: row["state"] for row in rows}

    def finish(self, dag_id: str, run_id: str, seconds: float = 400) -> str:
        """Wait for the end of a run and return its state."""
        self.wait_for(lambda: self.run(dag_id, run_id) in OVER, seconds, f"{dag_id}: {self.tasks(dag_id, run_id)}")
        return self.run(dag_id, run_id)

    def log(self, dag_id: str, run_id: str, task_id: str) -> str:
        """Return the log of all tries of a task."""
        folder = self.home / "logs" / f"dag_id={dag_id}" / f"run_id={run_id}" / f"task_id={task_id}"
        return "".join(file.read_text(errors="replace") for file in sorted(folder.glob("attempt=*.log")))

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Query the database of Airflow."""
        if self.postgres is not None:
            import psycopg2

            url = f"postgresql://airflow@{self.postgres}"
            with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
                cursor.execute(statement)
                rows: list[tuple[Any, ...]] = cursor.fetchall()
                return rows
        with closing(sqlite3.connect(f"file:{self.home}/airflow.db?mode=ro", uri=True, timeout=30)) as database:
            return database.execute(statement).fetchall()

    def wait_for(self, condition: Any, seconds: float, what: str, every: float = 0.5) -> None:
        """
            Wait until a condition is true.

        :param every: seconds between two polls
        :raises TimeoutError: if it does not become true
        """
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                msg = f"timed out after {seconds:.0f} s waiting for {what}; see {self.home}"
                raise TimeoutError(msg)
            time.sleep(every)


def end_session(process: subprocess.Popen[bytes]) -> None:
    """Terminate a process and its session with SIGTERM, then SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=20)
