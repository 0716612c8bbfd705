"""The page on faults names every operation whose unknown outcome ends a task, with the words of the error."""

from __future__ import annotations

import re
from pathlib import Path

from airflow_provider_workspace.api.operations import OPERATIONS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "faults.md").read_text()


def test_the_page_has_what_every_operation_that_is_not_repeatable_says_first() -> None:
    expected = sorted(str(op.endpoint.look_for) for op in OPERATIONS if not op.endpoint.repeatable)
    documented = sorted(re.findall(r"^\| `[^|]*` \| (Look [^|]*) \|$", PAGE, re.MULTILINE))
    assert documented == expected, "docs/faults.md, section 'Hook calls in your own tasks'"
