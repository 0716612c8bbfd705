"""A plan in Markdown, for a question or a comment: a table whose cells wrap, with the names of levels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.levels import describe_level
from airflow_provider_workspace.procedures.markdown import inert, table
from airflow_provider_workspace.procedures.plan import MARKS, PENDING, describe_fields

if TYPE_CHECKING:
    from airflow_provider_workspace.procedures.plan import Change, Plan

# Three columns fit into Airflow 3.1's narrow panel beside an address, which does not wrap.
TABLE_COLUMNS = ("Change", "Who or what", "Values and reason")
# No line begins with it.
SPACED_ARROW = " \u2192 "
ARROW = "\u00a0\u2192 "


def plan_lines(plan: Plan) -> list[str]:
    """
    Return what people must know first, the numbers, and a table with a row for each change.

    Values are whole: an approval covers what was shown.
    """
    lines: list[str] = []
    for remark in plan.remark.splitlines():
        lines += [inert(remark), ""]
    lines += [f"**{inert(plan.summary())}**", ""]
    if not plan.changes:
        return lines
    rows = [_cells(change, plan.full_name_of(change)) for change in plan.changes]
    return [*lines, *table(TABLE_COLUMNS, rows, write=str)]


def _cells(change: Change, full_name: str) -> list[str]:
    """Return the cells of a change in Markdown."""
    name = f"{change.name} ({full_name})" if full_name else change.name
    word: str = change.action
    if change.action not in (*PENDING, "set"):
        word = change.mark or MARKS[change.action]
    before = _with_level_name(change, change.before)
    after = _with_level_name(change, change.after)
    notes = describe_fields(before, after, SPACED_ARROW)
    if change.reason:
        notes.append(change.reason)
    return [_cell(word), _cell(name), _cell(", ".join(notes)).replace(SPACED_ARROW, ARROW)]


def _cell(text: str) -> str:
    return inert(text, limit=None)


def _with_level_name(change: Change, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return fields with the name of a level; those of dashboards have none."""
    level = fields.get("level")
    if change.part != "members" or not isinstance(level, int):
        return fields
    return {**fields, "level": describe_level(level)}
