"""The progress of a bulk invite in the log."""

from __future__ import annotations

import logging
import time

log = logging.getLogger(__name__)

SECONDS_BETWEEN = 30.0


class ProgressLog:
    """Logs the number of invites done, the rate and the time left every 30 seconds and at the end."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._said = self._began

    def __call__(self, done: int, total: int) -> None:
        """Log the progress, unless the last line is recent."""
        now = time.monotonic()
        if done < total and now - self._said < SECONDS_BETWEEN:
            return
        self._said = now
        rate = done / max(now - self._began, 1e-3)
        left = ""
        if 0 < done < total:
            seconds_left = (total - done) / rate
            left = f", {seconds_left:.0f} s left"
        percent = 100 * done / total
        log.info("Invites: %d of %d (%.0f %%), %.1f a second%s", done, total, percent, rate, left)
