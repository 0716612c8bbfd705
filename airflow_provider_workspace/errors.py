"""
What can go wrong, as a tree.

Every message says what was asked, what came back and what to do::

    WorkspaceError
    ├── WorkspaceConfigError              the connection cannot work as it is
    ├── WorkspaceInputError               refused here, before anything was sent
    ├── WorkspaceStorageError             an object store or disk does not work
    └── WorkspaceRequestError             a request went wrong
        ├── WorkspaceConnectionError      it was not sent (DNS, connect, TLS, proxy)
        ├── WorkspaceTransportError       it broke after sending (reset, cut)
        │   └── WorkspaceTimeoutError     no answer in time
        ├── WorkspaceResponseError        the answer cannot be read
        ├── WorkspaceNotAppliedError      a change whose answer shows something else
        ├── WorkspaceDuplicateError       a create that made a second one
        ├── WorkspacePaginationError      a list that would never end
        ├── WorkspaceIncompleteListError  a list with fewer rows than it counts
        ├── WorkspaceOutcomeUnknownError  a write that may or may not have happened
        └── WorkspaceStatusError          the service said no
            ├── WorkspaceBadRequestError        400
            ├── WorkspaceAuthenticationError    401
            ├── WorkspacePermissionError        403
            ├── WorkspaceNotFoundError          404
            ├── WorkspaceMethodNotAllowedError  405
            ├── WorkspaceRateLimitError         429
            ├── WorkspaceRedirectError          3xx
            └── WorkspaceServerError            5xx
"""

from __future__ import annotations


class WorkspaceError(Exception):
    """
    Base of every error of this package.

    :ivar retry_after: seconds after which the service asked to come back; ``None`` if it did not
    """

    retry_after: float | None = None

    @property
    def permanent(self) -> bool:
        """Whether trying again can not end otherwise, unless somebody changes something first."""
        return True


class WorkspaceConfigError(WorkspaceError, ValueError):
    """The connection or an argument that replaces it cannot work; nothing was sent."""


class WorkspaceInputError(WorkspaceError, ValueError):
    """
    An argument, a row or a field is wrong; nothing was sent, and the message ends with that.

    :param message: which argument, row or field, and what is expected there
    """

    def __init__(self, message: str) -> None:
        if not message.endswith("Nothing was sent."):
            message = f"{message}{'' if message.endswith(('.', '?')) else '.'} Nothing was sent."
        super().__init__(message)


class WorkspaceStorageError(WorkspaceError):
    """
    A file could not be read or written.

    :param message: which file, and what went wrong
    :param permanent: whether a retry fails in the same way, such as without the permission to write
    """

    def __init__(self, message: str, *, permanent: bool = False) -> None:
        super().__init__(message)
        self._permanent = permanent

    @property
    def permanent(self) -> bool:
        """Whether a retry fails in the same way."""
        return self._permanent


class WorkspaceRequestError(WorkspaceError):
    """
    A request that did not end well.

    :param message: what was asked, what came back, what to do
    :param operation: class name of the operation, such as ``CreateProject``
    :param outcome: ``not_sent``, ``rejected``, ``applied`` or ``unknown``
    :param retryable: whether sending the same request again could end otherwise
    :param retry_after: seconds the service asked to wait; ``None`` if it named none
    :param request_id: the service's identifier of the request, if it sent one
    """

    def __init__(
        self,
        message: str,
        *,
        operation: str = "",
        outcome: str = "unknown",
        retryable: bool = True,
        retry_after: float | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.operation = operation
        self.outcome = outcome
        self.retryable = retryable
        self.retry_after = retry_after
        self.request_id = request_id
        self.attempts = 1

    @property
    def permanent(self) -> bool:
        """Whether trying again can not end otherwise, unless somebody changes something first."""
        return not self.retryable


class WorkspaceConnectionError(WorkspaceRequestError):
    """The request never reached the service."""


class WorkspaceTransportError(WorkspaceRequestError):
    """The connection broke after the request was sent, so it may have been applied."""


class WorkspaceTimeoutError(WorkspaceTransportError):
    """No answer came in time; the request may have been applied."""


class WorkspaceResponseError(WorkspaceRequestError):
    """The answer is not what the interface describes and cannot be read."""


class WorkspaceNotAppliedError(WorkspaceRequestError):
    """The service answered that all is well, and shows something else than was asked."""


class WorkspaceDuplicateError(WorkspaceRequestError):
    """A record was created, and there is another one of the same name."""


class WorkspacePaginationError(WorkspaceRequestError):
    """The pages of a list repeat themselves, or are more than its count can explain: reading on would never end."""


class WorkspaceIncompleteListError(WorkspaceRequestError):
    """A list has fewer rows than it counts, or none that tells which it is: what it does not show may be there."""


class WorkspaceOutcomeUnknownError(WorkspaceRequestError):
    """
    A write that may or may not have been applied, and that is not safe to repeat.

    :ivar caller_looks_up: whether its effect is looked for before it is sent again; only then a retry is safe
    """

    caller_looks_up: bool = False

    @property
    def permanent(self) -> bool:
        """Whether a retry could do it twice."""
        return not self.caller_looks_up


class WorkspaceStatusError(WorkspaceRequestError):
    """
    The service answered with a status that is not a success.

    :param status: the HTTP status
    :param code: the service's error code; ``None`` if the body held none
    :param detail: the service's explanation; ``None`` if the body held none
    :param attr: the field the service complains of; ``None`` if it named none
    :ivar from_service: whether the body is an error of the service, a JSON object with ``detail``, and not that of a
        proxy before it
    """

    from_service: bool = False

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        code: str | None = None,
        detail: str | None = None,
        attr: str | None = None,
        operation: str = "",
        outcome: str = "rejected",
        retryable: bool = False,
        retry_after: float | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(
            message,
            operation=operation,
            outcome=outcome,
            retryable=retryable,
            retry_after=retry_after,
            request_id=request_id,
        )
        self.status = status
        self.code = code
        self.detail = detail
        self.attr = attr


class WorkspaceBadRequestError(WorkspaceStatusError):
    """400: the service refused the content of the request."""


class WorkspaceAuthenticationError(WorkspaceStatusError):
    """401: the API key is missing, wrong or revoked."""


class WorkspacePermissionError(WorkspaceStatusError):
    """403: the API key lacks a scope, or its owner lacks the access level."""


class WorkspaceNotFoundError(WorkspaceStatusError):
    """404: no such resource, or not visible to this API key."""


class WorkspaceMethodNotAllowedError(WorkspaceStatusError):
    """405: the service does not offer this, such as the hard delete of a dashboard."""


class WorkspaceRateLimitError(WorkspaceStatusError):
    """429: too many requests; ``retry_after`` tells when to come back, if the service said so."""


class WorkspaceRedirectError(WorkspaceStatusError):
    """3xx: the service points elsewhere and the redirect was not followed."""


class WorkspaceServerError(WorkspaceStatusError):
    """5xx: the service, or something before it, failed; a write may have been applied."""
