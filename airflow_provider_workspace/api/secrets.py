"""
What is secret: texts under a name that says so, at any depth, and what a URL carries to log in with.

One rule for logs, messages, reprs and results. Numbers, true and false are no secrets, whatever their name. Imports
nothing expensive: operators ask while a Dag file is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

# A name is taken for that of a secret if it holds one of these, written in whatever way: ``hmac_key``, ``X-Api-Key``.
_SECRET_WORDS = (
    "token", "secret", "password", "passwd", "passphrase", "credential", "authorization", "hmac", "webhook", "x509cert",
    "invitelink", "apikey", "privatekey", "accesskey", "signingkey", "encryptionkey",
)  # fmt: skip
# Names that say so only in a URL.
_SECRET_PARAMETERS = frozenset({"key", "auth", "sig", "signature", "code", "pass", "pwd", "pw"})
# Compiled when first used: Dag files are parsed without.
_LOGIN = r"://[^\s/?#:@\"'<>]*:([^\s/?#\"'<>]+)@"
_PARAMETER = r"[?&;#]([^\s=&;#\"'<>]{1,100})=([^\s&;#\"'<>]+)"
# Whoever knows the path of a webhook may use it.
_HOOK = r"://hooks?\.[^\s/?#\"'<>]+/([^\s\"'<>]+)"


@lru_cache(maxsize=4096)
def is_secret(field: str) -> bool:
    """Tell whether texts under this name must be masked and left out of results."""
    name = re.sub(r"[\W_]+", "", field.lower())
    return any(word in name for word in _SECRET_WORDS)


def secrets_under(name: str, value: Any) -> Iterator[str]:
    """
    Yield the secret texts of an argument or answer.

    What is still a template is none yet.
    """
    pending: list[tuple[bool, Any]] = [(is_secret(name), value)]
    seen: set[int] = set()
    while pending:
        secret, value = pending.pop()
        if isinstance(value, str):
            if "{{" not in value:
                yield from [value] if secret and value else _secrets_in_url(value)
        elif isinstance(value, dict | list | tuple) and id(value) not in seen:
            seen.add(id(value))
            pairs = value.items() if isinstance(value, dict) else (("", item) for item in value)
            pending += [
                (secret or is_secret(str(key)), item)
                for key, item in pairs
                if isinstance(item, str | dict | list | tuple)
            ]


def without_secrets(value: Any, *, secret: bool = False) -> Any:
    """
    Return plain JSON without the texts under secret names, and with ``***`` for what URLs carry.

    :param secret: whether the value itself stands under a secret name; then ``None`` is returned if nothing is left
    """
    if isinstance(value, str):
        return None if secret else without_url_secrets(value)
    if isinstance(value, dict):
        shown: dict[Any, Any] = {}
        for name, item in value.items():
            hidden = secret or is_secret(str(name))
            kept = without_secrets(item, secret=hidden)
            if kept is not None or not hidden:
                shown[name] = kept
        return shown or (None if secret else shown)
    if isinstance(value, list):
        items = [without_secrets(item, secret=secret) for item in value]
        return [item for item in items if item is not None] or None if secret else items
    return value


def without_url_secrets(text: str) -> str:
    """Return a text with ``***`` in place of passwords and keys that its URLs carry."""
    for start, end in sorted(_spans(text), reverse=True):
        text = f"{text[:start]}***{text[end:]}"
    return text


def _secrets_in_url(text: str) -> Iterator[str]:
    """Yield the passwords and keys that the URLs of a text carry, also as they are when unquoted."""
    for start, end in _spans(text):
        yield from dict.fromkeys((text[start:end], unquote(text[start:end])))


def _spans(text: str) -> set[tuple[int, int]]:
    """Return where a text holds the secrets of a URL; they do not overlap."""
    found: set[tuple[int, int]] = set()
    if "=" not in text and "://" not in text:
        return found
    if "://" in text:
        found |= {match.span(1) for match in (*re.finditer(_LOGIN, text), *re.finditer(_HOOK, text))}
    if "=" in text:
        found |= {
            match.span(2)
            for match in re.finditer(_PARAMETER, text)
            if is_secret(unquote(match[1])) or match[1].lower().endswith("signature") or match[1] in _SECRET_PARAMETERS
        }
    return {span for span in found if not any(other[0] <= span[0] and span[1] <= other[1] for other in found - {span})}
