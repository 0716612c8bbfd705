"""
The exceptions of this package.

Every message says what to do, what was requested and what the service returned; it begins with its problem::

    WorkspaceError
    ├── WorkspaceConfigError              invalid connection
    ├── WorkspaceInputError               invalid argument; nothing was sent
    ├── WorkspaceStorageError             a file cannot be read or written
    └── WorkspaceRequestError             a request failed
        ├── WorkspaceConnectionError      it was not sent (DNS, connect, TLS, proxy)
        ├── WorkspaceTransportError       the connection broke after it was sent
        │   └── WorkspaceTimeoutError     no response in time
        ├── WorkspaceResponseError        the response cannot be read
        ├── WorkspaceNotAppliedError      the response to a change shows another value
        ├── WorkspaceDuplicateError       two records have the same name
        ├── WorkspacePaginationError      a list never ends
        ├── WorkspaceIncompleteListError  a list has fewer rows than it counts
        ├── WorkspaceOutcomeUnknownError  a write may or may not have been applied
        └── WorkspaceStatusError          the status is not a success
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

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from typing import Any

    from typing_extensions import Self


# How many people, rows or changes one message names.
MAX_NAMED = 20
# What stands before the name of a problem; once the documentation has an address: that of its page of errors, with "#".
PROBLEM_AT = ""
# The sections of the page of errors. Other texts in brackets, such as the name of a dashboard, are never taken for one.
PROBLEMS = frozenset(
    [
        "access-left",
        "access-not-ended",
        "access-not-proven",
        "airflow-too-old",
        "another-dashboard",
        "answer-refused",
        "answerer-refused",
        "api-key-refused",
        "approval-expired",
        "approval-stale",
        "changes-refused",
        "connection-broken",
        "connection-invalid",
        "contract-broken",
        "dashboard-interrupted",
        "decided-by-review",
        "decided-meanwhile",
        "decisions-unreadable",
        "differences-found",
        "domain-not-verified",
        "duplicate-projects",
        "effect-not-shown",
        "evidence-changed",
        "export-differs",
        "export-incomplete",
        "field-not-sent",
        "file-exists",
        "file-forbidden",
        "file-missing",
        "grant-changed",
        "grant-unreadable",
        "granted-meanwhile",
        "input-invalid",
        "invites-incomplete",
        "joined-meanwhile",
        "joined-unknown",
        "key-kind-refused",
        "key-owner-removed",
        "lease-unreadable",
        "level-too-low",
        "list-too-short",
        "never-paused",
        "newer-try",
        "no-access-to-organization",
        "no-answer",
        "no-default-id",
        "no-owner-left",
        "not-answered",
        "not-applied",
        "not-found",
        "not-found-by-proxy",
        "not-in-time",
        "not-reached",
        "not-the-service",
        "note-not-kept",
        "object-store-failed",
        "outcome-unknown",
        "paused-elsewhere",
        "people-hidden",
        "plan-rejected",
        "question-of-earlier-try",
        "rate-limited",
        "request-refused",
        "resume-fields-refused",
        "review-ended",
        "review-incomplete",
        "roster-empty",
        "rows-invalid",
        "runs-not-shown",
        "scope-missing",
        "service-failed",
        "still-paused",
        "template-without-value",
        "tls-failed",
        "too-many-removals",
        "too-many-rows",
        "two-dashboards",
        "unexpected-error",
        "variable-changed",
        "variable-unreadable",
        "where-unclear",
        "window-abandoned",
        "window-not-open",
        "window-overdue",
        "work-failed",
    ]
)
# The patterns here are texts: every process of Airflow imports this module, and few need one.
# Not after a quotation mark: that is a name that somebody else gave.
PROBLEM_NAME = rf"(?<!['\"`])\[{re.escape(PROBLEM_AT)}({'|'.join(sorted(PROBLEMS))})\] "


def with_problem(text: str, problem: str | None = None, *, otherwise: str = "") -> str:
    """
    Return a message that begins with the name of one problem, and holds no other: not those of errors that it quotes.

    :param problem: the problem; ``None`` for that of the first error that the text quotes, if it quotes any; an empty
        text to leave the message as it is, such as one whose lines have a problem each
    :param otherwise: the problem if the text quotes none
    """
    if problem == "":
        return text
    quoted = re.search(PROBLEM_NAME, text)
    name = problem or (quoted[1] if quoted else otherwise)
    if not name:
        return text
    return f"[{PROBLEM_AT}{name}] {re.sub(PROBLEM_NAME, '', text)}"


def with_class(error: WorkspaceError) -> str:
    """Return an error and its class, for an exception of Airflow, in whose log the class would be missing."""
    text = str(error.named())
    problem = re.match(PROBLEM_NAME, text)
    start = problem.end() if problem else 0
    return f"{text[:start]}{type(error).__name__}: {text[start:]}"


class WorkspaceError(Exception):
    """
    Base of all exceptions of this package.

    :param message: what to do and what went wrong; a space stands for each character that no log shows
    :param problem: the section of the page of errors that says more, such as ``still-paused``; by default that of the
        class; an empty text if the message says all of it
    :param permanent: whether a retry fails in the same way until somebody changes something
    :ivar retry_after: ``Retry-After`` of the response in seconds; ``None`` if it has none
    :ivar general_problem: that of a task that ends with an error of this class whose message names none
    """

    retry_after: float | None = None
    problem: str | None = None
    general_problem: str = "unexpected-error"

    def __init__(self, message: str = "", *, problem: str | None = None, permanent: bool = True) -> None:
        lines = [printable(line) for line in message.split("\n")]
        super().__init__("\n".join(lines))
        self.problem = self.problem if problem is None else problem
        self._permanent = permanent

    def __str__(self) -> str:
        """Return the message, with the problem at its beginning."""
        return with_problem(super().__str__(), self.problem)

    def __reduce__(self) -> tuple[Any, ...]:
        """Let it be pickled and copied with all of its fields, whatever the arguments of its class."""
        return _error_of_class, (type(self), self.args), self.__dict__

    def named(self) -> Self:
        """Return it with a problem, for the end of a task: that of its class if its message names none."""
        if self.problem is None and not re.match(PROBLEM_NAME, str(self)):
            self.problem = self.general_problem
        return self

    @property
    def permanent(self) -> bool:
        """Whether a retry fails in the same way until somebody changes something."""
        return self._permanent


def _error_of_class(cls: type[WorkspaceError], args: tuple[object, ...]) -> WorkspaceError:
    """Return an error without fields, which pickle and copy add."""
    return cls.__new__(cls, *args)


class WorkspaceConfigError(WorkspaceError, ValueError):
    """The connection, or an argument that overrides it, is invalid; nothing was sent."""

    general_problem = "connection-invalid"


class WorkspaceInputError(WorkspaceError, ValueError):
    """
    An argument, row or field is invalid; nothing was sent, as the end of the message says.

    :param message: the argument, row or field, and what is expected
    :param problem: that of :class:`WorkspaceError`
    """

    general_problem = "input-invalid"

    def __init__(self, message: str, *, problem: str | None = None) -> None:
        if not message.endswith("Nothing was sent."):
            end = "" if message.endswith((".", "?")) else "."
            message = f"{message}{end} Nothing was sent."
        super().__init__(message, problem=problem)

    @property
    def why(self) -> str:
        """The message for callers that had sent something before."""
        message = str(self.args[0]).removesuffix(" Nothing was sent.")
        return with_problem(message, self.problem)


class WorkspaceStorageError(WorkspaceError):
    """
    A file could not be read or written.

    :param message: which file, and what went wrong
    :param permanent: whether a retry fails in the same way, such as without the permission to write
    :param problem: that of :class:`WorkspaceError`
    """

    general_problem = "object-store-failed"

    def __init__(self, message: str, *, permanent: bool = False, problem: str | None = None) -> None:
        super().__init__(message, problem=problem, permanent=permanent)


class WorkspaceRequestError(WorkspaceError):
    """
    A request failed.

    :param message: what to do, what was requested, what the service returned
    :param operation: class name of the operation, such as ``CreateProject``
    :param outcome: ``not_sent``, ``rejected``, ``applied`` or ``unknown``
    :param retryable: whether the same request may succeed later
    :param retry_after: ``Retry-After`` in seconds; ``None`` if the response has none
    :param request_id: request id that the service returned; ``None`` if it returned none
    :param problem: that of :class:`WorkspaceError`
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
        problem: str | None = None,
    ) -> None:
        super().__init__(message, problem=problem)
        self.operation = operation
        self.outcome = outcome
        self.retryable = retryable
        self.retry_after = retry_after
        self.request_id = request_id
        self.attempts = 1

    @property
    def permanent(self) -> bool:
        """Whether a retry fails in the same way until somebody changes something."""
        return not self.retryable


class WorkspaceConnectionError(WorkspaceRequestError):
    """The request was not sent."""

    problem = "not-reached"


class WorkspaceTransportError(WorkspaceRequestError):
    """The connection broke after the request was sent, so the request may have been applied."""

    problem = "connection-broken"


class WorkspaceTimeoutError(WorkspaceTransportError):
    """No response arrived in time; the request may have been applied."""

    problem = "no-answer"


class WorkspaceResponseError(WorkspaceRequestError):
    """The response cannot be read."""

    general_problem = "not-the-service"


class WorkspaceNotAppliedError(WorkspaceRequestError):
    """The service reported success, but its response shows another value than was sent."""

    problem = "not-applied"


class WorkspaceDuplicateError(WorkspaceRequestError):
    """Two records are the same for a task, such as projects of one name; it may have created one of them."""

    general_problem = "duplicate-projects"


class WorkspacePaginationError(WorkspaceRequestError):
    """The pages of a list repeat, or contain far more rows than the list counts."""

    general_problem = "list-too-short"


class WorkspaceIncompleteListError(WorkspaceRequestError):
    """A list has fewer rows than it counts, or a row without an id: a record that is missing from it may exist."""

    general_problem = "list-too-short"


class WorkspaceOutcomeUnknownError(WorkspaceRequestError):
    """
    A write that is not safe to repeat may or may not have been applied.

    :ivar caller_looks_up: whether the caller looks for the effect before it sends the write again
    """

    problem = "outcome-unknown"
    caller_looks_up: bool = False

    @property
    def permanent(self) -> bool:
        """Whether a retry could apply the write twice."""
        return not self.caller_looks_up


class WorkspaceStatusError(WorkspaceRequestError):
    """
    The status of the response is not a success.

    :param status: HTTP status
    :param code: error code in the body; ``None`` if there is none
    :param detail: explanation in the body; ``None`` if there is none
    :param attr: name of the invalid field in the body; ``None`` if there is none
    :param details: further arguments of :class:`WorkspaceRequestError`
    :ivar from_service: whether the body is an error of the service, a JSON object with ``detail``, and not one of a
        proxy
    """

    general_problem = "request-refused"

    from_service: bool = False

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        code: str | None = None,
        detail: str | None = None,
        attr: str | None = None,
        outcome: str = "rejected",
        retryable: bool = False,
        **details: Any,
    ) -> None:
        super().__init__(message, outcome=outcome, retryable=retryable, **details)
        self.status = status
        self.code = code
        self.detail = detail
        self.attr = attr


class WorkspaceBadRequestError(WorkspaceStatusError):
    """400: the service refused the content of the request."""

    problem = "request-refused"


class WorkspaceAuthenticationError(WorkspaceStatusError):
    """401: the API key is missing, wrong or revoked."""

    problem = "api-key-refused"


class WorkspacePermissionError(WorkspaceStatusError):
    """403: the API key lacks a scope, or its owner lacks the access level."""


class WorkspaceNotFoundError(WorkspaceStatusError):
    """404: no such resource, or not visible to this API key."""

    problem = "not-found"


class WorkspaceMethodNotAllowedError(WorkspaceStatusError):
    """405: the service does not offer this, such as the hard delete of a dashboard."""


class WorkspaceRateLimitError(WorkspaceStatusError):
    """429: too many requests; see ``retry_after``."""

    problem = "rate-limited"


class WorkspaceRedirectError(WorkspaceStatusError):
    """3xx: a redirect that was not followed."""


class WorkspaceServerError(WorkspaceStatusError):
    """5xx: the service or a proxy failed; a write may have been applied."""

    problem = "service-failed"


# The classes of further statuses are WorkspaceRedirectError, WorkspaceServerError and WorkspaceStatusError.
ERRORS_BY_STATUS: dict[int, type[WorkspaceStatusError]] = {
    400: WorkspaceBadRequestError,
    401: WorkspaceAuthenticationError,
    403: WorkspacePermissionError,
    404: WorkspaceNotFoundError,
    405: WorkspaceMethodNotAllowedError,
    410: WorkspaceNotFoundError,
    429: WorkspaceRateLimitError,
}


# Also letters that look like blanks.
BLANKS = "[ \u115f\u1160\u2800\u3164\uffa0]{2,}"
# Characters that nobody sees: of no width, of changes of direction, and letters that look like nothing.
INVISIBLE = (
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e01ef]"
)
# Letters that look like Latin ones: Greek, Cyrillic, Armenian, Cherokee, full-width and mathematical ones.
LOOK_ALIKE = "[\u0131\u0251\u0261\u0370-\u058f\u13a0-\u13ff\uff10-\uff5a\U0001d400-\U0001d7ff](?!<U\\+)"
LATIN_WORD = r"(?<!\S)[^\sA-Za-z]*[A-Za-z]\S*"


def printable(text: str) -> str:
    """Return a text on one line, with a space for each unprintable character."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " for char in text)


def visible(text: str) -> str:
    """
    Return an untrusted text on one line, with marks where it may look like another one.

    Blanks in a row, which push a table aside, are shown by their count. Characters that are not shown, and letters that
    look like Latin ones in a word or an address with Latin letters, are shown with their codes. A word without Latin
    letters, such as one in Cyrillic, and a letter whose accent is a character of its own (NFD) have no mark.
    """
    if text.isascii():
        return re.sub(BLANKS, _counted, printable(text))
    shown = re.sub(INVISIBLE, _coded, re.sub(BLANKS, _counted, text))
    return re.sub(LATIN_WORD, _with_codes, printable(shown))


def _coded(char: re.Match[str]) -> str:
    return f"<U+{ord(char[0]):04X}>"


def _with_codes(word: re.Match[str]) -> str:
    return re.sub(LOOK_ALIKE, lambda letter: letter[0] + _coded(letter), word[0])


def _counted(blanks: re.Match[str]) -> str:
    return f"␣*{len(blanks[0])}"


def name_first(names: Sequence[str], everything: str, separator: str = "; ") -> str:
    """
    Return names for a message, which holds at most :data:`MAX_NAMED` of them.

    :param everything: where all of them are, such as ``the log``
    """
    named = separator.join(names[:MAX_NAMED])
    left = len(names) - MAX_NAMED
    if left <= 0:
        return named
    return f"{named}{separator}… and {left} more: see {everything}"


def type_name(value: object) -> str:
    """Describe an invalid value by its type: its text may be very long, or a secret."""
    return f"something of type {type(value).__name__}"


def shown(value: object, length: int = 40) -> str:
    """Describe an invalid value by the beginning of its text, or else by its type."""
    if isinstance(value, str):
        return repr(value[:length])
    return type_name(value)


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "known: ") -> str:
    """Return the known name that an unknown one resembles, or all of them, after ``otherwise``."""
    names = list(known)
    return resembling(name, names).strip() or f"{otherwise}{', '.join(names)}"


def resembling(name: str, known: Collection[str]) -> str:
    """Ask for the known name that an unknown one resembles, with a blank after it; empty if it resembles none."""
    similar = most_similar(name, known)
    return f"did you mean '{similar}'? " if similar else ""


def most_similar(name: str, known: Collection[str]) -> str:
    """Return the known name that an unknown one resembles; empty if it resembles none."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, known, n=1)), "")
