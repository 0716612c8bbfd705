"""Operations and functions of an author, by name; operations with the defaults of a connection."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.ids import canonical_text
from airflow_provider_workspace.api.models import Resource
from airflow_provider_workspace.api.operation import Operation, interface_names, is_page, path_fields
from airflow_provider_workspace.errors import WorkspaceInputError, shown

if TYPE_CHECKING:
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook


def load(name: str, value: Any, *, functions: bool = False) -> Any:
    """
    Return the operation of an argument.

    :param name: the argument
    :param value: a class that ``@endpoint`` decorates, or its name such as ``my_package.endpoints.ListBatchExports``
    :param functions: whether it may also be a function, or its name
    :raises WorkspaceInputError: if it is something else, or cannot be imported here
    """
    found, names = value, isinstance(value, str) and re.fullmatch(r"(\w+(?:\.\w+)*)\.(\w+)", value)
    try:
        if names:
            found = getattr(import_module(names[1]), names[2])
    except (ImportError, AttributeError) as error:
        raise WorkspaceInputError(f"{name}: {value!r} cannot be imported here: {error}") from None
    if isinstance(found, type) and issubclass(found, Operation) and hasattr(found, "endpoint"):
        return found
    if functions and callable(found) and not isinstance(found, type):
        return found
    raise WorkspaceInputError(
        f"{name} must be a class that @endpoint decorates{' or a function' * functions}, or its name such as "
        f"'my_package.endpoints.ListBatchExports', not {getattr(value, '__qualname__', None) or shown(value)}"
    )


def with_default_ids(hook: WorkspaceHook, cls: type[Operation[Any]], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an operation, with the organization and project that its path needs."""
    defaults = {"organization_id": hook.organization_or_default, "project_id": hook.project_or_default}
    in_path = path_fields(cls.endpoint.path)
    return {**given, **{name: read(given.get(name)) for name, read in defaults.items() if name in in_path}}


def state_reader(hook: WorkspaceHook, state_of: str, batch_export_id: str, known: dict[Any, Any]) -> Callable[[], Any]:
    """
    Return a function that reads whether a batch export is ``paused`` or ``running``; it returns ``None`` if unknown.

    :param state_of: name of an operation that reads batch exports, or one of them, with ``id`` and ``paused``; or of a
        function of the hook and the id
    :param known: what was read for other exports, such as a list of all; receives what is read
    :raises WorkspaceInputError: if it cannot be imported, or the operation writes or needs other fields
    """
    target: Any = load("state_of", state_of, functions=True)
    if not hasattr(target, "endpoint"):
        return partial(target, hook, batch_export_id)
    ids = {"batch_export_id": batch_export_id} if "batch_export_id" in interface_names(target).values() else {}
    operation = target(**with_default_ids(hook, target, ids))
    if operation.endpoint.is_write:
        raise WorkspaceInputError(f"state_of must read, and {target.__name__} writes")

    key = (hook, state_of, repr(operation))

    def read() -> str | None:
        if key not in known:
            rows = hook.client.rows(operation) if is_page(operation.endpoint.result) else hook.client.send(operation)
            known[key] = [rows] if isinstance(rows, Resource) else list(rows)
        found = [row.paused for row in known[key] if canonical_text(str(row.id)) == batch_export_id]
        return {"[True]": "paused", "[False]": "running"}.get(str(found))

    return read
