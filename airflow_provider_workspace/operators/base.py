"""Base classes of the operators: hook, permanent errors, dry run, results without secrets."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from airflow_provider_workspace.api.secrets import secrets_under
from airflow_provider_workspace.links import WorkspaceLink, url_for
from airflow_provider_workspace.version_compat import (
    AirflowFailException,
    default_retry_policy,
    has_own_retry_policy,
    mask_secret,
)

if TYPE_CHECKING:
    from airflow.sdk import BaseOperatorLink, Context, XComArg
    from airflow.sdk.definitions.xcom_arg import PlainXComArg

    from airflow_provider_workspace.api.models import Resource
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.hooks.files import ReportFile
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.procedures.invites_report import InvitesReport
    from airflow_provider_workspace.state.memory import CampaignNote, TaskState

# The longest pause in seconds that a worker waits for; longer ones are deferred to the triggerer.
MAX_PAUSE_ON_WORKER = 60.0


def require_switch(name: str, value: object) -> None:
    """
    Refuse an argument that is set in the Dag file and is not a boolean.

    :raises WorkspaceInputError: if it is not one
    """
    if not isinstance(value, bool):
        from airflow_provider_workspace.errors import WorkspaceInputError

        raise WorkspaceInputError(f"Set {name} to True or False in the Dag file: it is not templated")


class WorkspaceTaskMixin:
    """What operators and sensors share: their link, and how their arguments are templated."""

    template_fields: Collection[str] = ()
    switches: Collection[str] = ()
    """The boolean fields that are templated."""
    operator_extra_links: Collection[BaseOperatorLink] = (WorkspaceLink(),)
    resource_kind: str
    """The resource of the task's link: a key of ``client.settings.RESOURCE_PATHS``."""
    workspace_url: str = ""
    rendered_to_none: tuple[str, ...] = ()
    """The arguments that were given, and in which a template or XCom has no value."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Template every switch."""
        super().__init_subclass__(**kwargs)
        cls.template_fields = tuple(dict.fromkeys((*cls.template_fields, *cls.switches)))

    def __setattr__(self, key: str, value: Any) -> None:
        """Mask secrets in arguments, since Airflow shows rendered fields before the task runs; note missing values."""
        if key in self.template_fields and _rendered_to_none(getattr(self, key, None), value):
            self.rendered_to_none = (*self.rendered_to_none, key)
        super().__setattr__(key, value)
        if key in self.template_fields:
            for secret in secrets_under(key, value):
                mask_secret(secret)

    if TYPE_CHECKING:

        @property
        def output(self) -> PlainXComArg:
            """The result; ``output["id"]`` is the XCom of that name. Airflow's own type cannot be indexed."""
            ...


def _rendered_to_none(before: Any, now: Any) -> bool:
    """Return whether a template or XCom became ``None``, at any depth."""
    if now is None:
        return before is not None
    if isinstance(now, Mapping) and isinstance(before, Mapping):
        return any(_rendered_to_none(before.get(key), below) for key, below in now.items())
    if isinstance(now, list | tuple) and isinstance(before, list | tuple):
        return any(map(_rendered_to_none, before, now))
    return False


class WorkspaceOperator(WorkspaceTaskMixin, BaseOperator):
    """
    Base of the operators: calls the service and returns plain JSON.

    If the result is a record with an ``id``, the id is also pushed as the XCom ``id``, so that ``task.output["id"]``
    works. An operator that creates a record pushes the XCom ``created``: whether this task created it or found it.

    If the record differs from what was requested, the XCom ``not_applied`` lists the fields, each with ``field``,
    ``asked`` and ``got``.

    A permanent error (invalid input, a key without the scope, an unknown id) fails the task without retries; after any
    other error Airflow retries the task.

    :param workspace_conn_id: connection to the service
    :param return_secrets: whether the result includes secret fields, such as a project's ``api_token``. XCom is
        neither masked nor encrypted: use it only where nobody else can read the XCom. Not templated, so that nobody
        who starts a run can set it
    :raises WorkspaceInputError: if ``return_secrets`` is not a boolean
    """

    template_fields: Collection[str] = ("workspace_conn_id",)
    created: bool | None = None
    not_applied: Sequence[Mapping[str, Any]] = ()

    def __init__(
        self,
        *,
        workspace_conn_id: str | XComArg = "workspace_default",
        return_secrets: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        require_switch("return_secrets", return_secrets)
        if getattr(self, "retry_policy", None) is None:
            self.retry_policy = default_retry_policy()
        self.workspace_conn_id: Any = workspace_conn_id
        self.return_secrets = return_secrets
        # State that is kept across deferrals, see TaskState.
        self._carried: dict[str, Any] = {}

    @property
    def hook(self) -> WorkspaceHook:
        """A new hook for the connection."""
        from airflow_provider_workspace.hooks import workspace

        return workspace.WorkspaceHook(self.workspace_conn_id)

    def execute(self, context: Context) -> Any:
        """Call the service and return the result as plain JSON."""
        from airflow_provider_workspace.errors import WorkspaceError
        from airflow_provider_workspace.operators.arguments import read_arguments

        self._context: Any = context or {}  # tests pass None
        try:
            read_arguments(self, getattr(self._context.get("dag"), "folder", ""))
            with closing(self.hook) as hook:
                self.link_to(hook)
                result = self.work(hook)
                if not self.workspace_url:
                    self.link_to(hook, result)
        except WorkspaceError as error:
            if error.permanent and not has_own_retry_policy(self):
                raise AirflowFailException(
                    f"{type(error).__name__}: {error}"
                ) from None  # only one traceback in the log
            raise
        if isinstance(result, dict) and "id" in result and "ti" in self._context and self.do_xcom_push:
            push = self._context["ti"].xcom_push
            push(key="id", value=result["id"])
            if self.created is not None:
                push(key="created", value=self.created)
            if self.not_applied:
                push(key="not_applied", value=self.not_applied)
        return result

    def execute_complete(self, context: Context, event: Mapping[str, Any] | None = None) -> Any:
        """Run again after a deferral, with the state that the task kept."""
        self._carried = dict((event or {}).get("state") or {})
        return self.execute(context)

    def work(self, hook: WorkspaceHook) -> Any:
        """Do the work of the operator and return its result."""
        raise NotImplementedError

    def link_to(self, hook: WorkspaceHook, result: Any = None) -> None:
        """Set the URL of the task's link from the ids of the operator, or from the id of its result."""
        ids = {name: value for name, value in vars(self).items() if name.endswith("_id")}
        its_id = f"{self.resource_kind}_id"
        if its_id not in ids and isinstance(result, dict) and "id" in result:
            ids[its_id] = result["id"]
        if its_id in ids or self.resource_kind.endswith("s"):
            self.workspace_url = url_for(hook.client.settings, self.resource_kind, ids)

    def parse_fields(self, name: str, *taken: str) -> dict[str, Any]:
        """
        Parse an argument with fields by name.

        :param taken: names that are arguments of their own
        :raises WorkspaceInputError: if it is not a mapping, or names one of these
        """
        if getattr(self, name) is None:
            return {}
        from airflow_provider_workspace.operators.arguments import parse_fields

        return parse_fields(name, getattr(self, name), taken)

    def given(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the named arguments that are not ``None``; the others are not sent."""
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def plain(self, resource: Resource) -> dict[str, Any]:
        """Return a record as plain JSON, without secrets unless ``return_secrets`` is set."""
        return resource.to_dict(return_secrets=self.return_secrets)


class WorkspaceWriteOperator(WorkspaceOperator):
    """
    Base of the operators that write.

    :param dry_run: send no writes; log and return the plan instead: ``action`` (``create``, ``change``, ``remove`` or
        ``skip``) and ``why``; then ``operation``, ``request`` and ``fields`` of the write, or the record that was
        ``found``. Operators for many people return reports of their own
    """

    has_own_dry_run = False
    """Whether :meth:`write` handles a dry run itself."""
    switches: Collection[str] = ("is_dry_run",)
    campaign: CampaignNote | None = None
    """Progress of the invites that the task sends, for the status page."""
    check_latest_try: Callable[..., None] | None = None
    """Fails the task if another try of it has begun."""

    def __init__(self, *, dry_run: bool | str | XComArg = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # Not dry_run, which is a method of Airflow's operators.
        self.is_dry_run: Any = dry_run

    def write(self, hook: WorkspaceHook) -> Any:
        """Send what the operator is for, and return its result."""
        raise NotImplementedError

    def work(self, hook: WorkspaceHook) -> Any:
        """Write; a dry run ends at the first write, and a long pause defers the task, which then begins again."""
        if self.is_dry_run and not self.has_own_dry_run:
            return self.describe_write(hook)
        client = hook.client
        client.before_write, client.before_pause = self.write_check(hook) or client.before_write, self.before_pause
        result = self.write(hook)
        self._carried = {}
        return result

    def describe_write(self, hook: WorkspaceHook) -> dict[str, Any]:
        """Return the first write as the plan, without sending it."""
        from airflow_provider_workspace.procedures.dry_run import PlannedWrite, describe

        def stop(operation: Operation[Any], why: str) -> None:
            raise PlannedWrite(operation, why)

        hook.client.before_write = stop
        try:
            found = self.write(hook)
        except PlannedWrite as planned:
            found = planned
        return describe(found, return_secrets=self.return_secrets)

    def write_check(self, hook: WorkspaceHook) -> Callable[[Operation[Any], str], object] | None:  # noqa: ARG002
        """Return what is called before each attempt of a write, and raises if it may not be sent."""
        self.check_latest_try = self.task_state.take_over()
        return self.check_latest_try

    def before_pause(self, seconds: float) -> None:
        """Defer instead of a long pause."""
        if seconds > MAX_PAUSE_ON_WORKER:
            self.defer_for(seconds)

    def invite_people(
        self, rows: Iterable[Mapping[str, Any] | str], hook: WorkspaceHook, organization_id: str, **options: Any
    ) -> InvitesReport:
        """Invite people and report the progress to the status page; the options are those of ``invite_all``."""
        from airflow_provider_workspace.procedures.invites import invite_all
        from airflow_provider_workspace.state.memory import CampaignNote

        self.campaign = CampaignNote(self._context.get("ti"), organization_id)
        # By place: after a deferral the connection may lead elsewhere, where nobody was invited yet.
        place = hook.client.settings.place(organization_id)
        with self.campaign:
            report = invite_all(
                hook.client,
                rows,
                organization_id=organization_id,
                clock=time.time,
                monotonic=time.monotonic,
                memory=self.task_state,
                kept=self._carried.setdefault("invites", {}).setdefault(place, {}),
                progress=self.campaign.progress,
                report=self.campaign.report,
                **options,
            )
        if self.check_latest_try:
            self.check_latest_try()  # a try that was suspended may find everybody invited
        return report

    def defer_for(self, seconds: float) -> None:
        """Defer the task, with the state that it keeps."""
        from airflow_provider_workspace.triggers.deadline import WorkspaceDeadlineTrigger

        end_at = time.time() + seconds
        if self.campaign is not None:
            self.campaign.write(again_at=end_at)
        self.log.info("Deferring until %s.", datetime.fromtimestamp(end_at, timezone.utc))
        trigger = WorkspaceDeadlineTrigger(end_at=end_at, state=self._carried)
        self.defer(trigger=trigger, method_name="execute_complete")

    def reported(self, file: ReportFile | None, report: dict[str, Any]) -> dict[str, Any]:
        """
        Write a report to its file, if there is one, and return the result of the task.

        :raises WorkspaceError: if the file cannot be written; then the XCom ``report`` has the whole report
        """
        from airflow_provider_workspace.errors import WorkspaceError

        if file is None:
            return report
        try:
            file.write(report)
        except WorkspaceError:
            self.push_report(None, report)
            raise
        self.log.info("The report on each row is in %s.", file)
        return file.excerpt(report)

    def push_report(self, file: ReportFile | None, report: dict[str, Any]) -> None:
        """Push the XCom ``report`` of a task that fails; an error of the file is logged only."""
        from airflow_provider_workspace.errors import WorkspaceError

        try:
            value = self.reported(file, report)
        except WorkspaceError as error:
            self.log.error("%s", error)  # noqa: TRY400 - the error of the task follows
        else:
            if "ti" in self._context:
                self._context["ti"].xcom_push(key="report", value=value)

    @property
    def task_state(self) -> TaskState:
        """The state of the task across its tries; empty in a dry run."""
        from airflow_provider_workspace.state.memory import TaskState

        return TaskState(self._context, self._carried, dry_run=self.is_dry_run, clock=time.time)

    def try_identity(self) -> tuple[str, int]:
        """Return the name of the task and the number of its try."""
        ti = self._context.get("ti")
        names = ("dag_id", "run_id", "task_id", "map_index")
        return " / ".join(str(getattr(ti, name, "-")) for name in names), getattr(ti, "try_number", 1)

    def create(self, hook: WorkspaceHook, operation: Operation[Any]) -> dict[str, Any]:
        """Create a record unless it exists, and return it."""
        from airflow_provider_workspace.procedures import ensure

        if_exists = self.parse_choice("if_exists", "return", "fail")
        record, self.created = ensure.create(hook.client, operation, if_exists=if_exists, memory=self.task_state)
        return self.compared(operation, record)

    def remove(self, hook: WorkspaceHook, what: str, operation: Operation[Any], **how: Any) -> bool:
        """Remove a record; the keyword arguments are those of ``ensure.remove``."""
        from airflow_provider_workspace.procedures import ensure

        if_missing = self.parse_choice("if_missing", "ignore", "fail")
        return ensure.remove(hook.client, what, operation, if_missing=if_missing, **how)

    def compared(self, create: Operation[Any], record: Resource) -> dict[str, Any]:
        """Return a record as plain JSON, and note how it differs from what was requested."""
        from airflow_provider_workspace.api.comparison import describe_differences, differences

        self.not_applied = differences(create, record)
        if self.not_applied and not self.created:  # after a create the client logs it
            self.log.warning("The existing record differs: %s", describe_differences(self.not_applied))
        return self.plain(record)

    def parse_choice(self, name: str, *choices: str) -> str:
        """
        Parse an argument with a fixed set of values.

        :raises WorkspaceInputError: if it has another value
        """
        from airflow_provider_workspace.operators.arguments import parse_choice

        return parse_choice(name, getattr(self, name), choices)

    def nulls(self, set_null: Sequence[str], *taken: str) -> dict[str, None]:
        """
        Return the fields to set to null.

        :param taken: names that are arguments of their own
        :raises WorkspaceInputError: if it names one of these, or is not a list of names
        """
        from airflow_provider_workspace.operators.arguments import parse_fields, parse_names

        return parse_fields("set_null", dict.fromkeys(parse_names("set_null", set_null)), taken)


class WorkspaceListOperator(WorkspaceOperator):
    """
    Base of the operators that list: reads all pages and returns the selected rows.

    :param where: return rows whose fields have these values. A dot selects a field of a nested object, a list holds
        alternatives: ``{"is_expired": True, "user.email": ["a@example.com", "b@example.com"]}``. E-mail addresses are
        compared regardless of letter case. Prefix a field that the interface does not name with ``extra.``
    :param fields: fields to return of each row, written as in ``where``; by default all
    :param count_only: return only the number of rows
    :param max_rows: maximum number of rows, because XCom is not made for long lists. The task fails if there are more
    """

    template_fields: Collection[str] = ("workspace_conn_id", "where", "fields")
    switches: Collection[str] = ("count_only",)
    row_model: str
    """Name of the row's class in ``api.models``."""

    def __init__(
        self,
        *,
        where: Mapping[str, Any] | XComArg | None = None,
        fields: Sequence[str] | XComArg | None = None,
        count_only: bool | str | XComArg = False,
        max_rows: int = 1000,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.where: Any = where
        self.fields: Any = fields
        self.count_only: Any = count_only
        self.max_rows = max_rows

    def rows(self, hook: WorkspaceHook) -> Iterable[Resource]:
        """Return the rows of the list."""
        raise NotImplementedError

    def work(self, hook: WorkspaceHook) -> list[dict[str, Any]] | int:
        """Read the list, one page at a time."""
        from airflow_provider_workspace.api import models
        from airflow_provider_workspace.operators.arguments import parse_integer, parse_names
        from airflow_provider_workspace.operators.row_filter import check_fields, check_where, filter_rows

        model = getattr(models, self.row_model)
        kept = filter_rows(
            map(self.plain, self.rows(hook)),
            where=check_where(self.parse_fields("where"), model, return_secrets=self.return_secrets),
            fields=check_fields(parse_names("fields", self.fields), model, return_secrets=self.return_secrets),
            count_only=self.count_only,
            max_rows=parse_integer("max_rows", self.max_rows),
        )
        self.log.info("%d rows", kept if isinstance(kept, int) else len(kept))
        return kept


class WorkspaceOrganizationListOperator(WorkspaceListOperator):
    """
    Base of the operators that list resources of an organization.

    :param organization_id: organization; by default that of the connection
    """

    template_fields: Collection[str] = ("organization_id", *WorkspaceListOperator.template_fields)

    def __init__(self, *, organization_id: str | XComArg | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.organization_id: Any = organization_id
