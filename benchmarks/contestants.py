"""
Who is measured: this provider, and what people would use in its place.

Each contestant is a function that gets everything ready, imports included, and returns the work to be measured.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from measure import OURS

from airflow_provider_workspace.get_provider_info import get_provider_info

Contestant = Callable[[str], Callable[[], object]]

HEADERS = {"Authorization": "Bearer key", "Accept": "application/json"}
DASHBOARD = "/api/environments/1/dashboards/1/"
MEMBERS = "/api/organizations/org/members/?limit=100"

# --- Imports ------------------------------------------------------------------------------------------------

# What a Dag file imports of this provider.
INFO = get_provider_info()
MODULES = [
    module
    for kind in ("operators", "sensors", "triggers")
    for entry in INFO[kind]
    for module in entry["python-modules"]
] + ["airflow_provider_workspace.operators.base", "airflow_provider_workspace.links"]
# Operators, sensors and their bases. Each is a class that Airflow reads the signature of.
OUR_OPERATORS = sum(
    len(re.findall(r"^class \w+\(", file.read_text(), re.MULTILINE))
    for room in ("operators", "sensors")
    for file in Path(__file__).parents[1].joinpath("airflow_provider_workspace", room).glob("*.py")
)
HTTP_MODULES = [
    f"airflow.providers.http.{name}" for name in ("operators.http", "sensors.http", "triggers.http", "hooks.http")
]


def import_base_classes() -> None:
    """Import what every provider builds on."""
    from airflow.sdk import BaseHook, BaseOperator, BaseOperatorLink, BaseSensorOperator
    from airflow.triggers.base import BaseEventTrigger, BaseTrigger

    del BaseHook, BaseOperator, BaseOperatorLink, BaseSensorOperator, BaseEventTrigger, BaseTrigger


def import_ours() -> None:
    """Import every module of operators, sensors, triggers and links."""
    import_base_classes()
    for module in MODULES:
        importlib.import_module(module)


def define_operators() -> None:
    """Define as many operators as ours, with a few arguments and nothing else: what Airflow itself asks for each."""
    from airflow.sdk import BaseOperator

    import_base_classes()
    for _ in range(OUR_OPERATORS):

        class Operator(BaseOperator):
            """Does nothing."""

            def __init__(
                self, *, project_id: int | str, name: str | None = None, if_exists: str = "return", **kwargs: Any
            ) -> None:
                del project_id, name, if_exists
                super().__init__(**kwargs)


def import_http() -> None:
    """Import the http provider's."""
    import_base_classes()
    for module in HTTP_MODULES:
        importlib.import_module(module)


# --- One call -----------------------------------------------------------------------------------------------


def get_with_hook(_: str) -> Callable[[], object]:
    """Ask for a dashboard: retry policy, errors, model and masking included."""
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook

    hook = WorkspaceHook()
    return lambda: hook.get_dashboard(dashboard_id=1)


def get_with_requests(url: str) -> Callable[[], object]:
    """Ask with a session of requests."""
    import requests

    session = requests.Session()
    session.headers.update(HEADERS)
    return lambda: session.get(url + DASHBOARD, timeout=30).json()


def get_with_requests_alone(url: str) -> Callable[[], object]:
    """Ask with a session of requests that does not read the environment on each call."""
    import requests

    session = requests.Session()
    session.trust_env = False
    session.headers.update(HEADERS)
    return lambda: session.get(url + DASHBOARD, timeout=30).json()


def get_with_httpx(url: str) -> Callable[[], object]:
    """Ask with a client of httpx."""
    import httpx

    client = httpx.Client(headers=HEADERS, verify=False)  # noqa: S501 - plain HTTP to this machine
    return lambda: client.get(url + DASHBOARD).json()


def get_with_http_hook(_: str) -> Callable[[], object]:
    """Ask with the hook of the http provider."""
    from airflow.providers.http.hooks.http import HttpHook

    hook = HttpHook(method="GET")
    return lambda: hook.run(DASHBOARD, headers=HEADERS).json()


GETS: dict[str, Contestant] = {
    OURS: get_with_hook,
    "requests.Session": get_with_requests,
    "requests.Session, environment not read": get_with_requests_alone,
    "httpx.Client": get_with_httpx,
    "HttpHook.run": get_with_http_hook,
}

# --- Lists --------------------------------------------------------------------------------------------------


def list_with_hook(_: str) -> Iterator[Any]:
    """Yield the members as models."""
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook

    return WorkspaceHook().list_members()


def list_with_requests(url: str) -> Iterator[Any]:
    """Yield the members as dicts."""
    import requests

    session = requests.Session()
    session.headers.update(HEADERS)
    following: str | None = MEMBERS
    while following:
        page = session.get(urljoin(url, following), timeout=30).json()
        yield from page["results"]
        following = page["next"]


def list_with_httpx(url: str) -> Iterator[Any]:
    """Yield the members as dicts."""
    import httpx

    client = httpx.Client(headers=HEADERS, verify=False)  # noqa: S501 - plain HTTP to this machine
    following: str | None = MEMBERS
    while following:
        page = client.get(urljoin(url, following)).json()
        yield from page["results"]
        following = page["next"]


LISTS: dict[str, Callable[[str], Iterator[Any]]] = {
    OURS: list_with_hook,
    "requests.Session, dicts": list_with_requests,
    "httpx.Client, dicts": list_with_httpx,
}

# --- Rows that are counted ----------------------------------------------------------------------------------

WHERE = {"level": 1, "user.is_email_verified": True}


def count_with_operator(_: str) -> int:
    """Count the members that ``where`` selects."""
    from airflow_provider_workspace.operators.members import WorkspaceListMembersOperator

    count: int = WorkspaceListMembersOperator(task_id="count", where=WHERE, count_only=True).execute({})
    return count


def count_dicts(rows: Callable[[str], Iterator[Any]]) -> Callable[[str], int]:
    """Return the same as a list comprehension."""
    return lambda url: len([row for row in rows(url) if row["level"] == 1 and row["user"]["is_email_verified"]])


COUNTS: dict[str, Callable[[str], int]] = {
    OURS: count_with_operator,
    "requests.Session, dicts": count_dicts(list_with_requests),
    "httpx.Client, dicts": count_dicts(list_with_httpx),
}

# --- Dag files ----------------------------------------------------------------------------------------------

# What a Dag imports, and its tasks in rotation up to 20: a POST, a PATCH and two GETs, written as each would be.
TASKS = 20
HEADERS_OF_A_TASK = '{"Content-Type": "application/json"}'
DAG_FILES: dict[str, tuple[str, list[str]]] = {
    "EmptyOperator": ("from airflow.providers.standard.operators.empty import EmptyOperator", ["EmptyOperator("]),
    OURS: (
        "from airflow_provider_workspace.operators import invites, members, projects",
        [
            'invites.WorkspaceCreateInviteOperator(target_email="ada@example.com", ',
            'members.WorkspaceUpdateMemberOperator(user_uuid="uuid", level=8, ',
            'members.WorkspaceListMembersOperator(fields=["user.email"], ',
            "projects.WorkspaceGetProjectOperator(project_id=1, ",
        ],
    ),
    "HttpOperator": (
        "from airflow.providers.http.operators.http import HttpOperator",
        [
            (
                f'HttpOperator(endpoint="/api/organizations/org/invites/", headers={HEADERS_OF_A_TASK}, '
                'data=\'{"target_email": "ada@example.com"}\', '
            ),
            (
                f'HttpOperator(method="PATCH", endpoint="/api/organizations/org/members/uuid/", '
                f"headers={HEADERS_OF_A_TASK}, data='{{\"level\": 8}}', "
            ),
            'HttpOperator(method="GET", endpoint="/api/organizations/org/members/", ',
            'HttpOperator(method="GET", endpoint="/api/organizations/org/projects/1/", ',
        ],
    ),
}


def write_dag_files(folder: Path, copies: int = 1) -> dict[str, list[Path]]:
    """Write Dag files of 20 tasks, and return their paths."""
    paths: dict[str, list[Path]] = {}
    for contestant, (import_line, tasks) in DAG_FILES.items():
        lines = [f'    {tasks[number % len(tasks)]}task_id="task_{number}")\n' for number in range(TASKS)]
        for copy in range(copies):
            name = f"{contestant.replace(' ', '_')}_{copy}"
            path = folder / f"{name}.py"
            path.write_text(f'from airflow.sdk import DAG\n{import_line}\n\nwith DAG("{name}"):\n{"".join(lines)}')
            paths.setdefault(contestant, []).append(path)
    return paths


# Whom the budget counts: ours, and what stands beside it where the Python is another.
BUDGETED = (OURS, "requests.Session", "requests.Session, dicts")
