"""The files about temporary access that ended: one for each grant, created once, whole or not there."""

from __future__ import annotations

import re
from threading import Lock
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from airflow_provider_workspace.api.timestamps import iso
from airflow_provider_workspace.errors import WorkspaceError, WorkspaceInputError, WorkspaceStorageError
from airflow_provider_workspace.files.storage import UrlFile, folder_at
from airflow_provider_workspace.notes.note import digest, utc_now

if TYPE_CHECKING:
    from airflow_provider_workspace.access.grants.notes import Grant


class EndProof(BaseModel):
    """
    What the lists of the service showed at the end, and what had been sent.

    :param lists_read_at: when the reading of the lists began that shows it
    :param members_read: number of members in the list
    :param level: the level of the person then; ``None`` if they were no member
    :param has_invite: whether they had an open invite then
    :param sent: the changes that this run sent, with their operations; none if the access was gone when it read
        the lists: somebody took it back, or a run that was killed had sent the change
    """

    model_config = ConfigDict(frozen=True)

    lists_read_at: str
    members_read: int
    level: int | None
    has_invite: bool
    sent: tuple[str, ...] = ()


class EndedGrant(BaseModel):
    """
    The life of a grant that ended. Times are ISO 8601 in UTC.

    :param variable: key of the Variable that held it
    :param then: the level that was agreed for after the end; ``None`` for no access
    :param requested_by: who asked for it; empty if nobody did, or it is not known
    :param approved_by: who approved it; empty if nobody was asked
    :param approved_at: when; ``None`` if nobody was asked, or it is not known
    :param noted_at: when it was noted, before anything was sent
    :param given_at: when the service showed it; ``None`` if it never did while a task looked
    :param agreed_until: the end that was agreed
    :param until: the end that counted, which is earlier if somebody ended it early
    :param ended_early_by: who did; empty if nobody did
    :param ended_by: the task or command that ended it
    :param ended_at: when it had the proof
    """

    model_config = ConfigDict(frozen=True)

    user_email: str
    user_uuid: str | None
    service: str
    organization_id: str
    level: int
    then: int | None
    reason: str
    requested_by: str
    approved_by: str
    approved_at: str | None
    noted_at: str
    given_at: str | None
    given_by: str
    agreed_until: str
    until: str
    ended_early_by: str
    ended_by: str
    ended_at: str
    proof: EndProof
    variable: str

    @classmethod
    def of(cls, grant: Grant, proof: EndProof, ended_by: str) -> EndedGrant:
        """Return the life of a grant that ended now."""
        agreed_until = grant.agreed_until or grant.until
        ended_at = utc_now().timestamp()
        return cls(
            user_email=grant.user_email,
            user_uuid=grant.user_uuid,
            service=grant.service,
            organization_id=grant.organization_id,
            level=grant.level,
            then=grant.then,
            reason=grant.reason,
            requested_by=grant.requested_by,
            approved_by=grant.approved_by,
            approved_at=_iso_or_none(grant.approved_at),
            noted_at=iso(grant.since),
            given_at=_iso_or_none(grant.given_at),
            given_by=grant.task,
            agreed_until=iso(agreed_until),
            until=iso(grant.until),
            ended_early_by=grant.ended_by,
            ended_by=ended_by,
            ended_at=iso(ended_at),
            proof=proof,
            variable=grant.key,
        )

    @property
    def file_name(self) -> str:
        """The name of its file: its end, then digests of the person and of the grant; the same in each try."""
        until = re.sub(r"\.\d+|[:-]", "", self.until)
        person = digest(self.service, self.organization_id, self.user_email)
        grant = digest(*self.identity)
        return f"{until}-{person:.12}-{grant:.12}.json"

    @property
    def identity(self) -> tuple[str, str, str]:
        """What tells it apart from other grants, and from the same one with another end."""
        return self.variable, self.noted_at, self.until


class GrantEvidence:
    """
    The folder of the files about temporary access that ended.

    :param folder: an absolute path on a disk that all workers share, or the URL of an object store
    :param ended_by: the task or command that ends access
    :raises WorkspaceInputError: if the folder is neither
    """

    def __init__(self, folder: Any, ended_by: str) -> None:
        self.folder = folder_at(folder, "evidence")
        self.ended_by = ended_by
        # Organizations are ended side by side.
        self._lock = Lock()

    def keep(self, grant: Grant, proof: EndProof) -> str:
        """
        Create the file of a grant that ended, or find the one of an earlier try, and return its path.

        :raises WorkspaceError: if it cannot be written, or another file has its name
        """
        ended = EndedGrant.of(grant, proof, self.ended_by)
        file = self.folder.child(ended.file_name)
        text = f"{ended.model_dump_json(indent=1)}\n"
        with self._lock:
            try:
                file.create(text.encode(errors="backslashreplace"))
            except FileExistsError:
                _raise_unless_same(file, ended)
        return str(file.path).removeprefix("file://")


def _raise_unless_same(file: UrlFile, ended: EndedGrant) -> None:
    """Refuse a file that is not about this grant; times and proof are those of the try that wrote it."""
    place = f"the place of the file about temporary access of {ended.user_email}"
    cure = f"Move it elsewhere, then run this again: {file}"
    try:
        found = EndedGrant.model_validate_json(file.read_all()[1])
    except ValidationError:
        msg = f"Another file is in {place}. {cure}"
        raise WorkspaceError(msg, problem="file-exists") from None
    except WorkspaceInputError as error:
        raise WorkspaceStorageError(error.why, problem=error.problem) from None
    if found.identity != ended.identity:
        msg = f"The file of another grant is in {place}. {cure}"
        raise WorkspaceError(msg, problem="file-exists")


def _iso_or_none(seconds: float | None) -> str | None:
    return None if seconds is None else iso(seconds)
