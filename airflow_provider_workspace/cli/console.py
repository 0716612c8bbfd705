"""What the commands share: standard output, the hook, errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.version_compat import AirflowNotFoundException

if TYPE_CHECKING:
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook

# Where a command prints; see standard_output().
_output: TextIO = sys.stdout


@contextmanager
def standard_output() -> Iterator[None]:
    """
    Keep standard output for what a command prints, and nothing else.

    Everything else, such as Airflow's log, goes to standard error, whoever holds standard output.
    """
    global _output
    if sys.stdout is None:
        raise SystemExit("Standard output is closed. Redirect it to /dev/null if nobody reads it. Nothing was sent.")
    sys.stdout.flush()
    # Files are UTF-8, as the commands read them.
    encoding = sys.stdout.encoding if os.isatty(1) else "utf-8"
    with os.fdopen(os.dup(1), "w", encoding=encoding, errors="backslashreplace") as _output:
        os.dup2(2, 1)
        try:
            yield
        finally:
            release()


def release() -> None:
    """Give standard output back, also to a program that replaces this process."""
    sys.stdout.flush()
    os.dup2(_output.fileno(), 1)


@contextmanager
def open_hook(conn_id: str) -> Iterator[WorkspaceHook]:
    """Open a hook; an error ends the command with its message."""
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook

    find_connections_in_database()
    with errors_without_traceback(), WorkspaceHook(conn_id) as hook:
        yield hook


def find_connections_in_database() -> None:
    """Let the Task SDK find connections in the database, as in Airflow's own commands."""
    os.environ["_AIRFLOW_PROCESS_CONTEXT"] = "server"


@contextmanager
def errors_without_traceback() -> Iterator[None]:
    """End the command with the message of an error."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (AirflowNotFoundException, WorkspaceError) as error:
        raise SystemExit(str(error)) from None
    except SQLAlchemyError as error:
        found = str(getattr(error, "orig", error))
        raise SystemExit(f"Airflow's database cannot be read: {found}. Run `airflow db check`") from None


def print_lines(*lines: str) -> None:
    """Print lines."""
    write("".join(f"{line}\n" for line in lines))


def write(text: str) -> None:
    """Write a text; a reader that has closed the pipe, such as ``head``, ends the command."""
    try:
        _output.write(text)
        _output.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), _output.fileno())  # for what Python writes at its end
        if isinstance(error, BrokenPipeError):
            raise SystemExit(1) from None
        raise SystemExit(f"Standard output cannot be written: {error.strerror}") from None
