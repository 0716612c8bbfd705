"""What the ``state_of`` of an author shows of a batch export."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextvars import copy_context
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
MAX_SECONDS = 120.0


def state_reader(hook: WorkspaceHook, state_of: str, batch_export_id: str, known: dict[Any, Any]) -> Callable[[], Any]:
    """
    Return a function that reads whether a batch export is ``paused`` or ``running``; it returns ``None`` if unknown.

    :param state_of: name of an operation that reads batch exports, or one of them, with ``id`` and ``paused``; or of a
        function of the hook and the id
    :param known: what was read for other exports, such as a list of all; receives what is read
    :raises WorkspaceInputError: if it cannot be imported, or the operation writes or needs other fields
    """
    target: Any = load_operation("state_of", state_of, functions=True)
    if not hasattr(target, "endpoint"):
        return partial(target, hook, batch_export_id)
    ids = {"batch_export_id": batch_export_id} if "batch_export_id" in interface_names(target).values() else {}
    operation = target(**with_default_ids(hook, target, ids))
    if operation.endpoint.is_write:
        raise WorkspaceInputError(f"state_of must read, and {target.__name__} writes")

    key = (hook, state_of, repr(operation))

    def read() -> str | None:
        if key not in known:
            rows = hook.client.rows(operation) if is_page(operation.endpoint.result) else hook.client.send(operation)
            known[key] = [rows] if isinstance(rows, Resource) else list(rows)
        found = [row.paused for row in known[key] if canonical_text(str(row.id)) == batch_export_id]
        return {"[True]": "paused", "[False]": "running"}.get(str(found))

    return read


def read_state(hook: WorkspaceHook, lease: Lease, known: dict[Any, Any]) -> Seen:
    """
    Return what ``state_of`` of a lease shows of its export; ``unknown`` also after an error, or if it takes long.

    Its author may have written anything, so a thread calls it. One that does not return is left alone.

    :param known: what was read at the same time: rows of lists, and what does not return
    """
    hook.organization_id = lease.organization_id
    found: list[tuple[Any, str]] = []

    def read() -> None:
        try:
            seen = state_reader(hook, lease.state_of or "", lease.batch_export_id, known)()
            found.append((seen, f"{type(seen).__name__} {seen!r}"))
        except BaseException as error:  # noqa: BLE001 - of the author, also a SystemExit
            found.append((None, "".join(format_exception_only(error))))

    limit = min(MAX_SECONDS, hook.client.settings.total_timeout)
    late = (hook, lease.state_of)
    if late not in known:
        thread = Thread(target=copy_context().run, args=(read,), daemon=True)
        thread.start()
        thread.join(limit)
    if not found:
        known[late] = True
    seen, text = found[0] if found else (None, f"no answer within {limit:g} s; it is not waited for")
    if type(seen) is str and seen in ("paused", "running"):
        return seen  # type: ignore[return-value]
    export_id, state_of = lease.batch_export_id, lease.state_of
    log.warning("Batch export %s: %s shows no state, so nothing is proven: %s", export_id, state_of, text[:300])
    return "unknown"
