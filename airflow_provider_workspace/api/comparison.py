"""Compare a response with the request, ignoring differences of spelling."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from airflow_provider_workspace.api.database_limits import storable_text
from airflow_provider_workspace.api.secrets import is_secret, without_secrets

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Invite, Member
    from airflow_provider_workspace.api.operation import Operation

# Fields that say how to apply the request; the response need not repeat them.
NOT_SHOWN = frozenset({"use_template", "use_dashboard", "delete_insights", "send_email", "combine_pending_invites"})
# Fields that report a failure in a response without a record, and values of ``status`` that do.
ERROR_FIELDS = ("error", "errors")
SUCCESS_FIELDS = ("success", "ok")
FAILED_STATUSES = ("error", "failed", "failure")
MAX_SHOWN_VALUE = 60
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


@lru_cache(maxsize=16_384)
def address_key(address: str) -> str:
    """
    Return the form in which e-mail addresses are compared; letter case and spelling of the domain do not count.

    As services do: ``weiß@`` and ``weiss@`` are two people, whom ``casefold`` would make one.
    """
    local, at, domain = normal_text(address).rpartition("@")
    return local.lower() + at + domain_key(domain)


def email_key(person: Invite | Member) -> str:
    """Return the key of the address of a member or an invite; empty if it is not shown."""
    return address_key(person.label or "")


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
    asked = _asked(op)
    got = _got(asked, result)
    found: list[dict[str, Any]] = []
    for name, value in asked.items():
        if name in got and not _same(name, value, got[name]):
            found.append(_difference(name, value, got[name]))
    if op.endpoint.effect == "change" and getattr(result, "id", None) is None:
        fields = result.model_extra or {}
        found += reported_failures(fields)
        if fields.get("detail") and fields.keys().isdisjoint(SUCCESS_FIELDS):
            found.append(_difference("detail", None, fields["detail"]))
    return found


def contradictions(op: Operation[Any], result: BaseModel, response: Mapping[str, Any]) -> list[dict[str, Any]]:
    """
    Return the fields of a change that :func:`differences` cannot compare, as it does: those with another type.

    What must be shown and is not read back, such as whether an export is paused, differs also if it is null, or
    contradicted in a record within the response.

    :param response: the response before it became the result, where another type is read as null
    """
    is_read_back = not op.endpoint.shows
    within = [] if is_read_back else [value for value in response.values() if isinstance(value, dict)]
    asked = _asked(op)
    got = _got(asked, result)
    found: list[dict[str, Any]] = []
    for name, value in asked.items():
        if name in response and got.get(name) is None and not (is_read_back and response[name] is None):
            found.append(_difference(name, value, response[name]))
        others = [record[name] for record in within if name in record]
        found += [_difference(name, value, other) for other in others if not _same(name, value, other)]
    return found


def reported_failures(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the fields of a 2xx response without a record that report a failure, as :func:`differences` does."""
    return [_difference(name, None, value) for name, value in fields.items() if _is_failure(name.lower(), value)]


def _is_failure(field: str, value: object) -> bool:
    if field in ERROR_FIELDS:
        return bool(value)
    word = str(value).lower()
    if field in SUCCESS_FIELDS:
        return word == "false"
    return field == "status" and word in FAILED_STATUSES


def _difference(field: str, asked: object, got: object) -> dict[str, Any]:
    return {"field": field, "asked": without_secrets(asked), "got": without_secrets(got)}


def unshown(op: Operation[Any], result: BaseModel) -> list[str]:
    """
    Return the fields that were sent and that the response does not have, in the order of the request.

    Without secrets, and without fields that say how to apply the request. A response without fields lacks them all.
    """
    asked = _asked(op)
    got = _got(asked, result)
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


def _asked(op: Operation[Any]) -> dict[str, Any]:
    """Return the fields that were sent and that a response should show."""
    sent = op.payload() if op.endpoint.shows is None else op.endpoint.shows
    return {name: value for name, value in sent.items() if name not in NOT_SHOWN and not is_secret(name)}


def _got(asked: Mapping[str, Any], result: BaseModel) -> dict[str, Any]:
    """Return these fields as the response shows them."""
    names = set(asked)
    for name, field in type(result).model_fields.items():
        if field.serialization_alias in asked:
            names.add(name)
    # Not its own model_dump: secrets are compared too.
    got = BaseModel.model_dump(result, mode="json", by_alias=True, exclude_unset=True, include=names)
    if getattr(result, "id", None) is not None:
        return got
    return {name: value for name, value in got.items() if value is not None}


def describe_differences(found: list[dict[str, Any]]) -> str:
    """Describe differences on one line."""
    parts: list[str] = []
    for row in found:
        got = show(row["got"])
        asked = show(row["asked"])
        parts.append(f"{row['field']} is {got} and not {asked}")
    return ", ".join(parts)


def show(value: object) -> str:
    """Return a value as messages show it: as JSON, not too long."""
    text = storable_text(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= MAX_SHOWN_VALUE else f"{text[:MAX_SHOWN_VALUE]}…"


def _same(name: str, asked: object, got: object) -> bool:
    """Return whether two values are equal apart from spelling; keys that the service adds to an object are ignored."""
    if isinstance(asked, dict) and isinstance(got, dict):
        return all(_same(name, value, got.get(key)) for key, value in asked.items())
    if isinstance(asked, list) and isinstance(got, list):
        asked_items = {_plain(name, item) for item in asked}
        got_items = {_plain(name, item) for item in got}
        return asked_items == got_items
    plain_asked = _plain(name, asked)
    plain_got = _plain(name, got)
    are_empty = not plain_asked and not plain_got
    return are_empty or bool(plain_asked == plain_got)


def _plain(name: str, value: object) -> Any:
    """Return a value for comparison: a normalized text, a number, or the JSON of a nested value."""
    if isinstance(value, list | dict):
        return json.dumps(value, sort_keys=True) if value else None
    if not isinstance(value, str):
        return value
    text = normal_text(value)
    if re.fullmatch(r"-?\d{1,15}(\.\d{1,15})?", text, re.ASCII):
        return float(text)
    return COMPARISON_KEYS[name](text) if name in COMPARISON_KEYS else text
