"""
Unpack a Python that is too new for this machine from the packages of Debian unstable, without installing it.

A script in its place starts it with its own C library. This needs `apt-get` and `dpkg-deb`, but no root rights.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# Python, and a library that wheels expect on every machine.
PACKAGES = ("python{python}", "libstdc++6")


def unpack(python: str, folder: Path) -> Path | None:
    """
    Return the interpreter, unpacked below a folder unless it is there; ``None`` if it is not available.

    :param python: version such as ``3.14``
    """
    root = folder / "root"
    program = root / "usr" / "bin" / f"python{python}"
    real = program.with_suffix(f"{program.suffix}.real")
    if not real.exists():
        if not (shutil.which("apt-get") and shutil.which("dpkg-deb") and KEYRING.exists()):
            return None
        shutil.rmtree(folder, ignore_errors=True)
        archive = debian_archive()
        if archive is None or not download(python, archive, folder):
            return None
        for package in sorted((folder / "cache" / "archives").glob("*.deb")):
            subprocess.run(["dpkg-deb", "--extract", package, root], check=True)
        for used in ("cache", "state"):
            shutil.rmtree(folder / used)
        program.rename(real)
    # Written each time, since the checkout may have moved.
    loader = next((root / "usr" / "lib").glob("*-linux-gnu*/ld-linux-*.so*"))
    program.write_text(f'#!/bin/sh\nexec {loader} --library-path {loader.parent} --argv0 "$0" {real} "$@"\n')
    program.chmod(0o755)
    return program


def debian_archive() -> str | None:
    """Return the URL of the Debian archive that this machine uses."""
    command = ("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages")
    sources = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    return next((source for source in sources if source.rstrip("/").endswith("/debian")), None)


def download(python: str, archive: str, folder: Path) -> bool:
    """Download Python with all its dependencies; return whether that worked."""
    for name in ("state/lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    (folder / "sources.list").write_text(f"deb [signed-by={KEYRING}] {archive} unstable main\n")
    apt = (
        *("apt-get", "--quiet", "--quiet", "--yes", "--no-install-recommends"),
        *("-o", f"Dir::State={folder / 'state'}", "-o", f"Dir::Cache={folder / 'cache'}"),
        *("-o", f"Dir::State::status={folder / 'status'}", "-o", f"Dir::Etc::sourcelist={folder / 'sources.list'}"),
        *("-o", "Dir::Etc::sourceparts=-", "-o", "Debug::NoLocking=true"),
    )
    packages = [name.format(python=python) for name in PACKAGES]
    return all(
        subprocess.run([*apt, *words], stdout=sys.stderr, check=False).returncode == 0
        for words in (("update",), ("--download-only", "install", *packages))
    )
