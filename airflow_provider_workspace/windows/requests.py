"""
Send requests to pause and resume, each noted in the lease first.

A request without an answer may take effect later: after a timeout, or after its process was killed. The note in the
lease says until when. It is removed when the service answers.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_workspace.api.outcome import Outcome
from airflow_provider_workspace.api.retry import look_up_pauses
from airflow_provider_workspace.errors import WorkspaceConfigError, WorkspaceNotAppliedError, WorkspaceRequestError
from airflow_provider_workspace.notes.note_hooks import NoteHooks
from airflow_provider_workspace.version_compat import COMMAND
from airflow_provider_workspace.windows.readings import Readings, read_state

if TYPE_CHECKING:
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.notes.leases import Lease, LeaseRegistry, Seen

log = logging.getLogger(__name__)

# The field of a lease that says until when a pause or a resume without an answer may take effect.
LateField = Literal["late_pause_until", "late_resume_until"]


class HookService:
    """Pauses and resumes with a hook."""

    def __init__(self, hook: WorkspaceHook) -> None:
        self.hook = hook
        self.consistency_time = hook.client.settings.consistency_time

    def send(self, lease: Lease, *, pauses: bool, write_note: Callable[[bool], object]) -> None:
        """Pause or resume the export of a lease; ``write_note`` is the ``note`` of :meth:`WorkspaceClient.send`."""
        from airflow_provider_workspace.api.operations.batch_exports import PauseBatchExport, UnpauseBatchExport

        self._raise_if_moved(lease)
        ids: dict[str, Any] = {"organization_id": lease.organization_id, "batch_export_id": lease.batch_export_id}
        request: PauseBatchExport | UnpauseBatchExport = PauseBatchExport(**ids)
        if not pauses:
            request = UnpauseBatchExport(**ids, resume_fields=lease.resume_fields)
        self.hook.client.send(request, note=write_note)

    def _raise_if_moved(self, lease: Lease) -> None:
        """Raise an error if the connection leads to another service than the one where the export was paused."""
        base_url = self.hook.client.settings.base_url
        if base_url == lease.service:
            return
        raise WorkspaceConfigError(
            f"Connection '{lease.workspace_conn_id}' leads to {base_url}, and not to {lease.service}, where batch "
            f"export {lease.batch_export_id} was paused. Nothing was sent. Set its host back; or run '{COMMAND} resume "
            f"{lease.batch_export_id}' with a connection to that host, after deleting the Variable '{lease.key}'.",
            problem="paused-elsewhere",
        )

    def wait(self, seconds: float) -> None:
        """Wait."""
        self.hook.client.pause(seconds)


class LeaseHooks(NoteHooks):
    """A context manager for the services of leases, one hook for each connection."""

    def __call__(self, lease: Lease) -> HookService:
        """
        Return the service of a lease.

        :raises WorkspaceConfigError: if its connection does not exist
        """
        if_gone = (
            f"Connection '{lease.workspace_conn_id}', which paused batch export {lease.batch_export_id}, does not "
            "exist any more. Add it again"
        )
        return HookService(self.open_hook(lease, if_gone, "paused-elsewhere"))

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

    def send(self, lease: Lease, late_field: LateField, *, unanswered: float | None) -> Lease:
        """
        Send a pause or resume, and note each attempt in the lease first.

        :param late_field: the field for the note, which also decides between pause and resume
        :param unanswered: time until which an earlier request without an answer may take effect
        :return: the lease without the note of the answered request; the caller writes it
        :raises WorkspaceError: if the service refuses, nothing can be sent, or no attempt was answered
        :raises WindowClosedError: if another task closes the window
        """
        service = self.service_for(lease)

        def write_note(in_doubt: bool) -> None:  # noqa: FBT001
            nonlocal lease, unanswered
            if in_doubt:
                unanswered = getattr(lease, late_field)
            until = max(unanswered or 0.0, self.clock() + service.consistency_time)
            in_doubt_before = lease.resume_in_doubt or (in_doubt and not pauses)
            lease = self.registry.update(lease, resume_in_doubt=in_doubt_before, **{late_field: until})

        pauses = late_field == "late_pause_until"
        try:
            service.send(lease, pauses=pauses, write_note=write_note)
        except WorkspaceRequestError as error:
            if error.outcome != Outcome.UNKNOWN.value:
                self.registry.update(lease, **{late_field: unanswered})
            raise
        return lease.model_copy(update={late_field: unanswered})

    def observe(self, lease: Lease, readings: Readings) -> tuple[Lease, list[Lease]]:
        """
        Read once what ``state_of`` shows of an export.

        :param readings: what was read for other exports at the same time; receives what is read
        :return: the lease with what was seen, and the leases of other windows that may have paused the export
        """
        hook = self.service_for(lease).hook
        seen = read_state(hook, lease, readings)
        log.info("Batch export %s: %s shows %s.", lease.batch_export_id, lease.state_of, seen)
        observed = lease.model_copy(update={"seen": seen, "seen_at": self.clock()})
        return observed, self.registry.pausing(lease)

    def prove(self, leases: Sequence[Lease], wanted: Seen) -> Iterator[tuple[Lease, Lease | Exception]]:
        """
        Read the states of exports together until each is as wanted, unknown, or paused by another window.

        A service may list an earlier state for a while: for the consistency time at most.

        :return: each lease, and the same with what was seen, or the error if it is not so
        """
        unproven = list(leases)
        consistency_times = [self.service_for(lease).consistency_time for lease in leases]
        pauses = look_up_pauses(0.0, max(consistency_times, default=0.0))
        while unproven:
            pause = next(pauses, None)
            readings = Readings()
            for lease in tuple(unproven):
                found = self._try_to_prove(lease, wanted, readings, is_last=pause is None)
                if found is None:
                    continue
                unproven.remove(lease)
                yield lease, found
            if unproven and pause is not None:
                self.service_for(unproven[0]).wait(pause)

    def _try_to_prove(
        self, lease: Lease, wanted: Seen, readings: Readings, *, is_last: bool
    ) -> Lease | Exception | None:
        """
        Read once whether an export is as wanted.

        :param is_last: whether it is not read again
        :return: the lease with what was seen, the error if it is not so, or ``None`` to read it again
        """
        try:
            observed, others = self.observe(lease, readings)
            if observed.seen in (wanted, "unknown"):
                return observed
            if observed.seen == "paused" and others:
                return observed
            return self._contradicted(observed) if is_last else None
        except Exception as error:  # noqa: BLE001 - of one export; the others are read all the same
            return error

    def _contradicted(self, lease: Lease) -> WorkspaceNotAppliedError:
        """Note in the lease that an export is not as the service said, and return the error."""
        operation = "UnpauseBatchExport" if lease.seen == "paused" else "PauseBatchExport"
        seconds = self.service_for(lease).consistency_time
        self.registry.update(lease, resumed_at=None)
        return WorkspaceNotAppliedError(
            f"The service says that {operation} was done, but {lease.state_of} showed the export {lease.seen} for "
            f"{seconds:g} s. Check batch export {lease.batch_export_id} in the workspace.",
            operation=operation,
            outcome=Outcome.UNKNOWN.value,
            problem="export-differs",
        )
