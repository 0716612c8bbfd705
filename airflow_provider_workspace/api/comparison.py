"""Compare a response with the request, ignoring differences of spelling."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from airflow_provider_workspace.api.secrets import is_secret, without_secrets

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation

# Fields that say how to apply the request; the response need not repeat them.
NOT_SHOWN = frozenset({"use_template", "use_dashboard", "delete_insights", "send_email", "combine_pending_invites"})
# Fields that report a failure in a response without a record, and the values that do.
FAILURE_FIELDS: dict[str, Callable[[Any], bool]] = {
    "error": bool,
    "errors": bool,
    **dict.fromkeys(("success", "ok"), lambda value: str(value).lower() == "false"),
    "status": lambda value: str(value).lower() in ("error", "failed", "failure"),
}
MAX_SHOWN = 60
MAX_DOMAIN_LENGTH = 253


def normal_text(text: str) -> str:
    """Return a text for comparison: Unicode NFC, whitespace trimmed and collapsed."""
    return " ".join(unicodedata.normalize("NFC", text).split())


@lru_cache(maxsize=4096)
def domain_key(domain: str) -> str:
    """
    Return the form in which domains are compared: in ASCII as of IDNA 2008, lower case, without a trailing dot.

    So ``faß.example`` equals ``xn--fa-hia.example``, but not ``fass.example``. What is no domain is compared as text.
    """
    text = normal_text(domain).rstrip(". ").lower()
    if text.isascii() or len(text) > MAX_DOMAIN_LENGTH:
        return text
    import idna

    try:
        return idna.encode(text, uts46=True).decode()
    except idna.IDNAError:
        return text


def address_key(address: str) -> str:
    """
    Return the form in which e-mail addresses are compared; letter case and spelling of the domain do not count.

    As services do: ``weiß@`` and ``weiss@`` are two people, whom ``casefold`` would make one.
    """
    local, at, domain = normal_text(address).rpartition("@")
    return local.lower() + at + domain_key(domain)


# How values are compared of fields that services store in another spelling.
COMPARISON_KEYS: dict[str, Callable[[str], str]] = {
    "target_email": address_key,
    "domain": domain_key,
    "tags": str.casefold,
}


def differences(op: Operation[Any], result: BaseModel) -> list[dict[str, Any]]:
    """
    Return the fields of a create or change that differ in the response, each as ``field``, ``asked`` and ``got``.

    Ignored are differences in spelling (case of addresses, order of lists, whitespace, Unicode form, numbers as text),
    fields that the response does not have, secrets, which services mask, and null in a record without an id. A response
    to a change that is not a record may report a failure.
    """
    if op.endpoint.effect not in ("create", "change"):
        return []
    asked, got = _compared(op, result)
    found = [
        {"field": name, "asked": without_secrets(value), "got": without_secrets(got[name])}
        for name, value in asked.items()
        if name in got and not _same(name, value, got[name])
    ]
    if op.endpoint.effect == "change" and getattr(result, "id", None) is None:
        found += reported_failures(result.model_extra or {})
    return found


def reported_failures(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the fields of a 2xx response without a record that report a failure, as :func:`differences` does."""
    return [
        {"field": name, "asked": None, "got": without_secrets(value)}
        for name, value in fields.items()
        if FAILURE_FIELDS.get(name.lower(), lambda _: False)(value)
    ]


def unshown(op: Operation[Any], result: BaseModel) -> list[str]:
    """
    Return the fields that were sent and that the response does not have, in the order of the request.

    Without secrets, and without fields that say how to apply the request. A response without fields lacks them all.
    """
    asked, got = _compared(op, result)
    return [name for name in asked if name not in got]


def unshown_of_record(op: Operation[Any], result: object) -> list[str]:
    """
    Return the fields of a create or change that its record does not have; see :func:`unshown`.

    A response that is no record, such as the empty one of a pause, says nothing about fields.
    """
    if op.endpoint.effect not in ("create", "change") or not isinstance(result, BaseModel):
        return []
    if getattr(result, "id", None) is None:
        return []
    return unshown(op, result)


def describe_unshown(op: Operation[Any], names: Sequence[str]) -> str:
    """Return the warning about fields that a record does not show."""
    return f"{type(op).__name__} was accepted, but the service does not show these fields: {', '.join(names)}"


def _compared(op: Operation[Any], result: BaseModel) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields to compare, as sent and as returned."""
    asked = op.payload() if op.endpoint.shows is None else op.endpoint.shows
    asked = {name: value for name, value in asked.items() if name not in NOT_SHOWN and not is_secret(name)}
    names = {name for name, each in type(result).model_fields.items() if each.serialization_alias in asked}
    # Not its own model_dump: secrets are compared too.
    got = BaseModel.model_dump(result, mode="json", by_alias=True, exclude_unset=True, include={*asked, *names})
    is_record = getattr(result, "id", None) is not None
    return asked, {name: value for name, value in got.items() if value is not None or is_record}


def describe_differences(found: list[dict[str, Any]]) -> str:
    """Describe differences on one line."""
    return ", ".join(f"{row['field']} is {_shown(row['got'])} and not {_shown(row['asked'])}" for row in found)


def _shown(value: Any) -> str:
    # Lone surrogates cannot be written to a log.
    text = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def _same(name: str, asked: Any, got: Any) -> bool:
    """Return whether two values are equal apart from spelling; keys that the service adds to an object are ignored."""
    if isinstance(asked, dict) and isinstance(got, dict):
        return all(_same(name, value, got.get(key)) for key, value in asked.items())
    if isinstance(asked, list) and isinstance(got, list):
        return {_plain(name, item) for item in asked} == {_plain(name, item) for item in got}
    asked, got = _plain(name, asked), _plain(name, got)
    return bool(asked == got or not (asked or got))


def _plain(name: str, value: Any) -> Any:
    """Return a value for comparison: a normalized text, a number, or the JSON of a nested value."""
    if isinstance(value, list | dict):
        return json.dumps(value, sort_keys=True) if value else None
    if not isinstance(value, str):
        return value
    text = normal_text(value)
    if re.fullmatch(r"-?\d{1,15}(\.\d{1,15})?", text, re.ASCII):
        return float(text)
    return COMPARISON_KEYS[name](text) if name in COMPARISON_KEYS else text
