"""The second place of the digests of access reviews: one small file for each, which later reviews are checked by."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.files.storage import UrlFile, folder_at

# A line that `sha256sum --check` reads in the folder with the evidence of all reviews.
LINE = re.compile(r"([0-9a-f]{64})  (.+)/review\.json\n", re.ASCII)


class ReviewDigests:
    """
    A folder outside of the evidence, with a file for each closed review: ``<name of its folder>.sha256``.

    :param folder: an absolute path on this machine, or the URL of an object store
    :param evidence: the folder with the evidence of all reviews
    :raises WorkspaceInputError: if the folder is neither, or is the evidence or below it; nothing is read then
    """

    def __init__(self, folder: Any, evidence: UrlFile) -> None:
        self.folder = folder_at(folder, "digests")
        if _is_below(self.folder, evidence):
            why = "digests is below the evidence, so who can write it could replace both"
            msg = f"{why}. Set it to a folder outside of {_name(evidence)}"
            raise WorkspaceInputError(msg)

    def __str__(self) -> str:
        return _name(self.folder)

    def keep(self, review: str, digest: str) -> None:
        """
        Create the file of a review, or find the one of an earlier try.

        :param review: name of its folder
        :param digest: SHA-256 of its ``review.json``
        :raises WorkspaceError: if it cannot be written, or is another file
        """
        file = self._file(review)
        try:
            file.create(f"{digest}  {review}/review.json\n".encode())
        except FileExistsError:
            if self.find(review) != digest:
                msg = (
                    "The second place has another SHA-256 than the review.json of this review. Ask who changed one of "
                    f"them: {_name(file)}"
                )
                raise WorkspaceInputError(msg, problem="file-exists") from None

    def reviews(self) -> list[str]:
        """Return the names of the folders of the reviews that have a digest here."""
        names = [path.name for path in self.folder.entries()]
        return [name.removesuffix(".sha256") for name in names if name.endswith(".sha256")]

    def find(self, review: str) -> str:
        """
        Return the digest that was kept; an empty text if there is none.

        :raises WorkspaceInputError: if its file cannot be read, or is no such file
        """
        file = self._file(review)
        try:
            line = file.read()
        except WorkspaceInputError as error:
            if error.problem != "file-missing":
                raise
            return ""
        found = LINE.fullmatch(line)
        if not found or found[2] != review:
            msg = f"The SHA-256 of a review is not the file that was written. Restore {_name(file)}"
            raise WorkspaceInputError(msg, problem="evidence-changed")
        return found[1]

    def _file(self, review: str) -> UrlFile:
        return self.folder.child(f"{review}.sha256")


def _name(file: UrlFile) -> str:
    """Return a path as the author of a Dag writes it, for messages."""
    return repr(str(file.path).removeprefix("file://"))


def _is_below(folder: UrlFile, parent: UrlFile) -> bool:
    """Return whether a folder is another one or below it, also by a link, and whatever connection it is reached by."""
    if folder.path.protocol != parent.path.protocol:
        return False
    path, root = Path(folder.path.path), Path(parent.path.path)
    if folder.path.protocol == "file":
        path, root = path.resolve(), root.resolve()
    return path.is_relative_to(root)
