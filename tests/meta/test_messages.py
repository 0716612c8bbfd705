"""The messages with which tasks fail: each names its problem, and none is cut."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace import errors
from airflow_provider_workspace.operators.members import WorkspaceListMembersOperator
from airflow_provider_workspace.operators.organization import WorkspacePlanOrganizationOperator
from airflow_provider_workspace.operators.send import WorkspaceSendOperator
from airflow_provider_workspace.version_compat import AirflowFailException

if TYPE_CHECKING:
    from tests.conftest import Connect

PACKAGE = Path(errors.__file__).parent
# No task runs what is in these.
NO_TASKS = ("sandbox", "cli", "ui")
# What ends a task, or becomes its end in a sensor, with a message that its argument must name the problem of.
ENDS = ("AirflowFailException", "AirflowSensorTimeout", "PollFailure")
# Classes that say nothing of a problem.
GENERAL = ("WorkspaceError", "WorkspaceRequestError")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@pytest.fixture(scope="module")
def modules() -> dict[str, ast.Module]:
    """The code of each module of the package, by its path."""
    files = sorted(PACKAGE.rglob("*.py"))
    return {file.relative_to(PACKAGE).as_posix(): ast.parse(file.read_text(encoding="utf-8")) for file in files}


@pytest.fixture(scope="module")
def modules_of_tasks(modules: dict[str, ast.Module]) -> dict[str, ast.Module]:
    return {name: tree for name, tree in modules.items() if not name.startswith(NO_TASKS)}


def calls(tree: ast.AST, *names: str) -> Iterator[ast.Call]:
    """Return the calls of some functions and classes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in names:
            yield node


def is_named(message: ast.AST, function: ast.AST) -> bool:
    """Return whether a message, or what a variable holds of it, has got the name of a problem."""
    assigned = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
    held = {ast.unparse(node.targets[0]): node.value for node in assigned if [*calls(node.value, "with_problem")]}
    texts = [message, *(held[node.id] for node in ast.walk(message) if isinstance(node, ast.Name) and node.id in held)]
    if any(len(call.args) + len(call.keywords) > 1 for text in texts for call in calls(text, "with_problem")):
        return True
    return bool([*calls(message, "with_class", "_failure")])


def is_text(statement: ast.stmt) -> bool:
    """Return whether a statement is a text, which does nothing."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.JoinedStr) or (isinstance(value, ast.Constant) and isinstance(value.value, str))


def is_attribute(statement: ast.stmt) -> bool:
    """Return whether a statement sets an attribute, which a text below it may document."""
    return isinstance(statement, ast.Assign | ast.AnnAssign) and ast.unparse(statement).startswith("self.")


def test_no_text_stands_alone(modules: dict[str, ast.Module]) -> None:
    """A second text below a message is no part of it, and Python says nothing."""
    alone = []
    for name, tree in modules.items():
        blocks = [node for node in ast.walk(tree) if not isinstance(node, ast.ClassDef | ast.Module)]
        bodies: list[Any] = [getattr(node, "body", None) for node in blocks]
        for body in (body for body in bodies if isinstance(body, list)):
            below = [after for before, after in pairwise(body) if not is_attribute(before)]
            alone += [f"{name}:{statement.lineno}" for statement in below if is_text(statement)]
    assert alone == []


def test_each_error_of_a_task_has_a_problem(modules_of_tasks: dict[str, ast.Module]) -> None:
    nameless = []
    for name, tree in modules_of_tasks.items():
        for function in (node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)):
            parameters = {argument.arg for argument in function.args.args}
            for call in calls(function, *ENDS):
                (message, *_) = call.args
                is_given = isinstance(message, ast.Name) and message.id in parameters
                if not is_given and not is_named(message, function):
                    nameless.append(f"{name}:{call.lineno}")
        general = [call for call in calls(tree, *GENERAL) if "problem" not in {part.arg for part in call.keywords}]
        nameless += [f"{name}:{call.lineno}" for call in general]
    assert nameless == []


def classes(base: type[errors.WorkspaceError] = errors.WorkspaceError) -> Iterator[type[errors.WorkspaceError]]:
    yield base
    for below in base.__subclasses__():
        yield from classes(below)


def test_each_class_has_a_problem(modules_of_tasks: dict[str, ast.Module]) -> None:
    for name, tree in modules_of_tasks.items():
        bases = [ast.unparse(base) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for base in node.bases]
        if any(base.endswith("Error") for base in bases):
            import_module(f"{PACKAGE.name}.{name.removesuffix('.py').replace('/', '.')}")
    named = {cls.__name__: cls.problem or cls.general_problem for cls in classes()}
    assert set(named.values()) <= errors.PROBLEMS
    assert [name for name, problem in named.items() if problem == "unexpected-error"] == [*GENERAL]


@pytest.mark.parametrize(
    ("operator", "said"),
    [
        (WorkspaceListMembersOperator(task_id="task", where={"emial": "x"}), "where names 'emial', which is unknown"),
        (WorkspaceSendOperator(task_id="task", operation="nowhere.Operation"), "cannot be imported here"),
        (WorkspacePlanOrganizationOperator(task_id="task", file={"membres": {}}), "unknown field"),
    ],
)
def test_a_task_with_a_wrong_argument_ends_with_a_problem(connect: Connect, operator: Any, said: str) -> None:
    connect()
    with pytest.raises(AirflowFailException) as failed:
        operator.execute({})
    assert str(failed.value).startswith("[input-invalid] WorkspaceInputError: ")
    assert said in str(failed.value)
