"""The connection of all tests of operators, which some replace."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Connect


@pytest.fixture(autouse=True)
def connected(connect: Connect) -> None:
    connect()


@pytest.fixture(scope="module", autouse=True)
def quiet() -> None:
    """Wait for the requests that tests of another module have cut off; the sandbox may still log one of them."""
    time.sleep(0.3)
