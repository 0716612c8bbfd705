"""Ask a person before anything is sent: the plan under **Required Actions**, and then nothing but what was approved."""

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
    from airflow_provider_workspace.state.task_state import TaskState

REJECT = "Reject"
# Where a task remembers what it may send.
GRANT = "airflow_provider_workspace_approved"
# MySQL keeps questions of 65,535 bytes.
MAX_BODY = 60_000


class WorkspaceApprovalMixin(WorkspaceWriteOperator):
    """
    Base of the operators that can ask a person before they write.

    The question shows the plan, and each answer names the plan it is about. If the plan needs something else by the
    time it is approved, the task fails and sends nothing. What was approved is kept in the task state (Airflow 3.3), so
    a retry goes on with it; before 3.3 a retry asks again about what is left. A task that is cleared asks again.

    The XCom ``approved`` says what was approved: ``plan``, ``by``, ``at``.

    :param require_approval: show the plan to a person, under **Required Actions** in the Airflow UI, and send it once
        they approve. Nobody is asked if there is nothing to do
    :param approvers: ids of the Airflow users who may answer; the answer of one is enough. By default everybody may
        whose role allows it
    :param approval_timeout: how long to wait for the answer, a timedelta or seconds; then the task fails. By default
        there is no limit
    :param approval_subject: headline of the question
    :param fail_on_reject: whether a rejected task fails. By default it is skipped, as is what depends on it
    :param notifiers: called when the question is asked, such as one that sends a message to a chat
    """

    template_fields: Collection[str] = (
        *WorkspaceWriteOperator.template_fields,
        "approvers",
        "approval_timeout",
        "approval_subject",
    )
    switches: Collection[str] = (*WorkspaceWriteOperator.switches, "require_approval", "fail_on_reject")

    def __init__(
        self,
        *,
        require_approval: bool | str | XComArg = False,
        approvers: Sequence[str] | str | XComArg | None = None,
        approval_timeout: timedelta | float | str | XComArg | None = None,
        approval_subject: str | XComArg | None = None,
        fail_on_reject: bool | str | XComArg = False,
        notifiers: Callable[[Context], object] | Sequence[Callable[[Context], object]] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.require_approval: Any = require_approval
        self.approvers: Any = approvers
        self.approval_timeout: Any = approval_timeout
        self.approval_subject: Any = approval_subject
        self.fail_on_reject: Any = fail_on_reject
        self.notifiers = notifiers

    def execute(self, context: Context) -> Any:
        """Ask if nobody has approved yet; else do what was approved."""
        result = super().execute(context)
        if self.require_approval:
            self._grant.forget()
        return result

    def execute_approved(self, context: Context, event: Mapping[str, Any], plan: str, changes: list[str]) -> Any:
        """
        Go on with the answer.

        :param event: the answer, or why there is none
        :param plan: digest of the plan that was asked about
        :param changes: digests of its changes
        """
        self._context = context
        if "error" in event:
            why = "nobody answered in time" if event.get("error_type") == "timeout" else event["error"]
            msg = f"Clear the task to ask again: {why}. Nothing was sent of plan {plan}"
            raise AirflowFailException(msg)
        (answer,) = event["chosen_options"]
        user = event.get("responded_by_user") or {}
        who = user.get("name") or user.get("id") or "somebody"
        if answer == REJECT:
            msg = f"Nothing was sent: {who} rejected plan {plan}"
            raise (AirflowFailException if self._fails_on_reject() else AirflowSkipException)(msg)
        if answer != _approve_option(plan):
            msg = f"Start a new run to be asked about plan {plan}: {who} answered '{answer}'. Nothing was sent"
            raise AirflowFailException(msg)
        self.log.info("%s approved plan %s.", who, plan)
        at = str(event["responded_at"])
        self._grant.write({"plan": plan, "changes": changes, "by": who, "at": at, "max_tries": self._max_tries})
        return self.execute(context)

    def await_approval(self, subject: str, plan: str, changes: Sequence[Any]) -> None:
        """
        Return if a person has approved these changes, or none has to; else ask, and leave the worker.

        It is to be called before the first write, each time that the task begins.

        :param subject: headline of the question, unless the author gave one
        :param plan: the changes as people read them, in lines
        :param changes: each change as plain JSON: what of it must stay the same for an approval to hold
        :raises WorkspaceInputError: if there is a change that was not approved, or the question cannot be asked
        """
        from airflow_provider_workspace.errors import WorkspaceInputError

        if not changes or not self.require_approval or self.is_dry_run:
            return
        digests = sorted(digest([*self._place, subject, change]) for change in changes)
        granted = self._granted()
        if granted is None:
            self._ask(self.approval_subject or subject, plan, digests)
        new = len(set(digests) - set(granted["changes"]))
        if new:
            self.task_state.forget()  # first: without a grant it forgets nothing
            self._grant.forget()
            msg = (
                f"Start a new run to have the plan approved as it is now: {new} of {len(changes)} changes were not in "
                f"plan {granted['plan']}, which {granted['by']} approved"
            )
            raise WorkspaceInputError(msg)
        if self.do_xcom_push:  # in each try, for Airflow deletes what earlier ones pushed
            self._context["ti"].xcom_push(key="approved", value={name: granted[name] for name in ("plan", "by", "at")})

    def work(self, hook: WorkspaceHook) -> Any:
        """Carry the procedure out; one that has no plan of its own asks about its write."""
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
        """What this task remembers from try to try; nothing while it only asks."""
        from airflow_provider_workspace.state.task_state import TaskState

        asks = self.require_approval and self._granted() is None
        return TaskState(self._context, self._carried, dry_run=self.is_dry_run or asks, clock=time.time)

    def _await_approval_of(self, planned: Planned) -> None:
        """Ask about a single request."""
        plan = planned.to_dict(return_secrets=False)
        lines = [f"{plan['action']}  {plan['request']}", f"  why: {plan['why']}"]
        lines += [f"  {name}: {json.dumps(value)}" for name, value in plan["fields"].items()]
        fields = planned.to_dict(return_secrets=True)["fields"]
        text = "\n".join(lines)
        self.log.info("%s", text)
        self.await_approval("Send this change to the workspace?", text, [[plan["request"], fields]])

    def _ask(self, subject: str, plan: str, digests: list[str]) -> NoReturn:
        """Put the question, and leave the worker until it is answered."""
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
            msg = (
                f"Start a new run to have plan {name} approved: this Airflow goes on showing the question of an "
                f"earlier try ({asked[0]})"
            )
            raise WorkspaceInputError(msg)
        self.log.info("Waiting until plan %s is approved, under Required Actions.", name)
        for notify in [self.notifiers] if callable(self.notifiers) else self.notifiers:
            notify(self._context)
        await_answer(
            self, ti_id, options, seconds, method_name="execute_approved", kwargs={"plan": name, "changes": digests}
        )

    def _granted(self) -> Mapping[str, Any] | None:
        """Return what was approved; nothing that was approved before the task was cleared."""
        grant = self._grant.read()
        return grant if isinstance(grant, Mapping) and grant.get("max_tries") == self._max_tries else None

    @property
    def _grant(self) -> TaskState:
        """Where the approval is remembered."""
        from airflow_provider_workspace.state.task_state import TaskState

        return TaskState(self._context, self._carried, dry_run=self.is_dry_run, key=GRANT)

    @property
    def _max_tries(self) -> int | None:
        """How many tries the task has; each time that it is cleared they become more."""
        return getattr(self._context.get("ti"), "max_tries", None)

    def _approval_seconds(self) -> float | None:
        """
        Return how long to wait for an answer; ``None`` for ever.

        :raises WorkspaceInputError: if that is no length
        """
        if self.approval_timeout is None:
            return None
        from airflow_provider_workspace.operators.arguments import parse_seconds

        return parse_seconds("approval_timeout", self.approval_timeout, least=1)

    def _fails_on_reject(self) -> bool:
        """Read the switch: an answer comes before the other arguments are read."""
        from airflow_provider_workspace.operators.arguments import parse_switches

        parse_switches(self)
        return bool(self.fail_on_reject)


def digest(value: Any) -> str:
    """Return 12 letters and digits that tell plain JSON from any other."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def _approve_option(plan: str) -> str:
    """Return the option that approves this plan and no other."""
    return f"Approve plan {plan}"


def question(plan: str, name: str, changes: int) -> str:
    """Return the body of a question: Markdown, and short enough for each database."""
    kept = plan.encode()[:MAX_BODY].decode(errors="ignore").replace("```", "'''")
    if kept != plan.replace("```", "'''"):
        kept = f"{kept[: kept.rfind(chr(10))]}\n… the log of the task has the rest"
    return (
        f"```text\n{kept}\n```\n\n**Approve** sends what is in this plan ({changes} changes, plan {name}) and nothing "
        "else. **Reject** sends nothing."
    )
