"""
The operations of the interface, in one module per kind of resource.

All of them can be imported from here. A module is imported when one of its operations is first used, because pydantic
takes a millisecond per class and a task needs one or two. The modules do not postpone annotations, which pydantic would
have to compile.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.api.operations import batch_exports, dashboards, domains, invites, members, projects
    from airflow_provider_workspace.api.operations.batch_exports import *  # noqa: F403 - for type checkers alone
    from airflow_provider_workspace.api.operations.dashboards import *  # noqa: F403
    from airflow_provider_workspace.api.operations.domains import *  # noqa: F403
    from airflow_provider_workspace.api.operations.invites import *  # noqa: F403
    from airflow_provider_workspace.api.operations.members import *  # noqa: F403
    from airflow_provider_workspace.api.operations.projects import *  # noqa: F403

    OPERATIONS: tuple[type[Operation[Any]], ...]

GROUPS = ("dashboards", "batch_exports", "domains", "invites", "members", "projects")


def __getattr__(name: str) -> Any:
    """Return a module, an operation, or ``OPERATIONS``, the tuple of all operations."""
    if name in GROUPS:
        return import_module(f"{__name__}.{name}")
    operations = _operations()
    if name == "OPERATIONS":
        return tuple(operations.values())
    if name not in operations:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return operations[name]


@cache
def _operations() -> dict[str, type[Operation[Any]]]:
    """Return all operations by name, in the order of their definition."""
    operations: dict[str, type[Operation[Any]]] = {}
    for group in GROUPS:
        module = import_module(f"{__name__}.{group}")
        for name, value in vars(module).items():
            is_own = getattr(value, "__module__", "") == module.__name__
            if is_own and "endpoint" in vars(value):
                operations[name] = value
    return operations


__all__ = ["GROUPS", "OPERATIONS", "batch_exports", "dashboards", "domains", "invites", "members", "projects"]
