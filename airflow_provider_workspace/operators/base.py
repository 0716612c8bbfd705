"""Base classes of the operators: hook, permanent errors, dry run, results without secrets."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, cast

from airflow.sdk import BaseOperator
from jinja2 import Undefined

from airflow_provider_workspace.api.secrets import secrets_under
from airflow_provider_workspace.links import WorkspaceLink, url_for
from airflow_provider_workspace.operators import arguments as kinds
from airflow_provider_workspace.operators.arguments import Arg, DeclaredArguments, arg, fixed, read_arguments
from airflow_provider_workspace.version_compat import (
    AirflowFailException,
    default_retry_policy,
    has_own_retry_policy,
    mask_secret,
)

if TYPE_CHECKING:
    from airflow.sdk import Context, ObjectStoragePath
    from airflow.sdk.definitions.xcom_arg import PlainXComArg

    from airflow_provider_workspace.access.door import UnknownPeople, WithdrawnInvites
    from airflow_provider_workspace.api.bodies import LevelName
    from airflow_provider_workspace.api.models import Resource
    from airflow_provider_workspace.api.operation import Operation
    from airflow_provider_workspace.client.client import WorkspaceClient
    from airflow_provider_workspace.files.reports import ReportFile
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.notes.task_state import TaskState
    from airflow_provider_workspace.operators.bulk_invite_progress import BulkInviteProgress
    from airflow_provider_workspace.procedures.invites_report import InvitesReport
    from airflow_provider_workspace.procedures.journal import Journal
    from airflow_provider_workspace.procedures.plan import Plan
    from airflow_provider_workspace.procedures.roster_columns import RowFormat

# The longest pause in seconds that a worker waits for; longer ones are deferred to the triggerer.
MAX_PAUSE_ON_WORKER = 60.0


class OfOrganization(DeclaredArguments):
    """
    What belongs to an organization.

    :param organization_id: the organization; by default that of the connection
    """

    organization_id: Arg[str | None] = arg(kinds.ID, default=None)


class OfUser(OfOrganization):
    """
    What belongs to a user.

    :param user_uuid: the user: ``user.uuid`` of the member
    :param user_email: the user's address, instead of ``user_uuid``; it is looked up among the members. Scope
        ``organization_member:read``
    """

    user_uuid: Arg[str | None] = arg(kinds.OPTIONAL_ID, default=None)
    user_email: Arg[str | None] = arg(kinds.OPTIONAL_NAME, default=None)

    def find_user(self, hook: WorkspaceHook, **options: Any) -> str:
        """Return the UUID of the user; the options are those of ``find.find_user``."""
        from airflow_provider_workspace.procedures.find import find_user

        def organization() -> str:
            return hook.organization_or_default(self.organization_id)

        return find_user(hook.client, self.user_uuid, self.user_email, organization, **options)


class ReadsRows(DeclaredArguments):
    """
    What reads rows of people.

    :param columns: names of the columns: a list by position, or a mapping by name such as ``{"Work mail": "email",
        "Department": None}``. ``None`` leaves a column out, and ``"*": None`` all columns that the mapping does not
        name
    :param where: which rows to read: the wanted value by column, such as ``{"Status": "active"}``, a list of
        alternatives, or an age such as ``{"Last login": {"before": "90d"}}``. Other rows are left out and counted
    :param rows: where the list of rows is in JSON, such as ``Resources`` or ``data.users``
    :param skip_rows: how many lines above the header of a CSV file, or rows of another source, to skip. The
        description of a cursor is none of its rows
    :param levels: levels by their texts in the rows, such as ``{"Editor": "member", "*": None}``. ``None`` stands for
        no level, and ``"*"`` for all other texts
    :param no_value: texts that are no value, such as ``["-", "0000-00-00"]``
    :param path: file to read the rows from: ``.csv``, ``.tsv``, ``.json``, ``.jsonl`` or ``.ndjson``; relative to the
        Dag file, or a URL for ``airflow.sdk.ObjectStoragePath``, such as ``s3://conn_id@bucket/team.csv``
    :param defaults: fields for the rows that lack them, such as ``{"level": 1, "send_email": False}``
    """

    columns: Arg[Sequence[str | None] | Mapping[str, str | None] | None] = arg(kinds.COLUMNS, default=None)
    where: Arg[Mapping[str, Any] | None] = arg(kinds.FILTER, default=None)
    rows: Arg[str | None] = arg(kinds.NAME, default=None)
    skip_rows: Arg[int] = arg(kinds.INTEGER, default=0)
    levels: Arg[Mapping[str, int | LevelName | None] | None] = arg(kinds.FILTER, default=None)
    no_value: Arg[Sequence[str]] = arg(kinds.NAMES, default=())
    path: Arg[ObjectStoragePath | None] = arg(kinds.PATH, default=None)
    defaults: Arg[Mapping[str, Any] | None] = arg(kinds.FIELDS, default=None)

    @property
    def row_format(self) -> RowFormat:
        """How the rows are written."""
        from airflow_provider_workspace.procedures.roster_columns import RowFormat

        return RowFormat(self.rows, self.skip_rows, self.levels, self.no_value)


class ProtectsMembers(DeclaredArguments):
    """
    What removes members, but never these.

    :param protected: rows or addresses of members who are never removed or changed; ``*@partner.example`` stands for
        everybody of a domain. Include the owner of the connection's API key, which stops working without its owner
    :param owner_level: members at or above this level are neither removed nor changed; ``None`` treats owners like
        others
    """

    protected: Arg[Sequence[Mapping[str, Any] | Sequence[Any] | str]] = arg(kinds.PROTECTED_ROWS, default=())
    owner_level: Arg[int | LevelName | None] = arg(kinds.LEVEL, default=15)


class LimitsRemovals(ProtectsMembers):
    """
    What removes many members, but not too many at once.

    :param max_removals: how many people one run may remove or move to a lower level: a number, a share of the members
        such as ``"50%"``, or both, such as ``"10 or 30%"``, of which the lower one counts. ``None`` allows any number.
        A run that would exceed it sends nothing
    """

    max_removals: Arg[int | str | None] = arg(kinds.MAXIMUM, default="10 or 30%")


class WorkspaceTaskMixin(DeclaredArguments):
    """
    What operators and sensors share: their connection, their link, and how their arguments are templated.

    :param workspace_conn_id: the connection to the service
    """

    workspace_conn_id: Arg[str] = arg(kinds.NAME, default="workspace_default")
    operator_extra_links = cast("Any", (WorkspaceLink(),))
    resource_kind: ClassVar[str]
    """The resource of the task's link: a key of ``links.RESOURCE_PATHS``."""
    workspace_url = ""
    rendered_to_none = cast("tuple[str, ...]", ())
    """The arguments that were given, and in which a template or XCom has no value."""

    def __post_init__(self) -> None:
        """Retry as the error says, unless the author of the Dag says otherwise."""
        if getattr(self, "retry_policy", None) is None:
            self.retry_policy = default_retry_policy()

    def __setattr__(self, key: str, value: Any) -> None:
        """Mask secrets in arguments, since Airflow shows rendered fields before the task runs; note missing values."""
        if isinstance(value, Undefined):  # native rendering leaves it
            value = None
        if key in self.template_fields and _rendered_to_none(vars(self).get(key), value):
            self.rendered_to_none = (*self.rendered_to_none, key)
        super().__setattr__(key, value)
        if key in self.template_fields:
            for secret in secrets_under(key, value):
                mask_secret(secret)

    @property
    def _context(self) -> Any:
        """
        The context of the run.

        Listeners walk over the attributes of a task, OpenLineage's with ``include_full_task_info``. The context leads
        back to the task, so such a walk would not end: no attribute of the task holds what leads to the context.
        """
        return self._read_context()

    @_context.setter
    def _context(self, context: Any) -> None:
        self._read_context: Callable[[], Any] = lambda: context

    if TYPE_CHECKING:
        # Arguments of Airflow that are no fields of its class, or whose fields have another type.
        dag: Any = None
        default_args: Any = None
        inlets: Any = None
        max_retry_delay: Any = None
        on_execute_callback: Any = None
        on_failure_callback: Any = None
        on_retry_callback: Any = None
        on_skipped_callback: Any = None
        on_success_callback: Any = None
        outlets: Any = None
        params: Any = None
        post_execute: Any = None
        pre_execute: Any = None
        retry_delay: Any = None
        retry_policy: Any = None
        task_display_name: Any = None
        trigger_rule: Any = None
        weight_rule: Any = None

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


class WorkspaceOperator(WorkspaceTaskMixin, BaseOperator):  # pyright: ignore[reportIncompatibleMethodOverride]
    """
    Base of the operators: calls the service and returns plain JSON.

    :param return_secrets: whether the result includes secret fields, such as a project's ``api_token``. XCom neither
        masks nor encrypts them
    :raises WorkspaceInputError: if ``return_secrets`` is not a boolean
    """

    return_secrets: bool = fixed(kinds.FLAG, default=False)

    def __post_init__(self) -> None:
        """Set what a run adds: the result, and what is carried across deferrals."""
        self.created: bool | None = None
        self.not_applied: Sequence[Mapping[str, Any]] = ()
        self.not_shown: Sequence[str] = ()
        # State that is kept across deferrals, see TaskState.
        self._carried: dict[str, Any] = {}

    @property
    def hook(self) -> WorkspaceHook:
        """A new hook for the connection."""
        from airflow_provider_workspace.hooks import workspace

        return workspace.WorkspaceHook(self.workspace_conn_id)

    @property
    def folder(self) -> str:
        """The folder of the Dag file, where relative paths begin."""
        return getattr(self._context.get("dag"), "folder", "")

    def try_identity(self) -> tuple[str, int]:
        """Return the name of the task and the number of its try."""
        ti = self._context.get("ti")
        names = ("dag_id", "run_id", "task_id", "map_index")
        return " / ".join(str(getattr(ti, name, "-")) for name in names), getattr(ti, "try_number", 1)

    def execute(self, context: Context) -> Any:
        """Call the service and return the result as plain JSON."""
        from airflow_provider_workspace.api.database_limits import storable
        from airflow_provider_workspace.errors import WorkspaceError, with_class

        self._context = context or {}  # tests pass None
        try:
            read_arguments(self, self.folder)
            with closing(self.hook) as hook:
                self.link_to(hook)
                result = self.work(hook)
                if not self.workspace_url:
                    self.link_to(hook, result)
                self._push_deprecations(hook)
        except WorkspaceError as error:
            if error.permanent and not has_own_retry_policy(self):
                raise AirflowFailException(with_class(error)) from None  # only one traceback in the log
            error.named()
            raise
        if isinstance(result, dict) and "id" in result and self.do_xcom_push:
            self.push_xcom("id", result["id"])
            if self.created is not None:
                self.push_xcom("created", self.created)
            if self.not_applied:
                self.push_xcom("not_applied", self.not_applied)
            if self.not_shown:
                self.push_xcom("not_shown", self.not_shown)
        return storable(result)

    def push_xcom(self, key: str, value: object) -> None:
        """Push an XCom, as every database of Airflow can store it; tests may have no task instance."""
        from airflow_provider_workspace.api.database_limits import storable

        if "ti" in self._context:
            self._context["ti"].xcom_push(key=key, value=storable(value))

    def _push_deprecations(self, hook: WorkspaceHook) -> None:
        """Push what the service announced about the end of operations, so that a Dag can alert before it."""
        from dataclasses import asdict

        announced = [{"operation": name, **asdict(deprecation)} for name, deprecation in hook.deprecations.items()]
        if announced and self.do_xcom_push:
            self.push_xcom("deprecations", announced)

    def defer_until(self, end_at: float) -> NoReturn:
        """
        Defer, with the state that the task keeps.

        A long state does not fit into the arguments of a trigger on MySQL, but into those of the method. A short one
        travels with the trigger, because ``airflow dags test`` drops the arguments of the method.

        :param end_at: until when, in seconds since 1970
        """
        from airflow_provider_workspace.api.database_limits import MAX_TEXT_BYTES, storable, trigger_size
        from airflow_provider_workspace.triggers.deadline import WorkspaceDeadlineTrigger

        carried = storable(self._carried)
        # Half of the column is left to the other arguments.
        if trigger_size(carried) > MAX_TEXT_BYTES // 2:
            trigger = WorkspaceDeadlineTrigger(end_at=end_at)
            self.defer(trigger=trigger, method_name="execute_with_state", kwargs={"state": carried})
        trigger = WorkspaceDeadlineTrigger(end_at=end_at, state=carried)
        self.defer(trigger=trigger, method_name="execute_complete")

    def execute_complete(self, context: Context, event: Mapping[str, Any] | None = None) -> Any:
        """Run again after a deferral, with the state that the task kept."""
        return self.execute_with_state(context, (event or {}).get("state"))

    def execute_with_state(
        self,
        context: Context,
        state: Mapping[str, Any] | None,
        event: Mapping[str, Any] | None = None,  # noqa: ARG002 - Airflow passes it
    ) -> Any:
        """Run again after a deferral with a long state."""
        self._carried = dict(state or {})
        return self.execute(context)

    def work(self, hook: WorkspaceHook) -> Any:
        """Do the work of the operator and return its result."""
        raise NotImplementedError

    def link_to(self, hook: WorkspaceHook, result: Any = None) -> None:
        """Set the URL of the task's link from the ids of the operator, or from the id of its result."""
        ids = {name: value for name, value in vars(self).items() if name.endswith("_id")}
        ids["dag_id"] = self.dag_id
        ids["group_id"] = self.task_id.rpartition(".")[0] or self.task_id
        id_field = f"{self.resource_kind}_id"
        if id_field not in ids and isinstance(result, dict) and "id" in result:
            ids[id_field] = result["id"]
        is_list = self.resource_kind.endswith("s")
        if is_list or id_field in ids:
            self.workspace_url = url_for(hook.client.settings, self.resource_kind, ids)

    def operation_from_arguments(self, hook: WorkspaceHook, operation: str, *mappings: str, **fields: Any) -> Any:
        """
        Return an operation with the arguments of the same names that were given, and the defaults of the connection.

        :param operation: its module and class in ``api.operations``, such as ``domains.CreateDomain``
        :param mappings: names of arguments that hold further fields, or names of fields to set to null
        :param fields: fields that are no arguments, or differ from them
        :raises WorkspaceInputError: if a field is given twice
        """
        from importlib import import_module

        from airflow_provider_workspace.errors import WorkspaceInputError
        from airflow_provider_workspace.hooks.workspace import with_default_ids

        module, _, name = operation.partition(".")
        cls = getattr(import_module(f"airflow_provider_workspace.api.operations.{module}"), name)
        names = cls.model_fields.keys() & self.declared.keys()
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        given = with_default_ids(hook, cls, given) | fields
        for mapping in mappings:
            others = getattr(self, mapping) or {}
            for name in others:
                if name in given:
                    raise WorkspaceInputError(
                        f"Pass {name}=…: {mapping} holds '{name}', which is an argument of its own"
                    )
            given |= others if isinstance(others, Mapping) else dict.fromkeys(others)
        return cls(**given)

    def plain(self, resource: Resource) -> dict[str, Any]:
        """Return a record as plain JSON, without secrets unless ``return_secrets`` is set."""
        return resource.to_dict(return_secrets=self.return_secrets)


class WorkspaceWriteOperator(WorkspaceOperator):
    """
    Base of the operators that write.

    :param dry_run: send no writes, but log and return the plan: ``action``, ``why``, ``operation``, ``request`` and
        ``fields`` of the write, or the record that was ``found``
    """

    # Kept elsewhere, because dry_run is a method of Airflow's operators.
    dry_run: Arg[bool] = arg(kinds.SWITCH, default=False, attribute="is_dry_run")  # pyright: ignore[reportIncompatibleMethodOverride]
    has_own_dry_run = False
    """Whether :meth:`write` handles a dry run itself."""
    is_dry_run: ClassVar[Any]

    def __post_init__(self) -> None:
        """Set what a run adds: the progress of its invites, and the check of its try."""
        # Progress of the invites that the task sends, for the status page.
        self.bulk_invite: BulkInviteProgress | None = None
        # What its plan leaves to a person, for the status page.
        self.by_hand: list[dict[str, Any]] = []
        # Fails the task if another try of it has begun.
        self.check_latest_try: Callable[..., None] | None = None
        # Whether this goes on after a deferral.
        self._was_deferred = False
        # What the tries of the task send, once it was asked for.
        self._journal: Journal | None = None

    @property
    def initiator(self) -> str:
        """Who started the run; the run if nobody did, or it is not known."""
        user = getattr(self._context.get("dag_run"), "triggering_user_name", None)
        if user:
            return str(user)
        ti = self._context.get("ti")
        run_id = getattr(ti, "run_id", "-")
        dag_id = getattr(ti, "dag_id", "-")
        return f"run {run_id} of Dag {dag_id}"

    def write(self, hook: WorkspaceHook) -> Any:
        """Send what the operator is for, and return its result."""
        raise NotImplementedError

    def work(self, hook: WorkspaceHook) -> Any:
        """Write; a dry run ends at the first write, and a long pause defers the task, which then begins again."""
        from airflow_provider_workspace.errors import WorkspaceOutcomeUnknownError

        if self.is_dry_run and not self.has_own_dry_run:
            return self.plan_write(hook)
        client = hook.client
        self._journal = None
        self._was_deferred = bool(self._carried)
        self.check_latest_try = self.task_state.take_over()
        if self.check_latest_try is not None:
            client.before_write = self.check_latest_try
        client.before_pause = self.before_pause
        client.unknown_class = WorkspaceOutcomeUnknownError  # whether to retry is decided by the author's retry_policy
        result = self.write(hook)
        self._carried = {}
        return result

    def plan_write(self, hook: WorkspaceHook) -> dict[str, Any]:
        """Return the first write as the plan, without sending it."""
        from airflow_provider_workspace.procedures.dry_run import PlannedWrite, plan_of

        def stop(operation: Operation[Any], why: str) -> None:
            raise PlannedWrite(operation, why)

        hook.client.before_write = stop
        try:
            result = self.write(hook)
        except PlannedWrite as planned:
            result = planned
        return plan_of(result, return_secrets=self.return_secrets)

    def before_pause(self, seconds: float) -> None:
        """Defer instead of a long pause, with the state that the task keeps."""
        if seconds <= MAX_PAUSE_ON_WORKER:
            return
        end_at = time.time() + seconds
        if self.bulk_invite is not None:
            self.bulk_invite.write(again_at=end_at)
        self.log.info("Deferring until %s.", datetime.fromtimestamp(end_at, timezone.utc))
        self.defer_until(end_at)

    def invite_people(
        self, rows: Iterable[Mapping[str, Any]], hook: WorkspaceHook, organization_id: str, **options: Any
    ) -> InvitesReport:
        """Invite people and report the progress to the status page; the options are those of ``invite_all``."""
        from airflow_provider_workspace.operators.bulk_invite_progress import BulkInviteProgress
        from airflow_provider_workspace.procedures.invites import invite_all

        self.bulk_invite = BulkInviteProgress(self._ti_for_xcom, organization_id, self.by_hand)
        # By service and organization: after a deferral the connection may lead elsewhere, where nobody was invited yet.
        target = hook.client.settings.organization_at_service(organization_id)
        with self.bulk_invite:
            report = invite_all(
                hook.client,
                rows,
                organization_id=organization_id,
                clock=time.time,
                monotonic=time.monotonic,
                memory=self.task_state,
                kept=self._carried.setdefault("invites", {}).setdefault(target, {}),
                progress=self.bulk_invite.progress,
                report=self.bulk_invite.report,
                journal=self.journal,
                **options,
            )
        if self.check_latest_try:
            self.check_latest_try()  # a try that was suspended may find everybody invited
        return report

    def show_by_hand(self, plan: Plan, organization_id: str) -> None:
        """Show on the status page what a plan leaves to a person, also if it invites nobody."""
        from airflow_provider_workspace.operators.bulk_invite_progress import BulkInviteProgress

        changes = [change for change in plan.changes if change.action == "differs"]
        self.by_hand = [{"email": change.name, "status": "by hand", "reason": change.notes} for change in changes]
        if self.by_hand:
            BulkInviteProgress(self._ti_for_xcom, organization_id, self.by_hand).write()

    @property
    def _ti_for_xcom(self) -> object:
        """The task instance, which stores XComs with addresses; ``None`` if the author wants no XCom."""
        return self._context.get("ti") if self.do_xcom_push else None

    @property
    def journal(self) -> Journal:
        """What the tries of the task send; empty in a dry run."""
        from airflow_provider_workspace.notes.task_state import KEY, TaskState
        from airflow_provider_workspace.procedures.journal import Journal

        if self._journal is None:

            def page_of(number: int) -> TaskState:
                key = f"{KEY}.sent.{number}"
                return TaskState(self._context, dry_run=self.is_dry_run, key=key)  # too long to be carried

            is_first = self.try_identity()[1] == 1 and not self._was_deferred
            knows_all = self.is_dry_run or self.task_state.survives_tries or is_first
            check = self.check_latest_try or (lambda: None)
            self._journal = Journal(page_of, self.sent_by, knows_all=knows_all, check=check)
        return self._journal

    def withdrawn_invites(self, client: WorkspaceClient, place: str) -> WithdrawnInvites:
        """Return who was there before a try of the task withdrew invites at a place."""
        from airflow_provider_workspace.access.door import WithdrawnInvites
        from airflow_provider_workspace.notes.note import digest
        from airflow_provider_workspace.notes.task_state import KEY, TaskState

        carried = self._carried.setdefault("withdrawn", {})

        def page_of(number: int) -> TaskState:
            key = f"{KEY}.withdrawn.{digest(place)}.{number}"
            return TaskState(self._context, carried, dry_run=self.is_dry_run, key=key)

        return WithdrawnInvites(client, page_of, max_tries=self._max_tries, unknown=self.unknown_people)

    @property
    def unknown_people(self) -> UnknownPeople | None:
        """Who was there before an earlier try, of which a retry knows nothing; ``None`` if there is none."""
        from airflow_provider_workspace.access.door import UnknownPeople

        if self.try_identity()[1] == 1 or self.task_state.survives_tries:
            return None
        run_after = getattr(self._context.get("dag_run"), "run_after", None)
        return UnknownPeople(run_after.timestamp() if run_after else 0.0)

    @property
    def _max_tries(self) -> int | None:
        """The number of tries of the task, which increases each time it is cleared."""
        return getattr(self._context.get("ti"), "max_tries", None)

    @property
    def sent_by(self) -> str:
        """Who sends, for people: this try."""
        return f"try {self.try_identity()[1]}"

    def open_report(
        self,
        rows: str,
        columns: Sequence[str],
        needs_attention: Collection[str],
        path: object,
        *,
        sources: Iterable[object],
    ) -> ReportFile | None:
        """
        Return the file of the report; ``None`` without a path.

        A retry that cannot know what the tries before it have sent writes a file of its own, because theirs says it.

        :param sources: the files that the task reads, which are not overwritten
        """
        from airflow_provider_workspace.files.reports import ReportFile, raise_if_read

        if path is None:
            return None
        raise_if_read(path, sources)
        number = self.try_identity()[1]
        keeps_other = number > 1 and not (self.is_dry_run or self.task_state.survives_tries)
        part = f"try-{number}" if keeps_other else ""
        return ReportFile(path, rows, columns, needs_attention, self._context.get("ti"), part)

    def reported(self, file: ReportFile | None, report: dict[str, Any]) -> dict[str, Any]:
        """
        Write a report to its file, if there is one, and return the result of the task.

        :raises WorkspaceError: if the file cannot be written; then the XCom ``report`` has the whole report
        """
        from airflow_provider_workspace.errors import WorkspaceError
        from airflow_provider_workspace.files.reports import fit_for_xcom

        if file is None:
            result = fit_for_xcom(report)
            if result is not report:
                self.log.info(
                    "The result has a part of the rows. The log has all changes; report_path writes all rows."
                )
            return result
        try:
            file.write(report)
        except WorkspaceError:
            self.push_report(None, report)
            raise
        self.log.info("The whole report is in %s.", file)
        return file.excerpt(report)

    def push_report(self, file: ReportFile | None, report: dict[str, Any]) -> None:
        """Push the XCom ``report`` of a task that fails, unless it pushes none; an error of the file is logged only."""
        from airflow_provider_workspace.errors import WorkspaceError

        try:
            value = self.reported(file, report)
        except WorkspaceError as error:
            self.log.error("%s", error)  # noqa: TRY400 - the error of the task follows
        else:
            if self.do_xcom_push:
                self.push_xcom("report", value)

    @property
    def task_state(self) -> TaskState:
        """The state of the task across its tries; empty in a dry run."""
        from airflow_provider_workspace.notes.task_state import TaskState

        return TaskState(self._context, self._carried, dry_run=self.is_dry_run, clock=time.time)

    def compared(self, create: Operation[Any], record: Resource) -> dict[str, Any]:
        """
        Return a record as plain JSON, and note how it differs from what was requested.

        The fields of a record that existed are not missing: nothing was sent, and lists show less than the record has.
        """
        from airflow_provider_workspace.api.comparison import (
            describe_differences,
            describe_unshown,
            differences,
            unshown_of_record,
        )

        if self.created is not False:
            self.not_shown = unshown_of_record(create, record)
        if self.not_shown and not self.created:  # after a create the client logs it
            self.log.warning("%s", describe_unshown(create, self.not_shown))
        self.not_applied = differences(create, record)
        if self.not_applied and not self.created:  # after a create the client logs it
            self.log.warning("The existing record differs: %s", describe_differences(self.not_applied))
        return self.plain(record)

    def changed(
        self, client: WorkspaceClient, update: Operation[Any], find: Callable[[], Resource | None]
    ) -> dict[str, Any]:
        """Send a change, read it back if need be, and return the record as plain JSON; note what it does not show."""
        from airflow_provider_workspace.api.comparison import unshown
        from airflow_provider_workspace.procedures.ensure import change

        record = change(client, update, find)
        self.not_shown = unshown(update, record)
        return self.plain(record)
