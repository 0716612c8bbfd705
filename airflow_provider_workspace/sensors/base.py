"""What all sensors share: one look on the worker, then either more of them or the triggerer's."""

from __future__ import annotations

import time
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator
from airflow.sdk.bases.sensor import PokeReturnValue

from airflow_provider_workspace.airflow_version import (
    AirflowFailException,
    AirflowSensorTimeout,
    AirflowSkipException,
    conf,
    has_own_retry_policy,
    usual_retry_policy,
)
from airflow_provider_workspace.links import WorkspaceLink

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from airflow.sdk import BaseOperatorLink, Context

    from airflow_provider_workspace.api.conditions import Verdict
    from airflow_provider_workspace.api.looks import Look
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook

# How much longer than the trigger's own deadline Airflow waits before it ends the task without a word from it.
GRACE = timedelta(minutes=15)


class WorkspaceSensor(BaseSensorOperator):
    """
    Base of the sensors.

    The result is what the condition found. ``mode``, ``poke_interval``, ``timeout`` and ``soft_fail`` are those of
    Airflow's sensors. A wrong key, a missing scope or an unknown id fails the task at once; a look that fails otherwise
    is followed by the next one.

    :param workspace_conn_id: connection to the service
    :param deferrable: whether to wait in the triggerer, without a worker slot; ``None`` for what
        ``[operators] default_deferrable`` says
    """

    template_fields: Collection[str] = ("workspace_conn_id",)
    operator_extra_links: Collection[BaseOperatorLink] = (WorkspaceLink(),)
    workspace_url: str = ""
    ask_verification = False
    poke_interval: float

    def __init__(
        self,
        *,
        workspace_conn_id: str = "workspace_default",
        deferrable: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if getattr(self, "retry_policy", None) is None:
            self.retry_policy = usual_retry_policy()
        self.workspace_conn_id = workspace_conn_id
        if deferrable is None:
            deferrable = conf.getboolean("operators", "default_deferrable", fallback=False)
        self.deferrable = deferrable
        self._seen: Look | None = None

    def waits_for(self) -> tuple[str, dict[str, Any]]:
        """
        Return the name of the condition and its fields; each sensor has its own.

        :raises WorkspaceInputError: if an argument is wrong
        """
        raise NotImplementedError

    def organization(self) -> str | None:
        """Return the organization of the sensor; ``None`` for that of the connection."""
        organization_id: str | None = getattr(self, "organization_id", None)
        return organization_id

    def execute(self, context: Context) -> Any:
        """Look once; if that is not enough, wait as the mode says."""
        if not self.deferrable:
            return super().execute(context)
        began = time.time()
        try:
            verdict = self.look(first=True)
        except AirflowFailException as error:
            if self.soft_fail or self.never_fail:
                raise AirflowSkipException(str(error)) from error
            raise
        if verdict is not None and verdict.done:
            self.log.info("%s", verdict.message)
            return verdict.result
        from airflow_provider_workspace.triggers.waiting import WorkspaceWaitTrigger

        name, arguments = self.waits_for()
        self.defer(
            trigger=WorkspaceWaitTrigger(
                condition=name,
                arguments=arguments,
                workspace_conn_id=self.workspace_conn_id,
                organization_id=self._organization_id,
                poll_interval=self.poke_interval,
                end_at=began + self.timeout,
                ask_verification=self.ask_verification,
            ),
            method_name="execute_complete",
            timeout=timedelta(seconds=self.timeout) + GRACE,
        )
        return None

    def poke(self, context: Context) -> PokeReturnValue:  # noqa: ARG002
        """Look once."""
        verdict = self.look(first=self._seen is None)
        if verdict is None:
            return PokeReturnValue(is_done=False)
        self.log.info("%s", verdict.message)
        return PokeReturnValue(is_done=verdict.done, xcom_value=verdict.result if verdict.done else None)

    def look(self, *, first: bool) -> Verdict | None:
        """
        Look from the worker.

        :param first: whether what is waited for must be there
        :return: the verdict; ``None`` if the look failed and the next one may not
        """
        from airflow_provider_workspace.api.conditions import condition_of
        from airflow_provider_workspace.arguments import check_ids
        from airflow_provider_workspace.errors import WorkspaceError
        from airflow_provider_workspace.hooks.workspace import WorkspaceHook

        try:
            check_ids(self, self.template_fields)
            condition = condition_of(*self.waits_for())
            with closing(WorkspaceHook(self.workspace_conn_id, organization_id=self.organization())) as hook:
                self._organization_id = hook.organization_or_default()
                self.show(hook)
                if self.ask_verification:
                    self.ask(hook)
                self._seen = hook.look(condition.subject, before=self._seen, wanted=condition.wanted())
                verdict = condition.judge(self._seen)
                if first and not verdict.found:
                    self.confirm(hook, verdict)
        except WorkspaceError as error:
            if error.permanent and has_own_retry_policy(self):
                raise
            if error.permanent:
                msg = f"{type(error).__name__}: {error}"
                raise AirflowFailException(msg) from error
            self.log.warning("Looking failed and will be tried again: %s", error)
            return None
        return verdict

    def confirm(self, hook: WorkspaceHook, verdict: Verdict) -> None:
        """
        Ask for the record itself: a list may lag behind, and not show yet what was just made.

        :raises WorkspaceInputError: if there is no such record
        """
        from airflow_provider_workspace.errors import WorkspaceInputError, WorkspaceNotFoundError

        try:
            self.retrieve(hook)
        except WorkspaceNotFoundError:
            msg = f"Waiting makes no sense: {verdict.message}. Check the id."
            raise WorkspaceInputError(msg) from None

    def retrieve(self, hook: WorkspaceHook) -> None:
        """Ask for the record that is waited for; sensors that wait for people have none."""

    def ask(self, hook: WorkspaceHook) -> None:
        """Ask the service for something before looking; only domains have such a question."""

    def show(self, hook: WorkspaceHook) -> None:
        """Set where the task's link leads."""
        from airflow_provider_workspace.client.addresses import address_of

        kind, ids = self.shows()
        self.workspace_url = address_of(hook.client.settings, kind, {"organization_id": self._organization_id, **ids})

    def shows(self) -> tuple[str, dict[str, Any]]:
        """Return the kind of resource the link leads to, and its ids; each sensor has its own."""
        raise NotImplementedError

    def execute_complete(self, context: Context, event: Mapping[str, Any] | None = None) -> Any:  # noqa: ARG002
        """
        End the wait as the trigger's event says.

        :raises AirflowSensorTimeout: if the time is over; the task is skipped instead with ``soft_fail``
        """
        status = (event or {}).get("status")
        message = (event or {}).get("message", "")
        if event is not None and status == "done":
            self.log.info("%s", message)
            return event.get("result")
        if status == "timeout":
            text = f"Waited {self.timeout:.0f} s in vain: {message}"
            if self.soft_fail or self.never_fail:
                raise AirflowSkipException(text)
            raise AirflowSensorTimeout(text)
        if status == "failed":
            if self.soft_fail or self.never_fail:
                raise AirflowSkipException(str(message))
            raise AirflowFailException(message)
        msg = f"The trigger ended the wait with something that is no event of this sensor: {event!r}"
        raise RuntimeError(msg)
