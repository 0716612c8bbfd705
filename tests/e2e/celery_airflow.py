"""Airflow with separate components and Celery workers."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from tests.e2e.live_airflow import AIRFLOW, LiveAirflow

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer

# Concurrent tasks per worker.
SLOTS = 10
# Seconds without a heartbeat until a task counts as dead or stuck in the queue.
HEARTBEAT_TIMEOUT = 30


class CeleryAirflow(LiveAirflow):
    """
    Airflow with scheduler, API server, triggerer, Dag processor and Celery workers.

    :param redis: URL of the broker
    :param postgres: host and name of the database
    :param workers: names of the workers
    """

    def __init__(
        self,
        home: Path,
        dags: Path,
        server: SandboxServer,
        *,
        redis: str,
        postgres: str,
        workers: tuple[str, ...],
        **settings: str,
    ) -> None:
        timeout = str(HEARTBEAT_TIMEOUT)
        more = {
            "AIRFLOW__CELERY__BROKER_URL": redis,
            "AIRFLOW__CELERY__RESULT_BACKEND": f"db+postgresql+psycopg2://airflow@{postgres}",
            "AIRFLOW__CELERY__WORKER_CONCURRENCY": str(SLOTS),
            "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
            "AIRFLOW__CORE__PARALLELISM": str(SLOTS * len(workers)),
            "AIRFLOW__CORE__MAX_ACTIVE_TASKS_PER_DAG": str(SLOTS * len(workers)),
            "AIRFLOW__CORE__DEFAULT_TASK_RETRIES": "3",
            "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "1",
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": timeout,
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
            "AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT": timeout,
            "AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT_CHECK_INTERVAL": "5",
        }
        super().__init__(home, dags, server, postgres=postgres, **more, **settings)
        self.workers = workers

    def start(self) -> None:
        """Start all components; return when the API responds, the Dags are parsed and the workers are ready."""
        subprocess.run([AIRFLOW, "db", "migrate"], env=self.env, check=True, capture_output=True)
        for part in ("api-server", "scheduler", "dag-processor", "triggerer"):
            self.begin(part, part)
        for name in self.workers:
            pid = str(self.home / f"{name}.pid")
            self.begin(name, "celery", "worker", "--celery-hostname", name, "--pid", pid, "--skip-serve-logs")
        self.wait_for(lambda: bool(self.dags()), 240, "the Dags")
        for name in self.workers:
            self.wait_for(lambda log=self.home / f"{name}.log": "ready." in log.read_text(), 120, name)

    def worker(self, name: str) -> psutil.Process:
        """Return the process of a worker, the parent of its tasks."""
        return psutil.Process(self.processes[name].pid)
