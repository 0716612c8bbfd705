"""
Find and remove secrets: texts whose field has a secret name, at any depth, and credentials in URLs.

Logs, messages, reprs and results share this rule. Numbers and booleans are never secret. This module imports nothing
expensive, since operators use it while a Dag file is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from airflow_provider_workspace.api.templates import TEMPLATE

# A field name that contains one of these is secret, in any spelling: ``hmac_key``, ``X-Api-Key``.
_SECRET_WORDS = (
    "token", "secret", "password", "passwd", "passphrase", "credential", "authorization", "hmac", "webhook", "x509cert",
    "invitelink", "apikey", "privatekey", "accesskey", "signingkey", "encryptionkey",
)  # fmt: skip
# Further names of secret URL parameters.
_SECRET_PARAMETERS = frozenset({"key", "auth", "sig", "signature", "code", "pass", "pwd", "pw"})
Span = tuple[int, int]
# The types of values that hold none.
HARMLESS = frozenset({int, float, bool, type(None)})
# Compiled on first use, to keep the parsing of Dag files fast.
_LOGIN = r"://[^\s/?#:@\"'<>]*:([^\s/?#\"'<>]+)@"
_PARAMETER = r"[?&;#]([^\s=&;#\"'<>]{1,100})=([^\s&;#\"'<>]+)"
# The path of a webhook is a credential.
_HOOK = r"://hooks?\.[^\s/?#\"'<>]+/([^\s\"'<>]+)"


@lru_cache(maxsize=4096)
def is_secret(field: str) -> bool:
    """Return whether texts in a field with this name are secret."""
    name = re.sub(r"[\W_]+", "", field.lower())
    return any(word in name for word in _SECRET_WORDS)


def secrets_under(name: str, value: object) -> Iterator[str]:
    """
    Yield the secret texts in a value.

    Templates that are not rendered yet are skipped.

    :param name: name of the field that holds the value
    """
    pending: list[tuple[bool, Any]] = [(is_secret(name), value)]
    seen: set[int] = set()
    while pending:
        secret, value = pending.pop()
        if isinstance(value, str):
            found = [value] if secret and value else _secrets_in_url(value)
            if found and not re.search(TEMPLATE, value):
                yield from found
            continue
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            for key, item in value.items():
                if type(item) not in HARMLESS:
                    pending.append((secret or is_secret(str(key)), item))
        elif isinstance(value, list | tuple):
            pending += [(secret, item) for item in value if type(item) not in HARMLESS]


def without_secrets(value: object, *, secret: bool = False) -> Any:
    """
    Return plain JSON without the texts in secret fields, and with ``***`` for credentials in URLs.

    :param secret: whether the value itself is in a secret field; then ``None`` is returned if nothing is left
    """
    if isinstance(value, str):
        return None if secret else without_url_secrets(value)
    if isinstance(value, dict):
        shown: dict[Any, Any] = {}
        for name, item in value.items():
            hidden = secret or is_secret(str(name))
            kept = item if type(item) in HARMLESS else without_secrets(item, secret=hidden)
            if kept is not None or not hidden:
                shown[name] = kept
        return shown or (None if secret else shown)
    if isinstance(value, list):
        items = [without_secrets(item, secret=secret) for item in value]
        return [item for item in items if item is not None] or None if secret else items
    return value


def without_url_secrets(text: str) -> str:
    """Return a text with ``***`` for the credentials in its URLs."""
    if "://" not in text and "=" not in text:  # as most
        return text
    for start, end in sorted(_spans(text), reverse=True):
        text = f"{text[:start]}***{text[end:]}"
    return text


def _secrets_in_url(text: str) -> list[str]:
    """Return the credentials in the URLs of a text, quoted and unquoted."""
    secrets: list[str] = []
    for start, end in _spans(text):
        quoted = text[start:end]
        secrets.append(quoted)
        unquoted = unquote(quoted)
        if unquoted != quoted:
            secrets.append(unquoted)
    return secrets


def _spans(text: str) -> set[Span]:
    """Return the positions of credentials in the URLs of a text, without those inside of others."""
    found: set[Span] = set()
    if "://" in text:
        found.update(match.span(1) for match in re.finditer(_LOGIN, text))
        found.update(match.span(1) for match in re.finditer(_HOOK, text))
    if "=" in text:
        found.update(match.span(2) for match in re.finditer(_PARAMETER, text) if _is_secret_parameter(match[1]))
    if len(found) < 2:
        return found
    return {span for span in found if not any(_holds(other, span) for other in found)}


def _is_secret_parameter(name: str) -> bool:
    return name in _SECRET_PARAMETERS or name.lower().endswith("signature") or is_secret(unquote(name))


def _holds(span: Span, other: Span) -> bool:
    """Return whether another span is a part of a span."""
    return span != other and span[0] <= other[0] and other[1] <= span[1]
