"""How ``airflow workspace plan`` prints its plans, and the errors of files that have none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.errors import visible
from airflow_provider_workspace.procedures.markdown import code
from airflow_provider_workspace.procedures.plan_markdown import plan_lines

if TYPE_CHECKING:
    from airflow_provider_workspace.organization.file import Organization
    from airflow_provider_workspace.procedures.plan import Plan

# A comment on GitHub may have 65,536 characters; each of a text may become nine.
MAX_COMMENT = 60_000
COMMENT_IS_CUT = "\n\nThe rest is cut off: the log of the job has all with `-o table`."


@dataclass(frozen=True, slots=True)
class Planned:
    """
    The plan of one organization.

    :param organization: its name in the file, or its id
    """

    file: str
    organization: str
    wanted: Organization
    plan: Plan


def _table(plans: Sequence[Planned], _: Mapping[str, str]) -> Iterator[str]:
    for planned in plans:
        organization = visible(planned.organization)
        table = planned.plan.table()
        yield f"Organization {organization} ({planned.file}): {table}"


def _json(plans: Sequence[Planned], errors: Mapping[str, str]) -> Iterator[str]:
    results: dict[str, dict[str, Any]] = {}
    for file, error in errors.items():
        results[file] = {"error": error}
    for planned in plans:
        name = planned.organization
        if name in results:
            name = f"{name} ({planned.file})"
        results[name] = planned.plan.to_dict()
    yield json.dumps(results, indent=2)


def _markdown(plans: Sequence[Planned], errors: Mapping[str, str]) -> Iterator[str]:
    """Yield a table for each organization, for a comment."""
    lines: list[str] = []
    for file, error in errors.items():
        lines.append(f"**Error** in {code(file)}: {code(error)}\n")
    for planned in plans:
        lines += _markdown_section(planned)
    text = "\n".join(lines).rstrip()
    if len(text) > MAX_COMMENT:
        last_line_end = text.rindex("\n", 0, MAX_COMMENT)
        text = text[:last_line_end] + COMMENT_IS_CUT
    yield text


def _markdown_section(planned: Planned) -> list[str]:
    """Return the heading, the numbers and the table of one organization."""
    heading = f"### {code(planned.organization)} in {code(planned.file)}"
    return [heading, "", *plan_lines(planned.plan), ""]


FORMATS: dict[str, Callable[[Sequence[Planned], Mapping[str, str]], Iterator[str]]] = {
    "table": _table,
    "json": _json,
    "markdown": _markdown,
}
