"""What a service announces about the end of an operation, in the headers of its answers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from airflow_provider_workspace.api.retry import http_date

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_workspace.api.operation import RequestContext

_LINK = re.compile(r"<([^<>]{1,2000})>([^<>]*)")
_SUCCESSOR = re.compile(r"""\brel\s*=\s*(?:"[^"]*\bsuccessor-version\b[^"]*"|successor-version\b)""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Deprecation:
    """
    What the service announces about an operation.

    :param since: date since when it is deprecated, such as ``2026-11-01``; ``None`` if the service does not say
    :param sunset: date of its end; ``None`` if the service does not say, or not as a date
    :param successor: URL or path of what takes its place; ``None`` if the service does not say
    """

    since: str | None = None
    sunset: str | None = None
    successor: str | None = None

    def __str__(self) -> str:
        """Say what ends when, and what takes its place."""
        since = f" since {self.since}" if self.since else ""
        end = f"ends on {self.sunset}" if self.sunset else "names no date of its end"
        successor = f"; its successor is {self.successor}" if self.successor else ""
        return f"is deprecated{since} and {end}{successor}"


def parse_deprecation(headers: Mapping[str, str], context: RequestContext) -> Deprecation | None:
    """
    Return what the headers of an answer announce; ``None`` if they announce nothing.

    :param headers: ``Deprecation`` (``true``, ``@`` with seconds since 1970, or a date), ``Sunset``, and ``Link`` with
        ``rel="successor-version"``
    :param context: hides the secrets of the request
    """
    deprecation, sunset = headers.get("deprecation"), headers.get("sunset")
    said = (deprecation or "").strip().lower()
    if sunset is None and said in ("", "false", "?0"):
        return None
    end = http_date(sunset)
    successor = _successor(headers.get("link") or "")
    return Deprecation(
        since=_since(said),
        sunset=end.date().isoformat() if end else None,
        successor=context.redacted(successor) if successor else None,
    )


def _since(said: str) -> str | None:
    """Return the date of a ``Deprecation`` header; ``None`` if it has none."""
    if re.fullmatch(r"@\d{1,11}", said):
        return datetime.fromtimestamp(int(said[1:]), timezone.utc).date().isoformat()
    date = http_date(said)
    return date.date().isoformat() if date else None


def _successor(link: str) -> str | None:
    """Return the target of the successor in a ``Link`` header."""
    for target, parameters in _LINK.findall(link):
        if _SUCCESSOR.search(parameters):
            return str(target)
    return None
