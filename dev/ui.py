"""Start Airflow with the examples, and a local workspace service beside it. Ctrl-C stops both."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import time
import urllib.request

from local_airflow import AIRFLOW, ROOT, environment, free_port, give_up, migrate, sandbox, say

HOME = ROOT / "build" / "ui"
# How long Airflow may take until it answers.
SECONDS = 240


def main() -> None:
    """Start both, say where they are, and wait."""
    parser = argparse.ArgumentParser(prog="make ui", description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="start with a new workspace and a new Airflow")
    parser.add_argument("--port", type=int, default=8080, help="port of Airflow's pages (default: %(default)s)")
    options = parser.parse_args()
    if not free_port(options.port):
        parser.exit(1, f"Port {options.port} is taken. Name another one: make ui ARGS='--port 8081'\n")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with sandbox(HOME, fresh=options.fresh) as server:
        address = f"http://127.0.0.1:{options.port}"
        env = environment(HOME, server)
        env["AIRFLOW__API__PORT"] = str(options.port)
        env["AIRFLOW__API__HOST"] = "127.0.0.1"
        env["AIRFLOW__API__BASE_URL"] = address
        env["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] = f"{address}/execution/"
        env["AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL"] = "30"
        migrate(HOME, env)
        say("Starting Airflow, which takes up to a minute")
        log = HOME / "standalone.log"
        with log.open("w") as output:
            process = subprocess.Popen(
                [AIRFLOW, "standalone"], env=env, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        try:
            wait_for(address, process)
            if process.poll() is not None:
                give_up("Airflow ended by itself", log)
            say(f"\n  Airflow    {address}\n  Workspace  {server.url}\n\nCtrl-C stops both.")
            process.wait()
        except KeyboardInterrupt:
            say("\nStopping")
        finally:
            stop(process)


def wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until Airflow answers."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(f"{address}/api/v2/monitor/health", timeout=5).close()  # noqa: S310 - loopback
        except OSError:  # noqa: PERF203 - once a second
            time.sleep(1)
        else:
            return


def stop(process: subprocess.Popen[bytes]) -> None:
    """Stop Airflow and all it has started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=20)
        except (ProcessLookupError, subprocess.TimeoutExpired):  # noqa: PERF203 - two rounds
            continue


if __name__ == "__main__":
    main()
