"""
Every fenced block of the README and the documentation runs as printed, with the files that its page gives.

What cannot run here is listed with the reason, and what another test runs with that test.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from airflow.sdk import DAG, BaseOperator, BaseSensorOperator

from airflow_provider_workspace.cli.definition import get_workspace_commands
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.operators.members import WorkspaceSyncMembersOperator
from airflow_provider_workspace.operators.organization import (
    WorkspaceApplyOrganizationOperator,
    WorkspacePlanOrganizationOperator,
)
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.sandbox.server import SandboxServer
from airflow_provider_workspace.triggers.workspace import WorkspaceArrivalTrigger
from airflow_provider_workspace.version_compat import AirflowFailException
from tests import decision_notes, grant_notes
from tests.audit import effects
from tests.dag_bag import DagBag
from tests.dags.human import api_server, approving
from tests.docs.blocks import BLOCKS, PAGES, ROOT, Block, before, in_language, the, write_files
from tests.variables import install

if TYPE_CHECKING:
    from tests.airflow_cli import AirflowCli
    from tests.conftest import Connect


def whole(page: str, dag_id: str) -> Block:
    """Return the block of a page that defines a Dag."""
    (found,) = [block for block in in_language("python", page) if f"\ndef {dag_id}(" in block.text]
    return found


# Blocks that another test runs, and that nothing can run here

REVIEWS = "tests/unit/operators/test_access_review.py"
ELSEWHERE = {
    the("README.md", "make demo"): "tests/e2e/test_demo.py",
    the("guides/pull-request.md", "on: pull_request"): "tests/docs/test_pull_request.py",
    the("guides/access-review.md", "access-reviews/"): REVIEWS,
    the("guides/access-review.md", "sha256sum"): REVIEWS,
    the("guides/status-page.md", "{"): "tests/unit/ui/test_model.py",
    the("guides/members.md", "- invite"): "tests/unit/operators/test_renewals.py",
    # The exports of directories, each with the arguments that read it.
    **{
        block: "tests/unit/operators/test_roster_door.py"
        for block in in_language("text", "guides/rosters.md")
        if not block.text.startswith("email,level,until")
    },
}
CANNOT_RUN = {
    the("README.md", "# Your versions of Airflow"): "installs from a package index",
    the("quickstart.md", "pip install"): "installs from a package index",
    the("production.md", "FROM apache/airflow"): "needs Docker",
    the("guides/access-review.md", "jq"): "needs a review that people have answered",
    the("guides/status-page.md", "airflow roles"): "needs the FAB auth manager",
    the("migrating.md", "import json"): "needs apache-airflow-providers-http",
    the("guides/events.md", "Watching"): "needs a watcher that has run for an hour",
}
# They are parsed.
CANNOT_RUN_ON = {
    the(
        "guides/catch-up.md", "from airflow_provider_workspace.operators.catch_up import"
    ): "needs runs since a day in the text",
    the("operators/catch-up.md", "WorkspaceCatchUpOperator(\n"): "needs runs since a day in the text",
    the("sensors.md", "WorkspaceBatchExportCompleteSensor(\n"): "needs runs of an export",
    whole("guides/access-review.md", "review_access"): "needs an object store and a reviewer",
    whole("guides/approve.md", "sync_with_approval"): "asks people by their names",
    whole("guides/approve.md", "onboard_with_approval"): "needs an object store, and asks a person by name",
    whole("guides/temporary-access.md", "give_access"): "asks people by their names",
    whole("guides/who-decides.md", "lift_decision"): "needs a decision of a review",
}

# The others, by what runs them

PYTHON = [block for block in in_language("python") if block not in CANNOT_RUN]
DAGS = [block for block in PYTHON if "@dag(" in block.text and block.page != "testing.md"]
TESTS = [block for block in PYTHON if "def test_" in block.text or block.page == "testing.md"]
SNIPPETS = [block for block in PYTHON if block not in (*DAGS, *TESTS)]

SHELL = [block for block in in_language("shell") if block not in (*ELSEWHERE, *CANNOT_RUN)]
EXPORTS = [block for block in SHELL if "export AIRFLOW_CONN" in block.text]
COMMANDS = [block for block in SHELL if block not in EXPORTS]
PRINTED = {
    the("cli.md", "airflow workspace whoami"): the("cli.md", "The service"),
    the("endpoints.md", "airflow workspace ping"): the("endpoints.md", "The service"),
    the("guides/organization-file.md", "airflow workspace plan"): the("guides/organization-file.md", "Organization"),
}

ORGANIZATIONS = [block for block in in_language("yaml") if block not in (*ELSEWHERE, *CANNOT_RUN)]
ROSTERS = [block for block in in_language("text") if block.text.startswith("email,")]
CONNECTION = the("connection.md", '{\n  "conn_type"')
EXTRAS = [the("connection.md", '{"paths"'), the("guides/bulk-invites.md", '{"invites_per_hour"')]
DRY_RUN = the("operators/index.md", '{\n  "dry_run"')
REPORT_OF_INVITES = the("guides/bulk-invites.md", '{\n  "counts"')
EVENT = the("guides/events.md", '{\n  "what"')
PLAN_OF_MEMBERS = the("guides/members.md", "The lists were read")
MISTAKES = the("organization-file-format.md", "Correct")
AUDIT_LINE = the("faults.md", "operation=CreateInvites")

RUN = [
    *(*DAGS, *TESTS, *SNIPPETS, *EXPORTS, *COMMANDS, *PRINTED.values(), *ORGANIZATIONS, *ROSTERS, *EXTRAS),
    *(CONNECTION, DRY_RUN, REPORT_OF_INVITES, EVENT, PLAN_OF_MEMBERS, MISTAKES, AUDIT_LINE),
]


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_a_block_is_run_or_listed(block: Block) -> None:
    ways = [*RUN, *ELSEWHERE, *CANNOT_RUN].count(block)
    assert ways == 1, f"{block}: run this block in {Path(__file__).name}, or list it with the reason why nothing can"


@pytest.mark.parametrize("test", sorted({*ELSEWHERE.values()}))
def test_the_other_tests_exist(test: str) -> None:
    assert (ROOT / test).exists()


def test_languages_have_one_name_each() -> None:
    languages = {block.language for block in BLOCKS}
    assert languages == {"python", "shell", "text", "json", "yaml", "dockerfile"}


# Python


def dags() -> Iterator[Any]:
    """Return the Dags, those of a newer Airflow with what they need of it."""
    needs = {
        the("guides/catch-up.md", "from airflow.sdk import Asset, DayWindow"): "windows of partitioned assets",
        the("guides/temporary-access.md", "from datetime"): "temporary access",
    }
    for block in DAGS:
        marks = [pytest.mark.needs_airflow("3.3", needs[block])] if block in needs else []
        yield pytest.param(block, marks=marks, id=str(block))


@pytest.mark.parametrize("block", [*dags()])
def test_a_dag_loads(tmp_path: Path, block: Block) -> None:
    (tmp_path / "shown.py").write_text(block.text)
    bag = DagBag(tmp_path)
    assert not bag.import_errors
    assert len(bag.dags) == 1


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module in which the snippets of a page run."""
    module = ModuleType("shown")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # pydantic looks for the module of a class
    return module


def tasks_of(block: Block, module: ModuleType) -> list[BaseOperator]:
    """Run a snippet and return the tasks that it defines."""
    with DAG("shown", schedule=None) as dag:
        exec(compile(block.text, str(block), "exec"), vars(module))  # noqa: S102 - that is what this is for
    return list(dag.tasks)


@pytest.mark.parametrize("sandbox", ["live"], indirect=True)
@pytest.mark.parametrize("page", sorted({block.page for block in SNIPPETS}))
def test_snippets_run_with_the_documented_requests(
    connect: Connect, page: str, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, shown: ModuleType
) -> None:
    """Those of a page run in order in one namespace. Their tasks are executed; sensors poll once."""
    connect(key=SEED.session_key)
    variables = install(monkeypatch)
    if page == "guides/catch-up.md":
        sandbox.play_runs()
    if page == "operators/access-review.md":
        variables.values |= decision(sandbox.url)
    for block in (block for block in SNIPPETS if block.page == page):
        before = len(sandbox.requests())
        for task in tasks_of(block, shown):
            if block in CANNOT_RUN_ON:
                continue
            if isinstance(task, BaseSensorOperator):
                assert task.poke({}) is not None
                continue
            if hasattr(task, "require_approval"):
                task.require_approval = False  # nobody answers here
            task.execute({})
        section = PAGES[page].partition(block.text)[2]
        requests = re.match(r"[^#]*?^- \*\*Requests\*\*: (\d+)", section, re.DOTALL | re.MULTILINE)
        if requests:
            assert len(sandbox.requests()) - before == int(requests[1]), str(block)


def test_a_dry_run_returns_what_is_shown(connect: Connect, shown: ModuleType) -> None:
    connect()
    (task,) = tasks_of(before(DRY_RUN), shown)
    assert task.execute({}) == json.loads(DRY_RUN.text)


@pytest.mark.needs_airflow("3.2", "the module of exceptions that a page imports")
@pytest.mark.per_airflow
@pytest.mark.slow
def test_the_tests_of_the_pages_pass(airflow_cli: AirflowCli, tmp_path: Path) -> None:
    """In one project, with its conftest.py; without complete Dag runs, which tests/e2e/test_wheel.py has."""
    for block in TESTS:
        name = block.file or f"tests/test_{Path(block.page).stem}_{block.line}.py".lower()
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(block.text)
    assert len(DagBag(tmp_path / "dags").dags) == 1
    tests = re.findall(r"^def test_\w+\((.*)\)", "\n".join(block.text for block in TESTS), re.MULTILINE)
    with_runs = [arguments for arguments in tests if "dags" in arguments]
    output = airflow_cli.run_tests(tmp_path, "-k", "not (a_run or second_run_changes or fails_the_run)")
    assert f"{len(tests) - len(with_runs)} passed, {len(with_runs)} deselected" in output


# Data


@pytest.mark.parametrize("block", ORGANIZATIONS, ids=str)
def test_an_organization_file_is_valid(block: Block, connect: Connect, tmp_path: Path) -> None:
    connect()
    path = tmp_path / "northwind.yaml"
    path.write_text(block.text)
    name = next(iter(yaml.safe_load(block.text).get("organizations", [None])))
    apply = WorkspaceApplyOrganizationOperator(
        task_id="apply", part="exports", file=str(path), organization=name, dry_run=True
    )
    assert apply.execute({})["changes"] == []


def plan_of(roster: Path) -> dict[str, Any]:
    """Return what the member sync of the guide would do with a roster."""
    protected = ["olive.owner@example.com"]
    sync = WorkspaceSyncMembersOperator(
        task_id="members", path=str(roster), protected=protected, max_removals=5, dry_run=True
    )
    plan: dict[str, Any] = sync.execute({})
    return plan


@pytest.mark.parametrize("block", ROSTERS, ids=str)
def test_a_roster_is_read(connect: Connect, tmp_path: Path, block: Block) -> None:
    connect()
    roster = tmp_path / "members.csv"
    roster.write_text(block.text)
    assert plan_of(roster)["changes"]


def test_the_plan_of_a_roster_is_what_is_shown(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    connect()
    install(monkeypatch)
    write_files(PLAN_OF_MEMBERS.page, tmp_path)
    assert plan_of(tmp_path / "data" / "members.csv")["table"] == PLAN_OF_MEMBERS.text.rstrip()


def test_mistakes_are_reported_as_shown(connect: Connect, tmp_path: Path) -> None:
    connect()
    valid = before(MISTAKES).text
    invalid = valid.replace("    dashboards:", "    timezon: Europe/Berlin\n    dashboards:").replace("ada@", "ada@@")
    (tmp_path / "northwind.yaml").write_text(invalid)
    plan = WorkspacePlanOrganizationOperator(task_id="plan", file=str(tmp_path / "northwind.yaml"))
    with pytest.raises(AirflowFailException) as error:
        plan.execute({})
    assert MISTAKES.text.rstrip() in str(error.value)


@pytest.mark.parametrize("block", EXTRAS, ids=str)
def test_an_extra_of_the_connection_is_valid(connect: Connect, block: Block) -> None:
    connect(**json.loads(block.text))
    with WorkspaceHook() as hook:
        assert hook.get_project(project_id=1).name


def in_a_shell(block: Block) -> str:
    """Return the connection that a block of a shell exports."""
    script = f'{block.text}\nprintf %s "$AIRFLOW_CONN_WORKSPACE_DEFAULT"'
    return subprocess.run(["/bin/sh", "-ec", script], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("block", [CONNECTION, *EXPORTS], ids=str)
def test_a_connection_is_valid(monkeypatch: pytest.MonkeyPatch, block: Block) -> None:
    text = block.text if block.language == "json" else in_a_shell(block)
    monkeypatch.setenv("AIRFLOW_CONN_WORKSPACE_DEFAULT", re.sub("<personal( |%20)API( |%20)key>", "a-key", text))
    with WorkspaceHook() as hook:
        assert hook.organization_or_default() == SEED.organization_id
        assert hook.project_or_default() == "1"


def test_a_report_of_invites_is_what_is_shown(connect: Connect) -> None:
    """The list of addresses is shown only in part, and each run has another id."""
    connect()
    rows = ["ada@example.com", "liv.invited@example.com", "mina.member@example.com"]
    report = WorkspaceCreateInvitesOperator(task_id="invites", invites=rows).execute({})
    expected = json.loads(REPORT_OF_INVITES.text)
    assert report["counts"] == expected["counts"]
    addresses = report["addresses"][: len(expected["addresses"])]
    for address, shown_address in zip(addresses, expected["addresses"], strict=True):
        assert address | {"invite_id": shown_address["invite_id"]} == shown_address


def wait_for_request(sandbox: SandboxServer) -> None:
    while not sandbox.requests():
        time.sleep(0.02)


def test_an_event_has_the_shown_payload(sandbox: SandboxServer, connect: Connect) -> None:
    """Two projects may come in one event or in two, with other ids."""
    connect()
    names = ("Northwind", "Southwind")

    async def watch() -> list[dict[str, Any]]:
        trigger = WorkspaceArrivalTrigger(what="project", poll_interval=0.1)
        payloads: list[dict[str, Any]] = []

        async def listen() -> None:
            async for event in trigger.run():
                payloads.append(event.payload)
                if sum(len(payload["rows"]) for payload in payloads) == len(names):
                    return

        listening = asyncio.create_task(listen())
        await asyncio.to_thread(wait_for_request, sandbox)
        for name in names:
            await asyncio.to_thread(WorkspaceHook().create_project, name=name)
        await asyncio.wait_for(listening, 30)
        return payloads

    first, *others = asyncio.run(watch())
    rows = [row for payload in (first, *others) for row in payload["rows"]]
    expected = json.loads(EVENT.text)
    assert first | {"rows": []} == expected | {"rows": []}
    assert [row["name"] for row in rows] == [row["name"] for row in expected["rows"]]
    assert all(row.keys() == {"id", "name"} and isinstance(row["id"], str) for row in [*rows, *expected["rows"]])


def test_a_write_adds_the_shown_line_to_the_log(connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    connect()
    rows = [f"person-{number}@example.com" for number in range(20)]
    with caplog.at_level(logging.INFO, "airflow_provider_workspace.audit"):
        WorkspaceCreateInvitesOperator(task_id="invites", invites=rows).execute({})
    (line,) = [record.getMessage() for record in caplog.records if record.name == "airflow_provider_workspace.audit"]
    expected = " ".join(AUDIT_LINE.text.split()).replace("0190c0de-…", SEED.organization_id)
    assert re.sub(r"seconds=[\d.]+", "seconds=0.105", line) == expected


# Commands


def commands_of(block: Block) -> list[str]:
    """Return the commands of a block, one a line."""
    lines = block.text.replace("\\\n", " ").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


WORKSPACE = re.compile(r"(?:airflow workspace|python -m airflow_provider_workspace) ([a-z]+)([^`\n]*)")


@pytest.mark.parametrize("page", [page for page, text in PAGES.items() if WORKSPACE.search(text)])
def test_commands_and_their_options_exist(page: str) -> None:
    """In blocks and in sentences."""
    commands = {command.name: command for command in get_workspace_commands()[0].subcommands}
    for name, rest in WORKSPACE.findall(PAGES[page]):
        assert name in commands, f"{page}: airflow workspace {name}"
        options = {flag for argument in commands[name].args for flag in argument.flags}
        assert {*re.findall(r"(?<=\s)--?[a-z][\w-]*", rest)} <= options, f"{page}: airflow workspace {name}{rest}"


SANDBOX = "python -m airflow_provider_workspace.sandbox"


class Terminal:
    """A shell in a folder with the files of a page, the examples and a migrated database of Airflow."""

    def __init__(self, airflow_cli: AirflowCli, home: Path, folder: Path, url: str) -> None:
        self.airflow_cli = airflow_cli
        self.home = home
        self.folder = folder
        self.url = url

    def run(self, command: str) -> str:
        """Run a command and return its output; the exit status of a plan says whether something differs."""
        if command.startswith(SANDBOX) and "--faults" not in command:
            return self.start_sandbox(command)
        command, _, file = command.partition(" >")
        words = shlex.split(command)
        if words[0] == "airflow":
            dags = {"AIRFLOW__CORE__DAGS_FOLDER": str(self.folder)}
            run = self.airflow_cli.run(*words[1:], home=self.home, cwd=self.folder, **dags)
        else:
            run = self.run_in_shell(command)
        assert run.returncode in ((0, 2) if "plan" in words else (0,)), f"{command}: {run.stdout}{run.stderr}"
        if file:
            (self.folder / file).write_text(run.stdout)
        return run.stdout

    def run_in_shell(self, command: str) -> subprocess.CompletedProcess[str]:
        command = re.sub("^python ", f"{shlex.quote(sys.executable)} ", command)
        command = re.sub("^curl ", "curl --silent --fail --noproxy '*' ", command)
        command = command.replace("http://127.0.0.1:8765", self.url).replace("/ID/", f"/{SEED.invite_id}/")
        command = command.replace("/EXPORT", f"/{SEED.batch_export_ids[0]}")
        author = {f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        return subprocess.run(
            ["/bin/sh", "-ec", command],
            cwd=self.folder,
            env={**os.environ, **author},
            capture_output=True,
            text=True,
            check=False,
        )

    def start_sandbox(self, command: str) -> str:
        """Start a sandbox on a free port, and stop it when it runs."""
        arguments = shlex.split(command.replace("8765", "0"))[1:]
        with subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            line = process.stdout.readline()
            process.terminate()
        assert line.startswith("Workspace sandbox on http://127.0.0.1:"), line
        return line


@pytest.fixture
def terminal(
    airflow_cli: AirflowCli, migrated_database: Path, tmp_path: Path, sandbox: SandboxServer, connect: Connect
) -> Terminal:
    connect()
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "example_dags").symlink_to(ROOT / "example_dags")
    (folder / "data").mkdir()
    for file in (ROOT / "example_dags" / "data").iterdir():
        (folder / "data" / file.name).write_text(file.read_text())
    airflow_cli.migrated_home(tmp_path / "airflow", migrated_database)
    return Terminal(airflow_cli, tmp_path / "airflow", folder, sandbox.url)


def decision(service: str) -> dict[str, str]:
    """Return the Variable of a review that has removed Noah."""
    person = {"email": "noah.newton@example.com", "level": None}
    return dict([decision_notes.variable(person, service=service, organization_id=SEED.organization_id)])


def grant(service: str) -> dict[str, str]:
    """Return the Variable of a grant to Mina."""
    mina = {"user_email": "mina.member@example.com", "user_uuid": SEED.member_uuid}
    place = {"service": service, "organization_id": SEED.organization_id}
    return dict([grant_notes.variable(**place, **mina, until="2999-01-01T00:00:00Z")])


# What stands in Airflow before the commands of a page.
NOTED: dict[str, Callable[[str], dict[str, str]]] = {
    "guides/access-review.md": decision,
    "guides/temporary-access.md": grant,
}


def masked(output: str) -> str:
    """Replace what differs from run to run, and the ends of lines."""
    output = re.sub(r"https?://[\w.]+(:\d+)?", "http://HOST", output)
    return " ".join(re.sub(r"\d+ ms", "N ms", output).split())


@pytest.mark.needs_airflow("3.2", "commands of providers")
@pytest.mark.per_airflow
@pytest.mark.slow
@pytest.mark.parametrize("sandbox", ["live"], indirect=True)
@pytest.mark.parametrize("page", sorted({block.page for block in COMMANDS} - {"quickstart.md"}))
def test_commands_run_and_print_what_is_shown(
    terminal: Terminal, page: str, sandbox: SandboxServer, migrated_database: Path
) -> None:
    write_files(page, terminal.folder)
    if page in NOTED:
        terminal.airflow_cli.migrated_home(terminal.home, migrated_database, NOTED[page](sandbox.url))
    if page == "guides/audits.md":
        terminal.run("git init --quiet")
        terminal.run("touch organization.yaml")
        terminal.run("git add organization.yaml")
    for block in (block for block in COMMANDS if block.page == page):
        output = "".join(terminal.run(command) for command in commands_of(block))
        assert sandbox.seed.admin_key not in output
        if block in PRINTED:
            assert masked(PRINTED[block].text) in masked(output)


# Whole runs of Dags


def claim(sandbox: SandboxServer, domain: str) -> None:
    """Claim a domain and publish its challenge, for which a Dag would wait."""
    with WorkspaceHook() as hook:
        challenge = hook.create_domain(domain=domain).verification_challenge
    sandbox.publish_dns(f"_workspace-challenge.{domain}", str(challenge))


def join(sandbox: SandboxServer, *emails: str) -> None:
    """Let people join, for whom a Dag would wait."""
    with WorkspaceHook() as hook:
        for email in emails:
            sandbox.accept_invite(str(hook.create_invite(target_email=email).id))


# What people do outside of Airflow while a Dag waits for it; here they do it first.
DONE_BEFORE: dict[str, Callable[[SandboxServer], None]] = {
    "README.md": lambda sandbox: claim(sandbox, "northwind.example.com"),
    "assistants.md": lambda sandbox: claim(sandbox, "team.example.com"),
    "guides/catch-up.md": lambda sandbox: sandbox.play_runs(history_hours=48, jitter_seconds=0, run_seconds=0),
    "guides/organization-file.md": lambda sandbox: claim(sandbox, "northwind.example.com"),
    "guides/waiting.md": lambda sandbox: join(sandbox, "ada@example.com", "lin@example.com"),
}


@pytest.fixture(scope="module")
def unlimited() -> Iterator[SandboxServer]:
    """A sandbox without limits of requests: 150 people are invited at once."""
    with SandboxServer(rate_limit=False) as server:
        yield server


@pytest.fixture(scope="module")
def answered(
    airflow_cli: AirflowCli, migrated_database: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """AIRFLOW_HOME of Dags whose questions are answered."""
    home = tmp_path_factory.mktemp("answered")
    airflow_cli.migrated_home(home, migrated_database)
    with api_server(airflow_cli, home) as url, approving(url):
        yield home


@pytest.fixture
def home(airflow_cli: AirflowCli, migrated_database: Path, tmp_path: Path) -> Path:
    """AIRFLOW_HOME of one Dag: Variables remember the dashboards of another one."""
    home = tmp_path / "airflow"
    airflow_cli.migrated_home(home, migrated_database)
    airflow_cli.preload_dag_test()
    return home


def asks(block: Block) -> bool:
    return "require_approval=True" in block.text


ANSWERS = pytest.mark.needs_airflow("3.3", "a person's answer to `airflow dags test`")
DAGS_TO_RUN = [
    pytest.param(block, marks=[ANSWERS] if asks(block) else [], id=str(block))
    for block in DAGS
    if block not in CANNOT_RUN_ON and block.page != "quickstart.md"
]


@pytest.mark.per_airflow
@pytest.mark.slow
@pytest.mark.parametrize("block", DAGS_TO_RUN)
def test_a_dag_runs(
    request: pytest.FixtureRequest,
    airflow_cli: AirflowCli,
    home: Path,
    unlimited: SandboxServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    block: Block,
) -> None:
    unlimited.reset()
    connection = unlimited.connection(consistency_time=2)
    for name in ("DEFAULT", "STAGING", "PRODUCTION"):
        monkeypatch.setenv(f"AIRFLOW_CONN_WORKSPACE_{name}", connection)
    research = unlimited.connection(SEED.research_key, organization_id=SEED.other_organization_id)
    monkeypatch.setenv("AIRFLOW_CONN_WORKSPACE_RESEARCH", research)
    monkeypatch.setenv("AIRFLOW_VAR_ORGANIZATION_IDS", json.dumps([SEED.organization_id]))
    dags = tmp_path / "dags"
    dags.mkdir()
    monkeypatch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(dags))
    write_files(block.page, dags)
    (dags / "shown.py").write_text(block.text)
    DONE_BEFORE.get(block.page, lambda _: None)(unlimited)
    (dag_id,) = re.findall(r"^@dag\(.*?\)\ndef (\w+)", block.text, re.MULTILINE | re.DOTALL)
    if asks(block):
        home = request.getfixturevalue("answered")
    run = airflow_cli.run("dags", "test", dag_id, home=home, cwd=dags)
    assert run.returncode == 0, (run.stdout + run.stderr)[-5000:]


@pytest.mark.per_airflow
@pytest.mark.slow
@pytest.mark.parametrize("sandbox", ["live"], indirect=True)
def test_two_runs_of_the_quick_start_have_the_documented_effects(terminal: Terminal, sandbox: SandboxServer) -> None:
    (dag,) = [block for block in DAGS if block.page == "quickstart.md"]
    (terminal.folder / "hello_workspace.py").write_text(dag.text)
    terminal.airflow_cli.preload_dag_test()
    output = ""
    for block in (block for block in COMMANDS if block.page == dag.page):
        output += "".join(terminal.run(command) for command in commands_of(block))
    assert effects(sandbox) == ["create_project", "create_invite", "create_invite"]
    logged = re.findall(r"`(\w[^`]* (?:invited|'Northwind'\.))`", PAGES[dag.page])
    assert len(logged) == 3
    for line in logged:
        assert line in output
