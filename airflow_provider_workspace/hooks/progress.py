"""How far a long operation got, for the log."""

from __future__ import annotations

import logging
import time

log = logging.getLogger(__name__)

SECONDS_BETWEEN = 5.0


class ProgressLog:
    """
    Logs n of m, the rate and the time left: at the start, every few seconds, and at the end.

    :param what: what is counted, such as ``Invites``
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self._began = time.monotonic()
        self._said = float("-inf")

    def __call__(self, done: int, total: int) -> None:
        """Say how far it got, unless that was said a moment ago."""
        now = time.monotonic()
        if done < total and now - self._said < SECONDS_BETWEEN:
            return
        self._said = now
        rate = done / max(now - self._began, 1e-3)
        speed = f", {rate:.1f} a second" if done else ""
        left = f", {(total - done) / rate:.0f} s left" if 0 < done < total else ""
        log.info("%s: %d of %d (%.0f %%)%s%s", self.what, done, total, 100 * done / total, speed, left)
