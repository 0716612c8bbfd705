"""
Send requests to pause and resume, each noted in the lease first.

A request without an answer may take effect later: after a timeout, or after its process was killed. The note in the
lease says until when. It is removed when the service answers.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_workspace.api.outcome import Outcome
from airflow_provider_workspace.api.retry import look_up_pauses
from airflow_provider_workspace.errors import WorkspaceConfigError, WorkspaceNotAppliedError, WorkspaceRequestError
from airflow_provider_workspace.version_compat import COMMAND, AirflowNotFoundException
from airflow_provider_workspace.windows.state_of import read_state

if TYPE_CHECKING:
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.notes.leases import Lease, LeaseRegistry, Seen

log = logging.getLogger(__name__)

Note = Literal["late_pause_until", "late_resume_until"]


class HookService:
    """Pauses and resumes with a hook."""

    def __init__(self, hook: WorkspaceHook) -> None:
        self.hook = hook
        self.consistency_time = hook.client.settings.consistency_time

    def send(self, lease: Lease, *, pauses: bool, note: Callable[[bool], object]) -> None:
        """Pause or resume the export of a lease; ``note`` is that of :meth:`WorkspaceClient.send`."""
        from airflow_provider_workspace.api.operations.batch_exports import PauseBatchExport, UnpauseBatchExport

        base_url = self.hook.client.settings.base_url
        if base_url != lease.service:
            raise WorkspaceConfigError(
                f"Set the host of connection '{lease.workspace_conn_id}' back to {lease.service}, where batch export "
                f"{lease.batch_export_id} was paused. Or delete the Variable '{lease.key}', and run '{COMMAND} "
                f"resume {lease.batch_export_id}' with a connection to that host. The connection now leads to "
                f"{base_url}. Nothing was sent.",
                problem="paused-elsewhere",
            )
        ids: dict[str, Any] = {"organization_id": lease.organization_id, "batch_export_id": lease.batch_export_id}
        pause_or_resume = (
            PauseBatchExport(**ids) if pauses else UnpauseBatchExport(**ids, resume_fields=lease.resume_fields)
        )
        self.hook.client.send(pause_or_resume, note=note)

    def wait(self, seconds: float) -> None:
        """Wait."""
        self.hook.client.pause(seconds)


class LeaseServices(ExitStack):
    """A context manager for the services of leases, one for each connection."""

    def __init__(self) -> None:
        super().__init__()
        self._services: dict[str, HookService] = {}

    def __call__(self, lease: Lease) -> HookService:
        """
        Return the service of a lease.

        :raises WorkspaceConfigError: if its connection does not exist
        """
        from airflow_provider_workspace.hooks.workspace import WorkspaceHook

        conn_id = lease.workspace_conn_id
        if conn_id not in self._services:
            try:
                self._services[conn_id] = HookService(self.enter_context(WorkspaceHook(conn_id)))
            except AirflowNotFoundException as error:
                raise WorkspaceConfigError(
                    f"Add connection '{conn_id}' again: it paused batch export {lease.batch_export_id}. {error}",
                    problem="paused-elsewhere",
                ) from error
        return self._services[conn_id]

    def url_for(self, lease: Lease) -> str:
        """Return the URL of the export of a lease; an empty string if its connection does not exist."""
        from airflow_provider_workspace.links import url_for

        try:
            return url_for(self(lease).hook.client.settings, "batch_export", dict(lease))
        except WorkspaceConfigError:
            return ""


@dataclass(frozen=True)
class NotedRequests:
    """
    Sends requests to pause and resume, each noted in the lease first.

    :param service_for: returns the service of a lease
    """

    registry: LeaseRegistry
    service_for: Callable[[Lease], HookService]
    clock: Callable[[], float] = field(default=time.time, kw_only=True)

    def send(self, lease: Lease, note: Note, *, unanswered: float | None) -> Lease:
        """
        Send a pause or resume, and note each attempt in the lease first.

        :param note: the field for the note, which also decides between pause and resume
        :param unanswered: time until which an earlier request without an answer may take effect
        :return: the lease without the note of the answered request; the caller writes it
        :raises WorkspaceError: if the service refuses, nothing can be sent, or no attempt was answered
        :raises WindowClosedError: if another task closes the window
        """
        service = self.service_for(lease)

        def write_note(in_doubt: bool) -> None:  # noqa: FBT001
            nonlocal lease, unanswered
            if in_doubt:
                unanswered = getattr(lease, note)
            until = max(unanswered or 0.0, self.clock() + service.consistency_time)
            lease = self.registry.update(lease, **{note: until})

        try:
            service.send(lease, pauses=note == "late_pause_until", note=write_note)
        except WorkspaceRequestError as error:
            if error.outcome != Outcome.UNKNOWN.value:
                self.registry.update(lease, **{note: unanswered})
            raise
        return lease.model_copy(update={note: unanswered})

    def observe(self, lease: Lease, known: dict[Any, Any]) -> tuple[Lease, list[Lease]]:
        """
        Read once what ``state_of`` shows of an export.

        :param known: see :func:`read_state`
        :return: the lease with what was seen, and the leases of other windows that may have paused the export
        """
        seen = read_state(self.service_for(lease).hook, lease, known)
        log.info("Batch export %s: %s shows %s.", lease.batch_export_id, lease.state_of, seen)
        return lease.model_copy(update={"seen": seen, "seen_at": self.clock()}), self.registry.pausing(lease)

    def prove(self, leases: Sequence[Lease], wanted: Seen) -> Iterator[tuple[Lease, Lease | Exception]]:
        """
        Read the states of exports together until each is as wanted, unknown, or paused by another window.

        A service may list an earlier state for a while: for the consistency time at most.

        :return: each lease, and the same with what was seen, or the error if it is not so
        """
        left = list(leases)
        pauses = look_up_pauses(0.0, max((self.service_for(lease).consistency_time for lease in leases), default=0.0))
        while left:
            pause, known = next(pauses, None), dict[Any, Any]()
            for lease in tuple(left):
                found: Lease | Exception
                try:
                    found, others = self.observe(lease, known)
                    if found.seen not in (wanted, "unknown") and not (found.seen == "paused" and others):
                        if pause is not None:
                            continue
                        found = self._contradicted(found)
                except Exception as error:  # noqa: BLE001 - of one export; the others are read all the same
                    found = error
                left.remove(lease)
                yield lease, found
            if left and pause is not None:
                self.service_for(left[0]).wait(pause)

    def _contradicted(self, lease: Lease) -> WorkspaceNotAppliedError:
        """Note in the lease that an export is not as the service said, and return the error."""
        operation = "UnpauseBatchExport" if lease.seen == "paused" else "PauseBatchExport"
        self.registry.update(lease, resumed_at=None)
        return WorkspaceNotAppliedError(
            f"Check batch export {lease.batch_export_id} in the workspace: the service says that {operation} was done, "
            f"but {lease.state_of} showed it {lease.seen} for {self.service_for(lease).consistency_time:g} s.",
            operation=operation,
            outcome=Outcome.UNKNOWN.value,
            problem="export-differs",
        )
