"""The tree of errors, and which of them are permanent."""

from __future__ import annotations

import re
import time

import pytest

from airflow_provider_workspace import errors
from airflow_provider_workspace.errors import (
    WorkspaceConfigError,
    WorkspaceConnectionError,
    WorkspaceError,
    WorkspaceInputError,
    WorkspaceServerError,
    visible,
    with_class,
    with_problem,
)
from airflow_provider_workspace.files.reports import csv_text

CLASSES = {name: value for name, value in vars(errors).items() if isinstance(value, type)}


def test_the_docstring_shows_the_exception_tree() -> None:
    above: list[str] = []
    left = set(CLASSES)
    for line in (errors.__doc__ or "").splitlines():
        found = re.search(r"\b(Workspace\w+)", line)
        if not found:
            continue
        depth = (found.start() - 4) // 4
        above[depth:] = [found[1]]
        parent = Exception if depth == 0 else CLASSES[above[depth - 1]]
        assert CLASSES[found[1]].__bases__[0] is parent
        left.remove(found[1])
    assert left == set(), "every error has its line in the tree"


@pytest.mark.parametrize("cls", [WorkspaceConfigError, WorkspaceInputError, WorkspaceConnectionError])
def test_a_message_has_only_characters_that_a_log_shows_and_keeps_its_lines(cls: type[WorkspaceError]) -> None:
    message = str(cls("row 1 (a\x00\x1b[31m\u200b\ud800):\nthe address"))
    assert "row 1 (a  [31m  ):\nthe address" in message


def quoting(message: str, problem: str | None = None) -> WorkspaceError:
    """Return an error into whose message a caller put that of another one."""
    error = WorkspaceError("replaced later", problem=problem)
    error.args = (message,)
    return error


INNER = WorkspaceError("Replace the key.", problem="api-key-refused")
MESSAGES = {
    "its own": (str(INNER), "[api-key-refused] Replace the key."),
    "that of its class": (str(WorkspaceServerError("Try again.")), "[service-failed] Try again."),
    "none, where the message says all of it": (str(WorkspaceServerError("Try again.", problem="")), "Try again."),
    "none": (str(WorkspaceError("Save the file.")), "Save the file."),
    "before a text that a caller puts before": (
        str(quoting(f"Not done: update Sales. {INNER}", "not-applied")),
        "[not-applied] Not done: update Sales. Replace the key.",
    ),
    "that of the quoted error": (
        str(quoting(f"Not done: update Sales. {INNER}")),
        "[api-key-refused] Not done: update Sales. Replace the key.",
    ),
    "one of many": (
        with_problem(f"Not ended:\nMina: {INNER}\nNoor: {WorkspaceServerError('Wait.')}", "access-not-ended"),
        "[access-not-ended] Not ended:\nMina: Replace the key.\nNoor: Wait.",
    ),
    "before the class": (with_class(INNER), "[api-key-refused] WorkspaceError: Replace the key."),
    "of each line before the class": (
        with_class(WorkspaceError(f"{INNER}\n{WorkspaceServerError('Wait.')}", problem="")),
        "[api-key-refused] WorkspaceError: Replace the key.\n[service-failed] Wait.",
    ),
    "for callers that had sent something": (
        WorkspaceInputError("Check row 3", problem="rows-invalid").why,
        "[rows-invalid] Check row 3.",
    ),
    "and what looks like one stays": (
        with_problem("[on-call] Alerts and [0] differ.", "export-differs"),
        "[export-differs] [on-call] Alerts and [0] differ.",
    ),
    "and a name in quotation marks that is one": (
        str(WorkspaceError("Rename '[not-found] Pages'", problem="rows-invalid")),
        "[rows-invalid] Rename '[not-found] Pages'",
    ),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_a_message_begins_with_one_problem(case: str) -> None:
    message, expected = MESSAGES[case]
    assert message == expected


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("mina@example.com", "mina@example.com"),
        ("mi\u200bna@example.com", "mi<U+200B>na@example.com"),
        ("\u202emina@example.com", "<U+202E>mina@example.com"),
        ("mi\u034fna@example.com", "mi<U+034F>na@example.com"),
        ("m\u0456na@example.com", "m\u0456<U+0456>na@example.com"),
        ("\u0430\u0440@example.com", "\u0430<U+0430>\u0440<U+0440>@example.com"),
        ("\u0418\u0432\u0430\u043d Smith", "\u0418\u0432\u0430\u043d Smith"),
        ("Zo\u00eb\nM\u00fcller", "Zo\u00eb M\u00fcller"),
        ("\u682a\u5f0f\u4f1a\u793eABC", "\u682a\u5f0f\u4f1a\u793eABC"),
    ],
)
def test_hidden_characters_and_look_alikes_are_marked(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert visible(shown) == shown


def test_a_long_text_is_shown_in_no_time() -> None:
    """A tenth of a second; minutes if each letter that is no Latin one is tried as the first one of a word."""
    text = "\u20ac" * 100_000
    began = time.process_time()
    assert visible(text) == text
    assert time.process_time() - began < 10


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\u2212"])
def test_a_cell_is_no_formula(first: str) -> None:
    assert csv_text(["name"], [{"name": f"{first}1+1"}]) == f"name\n'{first}1+1\n"
