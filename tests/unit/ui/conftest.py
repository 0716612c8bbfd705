"""The model of the status page in a JavaScript engine."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from py_mini_racer import MiniRacer

from airflow_provider_workspace.ui import plugin

MODEL = Path(plugin.__file__).with_name("static") / "model"
NOW = 1_790_000_000
View = Callable[..., Any]

IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w.]+)";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:const|function) (\w+))", re.MULTILINE)


def load(engine: MiniRacer, name: str, loaded: set[str]) -> None:
    """Run a module and those that it imports; the engine runs scripts, so each becomes a function of its own."""
    if name in loaded:
        return
    loaded.add(name)
    source = (MODEL / name).read_text(encoding="utf-8")
    for _, imported in IMPORT.findall(source):
        load(engine, imported, loaded)
    exported = ", ".join(EXPORT.findall(source))
    script = IMPORT.sub(r'const {\1} = modules["\2"];', EXPORT.sub("", source))
    engine.eval(f'modules["{name}"] = (() => {{ {script}\nreturn {{ {exported} }}; }})();')
    engine.eval(f'Object.assign(globalThis, modules["{name}"]);')


@pytest.fixture(scope="module")
def model() -> Iterator[MiniRacer]:
    """All modules, with what they export as functions to call."""
    with closing(MiniRacer()) as engine:
        engine.eval("const modules = {};")
        load(engine, "view.js", set())
        yield engine


@pytest.fixture
def view(model: MiniRacer) -> View:
    """Return what the page shows for some answers; the others are empty lists."""

    def view_of(**answers: Any) -> Any:
        rows = {"value": {"rows": [], "total": 0}}
        empty = {name: {"value": []} for name in ("variables", "tasks", "runs")}
        empty |= dict.fromkeys(("sweeps", "campaigns", "waits", "questions"), rows)
        empty |= {
            "dags": {"value": {}},
            "health": {"value": {}},
            "failed": {"value": {"rows": [], "successes": [], "total": 0}},
        }
        return model.call("view", empty | answers, NOW * 1000)

    return view_of
