"""Operators for an access review: who has access, what a person decides, what is done, and the proof of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from airflow_provider_workspace import __version__
from airflow_provider_workspace.operators import arguments as kinds
from airflow_provider_workspace.operators.approval import ask_and_wait, describe_organization
from airflow_provider_workspace.operators.arguments import Arg, arg, fixed
from airflow_provider_workspace.operators.base import OfOrganization, WorkspaceOperator, WorkspaceWriteOperator
from airflow_provider_workspace.version_compat import AirflowSkipException, conf

if TYPE_CHECKING:
    from airflow.sdk import Context, ObjectStoragePath

    from airflow_provider_workspace.files.evidence import Evidence
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.notes.decisions import ReviewNote
    from airflow_provider_workspace.notes.noted_access import AccessNotes
    from airflow_provider_workspace.procedures.answers import AnswerRules
    from airflow_provider_workspace.procedures.entitlements import NotedAccess
    from airflow_provider_workspace.procedures.plan import Plan

# What the question says where nobody may decide about themselves.
NOT_ABOUT_THEMSELVES = "The answer of a reviewer who is among these people is refused: nobody decides about themselves."
# The arguments that are rules of the review, as its evidence has them.
RULES = ("reviewers", "allow_self_approval", "owner_level", "max_removals")


class WorkspaceAccessReviewOperator(OfOrganization, WorkspaceOperator):
    """
    Base of the tasks of an access review. Each finds the evidence of its Dag run and task group, and goes on with it.

    The arguments are the rules of the review, which its evidence has: give all four tasks the same.

    :param evidence: folder with the evidence of all reviews, in which each gets a folder of its own: an absolute path
        on a disk that all workers share, or the URL of an object store, such as ``s3://conn_id@bucket/reviews``
    :param reviewers: ids of the Airflow users who may answer; one answer is enough
    :param allow_self_approval: whether a reviewer may be among the reviewed. By default their answer is refused: nobody
        decides about their own access. Not templated, so that nobody who starts a run can set it
    :param review_timeout: how long to wait for the answer, a timedelta or seconds; then the review fails
    :param dashboards: dashboards whose collaborators belong to the review: ids in the project of the connection, or
        mappings with ``project_id`` and ``dashboard_id``
    :param protected: rows or addresses of people who can only be kept, such as the owner of the connection's API key
    :param owner_level: members of this level and above can only be kept: a number, or ``member`` (1), ``admin`` (8) or
        ``owner`` (15). ``None`` treats owners like others
    :param max_removals: how many people one review may remove or put to a lower level: a number, a share of the
        members such as ``"50%"``, or both, such as ``"10 or 30%"``, of which the lower one counts. ``None`` for any
        number. If there are more, the review fails and sends nothing
    :param decisions_count_for: how long other features, such as a sync, give nobody more than the review decided, a
        timedelta or seconds; by default 400 days. Since Airflow 3.3
    """

    resource_kind = "members"
    evidence: Arg[ObjectStoragePath | str] = arg(kinds.NEEDED)
    reviewers: Arg[Sequence[str]] = arg(kinds.NAMES)
    allow_self_approval: bool = fixed(kinds.FLAG, default=False)
    review_timeout: Arg[timedelta | float] = arg(kinds.SECONDS_FROM_ONE)
    dashboards: Arg[Sequence[Any]] = arg(kinds.DASHBOARDS, default=())
    protected: Arg[Sequence[Mapping[str, Any] | Sequence[Any] | str]] = arg(kinds.ROWS, default=())
    owner_level: Arg[int | None] = arg(kinds.LEVEL, default=15)
    max_removals: Arg[int | str | None] = arg(kinds.MAXIMUM, default="10 or 30%")
    decisions_count_for: Arg[timedelta | float] = arg(kinds.YEARS, default=timedelta(days=400))

    @property
    def evidence_of_run(self) -> Evidence:
        """The evidence of this Dag run and task group."""
        from airflow_provider_workspace.files.evidence import Evidence

        run_id, *names = (str(getattr(self._context.get("ti"), name, "")) for name in ("run_id", "dag_id", "map_index"))
        return Evidence(self.evidence, run_id, *names, self.task_id.rpartition(".")[0])

    def open(self, hook: WorkspaceHook, needed: int = 0) -> tuple[Evidence, Any, Any]:
        """Return the evidence, and what :meth:`~airflow_provider_workspace.files.evidence.Evidence.open` returns."""
        evidence = self.evidence_of_run
        return evidence, *evidence.open(self.where(hook), needed)

    def where(self, hook: WorkspaceHook) -> dict[str, str]:
        """Return the organization and the service."""
        organization_id = hook.organization_or_default(self.organization_id)
        return {"organization_id": organization_id, "service": hook.client.settings.base_url}

    def read_now(self, hook: WorkspaceHook, previous: Any = None, noted: NotedAccess | None = None) -> dict[str, Any]:
        """
        Read who has access now.

        :param previous: the population of the last review
        :param noted: temporary access, if somebody has read it
        """
        from airflow_provider_workspace.procedures.review import read_population

        boards = [{"project_id": one.get("project_id") or hook.project_or_default(), **one} for one in self.dashboards]
        organization_id = self.where(hook)["organization_id"]
        if noted is None:
            noted = self.access_notes(hook).read()
        now = datetime.now(timezone.utc)
        return read_population(hook.client, organization_id, self.guards(), now, boards, previous, noted)

    def access_notes(self, hook: WorkspaceHook) -> AccessNotes:
        """Return the notes about the people of the organization."""
        from airflow_provider_workspace.notes.noted_access import AccessNotes

        return AccessNotes.of_tasks(hook.client.settings, self.where(hook)["organization_id"])

    def note(self, hook: WorkspaceHook, evidence: Evidence, population: Any, decided: Any) -> ReviewNote:
        """Return the note of what the review decided."""
        from airflow_provider_workspace.notes.decisions import note_of_review

        ti = self._context.get("ti")
        place = {
            "dag_id": str(getattr(ti, "dag_id", "-")),
            "run_id": str(getattr(ti, "run_id", "-")),
            "map_index": getattr(ti, "map_index", -1),
            "workspace_conn_id": self.workspace_conn_id,
            "review": evidence.path.name,
            **self.where(hook),
        }
        return note_of_review(place, population, decided, self.decisions_count_for)

    def guards(self) -> Any:
        """Return who can only be kept."""
        from airflow_provider_workspace.procedures.members import Guards

        return Guards.read(self.protected, self.owner_level)

    def rules(self) -> dict[str, Any]:
        """Return the rules of the review, for its evidence."""
        rules = {name: getattr(self, name) for name in RULES}
        rules["review_timeout"] = str(timedelta(seconds=self.review_timeout))
        rules["decisions_count_for"] = str(timedelta(seconds=self.decisions_count_for))
        return {**rules, "protected": sorted(self.guards().protected)}


class WorkspaceReadPopulationOperator(WorkspaceAccessReviewOperator):
    """
    Read who has access, for an access review. Scopes ``organization_member:read`` and ``organization:read``.

    Writes ``population.json`` and ``population.csv``. A retry finds the population of the earlier try.
    """

    def work(self, hook: WorkspaceHook) -> dict[str, Any]:
        evidence, population, _ = self.open(hook)
        if population:
            self.log.info("The population was read at %s, by an earlier try.", population["read_at"])
        else:
            population = self.read_now(hook, evidence.previous(**self.where(hook)))
        evidence.write_population(population)
        people, first = len(population["people"]), sum(bool(one["look"]) for one in population["people"])
        self.log.info("%s have access, %s to look at first: %s", people, first, evidence)
        return {"folder": str(evidence), "read_at": population["read_at"], "people": people, "to_look_at": first}


class WorkspaceDecideAccessOperator(WorkspaceAccessReviewOperator):
    """
    Ask a person who keeps access, under **Required Actions** in the Airflow UI; write ``decisions.json``.

    Nobody is decided by silence: without an answer, or with one that does not decide everybody, the task fails. Who
    answered is checked here too, whatever Airflow permits.

    :param notifiers: callables that are called when the question is asked, such as Airflow notifiers
    """

    notifiers: Callable[[Context], object] | Sequence[Callable[[Context], object]] = fixed(kinds.NEEDED, default=())

    # The answer, and the digest of the population that was asked about.
    _answer: tuple[Mapping[str, Any], str] | None = None

    def execute_approved(self, context: Context, event: Mapping[str, Any], population: str) -> Any:
        """Continue with the answer, or the error if there is none, to a question about this population."""
        self._answer = event, population
        return self.execute(context)

    def work(self, hook: WorkspaceHook) -> dict[str, Any]:
        evidence, population, decided = self.open(hook, 1)
        if decided:
            when, who = decided["decided_at"], decided["by"]["name"]
            self.log.info("Decided at %s by %s; start a new run to decide again.", when, who)
        elif self._answer is None:
            self._ask(hook, evidence, population)
        else:
            event, asked = self._answer
            number = self.try_identity()[1]
            answer_rules = self._answer_rules(population)
            decided = evidence.decide(population, event, asked, number, answer_rules, rules=self.rules())
        counts = Counter(map(str, decided["decisions"].values()))
        return {"folder": str(evidence), "by": decided["by"], "at": decided["decided_at"], "counts": dict(counts)}

    def _answer_rules(self, population: dict[str, Any]) -> AnswerRules:
        """Return who may answer."""
        from airflow_provider_workspace.procedures.answers import AnswerRules, emails_of

        return AnswerRules(
            approvers=tuple(self.reviewers),
            about=emails_of(population["people"]),
            allow_self_approval=self.allow_self_approval,
        )

    def _ask(self, hook: WorkspaceHook, evidence: Evidence, population: dict[str, Any]) -> NoReturn:
        from airflow_provider_workspace.errors import WorkspaceInputError
        from airflow_provider_workspace.files.evidence import DONE, POPULATION
        from airflow_provider_workspace.procedures.review import form_of, question_of

        if not self.reviewers:
            raise WorkspaceInputError("Name one or more reviewers: a review is decided by somebody who is named")
        self._answer_rules(population).raise_if_nobody_may_answer()
        subject = f"Who keeps access to {describe_organization(hook.client.settings, population['organization_id'])}?"
        body = question_of(population, str(evidence))
        if not self.allow_self_approval:
            body = f"{NOT_ABOUT_THEMSELVES}\n\n{body}"
        form = {"options": [DONE], "body": body, "params": form_of(population)}
        wait, told = (self.reviewers, self.review_timeout, self.notifiers), {"population": evidence.digest(POPULATION)}
        self.log.info("Waiting until everybody is decided, under Required Actions.")
        ask_and_wait(self, self._context, wait, "access reviewed", told, subject=subject, **form)


class WorkspaceApplyDecisionsOperator(WorkspaceAccessReviewOperator, WorkspaceWriteOperator):
    """
    Do what was decided in an access review, where nothing changed since its population was read.

    Scopes ``organization_member:write`` and ``organization_member:read``; for dashboards ``dashboard:write``. Writes
    ``done-<try>.json``. Whoever changed meanwhile is left, and the task fails and names them.

    Before anything is sent, the decisions about members and invites who are lowered or removed are noted in a Variable
    (since Airflow 3.3): a sync, an organization file and the end of temporary access give nobody more than that. Who
    has temporary access is judged without it: *lower* is done at its end, *remove* ends it, unless it was given after
    the decision.
    """

    has_own_dry_run = True

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.errors import WorkspaceError
        from airflow_provider_workspace.procedures.invites import wait_for_consistency
        from airflow_provider_workspace.procedures.plan import Plan, apply
        from airflow_provider_workspace.procedures.review import outcomes_of, plan_decisions

        evidence, population, decided = self.open(hook, 2)
        plan = Plan()
        rows: list[dict[str, Any]] = []
        failed: WorkspaceError | None = None
        notes = self.access_notes(hook)

        def plan_now() -> tuple[Plan, list[dict[str, Any]]]:
            noted = notes.read()
            return plan_decisions(
                hook.client,
                population,
                decided["decisions"],
                present=self.read_now(hook, noted=noted),
                decided_at=decided["decided_at"],
                noted=noted,
            )

        try:
            wait_for_consistency(hook.client, self.task_state)
            plan, rows = plan_now()
            self.log.info("%s", plan.table())
            plan.check_losses(self.max_removals)
            if self.is_dry_run:
                return plan.to_dict()
            notes.reviews.note(self.note(hook, evidence, population, decided))
            invite = partial(self.invite_people, hook=hook, organization_id=population["organization_id"])
            apply(hook.client, plan, invite, lambda: plan_now()[0])
            notes.settle(plan)
        except WorkspaceError as error:
            failed = error
        outcomes = outcomes_of(plan, rows)
        evidence.end_try(self.try_identity()[1], outcomes, failed, rules=self.rules())
        return {"folder": str(evidence), "counts": dict(Counter(row["outcome"] for row in outcomes))}


class WorkspaceCloseReviewOperator(WorkspaceAccessReviewOperator):
    """
    Prove what was done in an access review, and close its evidence. Scope ``organization_member:read``.

    Reads once more who has access (``last_look.json``), and writes the page for people (``review.md``) and, last,
    ``review.json`` with the digests of all files. The task fails unless everybody was decided, and all of it is done.
    What earlier reviews decided about the same people does not count any more after a complete review. The task is
    skipped if the review was not due: a branch or a short circuit skipped the first task, and nothing was read.

    :param read_task_id: the task that reads who has access; ``None`` if this task is to run always
    """

    read_task_id: str | None = fixed(kinds.TASK_ID, default=None)

    def execute(self, context: Context) -> Any:
        """Close the review, unless it was not due."""
        self._context = context or {}
        if self._first_task_was_skipped() and not self.evidence_of_run.names():
            raise AirflowSkipException("The review was not due: its first task was skipped, and nothing was read.")
        return super().execute(context)

    def _first_task_was_skipped(self) -> bool:
        ti: Any = self._context.get("ti")
        if self.read_task_id is None or ti is None:
            return False
        is_mapped = ti.map_index is not None and ti.map_index >= 0
        states_by_run = ti.get_task_states(
            dag_id=ti.dag_id,
            run_ids=[ti.run_id],
            task_ids=[self.read_task_id],
            map_index=ti.map_index if is_mapped else None,
        )
        index = f"_{ti.map_index}" if is_mapped else ""
        states = states_by_run.get(ti.run_id, {})
        return bool(states.get(self.read_task_id + index) == "skipped")

    def work(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.files.evidence import COMPLETE
        from airflow_provider_workspace.notes.decisions import everybody_in

        evidence, population, decided = self.open(hook)
        facts = {name: getattr(self._context.get("ti"), name, "") for name in ("dag_id", "run_id")}
        facts |= {"package": f"airflow-provider-workspace {__version__}", "rules": self.rules(), **self.where(hook)}
        facts["airflow"] = conf.get("api", "base_url", fallback="not set")
        review, digest = evidence.close(population, decided, partial(self.read_now, hook), facts)
        if review["state"] == COMPLETE:
            note = self.note(hook, evidence, population, decided)
            self.access_notes(hook).reviews.settle(note, everybody_in(population))
        # Also of a task that fails, which has no result.
        said = "The review is %s, closed at %s. SHA-256 of review.json: %s"
        self.log.info(said, review["state"], review["closed_at"], digest)
        evidence.check(review["state"], review["state"] != "complete" and review["missing"])
        return {"folder": str(evidence), "state": review["state"], "sha256": digest}
