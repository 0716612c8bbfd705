"""Differences between Airflow releases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Connection

try:
    from airflow.sdk import conf
    from airflow.sdk.exceptions import (
        AirflowFailException,
        AirflowNotFoundException,
        AirflowSensorTimeout,
        AirflowSkipException,
        AirflowTaskTimeout,
        TaskDeferred,
    )
    from airflow.sdk.plugins_manager import AirflowPlugin

    # How this release runs the commands of this package; messages name them so.
    COMMAND = "airflow workspace"

    async def aget_connection(conn_id: str) -> Connection:
        """
        Look up a connection without blocking the event loop.

        :raises AirflowNotFoundException: if it is not defined
        """
        from airflow.sdk import BaseHook

        try:
            return await BaseHook.aget_connection(conn_id)
        except AirflowNotFoundException:
            # `airflow dags test` answers synchronous look-ups only: others do not find what Airflow's database has.
            from asgiref.sync import sync_to_async

            return await sync_to_async(get_connection)(conn_id)

except ImportError:  # before 3.2
    from airflow.configuration import conf  # type: ignore[assignment]
    from airflow.exceptions import (  # type: ignore[attr-defined,no-redef]
        AirflowFailException,
        AirflowNotFoundException,  # pyright: ignore[reportPrivateImportUsage]
        AirflowSensorTimeout,
        AirflowSkipException,
        AirflowTaskTimeout,
        TaskDeferred,
    )
    from airflow.plugins_manager import AirflowPlugin  # type: ignore[assignment]

    COMMAND = "python -m airflow_provider_workspace"

    async def aget_connection(conn_id: str) -> Connection:
        """Look up a connection without blocking the event loop; ``BaseHook.aget_connection`` needs a triggerer here."""
        from asgiref.sync import sync_to_async

        return await sync_to_async(get_connection)(conn_id)


def get_connection(conn_id: str) -> Connection:
    """
    Look up a connection.

    :raises AirflowNotFoundException: if it is not defined
    """
    from airflow.sdk import BaseHook

    try:
        return BaseHook.get_connection(conn_id)
    except ImportError:  # before 3.2, outside of a task, such as in a command
        from airflow.models.connection import Connection as StoredConnection

        return StoredConnection.get_connection_from_secrets(conn_id)


@cache
def _shortest_mask() -> int:
    """Return the length below which Airflow does not mask a secret."""
    return int(conf.getint("logging", "min_length_masked_secret", fallback=5))


def mask_secret(secret: str) -> None:
    """Mask a secret in Airflow's logs; short ones are skipped, since Airflow ignores them with a warning."""
    from airflow.sdk import log

    if len(secret) >= _shortest_mask():
        log.mask_secret(secret)


async def amask_secret(secret: str) -> None:
    """Mask a secret without blocking the event loop."""
    if len(secret) < _shortest_mask():
        return
    from airflow.sdk import log

    if hasattr(log, "amask_secret"):  # since 3.3
        await log.amask_secret(secret)
        return
    from asgiref.sync import sync_to_async

    # Masking sends a message to the supervisor, and only asgiref's threads may use the loop's connection to it.
    await sync_to_async(log.mask_secret)(secret)


def lists_variables() -> bool:
    """Return whether tasks can list Variables (since 3.3)."""
    from airflow.sdk import Variable

    return hasattr(Variable, "keys")


def variable_keys(prefix: str) -> list[str]:
    """Return the current keys of Variables with a prefix. Since 3.3."""
    from airflow.sdk import Variable

    try:
        return list(Variable.keys(prefix=prefix))
    except ImportError:  # outside of a task, such as in tests of Dags
        return []


def get_variable(key: str) -> str | None:
    """Return the value of a Variable; ``None`` if there is none."""
    from airflow.sdk import Variable

    try:
        value: str | None = Variable.get(key, default=None)
    except ImportError:  # before 3.2, outside of a task, such as in tests of Dags
        return None
    return value


def why_not_found(key: str) -> str:
    """
    Return what Airflow answered where it did not find a Variable; empty if there is none.

    In 3.1 and 3.2, :func:`get_variable` returns ``None`` after each error of the API server, too.
    """
    from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType

    try:
        from airflow.sdk.execution_time.task_runner import SUPERVISOR_COMMS
    except ImportError:  # outside of a task
        return ""
    from airflow.sdk.execution_time.comms import ErrorResponse, GetVariable

    try:
        answer: Any = SUPERVISOR_COMMS.send(GetVariable(key=key))
    except AirflowRuntimeError as error:
        answer = error.error
    if isinstance(answer, ErrorResponse) and answer.error is not ErrorType.VARIABLE_NOT_FOUND:
        return str(answer.error.value)
    return ""


def shows_forms() -> bool:
    """Return whether a required action shows its form (since 3.1.1; before, a field is "[object Object]")."""
    from airflow import __version__

    return not re.fullmatch(r"3\.1\.0\D*", __version__)


def ask_person(
    ti_id: object, *, options: list[str], subject: str, body: str, users: Iterable[str], params: Mapping[str, Any]
) -> list[str]:
    """
    Create a required action in the Airflow UI, and return its options.

    ``params`` are the fields of its form, as ``Param.serialize`` returns them.

    Up to 3.3 at least, Airflow keeps the question of an earlier try and ignores the new one. The returned options tell
    which one is shown.
    """
    from airflow.sdk.execution_time import task_runner
    from airflow.sdk.execution_time.comms import CreateHITLDetailPayload

    from airflow_provider_workspace.api.database_limits import text_column

    # The message of airflow.sdk.execution_time.hitl.upsert_hitl_detail, which drops the response.
    message = CreateHITLDetailPayload.model_validate(
        {
            "ti_id": ti_id,
            "options": options,
            "subject": text_column(subject),
            "body": text_column(body),
            "multiple": False,
            "params": params,
            "assigned_users": [{"id": user, "name": user} for user in users],
        }
    )
    asked: Any = task_runner.SUPERVISOR_COMMS.send(message)
    return list(asked.options)


def await_answer(
    task: BaseOperator,
    ti_id: Any,
    options: list[str],
    seconds: float | None,
    method_name: str,
    kwargs: dict[str, Any],
    params: Mapping[str, Any],
) -> NoReturn:
    """Defer until a required action is answered; since 3.3 this needs no triggerer."""
    from airflow_provider_workspace.api.database_limits import storable

    kwargs = storable(kwargs)
    timeout = None if seconds is None else timedelta(seconds=seconds)
    try:
        from airflow.sdk.exceptions import TaskAwaitingInput
    except ImportError:  # before 3.3
        from airflow.providers.standard.triggers.hitl import HITLTrigger

        until = None if timeout is None else datetime.now(timezone.utc) + timeout
        fields = {name: {**field} for name, field in params.items()}  # it takes them apart
        trigger = HITLTrigger(ti_id=ti_id, options=options, params=fields, timeout_datetime=until)
        task.defer(trigger=trigger, method_name=method_name, kwargs=kwargs)
    raise TaskAwaitingInput(method_name=method_name, kwargs=kwargs, timeout=timeout)


def watchers_have_queues() -> bool:
    """Return whether the trigger of an asset watcher can have a queue (since 3.4)."""
    from airflow.triggers.base import BaseEventTrigger

    return hasattr(BaseEventTrigger, "trigger_queue_inherited_from_task")


def asset_stores(trigger: object) -> list[Any]:
    """
    Return the state store of each asset that a trigger watches; empty before 3.3.

    Watchers with equal arguments share one trigger, and Airflow has no public way to iterate over its assets.
    """
    store = getattr(trigger, "asset_state_store", None)
    if store is None:
        return []
    by_name: dict[str, Any] = getattr(store, "_by_name", {})
    by_uri: dict[str, Any] = getattr(store, "_by_uri", {})
    return [*by_name.values(), *by_uri.values()] or [store]


def allow_in_xcom(names: Iterable[str]) -> None:
    """
    Let tasks read objects of these classes that other tasks returned; before 3.3 only the configuration can.

    ``serde.allow_class`` takes classes, for which each Dag file that imports a hook would import every model.
    """
    try:
        from airflow.sdk.serde import _extra_allowed  # pyright: ignore[reportPrivateUsage]
    except ImportError:  # before 3.3
        return
    _extra_allowed.update(names)


def default_argument(name: str, otherwise: object) -> Any:
    """Return an argument from the ``default_args`` of the Dag and task group to which tasks are being added."""
    from airflow.sdk.definitions._internal.contextmanager import DagContext, TaskGroupContext

    for outer in (TaskGroupContext.get_current(), DagContext.get_current()):
        if outer is not None and name in outer.default_args:
            return outer.default_args[name]
    return otherwise


@cache
def default_retry_policy() -> Any:
    """Return the retry policy that the tasks of this package share; ``None`` before 3.3."""
    try:
        from airflow_provider_workspace.retry_policies import WorkspaceRetryPolicy
    except ImportError:
        return None
    return WorkspaceRetryPolicy()


def has_own_retry_policy(task: object) -> bool:
    """Return whether the author of a task set a retry policy, which then decides on every error."""
    return getattr(task, "retry_policy", None) not in (None, default_retry_policy())


# What other modules import from here and not from Airflow.
__all__ = [
    "COMMAND",
    "AirflowFailException",
    "AirflowNotFoundException",
    "AirflowPlugin",
    "AirflowSensorTimeout",
    "AirflowSkipException",
    "AirflowTaskTimeout",
    "TaskDeferred",
    "conf",
]
