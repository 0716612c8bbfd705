"""What imports cost: what Airflow loads for others must not load what only few need."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.classes import modules

PACKAGE = "airflow_provider_workspace"
TASKS = [*modules("operators"), *modules("sensors"), *modules("triggers"), f"{PACKAGE}.task_groups", f"{PACKAGE}.links"]
ROOMS = (
    "access",
    "api.models",
    "api.operation",
    "client",
    "files",
    "hooks",
    "notes",
    "organization",
    "procedures",
    "sandbox",
    "windows",
)
# What is loaded anyway, what then is imported, and the beginnings of names that it must not add.
COSTS: dict[str, tuple[str, list[str], tuple[str, ...]]] = {
    "a Dag file": (
        "import airflow.sdk, airflow.triggers.base",
        TASKS,
        ("requests", "httpx", *(f"{PACKAGE}.{room}" for room in ROOMS)),
    ),
    "the hook": ("", [f"{PACKAGE}.hooks.workspace"], (f"{PACKAGE}.api.models", f"{PACKAGE}.client.settings")),
    "the client": ("", [f"{PACKAGE}.client.client"], ("requests", "httpx", f"{PACKAGE}.api.deprecation")),
    "the backend of a worker": ("", [f"{PACKAGE}.client.wire"], ("httpx",)),
    "an operation": ("", [f"{PACKAGE}.api.operations"], (f"{PACKAGE}.api.operations.",)),
    # Every Airflow process loads the plugin, and every command the definitions of all commands.
    "the plugin": (f"import airflow.sdk; from {PACKAGE}.version_compat import conf", [f"{PACKAGE}.ui.plugin"], ("",)),
    "the commands": ("import airflow.cli.cli_config", [f"{PACKAGE}.cli.definition"], ("",)),
}
CODE = """
import importlib, json, os, sys
import airflow.sdk
for what, (loaded, names, forbidden) in json.loads(sys.argv[1]).items():
    if os.fork():
        os.wait()
        continue
    exec(loaded)
    before = set(sys.modules)
    for name in names:
        vars(importlib.import_module(name)).get("get_workspace_commands", list)()
    wanted = {".".join(name.split(".")[:depth]) for name in names for depth in range(1, 9)}
    added = [name for name in {*sys.modules} - before - wanted if name.startswith(tuple(forbidden))]
    os.write(1, json.dumps([what, added]).encode() + b"\\n")
    os._exit(0)
"""


@pytest.fixture(scope="module")
def added() -> dict[str, list[str]]:
    """The modules that each import adds; each row runs in a fork of one process, which saves time."""
    run = subprocess.run([sys.executable, "-c", CODE, json.dumps(COSTS)], capture_output=True, text=True, check=True)
    return dict(json.loads(line) for line in run.stdout.splitlines() if line.startswith("["))


since_3_2 = pytest.mark.needs_airflow("3.2", "commands of providers")


@pytest.mark.parametrize("what", [pytest.param(what, marks=[since_3_2] * (what == "the commands")) for what in COSTS])
def test_an_import_adds_nothing_that_only_few_need(added: dict[str, list[str]], what: str) -> None:
    assert added[what] == []
