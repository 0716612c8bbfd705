"""Which fields hold secrets, by their names. Imports nothing expensive: operators ask while a Dag file is parsed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

SECRET_FIELDS = frozenset(
    {"access_token", "api_token", "live_events_token", "slack_incoming_webhook", "saml_x509_cert"}
)
# An unknown field of an answer is taken for a secret if its name says so.
_SECRET_WORDS = ("token", "secret", "password", "api_key", "private_key", "webhook", "credential")


@lru_cache(maxsize=4096)
def is_secret(field: str) -> bool:
    """Tell whether a field of an answer must be masked and left out of results."""
    return field in SECRET_FIELDS or any(word in field.lower() for word in _SECRET_WORDS)


def secrets_under(name: str, value: Any) -> Iterator[str]:
    """
    Yield the secret texts of an argument: all texts under a name that says so, at any depth.

    What is still a template is none yet.
    """
    pending: list[tuple[str, Any]] = [(name, value)]
    seen: set[int] = set()
    while pending:
        name, value = pending.pop()
        if isinstance(value, str):
            if value and is_secret(name) and "{{" not in value:
                yield value
        elif isinstance(value, dict | list | tuple) and id(value) not in seen:
            seen.add(id(value))
            pairs = value.items() if isinstance(value, dict) else ((name, item) for item in value)
            # Everything under a secret name is secret; numbers and the like never are.
            below = name if is_secret(name) else None
            pending += [(below or str(key), item) for key, item in pairs if isinstance(item, str | dict | list | tuple)]


def without_secrets(value: Any) -> Any:
    """Return plain JSON without the fields that hold secrets, at any depth: free-form fields may hold some, too."""
    if isinstance(value, dict):
        return {name: without_secrets(item) for name, item in value.items() if not is_secret(name)}
    if isinstance(value, list):
        return [without_secrets(item) for item in value]
    return value
