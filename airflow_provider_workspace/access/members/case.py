"""What rows and notes say about one member or invite, beside what they have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_workspace.access.rules.entitlements import Entitlement, Saying

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Member
    from airflow_provider_workspace.procedures.roster import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """
    A member, and what is said about them.

    :param key: of their address
    :param row: their row; ``None`` if there is none
    """

    member: Member
    key: str
    row: Row | None
    saying: Saying
    entitled: Entitlement

    @property
    def email(self) -> str:
        """Their address; empty if it is not shown."""
        return self.member.email_address

    @property
    def user_uuid(self) -> str | None:
        """Their user; ``None`` if it is not shown."""
        return self.member.user_uuid

    @property
    def held(self) -> int | None:
        """Their level; ``None`` if it is not shown."""
        return self.member.level

    @property
    def differs(self) -> bool:
        """Whether they should have another level than they have, or none, or one that no row names."""
        if self.entitled.takes(self.held):
            return True
        if self.entitled.gives(self.held):
            return self.entitled.decision is None
        if self.held is None:
            return self.entitled.most is not None
        return self.is_left_open

    @property
    def is_left_open(self) -> bool:
        """Whether a row gave their level until its end, and the row that keeps them names no level."""
        says_any_level = self.saying.has_access and self.saying.level is None
        has_ended_row = bool(self.saying.why)
        return says_any_level and has_ended_row and self.entitled.temporary is None

    @property
    def wanted(self) -> int | None:
        """The level that they should have, if it differs; ``None`` for none, or if no row names one."""
        if self.entitled.gives(self.held):
            return self.entitled.level
        return self.entitled.most

    @property
    def why(self) -> str:
        """The reason of a change, for people."""
        reasons = [self.entitled.why]
        if self.entitled.gives(self.held):
            reasons = [self.saying.why]
        if self.row and not self.row.is_over and self.wanted is not None:
            reasons.append(str(self.row.end))
        if self.entitled.expired:
            reasons.append(self.entitled.expired.expiry)
        return ", ".join(filter(None, reasons))


def saying_of(row: Row, held: int | None) -> Saying:
    """
    Return what a row of a roster says about its person.

    :param held: their level; ``None`` if it is not shown, or they are no member
    """
    if not row.is_over and not row.had(held):
        return Saying(has_access=True, level=row.level)
    end = row.ended[-1].end
    level = row.level
    if row.is_over or level is None:
        level = end.then_level
    why = end.over if level is None else f"{end.over}, back to {level}"
    if not row.is_over:
        return Saying(has_access=True, level=level, why=why)
    return Saying(has_access=level is not None, level=level, why=why, ended_at=end.moment.timestamp())


def is_withdrawn(saying: Saying, entitled: Entitlement, held: int | None) -> bool:
    """
    Return whether an open invite is withdrawn: it cannot be changed.

    :param held: its level; ``None`` if it is not shown
    """
    if entitled.temporary:
        return not saying.has_access and entitled.takes(held)
    if not entitled.has_access:
        return True
    if entitled.decision:
        return entitled.takes(held)
    # A row gave it until its end.
    return bool(saying.why) and (held is None or held != entitled.level)
