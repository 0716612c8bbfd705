"""What a service says it did, compared with what it was asked."""

from __future__ import annotations

import pytest

from airflow_provider_workspace.api.comparison import normal_text


@pytest.mark.parametrize("text", ["Café Müller", "Cafe\u0301 Mu\u0308ller", "  Café\tMüller ", "Café  \u00a0Müller\n"])
def test_texts_that_differ_in_blanks_and_unicode_form_are_equal(text: str) -> None:
    """Services trim and join blanks, and compose letters with their accents."""
    assert normal_text(text) == "Café Müller"


def test_case_counts_in_texts() -> None:
    """Two projects may differ in it."""
    assert normal_text("Sales") != normal_text("sales")
