"""The row that describes an endpoint, which is the decorator of its operation, and what can be wrong with a row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import lru_cache
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel
from typing_extensions import get_original_bases

from airflow_provider_workspace.api.fields import interface_names
from airflow_provider_workspace.api.models import Page, Resource

DescribedClass = TypeVar("DescribedClass", bound="type[Described]")

Effect = Literal["read", "create", "change", "remove"]
WRITES: tuple[Effect, ...] = ("create", "change", "remove")
# The effects that each method may have, and that of those that need not say it.
EFFECTS = {"GET": ("read",), "POST": (*WRITES, "read"), "PUT": WRITES, "PATCH": WRITES, "DELETE": WRITES}
USUAL_EFFECTS: dict[str, Effect] = {"GET": "read", "PATCH": "change", "DELETE": "remove"}
EXAMPLE = (
    "Write a row such as @endpoint('GET', '/organizations/{organization_id}/things/', scope='thing:read', "
    "repeatable=True); scope=None if the interface shows none"
)
PATH_PATTERN = re.compile(r"/api/(?!api/)(([^/{}?#\s]|{\w+})+/)*")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """
    The description of an operation, and the decorator of its class.

    :param method: HTTP method
    :param path: template below ``/api`` that begins and ends with a slash; it names fields as the interface does
    :param scope: scope that the API key needs; ``None`` if the interface does not show one
    :param repeatable: whether the operation is idempotent
    :param effect: what it does to a resource; optional for ``GET``, ``PATCH`` and ``DELETE``
    :param recover: how an unknown outcome is recovered: ``look-up`` if a read shows whether the operation was applied,
        ``none`` if only a person can tell; ``None`` if the operation is repeatable
    :param look_for: sentence that says what to look for after an unknown outcome; ``None`` if the operation is
        repeatable
    :param already_done_code: error code that means the operation was applied before; ``None`` if there is none
    :param instead: what to do instead of an operation that the service always refuses; ``None`` for all others
    :param passing_statuses: further statuses to retry, unless the error names a field
    :param refusals_count: whether a request that was refused with 429 may count towards the limit; then the caller
        decides when to send it again
    :param shows: fields that the response must show; ``None`` for the fields of the request
    :param result: type of the result, the type parameter of the class; ``None`` if the response has no content
    :param is_write: whether it changes anything
    """

    method: str
    path: str
    _: KW_ONLY
    scope: str | None
    repeatable: bool
    effect: Effect | None = None
    recover: Literal["look-up", "none"] | None = None
    look_for: str | None = None
    already_done_code: str | None = None
    instead: str | None = None
    passing_statuses: tuple[int, ...] = ()
    refusals_count: bool = False
    shows: Mapping[str, Any] | None = None
    result: Any = None
    is_write: bool = False

    def __call__(self, cls: DescribedClass) -> DescribedClass:
        """
        Describe the endpoint of an operation.

        :raises TypeError: if the declaration is incomplete or contradicts itself
        """
        effect = self.effect or USUAL_EFFECTS.get(self.method)
        row = replace(self, path=f"/api{self.path}", effect=effect, result=result_type(cls), is_write=effect != "read")
        row.check(cls)
        cls.endpoint = row
        return cls

    def check(self, cls: type[Described]) -> None:
        """
        Check the complete row of an operation, or of a class below it.

        :raises TypeError: if it is incomplete or contradicts itself
        """
        problems = [
            *self._problems_of_method(),
            *self._problems_of_recovery(),
            *self._problems_of_path(cls),
            *self._problems_of_names(cls),
            *self._problems_of_result(cls),
        ]
        if problems:
            raise TypeError(f"@endpoint of {cls.__name__}: {'; '.join(problems)}")

    def _problems_of_method(self) -> Iterator[str]:
        effects = EFFECTS.get(self.method)
        if effects is None:
            yield f"the method is {self.method!r}; expected {' or '.join(EFFECTS)}"
        elif self.effect not in effects:
            expected = " or ".join(map(repr, effects))
            yield f"a {self.method} needs effect={expected}, not {self.effect!r}"

    def _problems_of_recovery(self) -> Iterator[str]:
        needs_none = self.repeatable is True and self.recover is None and self.look_for is None
        has_one = self.repeatable is False and self.recover in ("look-up", "none") and self.look_for is not None
        if not needs_none and not has_one:
            yield (
                "an operation that is not repeatable (False) needs recover='look-up' or 'none', and look_for='…', what "
                "to look for after an unknown outcome; a repeatable one (True) needs neither"
            )

    def _problems_of_path(self, cls: type[Described]) -> Iterator[str]:
        if not PATH_PATTERN.fullmatch(self.path):
            expected = "one below /api that begins and ends with a slash, and names fields as {id}"
            yield f"the path is {self.path.removeprefix('/api')!r}; expected {expected}"
        names = interface_names(cls)
        fields = set(names.values())
        in_path = set(path_fields(self.path))
        unknown = in_path - fields
        if unknown:
            yield f"the path names {_listed(unknown)}: add it to the fields of the class, or as their alias"
        for name, field in cls.model_fields.items():
            may_be_missing = not field.is_required() or type(None) in get_args(field.annotation)
            if names[name] in in_path and may_be_missing:
                yield f"the path names {names[name]!r}: it must be required, and never None"
        others = fields - in_path
        if self.method == "DELETE" and others:
            yield f"a DELETE sends its path alone: remove {_listed(others)}"

    def _problems_of_names(self, cls: type[Described]) -> Iterator[str]:
        for name in sorted(interface_names(cls).keys() & _names_of_operation(cls)):
            yield f"{name!r} is a name of Operation: name the field otherwise, with Field(alias={name!r})"

    def _problems_of_result(self, cls: type[Described]) -> Iterator[str]:
        if not _is_result(self.result):
            yield "the result must be None, or a class below Resource: X, X | None, list[X] or Page[X]"
        elif is_page(self.result) and ("offset" in cls.model_fields) == ("cursor" in cls.model_fields):
            yield (
                "a Page needs the field 'offset: Offset = None', or 'cursor: Cursor = None' if its links have no "
                "offset, for the pages that follow"
            )


if TYPE_CHECKING:
    endpoint = Endpoint
else:

    def endpoint(*positional: Any, **named: Any) -> Endpoint:
        """
        Return the decorator of an operation; the arguments are those of :class:`Endpoint`.

        :raises TypeError: if one is missing or unknown
        """
        try:
            return Endpoint(*positional, **named)
        except TypeError:
            raise TypeError(f"@endpoint: {_problem_of_arguments(positional, named)}. {EXAMPLE}") from None


def _problem_of_arguments(positional: Sequence[object], named: Mapping[str, object]) -> str:
    """Say which argument of ``@endpoint`` is missing or unknown."""
    arguments = signature(Endpoint)
    try:
        given = arguments.bind_partial(*positional, **named).arguments
    except TypeError as error:
        return str(error)
    required = [name for name, one in arguments.parameters.items() if one.default is Parameter.empty]
    missing = [name for name in required if name not in given]
    return f"{_listed(missing)} missing"


class Described(BaseModel):
    """What ``@endpoint`` describes: ``Operation``, and the classes below it."""

    endpoint: ClassVar[Endpoint]


def _names_of_operation(cls: type[Described]) -> set[str]:
    """Return the names that ``Operation`` uses itself."""
    *_, operation, _ = [base for base in cls.__mro__ if issubclass(base, Described)]
    return set(vars(operation))


def result_type(cls: type[Described]) -> Any:
    """Return the ``T`` of an operation class; ``None`` for ``Operation[None]``."""
    for base in get_original_bases(cls):
        kind = get_origin(base)
        if isinstance(kind, type) and issubclass(kind, Described):
            (answer,) = get_args(base)
            return None if answer is type(None) else answer
    raise TypeError(f"{cls.__name__} must derive from Operation[...]")


def is_page(result: object) -> bool:
    """Return whether a result is a page of a list."""
    return isinstance(result, type) and issubclass(result, Page)


def _is_result(result: Any) -> bool:
    """Return whether a result is nothing, a record, or a list or page of records, whose secrets can be masked."""
    parts = result.__pydantic_generic_metadata__["args"] if is_page(result) else get_args(result)
    for part in parts or (result,):
        is_nothing = part is None or part is type(None)
        is_record = isinstance(part, type) and issubclass(part, Resource)
        if not is_nothing and not is_record:
            return False
    return True


@lru_cache(maxsize=1024)
def path_fields(path: str) -> list[str]:
    """Return the names in braces of a path template."""
    return re.findall(r"{(\w+)}", path)


def own_ids(path: str) -> list[str]:
    """Return the ids of a path template that say what the operation is about: not whose it is, if there are others."""
    names = path_fields(path)
    own = [name for name in names if name not in ("organization_id", "project_id")]
    return own or names[-1:]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, sorted(names)))
