"""
Check that the code of the package stays easy to read: how much one statement says, and how much is left untyped.

Sizes are nodes of the syntax tree, which no formatter changes. A compound statement counts as its head; its body counts
on its own. The sandbox and docstrings are left out.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "airflow_provider_workspace"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BRANCHES = (
    *(ast.IfExp, ast.BoolOp, ast.Lambda, ast.NamedExpr),
    *(ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp),
)
# What stands below a compound statement and is counted on its own.
HOLDERS_OF_STATEMENTS = (ast.stmt, ast.ExceptHandler, ast.match_case)
# The most that each may be.
MAX_MEAN = 11.8
MAX_OF_NINE_TENTHS = 22
MAX_PACKED_PERCENT = 0.2
MAX_UNTYPED_PERCENT = 10.0
# With as many branches, a statement is packed.
PACKED = 3


def main() -> int:
    """Print each figure beside its limit; fail if one is exceeded."""
    functions = list(functions_of_package())
    statements = [statement for function in functions for statement in statements_of(function)]
    sizes = sorted(sum(1 for _ in own_nodes(statement)) for statement in statements)
    packed = [statement for statement in statements if branches_of(statement) >= PACKED]
    types = [annotation for function in functions for annotation in types_of(function)]
    untyped = [annotation for annotation in types if "Any" in annotation]
    figures = (
        ("Nodes per statement", sum(sizes) / len(sizes), MAX_MEAN),
        ("Nodes of nine statements in ten, at most", sizes[len(sizes) * 9 // 10], MAX_OF_NINE_TENTHS),
        ("Packed statements, percent", 100 * len(packed) / len(statements), MAX_PACKED_PERCENT),
        ("Parameters typed Any, percent", 100 * len(untyped) / len(types), MAX_UNTYPED_PERCENT),
    )
    status = 0
    for meaning, found, limit in figures:
        print(f"{meaning}: {found:.2f}, the limit is {limit:g}")
        if found > limit:
            status = 1
    return status


def functions_of_package() -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the functions of the package."""
    for file in sorted(PACKAGE.rglob("*.py")):
        if "sandbox" in file.parts:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, FUNCTIONS):
                yield node


def statements_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.stmt]:
    """Yield the statements of a function, without those of functions in it, which are functions of their own."""
    pending = list(function.body)
    if ast.get_docstring(function, clean=False) is not None:
        pending = pending[1:]
    while pending:
        statement = pending.pop()
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            continue
        yield statement
        for child in ast.walk(statement):
            if child is not statement and isinstance(child, ast.stmt) and is_direct(statement, child):
                pending.append(child)


def is_direct(statement: ast.stmt, child: ast.stmt) -> bool:
    """Return whether a statement stands in the body of another, and in none between them."""
    for node in ast.iter_child_nodes(statement):
        if node is child:
            return True
        if isinstance(node, ast.ExceptHandler | ast.match_case) and child in node.body:
            return True
    return False


def own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes of a statement, without the statements in its body."""
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        yield node
        children = ast.iter_child_nodes(node)
        pending += [child for child in children if not isinstance(child, HOLDERS_OF_STATEMENTS)]


def branches_of(statement: ast.stmt) -> int:
    """Return how many comprehensions, conditions and functions without a name a simple statement holds."""
    if not isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Return | ast.Expr | ast.Raise):
        return 0
    return sum(isinstance(node, BRANCHES) for node in own_nodes(statement))


def types_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """Yield the types of the parameters that have one."""
    for parameter in (*function.args.args, *function.args.kwonlyargs):
        if parameter.annotation is not None:
            yield ast.unparse(parameter.annotation)


if __name__ == "__main__":
    sys.exit(main())
