"""Killing processes with their children."""

from __future__ import annotations

from contextlib import suppress

import psutil


def kill_tree(root: psutil.Process) -> int:
    """Kill a process and its children with SIGKILL; return the number of processes."""
    tree = [root]
    for process in tree:  # which grows
        with suppress(psutil.NoSuchProcess):
            process.suspend()  # so that it starts no others
            tree += process.children()
    for process in tree:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(tree, timeout=5)
    return len(tree)


def find_child(parent: int, word: str) -> psutil.Process:
    """
    Return the child process with a word in its command line.

    :raises LookupError: if there is none
    """
    for child in psutil.Process(parent).children():
        if word in " ".join(child.cmdline()):
            return child
    msg = f"no child of {parent} has {word!r} in its command line"
    raise LookupError(msg)
