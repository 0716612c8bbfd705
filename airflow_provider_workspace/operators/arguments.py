"""
Declared arguments of operators and sensors.

A class declares an argument in one line with its kind, which says how a rendered value is read, and what follows if its
template found no value::

    domain_id: Arg[str] = arg(ID)
    organization_id: Arg[str | None] = arg(ID, default=None)

Dag files import this module, so it imports nothing that is expensive.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Literal, TypeVar, cast

from typing_extensions import Self, dataclass_transform

from airflow_provider_workspace.api.templates import NO_VALUES, is_no_value, no_value_error

if TYPE_CHECKING:
    from airflow.sdk import XComArg

    NoValue = Literal["fails", "fails in part", "fails unless written", "as if not given"]

T = TypeVar("T")
SELF = Parameter("self", Parameter.POSITIONAL_ONLY)
_PACKAGE = "airflow_provider_workspace."
OTHERS = Parameter("kwargs", Parameter.VAR_KEYWORD, annotation="Any")

# What follows if an argument was given, but its template or XCom has no value.
# The task fails.
FAILS: Final = "fails"
# It also fails if a part of the argument has no value.
FAILS_IN_PART: Final = "fails in part"
# It fails, but None that is written in the Dag file is a value.
FAILS_UNLESS_WRITTEN: Final = "fails unless written"
# The argument becomes None, as if it was not given.
AS_IF_NOT_GIVEN: Final = "as if not given"


class Kind:
    """
    The kind of an argument.

    :param reader: key of the function in ``operators.reading.READERS`` that checks a value and returns it parsed
    :param no_value: what follows if there is no value
    :param may_be_empty: whether an empty text is a value
    :param is_path: whether it may be the path of a file, relative to the Dag file
    :param choices: the only values of ``choice`` and ``choices``
    """

    # No dataclass, nor the class below: building one costs as much as importing a module of operators.
    def __init__(
        self,
        reader: str,
        no_value: NoValue = FAILS,
        *,
        may_be_empty: bool = False,
        is_path: bool = False,
        choices: tuple[str, ...] = (),
    ) -> None:
        self.reader = reader
        self.no_value = no_value
        self.may_be_empty = may_be_empty
        self.is_path = is_path
        self.choices = choices

    def is_missing(self, value: object) -> bool:
        """Return whether a template or XCom found no value."""
        return is_no_value(value) if self.may_be_empty else is_no_value(value, NO_VALUES)

    def read(self, name: str, value: object) -> Any:
        """
        Check a value, and return it parsed.

        :param name: the argument, for messages
        :raises WorkspaceInputError: if it is invalid
        """
        from airflow_provider_workspace.operators.reading import read

        return read(self.reader, name, value, self.choices)


# What something else reads.
NEEDED = Kind("unchecked")
FIELD = Kind("unchecked", AS_IF_NOT_GIVEN)
# An id; optional where one of two arguments is needed.
ID = Kind("id")
OPTIONAL_ID = Kind("id", AS_IF_NOT_GIVEN)
# A text of one line, such as a name or an address.
NAME = Kind("line")
OPTIONAL_NAME = Kind("line", AS_IF_NOT_GIVEN)
# A text of a request, such as a description, which may be empty.
TEXT = Kind("text", AS_IF_NOT_GIVEN, may_be_empty=True)
# True or false, templated or as :func:`fixed`.
SWITCH = Kind("switch")
FLAG = Kind("flag")
# Numbers and times. Without a value, their defaults would be another order.
INTEGER = Kind("integer")
SECONDS = Kind("seconds")
SECONDS_FROM_ONE = Kind("seconds_from_one")
YEARS = Kind("years")
TIME = Kind("time")
MOMENT = Kind("moment")
UNTIL = Kind("until")
# A limit of removals; None is no limit. Who approves a plan can be asked in its place.
MAXIMUM = Kind("maximum", FAILS_UNLESS_WRITTEN)
MAXIMUM_OR_ASK = Kind("maximum_or_ask", FAILS_UNLESS_WRITTEN)
# An access level; None in the Dag file is no level.
LEVEL = Kind("level", FAILS_UNLESS_WRITTEN)
REQUIRED_LEVEL = Kind("level")
# Lists of names, Airflow users, ids, dashboards with their projects, rows of people, and protected people.
NAMES = Kind("names")
USERS = Kind("users")
EXPORTS = Kind("exports")
EXPORTS_OR_NONE = Kind("exports_or_none")
DASHBOARDS = Kind("dashboards")
ROWS = Kind("rows")
PROTECTED_ROWS = Kind("protected")
# Names of the columns of rows, by position or by name; and which rows to read.
COLUMNS = Kind("columns")
FILTER = Kind("filter", FAILS_IN_PART)
# Lists and mappings of a request, in which entries without a value are left out.
ITEMS = Kind("items", AS_IF_NOT_GIVEN)
FIELDS = Kind("fields", AS_IF_NOT_GIVEN)
# All fields of a request. Without its id, it would be sent to the default organization or project.
ENDPOINT_FIELDS = Kind("endpoint_fields", AS_IF_NOT_GIVEN)
# The path of a file, or that of an organization file, or the content of one.
REQUIRED_PATH = Kind("unchecked", is_path=True)
PATH = Kind("unchecked", AS_IF_NOT_GIVEN, is_path=True)
CONTENT = Kind("content", FAILS_IN_PART, is_path=True)
# As :func:`fixed`: a class or function, or its name; the id of a task.
TARGET = Kind("target")
TASK_ID = Kind("task_id")


def choice(*choices: str) -> Kind:
    """Return the kind of an argument with a fixed set of values."""
    return Kind("choice", choices=choices)


def choices(*choices: str) -> Kind:
    """Return the kind of an argument with at least one of a fixed set of values."""
    return Kind("choices", choices=choices)


class Argument:
    """
    A declared argument.

    :param default: ``Parameter.empty`` if it is required
    :param templated: whether it may be a template or an XCom
    :param attribute: where the task keeps it; empty for its own name
    :ivar name: for the signature, as ``annotation`` is; when its class is complete
    """

    name: str
    annotation: str

    def __init__(self, kind: Kind, default: Any, *, templated: bool = True, attribute: str = "") -> None:
        self.kind = kind
        self.default = default
        self.templated = templated
        self.attribute = attribute

    @property
    def parameter(self) -> Parameter:
        """It, as the signature of its class shows it."""
        return Parameter(self.name, Parameter.KEYWORD_ONLY, default=self.default, annotation=self.annotation)

    def with_default(self, default: Any) -> Argument:
        """
        Return it with the default of a class attribute.

        :raises WorkspaceInputError: if it is invalid; that of a template is read when the task runs
        """
        value = default if self.templated else self.kind.read(self.name, default)
        other = Argument(self.kind, value, templated=self.templated, attribute=self.attribute)
        other.name = self.name
        other.annotation = self.annotation
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


def read_arguments(task: Any, folder: str = "") -> None:
    """
    Read the templated arguments of an operator or sensor, before anything else does.

    :param task: template fields that are not declared, such as those of a subclass, are left as they are
    :param folder: the folder of the Dag file, for relative paths of files
    :raises WorkspaceInputError: naming the argument that is invalid, or has no value and needs one
    """
    declared: dict[str, Argument] = task.declared
    mapped_to_none = _mapped_to_none(task)
    left_out: list[str] = []
    for name, argument in declared.items():
        if not argument.templated:
            continue
        kind = argument.kind
        value = getattr(task, argument.attribute)
        rendered_to_none = argument.attribute in task.rendered_to_none
        if value is None and not rendered_to_none and name not in mapped_to_none:  # as written in the Dag file
            if argument.default is None or kind.no_value == FAILS_UNLESS_WRITTEN:
                continue
            if argument.default == ():
                value = []
                setattr(task, argument.attribute, value)
        if rendered_to_none and kind.no_value == FAILS_IN_PART:
            raise no_value_error(name)
        if not kind.is_missing(value):
            parsed = _read_rendered(kind, name, value, folder)
            if parsed is not value:  # Airflow looks into each row of an argument that is set
                setattr(task, argument.attribute, parsed)
        elif kind.no_value == AS_IF_NOT_GIVEN:
            left_out.append(name)
            setattr(task, argument.attribute, None)
        else:
            raise no_value_error(name, value)
    if left_out:
        task.log.info("Treated as not set because the template rendered to nothing: %s.", ", ".join(left_out))


def _mapped_to_none(task: Any) -> list[str]:
    """Return the arguments for which the XCom over which a task is mapped has no value."""
    origin = task.dag.get_task(task.task_id) if task.has_dag() else task
    if not hasattr(origin, "partial_kwargs") or not any(origin.iter_mapped_dependencies()):
        return []
    written = {**task.dag.default_args, **origin.partial_kwargs}
    return [name for name in task.given_as_none if name not in written]


def _read_rendered(kind: Kind, name: str, value: object, folder: str) -> Any:
    """Check the value of a template or XCom, and return it parsed."""
    from airflow_provider_workspace.errors import WorkspaceInputError
    from airflow_provider_workspace.operators.reading import resolve_path

    try:
        parsed = kind.read(name, value)
    except RecursionError:
        raise WorkspaceInputError(f"{name} is nested too deeply") from None
    return resolve_path(folder, parsed) if kind.is_path else parsed


class NeedsArguments:
    """
    An attribute of a class that needs its arguments.

    :param name: the name that the attribute has when they are collected
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, task: object, owner: type[DeclaredArguments]) -> Any:
        """Collect the arguments first."""
        _collect(owner)
        return vars(owner)[self.name]


_DECLARED = NeedsArguments("declared")
_TEMPLATE_FIELDS = NeedsArguments("template_fields")


class NeedsInit:
    """
    An attribute of a class that needs its ``__init__``.

    :param read: returns the attribute of a task, or of the class if there is no task
    """

    def __init__(self, read: Callable[[Any, Any], Any]) -> None:
        self.read = read

    def __get__(self, task: object, owner: type) -> Any:
        """Build the ``__init__`` first, if nothing needed it so far."""
        _complete(owner)
        return self.read(task, owner)


@dataclass_transform(kw_only_default=True, field_specifiers=(arg, fixed))
class DeclaredArguments:
    """
    Base of classes that declare arguments: builds ``__init__`` and ``template_fields`` from them.

    A Dag file uses few of the classes that it imports, and each ``__init__`` takes its time: those of this package are
    built, and their arguments collected, when somebody makes a task, asks for them or derives a class.

    A class attribute of the name of an argument is its default. A class may define ``__post_init__``, which is called
    when all arguments are set, after that of its bases.
    """

    declared: ClassVar[dict[str, Argument]] = {}
    """All arguments by name, with their defaults for this class."""
    template_fields: Collection[str] = ()
    given_as_none = cast("tuple[str, ...]", ())
    """The arguments that were given as ``None``."""

    if not TYPE_CHECKING:
        __signature__ = NeedsInit(lambda _, owner: _without_self(signature(owner.__init__)))
        partial = NeedsInit(lambda task, owner: super(DeclaredArguments, task or owner).partial)

        def __new__(cls, *_: object, **__: object) -> Self:
            """Build the ``__init__`` with the first task."""
            _complete(cls)
            return super().__new__(cls)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Collect the arguments of a class of an author. Airflow's metaclass then wraps an ``__init__`` built here."""
        super().__init_subclass__(**kwargs)
        if cls.__module__.startswith(_PACKAGE):
            cls.declared = cast("Any", _DECLARED)
            cls.template_fields = cast("Any", _TEMPLATE_FIELDS)
            return
        _collect(cls, cls.template_fields)
        for base in _classes_with_arguments(cls)[1:]:
            _complete(base)
        if _lacks_init(cls):
            cls.__init__ = _make_init(cls)  # type: ignore[method-assign]

    def __init__(self, **kwargs: Any) -> None:
        """Set all arguments, except for what an author's ``__init__`` has set; hand the others to Airflow's class."""
        given: dict[str, Any] = {}
        given_as_none: list[str] = []
        for name, argument in self.declared.items():
            if name in kwargs:
                given[name] = kwargs.pop(name)
                if given[name] is None:
                    given_as_none.append(name)
            else:
                given[name] = vars(self).get(argument.attribute, argument.default)
        self.given_as_none = tuple(given_as_none)
        super().__init__(**kwargs)
        for name, argument in self.declared.items():
            value = given[name]
            if not argument.templated and value is not argument.default:
                value = argument.kind.read(name, value)
            setattr(self, argument.attribute, value)
        for cls in reversed(_classes_with_arguments(type(self))):
            if "__post_init__" in vars(cls):
                vars(cls)["__post_init__"](self)


def _classes_with_arguments(cls: type) -> tuple[type, ...]:
    """Return a class and its bases as far as :class:`DeclaredArguments`, mixins of authors among them."""
    return cls.__mro__[: cls.__mro__.index(DeclaredArguments)]


def _collect(cls: type[DeclaredArguments], template_fields: Collection[str] = ()) -> None:
    """Collect the arguments of a class, its own and those of its bases; template fields that are none come last."""
    inherited: dict[str, Argument] = {}
    for base in reversed(cls.__bases__):
        inherited |= getattr(base, "declared", {})
    own = _own_arguments(cls)
    declared = own | inherited  # its own come first
    declared |= own  # and replace those of its bases
    declared |= _with_defaults_of_classes(cls, inherited)
    templated = [argument.attribute for argument in declared.values() if argument.templated]
    cls.declared = declared
    cls.template_fields = tuple(dict.fromkeys([*templated, *template_fields]))


def _own_arguments(cls: type) -> dict[str, Argument]:
    """Take the declared arguments out of the body of a class, and complete them with their names and types."""
    types = vars(cls).get("__annotations__", {})
    own = {name: value for name, value in vars(cls).items() if isinstance(value, Argument)}
    for name, argument in own.items():
        annotation = types.get(name)
        if not isinstance(annotation, str):
            annotation = "Any"
        elif annotation.startswith("Arg["):
            annotation = annotation[len("Arg[") : -1]
        argument.name = name
        argument.annotation = annotation
        argument.attribute = argument.attribute or name
        delattr(cls, name)
    return own


def _with_defaults_of_classes(cls: type, inherited: dict[str, Argument]) -> dict[str, Argument]:
    """Return the inherited arguments to which the class, or a mixin of an author, gives a default."""
    mixins = [base for base in _classes_with_arguments(cls)[1:] if not hasattr(base, "declared")]
    changed: dict[str, Argument] = {}
    for giver in (*reversed(mixins), cls):
        for name in vars(giver).keys() & inherited.keys():
            default = vars(giver)[name]
            if not hasattr(default, "__get__"):  # neither a method nor a property is a default
                changed[name] = inherited[name].with_default(default)
    return changed


def _lacks_init(cls: type) -> bool:
    """
    Return whether a class has no ``__init__`` yet; one that only declares arguments needs none.

    Airflow's metaclass gives a class that of a later base, if that was built before.
    """
    if not (issubclass(cls, DeclaredArguments) and hasattr(cls, "execute")):
        return False
    init = vars(cls).get("__init__")
    return init is None or getattr(init, "built_for", cls) is not cls


def _complete(cls: type) -> None:
    """Build the ``__init__`` of a class if it has none, and wrap it as Airflow's metaclass does."""
    if _lacks_init(cls):
        metaclass: Any = type(cls)
        cls.__init__ = metaclass._apply_defaults(_make_init(cls))  # type: ignore[misc]  # noqa: SLF001


def _without_self(init: Signature) -> Signature:
    """Return the signature of a class, from that of its ``__init__``."""
    _, *parameters = init.parameters.values()
    return init.replace(parameters=parameters)


def _make_init(cls: type[DeclaredArguments]) -> Callable[..., None]:
    """
    Return an ``__init__`` that calls the next one that somebody wrote: an author, or that of DeclaredArguments.

    Airflow's metaclass reads from its signature what is required, and what ``default_args`` may give. Below an
    ``__init__`` of an author, these are its parameters and what the classes below it declare or give a default: which
    arguments it supplies itself, only it knows.
    """
    writer = _writer_of_init(cls)
    init = vars(writer)["__init__"]
    arguments = cls.declared
    authors_parameters: list[Parameter] = []
    # Given to the author's __init__, above which they are required.
    supplied: dict[str, Any] = {}
    if writer is not DeclaredArguments:
        above = _arguments_above(cls, writer)
        required = {argument.name for argument in above if argument.default is Parameter.empty}
        arguments = {name: argument for name, argument in cls.declared.items() if argument not in above}
        supplied = {name: argument.default for name, argument in arguments.items() if name in required}
        authors_parameters = [
            parameter
            for parameter in signature(init).parameters.values()
            if parameter.kind is not Parameter.VAR_KEYWORD and parameter.name not in {*arguments, "self"}
        ]

    def __init__(self: DeclaredArguments, **kwargs: Any) -> None:  # noqa: N807 - it becomes the method of this name
        init(self, **{**supplied, **kwargs})

    declared_parameters = [argument.parameter for argument in arguments.values()]
    parameters = [SELF, *declared_parameters, *authors_parameters, OTHERS]
    __init__.__signature__ = Signature(parameters, __validate_parameters__=False)  # type: ignore[attr-defined]
    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    __init__.__module__ = cls.__module__
    __init__.built_for = cls  # type: ignore[attr-defined]
    return __init__


def _writer_of_init(cls: type) -> type:
    """Return the nearest base with an ``__init__`` that was not built."""
    for base in _classes_with_arguments(cls)[1:]:
        init = vars(base).get("__init__")
        if init is not None and not hasattr(init, "built_for"):
            return base
    return DeclaredArguments


def _arguments_above(cls: type, author: type) -> list[Argument]:
    """Return what the classes declare that the ``__init__`` of an author calls."""
    above: list[Argument] = []
    for base in cls.__mro__[cls.__mro__.index(author) :]:
        above += getattr(base, "declared", {}).values()
    return above
