"""
What Airflow's database can store, on PostgreSQL and on MySQL: one function for each kind of limit.

SQLite enforces none of them. Which column has which limit, and what keeps to it, is in ``docs/adr/0028``.
"""

from __future__ import annotations

import json
from typing import Any

# Characters of an id, of the key of a Variable, and of the label of a mapped task.
MAX_ID = 250
# Bytes of TEXT and of MEDIUMTEXT on MySQL. PostgreSQL has no such limit.
MAX_TEXT_BYTES = 65_535
MAX_MEDIUMTEXT_BYTES = 16_777_215
# Bytes of the type that Airflow 3.1 stores with each mapping: {"__var": …, "__type": "dict"}
MAPPING_TYPE_BYTES = 29
# What stands at the end of a text that was cut, and what replaces a character that cannot be stored.
ELLIPSIS = "…"
REPLACEMENT = "?"


def storable(value: Any) -> Any:
    """Return JSON with texts that every database stores; see :func:`storable_text`."""
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(name): storable(item) for name, item in value.items()}
    return value


def storable_text(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded as UTF-8, and U+0000, which PostgreSQL refuses."""
    if not text.isascii():
        text = text.encode(errors="replace").decode()
    return text.replace("\0", REPLACEMENT)


def label(text: str) -> str:
    """Return the label of a mapped task, cut to the length of its column."""
    text = storable_text(text)
    return text if len(text) <= MAX_ID else text[: MAX_ID - len(ELLIPSIS)] + ELLIPSIS


def text_column(text: str) -> str:
    """Return the text of a question, cut to the bytes that MySQL stores."""
    text = storable_text(text)
    encoded = text.encode()
    if len(encoded) <= MAX_TEXT_BYTES:
        return text
    kept = encoded[: MAX_TEXT_BYTES - len(ELLIPSIS.encode())]
    return kept.decode(errors="ignore") + ELLIPSIS


def compared_key(key: str) -> str:
    """Return what the keys of two Variables are compared by on MySQL, which ignores case and blanks at the end."""
    return key.rstrip().lower()


def check_variable(key: str, value: str) -> None:
    """
    Check that Airflow can store a Variable, before what it notes is done.

    :raises WorkspaceInputError: if its key or its value is too long
    """
    from airflow_provider_workspace.errors import WorkspaceInputError

    if len(key) > MAX_ID:
        raise WorkspaceInputError(
            f"The key of a Variable has {len(key)} characters, and Airflow stores {MAX_ID}. Choose a shorter one: "
            f"'{key[:40]}{ELLIPSIS}'"
        )
    size = encrypted_size(len(value.encode(errors="replace")))
    if size > MAX_MEDIUMTEXT_BYTES:
        raise WorkspaceInputError(
            f"The value of a Variable would have {size:,} bytes when encrypted, and MySQL stores "
            f"{MAX_MEDIUMTEXT_BYTES:,}. Give fewer people to each of several tasks: Variable '{key}'"
        )


def trigger_size(arguments: object) -> int:
    """
    Return the bytes of the arguments of a trigger as Airflow stores them, encrypted; see :data:`MAX_TEXT_BYTES`.

    As Airflow 3.1 stores them: since 3.2 it is a little less.
    """
    text = json.dumps(arguments, default=str)
    return encrypted_size(len(text) + MAPPING_TYPE_BYTES * text.count("{"))


def encrypted_size(size: int) -> int:
    """Return the bytes of a text that Airflow has encrypted with Fernet: padded, with 57 bytes more, in base64."""
    padded = (size // 16 + 1) * 16
    return (padded + 57 + 2) // 3 * 4
