"""Approves required actions through an API server, while Dags run."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.e2e.services import free_port

if TYPE_CHECKING:
    from tests.airflow_cli import AirflowCli

# States of a task that waits for a person: from Airflow 3.3, and before.
WAITING = ("awaiting_input", "deferred")


@contextmanager
def api_server(airflow: AirflowCli, home: Path) -> Iterator[str]:
    """Start an API server and yield the URL of its API; it may not be ready yet."""
    port = free_port()
    all_admins = {"AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True"}
    with airflow.running("api-server", "--port", str(port), "--workers", "1", home=home, **all_admins):
        yield f"http://127.0.0.1:{port}/api/v2"


@contextmanager
def approving(api: str) -> Iterator[None]:
    """Approve all required actions during the ``with`` block."""
    over = threading.Event()
    thread = threading.Thread(target=approve, args=(api, over))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def approve(api: str, over: threading.Event) -> None:
    """
    Answer each question when it is seen for the second time.

    `airflow dags test` stores last that the task waits, and loses an earlier answer.
    """
    seen: set[str] = set()
    while not over.wait(1.0):
        try:
            asked = call("GET", f"{api}/dags/~/dagRuns/~/hitlDetails?response_received=false")
            for question in asked["hitl_details"]:
                task = question["task_instance"]
                if task["state"] not in WAITING:
                    continue  # SQLite locks no rows: an answer during the last step of the task would be lost
                if task["id"] not in seen:
                    seen.add(task["id"])
                    continue
                path = f"dags/{task['dag_id']}/dagRuns/{task['dag_run_id']}/taskInstances/{task['task_id']}"
                call(
                    "PATCH",
                    f"{api}/{path}/{task['map_index']}/hitlDetails",
                    {"chosen_options": question["options"][:1], "params_input": first_choices(question["params"])},
                )
        except OSError:  # the server is not ready yet
            continue


def first_choices(params: Any) -> dict[str, Any]:
    """Return the first choice of each field of a form, else its default."""
    return {name: (each["schema"].get("enum") or [each["value"]])[0] for name, each in (params or {}).items()}


def call(method: str, url: str, body: Any = None, **headers: str) -> Any:
    """Call the API of Airflow."""
    request = urllib.request.Request(  # noqa: S310 - loopback
        url,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json", **headers},
        method=method,
    )
    with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310 - loopback
        return json.load(answer)
