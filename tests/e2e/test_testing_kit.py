"""The project of docs/testing.md in an environment with only the wheel and pytest."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]
UV = Path(sys.executable).with_name("uv")
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "testing.md").read_text(), re.DOTALL)
# The first line of a block is a comment with its file name.
FILES = {code.partition("\n")[0].removeprefix("# "): code for code in BLOCKS}


def run(*command: str | Path, cwd: Path, **env: str) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    return done.stdout


def package_index() -> dict[str, str]:
    """uv does not read the configuration of pip; see the Makefile."""
    asked = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False
    )
    index = os.environ.get("PIP_INDEX_URL") or asked.stdout.strip()
    return {"UV_DEFAULT_INDEX": index} if index else {}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python environment with the wheel, its dependencies and pytest."""
    folder = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ".", cwd=ROOT)
    (wheel,) = folder.glob("*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", "venv", cwd=folder)
    python = folder / "venv" / "bin" / "python"
    options = ("--no-build", "--compile-bytecode", "--constraints", ROOT / "constraints" / "current.txt")
    run(UV, "pip", "install", "--python", python, *options, wheel, "pytest", cwd=folder, **package_index())
    return python


def test_the_documented_project_passes_with_the_wheel(python: Path, tmp_path: Path) -> None:
    assert list(FILES) == ["dags/new_team.py", "conftest.py", "tests/test_new_team.py"]
    for name, code in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(code)
    out = run(python, "-m", "pytest", "-v", "--durations=30", cwd=tmp_path)
    print(out)
    tests = len(re.findall(r"^def test_", FILES["tests/test_new_team.py"], re.MULTILINE))
    assert f"{tests} passed" in out
