"""
Declared arguments of operators and sensors.

A class declares an argument in one line with its kind, which says how a rendered value is read, and what follows if its
template found no value::

    domain_id: Arg[str] = arg(ID)
    organization_id: Arg[str | None] = arg(ID, default=None)

Dag files import this module, so it imports nothing that is expensive.
"""

from __future__ import annotations

from collections.abc import Collection
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast

from typing_extensions import dataclass_transform

if TYPE_CHECKING:
    from airflow.sdk import XComArg

T = TypeVar("T")
SELF = Parameter("self", Parameter.POSITIONAL_ONLY)
OTHERS = Parameter("kwargs", Parameter.VAR_KEYWORD, annotation="Any")


class Kind:
    """
    The kind of an argument.

    :param reader: function of :mod:`airflow_provider_workspace.operators.reading` that checks a value and returns it
        parsed, without ``read_``; empty if something else does
    :param needed: whether an argument that was given must have a value. Otherwise it is as if it was not given
    :param words: texts that are no value; ``None`` for the usual ones
    :param none: whether ``None`` in the Dag file has a meaning of its own
    :param whole: whether a part of it without a value makes all of it invalid
    :param is_path: whether it may be the path of a file, relative to the Dag file
    :param options: for the function
    """

    # No dataclass, nor the class below: building one costs as much as importing a module of operators.
    def __init__(
        self,
        reader: str = "",
        *,
        needed: bool = True,
        words: tuple[str, ...] | None = None,
        none: bool = False,
        whole: bool = False,
        is_path: bool = False,
        **options: Any,
    ) -> None:
        self.reader, self.options = reader, options
        self.needed, self.words, self.none, self.whole, self.is_path = needed, words, none, whole, is_path

    def read(self, name: str, value: Any) -> Any:
        """
        Read a value.

        :param name: the argument, for messages
        :raises WorkspaceInputError: if it is invalid
        """
        from airflow_provider_workspace.operators.reading import read

        return read(self, name, value)


class Argument:
    """
    A declared argument.

    :param default: ``Parameter.empty`` if it is required
    :param templated: whether it may be a template or an XCom
    :param attribute: where the task keeps it; empty for its own name
    :ivar parameter: for the signature, when its class is complete
    """

    parameter: Parameter

    def __init__(self, kind: Kind, default: Any, *, templated: bool = True, attribute: str = "") -> None:
        self.kind, self.default, self.templated, self.attribute = kind, default, templated, attribute

    def with_default(self, default: Any) -> Argument:
        """
        Return it with the default of a class attribute.

        :raises WorkspaceInputError: if it is invalid; that of a template is read when the task runs
        """
        value = default if self.templated else self.kind.read(self.parameter.name, default)
        other = Argument(self.kind, value, templated=self.templated, attribute=self.attribute)
        other.parameter = self.parameter.replace(default=value)
        return other


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

    A class attribute of the name of an argument is its default. A class may define ``__post_init__``, which is called
    when all arguments are set, after that of its bases.
    """

    declared: ClassVar[dict[str, Argument]] = {}
    """All arguments by name, with their defaults for this class."""
    template_fields: Collection[str] = ()
    given_as_none = cast("tuple[str, ...]", ())
    """The arguments that were given as ``None``."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Collect the arguments. Airflow's metaclass then wraps the ``__init__`` that is built here."""
        super().__init_subclass__(**kwargs)
        types = vars(cls).get("__annotations__", {})
        own = {name: each for name, each in vars(cls).items() if isinstance(each, Argument)}
        for name, each in own.items():
            type_ = types.get(name, "Any")
            if not isinstance(type_, str):
                type_ = "Any"
            elif type_.startswith("Arg["):
                type_ = type_[len("Arg[") : -1]
            each.parameter = Parameter(name, Parameter.KEYWORD_ONLY, default=each.default, annotation=type_)
            each.attribute = each.attribute or name
            delattr(cls, name)
        inherited: dict[str, Argument] = {}
        for base in reversed(cls.__bases__):
            inherited |= getattr(base, "declared", {})
        cls.declared = {**own, **{name: each for name, each in inherited.items() if name not in own}}
        above = cls.__mro__[1 : cls.__mro__.index(DeclaredArguments)]
        for base in (*reversed([base for base in above if not hasattr(base, "declared")]), cls):
            for name in vars(base).keys() & inherited.keys():
                if not hasattr(vars(base)[name], "__get__"):  # neither a method nor a property is a default
                    cls.declared[name] = inherited[name].with_default(vars(base)[name])
        templated = [each.attribute for each in cls.declared.values() if each.templated]
        cls.template_fields = tuple(dict.fromkeys([*templated, *cls.template_fields]))
        if "__init__" not in vars(cls):
            cls.__init__ = _make_init(cls)  # type: ignore[method-assign]

    def __init__(self, **kwargs: Any) -> None:
        """Set all arguments, except for what an author's ``__init__`` has set; hand the others to Airflow's class."""
        self.given_as_none = tuple(name for name in self.declared if kwargs.get(name, self) is None)
        arguments, already_set = self.declared.items(), vars(self)
        given = {name: kwargs.pop(name, already_set.get(each.attribute, each.default)) for name, each in arguments}
        super().__init__(**kwargs)
        for name, each in arguments:
            value = given[name]
            if not each.templated and value is not each.default:
                value = each.kind.read(name, value)
            setattr(self, each.attribute, value)
        bases = type(self).__mro__
        for base in reversed(bases[: bases.index(DeclaredArguments)]):
            if "__post_init__" in vars(base):
                vars(base)["__post_init__"](self)


def _make_init(cls: type[DeclaredArguments]) -> Any:
    """
    Return an ``__init__`` that calls the next one that somebody wrote: an author, or that of DeclaredArguments.

    Airflow's metaclass reads from its signature what is required, and what ``default_args`` may give. Below an
    ``__init__`` of an author, these are its parameters and what the classes below it declare or give a default: which
    arguments it supplies itself, only it knows.
    """
    writers = (base for base in cls.__mro__[1:] if "__init__" in vars(base))
    writer = next(base for base in writers if not hasattr(vars(base)["__init__"], "is_built"))
    init, own, others, supplied = vars(writer)["__init__"], cls.declared, list[Parameter](), dict[str, Any]()
    if writer is not DeclaredArguments:
        bases = cls.__mro__[cls.__mro__.index(writer) :]
        above = [each for base in bases for each in getattr(base, "declared", {}).values()]
        own = {name: each for name, each in own.items() if each not in above}
        required = {each.parameter.name for each in above if each.default is Parameter.empty}
        supplied = {name: each.default for name, each in own.items() if name in required}
        theirs = [each for each in signature(init).parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        others = [each for each in theirs if each.name not in {*own, "self"}]

    def __init__(self: Any, **kwargs: Any) -> None:  # noqa: N807 - it becomes the method of this name
        init(self, **{**supplied, **kwargs})

    parameters = [SELF, *(each.parameter for each in own.values()), *others, OTHERS]
    __init__.__signature__ = Signature(parameters, __validate_parameters__=False)  # type: ignore[attr-defined]
    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    __init__.__module__ = cls.__module__
    __init__.is_built = True  # type: ignore[attr-defined]
    return __init__


# An id, or a text of one line, such as a name or an address.
ID, NAME = Kind("id"), Kind("text")
# The same where one of two arguments is needed.
OPTIONAL_ID, OPTIONAL_NAME = Kind("id", needed=False), Kind("text", needed=False)
# True or false, templated or as :func:`fixed`.
SWITCH, FLAG = Kind("switch"), Kind("flag")
# A text of a request; an empty one is a value, such as that of a description.
TEXT = Kind("string", needed=False, words=("None",))
# What something else reads, such as another field of a request.
FIELD = Kind(needed=False)
# Lists, mappings, and what they hold.
ITEMS = Kind("nested", needed=False, leave_out=True)
FIELDS = Kind("fields", needed=False)
# All fields of a request. Without its id, it would be sent to the default organization or project.
ENDPOINT_FIELDS = Kind("fields", needed=False, ids=("organization_id", "project_id"))
ROWS = Kind("rows")
FILTER = Kind("filter", whole=True)
# A file, and an organization file: a path, or its content.
PATH = Kind(needed=False, is_path=True)
CONTENT = Kind("nested", whole=True, is_path=True, leave_out=False)
# Limits, times and lists of names: without a value, their defaults would be another order.
NAMES = Kind("names")
# Dashboards, with their projects.
DASHBOARDS = Kind("dashboards")
# Names of columns, by position or by name.
COLUMNS = Kind("columns")
EXPORTS, SOME_EXPORTS = Kind("exports", at_least=1), Kind("exports", at_least=0)
INTEGER, MAXIMUM, LEVEL = Kind("integer"), Kind("maximum", none=True), Kind("level", none=True)
SOME_LEVEL, UNTIL = Kind("level"), Kind("until")
SECONDS, TIME = Kind("seconds"), Kind("time")
SECONDS_FROM_ONE = Kind("seconds", least=1.0)
YEARS = Kind("seconds", least=1.0, years=10)
# What something else reads.
NEEDED = Kind()
# A class or function, or its name, as :func:`fixed`.
TARGET = Kind("target")
# The id of a task, as :func:`fixed`.
TASK_ID = Kind("task_id")


def choice(*choices: str) -> Kind:
    """Return the kind of an argument with a fixed set of values."""
    return Kind("choice", choices=choices)


def choices(*choices: str) -> Kind:
    """Return the kind of an argument with at least one of a fixed set of values."""
    return Kind("choices", choices=choices)
