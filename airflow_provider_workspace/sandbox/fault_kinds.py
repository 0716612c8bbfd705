"""The table of faults: their names, and what can be chosen about each."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.sandbox import fault_plays as plays
from airflow_provider_workspace.sandbox.fault_answers import FAILURES

if TYPE_CHECKING:
    from starlette.responses import Response

    from airflow_provider_workspace.sandbox.answers import JsonObject

COMMON = ("operation", "times", "after", "probability", "seed")
"""What can be chosen about every fault."""


@dataclass(frozen=True)
class Parameter:
    """Something to choose about a kind of fault."""

    name: str
    default: Any
    about: str
    fits: Callable[[Any], bool]
    """Whether a value can be used."""


@dataclass(frozen=True)
class Kind:
    """A kind of fault, which has the name of its play."""

    play: Callable[..., Coroutine[Any, Any, Response | None]]
    """Gets the exchange, and each parameter by name."""
    parameters: tuple[Parameter, ...] = ()
    times: int | None = 1
    """How many requests it hits where nobody tells; None: for ever."""
    reads_body: bool = True
    lists_only: bool = False
    later_pages_only: bool = False

    @property
    def name(self) -> str:
        """The name."""
        return self.play.__name__

    @property
    def about(self) -> str:
        """What it does, in a sentence."""
        return (self.play.__doc__ or "").partition("\n")[0]

    def read(self, wanted: Mapping[str, Any]) -> JsonObject:
        """
        Return the value of each parameter.

        :param wanted: What is wanted, by name.
        :raises ValueError: If a value cannot be used, or belongs to no parameter.
        """
        names = [parameter.name for parameter in self.parameters]
        for name in wanted:
            if name not in names:
                raise ValueError(f"{self.name} has no {name!r}; it takes {', '.join([*COMMON, *names])}.")
        values = {parameter.name: wanted.get(parameter.name, parameter.default) for parameter in self.parameters}
        for parameter in self.parameters:
            value = values[parameter.name]
            if not parameter.fits(value):
                raise ValueError(f"{parameter.name}={value!r} does not do for {self.name}: it is {parameter.about}.")
        return values


def _is_seconds(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 86_400


def _is_patience(value: Any) -> bool:
    return value is None or _is_seconds(value)


def _is_failure(value: Any) -> bool:
    return type(value) is int and 400 <= value <= 599


def _is_count(value: Any) -> bool:
    return type(value) is int and value > 0


def _is_header(value: Any) -> bool:
    return isinstance(value, str) and value.isascii() and value.isprintable() and value != ""


def _is_header_or_none(value: Any) -> bool:
    return value is None or _is_header(value)


RETRY_AFTER = ("seconds", "date", "nonsense", "none")
REDIRECTS = (301, 302, 303, 307, 308)

_PATIENCE = Parameter(
    "seconds", None, "how long to wait for the client before closing the connection, null for ever", _is_patience
)
_FAILURE = (
    Parameter("status", 503, "a status code from 400 to 599", _is_failure),
    Parameter("body", "json", f"one of {', '.join(FAILURES)}", lambda value: value in tuple(FAILURES)),
)
_ROWS = (Parameter("rows", 1, "how many rows", _is_count),)

KINDS = {
    kind.name: kind
    for kind in (
        Kind(plays.refuse, reads_body=False),
        Kind(plays.down, (Parameter("seconds", 1, "how long the sandbox is down", _is_seconds),), reads_body=False),
        Kind(plays.reset_before),
        Kind(plays.reset_after),
        Kind(plays.time_out_before, (_PATIENCE,)),
        Kind(plays.time_out_after, (_PATIENCE,)),
        Kind(
            plays.rate_limit,
            (
                Parameter(
                    "retry_after",
                    "seconds",
                    f"how the wait is told, one of {', '.join(RETRY_AFTER)}",
                    lambda value: value in RETRY_AFTER,
                ),
                Parameter("seconds", 1, "how long to wait", _is_seconds),
            ),
        ),
        Kind(plays.status_before, _FAILURE),
        Kind(plays.status_after, _FAILURE),
        Kind(plays.empty_body),
        Kind(plays.cut_body),
        Kind(plays.invalid_json),
        Kind(plays.html_body),
        Kind(plays.wrong_content_type, (Parameter("content_type", "text/plain", "what to send instead", _is_header),)),
        Kind(plays.slow_drip, (Parameter("pause", 0.05, "the seconds between two bytes", _is_seconds),)),
        Kind(
            plays.redirect,
            (
                Parameter("status", 307, f"one of {', '.join(map(str, REDIRECTS))}", lambda value: value in REDIRECTS),
                Parameter("location", None, "a path or a URL, null for the same address again", _is_header_or_none),
            ),
        ),
        Kind(
            plays.next_elsewhere,
            (Parameter("origin", "http://elsewhere.invalid", "scheme and host of the next page", _is_header),),
            lists_only=True,
        ),
        Kind(plays.next_loop, lists_only=True),
        Kind(plays.next_relative, lists_only=True),
        Kind(plays.repeated_rows, _ROWS, lists_only=True, later_pages_only=True),
        Kind(plays.missing_rows, _ROWS, lists_only=True, later_pages_only=True),
        Kind(plays.late_rows, _ROWS, lists_only=True),
        Kind(
            plays.large_list,
            (Parameter("rows", 100_000, "how many rows the list has", _is_count),),
            times=None,
            lists_only=True,
        ),
    )
}
