"""Generate the tables of docs/endpoints.md: the operations of the API, with scope, hook method and operator."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.operations import GROUPS, OPERATIONS
from airflow_provider_workspace.hooks.workspace import WorkspaceHook

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation

TARGET = Path(__file__).resolve().parent.parent / "docs" / "endpoints.md"
# The tables follow the text of the page.
TEXT_ENDS_WITH = '"Not shown" means that the API does not document the scope.\n'
HEAD = "| operation, method and path | scope | hook method, operator |\n| --- | --- | --- |\n"


def method_of(operation: str) -> str | None:
    """Return the hook method that sends an operation, found in its source."""
    for name, method in vars(WorkspaceHook).items():
        if not name.startswith("_") and callable(method) and re.search(rf"\.{operation}\b", inspect.getsource(method)):
            return name
    return "create_invites" if operation == "CreateInvites" else None


def row_of(operation: type[Operation[Any]]) -> str:
    """Return the line of the table that describes an operation."""
    row, name = operation.endpoint, operation.__name__
    method = method_of(name)
    sent_by = f"`send({name}(…))`<br>always refused with 405; no operator"
    if method:
        operator = f"Workspace{''.join(part.title() for part in method.split('_'))}Operator"
        sent_by = f"`{method}`<br>`{operator}`"
    scope = f"`{row.scope}`" if row.scope else "not shown"
    return f"| {name}<br>`{row.method} {row.path}` | {scope} | {sent_by} |\n"


def page() -> str:
    """Return the page, with a section for each kind of resource."""
    text, end, _ = TARGET.read_text(encoding="utf-8").partition(TEXT_ENDS_WITH)
    sections = [text + end]
    for group in GROUPS:
        rows = [row_of(operation) for operation in OPERATIONS if operation.__module__.endswith(f".{group}")]
        title = group.replace("_", " ").capitalize()
        sections.append(f"### {title}\n\n{HEAD}{''.join(rows)}")
    return "\n".join(sections)


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
