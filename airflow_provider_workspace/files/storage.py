"""A file of a task, on the worker or in an object store."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path
from typing import Any

from airflow_provider_workspace.errors import (
    WorkspaceConfigError,
    WorkspaceError,
    WorkspaceInputError,
    WorkspaceStorageError,
    shown,
    type_name,
)
from airflow_provider_workspace.version_compat import AirflowNotFoundException, get_connection

# Maximum size of a file that is read: it is read at once.
MAX_MEGABYTES = 20
# What a disk answers that has no hard links.
WITHOUT_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
# How the files of spreadsheets begin: .xlsx, .ods and other ZIP archives, and .xls.
WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
# Where a report is found.
SHARED = "the URL of an object store, such as s3://conn_id@bucket/report.csv, or an absolute path"


def file_at(path: object) -> Any:
    """
    Return the file of a path; ``None`` for ``None``.

    :param path: path on this machine, or an ``airflow.sdk.ObjectStoragePath`` or its URL, such as
        ``s3://conn_id@bucket/team.csv``
    :raises WorkspaceConfigError: if the connection in the URL does not exist
    :raises WorkspaceInputError: if it is no path, the URL is invalid, or no provider for its scheme is installed
    """
    if path is None:
        return None
    if is_stored(path):
        return UrlFile(path)
    return LocalFile(path, "path")


def is_same_file(path: object, other: object) -> bool:
    """Return whether two paths, see :func:`file_at`, lead to one file; it need not exist."""
    return _place_of(path) == _place_of(other)


def _place_of(path: object) -> str:
    """Return where a file is, apart from the connection and the links that lead there."""
    file = file_at(path)
    if isinstance(file, LocalFile):
        return os.path.realpath(str(file.path))
    if file.path.protocol == "file":
        return os.path.realpath(str(file.path.path))
    return f"{file.path.protocol}://{file.path.path}"


def folder_at(folder: object, argument: str) -> UrlFile:
    """
    Return a folder that all workers share.

    :param folder: an absolute path on this machine, or the URL of an object store
    :param argument: name of the argument that holds it, for messages
    :raises WorkspaceInputError: if it is neither
    """
    is_path = isinstance(folder, str | os.PathLike) and Path(folder).is_absolute()
    if not is_path and not is_stored(folder):
        raise WorkspaceInputError(f"{argument} must be {SHARED}, not {shown(folder)}")
    return UrlFile(f"file://{folder}" if is_path else folder)


def is_stored(path: object) -> bool:
    """Return whether a path is a URL or an object of a store."""
    if isinstance(path, str):
        return "://" in path
    return hasattr(path, "storage_options")


class TaskFile:
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

    def read_content(self) -> bytes:
        """Return all of its bytes, in whatever encoding; see :meth:`read`."""
        most = MAX_MEGABYTES * 1_000_000
        try:
            content = self.read_bytes(most + 1)
        except OSError as error:
            raise WorkspaceInputError(f"The file cannot be read: {error}. File: {self}") from error
        if len(content) > most:
            raise WorkspaceInputError(f"The file is larger than {MAX_MEGABYTES} MB. Split it: {self}")
        return content

    def read_all(self) -> tuple[str, bytes]:
        """Return its text, and its bytes, of which ``sha256sum`` prints the SHA-256; see :meth:`read`."""
        content = self.read_content()
        try:
            return content.decode("utf-8-sig"), content
        except UnicodeDecodeError as error:
            if content.startswith(WORKBOOKS):
                raise WorkspaceInputError(
                    f"The file is a workbook or an archive, whatever its name. Save it as CSV UTF-8, or unpack it: "
                    f"{self}"
                ) from None
            raise WorkspaceInputError(
                f"Byte {error.start} is not UTF-8. Save the file with the encoding UTF-8 "
                f'(in a spreadsheet: "CSV UTF-8"): {self}'
            ) from None

    def read_bytes(self, size: int) -> bytes:
        raise NotImplementedError


class UrlFile(TaskFile):
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
        self._check_connection()
        try:
            self.fs = self.path.fs
        except Exception as error:
            raise WorkspaceInputError(
                f"{self.path.protocol}:// needs an Airflow provider that is not installed ({error}). Install it: {self}"
            ) from error

    def _check_connection(self) -> None:
        """Check that the connection exists: without it, the provider of a store may use the public endpoint."""
        if not self.conn_id:
            return
        try:
            get_connection(self.conn_id)
        except AirflowNotFoundException:
            msg = f"There is no connection '{self.conn_id}': create it, or correct {self}. Nothing was sent."
            raise WorkspaceConfigError(msg) from None

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
        Create the file as :meth:`create` does. If it exists with the same content, an earlier try wrote it.

        :raises WorkspaceInputError: if it exists with other content
        :raises WorkspaceStorageError: if it cannot be written
        """
        try:
            self.create(content)
        except FileExistsError:
            if self.read_bytes(len(content) + 1) != content:
                msg = f"A file exists with other content, and is never overwritten. Start a new run. File: {self}"
                raise WorkspaceInputError(msg, problem="file-exists") from None

    def create(self, content: bytes) -> None:
        """
        Create the file, on a disk with its folder.

        On a disk it is written aside and put into place: others see all of it, or nothing, also after a kill. A store
        shows a file when all of it is there.

        :raises FileExistsError: if it exists; nothing is replaced
        :raises WorkspaceStorageError: if it cannot be written
        """
        if self.path.protocol != "file":
            self.write(content, "xb")
            return
        with self._clear_errors("written"):
            _create_whole(Path(self.path.path), content)

    def child(self, name: str) -> UrlFile:
        """Return a file in this folder, without another look at the connection."""
        file = copy(self)
        file.path = self.path / name
        return file

    def entries(self) -> list[Any]:
        """Return the paths in this folder; none if it does not exist."""
        with self._clear_errors("read"):
            self.fs.invalidate_cache()
            if not self.path.is_dir():
                return []
            return list(self.path.iterdir())

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
            msg = f"There is no bucket or folder for the file {self}"
            raise WorkspaceStorageError(msg, permanent=True, problem="file-missing") from None
        except PermissionError as error:
            key = f"connection '{self.conn_id}'" if self.conn_id else "the credentials of this worker"
            msg = f"Permission denied: {self} cannot be {done} with {key} ({error})"
            if done == "read":
                raise WorkspaceInputError(msg, problem="file-forbidden") from error
            raise WorkspaceStorageError(msg, permanent=True, problem="file-forbidden") from error
        except Exception as error:
            was_replaced = isinstance(error, OSError) and error.errno == errno.EBUSY  # s3fs says so
            if was_replaced:
                raise WorkspaceInputError(
                    f"The file changed while it was read. Wait until it is complete: {self}"
                ) from None
            msg = f"The object store failed: {self} cannot be {done} ({type(error).__name__}: {error})"
            raise WorkspaceStorageError(msg, problem="object-store-failed") from error


class LocalFile(TaskFile):
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
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            raise WorkspaceInputError(f"No file can have a path as long as {shown(str(self.path))}…") from None
        except ValueError as error:  # such as a null byte
            raise WorkspaceInputError(f"{self} is not a path: {error}") from None
        if not stat.S_ISREG(mode):  # reading a pipe or a device may never end
            raise WorkspaceInputError(f"{self} is {_kind_of(mode)}; expected a regular file")
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
            raise self._write_error(error) from None

    def _write_error(self, error: OSError | ValueError) -> WorkspaceStorageError:
        reason = getattr(error, "strerror", None) or error
        msg = f"The report {self} cannot be written: {reason}"
        if not _is_permanent(error):
            return WorkspaceStorageError(msg)
        return WorkspaceStorageError(f"{msg}. Set report_path to {SHARED} that workers may write", permanent=True)


def file_below(folder: str, name: str) -> TaskFile:
    """
    Return a file that somebody names, which must be below a folder that the author of the Dag names.

    :param folder: an absolute path, or the URL of an object store
    :param name: the path or URL of the file, or its name in the folder
    :raises WorkspaceInputError: if it is anywhere else, also by a link; nothing is read then
    """
    refused = WorkspaceInputError(f"{name!r} is not below decisions_folder. Put the file there, and give its name")
    if not name or "\0" in name:
        raise refused
    if is_stored(name) and not is_stored(folder):
        raise refused
    if not is_stored(folder):
        return _local_file_below(Path(folder), name, refused)
    below = name.removeprefix(folder.rstrip("/") + "/")
    if "://" in below or any(part in ("", ".", "..") for part in below.split("/")):
        raise refused
    if folder.startswith("file://"):
        return _local_file_below(Path(folder.removeprefix("file://")), below, refused)
    return UrlFile(f"{folder.rstrip('/')}/{below}")


def _local_file_below(folder: Path, name: str, refused: WorkspaceInputError) -> TaskFile:
    try:
        root = folder.resolve()
        path = (root / name).resolve()
    except (OSError, RuntimeError, ValueError):
        raise refused from None
    if not folder.is_absolute() or path == root or not path.is_relative_to(root):
        raise refused
    return LocalFile(path, "decisions_file")


def _create_whole(path: Path, content: bytes) -> None:
    """
    Create a file, completely or not at all.

    :raises FileExistsError: if it exists
    :raises WorkspaceStorageError: if its folder is a file
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        msg = f"{str(path.parent)!r} is not a folder"
        raise WorkspaceStorageError(msg, permanent=True, problem="file-missing") from None
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        _link(part, path)
    finally:
        part.unlink(missing_ok=True)


def _link(part: Path, path: Path) -> None:
    """Put a file into place, which never replaces one; a disk without links gets a copy."""
    try:
        os.link(part, path)
    except OSError as error:
        if error.errno not in WITHOUT_LINKS:
            raise
        with path.open("xb") as file:
            file.write(part.read_bytes())


def _kind_of(mode: int) -> str:
    """Return what is no regular file, for people."""
    if stat.S_ISDIR(mode):
        return "a directory"
    if stat.S_ISFIFO(mode):
        return "a named pipe"
    return "a device or socket"


def _is_permanent(error: OSError | ValueError) -> bool:
    """Return whether the same file cannot be written later either."""
    if isinstance(error, FileNotFoundError | NotADirectoryError | PermissionError | ValueError):
        return True
    return error.errno == errno.EROFS  # which is no PermissionError
