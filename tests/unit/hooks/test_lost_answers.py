"""Bulk invites whose answer is lost: they are looked for after a pause, and nobody is invited twice."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tests.unit.client.loopback import RESET_AFTER_READING, Loopback, answer

if TYPE_CHECKING:
    from tests.conftest import Connect
    from tests.unit.hooks.conftest import Call

PAUSE = 0.1
NOBODY = answer(body={"count": 0, "next": None, "previous": None, "results": []})
ADA = answer(body={"count": 1, "next": None, "previous": None, "results": [{"target_email": "ada@example.com"}]})


def test_bulk_invites_wait_before_looking_up_a_lost_answer(call: Call, connect: Connect) -> None:
    with Loopback(NOBODY, NOBODY, RESET_AFTER_READING, ADA, NOBODY) as service:
        connect(host=service.url, consistency_time=PAUSE)
        began = time.monotonic()
        report = call("create_invites", ["ada@example.com"])
        assert time.monotonic() - began >= PAUSE
    assert report.counts["invited"] == 1
    assert [request.method for request in service.requests] == ["GET", "GET", "POST", "GET", "GET"]


def test_a_408_may_have_been_applied(call: Call, connect: Connect) -> None:
    with Loopback(NOBODY, NOBODY, answer(408), ADA, NOBODY) as service:
        connect(host=service.url, consistency_time=PAUSE)
        report = call("create_invites", ["ada@example.com"])
    assert report.counts["invited"] == 1
    assert [request.method for request in service.requests] == ["GET", "GET", "POST", "GET", "GET"]
