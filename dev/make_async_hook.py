"""
Generate the asynchronous hook and client from the synchronous ones; ``--check`` fails if they are not current.

They differ only in ``async`` and ``await``. Everything else that differs is written by hand in ``hooks/connection.py``,
``client/async_connections.py``, ``client/throttle.py`` and ``client/waits.py``.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "airflow_provider_workspace"
# Generated file: its source and its first line.
TWINS = {
    "hooks/workspace_async.py": ("hooks/workspace.py", "The hook for the event loop."),
    "client/aio.py": ("client/sync.py", "The client for the event loop."),
}
WORDS = {
    # The hook
    r"\bWorkspaceHook\b": "WorkspaceAsyncHook",
    r"\bWorkspaceConnectedHook\b": "WorkspaceAsyncConnectedHook",
    r"for workers\.": "for the event loop. Close the hook, or use it in ``async with``.",
    # The client
    r"\bWorkspaceClient\b": "WorkspaceAsyncClient",
    r"\bConnections\b": "AsyncConnections",
    r"\bclient\.connections\b": "client.async_connections",
    r"\bThrottle\b": "AsyncThrottle",
    r"\bParallelCalls\b": "AsyncParallelCalls",
    r"\bwaits\.sleep\b": "waits.async_sleep",
    r"\btenacity\.Retrying\b": "tenacity.AsyncRetrying",
    r"\b__(enter|exit)__\b": r"__a\1__",
    r"\bdef close\b": "def aclose",
    r"\bself\.close\b": "self.aclose",
    r"\bwith (self\._throttle\.acquire\(call\):)  # .*": r"async with \1",
    r"\bcalled with each secret\b": "awaited with each secret",
    r"(mask|sleep): Callable\[\[(str|float)\], None\]": r"\1: Callable[[\2], Awaitable[None]]",
    r"from collections\.abc import Callable, Iterable\b": "from collections.abc import Awaitable, Callable, Iterable",
    r"\byield from (pages\.new_rows\(page\))": r"for row in \1:\n                yield row",
    # Both
    r"\bIterator\b": "AsyncIterator",
}
# Calls of coroutines in the generated code.
AWAITED = {
    *("self.client.run", "self.organization_or_default", "self.project_or_default", "self.update_dashboard"),
    *("self.send", "self._send_all", "self._mask_all", "self.mask", "self._sleep", "self.close"),
    *("self._connections.send", "self._connections.close", "retrying", "self._parallel.map"),
}


def twin_of(source: Path, path: Path, title: str) -> str:
    """Return the generated code."""
    text = source.read_text()
    inserts: list[tuple[int, str]] = []
    lines = [0]
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line.encode()))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name != "__init__":
            inserts.append((start_and_end(node, lines)[0], "async "))
        elif isinstance(node, ast.Attribute) and ast.unparse(node) == "self.client":
            start, end = start_and_end(node, lines)
            inserts += [(start, "(await "), (end, "())")]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in AWAITED:
            inserts.append((start_and_end(node, lines)[0], "await "))
        elif isinstance(node, ast.Return) and ast.unparse(node).startswith("return self._rows("):
            start, end = start_and_end(node, lines)
            inserts += [(start, "async for row in "), (end, ":\n            yield row")]
    encoded = text.encode()
    # From the end, so that positions stay valid; inserts at one position keep their order.
    inserts.sort(key=lambda pair: pair[0])
    for at, insert in reversed(inserts):
        encoded = encoded[:at] + insert.encode() + encoded[at:]
    result = encoded.decode().replace("async for row in return ", "async for row in ")
    # Remove what refers to the asynchronous hook.
    result = re.sub(r"__all__ = .*?(?=class )", "", result, flags=re.DOTALL)
    result = re.sub(r"    from [\w.]*hooks\.workspace_async import .*\n", "", result)
    for pattern, word in WORDS.items():
        result = re.sub(pattern, word, result)
    head = f'"""{title} Written by dev/make_async_hook.py: change {source.name}, not this."""\n'
    result = head + result[result.index("\n", result.index('"""', 3)) + 1 :]
    ruff = [sys.executable, "-m", "ruff"]
    result = run([*ruff, "check", "--fix-only", "--quiet", "--stdin-filename", str(path), "-"], result)
    return run([*ruff, "format", "--stdin-filename", str(path), "-"], result)


def start_and_end(node: ast.expr | ast.stmt, lines: list[int]) -> tuple[int, int]:
    """Return the start and end of a node as byte offsets in the file."""
    return (
        lines[node.lineno - 1] + node.col_offset,
        lines[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0),
    )


def run(command: list[str], text: str) -> str:
    """Return the output of a command with a text as its input."""
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    for name, (source, title) in TWINS.items():
        twin = twin_of(PACKAGE / source, PACKAGE / name, title)
        if "--check" not in sys.argv:
            (PACKAGE / name).write_text(twin)
        elif twin != (PACKAGE / name).read_text():
            sys.exit(f"{name} is not current. Run: python dev/make_async_hook.py")
