"""Task groups: maintenance windows, organizations and access reviews."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import TaskGroup

from airflow_provider_workspace.api.templates import template_line
from airflow_provider_workspace.operators import window_closing, windows
from airflow_provider_workspace.version_compat import default_argument, default_retry_policy

if TYPE_CHECKING:
    from airflow.sdk import BaseNotifier, XComArg

    from airflow_provider_workspace.operators.base import WorkspaceOperator
    from airflow_provider_workspace.operators.organization import Part

# Arguments of window tasks that default_args must not change, because the window would not open or not close.
WINDOW_TASK_ARGS: dict[str, Any] = {
    "depends_on_past": False,
    "wait_for_downstream": False,
    "ignore_first_depends_on_past": True,
    "trigger_rule": "all_success",
    "execution_timeout": None,
    "pre_execute": None,
    "post_execute": None,
    "do_xcom_push": True,
    "retries": 3,
    "retry_delay": timedelta(seconds=10),
    "retry_exponential_backoff": False,
    "max_retry_delay": None,
    # What watches the work must not wait for its slots.
    "pool": "default_pool",
    "pool_slots": 1,
    # Adds nothing to the priority of the author's tasks, whose own weight rule sums the weights of what is before or
    # after them. See docs/adr/0029.
    "weight_rule": "downstream",
    "priority_weight": 0,
}
# Weight of the task "priority", above what other Dags set. Only close and guard, whose rule is "upstream", sum it.
PRIORITY = 1_000_000_000
# The tasks that resume come before all others that wait for a slot.
PRIORITY_ARGS: dict[str, Any] = {"weight_rule": "upstream"}
# Retry the task that resumes for about an hour.
CLOSE_TASK_ARGS: dict[str, Any] = {
    **WINDOW_TASK_ARGS,
    **PRIORITY_ARGS,
    "retries": 15,
    "retry_delay": timedelta(seconds=15),
    "retry_exponential_backoff": True,
    "max_retry_delay": timedelta(minutes=5),
}

# The tasks of an organization pass XComs on and have an order, whatever the default_args of the Dag.
TASK_DEFAULTS: dict[str, Any] = {
    "do_xcom_push": True,
    "trigger_rule": "all_success",
    "retries": 3,
    "retry_delay": timedelta(seconds=30),
    "retry_exponential_backoff": True,
}
# The parts of an organization file: display name, and the parts that come before.
STEPS: dict[Part, tuple[str, tuple[Part, ...]]] = {
    "projects": ("Create the projects", ()),
    "domains": ("Claim the domains", ()),
    "verification": ("Verify the domains", ("domains",)),
    "members": ("Invite and change members", ("verification",)),
    "dashboards": ("Create the dashboards", ("projects",)),
    "collaborators": ("Add the collaborators", ("dashboards", "members")),
    "exports": ("Pause and resume exports", ()),
}


@contextmanager
def maintenance_window(
    group_id: str = "maintenance_window",
    *,
    batch_export_ids: Sequence[str] | str | XComArg,
    organization_id: str | XComArg | None = None,
    workspace_conn_id: str | None = None,
    drain: timedelta | float | str | None = None,
    hold: timedelta | float | str | None = None,
    max_length: timedelta | float | str | None = None,
    leave_paused: Sequence[str] | str | XComArg = (),
    resume_fields: Mapping[str, Any] | None = None,
    state_of: Any = None,
    catch_up: timedelta | float | str | None = None,
    project_id: str | int | None = None,
    outlets: Sequence[Any] = (),
    on_overdue: BaseNotifier | Sequence[BaseNotifier] | None = None,
    resume_args: dict[str, Any] | None = None,
    guard_args: dict[str, Any] | None = None,
) -> Iterator[TaskGroup]:
    """
    Build a maintenance window around the tasks that are created inside the ``with`` statement.

    ``open`` and ``pause`` are the setup, the author's tasks are the work, and ``close`` is the teardown. ``close``
    resumes the exports also if the work failed, was killed, timed out or was marked as failed, or if only some exports
    could be paused. A failed resume is retried for about an hour; then the run fails with an error that names the
    exports still paused. If the work fails, ``outcome``, a leaf of the group, fails the run. Airflow does not run
    ``close`` if the Dag was paused, edited or deleted meanwhile, or if its ``dagrun_timeout`` is over. Then a Dag with
    :class:`~airflow_provider_workspace.operators.sweep.WorkspaceSweepOperator` resumes the exports: add one to each
    Airflow.

    The API cannot show whether an export is paused, so without ``state_of`` the window does not notice what
    others do, and an export that was paused before is resumed at its end, unless it is in ``leave_paused``.

    :param group_id: id of the task group; the ids of the author's tasks are not prefixed
    :param batch_export_ids: the batch exports (UUID); evaluated when the window opens
    :param organization_id: the organization; by default that of ``default_args``, or of the connection
    :param workspace_conn_id: the connection to the service; by default that of ``default_args``, or
        ``workspace_default``
    :param drain: how long to wait between the pause and the work, without a worker slot: a pause stops new runs of an
        export, but not a running one
    :param hold: minimum time to keep the window open, after ``drain``, without a worker slot; the work may then be
        empty
    :param max_length: time after which the exports are resumed and the run fails; the work is not stopped. It counts
        from the first task of the window. Without it, a window is abandoned after a day, besides ``drain`` and ``hold``
    :param leave_paused: batch exports of the window that are not resumed
    :param resume_fields: fields of the resume request, as of
        :class:`~airflow_provider_workspace.operators.batch_exports.WorkspaceUnpauseBatchExportOperator`
    :param state_of: shows whether an export is paused, where the service can: an operation of your own that lists batch
        exports (or reads one by ``batch_export_id``) with ``id`` and ``paused``, or a function of the hook and the id
        that returns ``paused``, ``running`` or ``None``. An export that was paused before the window then stays paused
    :type state_of: operation, function, or the name of one
    :param catch_up: where the service shows the runs of exports: how long a task after ``close`` requests what is
        missing and waits until each interval has a completed run, without a worker slot. With it, ``drain`` ends when
        no run is under way
    :param project_id: the project of the exports, for ``catch_up``; by default that of the connection
    :param outlets: assets whose events say up to when everything is exported; they need ``catch_up``
    :param on_overdue: called when ``max_length`` is over, besides the ``on_failure_callback`` of ``default_args``
    :param resume_args: arguments for the task that resumes, such as ``retries`` or ``pool``; by default it runs in
        ``default_pool``, before all other tasks
    :param guard_args: arguments for the task that watches ``max_length``, such as ``pool``
    :return: the task group of the work. The window opens when the run begins; use ``before >> work.parent_group`` to
        open it later, and ``work >> after`` for a task that follows
    :raises ValueError: if there is neither work nor ``hold``, if ``on_overdue`` or ``guard_args`` is given without
        ``max_length``, if a length of time is invalid, if ``max_length`` is not above ``drain`` and ``hold`` together,
        or if it is set in a Dag with ``max_active_tasks=1``, if ``catch_up`` is given with a ``backfill`` in
        ``resume_fields``, or if ``outlets`` are no assets; when the Dag is complete, if a task outside of the window
        runs between two of its tasks, or if the weights before ``close`` are above what Airflow can store
    """
    _check_given("max_length", max_length, on_overdue=on_overdue, guard_args=guard_args)
    _check_catch_up(catch_up, resume_fields, outlets, project_id)
    _check_lengths(drain=drain, hold=hold, max_length=max_length, catch_up=catch_up)
    policy = default_retry_policy()
    policy_args = {} if policy is None else {"retry_policy": policy}
    conn_id = workspace_conn_id or default_argument("workspace_conn_id", "workspace_default")
    own: dict[str, Any] = {**WINDOW_TASK_ARGS, **policy_args, "workspace_conn_id": conn_id}
    close_args: dict[str, Any] = {**CLOSE_TASK_ARGS, **policy_args, **(resume_args or {})}
    watch_args = _with_callbacks({**own, **PRIORITY_ARGS, **(guard_args or {})}, on_overdue)
    organization_id = default_argument("organization_id", None) if organization_id is None else organization_id
    with TaskGroup(group_id, tooltip="Pause batch exports, work, resume them") as window:
        close = window_closing.WorkspaceCloseMaintenanceWindowOperator(
            task_id="close",
            task_display_name="Resume the exports",
            doc_md="Runs also **if the work fails**. If it fails itself, its error names the exports still paused.",
            open_task_id=f"{window.group_id}.open",
            outcome_task_id=f"{window.group_id}.outcome",
            **close_args,
        )
        priority = _priority_task(window, close.dag)
        priority >> close
        if max_length is not None and close.dag.max_active_tasks == 1:
            raise ValueError(
                f"With max_active_tasks=1, the guard of the window '{group_id}' cannot resume the exports while the "
                "work runs. Set max_active_tasks of the Dag to 2 or more, or omit max_length"
            )
        opened = windows.WorkspaceOpenMaintenanceWindowOperator(
            task_id="open",
            task_display_name="Open the window",
            doc_md="Checks the ids and writes a lease for each export. Nothing is paused yet.",
            close_task_id=close.task_id,
            group_id=str(window.group_id),
            batch_export_ids=batch_export_ids,
            organization_id=organization_id,
            drain=drain,
            hold=hold,
            max_length=max_length,
            catch_up=catch_up,
            leave_paused=leave_paused,
            resume_fields=resume_fields,
            state_of=state_of,
            **own,
        )
        pause = windows.WorkspacePauseWindowExportsOperator(
            task_id="pause",
            task_display_name="Pause the exports",
            doc_md="Pauses one export after the other. If one cannot be paused, the window is closed again.",
            close_task_id=close.task_id,
            **own,
        )
        ready: WorkspaceOperator = pause
        setups: list[WorkspaceOperator] = [opened, pause]
        began = _result(opened.task_id, "opened_at")
        if drain is not None:
            ready = _drain_task(opened, pause, drain, own, project_id, has_runs=catch_up is not None)
            setups.append(ready)
            began = _result(ready.task_id, "ended_at")
        # Airflow clears the failed tasks of a run without their setups.
        default_args = {**close.dag.default_args, **window.default_args}
        check = windows.RequireOpenWindow(
            close.task_id,
            mapped=close.get_closest_mapped_task_group() is not None,
            first=default_args.get("pre_execute"),
        )
        work_args: Any = {"pre_execute": check}
        with TaskGroup("work", prefix_group_id=False, default_args=work_args) as work:
            yield work
            if hold is not None:
                windows.WorkspaceHoldMaintenanceWindowOperator(
                    task_id=f"{window.group_id}.hold",
                    task_display_name=f"Hold for {hold}" if isinstance(hold, timedelta) else "Hold the window",
                    doc_md="Keeps the window open, without a worker slot.",
                    opened_at=began,
                    length=hold,
                    # It is work, as a task of the author's would be.
                    **{**own, **work_args, "priority_weight": 1},
                )
        if not work.children:
            raise ValueError(
                f"The window '{group_id}' has no work: create tasks inside the with statement, or set hold"
            )
        opened >> pause
        ready >> work
        # An inner window that catches up is closed, and does not hold this one open.
        leaves = [leaf for leaf in work.get_leaves() if not _follows_window(leaf)]
        _end_with(leaves, close)
        # Whoever clears the work clears its setups and their teardowns too: drain and guard begin again with it.
        close.as_teardown(setups=setups, on_failure_fail_dagrun=True)
        close.setup_task_ids = frozenset(setup.task_id for setup in setups)
        after = [task.task_id for task in work.get_leaves() if _follows_window(task)]
        close.work_task_ids = frozenset(task.task_id for task in work).difference(after)
        # An inner window that cannot close does not hold this one open.
        opened.work_task_ids = sorted(
            close.work_task_ids.difference(task.task_id for task in work if isinstance(task, window_closing.CLOSING))
        )
        if max_length is not None:
            guard = window_closing.WorkspaceGuardMaintenanceWindowOperator(
                task_id="guard",
                task_display_name=_guard_name(max_length),
                doc_md="Waits without a worker slot. If the window is open then, it resumes the exports and fails.",
                close_task_id=close.task_id,
                open_task_id=opened.task_id,
                **watch_args,
            )
            guard.as_teardown(setups=pause, on_failure_fail_dagrun=True)
            priority >> guard
        if catch_up is not None:
            _catch_up(opened, pause, close, batch_export_ids, catch_up, outlets, {**own, "project_id": project_id})


def _follows_window(task: Any) -> bool:
    """Return whether a task is what a window inside of the work does after it is closed."""
    closed = [each for each in task.upstream_list if isinstance(each, window_closing.CLOSING)]
    for each in closed:
        window_id, _, _ = each.task_id.rpartition(".")
        if task.task_id == f"{window_id}.catch_up":
            return True
    return False


def _catch_up(
    opened: Any,
    pause: Any,
    close: Any,
    batch_export_ids: Any,
    catch_up: Any,
    outlets: Sequence[Any],
    of_exports: dict[str, Any],
) -> None:
    """Add the task that exports what a window has missed, and the one that checks before it opens that this works."""
    from airflow_provider_workspace.operators.catch_up import WorkspaceCatchUpOperator, WorkspaceCheckExportRunsOperator

    check = WorkspaceCheckExportRunsOperator(
        task_id="check",
        task_display_name="Check that runs are shown",
        doc_md="Reads the runs and backfills of each export, without which nothing could be proven later.",
        batch_export_ids=batch_export_ids,
        **of_exports,
    )
    held = _value(opened.task_id, "batch_export_ids")
    leave_paused = _value(opened.task_id, "leave_paused")
    left_by_close = _value(close.task_id, "left_paused")
    paused_before = _value(pause.task_id, "paused_before")
    # If the sweep closed the window, close has not seen what was paused before. A pause that failed has no result, nor
    # has a close without do_xcom_push.
    left_paused = f"{leave_paused} + ({left_by_close} | default([])) + ({paused_before} | default([]))"
    caught_up = WorkspaceCatchUpOperator(
        task_id="catch_up",
        task_display_name="Export what was missed",
        doc_md="Waits without a worker slot until runs prove that every interval of the pause is exported.",
        # Also what the sweep or an earlier try of close has resumed, and what another window holds and will resume.
        batch_export_ids=f"{{{{ {held} | reject('in', {left_paused}) | list | tojson }}}}",
        since=_result(opened.task_id, "missed_since"),
        opened_at=_result(opened.task_id, "opened_at"),
        timeout=catch_up,
        outlets=list(outlets),
        **of_exports,
    )
    check >> opened
    close >> caught_up


def _drain_task(
    opened: Any, pause: Any, drain: Any, own: dict[str, Any], project_id: Any, *, has_runs: bool
) -> WorkspaceOperator:
    """Return the task that waits for runs under way: for exactly those, where the service shows them."""
    paused_at = _result(pause.task_id, "paused_at")
    name = f"Drain for {drain}" if isinstance(drain, timedelta) else "Drain"
    arguments: dict[str, Any] = {
        "task_id": "drain",
        "task_display_name": name,
        "doc_md": "Gives running exports time to end, without a worker slot.",
        "opened_at": paused_at,
        "length": drain,
        **own,
    }
    task: WorkspaceOperator
    if has_runs:
        from airflow_provider_workspace.operators.catch_up import WorkspaceDrainExportsOperator

        export_ids = _result(opened.task_id, "batch_export_ids", " | tojson")
        task = WorkspaceDrainExportsOperator(batch_export_ids=export_ids, project_id=project_id, **arguments)
    else:
        task = windows.WorkspaceHoldMaintenanceWindowOperator(**arguments)
    pause >> task
    return task


def _check_given(needed: str, value: object, **others: object) -> None:
    """Refuse arguments that mean nothing without another one."""
    for name, other in others.items():
        if other is not None and value is None:
            raise ValueError(f"{name} needs {needed}")


def _check_catch_up(catch_up: object, resume_fields: object, outlets: object, project_id: object) -> None:
    """Refuse what means nothing without ``catch_up``, what would export intervals twice, and outlets without events."""
    from airflow.sdk import Asset, AssetAlias

    _check_given("catch_up", catch_up, outlets=outlets or None, project_id=project_id)
    if catch_up is not None and isinstance(resume_fields, Mapping) and resume_fields.get("backfill"):
        raise ValueError(
            "With catch_up, 'backfill' in resume_fields exports intervals twice. Omit it from resume_fields"
        )
    if not isinstance(outlets, Sequence) or not all(isinstance(outlet, Asset | AssetAlias) for outlet in outlets):
        raise ValueError("outlets must be a list of assets, such as [Asset('workspace_export')]")


def _check_lengths(**lengths: timedelta | float | str | None) -> None:
    """Check the lengths of a window, but for templates, which are checked when the window opens."""
    known_lengths = {name: length for name, length in lengths.items() if not template_line(str(length))}
    windows.parse_lengths(**known_lengths)


def _priority_task(window: TaskGroup, dag: Any) -> Any:
    """Return the task whose weight the tasks that resume sum, and no others."""
    return _empty_task(
        f"{window.group_id}.priority",
        f"Priority of {window.group_id}",
        "Does nothing. Lets the tasks that resume the exports come before all others that wait for a slot.",
        # Outside of the group: what the author puts before the group is not before this task.
        task_group=dag.task_group,
        weight_rule="absolute",
        priority_weight=PRIORITY,
    )


def _guard_name(max_length: timedelta | float | str) -> str:
    """Return the name for people of the task that watches the window."""
    if isinstance(max_length, timedelta):
        return f"Resume after {max_length} at the latest"
    return "Resume when the window is overdue"


def _end_with(leaves: Sequence[Any], close: window_closing.WorkspaceCloseMaintenanceWindowOperator) -> None:
    """Let the task that resumes, and the outcome of the work, follow the last tasks of the work."""
    # Work that is skipped must not hide other work that fails. A fail_fast Dag allows no other rule.
    outcome = _empty_task(
        "outcome",
        "Outcome of the work",
        "Does nothing. Fails the run if the work failed, although the exports were resumed.",
        trigger_rule="all_success" if close.dag.fail_fast else "none_failed",
    )
    for number, leaf in enumerate(leaves, start=1):
        last = _after_branch(leaf, number) if leaf.inherits_from_skipmixin else leaf
        last >> [close, outcome]


def _after_branch(branch: Any, number: int) -> Any:
    """Return a task behind a branch, which skips what directly follows it, teardowns too."""
    after = _empty_task(
        f"branched_{number}",
        f"After {branch.task_id}",
        "Does nothing. A branch may skip what directly follows it, but not the task that resumes.",
    )
    branch >> after
    return after


def _empty_task(task_id: str, name: str, doc_md: str, **arguments: Any) -> Any:
    """Return a task of a window that the scheduler ends without a slot, since it has no callbacks."""
    from airflow.providers.standard.operators.empty import EmptyOperator

    no_callbacks = {"on_execute_callback": None, "on_success_callback": None}
    all_arguments = {**WINDOW_TASK_ARGS, **no_callbacks, **arguments}
    return EmptyOperator(task_id=task_id, task_display_name=name, doc_md=doc_md, **all_arguments)


def _with_callbacks(arguments: dict[str, Any], on_overdue: object) -> dict[str, Any]:
    """Return the arguments of the guard with ``on_overdue`` besides the author's own callbacks, if it is set."""
    if on_overdue is None:
        return arguments
    own = arguments.get("on_failure_callback", default_argument("on_failure_callback", None))
    return {**arguments, "on_failure_callback": [*_callbacks(own), *_callbacks(on_overdue)]}


def _callbacks(callbacks: object) -> list[Any]:
    """Return callbacks as a list, as Airflow takes none, one or several."""
    if callbacks is None:
        return []
    return list(callbacks) if isinstance(callbacks, Sequence) else [callbacks]


def _lines_of_report(parts: list[Mapping[str, Any]]) -> list[str]:
    """Return the numbers of all parts, if their results have all changes, and the table of each."""
    from airflow_provider_workspace.procedures.plan import ChangeRow, summarize

    rows: list[ChangeRow] = []
    tables: list[str] = []
    for name, part in zip(STEPS, parts, strict=True):
        if part["changes"]:
            rows += map(ChangeRow.from_dict, part["changes"])
            tables.append(f"{name}: {part['table']}")
    is_whole = not any("changes_not_shown" in part for part in parts)
    return [summarize(rows, applied=True), *tables] if is_whole else tables


def workspace_organization(
    group_id: str = "organization",
    *,
    file: Any,
    organization: str | None = None,
    workspace_conn_id: str | None = None,
    roster: Sequence[Any] | XComArg | None = None,
    columns: Sequence[str | None] | Mapping[str, str | None] | None = None,
    where: Mapping[str, Any] | None = None,
    render_file: bool | None = None,
    publish: Callable[[Any], Any] | None = None,
    require_approval: bool = False,
    dry_run: bool = False,
    plan_args: Mapping[str, Any] | None = None,
    verification_args: Mapping[str, Any] | None = None,
    **task_args: Any,
) -> None:
    """
    Build a task group that makes an organization match its file: a plan, a task for each part, and a report.

    Each task plans its part again and sends only the differences, so a second run changes nothing. The order is:
    projects, then dashboards; domains, ``publish``, verification, then members; last the collaborators.

    The arguments that are not described here are those of
    :class:`~airflow_provider_workspace.operators.organization.WorkspacePlanOrganizationOperator`.

    :param group_id: id of the task group
    :param file: the organization file: a path relative to the Dag file, a URL for ``airflow.sdk.ObjectStoragePath``,
        such as ``s3://conn_id@bucket/northwind.yaml``, or the content as a mapping. A list, or the XCom of one, maps
        the group: its items are files, or mappings with ``file`` and optionally ``organization`` and
        ``workspace_conn_id``
    :type file: path, URL, ``dict``, or ``list`` of these
    :param workspace_conn_id: the connection to the service; by default that of ``default_args``, or
        ``workspace_default``
    :param publish: creates the task that publishes the challenges of domains in your DNS, such as a ``@task`` function.
        It is called with the XCom of a list of domains, each with ``domain`` and ``verification_challenge``
    :param require_approval: whether a person has to approve the plan; only approved changes are sent
    :param dry_run: whether to plan only, and fail if the organization differs from its file: a drift check
    :param plan_args: more arguments for the task ``plan``, such as ``{"approvers": ["ada"]}``
    :param verification_args: more arguments for the task ``verification``, such as ``{"timeout": 3600}``
    :param task_args: arguments for each of the tasks, such as ``pool``; by default they have 3 retries
    """
    from airflow.sdk import XComArg, task, task_group

    from airflow_provider_workspace.operators.organization import (
        WorkspaceApplyOrganizationOperator,
        WorkspacePlanOrganizationOperator,
    )
    from airflow_provider_workspace.operators.reading import read_dry_run, read_published

    dry_run = read_dry_run(dry_run)
    workspace_conn_id = workspace_conn_id or default_argument("workspace_conn_id", "workspace_default")
    people = {"roster": roster, "columns": columns, "where": where}
    single = {"organization": organization, "workspace_conn_id": workspace_conn_id}

    all_task_args: dict[str, Any] = {**TASK_DEFAULTS, **task_args}

    @task(task_id="report", task_display_name="Report", doc_md="Logs what was changed.", **all_task_args)
    def report(parts: list[Mapping[str, Any]]) -> dict[str, int]:
        """Log what the run changed."""
        print(*_lines_of_report(parts), sep="\n")  # noqa: T201 - the log of the task
        return {action: sum(part["counts"][action] for part in parts) for action in parts[0]["counts"]}

    @task_group(group_id=group_id, tooltip="Make an organization match its file")
    def organization_group(file: object, organization: object, workspace_conn_id: object) -> None:
        common: dict[str, Any] = {
            "file": file,
            "organization": organization,
            "workspace_conn_id": workspace_conn_id,
            "render_file": render_file,
            "map_index_template": "{{ task.map_label }}",
            **all_task_args,
        }
        all_plan_args = {**common, **people, **(plan_args or {})}
        plan = WorkspacePlanOrganizationOperator(
            task_id="plan",
            task_display_name="Check for drift" if dry_run else "Plan",
            doc_md="Compares the organization with its file. Sends nothing.",
            require_approval=require_approval,
            fail_on_difference=dry_run,
            **all_plan_args,
        )
        if dry_run:
            return
        args_of_parts: dict[str, Mapping[str, Any]] = {"members": people, "verification": verification_args or {}}
        tasks: dict[str, Any] = {}
        for part, (name, before) in STEPS.items():
            part_args = {**common, **args_of_parts.get(part, {})}
            tasks[part] = WorkspaceApplyOrganizationOperator(
                task_id=part,
                task_display_name=name,
                doc_md=f"Plans the {part} again, and applies the changes.",
                part=part,
                approved=plan.output if require_approval else None,
                **part_args,
            )
            plan >> tasks[part]
            for other in before:
                tasks[other] >> tasks[part]
        if publish is not None:
            published = read_published(publish(tasks["domains"].output["unverified"]))
            published >> tasks["verification"]
        results = [part_task.output for part_task in tasks.values()]
        report(results)

    def arguments_of(item: object) -> dict[str, Any]:
        if isinstance(item, Mapping) and "file" in item:
            return {**single, **item}
        return {**single, "file": item}

    if isinstance(file, XComArg):
        organization_group.expand_kwargs(file.map(arguments_of))
    elif isinstance(file, list):
        organization_group.expand_kwargs([arguments_of(item) for item in file])
    else:
        organization_group(file, **single)


def access_review(
    group_id: str = "access_review",
    *,
    evidence: Any,
    digests: Any = None,
    reviewers: Sequence[str] | str | XComArg,
    review_timeout: timedelta | float | str,
    protected: Sequence[Any] | str | XComArg = (),
    owner_level: int | str | None = 15,
    max_removals: int | str | None = "10 or 30%",
    dashboards: Sequence[Any] | str | XComArg = (),
    notifiers: Any = (),
    allow_self_approval: bool = False,
    decisions_folder: str | None = None,
    project_access: Any = None,
    roster: Sequence[Any] | str | XComArg | None = None,
    dry_run: bool = False,
    organization_id: str | XComArg | None = None,
    workspace_conn_id: str | None = None,
    **task_args: Any,
) -> TaskGroup:
    """
    Build a task group that reviews who has access: it lists them, asks a reviewer, applies decisions, and proves it.

    Each run writes its evidence to a folder of its own, and writes no file twice. A retried or cleared task continues
    with what is there; to decide again, start a new run. ``close_review`` also runs if an earlier task failed, so the
    evidence says "not reviewed" if nobody decided; then, and if anything that was decided is not done, the run fails.
    Behind a branch or a short circuit that skips ``read_population``, the review was not due: ``close_review`` is
    skipped too, and writes nothing. Airflow allows no ``fail_fast`` in the Dag, since ``close_review`` has another
    trigger rule than ``all_success``.

    The arguments that are not described here are those of
    :class:`~airflow_provider_workspace.operators.access_review.WorkspaceDecideAccessOperator`.

    :param group_id: id of the task group
    :param project_access: function of the hook that returns the levels of each person by project, from an endpoint of
        your own; see the guide
    :param roster: rows of the people who should have access; whoever has none is looked at first
    :param dry_run: whether to plan only what was decided; the review then stays incomplete
    :param organization_id: the organization; by default that of ``default_args``, or of the connection
    :param workspace_conn_id: the connection to the service; by default that of ``default_args``, or
        ``workspace_default``
    :param task_args: arguments for each of the tasks, such as ``pool``; by default they have 3 retries
    """
    from airflow.sdk import chain

    from airflow_provider_workspace.operators import access_review as review

    common: dict[str, Any] = {
        "evidence": evidence,
        "digests": digests,
        "dashboards": dashboards,
        "reviewers": reviewers,
        "review_timeout": review_timeout,
        "protected": protected,
        "owner_level": owner_level,
        "max_removals": max_removals,
        "allow_self_approval": allow_self_approval,
        "decisions_folder": decisions_folder,
    }
    if organization_id is not None:
        common["organization_id"] = organization_id
    if workspace_conn_id is not None:
        common["workspace_conn_id"] = workspace_conn_id
    common |= {**TASK_DEFAULTS, **task_args}
    group = TaskGroup(group_id, tooltip="Read who has access, decide, apply, prove")
    common["read_task_id"] = group.child_id("read_population")  # type: ignore[no-untyped-call]
    common["decide_task_id"] = group.child_id("decide")  # type: ignore[no-untyped-call]
    closing = {"apply_task_id": group.child_id("apply_decisions"), "trigger_rule": "all_done"}  # type: ignore[no-untyped-call]

    def step(cls: Any, task_id: str, name: str, **own: Any) -> WorkspaceOperator:
        first_sentence = str(cls.__doc__).split(". ")[0]
        task: WorkspaceOperator = cls(
            task_id=task_id, task_display_name=name, doc_md=first_sentence, **{**common, **own}
        )
        return task

    with group:
        read = step(
            review.WorkspaceReadPopulationOperator,
            "read_population",
            "Read who has access",
            project_access=project_access,
            roster=roster,
        )
        decide = step(review.WorkspaceDecideAccessOperator, "decide", "Decide who keeps access", notifiers=notifiers)
        apply = step(review.WorkspaceApplyDecisionsOperator, "apply_decisions", "Do what was decided", dry_run=dry_run)
        close = step(review.WorkspaceCloseReviewOperator, "close_review", "Prove it", **closing)
        chain(read, decide, apply, close)
    return group


def _result(task_id: str, name: str, and_then: str = "") -> str:
    """
    Return a template of a part of a task's result, in a mapped task group that of the same index.

    :param and_then: filters
    """
    return f"{{{{ {_value(task_id, name)}{and_then} }}}}"


def _value(task_id: str, name: str) -> str:
    """Return what stands in a template for a part of a task's result."""
    return f"ti.xcom_pull(task_ids='{task_id}', map_indexes=ti.map_index)['{name}']"
