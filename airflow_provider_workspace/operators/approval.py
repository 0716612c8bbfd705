"""Ask a person to approve a plan under **Required Actions**, and send only what was approved."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from airflow_provider_workspace.operators.base import WorkspaceWriteOperator
from airflow_provider_workspace.version_compat import AirflowFailException, AirflowSkipException

if TYPE_CHECKING:
    from airflow.sdk import Context, XComArg

    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.procedures.dry_run import Planned
    from airflow_provider_workspace.procedures.member_sync import MemberPlan
    from airflow_provider_workspace.procedures.organization_plan import OrganizationPlan
    from airflow_provider_workspace.state.task_state import TaskState

REJECT = "Reject"
# Key of the approval in the task state.
GRANT = "airflow_provider_workspace_approved"
# MySQL stores up to 65,535 bytes.
MAX_BODY = 60_000


class WorkspaceApprovalMixin(WorkspaceWriteOperator):
    """
    Base of the operators that can ask a person for approval before they write.

    The question shows the plan, and each answer names its plan. If the plan has changed when it is approved, the task
    fails and sends nothing. The approval is kept in the task state (Airflow 3.3), so a retry continues with it; before
    3.3 a retry asks again about the remaining changes. A cleared task asks again.

    The XCom ``approved`` has ``plan``, ``by`` and ``at``.

    :param require_approval: whether to show the plan under **Required Actions** in the Airflow UI, and send it only
        after a person approves it. An empty plan needs no approval
    :param approvers: ids of the Airflow users who may answer; one answer is enough. By default every user whose role
        permits it
    :param approval_timeout: how long to wait for the answer, a timedelta or seconds; then the task fails. By default
        there is no limit
    :param fail_on_reject: whether a rejected task fails. By default it is skipped, with the tasks that depend on it
    :param notifiers: callables that are called when the question is asked, such as Airflow notifiers
    """

    template_fields: Collection[str] = (*WorkspaceWriteOperator.template_fields, "approvers", "approval_timeout")
    switches: Collection[str] = (*WorkspaceWriteOperator.switches, "require_approval", "fail_on_reject")

    def __init__(
        self,
        *,
        require_approval: bool | str | XComArg = False,
        approvers: Sequence[str] | str | XComArg | None = None,
        approval_timeout: timedelta | float | str | XComArg | None = None,
        fail_on_reject: bool | str | XComArg = False,
        notifiers: Callable[[Context], object] | Sequence[Callable[[Context], object]] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.require_approval: Any = require_approval
        self.approvers: Any = approvers
        self.approval_timeout: Any = approval_timeout
        self.fail_on_reject: Any = fail_on_reject
        self.notifiers = notifiers

    def execute(self, context: Context) -> Any:
        """Ask for approval, or do what was approved."""
        result = super().execute(context)
        if self.require_approval:
            self._grant.forget()
        return result

    def execute_approved(self, context: Context, event: Mapping[str, Any], plan: str, changes: list[str]) -> Any:
        """
        Continue with the answer.

        :param event: the answer, or the error if there is none
        :param plan: digest of the plan in the question
        :param changes: digests of its changes
        """
        self._context = context
        if "error" in event:
            why = "nobody answered in time" if event.get("error_type") == "timeout" else event["error"]
            raise AirflowFailException(f"Clear the task to ask again: {why}. Nothing was sent of plan {plan}")
        (answer,) = event["chosen_options"]
        user = event.get("responded_by_user") or {}
        who = user.get("name") or user.get("id") or "somebody"
        if answer == REJECT:
            from airflow_provider_workspace.operators.arguments import read_arguments

            read_arguments(self)  # execute has not run since the answer
            end = AirflowFailException if self.fail_on_reject else AirflowSkipException
            raise end(f"Nothing was sent: {who} rejected plan {plan}")
        if answer != _approve_option(plan):
            raise AirflowFailException(
                f"Start a new run to be asked about plan {plan}: {who} answered '{answer}'. Nothing was sent"
            )
        self.log.info("%s approved plan %s.", who, plan)
        at = str(event["responded_at"])
        self._grant.write({"plan": plan, "changes": changes, "by": who, "at": at, "max_tries": self._max_tries})
        return self.execute(context)

    def await_approval(self, subject: str, plan: str, changes: Sequence[Any]) -> None:
        """
        Return if these changes are approved or need no approval; else ask, and defer the task.

        Call it before the first write, in each try.

        :param subject: headline of the question
        :param plan: the changes for people, in lines
        :param changes: for each change the parts that must not change after an approval, as plain JSON
        :raises WorkspaceInputError: if a change was not approved, or the question cannot be asked
        """
        from airflow_provider_workspace.errors import WorkspaceInputError

        if not changes or not self.require_approval or self.is_dry_run:
            return
        digests = sorted(digest([*self._place, subject, change]) for change in changes)
        granted = self._granted()
        if granted is None:
            self._ask(subject, plan, digests)
        new = len(set(digests) - set(granted["changes"]))
        if new:
            self.task_state.forget()  # first: without a grant it forgets nothing
            self._grant.forget()
            raise WorkspaceInputError(
                f"Start a new run to have the plan approved as it is now: {new} of {len(changes)} changes were not in "
                f"plan {granted['plan']}, which {granted['by']} approved"
            )
        if self.do_xcom_push:  # in each try: Airflow deletes the XComs of earlier tries
            self._context["ti"].xcom_push(key="approved", value={name: granted[name] for name in ("plan", "by", "at")})

    def work(self, hook: WorkspaceHook) -> Any:
        """Run the procedure; if it has no plan of its own, ask about its write."""
        self._approval_seconds()
        settings = hook.client.settings
        # What was approved for one organization is not for another, where the connection may lead by then.
        self._place = (settings.base_url, settings.organization_id, settings.project_id)
        if self.has_own_dry_run or self.is_dry_run or not self.require_approval:
            return super().work(hook)
        from airflow_provider_workspace.procedures.dry_run import check_writes

        return self.run_procedure(hook, check_writes(self.procedure(hook), self._await_approval_of))

    @property
    def task_state(self) -> TaskState:
        """The state of the task across its tries; empty until the plan is approved."""
        from airflow_provider_workspace.state.task_state import TaskState

        asks = self.require_approval and self._granted() is None
        return TaskState(self._context, self._carried, dry_run=self.is_dry_run or asks, clock=time.time)

    def _await_approval_of(self, planned: Planned) -> None:
        plan = planned.to_dict(return_secrets=False)
        lines = [f"{plan['action']}  {plan['request']}", f"  why: {plan['why']}"]
        lines += [f"  {name}: {json.dumps(value)}" for name, value in plan["fields"].items()]
        fields = planned.to_dict(return_secrets=True)["fields"]
        text = "\n".join(lines)
        self.log.info("%s", text)
        self.await_approval("Send this change to the workspace?", text, [[plan["request"], fields]])

    def _ask(self, subject: str, plan: str, digests: list[str]) -> NoReturn:
        from airflow_provider_workspace.errors import WorkspaceInputError
        from airflow_provider_workspace.operators.arguments import parse_names
        from airflow_provider_workspace.version_compat import ask_person, await_answer

        seconds = self._approval_seconds()
        name = digest(digests)[:8]
        options = [_approve_option(name), REJECT]
        ti_id = self._context["ti"].id
        asked = ask_person(
            ti_id,
            options=options,
            subject=subject,
            body=question(plan, name, len(digests)),
            users=parse_names("approvers", self.approvers),
        )
        if asked != options:
            raise WorkspaceInputError(
                f"Start a new run to have plan {name} approved: Airflow still shows the question of an earlier try "
                f"({asked[0]})"
            )
        self.log.info("Waiting until plan %s is approved, under Required Actions.", name)
        for notify in [self.notifiers] if callable(self.notifiers) else self.notifiers:
            notify(self._context)
        await_answer(
            self, ti_id, options, seconds, method_name="execute_approved", kwargs={"plan": name, "changes": digests}
        )

    def _granted(self) -> Mapping[str, Any] | None:
        """Return the approval; ``None`` if there is none since the task was cleared last."""
        grant = self._grant.read()
        return grant if isinstance(grant, Mapping) and grant.get("max_tries") == self._max_tries else None

    @property
    def _grant(self) -> TaskState:
        """The task state with the approval."""
        from airflow_provider_workspace.state.task_state import TaskState

        return TaskState(self._context, self._carried, dry_run=self.is_dry_run, key=GRANT)

    @property
    def _max_tries(self) -> int | None:
        """The number of tries of the task, which increases each time it is cleared."""
        return getattr(self._context.get("ti"), "max_tries", None)

    def _approval_seconds(self) -> float | None:
        """Return the seconds to wait for an answer; ``None`` for no limit."""
        if self.approval_timeout is None:
            return None
        from airflow_provider_workspace.operators.arguments import parse_seconds

        return parse_seconds("approval_timeout", self.approval_timeout, least=1)


def digest(value: Any) -> str:
    """Return a digest of plain JSON, 12 characters."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def check_approved(approved: Any, plan: MemberPlan | OrganizationPlan, now: str, task: str) -> None:
    """
    Refuse a plan with changes that an approved plan does not have.

    :param approved: the approved plan, the result of an earlier task; ``None`` to accept every change
    :param now: the service and organization that are planned for now; the connection may have led elsewhere then
    :param task: the task with the approved plan, for messages
    :raises WorkspaceInputError: if there are such changes, or it is no plan, or one of another organization
    """
    if approved is None:
        return
    from airflow_provider_workspace.errors import WorkspaceInputError

    if not isinstance(approved, Mapping):
        raise WorkspaceInputError(f"Pass the output of {task} as approved: its value is not a plan")
    then = approved.get("planned_for", now)
    if then != now:
        raise WorkspaceInputError(
            f"Plan again, and have it approved: the approved plan is for {then}, and this task is for {now}"
        )
    plan.check_approved(approved)


def _approve_option(plan: str) -> str:
    return f"Approve plan {plan}"


def question(plan: str, name: str, changes: int) -> str:
    """Return the Markdown body of a question, short enough for every database."""
    kept = plan.encode()[:MAX_BODY].decode(errors="ignore").replace("```", "'''")
    if kept != plan.replace("```", "'''"):
        kept = f"{kept[: kept.rfind(chr(10))]}\n… the log of the task has the rest"
    return (
        f"```text\n{kept}\n```\n\n**Approve** sends what is in this plan ({changes} changes, plan {name}) and nothing "
        "else. **Reject** sends nothing."
    )
