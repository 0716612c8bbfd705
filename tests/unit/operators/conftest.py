"""The connection of all tests of operators, which some replace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Connect


@pytest.fixture(autouse=True)
def connected(connect: Connect) -> None:
    connect()
