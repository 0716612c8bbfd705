"""
The three profiles.

The interface leaves many points open ("not shown"), and a client must handle every possibility. ``lenient`` accepts as
much as possible, ``strict`` refuses everything that the interface does not name, and ``live`` behaves like known
services of this kind.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """Which of the profiles is in use; both flags are off in ``lenient``."""

    name: str
    strict: bool = False
    live: bool = False


PROFILES = {
    profile.name: profile
    for profile in (Profile("lenient"), Profile("strict", strict=True), Profile("live", live=True))
}
