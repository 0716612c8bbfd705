"""Generate the table of docs/endpoints.md: each operation of the interface with its scope, hook method and operator."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from airflow_provider_workspace.api.operations import OPERATIONS
from airflow_provider_workspace.hooks.workspace import WorkspaceHook

TARGET = Path(__file__).resolve().parent.parent / "docs" / "endpoints.md"
# The table follows the text of the page.
HEAD = "| operation, method and path | scope | hook method, operator |\n| --- | --- | --- |\n"


def method_of(operation: str) -> str | None:
    """Return the hook method that sends an operation, found in its source."""
    for name, method in vars(WorkspaceHook).items():
        if not name.startswith("_") and callable(method) and re.search(rf"\.{operation}\b", inspect.getsource(method)):
            return name
    return "create_invites" if operation == "CreateInvites" else None


def page() -> str:
    """Return the page."""
    rows = []
    for operation in OPERATIONS:
        row, name = operation.endpoint, operation.__name__
        method = method_of(name)
        sent_by = f"`send({name}(…))`<br>always refused with 405; no operator"
        if method:
            operator = f"Workspace{''.join(part.title() for part in method.split('_'))}Operator"
            sent_by = f"`{method}`<br>`{operator}`"
        scope = f"`{row.scope}`" if row.scope else "not shown"
        rows.append(f"| {name}<br>`{row.method} {row.path}` | {scope} | {sent_by} |")
    return TARGET.read_text(encoding="utf-8").partition(HEAD)[0] + HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
