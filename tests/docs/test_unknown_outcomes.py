"""The table of hook calls with an unknown outcome in docs/faults.md."""

from __future__ import annotations

import re
from pathlib import Path

from airflow_provider_workspace.api.operations import OPERATIONS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "faults.md").read_text()


def test_the_page_lists_every_operation_that_is_not_repeatable() -> None:
    expected = sorted(str(op.endpoint.look_for) for op in OPERATIONS if not op.endpoint.repeatable)
    documented = sorted(re.findall(r"^\| `[^|]*` \| (Look [^|]*) \|$", PAGE, re.MULTILINE))
    assert documented == expected, "docs/faults.md, section 'Hook calls in your own tasks'"
