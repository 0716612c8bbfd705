"""
`make test-all`: run the tests on each supported Airflow and Python, and print a table.

The session `next` has the newest versions of everything, including pre-releases. It may fail; it lists the versions
that differ from the newest supported Airflow, and the tests that fail.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

import debian_python

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints"
SESSIONS = ROOT / "build" / "versions"
UV = Path(sys.executable).with_name("uv")
# Airflow releases with their constraints files.
AIRFLOWS = {"3.1": "airflow-3.1.txt", "3.2": "airflow-3.2.txt", "3.3": "current.txt"}
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
# The first Airflow for a Python, where it is not the first of all.
SINCE = {"3.14": "3.3"}


@dataclass(frozen=True)
class Session:
    """
    An environment to test in.

    :ivar constraints: constraints file; ``None`` for the newest versions
    :ivar long: whether long tests are included
    """

    name: str
    constraints: Path | None
    python: str
    long: bool = False

    @property
    def tests(self) -> str:
        """The ``-m`` expression that selects the tests."""
        return "not slow and not e2e" if self.long else "not slow and not e2e and not per_airflow"

    @property
    def home(self) -> Path:
        """The folder of the environment."""
        return SESSIONS / self.name

    @property
    def report(self) -> Path:
        """The JUnit report of pytest."""
        return SESSIONS / f"{self.name}.xml"

    @property
    def log(self) -> Path:
        """The output of the run."""
        return SESSIONS / f"{self.name}.log"


@dataclass(frozen=True)
class Result:
    """The result of a session."""

    name: str
    outcome: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0
    reason: str = ""


ALL = {
    session.name: session
    for session in (
        *(
            Session(f"{a}-{p}", CONSTRAINTS / file, p, p == PYTHONS[0])
            for a, file in AIRFLOWS.items()
            for p in PYTHONS
            if a >= SINCE.get(p, a)
        ),
        Session("lowest", CONSTRAINTS / "lowest.txt", PYTHONS[0]),
        Session("next", None, "3.13"),
    )
}


def main() -> None:
    """
    Run the named sessions, or all; arguments after ``--`` are for pytest.

    :raises SystemExit: with 1 if a session other than ``next`` failed
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("session", nargs="*", help=f"one of {', '.join(ALL)}; all if none is named")
    arguments = sys.argv[1:]
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    names = parser.parse_args(arguments[:cut]).session or list(ALL)
    if unknown := set(names) - set(ALL):
        parser.error(f"no such session: {', '.join(sorted(unknown))}. There are {', '.join(ALL)}.")
    SESSIONS.mkdir(parents=True, exist_ok=True)
    results = []
    for name in names:
        print(f"==> {name}", flush=True)
        results.append(run(ALL[name], arguments[cut + 1 :]))
        print(f"    {results[-1].outcome} {results[-1].reason}", flush=True)
    print_table(results)
    if "next" in names:
        print_changes(ALL["next"])
    raise SystemExit(any(result.outcome == "failed" and ALL[result.name].constraints for result in results))


def run(session: Session, pytest: list[str]) -> Result:
    """Create the environment of a session and run the tests in it."""
    interpreter = next(interpreters(session.python), None) or debian_python.unpack(
        session.python, SESSIONS / f"debian-{session.python}"
    )
    if interpreter is None:
        return Result(session.name, "skipped", reason=f"there is no Python {session.python} here")
    began = time.monotonic()
    session.report.unlink(missing_ok=True)
    with session.log.open("w") as log:
        if not make(session, interpreter, log.fileno()):
            return Result(session.name, "failed", reason=f"cannot be installed: see {short(session.log)}")
        code = subprocess.run(
            [
                *(session.home / "bin" / "python", "-m", "pytest", "--quiet", "-m", session.tests),
                # Some of these need the dependencies of `make e2e`.
                "--ignore=tests/e2e",
                *("--numprocesses", "auto", "--maxprocesses", "4", "--dist", "loadfile", "--no-loadscope-reorder"),
                *("--override-ini", f"cache_dir={session.home / 'pytest-cache'}", f"--junitxml={session.report}"),
                *pytest,
            ],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        ).returncode
    if not session.report.exists():
        return Result(session.name, "failed", reason=f"pytest ended with {code}: see {short(session.log)}")
    suite = ET.parse(session.report).getroot()[0]  # noqa: S314 - pytest wrote it just now
    failed = int(suite.attrib["failures"]) + int(suite.attrib["errors"])
    skipped = int(suite.attrib["skipped"])
    passed = int(suite.attrib["tests"]) - failed - skipped
    return Result(
        session.name,
        "failed" if code else "passed",
        *(passed, failed, skipped),
        seconds=time.monotonic() - began,
        reason=f"see {short(session.log)}" if code else "",
    )


def interpreters(python: str) -> Iterator[str]:
    """Yield the Pythons of a version that uv finds, including those of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for wanted in (python, *map(str, sorted(pyenv.glob(f"{python}.*/bin/python")))):
        found = subprocess.run(
            [UV, "python", "find", "--no-project", "--system", wanted], capture_output=True, text=True, check=False
        )
        if found.returncode == 0:
            yield found.stdout.strip()


def make(session: Session, interpreter: str | Path, log: int) -> bool:
    """Install the environment of a session, unless an earlier run did; return whether that worked."""
    python = session.home / "bin" / "python"
    stamp = session.home / "made-of"
    inputs = [file for file in (session.constraints, ROOT / "pyproject.toml") if file is not None]
    made_of = "\n".join(
        [f"{interpreter}", f"{ROOT}", *(hashlib.sha256(file.read_bytes()).hexdigest() for file in inputs)]
    )
    if session.constraints is not None and stamp.exists() and stamp.read_text() == made_of:
        return True
    shutil.rmtree(session.home, ignore_errors=True)
    # The hashes in the constraints are checked.
    versions = ("--prerelease", "allow") if session.constraints is None else ("--constraints", session.constraints)
    into = ("pip", "install", "--quiet", "--python", python)
    steps: tuple[tuple[str | Path, ...], ...] = (
        ("venv", "--quiet", "--no-project", "--python", interpreter, session.home),
        (*into, "--no-build", "--compile-bytecode", "--requirements", "pyproject.toml", "--group", "test", *versions),
        (*into, "--no-deps", "--no-build-isolation", "--offline", "--editable", ROOT),
        ("pip", "check", "--quiet", "--python", python),
    )
    for step in steps:
        if subprocess.run([UV, *step], cwd=ROOT, stdout=log, stderr=log, check=False).returncode:
            return False
    stamp.write_text(made_of)
    return True


def print_table(results: list[Result]) -> None:
    """Print a row for each session."""
    print(f"\n{'session':<10}{'outcome':<10}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>9}")
    for row in results:
        counts = f"{row.passed:>8}{row.failed:>8}{row.skipped:>9}{row.seconds:>9.0f}"
        print(f"{row.name:<10}{row.outcome:<10}{counts}  {row.reason}".rstrip())


def print_changes(session: Session) -> None:
    """Print the versions of a session that differ from the newest supported Airflow, and the failed tests."""
    command = (UV, "pip", "freeze", "--python", session.home / "bin" / "python")
    installed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    before = pinned((CONSTRAINTS / "current.txt").read_text())
    changes = [
        f"{name} {dict(before).get(name, '(new)')} -> {version}"
        for name, version in pinned(installed)
        if (name, version) not in before
    ]
    print(f"\n{session.name}, other than {list(AIRFLOWS)[-1]}: {', '.join(changes) or 'nothing'}")
    for line in session.log.read_text().splitlines():
        if line.startswith(("FAILED", "ERROR")):
            print(f"    {line}")


def pinned(requirements: str) -> list[tuple[str, str]]:
    """Return the pinned versions; a package with environment markers may have several."""
    return re.findall(r"^([a-z0-9.-]+)==([^\s;\\]+)", requirements, flags=re.MULTILINE)


def short(path: Path) -> str:
    """Return a path relative to the checkout."""
    return str(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
