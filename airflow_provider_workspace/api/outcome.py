"""What is known of a request after an attempt, and what that permits."""

from __future__ import annotations

from enum import Enum

from airflow_provider_workspace.errors import WorkspacePermissionError, WorkspaceRequestError, WorkspaceStatusError


class Outcome(str, Enum):
    """How far an attempt got."""

    NOT_SENT = "not_sent"
    """No byte of the request left: DNS, connect, the TLS handshake, the CONNECT of a proxy."""
    REJECTED = "rejected"
    """The service answered that it did not do it: 4xx."""
    APPLIED = "applied"
    """The service answered that it did it."""
    UNKNOWN = "unknown"
    """The service may have done it: time-out, reset after sending, 408, 5xx, an answer that cannot be read."""


# Statuses that say "not now": the same request may be answered otherwise later.
TRY_LATER = frozenset({408, 425, 429})


def outcome_of_status(status: int) -> Outcome:
    """
    Tell what a status says about the request.

    A redirect that keeps the method (307, 308) was not carried out; after the other redirects that cannot be known. Nor
    after a 408, which gateways send for a service that is slow as well.

    :param status: HTTP status, 200 to 599
    """
    if 200 <= status < 300:
        return Outcome.APPLIED
    if (400 <= status < 500 and status != 408) or status in (304, 307, 308):
        return Outcome.REJECTED
    return Outcome.UNKNOWN


def refuses_all(result: object) -> bool:
    """Tell whether the service will refuse other requests of the kind as well: the key, the organization, the rate."""
    return isinstance(result, WorkspaceStatusError) and result.status in (401, 403, 404, 405, 429)


def refuses_kind_of_key(result: object) -> bool:
    """Tell whether the service refuses every personal API key, whatever its scopes: it says so only in words."""
    said = (result.detail or "").lower() if isinstance(result, WorkspacePermissionError) else ""
    return "personal api key" in said and "scope" not in said


def is_in_doubt(result: object) -> bool:
    """Tell whether a write may have been applied, and perhaps is only now."""
    return isinstance(result, WorkspaceRequestError) and result.outcome == Outcome.UNKNOWN.value
