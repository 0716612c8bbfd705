"""
Sensors: poll once on the worker, then poke, reschedule or defer.

All sensors are in one module, because importing a module costs a Dag file as much as a sensor does.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast

from airflow.sdk import BaseSensorOperator
from airflow.sdk.bases.sensor import PokeReturnValue

from airflow_provider_workspace.links import url_for
from airflow_provider_workspace.operators.arguments import (
    ID,
    MOMENT,
    NAME,
    NEEDED,
    ROWS,
    SWITCH,
    Arg,
    arg,
    read_arguments,
)
from airflow_provider_workspace.operators.base import WorkspaceTaskMixin
from airflow_provider_workspace.version_compat import (
    AirflowFailException,
    AirflowSensorTimeout,
    AirflowSkipException,
    AirflowTaskTimeout,
    conf,
    has_own_retry_policy,
)

if TYPE_CHECKING:
    from datetime import datetime

    from airflow.sdk import Context
    from airflow.triggers.base import BaseTrigger

    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.procedures.conditions import RecordCheck, Result
    from airflow_provider_workspace.procedures.snapshot import Snapshot

# How long after the deadline of the trigger Airflow fails the task if the trigger does not fire.
GRACE = timedelta(minutes=15)
# How long before its end the sensor for batch exports begins to look, unless the author says since when.
BEFORE_UNTIL = timedelta(days=1)
# What skips a task with soft_fail: its time is over, or a method of the sensor has said so already.
SKIPPED_WITH_SOFT_FAIL = (AirflowSensorTimeout, AirflowTaskTimeout, AirflowSkipException)


class WorkspaceSensor(WorkspaceTaskMixin, BaseSensorOperator):  # pyright: ignore[reportIncompatibleMethodOverride]
    """
    Base of the sensors.

    ``mode``, ``poke_interval`` and ``timeout`` are those of Airflow's sensors. A wrong key, a missing scope, an unknown
    id or another permanent error fails the task without retries; after any other failed poll, the sensor polls again.

    Unlike in Airflow, ``soft_fail`` skips the task only if its time is over (``timeout`` or ``execution_timeout``): a
    permanent error still fails it, because a revoked key would otherwise look like a condition that was not met in
    time. ``never_fail`` is Airflow's: a permanent error skips the task as well.

    :param organization_id: the organization; by default that of the connection
    :param deferrable: whether to wait in the triggerer, without a worker slot; by default as ``[operators]
        default_deferrable``
    """

    deferrable: Arg[bool | None] = arg(SWITCH, default=None)
    organization_id: Arg[str | None] = arg(ID, default=None)
    ask_verification = cast("Any", None)  # an argument of the sensor for domains only

    if TYPE_CHECKING:
        # Arguments of Airflow's sensors.
        exponential_backoff: bool = False
        max_wait: Any = None
        mode: str = "poke"
        never_fail: bool = False
        poke_interval: Any = 60.0
        silent_fail: bool = False
        soft_fail: bool = False
        timeout: Any = 604_800.0

    def __post_init__(self) -> None:
        """Set ``deferrable`` as Airflow is configured, and what the polls of a try share."""
        if self.deferrable is None:
            self.deferrable = conf.getboolean("operators", "default_deferrable", fallback=False)
        self._seen: Snapshot | None = None
        self._record_check: RecordCheck | None = None
        self._began: float | None = None
        self._deferred_since: float | None = None

    def waits_for(self) -> tuple[str, dict[str, Any]]:
        """
        Return the name of the condition and its fields.

        :raises WorkspaceInputError: if an argument is invalid
        """
        raise NotImplementedError

    def execute(self, context: Context) -> Any:
        """Poll once; if the condition is not met, poke, reschedule or defer."""
        from airflow_provider_workspace.errors import WorkspaceInputError, with_class
        from airflow_provider_workspace.operators.reading import read_seconds

        try:
            read_arguments(self)
            if self.deferrable:
                read_seconds("timeout", self.timeout)
                read_seconds("poke_interval", self.poke_interval)
        except WorkspaceInputError as error:
            self.fail(with_class(error))
        if not self.deferrable:
            with _permanent_errors(self):
                return super().execute(context)
        began = self._deferred_since or time.time()
        try:
            result = self.poll_once()
        except AirflowFailException as error:
            self.fail(str(error))
        if result is not None and result.done:
            self.log.info("%s", result.message)
            return result.result
        self.defer(
            trigger=self.trigger(began),
            method_name="execute_complete",
            timeout=timedelta(seconds=self.timeout) + GRACE,
        )
        return None

    def trigger(self, began: float) -> BaseTrigger:
        """Return the trigger that polls on; ``began`` is when the first poll was, in seconds since 1970."""
        from airflow_provider_workspace.api.database_limits import MAX_TEXT_BYTES, trigger_size
        from airflow_provider_workspace.triggers.workspace import WorkspaceWaitTrigger

        name, arguments = self.waits_for()
        trigger = WorkspaceWaitTrigger(
            condition=name,
            arguments=arguments,
            workspace_conn_id=self.workspace_conn_id,
            organization_id=self._organization_id,
            poll_interval=self.poke_interval,
            end_at=began + self.timeout,
            ask_verification=bool(self.ask_verification),
        )
        size = trigger_size(trigger.serialize()[1])
        if size > MAX_TEXT_BYTES:
            self.log.warning(
                "This wait has %d bytes of arguments. If Airflow's database is MySQL, which stores %d, the task fails "
                "now: set deferrable=False and mode='reschedule', or wait for fewer people in each of several tasks.",
                size,
                MAX_TEXT_BYTES,
            )
        return trigger

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """Continue after a deferral; only the end of its time skips a task with ``soft_fail``."""
        try:
            with _permanent_errors(self):
                return super().resume_execution(next_method, next_kwargs, context)
        except AirflowSensorTimeout as error:
            if self.soft_fail or self.never_fail:  # before 3.2, Airflow fails it when its trigger has not fired
                raise AirflowSkipException(str(error)) from error
            raise

    def poke(self, context: Context) -> PokeReturnValue:
        first_poke: datetime | None = None
        if self.reschedule and "ti" in context:
            first_poke = context["ti"].get_first_reschedule_date(context)
        if first_poke:  # in another process
            self._began = time.monotonic() - (time.time() - first_poke.timestamp())
        result = self.poll_once()
        if first_poke and result is not None and result.done and result.absent:
            result = self.poll_again(result)
        if result is None:
            return PokeReturnValue(is_done=False)
        self.log.info("%s", result.message)
        if not result.done:
            return PokeReturnValue(is_done=False)
        return PokeReturnValue(is_done=True, xcom_value=result.result)

    def poll_again(self, result: Result) -> Result | None:
        """
        Poll again after the consistency time: who accepted an invite since the last poke may not be listed yet.

        A rescheduled sensor remembers no earlier poll, so it waits here, which is necessary once.
        """
        from airflow_provider_workspace.client import waits

        seconds = self._seen.consistency_time if self._seen else 0.0
        if not seconds:
            return result
        self.log.info("%s. Polling again in %g s: new members may not be listed yet", result.message, seconds)
        waits.sleep(seconds)
        self._seen = None
        return self.poll_once()

    def poll_once(self) -> Result | None:
        """
        Poll on the worker.

        :return: the result of the condition; ``None`` if the poll failed but the next one may succeed
        """
        from airflow_provider_workspace.errors import WorkspaceError, with_class
        from airflow_provider_workspace.hooks.workspace import WorkspaceHook

        self._began = self._began or time.monotonic()
        try:
            with WorkspaceHook(self.workspace_conn_id, organization_id=self.organization_id) as hook:
                return self.look(hook)
        except WorkspaceError as error:
            if error.permanent and has_own_retry_policy(self):
                error.named()
                raise
            if error.permanent:
                raise AirflowFailException(with_class(error)) from None
            self.log.warning("The poll failed and will be retried: %s", error)
            return None

    def look(self, hook: WorkspaceHook) -> Result:
        """Return the result of the condition; fail if the record does not exist."""
        from airflow_provider_workspace.procedures.conditions import (
            RecordCheck,
            build_condition,
            check_exists,
            evaluate,
        )
        from airflow_provider_workspace.procedures.snapshot import take_snapshot

        condition = build_condition(*self.waits_for())
        self._organization_id = hook.organization_or_default()
        ids = {name: value for name, value in vars(self).items() if name.endswith("_id")}
        ids["organization_id"] = self._organization_id
        self.workspace_url = url_for(hook.client.settings, self.resource_kind, ids)
        if self.ask_verification:
            self.ask(hook)
        self._record_check = self._record_check or RecordCheck()
        began, now = self._began or 0.0, time.monotonic()
        self._seen = take_snapshot(hook.client, condition.subject, self._organization_id, previous=self._seen, now=now)
        result = evaluate(condition, self._seen, now - began)
        if self._record_check.is_due(result, self._seen):
            check_exists(hook.client, condition, self._organization_id, result)
        return result

    def ask(self, hook: WorkspaceHook) -> None:
        """Request the verification, before each poll if ``ask_verification`` says so."""

    def execute_complete(self, context: Context, event: Mapping[str, Any] | None = None) -> Any:  # noqa: ARG002
        """
        Return the result of the trigger, or raise its error.

        :raises AirflowSensorTimeout: if the timeout is over; with ``soft_fail`` the task is skipped instead
        """
        status = (event or {}).get("status")
        message = (event or {}).get("message", "")
        if event is not None and status == "done":
            self.log.info("%s", message)
            return event.get("result")
        if status == "timeout":
            self.time_out(message)
        if status == "failed":
            self.fail(message)
        raise RuntimeError(f"Unexpected trigger event: {event!r}")

    def time_out(self, message: str) -> NoReturn:
        """Fail the task because its time is over, or skip it with ``soft_fail``."""
        from airflow_provider_workspace.errors import with_problem

        late = with_problem(f"Timed out after {self.timeout:.0f} s: {message}", otherwise="not-in-time")
        if self.soft_fail or self.never_fail:
            raise AirflowSkipException(late)
        raise AirflowSensorTimeout(late)

    def fail(self, message: str) -> NoReturn:
        """Fail the task for good, or skip it if it may never fail."""
        if self.never_fail:
            raise AirflowSkipException(message) from None
        raise AirflowFailException(message) from None


@contextmanager
def _permanent_errors(sensor: WorkspaceSensor) -> Iterator[None]:
    """Raise the error again for which Airflow skips a sensor with ``soft_fail``, unless its time is over."""
    try:
        yield
    except AirflowSkipException as skipped:
        error = skipped.__cause__
        if error is None or sensor.never_fail or isinstance(error, SKIPPED_WITH_SOFT_FAIL):
            raise
        raise error from error.__cause__


class WorkspaceDomainVerifiedSensor(WorkspaceSensor):
    """
    Wait until a domain is verified. Scope ``organization:read``.

    The result is ``{"domain_id": …, "domain": …, "verified_at": …}``.

    :param domain_id: the domain (UUID)
    :param ask_verification: whether to request the verification at each poll. If the service does not accept this from
        personal API keys, the sensor logs that and only polls
    """

    resource_kind = "domain"
    domain_id: Arg[str] = arg(ID)
    ask_verification: Arg[bool] = arg(SWITCH, default=True)

    def waits_for(self) -> tuple[str, dict[str, Any]]:
        return "domain_verified", {"domain_id": str(self.domain_id)}

    def ask(self, hook: WorkspaceHook) -> None:
        """Request the verification; stop doing so if the service does not accept it from this kind of key."""
        from airflow_provider_workspace.procedures.conditions import ask_verification

        self.ask_verification = ask_verification(hook.client, self._organization_id, self.domain_id)


class WorkspaceMembersJoinedSensor(WorkspaceSensor):
    """
    Wait until people are members. Scope ``organization_member:read``.

    The result is ``{"joined": [addresses], "missing": {address: why}}``.

    :param emails: addresses of the people, or rows with them
    :param join: how many: ``all`` of them, ``any`` one of them, or a share above 0 and up to 1
    """

    resource_kind = "members"
    emails: Arg[Sequence[Mapping[str, Any] | Sequence[Any] | str]] = arg(ROWS)
    join: Arg[Literal["all", "any"] | float] = arg(NEEDED, default="all")

    def waits_for(self) -> tuple[str, dict[str, Any]]:
        from airflow_provider_workspace.procedures.conditions import check_share
        from airflow_provider_workspace.procedures.roster_files import addresses_of

        return "members_joined", {"emails": addresses_of(self.emails, "emails"), "share": check_share(self.join)}


class WorkspaceInvitesSettledSensor(WorkspaceSensor):
    """
    Wait until no invite is open: accepted, expired or gone. Scope ``organization_member:read``.

    The result is ``{"accepted": [addresses], "expired": […], "gone": […], "open": []}``.

    :param emails: addresses of the people, or rows with them
    """

    resource_kind = "invites"
    emails: Arg[Sequence[Mapping[str, Any] | Sequence[Any] | str]] = arg(ROWS)

    def waits_for(self) -> tuple[str, dict[str, Any]]:
        from airflow_provider_workspace.procedures.roster_files import addresses_of

        return "invites_settled", {"emails": addresses_of(self.emails, "emails")}


class WorkspaceProjectReceivingEventsSensor(WorkspaceSensor):
    """
    Wait until a project has received its first event. Scope ``project:read``.

    The result is ``{"project_id": …, "name": …}``.

    :param project_id: the project
    """

    resource_kind = "project"
    project_id: Arg[int | str] = arg(ID)

    def waits_for(self) -> tuple[str, dict[str, Any]]:
        return "project_receiving_events", {"project_id": str(self.project_id)}


class WorkspaceProjectOnboardedSensor(WorkspaceSensor):
    """
    Wait until a project is onboarded. Scope ``project:read``.

    The result is ``{"project_id": …, "name": …, "completed": [products]}``.

    :param project_id: the project
    :param product: a key of ``has_completed_onboarding_for``; by default any of them, or
        ``completed_snippet_onboarding``
    """

    resource_kind = "project"
    project_id: Arg[int | str] = arg(ID)
    product: Arg[str | None] = arg(NAME, default=None)

    def waits_for(self) -> tuple[str, dict[str, Any]]:
        return "project_onboarded", {"project_id": str(self.project_id), "product": self.product}


class WorkspaceBatchExportCompleteSensor(WorkspaceSensor):
    """
    Wait until a batch export is complete up to a moment. Scope ``batch_export:read``.

    For services that show the runs of exports. It is complete if each interval between ``since`` and ``until`` has a
    completed run: up to the last interval that ended by then, if ``until`` is not the end of one. The sensor asks for
    nothing:
    :class:`~airflow_provider_workspace.operators.catch_up.WorkspaceCatchUpOperator` fills what is missing.

    The result is ``{"export": …, "from": …, "to": …}``; the events of its asset outlets have it as their extra. With
    ``deferrable``, a worker polls for a moment at each ``poke_interval``.

    :param batch_export_id: the batch export (UUID)
    :param project_id: its project; by default that of the connection
    :param until: a time with its zone, or seconds since 1970; by default the end of the data interval, or when the run
        was due
    :param since: the same; by default a day before ``until``, and at least one interval
    """

    resource_kind = "batch_export"
    batch_export_id: Arg[str] = arg(ID)
    project_id: Arg[str | int | None] = arg(ID, default=None)
    until: Arg[datetime | str | float | None] = arg(MOMENT, default=None)
    since: Arg[datetime | str | float | None] = arg(MOMENT, default=None)

    def execute(self, context: Context) -> Any:
        """Poll once; if the export is not complete, poke, reschedule or defer."""
        self._context = context
        self._message = "no poll has succeeded"
        return super().execute(context)

    def trigger(self, began: float) -> BaseTrigger:
        """Return the trigger of the next poll; fail if the time is over."""
        from airflow_provider_workspace.triggers.deadline import WorkspaceDeadlineTrigger

        now = time.time()
        if now >= began + self.timeout:
            self.time_out(self._message)
        return WorkspaceDeadlineTrigger(
            end_at=min(began + self.timeout, now + self.poke_interval), state={"began": began}
        )

    def execute_complete(self, context: Context, event: Mapping[str, Any] | None = None) -> Any:
        """Poll again after a deferral."""
        self._deferred_since = ((event or {}).get("state") or {}).get("began")
        return self.execute(context)

    def look(self, hook: WorkspaceHook) -> Result:
        from airflow_provider_workspace.api.timestamps import to_second
        from airflow_provider_workspace.errors import WorkspaceInputError
        from airflow_provider_workspace.operators.catch_up import announce, moment_at
        from airflow_provider_workspace.procedures.conditions import Result
        from airflow_provider_workspace.windows.catch_up import Look, coverage_between, extra_of
        from airflow_provider_workspace.windows.export_runs import Export

        until = moment_at(self._until())
        project_id = hook.project_or_default(self.project_id)
        export = Export.read(hook.client, project_id, self.batch_export_id)
        latest_end = export.schedule.latest_end(until)
        last = export.schedule.before(latest_end)
        since = min(until - BEFORE_UNTIL, last.start) if self.since is None else moment_at(self.since)
        seen = Look(export, coverage_between(export, since, until), ())
        if not seen.coverage.intervals:
            raise WorkspaceInputError(
                f"Batch export {self.batch_export_id} has no interval that ended from {to_second(since)} to "
                f"{to_second(until)}, so nothing says that it is complete. Give an earlier since"
            )
        if seen.coverage.is_complete:
            result = extra_of([seen])
            announce(self._context, self, result)
            message = (
                f"Batch export {self.batch_export_id} is complete up to {result['to']}, the end of the last "
                f"interval that ended by {to_second(until)}"
            )
            return Result(done=True, message=message, result=result)
        left = seen.lines_left
        self._message = f"{len(left)} intervals have no completed run; the first is {left[0]}"
        if export.paused:
            self._message += "; the export is paused"
        return Result(done=False, message=self._message)

    def _until(self) -> Any:
        """Return the end of the data interval, or when the run was due, unless an argument says otherwise."""
        if self.until is not None:
            return self.until
        run_after = getattr(self._context.get("dag_run"), "run_after", None)
        due = self._context.get("data_interval_end") or run_after
        if due is None:
            from airflow_provider_workspace.errors import WorkspaceInputError

            raise WorkspaceInputError(
                "Give until=…: this run has no data interval, and Airflow does not say when it was due"
            )
        return due.timestamp()
