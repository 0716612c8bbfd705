"""Start Airflow with the examples, and a local workspace service beside it. Ctrl-C stops both."""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import time
import urllib.request
from contextlib import closing
from pathlib import Path

from local_airflow import EXAMPLES, ROOT, airflow, environment, free_port, give_up, migrate, run, sandbox, say

HOME = ROOT / "build" / "ui"
# Timeout for the start of Airflow.
SECONDS = 240


def main() -> None:
    """Start both, print their URLs, and wait."""
    parser = argparse.ArgumentParser(prog="make ui", description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="start with a new workspace and a new Airflow")
    parser.add_argument("--port", type=int, default=8080, help="port of the Airflow UI (default: %(default)s)")
    options = parser.parse_args()
    if not free_port(options.port):
        parser.exit(1, f"Port {options.port} is taken. Name another one: make ui ARGS='--port 8081'\n")
    with sandbox(HOME, fresh=options.fresh) as server:
        address = f"http://127.0.0.1:{options.port}"
        env = environment(HOME, server)
        env["AIRFLOW__API__PORT"] = str(options.port)
        env["AIRFLOW__API__HOST"] = "127.0.0.1"
        env["AIRFLOW__API__BASE_URL"] = address
        env["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] = f"{address}/execution/"
        env["AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL"] = "30"
        env["AIRFLOW_CONN_WAREHOUSE"] = json.dumps({"conn_type": "sqlite", "host": str(warehouse())})
        migrate(HOME, env)
        say("Starting Airflow, which takes up to a minute")
        log = HOME / "standalone.log"
        with airflow(env, "standalone", log=log) as process:
            if not answers(address, process):
                give_up("Airflow does not answer" if process.poll() is None else "Airflow ended by itself", log)
            say(f"\n  Airflow    {address}\n  Workspace  {server.url}\n\nCtrl-C stops both.")
            process.wait()
            give_up("Airflow ended by itself", log)


def warehouse() -> Path:
    """Return a database with the people of the example ``people_from_warehouse``; make it if there is none."""
    file = HOME / "warehouse.db"
    if not file.exists():
        with closing(sqlite3.connect(file)) as database:
            database.executescript((EXAMPLES / "data" / "people.sql").read_text())
    return file


def answers(address: str, process: subprocess.Popen[str]) -> bool:
    """Wait for Airflow, and return whether it is ready."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(f"{address}/api/v2/monitor/health", timeout=5).close()  # noqa: S310 - loopback
        except OSError:  # noqa: PERF203 - once a second
            time.sleep(1)
        else:
            return True
    return False


if __name__ == "__main__":
    run(main)
