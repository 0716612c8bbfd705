"""Whether a value is wanted: the rule of ``where``, for records of lists and for rows of rosters alike."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.api.timestamps import parse_timestamp
from airflow_provider_workspace.errors import WorkspaceInputError


class Before(float):
    """Seconds since 1970 until which a time is wanted."""


def read_age(path: str, value: Any, now: float) -> Before | None:
    """
    Read an age such as ``{"before": "90d"}``; ``None`` if the wanted value is none.

    :param path: what is compared, for messages
    :param now: the time from which ages count, in seconds since 1970
    :raises WorkspaceInputError: if it is an age that cannot be read
    """
    if not isinstance(value, Mapping) or "before" not in value:
        return None
    days = re.fullmatch(r"(\d{1,5})d", str(value["before"]), re.ASCII)
    if days is None or len(value) > 1:
        raise WorkspaceInputError(f"where compares {path} with a wrong age; expected days: {{'before': '90d'}}")
    return Before(now - int(days[1]) * 86_400)


def matches(path: str, value: Any, wanted: Any) -> bool:
    """
    Return whether a value is wanted; case of e-mail addresses does not count, and no time is before any other.

    :param path: what is compared; addresses are at one that ends with ``email``
    :param wanted: a value, an age, or a list of which one is enough
    :raises WorkspaceInputError: if an age is wanted of what is no time
    """
    if isinstance(wanted, list | tuple | set):
        return any(matches(path, value, item) for item in wanted)
    if isinstance(wanted, Before):
        when = parse_timestamp(value)
        if when is None and value is not None:
            raise WorkspaceInputError(f"Compare only times with 'before': {path} is none in a row of the list")
        return when is None or when < wanted
    if path.endswith("email") and isinstance(value, str) and isinstance(wanted, str):
        return address_key(value) == address_key(wanted)
    return bool(value == wanted)
