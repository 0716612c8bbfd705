"""A note: who, where, what, since and until; written before an effect, so that whoever comes later can end it."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from functools import cache
from hashlib import sha256
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field, PlainSerializer

from airflow_provider_workspace.api.timestamps import iso, parse_time

Text = Annotated[str, Field(min_length=1)]
Time = Annotated[float, BeforeValidator(parse_time), PlainSerializer(iso)]


class Note(BaseModel):
    """A note, which knows the key of its Variable."""

    @property
    def key(self) -> str:
        """The key of its Variable."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, object]:
        """Return plain JSON, without what is not set."""
        return self.model_dump(mode="json", exclude_none=True)


def utc_now() -> datetime:
    """Return the time that decides which ends are over."""
    return datetime.fromtimestamp(time.time(), timezone.utc)


@cache
def digest(*parts: str) -> str:
    """Return a digest of some texts for a key."""
    return sha256("\n".join(parts).encode(errors="surrogatepass")).hexdigest()[:20]
