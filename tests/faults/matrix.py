"""
Every operation, with every client, under every fault, against the sandbox.

``make faults`` prints the results; ``tests/faults/test_matrix.py`` asserts a part of them.
"""

from __future__ import annotations

import inspect
import json
import logging
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import structlog

from airflow_provider_workspace.errors import WorkspaceError, WorkspaceRequestError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.sandbox.faults import KINDS
from airflow_provider_workspace.sandbox.routes import LISTS
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.sandbox.server import SandboxServer
from airflow_provider_workspace.version_compat import AirflowFailException, TaskDeferred
from tests.clock import waits_that
from tests.contract.parts import BY_NAME, example_of, ids_of, operator_of, route_of, send_by
from tests.contract.reference import EXPECTED, Expected
from tests.fault_kinds import TEST_FAULTS
from tests.hook_calls import CALLS
from tests.raw_server import RawServer, Received, answer
from tests.task_instance import TaskInstance

if TYPE_CHECKING:
    from tests.conftest import Call

OPERATIONS_OF = {kind.name: kind.operations for kind in (*KINDS, *TEST_FAULTS)}
# The response is readable; later reads serve another purpose.
ANSWERED = ("said_otherwise", "slow_drip", "wrong_content_type")
# They affect everything that reads a list.
OF_ALL_LISTS = ("late_rows", "short_pages", "moving_rows")
PEOPLE = ["ada@example.com", "grace@example.com", "lin@example.com"]


@dataclass(frozen=True)
class Case:
    """An operation and its arguments."""

    arguments: dict[str, Any] = field(default_factory=dict)
    effects: int = 0
    """How many changes are intended."""
    prepare: Callable[[SandboxServer, WorkspaceHook], dict[str, Any]] = lambda _sandbox, _hook: {}
    """Makes what the operation needs, and returns the arguments that name it."""


def paused_export(_sandbox: SandboxServer, hook: WorkspaceHook) -> dict[str, Any]:
    """Pause an export, so that it can be unpaused."""
    hook.pause_batch_export(batch_export_id=SEED.batch_export_ids[1])
    return {"batch_export_id": SEED.batch_export_ids[1]}


def domain_to_verify(sandbox: SandboxServer, hook: WorkspaceHook) -> dict[str, Any]:
    """Create a domain whose challenge is in the DNS."""
    domain = hook.create_domain(domain="fresh.example.com")
    sandbox.publish_dns("_workspace-challenge.fresh.example.com", domain.verification_challenge or "")
    return {"domain_id": domain.id}


# Operations that need more than the required arguments.
PREPARED: dict[str, Case] = {
    "UnpauseBatchExport": Case({}, 1, paused_export),
    # So that the list has a second page.
    "ListDomains": Case(prepare=lambda _, hook: hook.create_domain(domain="fresh.example.com") and {}),
    "VerifyDomain": Case({}, 1, domain_to_verify),
    "CreateInvites": Case({"invites": PEOPLE}, len(PEOPLE)),
    "ListProjects": Case(prepare=lambda _, hook: hook.create_project(name="Another") and {}),
}


def case_of(expected: Expected) -> Case:
    """Return a case with the required arguments and, for a write, one body field and one expected effect."""
    if expected.operation in PREPARED:
        return PREPARED[expected.operation]
    values = ids_of(expected) | example_of(expected)
    if expected.hook_method is None:
        return Case(ids_of(expected))
    taken = inspect.signature(operator_of(expected)).parameters
    # A person may be given by e-mail address instead.
    required = [
        name
        for name in values
        if name in taken and (taken[name].default is inspect.Parameter.empty or name == "user_uuid")
    ]
    optional = [name for name in expected.body if name in taken and name not in required]
    return Case({name: values[name] for name in required + optional[:1]}, int(expected.method != "GET"))


CASES = {expected.operation: case_of(expected) for expected in EXPECTED}


def name_in_sandbox(operation: str) -> str:
    """Return the name of an operation in the sandbox."""
    return route_of(BY_NAME[operation]).operation


@dataclass(frozen=True)
class Fault:
    """A fault and its parameters."""

    kind: str
    options: dict[str, Any] = field(default_factory=dict)
    lists_lag: float = 0
    """By how many seconds all lists lag behind, beside it."""
    profile: str = "strict"

    @property
    def loses_rows(self) -> bool:
        """Whether rows are lost that no client can find."""
        return self.kind in ("large_list", "late_rows")

    @property
    def stays_short(self) -> bool:
        """Whether lists stay shorter than their count."""
        return self.kind == "short_pages" and "missing" in self.options


def faults(elsewhere: str) -> dict[str, Fault]:
    """
    Return all faults.

    :param elsewhere: origin of another server, which must never receive the key
    """
    statuses = {
        f"{status} {when}": Fault(f"status_{when}", {"status": status})
        for status in (500, 502, 503, 504)
        for when in ("before", "after")
    }
    return {
        "connection closed": Fault("refuse"),
        "reset before": Fault("reset_before"),
        "reset after": Fault("reset_after"),
        "reset after, always": Fault("reset_after", {"times": None}),
        "timeout before": Fault("time_out_before"),
        "timeout after": Fault("time_out_after"),
        "429 with Retry-After in seconds": Fault("rate_limit"),
        "429 with Retry-After as date": Fault("odd_rate_limit", {"retry_after": "date"}),
        "429 with invalid Retry-After": Fault("odd_rate_limit", {"retry_after": "nonsense"}),
        "429 without Retry-After": Fault("odd_rate_limit", {"retry_after": "none"}),
        "429 for an hour": Fault("rate_limit", {"seconds": 3600, "times": None}),
        **statuses,
        "502 in HTML": Fault("proxy_error", {"status": 502}),
        "503 always": Fault("status_before", {"status": 503, "times": None}),
        "503 after, always": Fault("status_after", {"status": 503, "times": None}),
        "400 before": Fault("status_before", {"status": 400}),
        "401 before": Fault("status_before", {"status": 401}),
        "empty body": Fault("odd_body", {"body": "empty"}),
        "cut body": Fault("cut_body"),
        "invalid JSON": Fault("odd_body", {"body": "half"}),
        "HTML page": Fault("odd_body", {"body": "html"}),
        "wrong content type": Fault("wrong_content_type"),
        "slow response": Fault("slow_drip", {"pause": 0}),
        "redirect within the service": Fault("redirect", {"status": 308}),
        "redirect that changes to GET": Fault("redirect", {"status": 302}),
        "redirect in a loop": Fault("redirect", {"status": 307, "times": None}),
        "redirect to another host": Fault("redirect", {"status": 307, "location": f"{elsewhere}/api/", "times": None}),
        "next on another host": Fault("odd_next", {"origin": elsewhere, "times": None}),
        "next in a loop": Fault("odd_next", {"to": "first page", "times": None}),
        "next relative": Fault("odd_next", {"to": "relative", "times": None}),
        "applied 8 s after a timeout": Fault("slow_effect", {"seconds": 8}),
        "applied 10 s after a 504": Fault("slow_effect", {"seconds": 10, "answer": "504"}),
        "applied 50 s after a reset": Fault("slow_effect", {"seconds": 50, "answer": "reset"}),
        "lists lag 20 s": Fault("late_rows", {"seconds": 20}),
        "reset after, lists lag 20 s": Fault("reset_after", lists_lag=20),
        "applied 8 s later, lists lag 20 s": Fault("slow_effect", {"seconds": 8, "answer": "504"}, lists_lag=20),
        "next null too early": Fault("short_pages"),
        "next null too early, always": Fault("short_pages", {"times": None}),
        "last row of each page missing": Fault("short_pages", {"missing": "last", "times": None}),
        "rows counted but not listed": Fault("short_pages", {"missing": "newest", "times": None}),
        "rows moving": Fault("moving_rows", {"times": 1}),
        "rows moving, always": Fault("moving_rows"),
        "success, not applied": Fault("said_otherwise", {"times": None}, profile="live"),
        "success, another value returned": Fault(
            "said_otherwise", {"how": "other_answer", "times": None}, profile="live"
        ),
        "very large list": Fault("large_list", {"rows": 100}),
    }


# --- Clients ---


def by_operator(operation: str, arguments: dict[str, Any]) -> Any:
    """Run the operator, which looks the record up first and after a lost response."""
    return OPERATORS[operation](task_id="task", do_xcom_push=False, **arguments).execute({"ti": TaskInstance()})


def by_hook(call: Call, operation: str, arguments: dict[str, Any]) -> Any:
    """Call the method of a hook."""
    return send_by(call, BY_NAME[operation], arguments)


WAYS: dict[str, Callable[[str, dict[str, Any]], Any]] = {
    **{name: partial(by_hook, call) for name, call in CALLS.items()},
    "operator": by_operator,
}
OPERATORS: dict[str, Callable[..., Any]] = {
    expected.operation: operator_of(expected) for expected in EXPECTED if expected.hook_method
}


# --- One cell ---


@dataclass(frozen=True)
class Cell:
    """The result of one operation under one fault."""

    result: str
    """
    ``ok`` (the first answer would do), ``again`` (sent again), ``adopted`` (done by a request without a clear answer,
    and found), ``deferred`` (waits in the triggerer and then goes on), the name of an error, or ``-`` where there is
    nothing to try.
    """
    effects: int = 0
    intended: int = 0
    message: str = ""
    """What the error says, or why there is nothing to try."""
    wrong: str = ""
    """What must not be."""

    def __str__(self) -> str:
        """Return the cell as the table shows it."""
        return f"{self.result} {self.effects}/{self.intended}" if self.intended else self.result


def nothing_to_try(way: str, operation: str, fault: Fault) -> str:
    """Return why the combination does not apply; empty if it does."""
    hit = None if fault.kind in OF_ALL_LISTS else OPERATIONS_OF[fault.kind]
    if hit is not None and name_in_sandbox(operation) not in hit:
        return "answers no pages" if hit is LISTS else "is none that it hits"
    if fault.lists_lag and not CASES[operation].effects:
        return "changes nothing"
    if fault.kind == "said_otherwise" and BY_NAME[operation].status == 204 and way != "operator":
        return "has an empty answer, which only its operator checks"
    if way == "operator" and operation not in OPERATORS:
        return "has no operator"
    return ""


def check_connection(sandbox: SandboxServer, way: str, operation: str, fault: Fault) -> Cell:
    """Run one cell of the matrix with a fresh sandbox."""
    reason = nothing_to_try(way, operation, fault)
    if reason:
        return Cell("-", message=reason)
    sandbox.reset()
    sandbox.change_settings(profile=fault.profile, rate_limit=False)
    case = CASES[operation]
    with closing(WorkspaceHook("workspace_patient")) as hook:
        arguments = case.arguments | case.prepare(sandbox, hook)
    rows = len(WAYS["requests"](operation, arguments)) if operation.startswith("List") else None
    effects_before, requests_before = len(sandbox.effects()), len(sandbox.requests())
    name = name_in_sandbox(operation)
    sandbox.inject(fault.kind, None if fault.kind in OF_ALL_LISTS else name, **fault.options)
    if fault.lists_lag:
        sandbox.inject("late_rows", seconds=fault.lists_lag)
    answer: Any = None
    error: BaseException | None = None
    try:
        answer = WAYS[way](operation, arguments)
    except TaskDeferred:
        return Cell("deferred", len(sandbox.effects()) - effects_before, case.effects)
    except Exception as raised:  # noqa: BLE001 - whatever it is, it is a finding
        error = (isinstance(raised, AirflowFailException) and (raised.__cause__ or raised.__context__)) or raised
    hits = sandbox.faults()[0]["hits"]
    if not hits and fault.kind in OF_ALL_LISTS:
        return Cell("-", message="reads no list")
    sandbox.clear_faults()
    sandbox.advance_clock(3600)  # for late effects
    cell = Cell(
        type(error).__name__ if error else how(sandbox.requests()[requests_before:], name),
        len(sandbox.effects()) - effects_before,
        case.effects,
        str(error or ""),
    )
    is_delete = BY_NAME[operation].method == "DELETE"  # because it was requested, whatever a list shows
    return replace(cell, wrong=find_mistake(cell, error, hits, (rows, answer), fault, is_delete=is_delete))


def how(requests: list[dict[str, Any]], name: str) -> str:
    """Describe a success."""
    sent = [entry for entry in requests if entry["operation"] == name]
    if sent[-1]["fault"] is None:
        return "ok" if len(sent) == 1 else "again"
    answered = sent[-1]["fault"]["kind"] in ANSWERED
    return "ok" if answered or requests[-1] is sent[-1] else "adopted"


def find_mistake(
    cell: Cell, error: BaseException | None, hits: int, read: tuple[int | None, Any], fault: Fault, *, is_delete: bool
) -> str:
    """Return the violated promise; empty if there is none."""
    rows, answer = read
    if not hits:
        return "the fault hit nothing"
    if cell.effects > cell.intended:
        return "more effects than intended"
    if SEED.admin_key in cell.message:
        return "the key is in the message"
    if error is None:
        if cell.effects != cell.intended:
            return "fewer effects than intended, and no error"
        if rows is not None and len(answer) != rows and not fault.loses_rows:
            return f"{len(answer)} rows instead of {rows}, and no error"
        if fault.stays_short and cell.effects and not is_delete:
            return "a write because of what a short list does not show"
        return ""
    if not isinstance(error, WorkspaceError):
        return "an error that is none of ours"
    if isinstance(error, WorkspaceRequestError) and error.outcome in ("not_sent", "rejected") and cell.effects:
        return f"an effect although the error says {error.outcome}"
    return ""


# --- Environment ---


@contextmanager
def environment() -> Iterator[tuple[SandboxServer, dict[str, Fault], list[Received]]]:
    """
    Yield a sandbox with a connection to it, the faults, and the requests that went elsewhere.

    Waits advance the clock of the sandbox and take no time.
    """
    with (
        SandboxServer("strict", fault_kinds=TEST_FAULTS) as sandbox,
        RawServer(answer(404)) as elsewhere,
        ExitStack() as stack,
    ):
        extra = {"organization_id": SEED.organization_id, "project_id": SEED.project_id, "page_size": 1}
        extra |= {"read_timeout": 0.15, "max_attempts": 3, "consistency_time": 60}
        connection = {"conn_type": "workspace", "host": sandbox.url, "password": SEED.admin_key}
        # The preparations need a response, also on a busy machine.
        env = {
            "AIRFLOW_CONN_WORKSPACE_DEFAULT": json.dumps(connection | {"extra": extra}),
            "AIRFLOW_CONN_WORKSPACE_PATIENT": json.dumps(connection | {"extra": extra | {"read_timeout": 30}}),
        }
        stack.enter_context(mock.patch.dict(os.environ, env))
        stack.enter_context(waits_that(sandbox.advance_clock))
        yield sandbox, faults(elsewhere.url), elsewhere.requests


# Operations that represent others in the table of the documentation.
COLUMNS = {
    "a read": ("requests", "GetProject"),
    "a list": ("requests", "ListMembers"),
    "a change, by hook or operator": ("requests", "UpdateDashboard"),
    "a create, by the hook": ("requests", "CreateProject"),
    "a create, by its operator": ("operator", "CreateProject"),
    "a dashboard": ("operator", "CreateDashboard"),
    "bulk invites": ("operator", "CreateInvites"),
}
LEGEND = """\
Each operation under each fault: how the call ended, and how many of the requested changes took effect.

- ok: succeeded at the first attempt
- again: retried, and succeeded
- adopted: the response was lost; the record was looked up and returned
- deferred: to the triggerer until the time the service named, then resumed
- `OutcomeUnknown` and the like: failed with `WorkspaceOutcomeUnknownError`; Airflow retries it unless it is `permanent`
- `IncompleteList`: the list stayed shorter than its count, so nothing was decided by what it does not show
- `NotApplied`: a success whose response shows something else than requested
- -: not applicable"""
TABLE = Path(__file__).resolve().parents[2] / "docs" / "faults-table.md"


def in_short(cell: Cell) -> str:
    """Return a cell as in the documentation, with error names shortened."""
    error = re.fullmatch(r"Workspace(\w+)Error", cell.result)
    return str(replace(cell, result=f"`{error[1]}`")) if error else str(cell)


def table(cells: dict[tuple[str, str, str], Cell], kinds: dict[str, Fault]) -> str:
    """Return the table of the documentation with the representative operations."""
    lines = [
        "<!-- Written by `make faults ARGS=--write`. -->",
        "",
        LEGEND,
        "",
        f"| fault | {' | '.join(COLUMNS)} |",
        f"| --- |{' --- |' * len(COLUMNS)}",
    ]
    for name in kinds:
        row = [in_short(cells[operation, name, way]) for way, operation in COLUMNS.values()]
        lines.append(f"| {name} | {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def find_outdated(
    cells: dict[tuple[str, str, str], Cell], sandbox: SandboxServer, kinds: dict[str, Fault]
) -> list[str]:
    """
    Return the lines that differ between the documentation and these cells.

    Their cells run once more first, because a response may be late on a busy machine.
    """

    def differing() -> list[str]:
        return sorted({*table(cells, kinds).splitlines()} ^ {*TABLE.read_text().splitlines()})

    for _ in range(2):
        for name in {line.split("|")[1].strip() for line in differing() if "|" in line} & {*kinds}:
            for way, operation in COLUMNS.values():
                cells[operation, name, way] = check_connection(sandbox, way, operation, kinds[name])
    return differing()


def print_counts(cells: dict[tuple[str, str, str], Cell]) -> None:
    """Print how many cells were tried, why others were not, and how often each result came."""
    tried = [cell for cell in cells.values() if cell.result != "-"]
    factors = " x ".join(str(len({key[part] for key in cells})) for part in range(3))
    print(f"\noperations x faults x ways: {factors} = {len(cells)} cells, {len(tried)} tried")
    reasons = Counter(cell.message for cell in cells.values() if cell.result == "-")
    for reason, count in reasons.items():
        print(f"  {count} not tried: the operation {reason}")
    results = Counter(cell.result for cell in tried)
    for result, count in results.most_common():
        print(f"  {count:>5} {result}")


def main() -> int:
    """Print the matrix; return 1 if it violates a promise or differs from the documentation."""
    logging.disable(logging.ERROR)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    began = time.monotonic()
    cells: dict[tuple[str, str, str], Cell] = {}
    writes_table = "--write" in sys.argv[1:]
    with environment() as (sandbox, kinds, strays):
        for operation in CASES:
            print(f"\n{operation:<30}{''.join(f'{way:<44}' for way in WAYS)}")
            for fault_name, fault in kinds.items():
                print(f"  {fault_name:<34}", end="")
                for way in WAYS:
                    cell = check_connection(sandbox, way, operation, fault)
                    cells[operation, fault_name, way] = cell
                    print(f"{cell!s:<44}", end="")
                print(flush=True)
        outdated = [] if writes_table else find_outdated(cells, sandbox, kinds)
    print_counts(cells)
    wrong = [f"{' / '.join(key)}: {cell.wrong}. {cell} {cell.message}" for key, cell in cells.items() if cell.wrong]
    if strays:
        wrong.append(f"{len(strays)} requests went to another server")
    if writes_table:
        TABLE.write_text(table(cells, kinds))
    wrong += [f"{TABLE.name} and what came of it differ (make faults ARGS=--write): {line}" for line in outdated]
    for line in wrong:
        print(f"WRONG {line}")
    print(f"{len(wrong)} wrong, {len(strays)} requests to another server, {time.monotonic() - began:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        os.environ["AIRFLOW_HOME"] = home
        sys.exit(main())
