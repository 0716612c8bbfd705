"""Long pauses end a procedure early."""

from __future__ import annotations

import pytest

from airflow_provider_workspace.api.procedure import Pause, Procedure, leave_at_long_pause
from tests.unit.procedures.drive import Interrupted, drive, interrupt


def pausing(*pauses: float) -> Procedure[str]:
    for pause in pauses:
        yield Pause(pause)
    return "done"


def test_short_pauses_are_waited_for() -> None:
    pauses: list[float] = []
    assert drive(leave_at_long_pause(pausing(1.0, 60.0), 60.0, interrupt), lambda _: None, pauses) == "done"
    assert pauses == [1.0, 60.0]


def test_a_long_pause_interrupts_the_procedure() -> None:
    pauses: list[float] = []
    with pytest.raises(Interrupted, match="61"):
        drive(leave_at_long_pause(pausing(1.0, 61.0), 60.0, interrupt), lambda _: None, pauses)
    assert pauses == [1.0]
