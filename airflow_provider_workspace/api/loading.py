"""Load an operation of an author by the name of its class."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from airflow_provider_workspace.api.operation import Operation
from airflow_provider_workspace.errors import WorkspaceInputError, shown

# A module and a name in it.
IMPORT_PATH = re.compile(r"(\w+(?:\.\w+)*)\.(\w+)")


def load_operation(name: str, value: object, *, functions: bool = False) -> Any:
    """
    Return the operation of an argument.

    :param name: the argument
    :param value: a class that ``@endpoint`` decorates, or its name such as ``my_package.endpoints.ListBatchExports``
    :param functions: whether it may also be a function, or its name
    :raises WorkspaceInputError: if it is something else, or cannot be imported here
    """
    operation = _imported(name, value) if isinstance(value, str) else value
    if isinstance(operation, type):
        if issubclass(operation, Operation) and hasattr(operation, "endpoint"):
            return operation
    elif functions and callable(operation):
        return operation
    or_function = " or a function" if functions else ""
    wrong = getattr(value, "__qualname__", None) or shown(value)
    raise WorkspaceInputError(
        f"{name} must be a class that @endpoint decorates{or_function}, or its name such as "
        f"'my_package.endpoints.ListBatchExports', not {wrong}"
    )


def _imported(name: str, text: str) -> object:
    """Return what a text names; the text if it is no name."""
    found = IMPORT_PATH.fullmatch(text)
    if found is None:
        return text
    module, attribute = found.groups()
    try:
        value: object = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise WorkspaceInputError(f"{name}: {text!r} cannot be imported here: {error}") from None
    return value
