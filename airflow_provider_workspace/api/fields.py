"""Fields of operations: the types of ids and pages, their names in the interface, and what is wrong with a value."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError

from airflow_provider_workspace.api.ids import canonical_id, canonical_uuid
from airflow_provider_workspace.errors import did_you_mean, shown

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

# Longest path of a nested field in a message.
MAX_FIELD_LENGTH = 100


def _whole_number(value: object) -> int:
    """Parse an integer id; templates render it as text."""
    text = str(value) if isinstance(value, int | str) else ""  # raises ValueError beyond the integer string limit
    if re.fullmatch(r"\s*\d+\s*", text):
        return int(text)
    raise ValueError(f"expected a whole number, not {shown(value)}")


def _no_boolean(value: object) -> Any:
    """Refuse a boolean, which pydantic would parse as 0 or 1."""
    if isinstance(value, bool):
        raise ValueError("expected a whole number, not true or false")  # noqa: TRY004 - pydantic collects ValueError only
    return value


def _user_id(value: object) -> str:
    """Refuse an e-mail address or a number; the interface does not say more about the form of user ids."""
    user_id = canonical_id(value)
    if "@" in user_id or user_id.isdecimal():
        what = "an e-mail address" if "@" in user_id else "a number"
        raise ValueError(
            f"expected the UUID of a user, not {what} ({user_id[:60]!r}); it is user.uuid in the list of members. "
            "Operators look it up if you pass user_email instead"
        )
    return user_id


def _domain_name(value: str) -> str:
    """Refuse what can be no domain: a URL, an e-mail address, a pattern."""
    if re.search(r"[/:@*\s]", value.strip()):
        raise ValueError(f"expected a domain such as example.com, not {shown(value)}")
    return value


IntegerId = Annotated[int | str, BeforeValidator(_whole_number)]
"""An integer id."""
TextId = Annotated[str, BeforeValidator(canonical_id)]
"""An id of any form; services give some as a number, and the interface types them as a string in paths."""
Uuid = Annotated[str, BeforeValidator(canonical_uuid)]
"""A UUID."""
Limit = Annotated[int | None, Field(ge=1), BeforeValidator(_no_boolean)]
"""Rows per page of a list."""
Offset = Annotated[int | None, Field(ge=0), BeforeValidator(_no_boolean)]
"""Index of the first row of a page."""
Cursor = str | None
"""Where a page begins, in the words of the service; its list is then followed by the links of its pages."""
UserId = Annotated[str, BeforeValidator(_user_id)]
"""The UUID of a user; the interface types it as a string in paths."""
DomainName = Annotated[str, Field(min_length=1), AfterValidator(_domain_name)]
"""The name of a domain."""


@lru_cache(maxsize=1024)
def interface_names(cls: type[BaseModel]) -> dict[str, str]:
    """Return the name in the interface of each field, its alias if it has one, by the name in Python."""
    return {name: each.serialization_alias or name for name, each in cls.model_fields.items()}


# What was expected, by the type of pydantic's error.
EXPECTED_BY_TYPE = {
    "missing": "this field is required",
    "string_type": "expected a string; put it in quotes",
    "list_type": "expected a list, as in '[one, another]'",
    "dict_type": "expected a mapping, as in '{name: value}'",
    "model_type": "expected fields, as in '{name: value}'",
    "int_parsing": "expected a whole number",
    "int_type": "expected a whole number",
    "bool_parsing": "expected true or false",
    "bool_type": "expected true or false",
}


def expected_by(finding: ErrorDetails) -> str:
    """Describe what pydantic expected instead of what it found."""
    return EXPECTED_BY_TYPE.get(finding["type"]) or finding["msg"].removeprefix("Value error, ")


def explain(cls: type[BaseModel], error: ValidationError) -> str:
    """Describe each invalid field and what is expected, without its value."""
    names = interface_names(cls)
    known = sorted(names.values())
    lines: list[str] = []
    for finding in error.errors(include_url=False, include_context=False, include_input=False):
        name = ".".join(str(part) for part in finding["loc"])[:MAX_FIELD_LENGTH]
        if finding["type"] == "extra_forbidden":
            lines.append(f"unknown field {name!r} ({did_you_mean(name, known, 'known fields: ')})")
        elif finding["type"] == "missing":
            lines.append(f"field '{names.get(name, name)}' is required")
        else:
            expected = expected_by(finding)
            lines.append(f"field '{names.get(name, name)}': {expected}" if name else expected)
    return "; ".join(lines)
