"""The end of an access review: the last look, the page for people and, last, what the review is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_workspace.access.reviews.evidence import OpenReview, members_seen, now
from airflow_provider_workspace.access.reviews.folder import (
    INTENTS,
    LAST_LOOK,
    NOT_DECIDED,
    PAGE,
    REVIEW,
    TRIES,
    ReviewFolder,
    changed,
)
from airflow_provider_workspace.access.reviews.page import ReviewPage
from airflow_provider_workspace.access.rules.review_outcomes import AFTER, judge
from airflow_provider_workspace.access.rules.review_records import (
    COMPLETE,
    INCOMPLETE,
    NOT_DONE,
    NOT_REVIEWED,
    OVERRULED,
    ClosedReview,
    DecisionOutcome,
    Intent,
    NotDecided,
    Population,
    ReviewState,
    Try,
    left_of,
)

DRY_RUN = "dry_run: nothing was sent"
NEVER_BEGUN = "nothing was done: apply_decisions did not begin"
NOBODY_DECIDED = "nobody decided"


@dataclass(frozen=True)
class ReviewClosing:
    """
    Closes a review; a try goes on with what an earlier one wrote.

    :param opened: what the earlier tasks wrote
    :param carried: the digests of other files that they wrote, as Airflow kept them
    """

    folder: ReviewFolder
    opened: OpenReview
    carried: Mapping[str, str]

    def close(self, look: Callable[[], Population], facts: Mapping[str, Any]) -> tuple[ClosedReview, str]:
        """
        Write the last look, the page and, last, what the review is.

        :param look: reads who has access
        :param facts: the fields of :class:`ClosedReview` that the task knows
        :return: what the review is, and the digest of that file
        """
        folder = self.folder
        population = self.opened.population
        decisions = self.opened.decisions
        folder.raise_if_of_others(LAST_LOOK, PAGE)
        last_look: Population | None = None
        outcomes: list[DecisionOutcome] = []
        if population and decisions:
            last_look = self._look_last(look)
            overruled = {sent.who: sent for sent in self._sent() if sent.outcome == OVERRULED}
            for outcome in judge(population, decisions, last_look, AFTER, members_seen(folder)):
                is_left = outcome.outcome == NOT_DONE
                outcomes.append(overruled.get(outcome.who, outcome) if is_left else outcome)
        state, missing = self._state(outcomes)
        read_at = population.read_at if population else None
        files = {name: folder.digest(name) for name in folder.names() if name != PAGE}
        other_files = folder.other_names()
        review = ClosedReview(
            **facts,
            state=state,
            read_at=read_at,
            closed_at=now(),
            missing=tuple(missing),
            files=files,
            other_files=tuple(other_files),
            outcomes=tuple(outcomes),
        )
        page_sha256 = self._write_page(review, last_look)
        files_with_page = {**files, PAGE: page_sha256}
        review = review.model_copy(update={"files": files_with_page})
        folder.write(REVIEW, review)
        return review, folder.written_digest(REVIEW)

    def _look_last(self, look: Callable[[], Population]) -> Population:
        """Return the last look of an earlier try, or look now."""
        digest = self.folder.own_digest(LAST_LOOK)
        last_look, _ = self.folder.read(LAST_LOOK, Population, digest)
        if last_look is None:
            last_look = look()
            self.folder.write(LAST_LOOK, last_look)
        return last_look

    def _write_page(self, review: ClosedReview, last_look: Population | None) -> str:
        """Write the page, unless an earlier try did, and return its digest."""
        folder = self.folder
        written = folder.own_digest(PAGE)
        present = folder.digest(PAGE)
        if written and written != present:
            raise changed(folder.path / PAGE, "is not the file that was written")
        if present:
            return present
        refused = self._last_refused()
        page = ReviewPage(
            review,
            population=self.opened.population,
            decided=self.opened.decisions,
            sent=tuple(self._sent()),
            last_look=last_look,
            refused=refused,
        )
        folder.write(PAGE, page.text())
        return folder.digest(PAGE)

    # What is missing

    def _state(self, outcomes: list[DecisionOutcome]) -> tuple[ReviewState, list[str]]:
        """
        Return the state of the review, and what is missing.

        :param outcomes: of each decision, as the last look shows it
        """
        edited = self._edited()
        if self.opened.decisions is None:
            missing = edited + self._last_error()
            return NOT_REVIEWED, missing or [NOBODY_DECIDED]
        missing = left_of(outcomes) + self._not_begun() + edited
        if not missing:
            return COMPLETE, []
        return INCOMPLETE, missing + self._last_error()

    def _not_begun(self) -> list[str]:
        """Return why nothing was sent; nothing if a try began to send."""
        begun = self._begun()
        if not begun:
            return [NEVER_BEGUN]
        if all(record is not None and record.dry_run for record in begun):
            return [DRY_RUN]
        return []

    def _begun(self) -> list[Intent | Try | None]:
        """Return what each try was about to do, and did; ``None`` for a file that cannot be read."""
        records: list[Intent | Try | None] = []
        for name in self.folder.names():
            if name.startswith(INTENTS):
                records.append(self.folder.read_try(name, Intent))
            elif name.startswith(TRIES):
                records.append(self.folder.read_try(name, Try))
        return records

    def _edited(self) -> list[str]:
        """Return which files are not as an earlier task wrote them."""
        names = [name for name, sha256 in self.carried.items() if self.folder.digest(name) != sha256]
        return [f"{name} is not the file that was written" for name in names]

    def _last_error(self) -> list[str]:
        """Return why the latest try failed; nothing if it did not."""
        error = ""
        for name in self.folder.names():
            if name.startswith(TRIES):
                done = self.folder.read_try(name, Try)
                error = (done.error or "") if done else f"{name} cannot be read"
            elif name.startswith(NOT_DECIDED):
                refused = self.folder.read_try(name, NotDecided)
                error = refused.why if refused else f"{name} cannot be read"
        return [error] if error else []

    # What the page shows

    def _last_refused(self) -> NotDecided | None:
        """Return the latest answer that does not count; ``None`` if there is none."""
        names = [name for name in self.folder.names() if name.startswith(NOT_DECIDED)]
        return self.folder.read_try(names[-1], NotDecided) if names else None

    def _sent(self) -> list[DecisionOutcome]:
        """Return the outcomes of all tries, the earliest first."""
        sent: list[DecisionOutcome] = []
        for name in self.folder.names():
            done = self.folder.read_try(name, Try) if name.startswith(TRIES) else None
            if done:
                sent += done.outcomes
        return sent
