"""The model of the status page in a JavaScript engine."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from py_mini_racer import MiniRacer

from airflow_provider_workspace.ui import plugin

MODEL = Path(plugin.__file__).with_name("static") / "model.js"
NOW = 1_790_000_000
View = Callable[..., Any]


@pytest.fixture(scope="module")
def model() -> MiniRacer:
    """The module; the engine runs scripts, which export nothing."""
    engine = MiniRacer()
    engine.eval(re.sub(r"^export ", "", MODEL.read_text(), flags=re.MULTILINE))
    return engine


@pytest.fixture
def view(model: MiniRacer) -> View:
    """Return what the page shows for some answers; the others are empty lists."""

    def view_of(**answers: Any) -> Any:
        rows = {"value": {"rows": [], "total": 0}}
        empty = {name: {"value": []} for name in ("variables", "tasks", "runs")}
        empty |= dict.fromkeys(("sweeps", "campaigns", "waits", "questions"), rows)
        empty |= {"dags": {"value": {}}, "health": {"value": {}}}
        return model.call("view", empty | answers, NOW * 1000)

    return view_of
