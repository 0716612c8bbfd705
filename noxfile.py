"""The sessions of `make test-all`: each supported Airflow and Python, the lowest versions, and the next Airflow."""

from __future__ import annotations

import os
from pathlib import Path

import nox

nox.options.default_venv_backend = "uv"
nox.options.envdir = "build/nox"
nox.options.reuse_venv = "yes"

# Airflow releases with their constraints files.
AIRFLOWS = {"3.1": "airflow-3.1", "3.2": "airflow-3.2", "3.3": "current"}
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
# The first Airflow for a Python, where it is not the first of all.
SINCE = {"3.14": "3.3"}
DEBIAN = Path("build/debian-3.14").resolve()
PYENV = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
# Where Pythons are looked for: what stands before comes first.
FOLDERS = [os.environ["PATH"], *map(str, PYENV.glob("*/bin")), str(DEBIAN / "root" / "usr" / "bin")]
os.environ["PATH"] = os.pathsep.join(FOLDERS)


@nox.session(name="debian-3.14", venv_backend="none", default=False)
def debian(session: nox.Session) -> None:
    """Unpack Python 3.14 from Debian's packages, if this machine has none."""
    session.run("sh", "dev/debian_python.sh", "3.14", str(DEBIAN))


def add(name: str, python: str, constraints: str | None) -> None:
    """
    Add a session.

    :param constraints: constraints file; ``None`` for the newest versions, pre-releases included
    """
    versions = ["--constraints", f"constraints/{constraints}.txt"] if constraints else ["--prerelease", "allow"]
    project = ["--no-build", "--requirements", "pyproject.toml", "--group", "test"]
    # What takes long and depends only on the Airflow release is tried with one Python, what is `per_python` with each.
    one = constraints != "lowest" and python == PYTHONS[0]
    kept = "per_airflow or per_python" if one else "per_python"
    left_out = f"e2e or (slow or per_airflow) and not ({kept})"

    @nox.session(
        name=name,
        python=python,
        reuse_venv=bool(constraints),
        requires=["debian-3.14"] if python == "3.14" else [],
    )
    def tests(session: nox.Session) -> None:
        # The hashes in the constraints are checked.
        session.install("--exact", "--compile-bytecode", *project, *versions)
        session.install("--no-deps", "--no-build-isolation", "--offline", "--editable", ".")
        session.run("uv", "pip", "check")
        if not constraints:  # what would have to change for the newest supported Airflow
            session.run("uv", "pip", "install", "--dry-run", *project, "--constraints", "constraints/current.txt")
        session.run(
            *("python", "-m", "pytest", "--quiet", "-p", "no:cacheprovider", "-m", f"not ({left_out})"),
            "--ignore=tests/e2e",  # some of these need the dependencies of `make e2e`
            *("--numprocesses", "auto", "--maxprocesses", "4", "--dist", "loadfile", "--no-loadscope-reorder"),
            *session.posargs,
        )


for python in PYTHONS:
    for airflow, file in AIRFLOWS.items():
        if airflow >= SINCE.get(python, airflow):
            add(f"{airflow}-{python}", python, file)
add("lowest", PYTHONS[0], "lowest")
add("next", "3.13", None)
