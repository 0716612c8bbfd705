"""The tree of errors, and which of them are permanent."""

from __future__ import annotations

import re

import pytest

from airflow_provider_workspace import errors
from airflow_provider_workspace.errors import (
    WorkspaceConfigError,
    WorkspaceConnectionError,
    WorkspaceError,
    WorkspaceInputError,
)

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
    assert message.startswith("row 1 (a  [31m  ):\nthe address")
