"""Rosters and organization files to read and reports to write, on the worker or in an object store."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
from airflow_provider_workspace.version_compat import AirflowNotFoundException, get_connection

# Maximum size of a file that is read: it is read at once.
MAX_MEGABYTES = 20
# Maximum rows of a report in XCom if a file contains all of them.
MAX_ROWS_IN_XCOM = 1000
# Where a report is found.
SHARED = "the URL of an object store, such as s3://conn_id@bucket/report.csv, or an absolute path"
# First characters of a formula in a spreadsheet.
FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def file_at(path: Any) -> Any:
    """
    Return the file of a path; ``None`` for ``None``.

    :param path: path on this machine, or an ``airflow.sdk.ObjectStoragePath`` or its URL, such as
        ``s3://conn_id@bucket/team.csv``
    :raises WorkspaceConfigError: if the connection in the URL does not exist
    :raises WorkspaceInputError: if it is no path, the URL is invalid, or no provider for its scheme is installed
    """
    return None if path is None else StoredFile(path) if is_stored(path) else LocalFile(path, "path")


def is_stored(path: Any) -> bool:
    """Return whether a path is a URL or an object of a store."""
    return "://" in path if isinstance(path, str) else hasattr(path, "storage_options")


class _File:
    """A file; its path is one of this machine, or of a store."""

    path: Any

    @property
    def suffix(self) -> str:
        return str(self.path.suffix)

    def __str__(self) -> str:
        return repr(str(self.path))

    def read(self) -> str:
        """
        Return all of its text.

        :raises WorkspaceInputError: if it cannot be read, is larger than :data:`MAX_MEGABYTES`, or is not in UTF-8
        """
        return self.read_all()[0]

    def read_all(self) -> tuple[str, bytes]:
        """Return its text, and its bytes, of which ``sha256sum`` prints the SHA-256; see :meth:`read`."""
        most = MAX_MEGABYTES * 1_000_000
        try:
            content = self.read_bytes(most + 1)
        except OSError as error:
            raise WorkspaceInputError(f"{self} cannot be read: {error}") from error
        if len(content) > most:
            raise WorkspaceInputError(f"Split {self}: it is larger than {MAX_MEGABYTES} MB")
        try:
            return content.decode("utf-8-sig"), content
        except UnicodeDecodeError as error:
            raise WorkspaceInputError(
                f'Save {self} with the encoding UTF-8: byte {error.start} is invalid (in a spreadsheet: "CSV UTF-8")'
            ) from None

    def read_bytes(self, size: int) -> bytes:
        raise NotImplementedError


class StoredFile(_File):
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

    def read_bytes(self, size: int) -> bytes:
        with self._clear_errors("read"):
            self.fs.invalidate_cache()
            kind = self.fs.info(self.path.path)["type"]
            if kind != "file":
                raise WorkspaceInputError(f"{self} is a {kind}; expected a file")
            with self.path.open("rb") as file:
                return bytes(file.read(size))

    def exists(self) -> bool:
        with self._clear_errors("written"):
            self.fs.invalidate_cache()
            return bool(self.fs.isfile(self.path.path))

    def write(self, content: bytes, mode: str = "wb") -> None:
        with self._clear_errors("written"), self.path.open(mode) as file:
            file.write(content)

    def write_once(self, content: bytes) -> None:
        """
        Create the file, on a disk with its folder. If it exists with the same content, an earlier try wrote it.

        :raises WorkspaceInputError: if it exists with other content
        :raises WorkspaceStorageError: if it cannot be written
        """
        try:
            with self._clear_errors("written"):
                if self.path.protocol == "file":  # elsewhere it could create a bucket
                    self.path.parent.mkdir(parents=True, exist_ok=True)
            self.write(content, "xb")
        except FileExistsError:
            if self.read_bytes(len(content) + 1) != content:
                msg = f"Start a new run: {self} exists with other content, and is never overwritten"
                raise WorkspaceInputError(msg, problem="file-exists") from None

    def entries(self) -> list[Any]:
        """Return the paths in this folder; none if it does not exist."""
        with self._clear_errors("read"):
            self.fs.invalidate_cache()
            return [*self.path.iterdir()] if self.path.is_dir() else []

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
        except (WorkspaceError, FileExistsError):
            raise
        except (FileNotFoundError, NotADirectoryError):
            if done == "read":
                raise WorkspaceInputError(f"There is no file {self}", problem="file-missing") from None
            raise WorkspaceStorageError(f"There is no bucket or folder for the file {self}", permanent=True) from None
        except PermissionError as error:
            key = f"connection '{self.conn_id}'" if self.conn_id else "the credentials of this worker"
            msg = f"Permission denied: {self} cannot be {done} with {key} ({error})"
            if done == "read":
                raise WorkspaceInputError(msg, problem="file-forbidden") from error
            raise WorkspaceStorageError(msg, permanent=True, problem="file-forbidden") from error
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.EBUSY:  # s3fs: replaced while it was read
                raise WorkspaceInputError(f"Wait until {self} is complete: it changed while it was read") from None
            raise WorkspaceStorageError(
                f"The object store failed: {self} cannot be {done} ({type(error).__name__}: {error})",
                problem="object-store-failed",
            ) from error


class LocalFile(_File):
    """
    A file on this machine.

    :param argument: name of the argument that holds the path, for messages
    :raises WorkspaceInputError: if it is not a path
    """

    def __init__(self, path: Any, argument: str) -> None:
        if not isinstance(path, str | os.PathLike):
            raise WorkspaceInputError(f"{argument} must be the name of a file, not {type_name(path)}")
        self.path = Path(path).absolute()  # errors show all of it

    def read_bytes(self, size: int) -> bytes:
        try:
            mode = self.path.stat().st_mode
        except FileNotFoundError:
            raise WorkspaceInputError(f"There is no file {self} on this worker", problem="file-missing") from None
        except ValueError as error:  # such as a null byte
            raise WorkspaceInputError(f"{self} is not a path: {error}") from None
        if not stat.S_ISREG(mode):  # reading a pipe or a device may never end
            kind = (
                "a directory" if stat.S_ISDIR(mode) else "a named pipe" if stat.S_ISFIFO(mode) else "a device or socket"
            )
            raise WorkspaceInputError(f"{self} is {kind}; expected a regular file")
        with self.path.open("rb") as file:
            return bytes(file.read(size))

    def exists(self) -> bool:
        """
        Return whether the file exists.

        :raises WorkspaceInputError: if it exists and this worker may not write it
        """
        try:
            found: bool = self.path.exists()
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
        self.file: StoredFile | LocalFile = StoredFile(path) if is_stored(path) else LocalFile(path, "report_path")
        bundle: Any = getattr(ti, "bundle_instance", None)
        # Of a versioned bundle each worker has checkouts of its own, which Airflow deletes. Tests pass mocks.
        versioned = getattr(bundle, "supports_versioning", None) is True
        if versioned and not is_stored(path) and self.file.path.is_relative_to(bundle.path):
            raise WorkspaceInputError(f"Set report_path to {SHARED}: {self.file} is in a checkout of the Dag bundle")
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
        as_json = self.file.suffix == ".json"
        text = json.dumps(report, indent=1) if as_json else csv_text(self.columns, report[self.rows])
        self.file.write(text.encode(errors="backslashreplace"))

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


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Return a CSV file for people, in which no cell is a formula."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    """Return a cell that spreadsheets do not treat as a formula; what is no single value as JSON."""
    if isinstance(value, dict | list):
        return json.dumps(value) if value else ""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULAS) else value
