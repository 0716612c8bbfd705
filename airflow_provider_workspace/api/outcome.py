"""The outcome of an attempt to send a request."""

from __future__ import annotations

from enum import Enum
from typing import TypeGuard

from airflow_provider_workspace.errors import WorkspacePermissionError, WorkspaceRequestError, WorkspaceStatusError


class Outcome(str, Enum):
    """The outcome of an attempt."""

    NOT_SENT = "not_sent"
    """No byte of the request was sent: DNS, connect, TLS handshake or CONNECT of a proxy failed."""
    REJECTED = "rejected"
    """The service refused the request: 4xx."""
    APPLIED = "applied"
    """The service applied the request: 2xx."""
    UNKNOWN = "unknown"
    """The service may have applied the request: timeout, reset, 408, 5xx, unreadable response."""


# 4xx statuses that are worth a retry.
TRY_LATER = frozenset({408, 425, 429})


def outcome_of_status(status: int) -> Outcome:
    """
    Return the outcome of a request that failed with this status.

    A redirect that keeps the method (307, 308) was not applied. After other redirects and after a 408, which gateways
    also send for a slow service, the outcome is unknown.

    :param status: HTTP status, 300 to 599
    """
    if (400 <= status < 500 and status != 408) or status in (304, 307, 308):
        return Outcome.REJECTED
    return Outcome.UNKNOWN


def is_refused(result: object, *, one_of_many: bool = False) -> TypeGuard[WorkspaceStatusError]:
    """
    Return whether the service refused what a request says, so that another one may succeed.

    :param one_of_many: whether the same is sent for others: then a 403 may be about this one, such as a member above
        the owner of the API key; otherwise it is about the key
    """
    statuses = (400, 403, 409, 422) if one_of_many else (400, 409, 422)
    return isinstance(result, WorkspaceStatusError) and result.status in statuses


def refuses_kind_of_key(result: object) -> bool:
    """Return whether the service refuses every personal API key, whatever its scopes; only the detail says so."""
    said = (result.detail or "").lower() if isinstance(result, WorkspacePermissionError) else ""
    return "personal api key" in said and "scope" not in said


def is_in_doubt(result: object) -> bool:
    """Return whether a write may have been applied, or may still be."""
    return isinstance(result, WorkspaceRequestError) and result.outcome == Outcome.UNKNOWN.value
