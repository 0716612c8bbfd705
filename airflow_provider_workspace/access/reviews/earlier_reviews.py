"""The closed reviews beside one: which is the last, what it left, and whether all are as they were written."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.access.reviews.folder import LAST_LOOK, POPULATION, REVIEW, changed, read_record
from airflow_provider_workspace.access.reviews.population import reviewed
from airflow_provider_workspace.access.rules.review_records import (
    COMPLETE,
    EarlierReview,
    LastReview,
    Population,
    PreviousReview,
)
from airflow_provider_workspace.errors import name_first

if TYPE_CHECKING:
    from airflow_provider_workspace.access.reviews.digests import ReviewDigests
    from airflow_provider_workspace.files.storage import UrlFile

log = logging.getLogger(__name__)

# The name of the folder of a review.
FOLDER = re.compile(r".+-[0-9a-f]{8}")


@dataclass(frozen=True)
class ReviewBeside:
    """
    A closed review.

    :param path: its folder
    :param digest: that of its ``review.json`` in the second place; empty if that has none
    """

    path: Any
    review: EarlierReview
    digest: str

    @property
    def read_at(self) -> str:
        """When its population was read; empty if it was not."""
        return self.review.read_at or ""

    def is_complete_of(self, organization_id: str, service: str) -> bool:
        """Return whether it is complete, and of an organization."""
        review = self.review
        is_ours = (review.organization_id, review.service) == (organization_id, service)
        return is_ours and review.state == COMPLETE

    def read_population(self, name: str) -> Population:
        """
        Return a population that it lists.

        :param name: of the file
        :raises WorkspaceInputError: if it is not there, or is another file
        """
        path = self.path / name
        digest = self.review.files.get(name, "nothing")
        population, _ = read_record(path, Population, digest)
        if population is None:
            raise changed(path, "is not there, and its review.json lists it")
        return population


@dataclass(frozen=True)
class EarlierReviews:
    """
    The closed reviews in a folder.

    :param parent: the folder with the evidence of all reviews
    :param digests: the second place, which also has the digest of each ``review.json``; ``None`` for no such place
    """

    parent: UrlFile
    digests: ReviewDigests | None

    def last(self, organization_id: str, service: str) -> LastReview | None:
        """
        Return what the latest complete review of an organization left; ``None`` if there is none.

        :raises WorkspaceInputError: if any review cannot be read, or is not what it says it is, or not what the second
            place says
        """
        reviews = list(self._read())
        ours = [beside for beside in reviews if beside.is_complete_of(organization_id, service)]
        if not ours:
            return None
        latest = max(ours, key=lambda beside: beside.read_at)
        if self.digests and not latest.digest:
            self._warn_of_unchecked(latest, reviews, self.digests)
        population = latest.read_population(POPULATION)
        last_look = latest.read_population(LAST_LOOK)
        left = reviewed(population, last_look)
        review = PreviousReview(
            folder=latest.path.name,
            read_at=population.read_at,
            sha256=latest.review.files[POPULATION],
            people=len(left.people),
        )
        return LastReview(review=review, population=left)

    def _read(self) -> Iterator[ReviewBeside]:
        """Return all of them; warn of those that only the second place knows."""
        missing = set(self.digests.reviews()) if self.digests else set()
        for path in self.parent.entries():
            if not FOLDER.fullmatch(path.name):
                continue
            missing.discard(path.name)
            digest = self.digests.find(path.name) if self.digests else ""
            review, _ = read_record(path / REVIEW, EarlierReview, digest)
            if review is not None:
                yield ReviewBeside(path, review, digest)
        if missing:
            names = name_first(sorted(missing), "the second place", ", ")
            log.warning("%s has the SHA-256 of reviews that are not in %s: %s", self.digests, self.parent, names)

    @staticmethod
    def _warn_of_unchecked(latest: ReviewBeside, reviews: Iterable[ReviewBeside], digests: ReviewDigests) -> None:
        """
        Warn of a last review that was closed before there was a second place.

        :raises WorkspaceInputError: if there was one already
        """
        checked = [beside.read_at for beside in reviews if beside.digest]
        if checked and min(checked) < latest.read_at:
            raise changed(latest.path / REVIEW, f"has no SHA-256 in {digests}, which has those of earlier reviews")
        log.warning("The last review is not checked: %s has no SHA-256 of %s", digests, latest.path.name)
