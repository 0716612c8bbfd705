"""One public name for one thing: no two modules of the package define the same one."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "airflow_provider_workspace"
# Each module has its own: the logger, as in Airflow.
OF_EACH_MODULE = {"log"}


def definitions(statements: Iterable[ast.stmt]) -> Iterator[tuple[str, int]]:
    """Yield the names that the top of a module defines, each with its line; not those that it imports."""
    for statement in statements:
        match statement:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, statement.lineno
            case ast.Assign() | ast.AnnAssign():
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                for node in (node for target in targets for node in ast.walk(target)):
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                        yield node.id, statement.lineno
            case ast.If(body=body, orelse=orelse):
                yield from definitions([*body, *orelse])


def test_a_public_name_is_defined_in_one_module() -> None:
    """The sandbox shares no code with the rest, and may call things as the service does. One letter is a TypeVar."""
    places: dict[str, dict[Path, str]] = defaultdict(dict)
    for file in sorted(PACKAGE.rglob("*.py")):
        module = file.relative_to(PACKAGE)
        if module.parts[0] == "sandbox":
            continue
        for name, line in definitions(ast.parse(file.read_text()).body):
            if not name.startswith("_") and name not in OF_EACH_MODULE and len(name) > 1:
                places[name].setdefault(module, f"{module}:{line}")
    twice = [f"{name}: {', '.join(found.values())}" for name, found in sorted(places.items()) if len(found) > 1]
    assert not twice, "Two modules define the same public name; rename one of them:\n" + "\n".join(twice)
