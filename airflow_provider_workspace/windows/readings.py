"""What the ``state_of`` of an author shows of a batch export."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from threading import Thread
from traceback import format_exception_only
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.endpoint import is_page
from airflow_provider_workspace.api.fields import interface_names
from airflow_provider_workspace.api.ids import canonical_text
from airflow_provider_workspace.api.loading import load_operation
from airflow_provider_workspace.api.models import Resource
from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.hooks.workspace import with_default_ids

if TYPE_CHECKING:
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.notes.leases import Lease, Seen

log = logging.getLogger(__name__)

# How long state_of may take in seconds, if the total_timeout of the connection is longer.
MAX_READING_SECONDS = 120.0


@dataclass(frozen=True)
class Readings:
    """
    What is read at the same time, for several exports.

    :ivar rows: the rows of each operation, such as a list of all exports
    :ivar hanging: each hook and ``state_of`` that did not return in time
    """

    rows: dict[tuple[WorkspaceHook, str, str], list[Any]] = field(default_factory=dict)
    hanging: set[tuple[WorkspaceHook, str]] = field(default_factory=set)


def state_reader(hook: WorkspaceHook, state_of: str, batch_export_id: str, readings: Readings) -> Callable[[], object]:
    """
    Return a function that reads whether a batch export is ``paused`` or ``running``; it returns ``None`` if unknown.

    :param state_of: name of an operation that reads batch exports, or one of them, with ``id`` and ``paused``; or of a
        function of the hook and the id
    :param readings: what was read for other exports; receives what is read
    :raises WorkspaceInputError: if it cannot be imported, or the operation writes or needs other fields
    """
    target: Any = load_operation("state_of", state_of, functions=True)
    if not hasattr(target, "endpoint"):
        return partial(target, hook, batch_export_id)
    ids = {}
    if "batch_export_id" in interface_names(target).values():
        ids["batch_export_id"] = batch_export_id
    operation = target(**with_default_ids(hook, target, ids))
    if operation.endpoint.is_write:
        raise WorkspaceInputError(f"state_of must read, and {target.__name__} writes")

    key = (hook, state_of, repr(operation))

    def read() -> str | None:
        if key not in readings.rows:
            readings.rows[key] = _read_rows(hook, operation)
        rows = [row for row in readings.rows[key] if canonical_text(str(row.id)) == batch_export_id]
        if len(rows) != 1:
            return None
        paused = rows[0].paused
        if not isinstance(paused, bool):
            return None
        return "paused" if paused else "running"

    return read


def _read_rows(hook: WorkspaceHook, operation: Any) -> list[Any]:
    """Return the rows that an operation reads: of a list, or the one resource."""
    if is_page(operation.endpoint.result):
        return list(hook.client.rows(operation))
    result: Any = hook.client.send(operation)
    return [result] if isinstance(result, Resource) else list(result)


def read_state(hook: WorkspaceHook, lease: Lease, readings: Readings) -> Seen:
    """
    Return what ``state_of`` of a lease shows of its export; ``unknown`` also after an error, or if it takes long.

    Its author may have written anything, so a thread calls it. One that does not return is left alone.

    :param readings: what was read at the same time: rows of lists, and what does not return
    """
    hook.organization_id = lease.organization_id
    state_of = lease.state_of or ""
    results: list[_Result] = []

    def read() -> None:
        try:
            value = state_reader(hook, state_of, lease.batch_export_id, readings)()
            results.append(_Result(value, f"{type(value).__name__} {value!r}"))
        except BaseException as error:  # noqa: BLE001 - of the author, also a SystemExit
            text = "".join(format_exception_only(error))
            results.append(_Result(None, text))

    limit = min(MAX_READING_SECONDS, hook.client.settings.total_timeout)
    if (hook, state_of) not in readings.hanging:
        thread = Thread(target=copy_context().run, args=(read,), daemon=True)
        thread.start()
        thread.join(limit)
    if results:
        result = results[0]
    else:
        readings.hanging.add((hook, state_of))
        result = _Result(None, f"no answer within {limit:g} s; it is not waited for")
    value = result.value
    # Only these texts count, and no subclass of str, whose comparison its author may have written.
    if type(value) is str and value in ("paused", "running"):
        return value  # type: ignore[return-value]
    reason = result.text[:300]
    log.warning("Batch export %s: %s shows no state, so nothing is proven: %s", lease.batch_export_id, state_of, reason)
    return "unknown"


@dataclass(frozen=True)
class _Result:
    """
    What a ``state_of`` has returned.

    :ivar value: anything
    :ivar text: the same for the log, or its error
    """

    value: object
    text: str
