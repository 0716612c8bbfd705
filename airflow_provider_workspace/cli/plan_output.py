"""How ``airflow workspace plan`` prints its plans, and the errors of files that have none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.errors import visible
from airflow_provider_workspace.procedures.markdown import code, table

if TYPE_CHECKING:
    from airflow_provider_workspace.procedures.organization_file import Organization
    from airflow_provider_workspace.procedures.plan import Plan

# A comment on GitHub may have 65,536 characters; each of a text may become nine.
MAX_COMMENT = 60_000
CUT = "\n\nThe rest is cut off: the log of the job has all with `-o table`."


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
    for one in plans:
        yield f"Organization {visible(one.organization)} ({one.file}): {one.plan.table()}"


def _json(plans: Sequence[Planned], errors: Mapping[str, str]) -> Iterator[str]:
    found: dict[str, Any] = {file: {"error": error} for file, error in errors.items()}
    for one in plans:
        name = f"{one.organization} ({one.file})" if one.organization in found else one.organization
        found[name] = one.plan.to_dict()
    yield json.dumps(found, indent=2)


def _markdown(plans: Sequence[Planned], errors: Mapping[str, str]) -> Iterator[str]:
    """Yield a table for each organization, for a comment."""
    lines = [f"**Error** in {code(file)}: {code(error)}\n" for file, error in errors.items()]
    for one in plans:
        lines.append(f"### {code(one.organization)} in {code(one.file)}\n\n{one.plan.summary()}\n")
        rows = [(each.action, code(visible(each.name)), code(each.notes)) for each in one.plan.changes]
        if rows:
            lines += [*table(("action", "what", "how"), rows, write=str), ""]
    text = "\n".join(lines).rstrip()
    yield text if len(text) <= MAX_COMMENT else text[: text.rindex("\n", 0, MAX_COMMENT)] + CUT


FORMATS: dict[str, Callable[[Sequence[Planned], Mapping[str, str]], Iterator[str]]] = {
    "table": _table,
    "json": _json,
    "markdown": _markdown,
}
