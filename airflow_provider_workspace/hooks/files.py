"""Rosters to read and reports to write, on the worker or in an object store."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from airflow_provider_workspace.errors import (
    WorkspaceConfigError,
    WorkspaceError,
    WorkspaceInputError,
    WorkspaceStorageError,
    type_name,
)
from airflow_provider_workspace.procedures.roster_files import RosterFile
from airflow_provider_workspace.version_compat import AirflowNotFoundException, get_connection

# Maximum rows of a report in XCom if a file contains all of them.
MAX_ROWS_IN_XCOM = 1000
# Where a report is found.
SHARED = "the URL of an object store, such as s3://conn_id@bucket/report.csv, or an absolute path"
# First characters of a formula in a spreadsheet.
FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def file_at(path: Any) -> Any:
    """
    Return the file of a roster.

    :param path: path on this machine, or an ``airflow.sdk.ObjectStoragePath`` or its URL, such as
        ``s3://conn_id@bucket/team.csv``
    :raises WorkspaceConfigError: if the connection in the URL does not exist
    :raises WorkspaceInputError: if the URL is invalid, or no provider for its scheme is installed
    """
    return StoredFile(path) if is_stored(path) else path


def is_stored(path: Any) -> bool:
    """Return whether a path is a URL or an object of a store."""
    return "://" in path if isinstance(path, str) else hasattr(path, "storage_options")


class StoredFile(RosterFile):
    """
    A file in an object store.

    :param path: ``airflow.sdk.ObjectStoragePath`` or its URL, with or without a connection
    """

    def __init__(self, path: Any) -> None:
        from airflow.sdk import ObjectStoragePath

        try:
            self.path = ObjectStoragePath(path)
        except (ValueError, TypeError) as error:
            raise WorkspaceInputError(f"{path!r} is not a valid URL: {error}") from None
        self.suffix = self.path.suffix
        # Before Airflow 3.3 it is in the storage options.
        self.conn_id = getattr(self.path, "conn_id", None) or self.path.storage_options.get("conn_id")
        if self.conn_id:
            try:  # without it, the provider of a store may use the public endpoint
                get_connection(self.conn_id)
            except AirflowNotFoundException:
                raise WorkspaceConfigError(
                    f"There is no connection '{self.conn_id}': create it, or correct {self}. Nothing was sent."
                ) from None
        try:
            self.fs = self.path.fs
        except Exception as error:
            raise WorkspaceInputError(
                f"Install the Airflow provider for {self.path.protocol}:// ({error}), which {self} needs"
            ) from error

    def __str__(self) -> str:
        return repr(str(self.path))

    def read_bytes(self, size: int) -> bytes:
        with self._clear_errors("read"):
            self.fs.invalidate_cache()
            kind = self.fs.info(self.path.path)["type"]
            if kind != "file":
                raise WorkspaceInputError(f"{self} is a {kind}; expected a file")
            with self.path.open("rb") as file:
                content: bytes = file.read(size)
        return content

    def exists(self) -> bool:
        with self._clear_errors("written"):
            self.fs.invalidate_cache()
            return bool(self.fs.isfile(self.path.path))

    def write(self, content: bytes) -> None:
        with self._clear_errors("written"), self.path.open("wb") as file:
            file.write(content)

    @contextmanager
    def _clear_errors(self, done: str) -> Iterator[None]:
        """
        Convert the exceptions of any store.

        :param done: ``read`` (before anything is sent) or ``written``
        :raises WorkspaceInputError: if a file to read does not exist or may not be read
        :raises WorkspaceStorageError: for anything else
        """
        try:
            yield
        except WorkspaceError:
            raise
        except FileNotFoundError:
            if done == "read":
                raise WorkspaceInputError(f"There is no file {self}") from None
            raise WorkspaceStorageError(f"There is no bucket or folder for the file {self}", permanent=True) from None
        except PermissionError as error:
            key = f"connection '{self.conn_id}'" if self.conn_id else "the credentials of this worker"
            msg = f"Permission denied: {self} cannot be {done} with {key} ({error})"
            if done == "read":
                raise WorkspaceInputError(msg) from error
            raise WorkspaceStorageError(msg, permanent=True) from error
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.EBUSY:  # s3fs: replaced while it was read
                raise WorkspaceInputError(f"Wait until {self} is complete: it changed while it was read") from None
            raise WorkspaceStorageError(
                f"The object store failed: {self} cannot be {done} ({type(error).__name__}: {error})"
            ) from error


class _LocalReport:
    """A report on this machine."""

    def __init__(self, path: str | os.PathLike[str], bundle: Any) -> None:
        self.path = Path(path).absolute()
        # Of a versioned bundle each worker has checkouts of its own, which Airflow deletes. Tests pass mocks.
        if getattr(bundle, "supports_versioning", None) is True and self.path.is_relative_to(bundle.path):
            raise WorkspaceInputError(f"Set report_path to {SHARED}: {self} is in a checkout of the Dag bundle")
        self.suffix = self.path.suffix

    def __str__(self) -> str:
        return repr(str(self.path))

    def exists(self) -> bool:
        """
        Return whether the file exists.

        :raises WorkspaceInputError: if it exists and this worker may not write it
        """
        try:
            found = self.path.exists()
        except (OSError, ValueError):  # a name that no file can have, which writing reports
            return False
        if found and not (self.path.is_file() and os.access(self.path, os.W_OK)):
            raise WorkspaceInputError(f"{self} is not a file that this worker may write")
        return found

    def write(self, content: bytes) -> None:
        """
        Replace the file, completely or not at all.

        :raises WorkspaceStorageError: if it cannot be written
        """
        part = self.path.with_name(f".{self.path.name}.part")
        try:
            part.write_bytes(content)
            part.replace(self.path)
        except (OSError, ValueError) as error:  # ValueError: a name that no file can have
            with suppress(OSError, ValueError):
                part.unlink()
            kinds = (FileNotFoundError, NotADirectoryError, PermissionError, ValueError)
            permanent = isinstance(error, kinds) or error.errno == errno.EROFS  # which is no PermissionError
            cure = f"Set report_path to {SHARED} that workers may write. " if permanent else ""
            why = getattr(error, "strerror", None) or error
            raise WorkspaceStorageError(
                f"{cure}The report {self} cannot be written: {why}", permanent=permanent
            ) from None


def open_report(path: Any, *how: Any) -> ReportFile | None:
    """Return the report file; ``None`` if ``path`` is ``None``. The arguments are those of :class:`ReportFile`."""
    return None if path is None else ReportFile(path, *how)


class ReportFile:
    """
    A file for a report on every row, as CSV or JSON.

    :param path: path as for :func:`file_at`; ends in ``.csv`` or ``.json``
    :param rows: key of the rows in the report
    :param columns: fields of a row
    :param needs_attention: statuses of rows that need attention
    :param ti: the task instance
    :raises WorkspaceError: if the file cannot be written, or would be in a checkout of a versioned Dag bundle
    """

    def __init__(
        self, path: Any, rows: str, columns: Sequence[str], needs_attention: Collection[str], ti: Any = None
    ) -> None:
        if not isinstance(path, str | os.PathLike) and not is_stored(path):
            raise WorkspaceInputError(f"report_path must be the name of a file, not {type_name(path)}")
        self.file = StoredFile(path) if is_stored(path) else _LocalReport(path, getattr(ti, "bundle_instance", None))
        self.rows = rows
        self.columns = columns
        self.needs_attention = needs_attention
        if self.file.suffix not in (".csv", ".json"):
            raise WorkspaceInputError(f"report_path is {self.file}: expected a name that ends in .csv or .json")
        if not self.file.exists():  # fail before anything is sent
            self.write({rows: []})

    def write(self, report: Mapping[str, Any]) -> None:
        """
        Write the report.

        :raises WorkspaceStorageError: if it cannot be written
        """
        text = io.StringIO()
        if self.file.suffix == ".json":
            json.dump(report, text, indent=1)
        else:
            writer = csv.DictWriter(text, self.columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows({name: _cell(value) for name, value in row.items()} for row in report[self.rows])
        self.file.write(text.getvalue().encode(errors="backslashreplace"))

    def __str__(self) -> str:
        return str(self.file)

    def excerpt(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """Return the part of a report for XCom."""
        rows = [row for row in report[self.rows] if row["status"] in self.needs_attention]
        return {
            **{name: value for name, value in report.items() if name not in (self.rows, "table")},
            "report_path": str(self.file.path),
            "needs_attention": rows[:MAX_ROWS_IN_XCOM],
        }


def _cell(value: Any) -> Any:
    """Return a cell that spreadsheets do not treat as a formula; what is no single value as JSON."""
    if isinstance(value, dict | list):
        return json.dumps(value) if value else ""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULAS) else value
