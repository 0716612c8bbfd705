"""
Write ``hooks/workspace_async.py`` from ``hooks/workspace.py``; ``--check`` only says whether it is current.

What is synchronous in one is awaited in the other, and nothing else differs: whatever does differ is in
``hooks/connection.py``, by hand.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

HOOKS = Path(__file__).resolve().parent.parent / "airflow_provider_workspace" / "hooks"
SOURCE, TWIN = HOOKS / "workspace.py", HOOKS / "workspace_async.py"

HEAD = '"""The hook for the event loop. Written by dev/make_async_hook.py: change workspace.py, not this."""\n'
WORDS = {
    r"\bWorkspaceHook\b": "WorkspaceAsyncHook",
    r"\bWorkspaceConnectedHook\b": "WorkspaceAsyncConnectedHook",
    r"\bIterator\b": "AsyncIterator",
    r"for workers\.": "for the event loop. Close the hook, or use it in ``async with``.",
}
# What the class calls of itself that is a coroutine in the twin.
AWAITED = ("send", "organization_or_default", "project_or_default", "update_dashboard")


def twin() -> str:
    """Return the text of the asynchronous hook."""
    source = SOURCE.read_text()
    inserts: list[tuple[int, str]] = []
    lines = [0]
    for line in source.splitlines(keepends=True):
        lines.append(lines[-1] + len(line.encode()))
    methods = next(node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)).body
    for method in methods:
        if not isinstance(method, ast.FunctionDef):
            continue
        inserts.append((lines[method.lineno - 1] + method.col_offset, "async "))
        for node in ast.walk(method):
            if isinstance(node, ast.Attribute) and ast.unparse(node) == "self.client":
                start, end = start_and_end(node, lines)
                inserts += [(start, "(await "), (end, "())")]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                name = ast.unparse(node.func)
                if name in {f"self.{method}" for method in AWAITED} or name == "self.client.run":
                    inserts.append((start_and_end(node, lines)[0], "await "))
            elif isinstance(node, ast.Return) and ast.unparse(node).startswith("return self._rows("):
                start, end = start_and_end(node, lines)
                inserts += [(start, "async for row in "), (end, ":\n            yield row")]
    text = source.encode()
    # From the end, so that positions stay right; what is inserted at one place keeps its order.
    inserts.sort(key=lambda pair: pair[0])
    for at, insert in reversed(inserts):
        text = text[:at] + insert.encode() + text[at:]
    result = text.decode().replace("async for row in return ", "async for row in ")
    # What leads from the one to the other.
    result = re.sub(r"__all__ = .*?(?=class )", "", result, flags=re.DOTALL)
    result = re.sub(r"    from [\w.]*hooks\.workspace_async import .*\n", "", result)
    for pattern, word in WORDS.items():
        result = re.sub(pattern, word, result)
    result = HEAD + result[result.index("\n", result.index('"""', 3)) + 1 :]
    ruff = [sys.executable, "-m", "ruff"]
    result = run([*ruff, "check", "--fix-only", "--quiet", "--stdin-filename", str(TWIN), "-"], result)
    return run([*ruff, "format", "--stdin-filename", str(TWIN), "-"], result)


def start_and_end(node: ast.expr | ast.stmt, lines: list[int]) -> tuple[int, int]:
    """Return where a node starts and ends, in bytes of the file."""
    return (
        lines[node.lineno - 1] + node.col_offset,
        lines[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0),
    )


def run(command: list[str], text: str) -> str:
    """Hand a text to a program and return what it makes of it."""
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    text = twin()
    if "--check" in sys.argv and text != TWIN.read_text():
        sys.exit(f"{TWIN.name} is not what {SOURCE.name} says: run  python dev/make_async_hook.py")
    if "--check" not in sys.argv:
        TWIN.write_text(text)
