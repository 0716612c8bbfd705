"""A note: who, where, since and until; written before an effect, so that whoever comes later can end it."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from functools import cache
from hashlib import sha256
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from airflow_provider_workspace.api.timestamps import iso, parse_end, parse_time

Text = Annotated[str, Field(min_length=1)]
Time = Annotated[float, BeforeValidator(parse_time), PlainSerializer(iso)]
EndTime = Annotated[float, BeforeValidator(parse_end), PlainSerializer(iso)]


class Note(BaseModel):
    """What is remembered in an Airflow Variable. Fields that a newer release of this package adds are ignored."""

    model_config = ConfigDict(frozen=True)

    @property
    def key(self) -> str:
        """The key of its Variable."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, object]:
        """Return plain JSON, without what is not set."""
        return self.model_dump(mode="json", exclude_none=True)


class EndingNote(Note):
    """
    A note of what has an end. Times are seconds since 1970, and ISO 8601 in the Variable.

    A kind adds what is noted, and the task.

    :param map_index: index of the mapped task or task group; -1 outside of one
    :param service: base URL of the service
    :param since: when it was noted
    :param until: when what it notes ends
    """

    model_config = ConfigDict(frozen=True, strict=True)

    dag_id: Text
    run_id: Text
    map_index: int = -1
    service: Text
    workspace_conn_id: Text
    organization_id: Text
    since: Time
    until: EndTime

    def is_over(self, now: datetime) -> bool:
        """Return whether the end has passed."""
        return now.timestamp() > self.until


def utc_now() -> datetime:
    """Return the time that decides which ends are over."""
    return datetime.fromtimestamp(time.time(), timezone.utc)


@cache
def digest(*parts: str) -> str:
    """Return a digest of some texts for a key."""
    return sha256("\n".join(parts).encode(errors="surrogatepass")).hexdigest()[:20]
