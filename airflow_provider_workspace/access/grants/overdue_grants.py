"""Grants that are over, as the sweep ends them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.access.grants.end_grants import end_grants
from airflow_provider_workspace.access.grants.evidence import GrantEvidence
from airflow_provider_workspace.notes.due_notes import Ended

if TYPE_CHECKING:
    from airflow_provider_workspace.access.grants.notes import GrantRegistry
    from airflow_provider_workspace.access.reviews.notes import ReviewRegistry
    from airflow_provider_workspace.procedures.journal import Journal


@dataclass(frozen=True)
class OverdueGrants:
    """
    Grants that are over.

    :param reviews: what reviews decided, which caps the level after the end
    :param protected: rows or addresses of people who are never removed or lowered
    :param writer: what no other run is known by; by default a new one
    :param evidence: folder of the files about grants that ended; ``None`` for none
    :param ended_by: the task or command, for those files
    :param journal: what the tries of the task send; ``None`` outside of a task
    """

    registry: GrantRegistry
    reviews: ReviewRegistry
    protected: Collection[Any] = ()
    kind: str = "grants"
    writer: str = ""
    evidence: Any = None
    ended_by: str = ""
    journal: Journal | None = None

    def end_due(self, *, dry_run: bool) -> Ended:
        """End them; a dry run reports what would be left, and that is no error."""
        evidence: GrantEvidence | None = None
        if self.evidence is not None:
            evidence = GrantEvidence(self.evidence, self.ended_by)
        result = end_grants(
            self.registry,
            self.reviews,
            self.protected,
            dry_run=dry_run,
            writer=self.writer,
            evidence=evidence,
            journal=self.journal,
        )
        is_left = bool(result.left)
        report = result.to_dict()
        if not dry_run:
            lines = [f"Ended: {end.line}" for end in result.ended]
            return Ended(self.kind, report, lines, error=result.error, is_left=is_left)
        lines = [f"Would end: {end.line}" for end in result.ended]
        lines += [f"Would not end: {end.line}" for end in result.left]
        return Ended(self.kind, report, lines, is_left=is_left)
