"""
The operations of the interface: one module for each kind of resource, in the order of the interface.

Each can be imported from here as well. A module is imported when one of its operations is first asked for: a task needs
one or two, and each is a class that takes pydantic a millisecond. None postpones its annotations: pydantic would have
to compile them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.api.operations import (
        batch_exports,
        dashboards,
        domains,
        invites,
        members,
        projects,
    )
    from airflow_provider_workspace.api.operations.batch_exports import *  # noqa: F403 - for type checkers alone
    from airflow_provider_workspace.api.operations.dashboards import *  # noqa: F403
    from airflow_provider_workspace.api.operations.domains import *  # noqa: F403
    from airflow_provider_workspace.api.operations.invites import *  # noqa: F403
    from airflow_provider_workspace.api.operations.members import *  # noqa: F403
    from airflow_provider_workspace.api.operations.projects import *  # noqa: F403

    OPERATIONS: tuple[type[Operation[Any]], ...]

GROUPS = ("dashboards", "batch_exports", "domains", "invites", "members", "projects")


def __getattr__(name: str) -> Any:
    """Return a module, an operation, or ``OPERATIONS``: all of them. Python asks once for each."""
    if name in GROUPS:
        return import_module(f"{__name__}.{name}")
    found = {cls.__name__: cls for group in GROUPS for cls in _operations_of(import_module(f"{__name__}.{group}"))}
    globals().update(found, OPERATIONS=tuple(found.values()))
    if name not in globals():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals()[name]


def _operations_of(module: Any) -> list[type[Operation[Any]]]:
    """Return the operations that a module defines, in its order."""
    return [
        cls
        for cls in vars(module).values()
        if getattr(cls, "__module__", "") == module.__name__ and "endpoint" in vars(cls)
    ]


__all__ = ["GROUPS", "OPERATIONS", "batch_exports", "dashboards", "domains", "invites", "members", "projects"]
