"""The connection form and the tables of the documentation are generated from the settings."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest

from airflow_provider_workspace.client import settings
from airflow_provider_workspace.errors import WorkspaceConfigError
from tests.meta.test_operators import SCHEMA

SCRIPT = Path(__file__).resolve().parents[2] / "dev" / "make_connection.py"
FORM_SCHEMA = SCHEMA["properties"]["connection-types"]["items"]["properties"].get("conn-fields")


def load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


make_connection = load("make_connection", SCRIPT)


@pytest.mark.parametrize(("path", "text"), make_connection.files().items(), ids=lambda item: getattr(item, "name", ""))
def test_generated_files_are_up_to_date(path: Path, text: str) -> None:
    assert path.read_text(encoding="utf-8") == text, "run .venv/bin/python dev/make_connection.py"


def test_no_line_of_the_form_is_too_long() -> None:
    text = make_connection.literal({"key": {"label": "x", "description": "word " * 100 + "end."}})
    assert max(map(len, text.splitlines())) <= 120
    assert eval(text) == {"key": {"label": "x", "description": "word " * 100 + "end."}}  # noqa: S307 - that is the test


# A default that depends on another setting, an optional integer and a boolean.
MORE = """
    grace_time: float = Field(
        default_factory=lambda given: 2 * given.get("read_timeout", 0),
        ge=0,
        le=7200,
        title="Grace time",
        description="Seconds until a write shows in lists.",
        json_schema_extra={"default_text": "twice the read timeout"},
    )
    rows_per_hour: int | None = Field(
        default=None, ge=1, le=1_000_000, title="Rows per hour", description="Maximum invites per hour."
    )
    trust_rows: Boolean = Field(default=True, title="Trust rows", description="Trust the counts of lists.")

    def __init__("""


@pytest.fixture(scope="module")
def more(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The settings with three more fields."""
    source = Path(str(settings.__file__)).read_text()
    assert source.count("\n    def __init__(") == 2
    head, _, tail = source.rpartition("\n    def __init__(")
    path = tmp_path_factory.mktemp("more") / "more_settings.py"
    path.write_text(head + MORE + tail)
    yield load("more_settings", path)
    del sys.modules["more_settings"]


def read(module: ModuleType, **extra: Any) -> Any:
    return module.Settings("https://h.example.com", "k", "the test", **extra)


def test_a_new_field_is_read(more: ModuleType) -> None:
    bare = read(more)
    assert (bare.grace_time, bare.rows_per_hour, bare.trust_rows) == (120.0, None, True)
    assert read(more, read_timeout="7", rows_per_hour="").grace_time == 14.0
    assert read(more, grace_time=0, read_timeout=7).grace_time == 0.0
    assert read(more, rows_per_hour="500", trust_rows="false") == read(more, rows_per_hour=500, trust_rows=False)


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ({"rows_per_hour": 0}, ["'rows_per_hour' of the test must be a number from 1 to 1000000."]),
        ({"rows_per_hour": True}, ["'rows_per_hour' of the test must be a whole number from 1 to 1000000."]),
        ({"grace_time": -1}, ["'grace_time' of the test must be a number from 0 to 7200."]),
        ({"read_timeout": -1}, ["'read_timeout' of the test must be a number from 0.01 to 3600."]),
        (
            {"trust_rows": 1, "page_size": "x"},
            [
                "'page_size' of the test must be a whole number from 1 to 10000.",
                "'trust_rows' of the test must be true or false.",
            ],
        ),
    ],
)
def test_a_new_field_is_checked(more: ModuleType, extra: dict[str, Any], expected: list[str]) -> None:
    with pytest.raises(WorkspaceConfigError) as error:
        read(more, **extra)
    assert str(error.value) == " ".join(f"The extra {text}" for text in expected)


def test_a_new_field_is_in_the_form_and_in_the_table(more: ModuleType) -> None:
    form = make_connection.form(more)
    if FORM_SCHEMA:  # since Airflow 3.2
        jsonschema.validate(form, FORM_SCHEMA)
    assert form["grace_time"] == {
        "label": "Grace time",
        "description": "Seconds until a write shows in lists. Default: twice the read timeout. From 0 to 7200.",
        "schema": {"type": ["number", "null"], "minimum": 0, "maximum": 7200},
    }
    assert form["rows_per_hour"]["schema"] == {"type": ["integer", "null"], "minimum": 1, "maximum": 1_000_000}
    assert form["trust_rows"]["schema"] == {"type": ["boolean", "null"], "default": True}
    assert make_connection.table(more).splitlines()[-3:] == [
        "| `grace_time` | twice the read timeout | 0 to 7200 | Seconds until a write shows in lists. |",
        "| `rows_per_hour` | none | 1 to 1000000, integer | Maximum invites per hour. |",
        "| `trust_rows` | true | true, false | Trust the counts of lists. |",
    ]
