"""
Every decision in which the three profiles differ.

The interface leaves many points open ("not shown"). A client has to live with any answer to them, so the sandbox can
give three: ``lenient`` takes what it can, ``strict`` refuses everything the interface does not name, and ``live``
behaves as services of this kind are known to behave.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CollaboratorList = Literal["envelope", "array", "single"]


@dataclass(frozen=True)
class Profile:
    """One way to fill the points the interface leaves open; the defaults are those of ``lenient``."""

    name: str

    # Requests
    unnamed_refused: bool = False
    """Refuse fields and query parameters without a name in the interface, and bodies where it has none."""
    content_type_checked: bool = False
    """Answer 415 to a body that is not declared as JSON."""

    # Access
    write_includes_read: bool = True
    """A key with ``x:write`` may also do what needs ``x:read``."""
    unscoped_needs_all: bool = False
    """Operations without a scope in the interface (verify, access_controls) need a key with scope ``*``."""
    verify_needs_session: bool = False
    """Verify is refused for every personal key; a domain is verified without it, when the domains are read."""
    foreign_status: int = 404
    """The answer to an organization that exists but does not belong to the key."""
    rates_limited: bool = False
    """Count requests and invites, and answer 429 to what exceeds the rates."""

    # Projects
    names_trimmed: bool = False
    """The name of a project is stored without the blanks around it."""

    # Dashboards
    deleted_dashboards_gone: bool = False
    """A dashboard marked as deleted answers 404 from then on."""
    collaborators_need_restriction: bool = False
    """A collaborator needs a level, and the dashboard a ``restriction_level`` above 21."""
    collaborator_list: CollaboratorList = "envelope"
    """What a list of collaborators looks like; ``single``: a bare object when there is exactly one."""
    access_controls_own_shape: bool = False
    """``access_controls`` answers access levels instead of the dashboard."""

    # Batch exports
    pause_answers_state: bool = False
    """Pause and unpause answer ``{"paused": ...}`` instead of nothing."""
    unpause_reads_backfill: bool = False
    """Unpause reads ``backfill``, which the interface does not name: export what was missed during the pause."""

    # Domains
    domains_unique: bool = False
    """A domain belongs to one organization at most."""
    domains_bare: bool = False
    """
    A new domain takes nothing but its name, which stays and may not be an internationalised one; provisioning and
    enforcement are refused until it is verified.
    """
    verify_answers_domain: bool = False
    """Verify answers the domain (or 400 when it is verified already) instead of nothing."""

    # Invites
    bulk_limit: int | None = None
    """The greatest number of invites in one bulk request."""
    bulk_array_only: bool = False
    """A bulk body must be an array; otherwise a single object will do, too."""
    bulk_answers_invites: bool = False
    """A bulk request answers 201 and the new invites instead of 200 and nothing."""
    bulk_stops_at_member: bool = False
    """The address of a member ends a bulk request half-way; otherwise it prevents all of it."""
    invites_replace: bool = False
    """A new invite for an address replaces the older ones; otherwise there will be two."""
    emails_lowered: bool = False
    """Addresses are stored in lower case."""

    # Members
    levels_closed: bool = False
    """A member's level is 1, 8 or 15 and nothing else."""
    own_level_fixed: bool = False
    """Nobody changes their own level."""
    levels_capped: bool = False
    """Nobody invites to, gives, changes or removes a level above their own."""


PROFILES = {
    profile.name: profile
    for profile in (
        Profile("lenient"),
        Profile(
            "strict",
            unnamed_refused=True,
            content_type_checked=True,
            write_includes_read=False,
            collaborator_list="single",
        ),
        Profile(
            "live",
            content_type_checked=True,
            unscoped_needs_all=True,
            foreign_status=403,
            rates_limited=True,
            names_trimmed=True,
            deleted_dashboards_gone=True,
            collaborator_list="array",
            access_controls_own_shape=True,
            pause_answers_state=True,
            unpause_reads_backfill=True,
            domains_unique=True,
            verify_needs_session=True,
            collaborators_need_restriction=True,
            domains_bare=True,
            verify_answers_domain=True,
            bulk_limit=20,
            bulk_array_only=True,
            bulk_answers_invites=True,
            bulk_stops_at_member=True,
            invites_replace=True,
            emails_lowered=True,
            levels_closed=True,
            own_level_fixed=True,
            levels_capped=True,
        ),
    )
}
