"""
The operations of the interface, in one module per kind of resource.

All of them can be imported from here. A module is imported when one of its operations is first used, because pydantic
takes a millisecond per class and a task needs one or two. The modules do not postpone annotations, which pydantic would
have to compile.
"""

from __future__ import annotations

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
    found = {cls.__name__: cls for group in GROUPS for cls in _operations_of(import_module(f"{__name__}.{group}"))}
    globals().update(found, OPERATIONS=tuple(found.values()))
    if name not in globals():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals()[name]


def _operations_of(module: Any) -> list[type[Operation[Any]]]:
    """Return the operations of a module in the order of their definition."""
    return [
        cls
        for cls in vars(module).values()
        if getattr(cls, "__module__", "") == module.__name__ and "endpoint" in vars(cls)
    ]


__all__ = ["GROUPS", "OPERATIONS", "batch_exports", "dashboards", "domains", "invites", "members", "projects"]
