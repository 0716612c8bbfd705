"""When two spellings mean the same to a service."""

from __future__ import annotations

import unicodedata


def normal_text(text: str) -> str:
    """Return the form in which texts are compared: Unicode in composed form (NFC), blanks trimmed and joined."""
    return " ".join(unicodedata.normalize("NFC", text).split())
