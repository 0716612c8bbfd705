"""Operators for an access review: who has access, what a person decides, what is done, and the proof of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from airflow_provider_workspace.operators import arguments as kinds
from airflow_provider_workspace.operators.approval import ask_and_wait, describe_organization
from airflow_provider_workspace.operators.arguments import Arg, arg, fixed
from airflow_provider_workspace.operators.base import OfOrganization, WorkspaceOperator, WorkspaceWriteOperator

if TYPE_CHECKING:
    from airflow.sdk import Context, ObjectStoragePath

    from airflow_provider_workspace.hooks.evidence import Evidence
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.procedures.plan import Plan

# The only option of the question: the form says what is decided.
DONE = "Done"
# How the names of files begin of which each try writes one.
NOT_DECIDED, TRIES = "not-decided", "done-"


class WorkspaceAccessReviewOperator(OfOrganization, WorkspaceOperator):
    """
    Base of the tasks of an access review. Each finds the evidence of its Dag run and task group, and goes on with it.

    :param evidence: folder with the evidence of all reviews, in which each gets a folder of its own: an absolute path
        on a disk that all workers share, or the URL of an object store, such as ``s3://conn_id@bucket/reviews``
    :param dashboards: dashboards whose collaborators belong to the review: ids in the project of the connection, or
        mappings with ``project_id`` and ``dashboard_id``
    :param protected: rows or addresses of people who are never removed or lowered, such as the owner of the
        connection's API key
    :param owner_level: members of this level and above are neither removed nor lowered: a number, or ``member`` (1),
        ``admin`` (8) or ``owner`` (15). ``None`` treats owners like others
    """

    resource_kind = "members"
    evidence: Arg[ObjectStoragePath | str] = arg(kinds.NEEDED)
    dashboards: Arg[Sequence[Any]] = arg(kinds.DASHBOARDS, default=())
    protected: Arg[Sequence[Mapping[str, Any] | Sequence[Any] | str]] = arg(kinds.ROWS, default=())
    owner_level: Arg[int | None] = arg(kinds.LEVEL, default=15)

    def open(self, hook: WorkspaceHook, *needed: str) -> tuple[Evidence, Any, Any]:
        """
        Return the evidence with the population and the decisions, each ``None`` if it is not there.

        :param needed: what must be there for a task that goes on with the review; it must still be open
        :raises WorkspaceInputError: if the review cannot go on
        """
        from airflow_provider_workspace.errors import WorkspaceInputError
        from airflow_provider_workspace.hooks.evidence import DECISIONS, POPULATION, REVIEW, Evidence

        run_id, *names = (str(getattr(self._context.get("ti"), name, "")) for name in ("run_id", "dag_id", "map_index"))
        evidence = Evidence(self.evidence, run_id, *names, self.task_id.rpartition(".")[0])
        found = {name: evidence.read(name) for name in (POPULATION, DECISIONS)}
        population, decided = found.values()
        problems = {
            "is of another organization": population and not population.items() >= self.where(hook).items(),
            "is closed": needed and evidence.read(REVIEW),
            "has another population now": decided and decided["population_sha256"] != evidence.digest(POPULATION),
            **{f"has no {name}, which an earlier task writes": not found[name] for name in needed},
        }
        for what, applies in problems.items():
            if applies:
                raise WorkspaceInputError(f"Start a new run: the review in {evidence} {what}", problem="review-ended")
        return evidence, population, decided

    def where(self, hook: WorkspaceHook) -> dict[str, str]:
        """Return the organization and the service."""
        organization_id = hook.organization_or_default(self.organization_id)
        return {"organization_id": organization_id, "service": hook.client.settings.base_url}

    def read_now(self, hook: WorkspaceHook, previous: Any = None) -> dict[str, Any]:
        """Read who has access now."""
        from airflow_provider_workspace.procedures.review import read_population

        dashboards = [
            one if "project_id" in one else {**one, "project_id": hook.project_or_default()} for one in self.dashboards
        ]
        how = {"dashboards": dashboards, "previous": previous, "now": datetime.now(timezone.utc)}
        return read_population(hook.client, self.where(hook)["organization_id"], **how)

    def guards(self) -> Any:
        """Return whom the review neither removes nor lowers."""
        from airflow_provider_workspace.procedures.members import Guards

        return Guards.read(self.protected, self.owner_level)


class WorkspaceReadPopulationOperator(WorkspaceAccessReviewOperator):
    """
    Read who has access, for an access review. Scopes ``organization_member:read`` and ``organization:read``.

    Writes ``population.json`` and ``population.csv``. A retry finds the population of the earlier try.
    """

    def work(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.hooks.evidence import POPULATION, TABLE
        from airflow_provider_workspace.hooks.files import csv_text
        from airflow_provider_workspace.procedures.review import COLUMNS, csv_rows

        evidence, population, _ = self.open(hook)
        if population:
            self.log.info("%s was read at %s, by an earlier try.", POPULATION, population["read_at"])
        else:
            previous, found = evidence.previous(**self.where(hook))
            population = self.read_now(hook, previous)
            population["previous"] = found
            evidence.write(POPULATION, population)
        evidence.write(TABLE, csv_text(COLUMNS, csv_rows(population)))
        people, first = len(population["people"]), sum(bool(one["look"]) for one in population["people"])
        self.log.info("%s have access, %s to look at first: %s", people, first, evidence)
        return {"folder": str(evidence), "read_at": population["read_at"], "people": people, "to_look_at": first}


class WorkspaceDecideAccessOperator(WorkspaceAccessReviewOperator):
    """
    Ask a person who keeps access, under **Required Actions** in the Airflow UI; write ``decisions.json``.

    Nobody is decided by silence: without an answer, or with one that does not decide everybody, the task fails.

    :param reviewers: ids of the Airflow users who may answer; one answer is enough
    :param review_timeout: how long to wait for the answer, a timedelta or seconds; then the task fails
    :param notifiers: callables that are called when the question is asked, such as Airflow notifiers
    """

    reviewers: Arg[Sequence[str]] = arg(kinds.NAMES)
    review_timeout: Arg[timedelta | float] = arg(kinds.SECONDS_FROM_ONE)
    notifiers: Callable[[Context], object] | Sequence[Callable[[Context], object]] = fixed(kinds.NEEDED, default=())

    def __post_init__(self) -> None:
        """Set what a run adds: the answer, and the digest of the population that was asked about."""
        self._answer: Mapping[str, Any] | None = None
        self._asked = ""

    def execute_approved(self, context: Context, event: Mapping[str, Any], population: str) -> Any:
        """Continue with the answer, or the error if there is none, to a question about this population."""
        self._answer, self._asked = event, population
        return self.execute(context)

    def work(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.errors import WorkspaceInputError
        from airflow_provider_workspace.hooks.evidence import DECISIONS, POPULATION

        evidence, population, decided = self.open(hook, POPULATION)
        if decided:
            when, who = decided["decided_at"], decided["by"]["name"]
            self.log.info("Decided at %s by %s; start a new run to decide again.", when, who)
        elif self._answer is None:
            self._ask(hook, evidence, population)
        else:
            decided = {"decided_at": str(self._answer.get("responded_at")), "by": self._answer.get("responded_by_user")}
            decided |= {"answer": self._answer.get("params_input"), "reviewers": self.reviewers}
            try:
                decided |= self._decide(population, evidence.digest(POPULATION))
            except WorkspaceInputError as error:
                evidence.write(f"{NOT_DECIDED}-{self.try_identity()[1]}.json", {**decided, "why": str(error)})
                raise
            evidence.write(DECISIONS, decided)
        counts = Counter(map(str, decided["decisions"].values()))
        return {"folder": str(evidence), "by": decided["by"], "at": decided["decided_at"], "counts": dict(counts)}

    def _ask(self, hook: WorkspaceHook, evidence: Evidence, population: dict[str, Any]) -> NoReturn:
        from airflow_provider_workspace.errors import WorkspaceInputError
        from airflow_provider_workspace.hooks.evidence import POPULATION
        from airflow_provider_workspace.procedures.review import form_of, question_of

        if not self.reviewers:
            raise WorkspaceInputError("Name one or more reviewers: a review is decided by somebody who is named")
        subject = f"Who keeps access to {describe_organization(hook.client.settings, population['organization_id'])}?"
        form = {"options": [DONE], "body": question_of(population, str(evidence)), "params": form_of(population)}
        wait = (self.reviewers, self.review_timeout, self.notifiers)
        told = {"population": evidence.digest(POPULATION)}
        self.log.info("Waiting until everybody is decided, under Required Actions.")
        ask_and_wait(self, self._context, wait, "access reviewed", told, subject=subject, **form)

    def _decide(self, population: dict[str, Any], digest: str) -> dict[str, Any]:
        """Return what the answer decides."""
        from airflow_provider_workspace.api.comparison import address_key
        from airflow_provider_workspace.errors import WorkspaceInputError
        from airflow_provider_workspace.hooks.evidence import POPULATION
        from airflow_provider_workspace.procedures.review import read_answer, read_exceptions

        event: Mapping[str, Any] = self._answer or {}
        user, answer = event.get("responded_by_user"), event.get("params_input") or {}
        why = "nobody answered" if not user else "" if event.get("chosen_options") == [DONE] else "it is another answer"
        why = (event["error"] or "nobody answered in time") if "error" in event else why
        if why or not user or digest != self._asked:
            why = why or f"{POPULATION} is another one now"
            raise WorkspaceInputError(f"Start a new run to ask again: {why}", problem="answer-refused")
        rows, file = self._rows_of_file(answer)
        decisions = read_answer(population, answer, rows)
        names = {address_key(str(user.get(name) or "")) for name in ("id", "name")}
        is_reviewed = any(address_key(row["email"] or "-") in names for row in population["people"])
        return {
            "population_sha256": digest,
            "decisions": decisions,
            "exceptions": read_exceptions(answer),
            "decisions_file": file,
            "reviewer_is_reviewed": is_reviewed if "@" in str(names) else "unknown: this Airflow user has no address",
        }

    def _rows_of_file(self, answer: Mapping[str, Any]) -> tuple[list[dict[str, Any]] | None, str]:
        """Return the rows of the decisions file that an answer names, and which file it is."""
        import csv

        from airflow_provider_workspace.errors import WorkspaceInputError
        from airflow_provider_workspace.hooks.files import file_at

        path, expected = (str(answer.get(name) or "").strip() for name in ("decisions_file", "decisions_sha256"))
        if not path and not expected:
            return None, "none"
        text, digest = file_at(path).read_with_digest()
        if digest != expected.lower():
            msg = f"Start a new run to decide again: the SHA-256 of {path!r} is {digest}, not {expected!r}"
            raise WorkspaceInputError(msg, problem="answer-refused")
        return list(csv.DictReader(text.split("\n"))), f"{path} (sha256 {digest})"


class WorkspaceApplyDecisionsOperator(WorkspaceAccessReviewOperator, WorkspaceWriteOperator):
    """
    Do what was decided in an access review, where nothing changed since its population was read.

    Scopes ``organization_member:write`` and ``organization_member:read``; for dashboards ``dashboard:write``. Writes
    ``done-<try>.json``. Whoever changed meanwhile is left, and the task fails and names them.

    :param max_removals: how many people one review may remove or put to a lower level: a number, a share of the
        members such as ``"50%"``, or both, such as ``"10 or 30%"``, of which the lower one counts. ``None`` for any
        number. If there are more, the task fails and sends nothing
    """

    has_own_dry_run = True
    max_removals: Arg[int | str | None] = arg(kinds.MAXIMUM, default="10 or 30%")

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.errors import WorkspaceError
        from airflow_provider_workspace.hooks.evidence import DECISIONS, POPULATION
        from airflow_provider_workspace.procedures.invites import wait_for_consistency
        from airflow_provider_workspace.procedures.plan import Plan, apply
        from airflow_provider_workspace.procedures.review import outcomes_of, plan_decisions

        evidence, population, decided = self.open(hook, POPULATION, DECISIONS)
        plan, rows, failed = Plan(), list[dict[str, Any]](), None

        def plan_now() -> tuple[Plan, list[dict[str, Any]]]:
            how = {"present": self.read_now(hook), "decided_at": decided["decided_at"]}
            return plan_decisions(hook.client, population, decided["decisions"], self.guards(), **how)

        try:
            wait_for_consistency(hook.client, self.task_state)
            plan, rows = plan_now()
            self.log.info("%s", plan.table())
            plan.check_losses(self.max_removals)
            if self.is_dry_run:
                return plan.to_dict()
            invite = partial(self.invite_people, hook=hook, organization_id=population["organization_id"])
            apply(hook.client, plan, invite, lambda: plan_now()[0])
        except WorkspaceError as error:
            failed = error
        outcomes, at = outcomes_of(plan, rows), datetime.now(timezone.utc).isoformat()
        done = {"at": at, "error": failed and str(failed), "outcomes": outcomes}
        evidence.write(f"{TRIES}{self.try_identity()[1]}.json", done)
        if failed:
            raise failed
        _check_done(_left(outcomes), evidence)
        return {"folder": str(evidence), "counts": dict(Counter(row["outcome"] for row in outcomes))}


class WorkspaceCloseReviewOperator(WorkspaceAccessReviewOperator):
    """
    Prove what was done in an access review, and close its evidence. Scope ``organization_member:read``.

    Reads once more who has access (``last_look.json``), and writes the page for people (``review.md``) and, last,
    ``review.json`` with the digests of all files. The task fails unless everybody was decided, and all of it is done.
    """

    def work(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.hooks.evidence import COMPLETE, LAST_LOOK, PAGE, REVIEW
        from airflow_provider_workspace.procedures.review import judge, page_of

        evidence, population, decided = self.open(hook)
        review, last_look, outcomes = evidence.read(REVIEW), evidence.read(LAST_LOOK), list[dict[str, Any]]()
        if review:
            self.log.info("Closed at %s, by an earlier try.", review["closed_at"])
        else:
            if decided:
                last_look = last_look or self.read_now(hook)
                evidence.write(LAST_LOOK, last_look)
                outcomes = judge(population, decided["decisions"], self.guards(), last_look)
            left, tries = _left(outcomes), [evidence.read(name) for name in evidence.names(TRIES)]
            said = [
                *(one["error"] for one in tries),
                *(evidence.read(one)["why"] for one in evidence.names(NOT_DECIDED)),
            ]
            review = {
                **self.where(hook),
                "state": "not reviewed" if not decided else "incomplete" if left else COMPLETE,
                **{name: getattr(self._context.get("ti"), name, "") for name in ("dag_id", "run_id")},
                "read_at": population and population["read_at"],
                "closed_at": datetime.now(timezone.utc).isoformat(),
                "missing": [*left, *filter(None, said[-1:])],
                "files": {name: evidence.digest(name) for name in evidence.names() if name != PAGE},
                "outcomes": outcomes,
            }
            if not evidence.digest(PAGE):  # a try may end between both
                sent = [row for one in tries for row in one["outcomes"]]
                evidence.write(PAGE, page_of(review, population or {}, decided or {}, sent, last_look or {}, outcomes))
            review["files"][PAGE] = evidence.digest(PAGE)
            evidence.write(REVIEW, review)
        if review["state"] != COMPLETE:
            _check_done(review["missing"] or ["nobody was asked"], evidence, review["state"])
        return {"folder": str(evidence), "state": review["state"], "sha256": evidence.digest(REVIEW)}


def _left(outcomes: list[dict[str, Any]]) -> list[str]:
    """Return what was decided and is not done, for people."""
    from airflow_provider_workspace.procedures.review import FINE

    text = "{who} ({decision}): {outcome} {detail}"
    return [text.format(**row) for row in outcomes if row["outcome"] not in FINE]


def _check_done(left: list[str], evidence: Evidence, state: str = "incomplete") -> None:
    """Refuse to end a task while something is left to do."""
    from airflow_provider_workspace.errors import WorkspaceError

    if left:
        named = "; ".join(left[:20])
        msg = f"Start a new run, or do by hand what is left: the review is {state}: {named}. See {evidence}"
        raise WorkspaceError(msg, problem="review-incomplete")
