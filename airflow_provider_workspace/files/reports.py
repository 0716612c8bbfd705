"""Reports of tasks: a file with every row, of which the XCom has an excerpt."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.files.storage import SHARED, LocalFile, UrlFile, is_same_file, is_stored

# Maximum rows of a report in XCom.
MAX_ROWS_IN_XCOM = 1000
# Statuses of rows with which nothing is left to do for a person.
NEED_NOBODY = ("planned", "done", "invited", "member", "already_invited", "duplicate", "skipped")
# First characters of a formula in a spreadsheet, also full-width ones.
FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\u2212")


class ReportFile:
    """
    A file for a report on every row, as CSV or JSON.

    :param path: path as for :func:`~airflow_provider_workspace.files.storage.file_at`; ends in ``.csv`` or ``.json``
    :param rows: key of the rows in the report
    :param columns: fields of a row
    :param needs_attention: statuses of rows that need attention
    :param ti: the task instance
    :param part: what its name has before the suffix, to keep another file; empty for none
    :raises WorkspaceError: if the file cannot be written, or would be in a checkout of a versioned Dag bundle
    """

    def __init__(
        self,
        path: Any,
        rows: str,
        columns: Sequence[str],
        needs_attention: Collection[str],
        ti: object,
        part: str,
    ) -> None:
        self.file: UrlFile | LocalFile = UrlFile(path) if is_stored(path) else LocalFile(path, "report_path")
        self.rows = rows
        self.columns = columns
        self.needs_attention = needs_attention
        if isinstance(self.file, LocalFile):
            _check_outside_of_bundle(self.file, ti)
        if self.file.suffix not in (".csv", ".json"):
            raise WorkspaceInputError(f"report_path is {self.file}: expected a name that ends in .csv or .json")
        if part:
            self.file.path = self.file.path.with_name(f"{self.file.path.stem}.{part}{self.file.suffix}")
        if not self.file.exists():  # fail before anything is sent
            self.write({rows: []})

    def write(self, report: Mapping[str, Any]) -> None:
        """
        Write the report.

        :raises WorkspaceStorageError: if it cannot be written
        """
        if self.file.suffix == ".json":
            text = json.dumps(report, indent=1)
        else:
            text = csv_text(self.columns, report[self.rows])
        self.file.write(text.encode(errors="backslashreplace"))

    def __str__(self) -> str:
        return str(self.file)

    def excerpt(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """Return the part of a report for XCom."""
        excerpt = {name: value for name, value in report.items() if name not in (self.rows, "table")}
        needs_attention = [row for row in report[self.rows] if row["status"] in self.needs_attention]
        excerpt["report_path"] = str(self.file.path)
        excerpt["needs_attention"] = needs_attention[:MAX_ROWS_IN_XCOM]
        return excerpt


def raise_if_read(report_path: object, sources: Iterable[object]) -> None:
    """
    Refuse to write a report over a file that the task reads.

    :param sources: the paths of these files; ``None`` for none
    """
    for source in sources:
        if report_path is not None and source is not None and is_same_file(report_path, source):
            raise WorkspaceInputError(f"report_path is a file that this task reads: {source}. Set it to another file")


def fit_for_xcom(report: dict[str, Any]) -> dict[str, Any]:
    """
    Return a report whose rows are not too many for XCom, those first with which something is left to do.

    Of the other rows it has the number, and the digests of planned changes, which an approval needs.
    """
    name = "changes" if "changes" in report else "addresses"
    rows = report[name]
    if len(rows) <= MAX_ROWS_IN_XCOM:
        return report
    by_need = sorted(range(len(rows)), key=lambda place: rows[place]["status"] in NEED_NOBODY)
    kept = set(by_need[:MAX_ROWS_IN_XCOM])
    shown = [row for place, row in enumerate(rows) if place in kept]
    fitting = {**report, name: shown, f"{name}_not_shown": len(rows) - len(shown)}
    if name == "changes":
        others = [row for place, row in enumerate(rows) if place not in kept and row["status"] == "planned"]
        fitting["digests"] = [row["digest"] for row in others if row["digest"]]
    return fitting


def _check_outside_of_bundle(file: LocalFile, ti: object) -> None:
    """Refuse a checkout of a versioned bundle: each worker has its own, and Airflow deletes them."""
    bundle: Any = getattr(ti, "bundle_instance", None)
    is_versioned = getattr(bundle, "supports_versioning", None) is True  # tests pass mocks
    if is_versioned and file.path.is_relative_to(bundle.path):
        raise WorkspaceInputError(f"report_path is in a checkout of the Dag bundle: {file}. Set it to {SHARED}")


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Return a CSV file for people, in which no cell is a formula."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in row.items()})
    return text.getvalue()


def _cell(value: object) -> Any:
    """Return a cell that spreadsheets do not treat as a formula; what is no single value as JSON."""
    if isinstance(value, dict | list):
        return json.dumps(value) if value else ""
    if isinstance(value, str) and value.startswith(FORMULAS):
        return f"'{value}"
    return value
