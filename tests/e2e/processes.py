"""Processes that tests kill as an accident would: at once, without a word, and with all they have started."""

from __future__ import annotations

from contextlib import suppress

import psutil


def kill_tree(root: psutil.Process) -> int:
    """Kill a process and every process below it with -9, and return how many they were."""
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
    Return the process that a parent has started with a word in its command line.

    :raises LookupError: if there is none
    """
    for child in psutil.Process(parent).children():
        if word in " ".join(child.cmdline()):
            return child
    msg = f"no child of {parent} has {word!r} in its command line"
    raise LookupError(msg)
