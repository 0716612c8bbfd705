"""The pictures of the documentation show what is there now."""

from __future__ import annotations

import json

import pytest

from tests.e2e.pictures import DIGESTS, IMAGES, PICTURES, digest


@pytest.mark.parametrize("name", sorted(PICTURES.keys() | {file.stem for file in IMAGES.glob("*.png")}))
def test_a_picture_is_as_new_as_what_it_shows(name: str) -> None:
    assert json.loads(DIGESTS.read_text())[name] == digest(name), "run: make screenshots"
