"""
The differences between the three profiles.

The interface leaves many points open ("not shown"), and a client must handle every possibility. ``lenient`` accepts as
much as possible, ``strict`` refuses everything that the interface does not name, and ``live`` behaves like known
services of this kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CollaboratorList = Literal["envelope", "array", "single"]


@dataclass(frozen=True)
class Profile:
    """One behavior for the points that the interface leaves open; the defaults are those of ``lenient``."""

    name: str

    # Requests
    unnamed_refused: bool = False
    """Refuse unknown fields and query parameters, and bodies of methods without one."""
    content_type_checked: bool = False
    """Return 415 for a body whose content type is not JSON."""

    # Access
    write_includes_read: bool = True
    """The scope ``x:write`` includes ``x:read``."""
    unscoped_needs_all: bool = False
    """Operations without a scope in the interface (verify, access_controls) need a key with scope ``*``."""
    verify_needs_session: bool = False
    """Verify is refused for every personal key; domains are verified when they are read."""
    foreign_status: int = 404
    """The status for an organization that exists but does not belong to the key."""
    rates_limited: bool = False
    """Limit the rates of requests and invites."""

    # Projects
    names_trimmed: bool = False
    """The name of a project is stored without surrounding whitespace."""

    # Dashboards
    deleted_dashboards_gone: bool = False
    """A deleted dashboard returns 404."""
    collaborators_need_restriction: bool = False
    """A collaborator needs a level, and the dashboard a ``restriction_level`` above 21."""
    collaborator_list: CollaboratorList = "envelope"
    """The shape of the list of collaborators; ``single``: an object if there is exactly one, else an array."""
    access_controls_own_shape: bool = False
    """``access_controls`` returns access levels instead of the dashboard."""

    # Batch exports
    pause_answers_state: bool = False
    """Pause and unpause return ``{"paused": ...}`` instead of an empty body."""
    unpause_reads_backfill: bool = False
    """Unpause accepts ``backfill``, which the interface does not name, to run the exports skipped during the pause."""

    # Domains
    domains_unique: bool = False
    """A domain belongs to one organization at most."""
    domains_bare: bool = False
    """
    A new domain takes only its name, which cannot change and must be ASCII without punycode; provisioning and
    enforcement are refused until it is verified.
    """
    verify_answers_domain: bool = False
    """Verify returns the domain, or 400 if it is verified already, instead of an empty body."""

    # Invites
    bulk_limit: int | None = None
    """Maximum invites in the array of a bulk request; None: any number, or a single object."""
    bulk_answers_invites: bool = False
    """A bulk request returns 201 and the new invites instead of 200 and an empty body."""
    bulk_stops_at_member: bool = False
    """The address of a member stops a bulk request after the invites before it; otherwise none are created."""
    invites_replace: bool = False
    """A new invite for an address replaces older ones; otherwise both exist."""
    emails_lowered: bool = False
    """Addresses are stored in lower case."""

    # Members
    levels_closed: bool = False
    """A level must be 1, 8 or 15."""
    levels_capped: bool = False
    """The owner of a key cannot change their own level, or invite, change or remove anybody with a level above it."""


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
            bulk_answers_invites=True,
            bulk_stops_at_member=True,
            invites_replace=True,
            emails_lowered=True,
            levels_closed=True,
            levels_capped=True,
        ),
    )
}
