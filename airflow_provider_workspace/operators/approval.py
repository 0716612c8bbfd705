"""Ask a person to approve a plan under **Required Actions**, and send only what was approved."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from airflow_provider_workspace.operators.arguments import (
    FLAG,
    NEEDED,
    OPTIONAL_NAME,
    SECONDS_FROM_ONE,
    SWITCH,
    USERS,
    Arg,
    arg,
    fixed,
    read_arguments,
)
from airflow_provider_workspace.operators.base import WorkspaceWriteOperator
from airflow_provider_workspace.version_compat import AirflowFailException, AirflowSkipException, shows_forms

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_workspace.access.approvals import Approval
    from airflow_provider_workspace.access.rules.answers import AnswerRules
    from airflow_provider_workspace.client.settings import Settings
    from airflow_provider_workspace.notes.task_state import TaskState
    from airflow_provider_workspace.procedures.plan import Change, Plan

REJECT = "Reject"
LEAVING_OUT = "To leave out changes, choose them before you approve. With nothing chosen, all are sent."
NOT_LEAVING_OUT = "Here you can only approve the whole plan: Airflow cannot show a list of its changes to leave out."
TOO_MANY_TO_CHOOSE = "Here you can only approve the whole plan: it has more than {} changes, too many to choose from."


class WorkspaceApprovalMixin(WorkspaceWriteOperator):
    """
    Base of the operators that can ask a person for approval before they write.

    The question names the service and the organization and shows the plan, and each answer names its plan. An approval
    covers what is sent and the values it starts from. If either has changed when the plan is approved, the task names
    the changes, fails and sends nothing. The approval is kept in the task state (Airflow 3.3), so a retry continues
    with it; before 3.3, a retry asks again about the remaining changes. A cleared task asks again.

    Whatever Airflow permits, the task also checks who answered: one of the ``approvers`` and, without
    ``allow_self_approval``, neither the person who asks nor anybody whom the plan is about. The person who asks is
    whoever started the run, and ``requested_by``. Any other answer fails the task, which sends nothing.

    Whoever approves may leave out changes, up to 200 of which the question shows as choices. What is left out is not
    sent, and is *by hand* in the plan, with who left it out and when.

    The XCom ``approved`` has ``plan``, ``by`` and ``by_id`` (name and id of the Airflow user), ``at``,
    ``requested_by``, ``self_approved`` and ``left_out`` (names).

    :param require_approval: show the plan under **Required Actions** in the Airflow UI, and send it only after a person
        approves it. An empty plan needs no approval
    :param approvers: ids of the Airflow users who may answer; one answer is enough. By default, every user whose role
        permits it
    :param requested_by: who asks, if a bot or a schedule starts the run: an Airflow user, or the address of a person
    :param allow_self_approval: whether the person who asks, or anybody whom the plan is about, may approve it. If not,
        and Airflow does not say who asks, ``approvers`` are needed
    :param approval_timeout: how long to wait for the answer; then the task fails. By default, there is no limit
    :param fail_on_reject: whether a rejected task fails. By default, it is skipped, with the tasks that depend on it
    :param notifiers: called when the question is asked, such as Airflow notifiers
    """

    require_approval: Arg[bool] = arg(SWITCH, default=False)
    approvers: Arg[Sequence[str] | None] = arg(USERS, default=None)
    requested_by: Arg[str | None] = arg(OPTIONAL_NAME, default=None)
    allow_self_approval: bool = fixed(FLAG, default=True)
    approval_timeout: Arg[timedelta | float | None] = arg(SECONDS_FROM_ONE, default=None)
    fail_on_reject: Arg[bool] = arg(SWITCH, default=False)
    notifiers: Callable[[Context], object] | Sequence[Callable[[Context], object]] = fixed(NEEDED, default=())

    may_leave_out: ClassVar[bool] = False
    """Whether the approver may leave out changes."""

    def execute(self, context: Context) -> Any:
        """Ask for approval, or do what was approved."""
        result = super().execute(context)
        if self.require_approval:
            self._approval_state.forget()
        return result

    def execute_approved(
        self,
        context: Context,
        event: Mapping[str, Any],
        plan: str,
        changes: list[str],
        rules: Any,
        choices: Mapping[str, list[str]] | None = None,
    ) -> Any:
        """
        Continue with the answer.

        :param event: the answer, or the error if there is none
        :param plan: digest of the plan in the question
        :param changes: digests of its changes
        :param rules: who may answer
        :param choices: digests of what may be left out, with what falls with it, by what the question says
        """
        from airflow_provider_workspace.access.approvals import Approval, read_left_out
        from airflow_provider_workspace.access.rules.answers import AnswerRules
        from airflow_provider_workspace.errors import WorkspaceInputError, with_class, with_problem

        self._context = context
        if "error" in event:
            is_late = event.get("error_type") == "timeout"
            why = "Nobody answered in time" if is_late else f"Airflow returned no answer ({event['error']})"
            msg = f"{why}; nothing was sent. Clear the task to ask again about plan {plan}"
            raise AirflowFailException(with_problem(msg, "not-answered"))
        answer_rules = AnswerRules.read(rules)
        if answer_rules is None:
            why = "Another release of this package asked, and did not say who may answer"
            msg = f"{why}; nothing was sent. Clear the task to ask again about plan {plan}"
            raise AirflowFailException(with_problem(msg, "approval-stale"))
        answers = event.get("chosen_options")
        try:
            answerer = answer_rules.judge(event.get("responded_by_user"), approves=answers != [REJECT])
            left_out = read_left_out(event.get("params_input"), choices or {})
        except WorkspaceInputError as error:
            raise AirflowFailException(with_class(error)) from None
        if answers == [REJECT]:
            self._reject(f"{answerer} rejected plan {plan}. Nothing was sent")
        approve = _approve_option(plan)
        if answers != [approve]:
            msg = (
                f"{answerer} answered {answers}, expected ['{approve}'] or ['{REJECT}']; nothing was sent. Start a new "
                f"run to be asked about plan {plan}"
            )
            raise AirflowFailException(with_problem(msg, "answer-refused"))
        is_requester = answer_rules.is_requester(answerer)
        self.log.info("%s%s approved plan %s.", answerer, ", who also asked for it," if is_requester else "", plan)
        approval = Approval(
            plan=plan,
            changes=[digest for digest in changes if digest not in left_out],
            left_out=left_out,
            by=answerer.name,
            by_id=answerer.id,
            at=str(event.get("responded_at")),
            requested_by=answer_rules.requester,
            self_approved=is_requester,
            max_tries=self._max_tries,
            clear_number=self._clear_number,
        )
        self._approval_state.write(approval.to_dict())
        return self.execute(context)

    def _reject(self, why: str) -> NoReturn:
        from airflow_provider_workspace.errors import with_problem

        read_arguments(self)  # execute has not run since the answer
        self.log.warning("%s", why)  # Airflow does not log why a task is skipped
        if self.fail_on_reject:
            raise AirflowFailException(with_problem(why, "plan-rejected"))
        raise AirflowSkipException(why)

    def await_approval(
        self,
        subject: str,
        plan: Plan,
        report: object = None,
        *,
        facts: Mapping[str, str] | None = None,
        about: Sequence[str] = (),
    ) -> None:
        """
        Return if these changes are approved or need no approval; else ask, and defer the task.

        What the approver left out is then left out of the plan. Call it before the first write, in each try.

        :param subject: headline of the question
        :param report: the file with the plan, if there is one
        :param facts: what the question says above the plan, by name; texts of others
        :param about: addresses of people whom it is about, besides those of the changes
        :raises WorkspaceInputError: if a change was not approved, the rest may not be sent without what was left out,
            or the question cannot be asked
        """
        from airflow_provider_workspace.errors import WorkspaceInputError

        if not self.require_approval or self.is_dry_run:
            return
        approval = self._approval()
        if approval is None:
            if not any(change.sends for change in plan.changes):
                return
            self._ask(subject, plan, report=report, facts=facts or {}, about=about)
        cure = "Start a new run to have the plan approved as it is now"
        try:
            approval.leave_out_of(plan)
            plan.check_approved(approval.changes, cure, f"plan {approval.plan}, which {approval.approver} approved")
        except WorkspaceInputError:
            self.task_state.forget()  # first: without an approval it forgets nothing
            self._approval_state.forget()
            raise
        for change in plan.changes:
            if change.left_out:
                self.log.warning("Not sent: %s", change.line().strip())
        self.push_approval(plan.changes)

    def push_approval(self, changes: Sequence[Change] = ()) -> None:
        """Push what was approved, if anything was, in each try: Airflow deletes the XComs of earlier tries."""
        approval = self._approval()
        if approval and self.do_xcom_push:
            self.push_xcom("approved", approval.described(changes))

    @property
    def approved_by(self) -> str:
        """Who approved it, for people; empty if nobody has."""
        approval = self._approval()
        return approval.approver if approval else ""

    @property
    def sent_by(self) -> str:
        """Who sends, for people: this try, and who approved it."""
        approval = self._approval()
        approved = f", approved by {approval.approver} at {approval.at}" if approval else ""
        return super().sent_by + approved

    @property
    def task_state(self) -> TaskState:
        """The state of the task across its tries; empty until the plan is approved."""
        from airflow_provider_workspace.notes.task_state import TaskState

        asks = self.require_approval and self._approval() is None
        return TaskState(self._context, self._carried, dry_run=self.is_dry_run or asks, clock=time.time)

    def answer_rules(self, plan: Plan, about: Sequence[str]) -> AnswerRules:
        """
        Return who may answer.

        :param about: addresses of people whom it is about, besides those of the changes
        """
        from airflow_provider_workspace.access.rules.answers import AnswerRules

        people: list[str] = []
        if not self.allow_self_approval:
            people += about
            people += [change.person for change in plan.changes if change.sends and change.person]
        return AnswerRules(
            approvers=tuple(self.approvers or ()),
            started_by=self.started_by,
            requested_by=self.requested_by or "",
            about=tuple(people),
            allow_self_approval=self.allow_self_approval,
        )

    @property
    def started_by(self) -> str:
        """The Airflow user who started the Dag run; empty for a schedule, and if Airflow does not say it (3.1.0)."""
        return str(getattr(self._context.get("dag_run"), "triggering_user_name", None) or "")

    def _ask(
        self, subject: str, plan: Plan, *, report: object, facts: Mapping[str, str], about: Sequence[str]
    ) -> NoReturn:
        from airflow_provider_workspace.access.approvals import MAX_CHOICES, changes_to_leave_out, leave_out_form
        from airflow_provider_workspace.procedures.plan import make_digest

        rules = self.answer_rules(plan, about)
        rules.raise_if_nobody_may_answer()
        covered = [change for change in plan.changes if not change.left_out]
        digests = sorted(filter(None, (change.approval_digest(plan.planned_for) for change in covered)))
        name = make_digest(digests)[-8:]
        self.log.info("Waiting until plan %s is approved, under Required Actions.", name)
        introduction = introduce(rules, facts, self.approval_timeout)
        choices: dict[str, list[str]] = {}
        if self.may_leave_out:
            choices = changes_to_leave_out(plan) if shows_forms() else {}
            is_too_long = sum(change.sends for change in plan.changes) > MAX_CHOICES
            no_list = TOO_MANY_TO_CHOOSE.format(MAX_CHOICES) if is_too_long else NOT_LEAVING_OUT
            introduction += [LEAVING_OUT if choices else no_list, ""]
        ask_and_wait(
            self,
            self._context,
            what=f"plan {name} approved",
            kwargs={"plan": name, "changes": digests, "rules": rules.to_dict(), "choices": choices},
            seconds=self.approval_timeout,
            notifiers=self.notifiers,
            users=self.approvers or [],
            subject=subject,
            body=question(introduction, plan, name=name, changes=len(digests), report=report),
            options=[_approve_option(name), REJECT],
            params=leave_out_form(choices),
        )

    def _approval(self) -> Approval | None:
        """Return the approval; ``None`` if none is required, or there is none since the task was cleared last."""
        from airflow_provider_workspace.access.approvals import Approval

        if not self.require_approval:
            return None
        approval = Approval.read(self._approval_state.read())
        if approval is None or (approval.max_tries, approval.clear_number) != (self._max_tries, self._clear_number):
            return None
        return approval

    @property
    def _clear_number(self) -> int | None:
        """How often tasks of the run have been cleared."""
        return getattr(self._context.get("dag_run"), "clear_number", None)

    @property
    def _approval_state(self) -> TaskState:
        """The task state with the approval."""
        from airflow_provider_workspace.access.approvals import APPROVAL
        from airflow_provider_workspace.notes.task_state import TaskState

        return TaskState(self._context, self._carried, dry_run=self.is_dry_run, key=APPROVAL)


def ask_and_wait(
    task: Any,
    context: Any,
    *,
    what: str,
    kwargs: dict[str, Any],
    seconds: float | None,
    notifiers: Any,
    **question: Any,
) -> NoReturn:
    """
    Ask a person, and defer the task until it goes on in ``execute_approved``.

    :param what: what a new run would have, for messages
    :param kwargs: for ``execute_approved``
    :param seconds: how long the question waits for its answer; ``None`` without a limit
    :param notifiers: what to call when the question is asked
    :param question: see :func:`~airflow_provider_workspace.version_compat.ask_person`
    :raises WorkspaceInputError: if Airflow still shows another question
    """
    from airflow_provider_workspace.errors import WorkspaceInputError
    from airflow_provider_workspace.version_compat import ask_person, await_answer

    ti_id = context["ti"].id
    options = question["options"]
    asked = ask_person(ti_id, **question)
    if asked != options:
        msg = f"Airflow still shows the question of an earlier try ({asked[0]}). Start a new run to have {what}"
        raise WorkspaceInputError(msg, problem="question-of-earlier-try")
    for notify in [notifiers] if callable(notifiers) else notifiers:
        notify(context)
    await_answer(
        task,
        ti_id,
        options=options,
        seconds=seconds,
        method_name="execute_approved",
        kwargs=kwargs,
        params=question["params"],
    )


def describe_organization(settings: Settings, organization_id: str, name: str = "") -> str:
    """Return the service and an organization for people."""
    from airflow_provider_workspace.errors import visible

    return f"organization {f'{visible(name)} ({organization_id})' if name else organization_id} at {settings.base_url}"


def _approve_option(plan: str) -> str:
    return f"Approve plan {plan}"


def introduce(rules: AnswerRules, facts: Mapping[str, str], seconds: float | None) -> list[str]:
    """
    Return Markdown that says who asks, what for, and who may not approve it; each fact has a line, which wraps.

    :param facts: texts of others, by name
    :param seconds: how long the question waits for its answer; ``None`` without a limit
    """
    from airflow_provider_workspace.api.timestamps import for_people
    from airflow_provider_workspace.procedures.markdown import inert

    told = {"Asked by": rules.requester or "not known (no user started this run, or Airflow does not say who)", **facts}
    if seconds is not None:
        told["Answer until"] = for_people(time.time() + seconds)
    lines = [f"- **{name}**: {inert(text)}" for name, text in told.items()]
    if not rules.allow_self_approval:
        lines += ["", "Nobody approves their own request: not who asks, and not whom it is about."]
    return [*lines, ""]


def question(introduction: list[str], plan: Plan, *, name: str, changes: int, report: object = None) -> str:
    """
    Return the Markdown body of a question, short enough for every database.

    :param introduction: lines of Markdown above the plan
    :param changes: number of changes that are approved
    :param report: a file with the plan, if there is one
    """
    from airflow_provider_workspace.procedures.markdown import fit
    from airflow_provider_workspace.procedures.plan import counted
    from airflow_provider_workspace.procedures.plan_markdown import plan_lines

    lines = [*introduction, *plan_lines(plan)]
    body = fit(lines)
    hidden = len(lines) - len(body)
    body.append("")
    approved = f"{counted(changes, 'change', 'changes')}, plan {name}"
    if hidden:
        where = f"in the log of the task and in {report}" if report else "in the log of the task"
        body += [f"**{hidden} of {len(plan.changes)} rows are not shown here.** Read them {where}.", ""]
        approved += ", also those that are not shown"
    body.append(f"**Approve** sends what is in this plan ({approved}) and nothing else. **Reject** sends nothing.")
    return "\n".join(body)
