"""The commands ``airflow workspace …``, and the cost of their definitions for other commands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest

from airflow_provider_workspace.cli.definition import get_workspace_commands
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.version_compat import COMMAND
from tests import decision_notes
from tests import grant_notes as grants
from tests.audit import effects
from tests.leases import SWEEP, digest, lease, swept, variable

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.airflow_cli import AirflowCli
    from tests.conftest import Connect

COMMANDS = {command.name: command for command in get_workspace_commands()[0].subcommands}
NO_WINDOW = "No maintenance window holds a batch export.\n"

Airflow = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def airflow(airflow_cli: AirflowCli, tmp_path: Path) -> Airflow:
    """Run a command with its own AIRFLOW_HOME."""
    return partial(airflow_cli.run, home=tmp_path)


@pytest.mark.per_airflow
@pytest.mark.slow
@pytest.mark.parametrize("sandbox", ["live"], indirect=True)
def test_ping_reports_success_or_the_reason(airflow: Airflow, sandbox: SandboxServer, connect: Connect) -> None:
    connect()
    run = airflow("workspace", "ping")
    assert run.returncode == 0, run.stderr
    assert re.match(rf"The service at {sandbox.url} accepts the API key \(\d+ ms for a few reads\)\.", run.stdout)
    sandbox.revoke_key(sandbox.seed.admin_key)
    for options, reason in ((), "refuses the API key"), (("--conn-id", "elsewhere"), "`elsewhere` isn't defined"):
        run = airflow("workspace", "ping", *options)
        assert (run.returncode, reason in run.stderr, "Traceback" in run.stderr) == (1, True, False)


@pytest.mark.per_airflow
@pytest.mark.slow
def test_plan_sends_only_reads(airflow: Airflow, sandbox: SandboxServer, connect: Connect, tmp_path: Path) -> None:
    connect()
    roster = tmp_path / "members.csv"
    roster.write_text("email,level\nada@example.com,8\ngrace.analyst@example.com,1\n")
    run = airflow(
        *("workspace", "plan", roster, "--protected", "adam.admin@example.com", "--owner-level", "owner"),
        *("--max-removals", "3", "-o", "json"),
    )
    assert run.returncode == 2, run.stderr
    (plan,) = json.loads(run.stdout).values()
    actions = {change["name"].partition("@")[0]: change["action"] for change in plan["changes"]}
    assert actions == {
        "invite liv.invited": "remove",
        "member mina.member": "remove",
        "member noah.newton": "remove",
        "invite ada": "create",
        "person olive.owner": "skip",
        "person adam.admin": "skip",
    }
    assert {entry["method"] for entry in sandbox.requests()} == {"GET"}
    roster.write_text("email,levle\n")
    run = airflow("workspace", "plan", roster)
    assert run.returncode == 1
    assert "did you mean columns={'levle': 'level'}?" in run.stderr


# The first project exists; only Airflow knows whether its dashboards do.
FILE = """\
projects:
  - name: Default project
    timezone: Europe/Rome
    dashboards: [{name: Sign-ups, collaborators: [ada@example.com]}, {name: Retention}]
  - {name: Northwind, dashboards: [{name: "| @team <b>`x`", collaborators: [lin@example.com]}]}
domains: [{domain: north.example.com, verified: false}]
members:
  people: [mina.member@example.com,
           {email: zoe@example.com}]
exports:
  - {batch_export_id: 0190c0de-0000-4000-8000-0000000000e1, paused: true}
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Organization files and rosters in the working directory."""
    monkeypatch.chdir(tmp_path)
    Path("a,%.yaml").write_text(FILE)
    Path("b.yaml").write_text("projects:\n  - nam: 'x'\n")
    Path("same.yaml").write_text("projects: [{name: Default project}]\nmembers: {owner_level: owner}\n")
    Path("paused.yaml").write_text(f"exports: {FILE.partition('exports:')[2]}")
    people = ["adam.admin", "mina.member", "grace.analyst", "noah.newton", "liv.invited"]
    Path("owner.csv").write_text("\n".join(["email", *(f"{name}@example.com" for name in people)]))
    Path("cut.csv").write_text("email\nadam.admin@example.com\nmina.member@example.com\nliv.invited@example.com\n")
    people = Path("owner.csv").read_text().replace("\n", ",\n").replace("email,", "email,until")
    Path("ended.csv").write_text(people.replace("noah.newton@example.com,", "noah.newton@example.com,2020-12-31") + ",")
    Path("ended.yaml").write_text("members: {people: [{email: noah.newton@example.com, until: 2020-12-31}]}")
    Path("twice.yaml").write_text("organizations:\n  north: {projects: []}\n  south: {projects: []}\n")
    Path("same.YAML").write_text(Path("same.yaml").read_text())
    Path("gone.csv").write_text("email\n\nnoah.newton@example.com\n")


def run_here(name: str, *arguments: str) -> Any:
    """Run a command in this process, whose database is empty; return its exit code."""
    parser = ArgumentParser()
    for arg in COMMANDS[name].args:
        arg.add_to_parser(parser)
    try:
        COMMANDS[name].func(parser.parse_args(arguments))
    except SystemExit as end:
        return end.code
    return 0


def plan(*arguments: str) -> Any:
    """Run the command ``plan`` in this process."""
    return run_here("plan", *arguments)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["grants", "--end", ""], "--end has an empty value, perhaps of a shell variable that is not set. "),
        (["decisions", "--lift", ""], "--lift has an empty value"),
        (["sweep", "--evidence", ""], "--evidence has an empty value"),
        (["sweep", "--protected", "ada@example.com", "--protected", ""], "--protected has an empty value"),
        (["ping", "--schema", ""], "--schema has an empty value"),
        (["plan", ""], "FILE has an empty value"),
        (["plan", "team.csv", "--max-removals", ""], "--max-removals has an empty value"),
        (["resume", ""], "EXPORT_ID has an empty value"),
        (["resume", "all"], "EXPORT_ID: expected a UUID, not 'all'. Nothing was sent."),
    ],
)
def test_an_argument_without_a_text_is_refused(command: list[str], says: str) -> None:
    assert str(run_here(*command)).startswith(says)


@pytest.mark.per_airflow
@pytest.mark.slow
@pytest.mark.parametrize(
    ("redirection", "says"), [(">&-", "Standard output is closed. "), (">/dev/full", "Standard output cannot be ")]
)
def test_standard_output_that_takes_nothing_is_an_error(redirection: str, says: str) -> None:
    code = (
        "from argparse import Namespace; "
        "from airflow_provider_workspace.cli import commands, console; "
        "commands.COMMANDS = {'whoami': lambda args: console.print_lines('a')}; "
        "commands.run('whoami', Namespace())"
    )
    command = ["sh", "-c", f'"$0" -c "$1" {redirection}', sys.executable, code]
    run = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert (run.returncode, run.stderr.count("\n")) == (1, 1), run.stderr
    assert run.stderr.startswith(says)


@pytest.mark.usefixtures("files")
def test_the_exit_status_is_0_only_if_nothing_differs(
    sandbox: SandboxServer, connect: Connect, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    connect()
    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")
    for arguments, code in (
        (["same.yaml"], 0),
        (["same.YAML"], 0),
        (["twice.yaml"], 1),
        (["paused.yaml"], 2),
        (["owner.csv", "--max-removals", "9"], 0),  # an owner whom no list names is kept
        (["owner.csv", "--max-removals", "9", "--protected", "olive.owner@example.com"], 0),
        (["same.yaml", "gone.csv", "--leavers"], 2),
        *(
            ([*file, *at], code)
            for file in (["ended.csv", "--protected", "olive.owner@example.com"], ["ended.yaml"])
            for at, code in (([], 2), (["--at", "2020-12-31"], 0), (["--at", "2021-01-01T00:00:00Z"], 2))
        ),
        (["same.yaml", "--at", "tomorrow"], 1),
        (["cut.csv", "same.yaml"], 1),
        (["cut.csv", "--max-removals", "50%"], 2),
        (["a,%.yaml", "same.yaml", "-o", "json"], 2),
    ):
        assert plan(*arguments) == code, arguments
    assert "exit status 0: equal, 2: may differ, 1: error" in str(COMMANDS["plan"].help)
    said, errors = capfd.readouterr()
    too_many = (
        "cut.csv: [too-many-removals] This plan takes a lot away (members removed: 2; the organization has 5 members); "
        "max_removals='10 or 30%' allows 1"
    )
    assert errors.count(too_many) == 1
    assert errors.count("--at: expected a date such as 2026-12-31, or a time with its zone such as 2026-12-") == 1
    both = f"twice.yaml: 'north' and 'south' are both {sandbox.seed.organization_id}. Set organization_id of each."
    assert both in errors
    assert "skipped: a task passes them" in said
    assert "access ended 2020-12-31 (UTC)" in said
    assert "later: until 2020-12-31, then removed" in said
    assert "- member noah.newton@example.com" in said
    assert f'"{sandbox.seed.organization_id} (same.yaml)": {{' in said
    assert {entry["method"] for entry in sandbox.requests()} == {"GET"}


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("option", "place"),
    [
        (["--max-removals", "3"], "'max_removals' at its top"),
        (["--protected", "ada@example.com"], "'protected' under 'members'"),
        (["--owner-level", "8"], "'owner_level' under 'members'"),
        (["--leavers"], "'complete: [members]' at its top"),
        (["--columns", "{}"], "'columns' under 'members'"),
        (["--where", "{}"], "'where' under 'members'"),
    ],
)
def test_an_option_of_rosters_is_refused_for_an_organization_file(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], option: list[str], place: str
) -> None:
    connect()
    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")
    assert plan("same.yaml", *option) == 1
    errors = capfd.readouterr().err
    assert f"same.yaml: {option[0]} is for rosters: an organization file " in errors
    assert place in errors


HR = "Mail,Level,Status\nnoah.newton@example.com,8,left\nmina.member@example.com,7,active\n"
COLUMNS = '{"Mail": "email", "*": null}'
LEFT = '{"Status": "left"}'
BY_POSITION = '["email", "level", "message"]'


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--columns", COLUMNS, "--where", LEFT, "--leavers"], 2, "- member noah.newton@example.com"),
        (["--columns", COLUMNS, "--where", LEFT, "--leavers"], 2, "Left out by where (Status): 1 of 2."),
        (["--columns", COLUMNS, "--where", LEFT, "--max-removals", "9"], 2, "- member mina.member@example.com"),
        (["--columns", BY_POSITION, "--leavers", "--max-removals", "9"], 2, "- member mina.member@example.com"),
        (["--leavers"], 1, "unknown columns 'Mail'"),
        (["--columns", COLUMNS, "--where", "Status=left"], 1, "--where is not JSON (Expecting value"),
        (["--columns", "email"], 1, "--columns is not JSON (Expecting value: line 1 column 1 (char 0)); write it as"),
        (["--columns", '"email"'], 1, "--columns is something of type str; expected JSON such as '{\"Work mail"),
        (["--columns", COLUMNS, "--where", "[]"], 1, "--where is something of type list; expected JSON such a"),
        (["--columns", '{"Mail": 1}'], 1, "columns"),
    ],
)  # fmt: skip
def test_a_roster_is_planned_with_the_columns_and_rows_that_the_task_reads(
    sandbox: SandboxServer,
    connect: Connect,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    options: list[str],
    code: int,
    says: str,
) -> None:
    connect()
    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")
    (tmp_path / "hr.csv").write_text(HR)
    assert plan(str(tmp_path / "hr.csv"), *options) == code
    assert says in "".join(capfd.readouterr())
    assert {entry["method"] for entry in sandbox.requests()} <= {"GET"}


@pytest.mark.usefixtures("files")
def test_an_error_of_one_file_hides_neither_itself_nor_the_others(
    sandbox: SandboxServer, connect: Connect, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    connect()
    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")
    Path("long.yaml").write_text("".join(f"{'k' * 900}{number}: 1\n" for number in range(99)))
    Path("odd.yaml").write_text('"x\\n::error::boo": 1\n')
    assert plan("long.yaml", "gone.csv", "odd.yaml", "--leavers", "-o", "markdown") == 1
    said, errors = capfd.readouterr()
    assert len(said) < 30_000
    assert "| remove | member noah.newton@example.com (Noah Newton) |" in said
    assert "**Error** in <code>odd.yaml</code>: <code>Correct odd.yaml:" in said
    files = {line.partition(": ")[0] for line in errors.splitlines() if "What only Airflow knows" not in line}
    assert files == {"long.yaml", "odd.yaml"}
    monkeypatch.delenv("AIRFLOW_CONN_WORKSPACE_DEFAULT")
    for form in ("markdown", "json"):
        assert plan("same.yaml", "-o", form) == 1
        assert "same.yaml" in (said := capfd.readouterr().out)
        assert "cannot be read" in said or "defined" in said
    assert {entry["method"] for entry in sandbox.requests()} == {"GET"}


@pytest.mark.usefixtures("files")
def test_a_file_given_twice_is_planned_once(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    connect()
    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")
    assert plan("gone.csv", "gone.csv", "--leavers") == 2
    assert capfd.readouterr().out.count("(gone.csv)") == 1


@pytest.mark.usefixtures("files")
@pytest.mark.slow
def test_a_plan_for_a_comment_needs_no_database_and_escapes_names(sandbox: SandboxServer, tmp_path: Path) -> None:
    """Runs ``python -m`` in a new process whose home is empty, with a key that may only read."""
    home = tmp_path / "home"
    home.mkdir()
    connection = sandbox.connection().replace(sandbox.seed.admin_key, sandbox.seed.reader_key)
    run = subprocess.run(
        [sys.executable, "-m", "airflow_provider_workspace", "plan", "a,%.yaml", "b.yaml", "-o", "markdown"],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin", "AIRFLOW_CONN_WORKSPACE_DEFAULT": connection},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1, run.stderr
    assert "b.yaml: Correct b.yaml:\nb.yaml:   line 2: projects.0.nam: unknown field" in run.stderr
    error, _, title, _, remark, _, summary, _, *table = run.stdout.splitlines()
    assert error.startswith("**Error** in <code>b.yaml</code>: <code>Correct b.yaml:")
    assert title == f"### <code>{sandbox.seed.organization_id}</code> in <code>a,%.yaml</code>"
    assert remark == "Temporary access and decisions of reviews are not known here."
    assert summary.startswith("**4 to create, 0 to change, 0 to remove, 1 cannot be known, 1 to change by hand, ")
    assert table[:2] == ["| Change | Who or what | Values and reason |", "| --- | --- | --- |"]
    values = "timezone: UTC\u00a0→ Europe/Rome, change it by hand: the interface cannot"
    assert table[2] == f"| by hand | project Default project | {values} |"
    assert {line.count("|") for line in table} == {4}
    assert "| create | dashboard Northwind / &#124; &#64;team &#60;b&#62;&#96;x&#96; |" in run.stdout
    why = "known only to Airflow, as are their collaborators"
    assert table[-1] == f"| skipped | dashboards of existing projects: 2 | {why} |"


def test_a_long_plan_is_cut_off_for_a_comment(
    sandbox: SandboxServer,  # noqa: ARG001
    connect: Connect,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    connect()
    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")
    roster = tmp_path / "team.csv"
    roster.write_text("".join(["email\n", *(f"person-{number}@example.com\n" for number in range(2000))]))
    assert plan(str(roster), "-o", "markdown", "--protected", "mina.member@example.com", "--max-removals", "9") == 2
    said = capfd.readouterr().out
    assert 59_000 < len(said) < 61_000
    assert re.search(r" \|  \|\n\nThe rest is cut off", said)


@pytest.mark.per_airflow
@pytest.mark.slow
def test_a_closed_pipe_ends_the_command_quietly() -> None:
    code = (
        "from argparse import Namespace; "
        "from airflow_provider_workspace.cli import commands, console; "
        "commands.COMMANDS = {'whoami': lambda args: (console.print_lines('a'), print('not reached'))}; "
        "commands.run('whoami', Namespace())"
    )
    reader, writer = os.pipe()
    os.close(reader)
    run = subprocess.run([sys.executable, "-c", code], stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (run.returncode, run.stderr) == (1, "")


@pytest.mark.slow
def test_the_sandbox_command_starts_and_stops(tmp_path: Path) -> None:
    """Runs the command that messages name in a new process."""
    program, *arguments = COMMAND.split()
    with subprocess.Popen(
        [Path(sys.executable).with_name(program), *arguments, "sandbox", "--port", "0", "--profile", "strict"],
        env={**os.environ, "AIRFLOW_HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            # On Python 3.14 the output starts with Airflow's own deprecation warnings.
            url = next(found[0] for line in process.stdout if (found := re.search(r"http://[\d.:]+", line)))
            with urlopen(f"{url}/_sandbox/workspace", timeout=10) as answer:  # noqa: S310 - loopback
                assert json.load(answer)["profile"] == "strict"
        finally:
            process.terminate()
        assert process.wait(30) == 0


def test_windows_lists_leases_and_the_sweep_resumes_abandoned_exports(  # noqa: PLR0915 - each command starts Airflow
    airflow: Airflow,
    airflow_cli: AirflowCli,
    migrated_database: Path,
    sandbox: SandboxServer,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Two leases are unreadable, which hides no other; the service has moved what resumes an export."""
    export_id, other, *_ = sandbox.seed.batch_export_ids
    connect()
    with closing(WorkspaceHook()) as hook:
        hook.pause_batch_export(batch_export_id=export_id)
    Path(tmp_path / "dags").mkdir()
    Path(tmp_path / "dags" / "beside_dags.py").write_text("def read(hook, export_id): return 'running'")
    monkeypatch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(tmp_path / "dags"))
    airflow_cli.migrated_home(tmp_path, migrated_database)
    assert airflow("workspace", "windows").stdout == f"{NO_WINDOW}Last sweep: never.\n"
    place = {"service": sandbox.url, "organization_id": sandbox.seed.organization_id, "batch_export_id": export_id}
    times = {"since": 1_790_000_000, "until": 4_000_000_000, "paused_at": 1_790_000_001}
    held = lease(run_id="gone", owner="data-team", seen="paused", state_of="beside_dags.read", **place, **times)
    key, value = variable(held)
    unreadable, _ = variable(held | {"batch_export_id": other})
    broken = {unreadable: "{", "workspace_lease.early": json.dumps(held | {"since": "0001-01-01T00:00:00+14:00"})}
    values = {key: value, **broken, SWEEP: swept(held, "open", at=1_790_000_060)}
    airflow_cli.migrated_home(tmp_path, migrated_database, values)
    monkeypatch.delenv("AIRFLOW_CONN_WORKSPACE_DEFAULT")
    path = "/api/projects/{project_id}/batch_exports/{batch_export_id}/unpause/"
    sandbox.move("unpause_batch_export", path)
    connection = sandbox.connection(paths={"UnpauseBatchExport": path})
    assert airflow("connections", "add", "workspace_default", "--conn-json", connection).returncode == 0

    run = airflow("workspace", "windows")
    assert run.returncode == 1, "a lease is unreadable"
    assert "abandoned: its run is gone  seen paused  owner data-team" in run.stdout, run.stderr
    assert f"run '{COMMAND} resume {other}' first, then delete the Variable '{unreadable}'" in run.stdout
    said = airflow("workspace", "windows", "--output", "json").stdout
    found = json.loads(said[said.index("{\n") :])  # Airflow 3.2 logs to standard output
    (listed,) = found["leases"]
    assert (listed["batch_export_id"], listed["state"], listed["abandoned"]) == (export_id, "paused", "its run is gone")
    assert sorted(found["unreadable"]) == sorted(broken)
    assert found["last_sweep"].startswith("2026-09-21T14:14:20")

    window = "nightly / gone / window.close"
    run = airflow("workspace", "resume", export_id)
    assert run.returncode == 1
    assert "A maintenance window holds batch export" in run.stderr
    assert f"delete the Variable '{key}' first" in run.stderr
    assert f"batch export {export_id}, so nothing was sent" in run.stderr
    assert airflow("workspace", "windows", "--resume").returncode == 2
    run = airflow("workspace", "sweep", "--dry-run", "--kinds", "windows")
    assert run.returncode == 1, "unreadable leases are left"
    plan = f"Window {window} (abandoned: its run is gone): would resume {export_id}."
    assert plan in run.stdout, run.stderr
    assert effects(sandbox) == ["pause_batch_export"]
    run = airflow("workspace", "sweep")
    assert run.returncode == 1, run.stderr
    assert f"Window {window} (abandoned: its run is gone): resumed {export_id}; seen running {export_id}." in run.stdout
    assert effects(sandbox) == ["pause_batch_export", "unpause_batch_export"]
    run = airflow("workspace", "resume", other)
    assert run.returncode == 0, run.stderr
    assert run.stdout.endswith(f"Resumed batch export {other}.\n")
    for name in broken:
        assert airflow("variables", "delete", name).returncode == 0
    run = airflow("workspace", "sweep")
    assert (run.returncode, run.stdout.splitlines()[-1]) == (0, "Nothing is due."), run.stderr
    listed = airflow("workspace", "windows").stdout
    assert NO_WINDOW in listed
    assert "Last sweep: 20" in listed
    assert listed.endswith(", 0 min ago.\n"), "a sweep by command counts"
    resumed = [request["path"] for request in sandbox.requests() if request["path"].endswith("/unpause/")]
    assert resumed == [path.format(project_id=1, batch_export_id=export) for export in (export_id, other)]
    assert "EXPORT_ID: expected a UUID, not 'all'" in airflow("workspace", "resume", "all").stderr


@pytest.mark.needs_airflow("3.3", "notes of access")
def test_plan_knows_the_grants_and_decisions_in_airflows_database(
    airflow: Airflow,
    airflow_cli: AirflowCli,
    migrated_database: Path,
    sandbox: SandboxServer,
    connect: Connect,
    tmp_path: Path,
) -> None:
    connect()
    mina, adam = "mina.member@example.com", "adam.admin@example.com"
    place = {"service": sandbox.url, "organization_id": SEED.organization_id, "until": "2999-01-01T00:00:00Z"}
    values = dict(
        [
            grants.variable(**place, user_email=mina, user_uuid=SEED.member_uuid),
            decision_notes.variable({"user_uuid": SEED.admin_uuid, "level": 1}, **place),
        ]
    )
    airflow_cli.migrated_home(tmp_path, migrated_database, values)
    with closing(WorkspaceHook()) as hook:
        hook.update_member(user_uuid=SEED.member_uuid, level=8)
        hook.update_member(user_uuid=SEED.admin_uuid, level=1)
    roster = tmp_path / "team.csv"
    roster.write_text(f"email,level\nolive.owner@example.com,15\n{adam},8\n{mina},1\n")
    run = airflow("workspace", "plan", str(roster), "--max-removals", "5")
    assert run.returncode == 2, run.stderr
    temporary = "level: 8, temporary: admin (8) until 2999-01-01T00:00:00.000Z, approved by ruth"
    assert re.search(rf"person {mina} \(Mina Member\) +later: {re.escape(temporary)}", run.stdout)
    assert re.search(
        rf"person {adam} \(Adam Admin\) +by hand: level: 1 -> 8, ruth lowered them to member \(1\)", run.stdout
    )
    assert effects(sandbox) == ["update_member"] * 2


@pytest.mark.per_airflow
@pytest.mark.slow
def test_grants_lists_temporary_access_and_the_sweep_ends_it(  # noqa: PLR0915 - each command starts Airflow
    airflow: Airflow,
    airflow_cli: AirflowCli,
    migrated_database: Path,
    sandbox: SandboxServer,
    connect: Connect,
    tmp_path: Path,
) -> None:
    connect()
    airflow_cli.migrated_home(tmp_path, migrated_database)
    assert airflow("workspace", "grants").stdout == "No active grants.\n"
    mina, noah = "mina.member@example.com", "noah.newton@example.com"
    task = {"dag_id": "access", "run_id": "manual__1", "task_id": "grant"}
    place = {
        "service": sandbox.url,
        "organization_id": sandbox.seed.organization_id,
        "workspace_conn_id": "workspace_default",
    }
    terms = {"then": 1, "since": "2026-01-01T00:00:00Z", "reason": "audit", "requested_by": "ruth"}
    values = {}
    for email, until in ((mina, "2026-02-01T00:00:00Z"), (noah, "2999-01-01T00:00:00Z")):
        person = digest(sandbox.url, sandbox.seed.organization_id, email)
        key = f"workspace_grant.{person}.{digest(*task.values(), '-1')}"
        values[key] = json.dumps({**task, **place, **terms, "user_email": email, "level": 8, "until": until})
    airflow_cli.migrated_home(tmp_path, migrated_database, values)
    with closing(WorkspaceHook()) as hook:
        hook.update_member(user_uuid=sandbox.seed.member_uuid, level=8)
    run = airflow("workspace", "grants")
    since = "level 8 since 2026-01-01T00:00:00Z until"
    serves = "asked by ruth: audit (access / manual__1 / grant)"
    assert run.stdout.splitlines()[-2:] == [
        f"OVERDUE  {mina}  {since} 2026-02-01T00:00:00Z, then 1  {serves}",
        f"{noah}  {since} 2999-01-01T00:00:00Z, then 1  {serves}",
    ]
    assert run.returncode == 2, run.stderr
    run = airflow("workspace", "sweep", "--protected", mina)
    assert run.returncode == 1
    assert "Set level 1 by hand, or delete the Variable" in run.stderr
    assert "grants: " in run.stderr
    assert run.stdout == "", "what is left is due"
    run = airflow("workspace", "sweep", "--dry-run")
    assert run.returncode == 0, run.stderr
    assert f"Would end: {mina}: member {mina}: level: 8 -> 1" in run.stdout
    ended = tmp_path / "ended"
    run = airflow("workspace", "sweep", "--kinds", "grants", "--evidence", str(ended), "-o", "json")
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout[run.stdout.index("{\n") :])
    assert list(found) == ["grants"]
    assert found["grants"]["active"] == 1
    (row,) = found["grants"]["ended"]
    assert row["user_email"] == mina
    (file,) = ended.iterdir()
    assert row["evidence"] == str(file)
    record = json.loads(file.read_text())
    assert record["user_email"] == mina
    assert record["requested_by"] == "ruth"
    assert record["proof"]["level"] == 1
    assert record["ended_by"].endswith(f" ({COMMAND} sweep)")
    assert noah in airflow("workspace", "grants").stdout
    assert effects(sandbox) == ["update_member"] * 2
    assert "--dry-run is for access that ends early. Add --end" in airflow("workspace", "grants", "--dry-run").stderr
    with closing(WorkspaceHook()) as hook:
        hook.update_member(user_uuid=sandbox.seed.absent_uuid, level=8)
    run = airflow("workspace", "grants", "--end", noah, "--dry-run")
    assert run.returncode == 0, run.stderr
    assert f"Would end: {noah}: member {noah}: level: 8 -> 1" in run.stdout
    run = airflow("workspace", "grants", "--end", noah, "--organization-id", "another")
    assert run.returncode == 1
    assert "no temporary access is noted for noah" in run.stderr
    run = airflow("workspace", "grants", "--end", noah, "--evidence", str(ended), "-o", "json")
    found = json.loads(run.stdout[run.stdout.index("{\n") :])
    (row,) = found["ended"]
    assert f"({COMMAND} grants)" in row["ended_by"]
    assert json.loads(Path(row["evidence"]).read_text())["ended_early_by"] == row["ended_by"]
    assert len(list(ended.iterdir())) == 2
    assert airflow("workspace", "grants").stdout == "No active grants.\n"
    assert effects(sandbox) == ["update_member"] * 4
    assert airflow("variables", "set", key, "{").returncode == 0
    run = airflow("workspace", "grants")
    assert run.returncode == 1
    assert f"The grant in Variable '{key}' cannot be read" in run.stdout
    run = airflow("workspace", "sweep")
    assert run.returncode == 1
    assert f"The grant in Variable '{key}' cannot be read" in run.stderr


def test_decisions_lists_what_reviews_decided_and_lifts_it(
    airflow: Airflow, airflow_cli: AirflowCli, migrated_database: Path, sandbox: SandboxServer, tmp_path: Path
) -> None:
    people = [
        {"email": "noah@example.com", "user_uuid": "n", "level": None},
        {"email": "adam@example.com", "level": 1},
    ]
    place = {"service": sandbox.url, "organization_id": sandbox.seed.organization_id}
    values = dict(
        [
            decision_notes.variable(*people, **place, run_id=run_id, until=until)
            for run_id, until in (("run", "2999-01-01T00:00:00Z"), ("old", "2026-10-02T00:00:00Z"))
        ]
    )
    values |= [decision_notes.variable(people[1], **place | {"organization_id": "another"})]
    airflow_cli.migrated_home(tmp_path, migrated_database, values)
    run = airflow("workspace", "decisions")
    assert run.returncode == 0, run.stderr
    removed = "ruth removed them in access review autumn (2026-10-01)"
    noah = f"noah@example.com  no access until 2999-01-01T00:00:00Z  {removed}"
    adam = "adam@example.com  at most member (1) until"
    assert noah in run.stdout.splitlines()
    assert f"EXPIRED  {adam} 2026-10-02T00:00:00Z" in run.stdout
    why = ("--reason", "HR has the exception")
    for arguments, expected in (
        (("--lift", "noa@example.com", *why), "No decision about noa@example.com."),
        (("--lift", "adam@example.com", *why), f"in 2 organizations. Name one: {place['organization_id']}, another"),
        (("--lift", "noah@example.com"), "reason must have 1 to 500 characters, not 0"),
        (why, "--reason is for a decision that is lifted. Add --lift"),
    ):
        run = airflow("workspace", "decisions", *arguments)
        assert (run.returncode, expected in run.stderr) == (1, True), run.stderr
    run = airflow("workspace", "decisions", "--lift", "Noah@example.com", *why)
    lifted = rf"{re.escape(removed)}, lifted by \S+ \({COMMAND} decisions\) at [\dT:-]+Z: HR has the exception"
    assert len(re.findall(f"^Lifted: noah@example.com: {lifted}$", run.stdout, re.MULTILINE)) == 2
    table = airflow("workspace", "decisions").stdout
    until = "no access until 2999-01-01T00:00:00Z"
    assert re.search(f"^LIFTED  noah@example.com  {until}  {lifted}$", table, re.MULTILINE)
    found = json.loads(airflow("workspace", "decisions", "-o", "json").stdout)
    here = [review for review in found["reviews"] if review["organization_id"] != "another"]
    assert len(here) == 2
    for review in here:
        assert [(person["email"], "lifted" in person) for person in review["people"]] == [
            ("noah@example.com", True),
            ("adam@example.com", False),
        ]
    assert sorted(review["expired"] for review in here) == [False, True]


@pytest.mark.per_airflow
@pytest.mark.slow
def test_the_plan_of_an_organization_file_has_its_changes_or_names_the_line(
    airflow: Airflow,
    airflow_cli: AirflowCli,
    migrated_database: Path,
    sandbox: SandboxServer,
    connect: Connect,
    tmp_path: Path,
) -> None:
    connect()
    airflow_cli.migrated_home(tmp_path, migrated_database)
    file = tmp_path / "organization.yaml"
    file.write_text("projects: [{name: Northwind, timezone: UTC}]")
    run = airflow("workspace", "plan", file)
    assert run.returncode == 2, run.stdout + run.stderr
    assert re.search(r"^  \+ project Northwind +timezone: UTC$", run.stdout, re.MULTILINE)
    file.write_text("projects:\n  - nam: Northwind")
    run = airflow("workspace", "plan", file)
    assert run.returncode == 1
    assert "line 2: projects.0.nam: unknown field (did you mean 'name'?)" in run.stderr
    file.write_text("organizations:\n  north: {projects: []}\n  south: {projects: []}")
    run = airflow("workspace", "plan", file, "--organization-id", sandbox.seed.organization_id)
    assert run.returncode == 1
    assert f"{file} describes 2 organizations. Leave out --organization-id" in run.stderr
    assert {entry["method"] for entry in sandbox.requests()} == {"GET"}
