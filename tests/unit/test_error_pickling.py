"""Every exception of the package survives pickling and copying, as a process pool needs it, with all that it says."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import pkgutil
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest

import airflow_provider_workspace
from airflow_provider_workspace.api.operations.projects import GetProject
from airflow_provider_workspace.errors import (
    WorkspaceError,
    WorkspaceRateLimitError,
    WorkspaceRequestError,
)
from airflow_provider_workspace.sandbox.responses import ApiError
from airflow_provider_workspace.version_compat import default_retry_policy


def exception_classes() -> list[type[Exception]]:
    """Return every exception class that a module of the package defines."""
    found: dict[str, type[Exception]] = {}
    for module in pkgutil.walk_packages(airflow_provider_workspace.__path__, "airflow_provider_workspace."):
        if module.name.endswith("__main__"):
            continue
        if module.name.endswith(".retry_policies") and default_retry_policy() is None:  # before Airflow 3.3
            continue
        for value in vars(importlib.import_module(module.name)).values():
            is_ours = isinstance(value, type) and value.__module__.startswith("airflow_provider_workspace.")
            if is_ours and issubclass(value, Exception):
                found[f"{value.__module__}.{value.__qualname__}"] = value
    return [found[name] for name in sorted(found)]


CLASSES = exception_classes()
CAUSE = WorkspaceRateLimitError("Wait.", status=429, retry_after=7.0, request_id="r-1", retryable=True)
# What classes need, and the fields of their own that a caller would miss.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "WorkspaceSyncIncompleteError": {"causes": {"one": CAUSE}.values()},
    "WorkspaceInvitesIncompleteError": {"report": "1 failed", "cause": CAUSE, "retry_after": 60.0},
    "WorkspaceInvitesUnknownError": {"report": "1 failed", "cause": CAUSE, "retry_after": 60.0},
    "WorkspaceInputError": {"problem": "rows-invalid"},
    "WorkspaceStorageError": {"permanent": True, "problem": "file-forbidden"},
    "WorkspaceError": {"permanent": False, "problem": "access-left"},
}


def made(cls: type[Exception]) -> Exception:
    """Return an error with every field set."""
    if cls is ApiError:
        return ApiError(429, "throttled", "throttled", "Wait.", "email", {"Retry-After": "7"})
    if cls.__name__ == "PlannedWrite":
        return cls(GetProject(organization_id="northwind", project_id=3), "it has another name")
    if not issubclass(cls, WorkspaceError):
        return cls("Check row 3")
    arguments = ARGUMENTS.get(cls.__name__, {})
    if issubclass(cls, WorkspaceRequestError):
        arguments = {"operation": "ListMembers", "request_id": "r-1", "retry_after": 7.0, "problem": "not-found"}
    error = cls("Check row 3", **arguments)
    if isinstance(error, WorkspaceRequestError):
        error.attempts = 3
        error.outcome = "applied"
        error.retryable = False
    error.args = (f"Said later. {error.args[0]}",)
    return error


def said(error: Any) -> dict[str, Any]:
    """Return all that an error says, and those in it."""
    if isinstance(error, BaseException):
        fields = {name: said(value) for name, value in vars(error).items()}
        stated = {name: getattr(error, name, None) for name in ("problem", "permanent", "retry_after")}
        return {"class": type(error), "message": str(error), "args": error.args, **stated, **fields}
    if isinstance(error, tuple):
        return {str(number): said(value) for number, value in enumerate(error)}
    return {"value": error}


def pickled(error: Exception) -> Exception:
    again: Exception = pickle.loads(pickle.dumps(error))  # noqa: S301 - written one line above
    return again


@pytest.mark.parametrize("cls", CLASSES, ids=[cls.__name__ for cls in CLASSES])
def test_an_exception_says_the_same_afterwards(cls: type[Exception]) -> None:
    error = made(cls)
    for again in (pickled(error), copy.copy(error), copy.deepcopy(error)):
        assert again is not error
        assert said(again) == said(error)


def test_the_walk_finds_the_exceptions_of_all_rooms() -> None:
    rooms = {cls.__module__.split(".")[1] for cls in CLASSES}
    assert {"errors", "api", "client", "hooks", "notes", "procedures", "sandbox"} <= rooms
    assert not any(inspect.isabstract(cls) for cls in CLASSES)


def fail(name: str) -> None:
    raise made(next(cls for cls in CLASSES if cls.__name__ == name))


@pytest.mark.slow
def test_a_process_pool_raises_what_its_process_raised() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        for cls in CLASSES:
            with pytest.raises(cls) as red:
                pool.submit(fail, cls.__name__).result(timeout=120)
            red.value.__dict__.pop("__notes__", None)
            assert said(red.value) == said(made(cls))
