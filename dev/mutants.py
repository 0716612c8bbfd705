"""
Do the tests bite? Change the package in one place at a time, and see whether a test fails.

``python dev/mutants.py map`` records which test reaches which line (five minutes); ``python dev/mutants.py run`` then
tries mutants, chosen by seed, each against the tests that reach it: first those that go through public names, then
those that name the inside. It prints each survivor, and the two kill ratios.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

HOME = Path(__file__).parent.parent
BUILD = HOME / "build" / "mutants"
PACKAGE = "airflow_provider_workspace"
ROOMS = ("api", "client", "procedures", "notes", "files", "windows", "access", "organization", "operators")
INSIDE = re.compile(
    rf"{PACKAGE}(\.| import )"
    r"(api(?!\.(models|operations|operation)\b)|client|procedures|notes|files|access|organization"
    r"|operators\.(base|arguments|row_filter|windows)|triggers\.(polling|shared_hook))"
)
OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
SECONDS, MAX_TESTS = 150, 60
COVERAGE = f"""[run]
source = {PACKAGE}
data_file = {BUILD / "data"}
parallel = true
"""


def changes(tree: ast.AST) -> Iterator[tuple[int, str, ast.AST, str, object]]:
    """Yield each change: line, what it is, the node, its field, and the new value of that field."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(ops=[op]) if type(op) in OPPOSITES:
                yield node.lineno, f"{type(op).__name__} reversed", node, "ops", [OPPOSITES[type(op)]()]
            case ast.BoolOp(op=op):
                yield node.lineno, "and <-> or", node, "op", ast.Or() if isinstance(op, ast.And) else ast.And()
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
                if not (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"):
                    for value in (True, False) if not isinstance(node, ast.While) else (False,):
                        yield node.lineno, f"condition always {value}", node, "test", ast.Constant(value)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield node.lineno, "not removed", node, "operand", ast.UnaryOp(ast.Not(), operand)
            case ast.Constant(value=bool() | int() | float() as value) if not isinstance(value, str):
                yield (
                    node.lineno,
                    f"{value} changed",
                    node,
                    "value",
                    not value if isinstance(value, bool) else value + 1,
                )
            case ast.Return(value=ast.expr()):
                yield node.lineno, "returns None", node, "value", ast.Constant(None)
            case ast.Expr(value=ast.Call(func=func)) if not ast.unparse(func).startswith(("log.", "self.log.")):
                yield node.lineno, "call removed", node, "value", ast.Constant(None)


def candidates() -> list[tuple[str, int, int, str]]:
    """Return the file, the number of the change in it, its line and what it is."""
    found = []
    for room in ROOMS:
        for path in sorted((HOME / PACKAGE / room).rglob("*.py")):
            for number, (line, what, *_) in enumerate(changes(ast.parse(path.read_text()))):
                found.append((str(path.relative_to(HOME)), number, line, what))
    return found


def mutate(path: Path, number: int) -> None:
    """Make one change in a file."""
    tree = ast.parse(path.read_text())
    for at, (_, _, node, field, value) in enumerate(changes(tree)):
        if at == number:
            setattr(node, field, value)
            break
    path.write_text(ast.unparse(ast.fix_missing_locations(tree)))


def reaching() -> dict[tuple[str, int], list[str]]:
    """Return the tests that reach each line; those that reach the fewest lines first."""
    tests: dict[tuple[str, int], set[str]] = defaultdict(set)
    reached: Counter[str] = Counter()
    with sqlite3.connect(BUILD / "data") as data:
        rows = data.execute(
            "SELECT path, context, numbits FROM line_bits JOIN file ON file.id = file_id "
            "JOIN context ON context.id = context_id WHERE context != ''"
        )
        for path, context, bits in rows:
            name = re.sub(r"\[.*", "", context.split("|")[0])
            lines = [8 * at + bit for at, byte in enumerate(bits) for bit in range(8) if byte >> bit & 1]
            reached[name] += len(lines)
            for line in lines:
                tests[str(Path(path).relative_to(HOME)), line].add(name)
    return {line: sorted(names, key=lambda name: (reached[name], name)) for line, names in tests.items()}


def killed(copy: Path, tests: list[str]) -> bool:
    """Return whether one of the tests fails."""
    if not tests:
        return False
    (copy / "tests.txt").write_text("\n".join(tests[:MAX_TESTS]))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-p", "no:randomly"]
    env = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [*command, "-m", "not slow and not e2e", "@tests.txt"],
            cwd=copy, env=env, timeout=SECONDS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return True
    return done.returncode not in (0, 5)


def main() -> None:
    """Record the map, or try mutants."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("map", "run"))
    parser.add_argument("--mutants", type=int, default=300)
    parser.add_argument("--seed", type=int, default=31)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--again", type=Path, help="results of an earlier run: try the mutants that it killed")
    options = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    if options.what == "map":
        (BUILD / "coverage.ini").write_text(COVERAGE)
        command = [sys.executable, "-m", "pytest", "-q", "-n", str(options.jobs), "-m", "not slow and not e2e"]
        sys.exit(
            subprocess.call(
                [*command, f"--cov-config={BUILD / 'coverage.ini'}", "--cov", "--cov-context=test", "--cov-report="],
                cwd=HOME,
            )
        )
    tests = reaching()
    inside = {str(p.relative_to(HOME)) for p in (HOME / "tests").rglob("*.py") if INSIDE.search(p.read_text())}
    everything = [each for each in candidates() if (each[0], each[2]) in tests]
    chooser = random.Random(options.seed)  # noqa: S311 - not cryptography
    chosen = chooser.sample(everything, min(options.mutants, len(everything)))
    copies: SimpleQueue[Path] = SimpleQueue()
    for job in range(options.jobs):
        copy = BUILD / f"copy{job}"
        shutil.rmtree(copy, ignore_errors=True)
        ignored = shutil.ignore_patterns(".venv", "build", ".git", "__pycache__")
        shutil.copytree(HOME, copy, ignore=ignored)
        copies.put(copy)

    def attempt(mutant: tuple[str, int, int, str]) -> tuple[str, str]:
        file, number, line, what = mutant
        copy, names = copies.get(), tests[file, line]
        try:
            mutate(copy / file, number)
            if killed(copy, [name for name in names if name.split("::")[0] not in inside]):
                result = "outer"
            else:
                result = "inside" if killed(copy, [n for n in names if n.split("::")[0] in inside]) else "survived"
        finally:
            shutil.copy(HOME / file, copy / file)
            copies.put(copy)
        print(f"{result:8} {file}:{line} {what} ({len(names)} tests)", flush=True)
        return f"{file}:{line}:{number} {what}", result

    if options.again:
        earlier = json.loads(options.again.read_text())
        chosen = [each for each in chosen if earlier.get(f"{each[0]}:{each[2]}:{each[1]} {each[3]}") != "survived"]
    with ThreadPoolExecutor(options.jobs) as pool:
        results = dict(pool.map(attempt, chosen))
    (BUILD / "results.json").write_text(json.dumps(results, indent=1))
    count = Counter(results.values())
    total = len(results)
    print(
        f"{total} of {len(everything)} mutants: outer tests kill {count['outer'] / total:.1%}, all tests "
        f"{(count['outer'] + count['inside']) / total:.1%}"
    )


if __name__ == "__main__":
    main()
