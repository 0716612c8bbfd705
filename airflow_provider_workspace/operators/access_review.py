"""Operators for an access review: who has access, what a person decides, what is done, and the proof of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from airflow_provider_workspace import __version__
from airflow_provider_workspace.operators import arguments as kinds
from airflow_provider_workspace.operators.approval import WorkspaceApprovalMixin, ask_and_wait, describe_organization
from airflow_provider_workspace.operators.arguments import Arg, arg, fixed
from airflow_provider_workspace.operators.base import (
    LimitsRemovals,
    OfOrganization,
    WorkspaceOperator,
    WorkspaceWriteOperator,
)
from airflow_provider_workspace.version_compat import AirflowSkipException, conf, lists_variables, shows_forms

if TYPE_CHECKING:
    from airflow.sdk import Context, ObjectStoragePath

    from airflow_provider_workspace.access.notes import AccessNotes
    from airflow_provider_workspace.access.reviews.evidence import Answer, Evidence, OpenReview
    from airflow_provider_workspace.access.reviews.notes import ReviewNote
    from airflow_provider_workspace.access.reviews.outcome import PlannedReview
    from airflow_provider_workspace.access.reviews.population import ProjectLevels
    from airflow_provider_workspace.access.rules.answers import AnswerRules
    from airflow_provider_workspace.access.rules.entitlements import NotedAccess, ReviewDecision
    from airflow_provider_workspace.access.rules.guards import Guards
    from airflow_provider_workspace.access.rules.review_records import Decisions, LastReview, Population, Rules
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.notes.task_state import TaskState

# What the question says where nobody may decide about themselves.
NOT_ABOUT_THEMSELVES = "The answer of a reviewer who is among these people is refused: nobody decides about themselves."
# The key of the digest of what a task wrote, in its result and in its memory.
POPULATION_SHA256, DECISIONS_SHA256, REVIEW_SHA256 = "population_sha256", "decisions_sha256", "sha256"
# Key in the task state: the decisions were noted, and a retry does not note again what a later review took out.
NOTED = "airflow_provider_workspace_decisions"
# The key of the digests of other files, by name, in the result of a task.
FILES = "files"


class WorkspaceAccessReviewOperator(OfOrganization, LimitsRemovals, WorkspaceOperator):
    """
    Base of the tasks of an access review. Each finds the evidence of its Dag run and task group, and continues with it.

    The arguments are the rules of the review, which its evidence has: give all four tasks the same. A review can only
    keep members who are in ``protected``, or at or above ``owner_level``.

    :param evidence: folder for all reviews, each in a folder of its own: an absolute path on a disk that all workers
        share, or the URL of an object store, such as ``s3://conn_id@bucket/reviews``
    :param digests: second place, outside of ``evidence``, for the SHA-256 of each ``review.json``: an absolute path, or
        the URL of an object store. Those who may write ``evidence`` should not be able to write there
    :param reviewers: ids of the Airflow users who may answer; one answer is enough
    :param allow_self_approval: whether a reviewer may be among the reviewed. By default, their answer is refused:
        nobody decides about their own access
    :param review_timeout: how long to wait for the answer; then the review fails
    :param dashboards: dashboards whose collaborators belong to the review: ids in the project of the connection, or
        mappings with ``project_id`` and ``dashboard_id``
    :param decisions_count_for: how long other features, such as a sync, give nobody more than the review decided. Since
        Airflow 3.3
    :param decisions_folder: folder below which a reviewer may name a file of decisions: an absolute path, or the URL of
        an object store. Keep nothing else in it: the worker reads the file with its own rights
    :param read_task_id: the task that reads who has access; its result has the digest of what it wrote. ``None`` to
        take the population as it is there
    :param decide_task_id: the same of the task that asks
    """

    resource_kind = "reviews"
    evidence: Arg[ObjectStoragePath | str] = arg(kinds.NEEDED)
    reviewers: Arg[Sequence[str]] = arg(kinds.USERS)
    allow_self_approval: bool = fixed(kinds.FLAG, default=False)
    review_timeout: Arg[timedelta | float] = arg(kinds.SECONDS_FROM_ONE)
    dashboards: Arg[Sequence[Any]] = arg(kinds.DASHBOARDS, default=())
    decisions_count_for: Arg[timedelta | float] = arg(kinds.YEARS, default=timedelta(days=400))
    digests: Arg[ObjectStoragePath | str | None] = arg(kinds.NEEDED, default=None)
    decisions_folder: str | None = fixed(kinds.NEEDED, default=None)
    read_task_id: str | None = fixed(kinds.TASK_ID, default=None)
    decide_task_id: str | None = fixed(kinds.TASK_ID, default=None)

    @property
    def evidence_of_run(self) -> Evidence:
        """The evidence of this Dag run and task group."""
        from airflow_provider_workspace.access.reviews.evidence import Evidence

        ti = self._context["ti"]
        group_id, _, _ = self.task_id.rpartition(".")
        names = (ti.dag_id, str(ti.map_index), group_id)
        return Evidence(self.evidence, ti.run_id, *names, digests=self.digests, state=self._written)

    def open(self, hook: WorkspaceHook, needed: int = 0, *, population: str = "", decisions: str = "") -> OpenReview:
        """
        Return what is there, see :meth:`~airflow_provider_workspace.access.reviews.evidence.Evidence.open`.

        :param population: digest of the population, if this task knows it; else the result of the earlier task has it
        :param decisions: the same of the decisions
        """
        from airflow_provider_workspace.access.reviews.evidence import Carried

        population_digest = population or self._digest_from(self.read_task_id, POPULATION_SHA256)
        decisions_digest = decisions or self._digest_from(self.decide_task_id, DECISIONS_SHA256)
        carried = Carried(population_digest, decisions_digest)
        where = self.where(hook)
        return self.evidence_of_run.open(where["organization_id"], where["service"], needed, carried)

    def _digest_from(self, task_id: str | None, key: str) -> str:
        """Return the digest that the result of an earlier task has; empty if there is none."""
        return str(self._result_of(task_id).get(key) or "")

    def _result_of(self, task_id: str | None) -> Mapping[str, Any]:
        """Return the result of an earlier task; empty if there is none."""
        if task_id is None or task_id == self.task_id:
            return {}
        ti = self._context["ti"]
        result = ti.xcom_pull(task_ids=task_id, map_indexes=ti.map_index)
        return result if isinstance(result, Mapping) else {}

    @property
    def _written(self) -> TaskState:
        """The digests of what this task wrote, which survive its tries."""
        from airflow_provider_workspace.notes.task_state import KEY, TaskState

        return TaskState(self._context, key=f"{KEY}.written")

    def where(self, hook: WorkspaceHook) -> dict[str, str]:
        """Return the organization and the service."""
        organization_id = hook.organization_or_default(self.organization_id)
        return {"organization_id": organization_id, "service": hook.client.settings.base_url}

    def read_now(
        self,
        hook: WorkspaceHook,
        last: LastReview | None = None,
        noted: NotedAccess | None = None,
        project_levels: ProjectLevels | None = None,
        roster: Collection[str] | None = None,
    ) -> Population:
        """
        Read who has access now.

        :param last: what the last review left
        :param noted: temporary access, if somebody has read it
        :param project_levels: the level in each project of each user, if somebody has read it
        :param roster: keys of the addresses on the roster, if there is one
        """
        from airflow_provider_workspace.access.reviews.population import ReviewedDashboard, read_population

        boards: list[ReviewedDashboard] = []
        for dashboard in self.dashboards:
            project_id = dashboard.get("project_id") or hook.project_or_default()
            boards.append(ReviewedDashboard(str(project_id), str(dashboard["dashboard_id"])))
        organization_id = self.where(hook)["organization_id"]
        if noted is None:
            noted = self.access_notes(hook).read()
        now = datetime.now(timezone.utc)
        return read_population(
            hook.client,
            organization_id,
            self.guards(),
            now=now,
            boards=boards,
            last=last,
            noted=noted,
            project_levels=project_levels,
            roster=roster,
        )

    def access_notes(self, hook: WorkspaceHook) -> AccessNotes:
        """Return the notes about the people of the organization."""
        from airflow_provider_workspace.access.notes import AccessNotes

        return AccessNotes.of_tasks(hook.client.settings, self.where(hook)["organization_id"])

    def note(self, hook: WorkspaceHook, population: Population, decisions: Decisions) -> ReviewNote:
        """Return the note of what the review decided."""
        from airflow_provider_workspace.access.reviews.notes import note_of_review

        ti = self._context["ti"]
        place = {
            "dag_id": ti.dag_id,
            "run_id": ti.run_id,
            "map_index": ti.map_index,
            "workspace_conn_id": self.workspace_conn_id,
            "review": self.evidence_of_run.name,
            **self.where(hook),
        }
        return note_of_review(place, population, decisions, self.decisions_count_for)

    def guards(self) -> Guards:
        """Return who can only be kept."""
        from airflow_provider_workspace.access.rules.guards import Guards

        return Guards.read(self.protected, self.owner_level)

    def rules(self) -> Rules:
        """Return the rules of the review, for its evidence."""
        from airflow_provider_workspace.access.rules.review_records import Rules

        protected = sorted(self.guards().protected)
        review_timeout = timedelta(seconds=self.review_timeout)
        decisions_count_for = timedelta(seconds=self.decisions_count_for)
        return Rules(
            reviewers=tuple(self.reviewers),
            allow_self_approval=self.allow_self_approval,
            owner_level=self.owner_level,
            max_removals=self.max_removals,
            protected=tuple(protected),
            review_timeout=str(review_timeout),
            decisions_count_for=str(decisions_count_for),
            decisions_folder=self.decisions_folder,
            digests=None if self.digests is None else str(self.digests),
        )


class WorkspaceReadPopulationOperator(WorkspaceAccessReviewOperator):
    """
    Read who has access, for an access review. Scopes ``organization_member:read`` and ``organization:read``.

    Writes ``population.json`` and ``population.csv``. A retry finds the population of the earlier try.

    :param project_access: function of a module, or its name, that returns what each user has in each project:
        ``{user_uuid: {project: level}}``. It is called with the hook, and sends an endpoint of yours, because the API
        has none. By default, only levels of the organization are reviewed
    :param roster: rows or addresses of the people who should have access, as for a member sync: whom no row names, the
        reviewer looks at first
    """

    project_access: Any = fixed(kinds.TARGET, default=None)
    roster: Arg[Sequence[Mapping[str, Any] | Sequence[Any] | str] | None] = arg(kinds.ROWS, default=None)

    def work(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.access.reviews.folder import POPULATION, TABLE

        evidence = self.evidence_of_run
        folder = evidence.folder
        folder.raise_if_of_others(POPULATION)
        review = self.open(hook, population=folder.own_digest(POPULATION))
        population = review.population
        if population:
            self.log.info("The population was read at %s, by an earlier try.", population.read_at)
        else:
            last = evidence.last_review(**self.where(hook))
            project_levels = self._project_levels(hook)
            roster = self._addresses()
            population = self.read_now(hook, last, project_levels=project_levels, roster=roster)
        evidence.write_population(population)
        people = len(population.people)
        first = sum(bool(person.look) for person in population.people)
        self.log.info("%s have access, %s to look at first: %s", people, first, folder)
        files = {TABLE: folder.digest(TABLE)}
        return {
            "folder": str(folder),
            "read_at": population.read_at,
            "people": people,
            "to_look_at": first,
            POPULATION_SHA256: folder.digest(POPULATION),
            FILES: files,
        }

    def _addresses(self) -> set[str] | None:
        """Return the keys of the addresses on the roster, also of rows that are invalid; ``None`` without a roster."""
        from airflow_provider_workspace.api.comparison import address_key
        from airflow_provider_workspace.notes.note import utc_now
        from airflow_provider_workspace.procedures.roster import check_roster
        from airflow_provider_workspace.procedures.roster_files import read_roster

        if self.roster is None:
            return None
        now = utc_now()
        rows = read_roster(self.roster, None, None, argument="roster", columns=None, where=None, now=now)
        roster = check_roster(rows, now, only_addresses=True)
        invalid = {address_key(entry.email or "") for entry in roster.invalid}
        return {row.key for row in roster.rows} | invalid

    def _project_levels(self, hook: WorkspaceHook) -> ProjectLevels | None:
        """Return the level in each project of each user; ``None`` if the author of the Dag does not read them."""
        from airflow_provider_workspace.api.loading import load_operation
        from airflow_provider_workspace.errors import WorkspaceInputError, type_name

        if self.project_access is None:
            return None
        levels = load_operation("project_access", self.project_access, functions=True)(hook)
        if isinstance(levels, Mapping) and all(isinstance(one, Mapping) for one in levels.values()):
            return levels
        expected = "project_access must return the levels by project of each user: {user_uuid: {project: level}}"
        raise WorkspaceInputError(f"{expected}, not {type_name(levels)}")


class WorkspaceDecideAccessOperator(WorkspaceAccessReviewOperator):
    """
    Ask a person who keeps access, under **Required Actions** in the Airflow UI; write ``decisions.json``.

    A missing answer is never a decision: without an answer, or with one that does not decide about everybody, the task
    fails. Whatever Airflow permits, the task also checks who answered.

    :param notifiers: called when the question is asked, such as Airflow notifiers
    """

    notifiers: Callable[[Context], object] | Sequence[Callable[[Context], object]] = fixed(kinds.NEEDED, default=())

    # The answer, of a task that goes on with one.
    _answer: Answer | None = None

    def execute_approved(
        self,
        context: Context,
        event: Mapping[str, Any],
        population: str,
        asked_at: str,
        due_at: str,
        notified: Sequence[str],
    ) -> Any:
        """
        Continue with the answer, or the error if there is none, to a question.

        :param population: digest of the population that was asked about
        :param asked_at: when it was asked
        :param due_at: until when it could be answered
        :param notified: the names of the notifiers that were called then
        """
        from airflow_provider_workspace.access.reviews.evidence import Answer

        self._answer = Answer(event=event, asked=population, asked_at=asked_at, due_at=due_at, notified=tuple(notified))
        return self.execute(context)

    def work(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.access.reviews.folder import DECISIONS

        evidence = self.evidence_of_run
        folder = evidence.folder
        if self._answer is None:
            folder.raise_if_of_others(DECISIONS)
        review = self.open(hook, 1, decisions=folder.own_digest(DECISIONS))
        decided = review.decisions
        assert review.population is not None  # noqa: S101 - open() refuses a review without one
        if self._answer is not None:
            # Also if somebody has decided already: then this answer is another one, and is refused.
            answer_rules = self._answer_rules(review.population)
            rules = self.rules()
            decided = evidence.decide(review.population, self._answer, answer_rules, rules)
        elif decided is None:
            self._ask(hook, evidence, review.population, review.population_sha256)
        else:
            when, who = decided.decided_at, decided.by.name
            self.log.info("Decided at %s by %s; start a new run to decide again.", when, who)
        counts = Counter(map(str, decided.decisions.values()))
        return {
            "folder": str(folder),
            "by": decided.by.model_dump(),
            "at": decided.decided_at,
            "counts": dict(counts),
            DECISIONS_SHA256: folder.digest(DECISIONS),
        }

    def _answer_rules(self, population: Population) -> AnswerRules:
        """Return who may answer."""
        from airflow_provider_workspace.access.rules.answers import AnswerRules

        return AnswerRules(
            approvers=tuple(self.reviewers),
            about=population.emails,
            allow_self_approval=self.allow_self_approval,
        )

    def _names_of_notifiers(self) -> list[str]:
        """Return the names of the notifiers, without their arguments, which may hold secrets."""
        notifiers = [self.notifiers] if callable(self.notifiers) else self.notifiers
        names: list[str] = []
        for notifier in notifiers:
            function = notifier.func if isinstance(notifier, partial) else notifier
            named = function if hasattr(function, "__qualname__") else type(function)
            names.append(f"{named.__module__}.{named.__qualname__}")
        return names

    def _ask(self, hook: WorkspaceHook, evidence: Evidence, population: Population, digest: str) -> NoReturn:
        from airflow_provider_workspace.access.reviews.answer import form_of, question_of
        from airflow_provider_workspace.access.reviews.evidence import DONE_OPTION
        from airflow_provider_workspace.api.timestamps import to_second
        from airflow_provider_workspace.errors import WorkspaceInputError

        if not shows_forms():
            raise WorkspaceInputError(
                "Upgrade Airflow to 3.1.1 or later: 3.1.0 shows no form under Required Actions, so nobody could answer"
            )
        self._answer_rules(population).raise_if_nobody_may_answer()
        subject = f"Who keeps access to {describe_organization(hook.client.settings, population.organization_id)}?"
        body = question_of(population, str(evidence.folder))
        if not self.allow_self_approval:
            body = f"{NOT_ABOUT_THEMSELVES}\n\n{body}"
        form = form_of(population, has_file=self.decisions_folder is not None)
        now = datetime.now(timezone.utc)
        due_at = now + timedelta(seconds=self.review_timeout)
        told = {
            "population": digest,
            "asked_at": to_second(now),
            "due_at": to_second(due_at),
            "notified": self._names_of_notifiers(),
        }
        self.log.info("Waiting until everybody is decided, under Required Actions.")
        ask_and_wait(
            self,
            self._context,
            what="access reviewed",
            kwargs=told,
            seconds=self.review_timeout,
            notifiers=self.notifiers,
            users=self.reviewers,
            subject=subject,
            body=body,
            options=[DONE_OPTION],
            params=form,
        )


class WorkspaceApplyDecisionsOperator(WorkspaceAccessReviewOperator, WorkspaceWriteOperator):
    """
    Do what was decided in an access review, where nothing changed since its population was read.

    Scopes ``organization_member:write`` and ``organization_member:read``; for dashboards ``dashboard:write``. Writes
    ``doing-<try>.json`` before it sends anything, and ``done-<try>.json``. People who changed meanwhile are left as
    they are; the task fails and names them.

    Before anything is sent, the decisions about members and invites who are lowered or removed are noted in a Variable
    (since Airflow 3.3): a sync, an organization file and the end of temporary access give nobody more than that.
    Temporary access does not count for a decision: *lower* is done at its end, and *remove* ends it, unless it was
    given after the decision.
    """

    has_own_dry_run = True

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.access.reviews.outcome import counts_of
        from airflow_provider_workspace.errors import WorkspaceError
        from airflow_provider_workspace.procedures.apply_plan import apply
        from airflow_provider_workspace.procedures.invites import wait_for_consistency

        evidence = self.evidence_of_run
        review = self.open(hook, 2)
        population = review.population
        decisions = review.decisions
        assert population is not None  # noqa: S101 - open() refuses a review without them
        assert decisions is not None  # noqa: S101
        rules = self.rules()
        planned: PlannedReview | None = None
        failed: WorkspaceError | None = None
        notes = self.access_notes(hook)
        try:
            wait_for_consistency(hook.client, self.task_state)
            planned = self._plan(hook, population, decisions)
            plan = planned.plan
            self.log.info("%s", plan.table())
            plan.check_losses(self.max_removals)
        except WorkspaceError as error:
            number = evidence.folder.next_number()
            evidence.end_try(number, planned, error, rules, dry_run=self.is_dry_run)
            raise
        # Outside of both: where another worker has begun, its files say what is done.
        number = evidence.folder.next_number()
        evidence.begin_try(number, planned, rules, dry_run=self.is_dry_run)
        try:
            if self.is_dry_run:
                return plan.to_dict()
            if not self._noted.has_begun(NOTED):
                notes.reviews.note(self.note(hook, population, decisions))
                self._noted.begin(NOTED)
            organization_id = self.where(hook)["organization_id"]
            invite = partial(self.invite_people, hook=hook, organization_id=organization_id)
            apply(hook.client, plan, invite, lambda: self._plan(hook, population, decisions).plan)
            notes.settle(plan)
        except WorkspaceError as error:
            failed = error
        outcomes = evidence.end_try(number, planned, failed, rules, dry_run=self.is_dry_run)
        counts = counts_of(outcomes)
        files = evidence.folder.own_files()
        return {"folder": str(evidence.folder), "counts": counts, FILES: files}

    def _plan(self, hook: WorkspaceHook, population: Population, decisions: Decisions) -> PlannedReview:
        """Return what the decisions change, as things are now."""
        from airflow_provider_workspace.access.reviews.evidence import members_seen
        from airflow_provider_workspace.access.reviews.outcome import plan_decisions

        noted = self.access_notes(hook).read()
        present = self.read_now(hook, noted=noted)
        seen = members_seen(self.evidence_of_run.folder)
        note = self.note(hook, population, decisions)
        noted_as = note.key if self._noted.has_begun(NOTED) else ""
        return plan_decisions(
            hook.client, population, decisions, present=present, noted=noted, seen=seen, noted_as=noted_as
        )

    @property
    def _noted(self) -> TaskState:
        """The task state that says that the decisions were noted."""
        from airflow_provider_workspace.notes.task_state import TaskState

        return TaskState(self._context, self._carried, dry_run=self.is_dry_run, key=NOTED)


class WorkspaceCloseReviewOperator(WorkspaceAccessReviewOperator):
    """
    Prove what was done in an access review, and close its evidence. Scope ``organization_member:read``.

    Reads once more who has access (``last_look.json``), and writes the page for people (``review.md``) and, last,
    ``review.json`` with the digests of all files, whose own digest goes to ``digests``. The task fails unless everybody
    was decided about, and all of it is done. After a complete review, what earlier reviews decided about the same
    people no longer counts. The task is skipped if the review was not due: a branch or a short circuit skipped
    ``read_task_id``, and nothing was read.

    :param apply_task_id: the task that does what was decided; its result has the digests of what it wrote. ``None`` to
        take these files as they are there
    """

    apply_task_id: str | None = fixed(kinds.TASK_ID, default=None)

    def execute(self, context: Context) -> Any:
        """Close the review, unless it was not due."""
        self._context = context
        if self._first_task_was_skipped() and not self.evidence_of_run.folder.names():
            raise AirflowSkipException("The review was not due: its first task was skipped, and nothing was read.")
        return super().execute(context)

    def _first_task_was_skipped(self) -> bool:
        from airflow_provider_workspace.operators.windows import states_beside

        if self.read_task_id is None:
            return False
        run = states_beside(self._context["ti"], [self.read_task_id])
        return "skipped" in run.states(self.read_task_id, "(_[0-9]+)?")

    def work(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.access.reviews.closing import ReviewClosing
        from airflow_provider_workspace.access.reviews.folder import REVIEW
        from airflow_provider_workspace.access.reviews.notes import everybody_in
        from airflow_provider_workspace.access.rules.review_records import COMPLETE, ClosedReview

        evidence = self.evidence_of_run
        folder = evidence.folder
        opened = self.open(hook)
        review, digest = folder.read(REVIEW, ClosedReview, folder.own_digest(REVIEW))
        if review is None:
            earlier_files = self._files_of_earlier_tasks()
            closing = ReviewClosing(folder, opened, earlier_files)
            facts = self._facts(hook)
            review, digest = closing.close(partial(self.read_now, hook), facts)
        evidence.keep_digest(digest)
        if review.state == COMPLETE and opened.population and opened.decisions:
            note = self.note(hook, opened.population, opened.decisions)
            self.access_notes(hook).reviews.settle(note, everybody_in(opened.population))
        # Also of a task that fails, which has no result.
        said = "The review is %s, closed at %s. SHA-256 of review.json: %s"
        self.log.info(said, review.state, review.closed_at, digest)
        if review.state != COMPLETE:
            evidence.raise_if_open(review.state, list(review.missing))
        return {"folder": str(folder), "state": review.state, REVIEW_SHA256: digest}

    def _files_of_earlier_tasks(self) -> dict[str, str]:
        """Return the digests of files that no other digest is checked by, as the results of earlier tasks have them."""
        files: dict[str, str] = {}
        for task_id in (self.read_task_id, self.apply_task_id):
            files |= self._result_of(task_id).get(FILES) or {}
        return files

    def _facts(self, hook: WorkspaceHook) -> dict[str, Any]:
        """Return what the evidence says of this run."""
        ti = self._context["ti"]
        airflow_url = conf.get("api", "base_url", fallback="")
        return {
            "dag_id": ti.dag_id,
            "run_id": ti.run_id,
            "package": f"airflow-provider-workspace {__version__}",
            "airflow": airflow_url or "not set ([api] base_url)",
            "rules": self.rules(),
            "are_noted": lists_variables(),
            **self.where(hook),
        }


class WorkspaceLiftDecisionOperator(OfOrganization, WorkspaceApprovalMixin):
    """
    Lift what access reviews decided about a person; nothing is sent. Scope ``organization_member:read``.

    The next sync then gives what the roster says. Who lifted the decision, when and why is noted in the Variable of the
    review, until its end: ``airflow workspace decisions`` shows it, and the next review has it in its population.
    Needs Airflow 3.3. Without ``require_approval=False``, a person is asked first, who neither started the run nor is
    whom it is about.

    A task that finds no decision about the person fails, because the address may be misspelt. A decision that was
    lifted before stays as it was.

    The result has all decisions about the person: ``{"lifted": [{"who", "decision", "review", "reviewer", "by", "at",
    "reason", "approved_by"}]}``.

    :param user_email: address of the person or id, as ``airflow workspace decisions`` shows it
    :param reason: why, for the people who approve it and for the next review; at most 500 characters
    """

    resource_kind = "reviews"
    has_own_dry_run = True
    user_email: Arg[str] = arg(kinds.NAME)
    reason: Arg[str] = arg(kinds.NAME)
    require_approval: Arg[bool] = arg(kinds.SWITCH, default=True)
    allow_self_approval: bool = fixed(kinds.FLAG, default=False)

    def write(self, hook: WorkspaceHook) -> dict[str, Any]:
        from airflow_provider_workspace.access.reviews import notes
        from airflow_provider_workspace.access.reviews.outcome import plan_lift

        organization_id = hook.organization_or_default(self.organization_id)
        registry = notes.ReviewRegistry(notes.REVIEW_VARIABLES)
        decisions = registry.decisions_about(self.user_email, organization_id, hook.client.settings.base_url)
        plan = plan_lift(hook.client, organization_id, decisions, self.reason)
        by = self.answer_rules(plan, ()).requester or self.initiator
        approval = self._approval()
        lift = notes.lift_of(by, self.reason, approval.approver if approval else "")
        self.log.info("%s", plan.table())
        place = describe_organization(hook.client.settings, organization_id)
        people = self._people(hook, organization_id, decisions)
        facts = {"About": self.user_email, "Why": self.reason}
        self.await_approval(f"Lift the decision of an access review in {place}?", plan, facts=facts, about=people)
        if self.is_dry_run:
            return plan.to_dict()
        lifted = registry.lift(decisions, lift)
        for decision in lifted:
            self.log.info("%s", decision.lifting)
        return {"lifted": [decision.lifted_row for decision in lifted]}

    def _people(self, hook: WorkspaceHook, organization_id: str, decisions: Sequence[ReviewDecision]) -> list[str]:
        """Return the addresses of whom it is about: in the notes, and those that their users have by now."""
        from airflow_provider_workspace.api.operations.members import ListMembers
        from airflow_provider_workspace.procedures.find import read_rows

        members = read_rows(hook.client, ListMembers(organization_id=organization_id))
        users = {decision.person.user_uuid for decision in decisions if decision.person.user_uuid}
        noted = [decision.person.email for decision in decisions]
        now = [member.email_address for member in members if member.user_uuid in users]
        return [self.user_email, *filter(None, noted + now)]
