"""
Declared arguments of operators and sensors.

A class declares an argument in one line with its kind, which says how a rendered value is read, and what follows if its
template found no value::

    domain_id: Arg[str] = arg(ID)
    organization_id: Arg[str | None] = arg(ID, default=None)

Dag files import this module, so it imports nothing that is expensive.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar
from uuid import UUID

from typing_extensions import dataclass_transform

from airflow_provider_workspace.api.no_value import NO_VALUES, is_no_value, no_value_error
from airflow_provider_workspace.errors import WorkspaceInputError, shown, type_name

if TYPE_CHECKING:
    from airflow.sdk import XComArg

T = TypeVar("T")

# More than any id or count, and far below Python's integer string limit.
MAX_NUMBER = 10**100
# What a switch may render to.
SWITCHES = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
# No wait may be longer than a year.
MAX_SECONDS = 366 * 86_400.0
# The year 5138 in seconds since 1970: a larger number is in milliseconds.
MAX_TIME = 1e11


@dataclass(frozen=True)
class Kind:
    """
    The kind of an argument.

    :param read: checks a value and returns it parsed; its first argument is the name, for messages
    :param needed: whether an argument that was given must have a value. Otherwise it is as if it was not given
    :param words: texts that are no value
    :param none: whether ``None`` in the Dag file has a meaning of its own
    :param is_path: whether it may be the path of a file, relative to the Dag file
    """

    read: Callable[[str, Any], Any] = lambda _, value: value
    needed: bool = True
    words: tuple[str, ...] = NO_VALUES
    none: bool = False
    is_path: bool = False


@dataclass(frozen=True)
class Argument:
    """
    A declared argument.

    :param default: ``Parameter.empty`` if it is required
    :param templated: whether it may be a template or an XCom
    :param attribute: where the task keeps it; empty for its own name
    :param annotation: its type, for the signature
    """

    kind: Kind
    default: Any
    templated: bool = True
    attribute: str = ""
    annotation: str = "Any"


class Arg(Generic[T]):
    """The type of a templated argument: a ``T``, a template or an XCom in the Dag file; then what its kind reads."""

    if TYPE_CHECKING:

        def __get__(self, task: object, owner: object = None) -> Any: ...

        def __set__(self, task: object, value: T | str | XComArg) -> None: ...


def arg(kind: Kind, *, default: Any = Parameter.empty, attribute: str = "") -> Any:
    """Declare a templated argument; it is required unless it has a default."""
    return Argument(kind, default, attribute=attribute)


def fixed(kind: Kind, *, default: Any = Parameter.empty) -> Any:
    """Declare an argument that is set in the Dag file only, and read there."""
    return Argument(kind, default, templated=False)


@dataclass_transform(kw_only_default=True, field_specifiers=(arg, fixed))
class DeclaredArguments:
    """
    Base of classes that declare arguments: builds ``__init__`` and ``template_fields`` from them.

    A class may define ``__post_init__``, which is called when its own arguments are set.
    """

    arguments: ClassVar[dict[str, Argument]] = {}
    """All declared arguments by name."""
    template_fields: Collection[str] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Collect the arguments. Airflow's metaclass then wraps the ``__init__`` that is built here."""
        super().__init_subclass__(**kwargs)
        types = vars(cls).get("__annotations__", {})
        own = {
            name: replace(each, annotation=str(types.get(name, "Any")).removeprefix("Arg[").removesuffix("]"))
            for name, each in vars(cls).items()
            if isinstance(each, Argument)
        }
        for name in own:
            delattr(cls, name)
        cls.arguments = dict(own)
        for base in cls.__mro__[1:]:
            for name, each in vars(base).get("arguments", {}).items():
                cls.arguments.setdefault(name, each)
        templated = [each.attribute or name for name, each in cls.arguments.items() if each.templated]
        cls.template_fields = tuple(dict.fromkeys((*templated, *cls.template_fields)))
        if "__init__" not in vars(cls):
            cls.__init__ = _make_init(cls, own)  # type: ignore[method-assign]


def _make_init(cls: type[Any], own: Mapping[str, Argument]) -> Any:
    """Return an ``__init__`` that sets the class's own arguments, and hands the others on."""
    post_init = vars(cls).get("__post_init__")
    declared_again = {name for base in cls.__mro__[1:] for name in own if name in getattr(base, "arguments", {})}

    def __init__(self: Any, **kwargs: Any) -> None:  # noqa: N807 - it becomes the method of this name
        given = {name: kwargs.pop(name, each.default) for name, each in own.items()}
        super(cls, self).__init__(**kwargs, **{name: given[name] for name in declared_again})
        for name, each in own.items():
            value = given[name]
            if not each.templated and value is not each.default:
                value = each.kind.read(name, value)
            setattr(self, each.attribute or name, value)
        if post_init:
            post_init(self)

    parameters = [Parameter("self", Parameter.POSITIONAL_ONLY)]
    for name, each in cls.arguments.items():
        parameters.append(Parameter(name, Parameter.KEYWORD_ONLY, default=each.default, annotation=each.annotation))
    parameters.append(Parameter("kwargs", Parameter.VAR_KEYWORD, annotation="Any"))
    __init__.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    __init__.__module__ = cls.__module__
    return __init__


def read_arguments(task: Any, folder: str = "") -> None:
    """
    Read the templated arguments of an operator or sensor, before anything else does.

    :param task: template fields that are not declared, such as those of a subclass, are left as they are
    :param folder: the folder of the Dag file, for relative paths of files
    :raises WorkspaceInputError: naming the argument that is invalid, or has no value and needs one
    """
    left_out = []
    for name, each in task.arguments.items():
        attribute, kind = each.attribute or name, each.kind
        value = getattr(task, attribute)
        if not each.templated:
            continue
        if value is None and attribute not in task.rendered_to_none:  # None is what the Dag file says
            if kind.none or (each.default is None and kind is not SWITCH):
                continue
            if each.default == ():
                value = []
                setattr(task, attribute, value)
        if kind in (FILTER, CONTENT) and attribute in task.rendered_to_none:
            raise no_value_error(name)
        if not is_no_value(value, kind.words):
            try:
                read = kind.read(name, value)
            except RecursionError:
                raise WorkspaceInputError(f"{name} is nested too deeply") from None
            if kind.is_path:
                read = _read_path(folder, read)
            if read is not value:
                setattr(task, attribute, read)
        elif kind.needed:
            raise no_value_error(name, value)
        else:
            left_out.append(name)
            setattr(task, attribute, None)
    if left_out:
        task.log.info("As if not given, because there is no value: %s.", ", ".join(left_out))


def _read_path(folder: str, value: Any) -> Any:
    """Resolve a relative path; absolute ones, URLs and other values stay the same."""
    from airflow_provider_workspace.hooks.files import is_stored

    stays = not isinstance(value, str | os.PathLike) or is_stored(value)
    return value if stays else os.path.join(folder, value)  # noqa: PTH118 - keeps a trailing slash


def _read_text_of_one_line(name: str, value: Any, expected: str = "a string") -> str:
    if not isinstance(value, str):
        raise WorkspaceInputError(f"{name} must be {expected}, not {type_name(value)}")
    # Not in names, where the service decides: some replace a tab with a blank.
    if name != "name" and not value.strip().isprintable():
        raise WorkspaceInputError(f"{name} contains characters that cannot be printed: {value[:40]!a}")
    return value


def _read_id(name: str, value: Any) -> Any:
    number = isinstance(value, int) and not isinstance(value, bool) and abs(value) < MAX_NUMBER
    return value if number or isinstance(value, UUID) else _read_text_of_one_line(name, value, "a string or a number")


def _read_switch(name: str, value: Any) -> bool:
    word = str(value).strip().lower() if isinstance(value, bool | str) or value in (0, 1) else None
    if word not in SWITCHES:
        raise WorkspaceInputError(f"{name} must be true or false, not {shown(value)}")
    return SWITCHES[word]


def _read_flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise WorkspaceInputError(f"Set {name} to True or False in the Dag file: it is not templated")
    return value


def _read_task_id(name: str, value: Any) -> str:
    if not (isinstance(value, str) and value.isprintable()):
        raise WorkspaceInputError(f"{name} must be the id of a task or a task group, not {type_name(value)}")
    return value


def _read_choice(choices: Collection[str], name: str, value: Any) -> str:
    if isinstance(value, str) and value in choices:
        return value
    raise WorkspaceInputError(f"{name} is {shown(value)}; expected {' or '.join(map(repr, choices))}")


def _read_fields(name: str, value: Any) -> dict[str, Any]:
    """Read a mapping of fields by name; leave out the fields that have no value, at any depth."""
    return _read_mapping(name, value, leave_out=True)


def _read_filter(name: str, value: Any) -> dict[str, Any]:
    """Refuse a filter that has no value, since it would select other rows; ``None`` is a value of a row."""
    return _read_mapping(name, value, leave_out=False)


def _read_mapping(name: str, value: Any, *, leave_out: bool) -> dict[str, Any]:
    fields = _read_nested(name, _read_json(value), leave_out=leave_out)
    if not isinstance(fields, Mapping) or not all(isinstance(key, str) for key in fields):
        raise WorkspaceInputError(
            f"{name} must be a mapping of fields by name, not {type_name(value)}. If it comes from a template, set "
            "render_template_as_native_obj=True on the Dag"
        )
    if "self" in fields:  # it would collide with the argument of a method
        raise WorkspaceInputError(f"{name} holds 'self', which is not a field of the interface")
    return dict(fields)


def _read_rows(name: str, value: Any) -> Any:
    """Leave out the fields of rows that have no value; an address that has none is an invalid row."""
    from airflow_provider_workspace.procedures.roster_files import rows_of_value

    rows = rows_of_value(value, name)
    read = [_read_nested(name, row, leave_out=True) if isinstance(row, Mapping) else row for row in rows]
    return value if read == value else read  # Airflow looks into each row of an argument that is set


def _read_nested(name: str, value: Any, *, leave_out: bool, key: Any = None) -> Any:
    """
    Read the templates in mappings and lists.

    :param leave_out: whether an entry of a mapping that has no value is left out; otherwise the word "None" is refused.
        An item of a list is not left out
    :param key: the key of the innermost mapping that holds the value
    """
    if isinstance(value, Mapping):
        return {
            key: _read_nested(name, below, leave_out=leave_out, key=key)
            for key, below in value.items()
            if not (leave_out and is_no_value(below))
        }
    if isinstance(value, list | tuple | set):
        return [_read_nested(name, item, leave_out=leave_out, key=key) for item in value]
    if is_no_value(value) and (leave_out or value is not None):
        raise no_value_error(name if key is None else f"{name}[{shown(key)}]", value)
    return value


def _read_names(name: str, value: Any) -> list[str]:
    """Read a list of texts, the same as JSON text, or a single text."""
    names = _read_json(value)
    several = isinstance(names, Iterable) and not isinstance(names, Mapping | bytes)
    items = [names] if isinstance(names, str) else names if several else [None]
    listed: list[Any] = [str(item) if isinstance(item, UUID) else item for item in items]
    if not all(isinstance(item, str) for item in listed):
        raise WorkspaceInputError(f"{name} must be a list of texts")
    for item in listed:
        if is_no_value(item, NO_VALUES):
            raise no_value_error(name, item)
    return listed


def _read_exports(name: str, value: Any, *, needed: bool) -> list[str]:
    """Read the ids of batch exports, and return each once."""
    given = _read_names(name, value)
    try:
        found = list(dict.fromkeys(str(UUID(text.strip())) for text in given))
    except ValueError:
        found = []
    if not found and (needed or given):
        msg = f"{name} must be a list of batch exports (UUID)"
        if any(text.strip()[:1] == "[" for text in given):
            msg += ". Pass task.output of the other task, or set render_template_as_native_obj=True on the Dag"
        raise WorkspaceInputError(msg)
    return found


def _read_integer(name: str, value: Any) -> int:
    text = value.strip() if isinstance(value, str) else value
    if isinstance(text, str) and text.isdecimal() and len(text) < 20:
        return int(text)
    if isinstance(text, int) and not isinstance(text, bool) and abs(text) < MAX_NUMBER:
        return text
    raise WorkspaceInputError(f"{name} must be a whole number, not {type_name(value)}")


def _read_maximum(name: str, value: Any) -> int:
    most = _read_integer(name, value)
    if most < 0:
        raise WorkspaceInputError(f"{name} must be at least 0, or None for any number")
    return most


def _read_level(name: str, value: Any) -> int:
    from airflow_provider_workspace.api.levels import parse_level

    try:
        return parse_level(value)
    except ValueError as error:
        raise WorkspaceInputError(f"{name}: {error}; found {shown(value)}") from None


def read_seconds(name: str, value: Any, *, least: float = 0.0) -> float:
    """
    Read a length of time.

    :param value: a timedelta, or a number of seconds, also as text
    :param least: minimum in seconds
    :raises WorkspaceInputError: if it is neither, too short or longer than a year
    """
    seconds = value.total_seconds() if isinstance(value, timedelta) else _read_number(value)
    if least <= seconds <= MAX_SECONDS:
        return seconds
    found = str(value) if isinstance(value, float | timedelta) else shown(value)
    raise WorkspaceInputError(
        f"{name} must be a timedelta or a number of seconds, from {least:g} s to a year, not {found}"
    )


def _read_time(name: str, value: Any) -> float:
    seconds = _read_number(value)
    if 0 <= seconds <= MAX_TIME:
        return seconds
    raise WorkspaceInputError(f"{name} must be a number of seconds since 1970, not {type_name(value)}")


def _read_number(value: Any) -> float:
    """Read a number or its text; NaN if it is neither."""
    if not isinstance(value, int | float | str) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


def _read_json(value: Any) -> Any:
    """Parse the JSON text of a mapping or list, to which a template may render; return any other value as it is."""
    if isinstance(value, str) and value.strip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


# An id, or a text of one line, such as a name or an address.
ID, NAME = Kind(_read_id), Kind(_read_text_of_one_line)
# The same where one of two arguments is needed.
OPTIONAL_ID, OPTIONAL_NAME = Kind(_read_id, needed=False), Kind(_read_text_of_one_line, needed=False)
# True or false, templated or as :func:`fixed`.
SWITCH, FLAG = Kind(_read_switch), Kind(_read_flag)
# A text of a request; an empty one is a value, such as that of a description.
TEXT = Kind(needed=False, words=("None",))
# What something else reads, such as another field of a request.
FIELD = Kind(needed=False)
# Lists, mappings, and what they hold.
ITEMS = Kind(partial(_read_nested, leave_out=True), needed=False)
FIELDS = Kind(_read_fields, needed=False)
ROWS = Kind(_read_rows)
FILTER = Kind(_read_filter)
# A file, and an organization file: a path, or its content.
PATH = Kind(needed=False, is_path=True)
CONTENT = Kind(partial(_read_nested, leave_out=False), is_path=True)
# Limits, times and lists of names: without a value, their defaults would be another order.
NAMES = Kind(_read_names)
EXPORTS, SOME_EXPORTS = Kind(partial(_read_exports, needed=True)), Kind(partial(_read_exports, needed=False))
INTEGER, MAXIMUM, LEVEL = Kind(_read_integer), Kind(_read_maximum, none=True), Kind(_read_level, none=True)
SECONDS, TIME = Kind(read_seconds), Kind(_read_time)
SECONDS_FROM_ONE = Kind(partial(read_seconds, least=1.0))
# What something else reads.
NEEDED = Kind()
# The id of a task, as :func:`fixed`.
TASK_ID = Kind(_read_task_id)


def choice(*choices: str) -> Kind:
    """Return the kind of an argument with a fixed set of values."""
    return Kind(partial(_read_choice, choices))
