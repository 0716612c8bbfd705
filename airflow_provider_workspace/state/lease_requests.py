"""
Send requests to pause and resume, each noted in the lease first.

A request without an answer may take effect later: after a timeout, or after its process was killed. The note in the
lease says until when. It is removed when the service answers.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_workspace.api.outcome import Outcome
from airflow_provider_workspace.api.retry import look_up_pauses
from airflow_provider_workspace.errors import WorkspaceConfigError, WorkspaceNotAppliedError, WorkspaceRequestError
from airflow_provider_workspace.version_compat import COMMAND

if TYPE_CHECKING:
    from typing_extensions import Self

    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.state.leases import Lease, LeaseRegistry, Seen

log = logging.getLogger(__name__)

Note = Literal["late_pause_until", "late_resume_until"]


class HookService:
    """Pauses and resumes with a hook."""

    def __init__(self, hook: WorkspaceHook) -> None:
        self.hook = hook
        self.consistency_time = hook.client.settings.consistency_time

    def close(self) -> None:
        """Close the connections of the hook."""
        self.hook.close()

    def send(self, lease: Lease, *, pauses: bool, note: Callable[[bool], object]) -> None:
        """Pause or resume the export of a lease; ``note`` is that of :meth:`WorkspaceClient.send`."""
        from airflow_provider_workspace.api.operations.batch_exports import PauseBatchExport, UnpauseBatchExport

        base_url = self.hook.client.settings.base_url
        if base_url != lease.service:
            raise WorkspaceConfigError(
                f"Set the host of connection '{lease.workspace_conn_id}' back to {lease.service}, where batch export "
                f"{lease.batch_export_id} was paused. Or delete the Variable '{lease.key}', and run '{COMMAND} "
                f"resume {lease.batch_export_id}' with a connection to that host. The connection now leads to "
                f"{base_url}. Nothing was sent."
            )
        ids: dict[str, Any] = {"organization_id": lease.organization_id, "batch_export_id": lease.batch_export_id}
        pause_or_resume = (
            PauseBatchExport(**ids) if pauses else UnpauseBatchExport(**ids, resume_fields=lease.resume_fields)
        )
        self.hook.client.send(pause_or_resume, note=note)

    def wait(self, seconds: float) -> None:
        """Wait."""
        self.hook.client.pause(seconds)

    def look(self, lease: Lease) -> Seen:
        """Return what ``state_of`` of a lease shows of its export; ``unknown`` also after an error."""
        from airflow_provider_workspace.hooks.endpoints import state_reader

        self.hook.organization_id = lease.organization_id
        try:
            seen = state_reader(self.hook, lease.state_of or "", lease.batch_export_id)()
        except Exception as error:  # noqa: BLE001 - of the author's code; the window must go on, and close
            seen = error
        if seen in ("paused", "running"):
            return seen  # type: ignore[no-any-return]
        log.warning("Batch export %s: %s shows no state, so nothing is proven: %r", *_of(lease), seen)
        return "unknown"


class LeaseServices:
    """A context manager for the services of leases, one for each connection."""

    def __init__(self) -> None:
        self._services: dict[str, HookService] = {}

    def __enter__(self) -> Self:
        """Use it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        for service in self._services.values():
            service.close()

    def __call__(self, lease: Lease) -> HookService:
        """
        Return the service of a lease.

        :raises WorkspaceConfigError: if its connection does not exist
        """
        from airflow_provider_workspace.hooks.workspace import WorkspaceHook
        from airflow_provider_workspace.version_compat import AirflowNotFoundException

        conn_id = lease.workspace_conn_id
        if conn_id not in self._services:
            try:
                self._services[conn_id] = HookService(WorkspaceHook(conn_id))
            except AirflowNotFoundException as error:
                raise WorkspaceConfigError(
                    f"Add connection '{conn_id}' again: it paused batch export {lease.batch_export_id}. {error}"
                ) from error
        return self._services[conn_id]

    def url_for(self, lease: Lease) -> str:
        """Return the URL of the export of a lease; an empty string if its connection does not exist."""
        from airflow_provider_workspace.links import url_for

        ids: dict[str, Any] = {"organization_id": lease.organization_id, "batch_export_id": lease.batch_export_id}
        try:
            return url_for(self(lease).hook.client.settings, "batch_export", ids)
        except WorkspaceConfigError:
            return ""


@dataclass(frozen=True)
class NotedRequests:
    """Sends requests to pause and resume, each noted in the lease first."""

    registry: LeaseRegistry
    clock: Callable[[], float] = field(default=time.time, kw_only=True)

    def send(self, lease: Lease, note: Note, service: HookService, *, unanswered: float | None) -> Lease:
        """
        Send a pause or resume, and note each attempt in the lease first.

        :param note: the field for the note, which also decides between pause and resume
        :param unanswered: time until which an earlier request without an answer may take effect
        :return: the lease without the note of the answered request; the caller writes it
        :raises WorkspaceError: if the service refuses, nothing can be sent, or no attempt was answered
        :raises WindowClosedError: if another task closes the window
        """

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

    def look(self, lease: Lease, service: HookService, wanted: Seen) -> tuple[Lease, list[Lease]]:
        """
        Look at an export until it is as wanted, unknown, or paused by another window, for the consistency time at most.

        A service may list an earlier state for a while.

        :return: the lease with what was seen, and the leases of other windows that may have paused the export
        """
        pauses = look_up_pauses(0.0, service.consistency_time)
        while True:
            seen, others = service.look(lease), self.registry.pausing(lease)
            if seen in (wanted, "unknown") or (seen == "paused" and others) or (pause := next(pauses, None)) is None:
                break
            service.wait(pause)
        log.info("Batch export %s: %s shows %s.", *_of(lease), seen)
        return lease.model_copy(update={"seen": seen, "seen_at": self.clock()}), others

    def contradicted(self, lease: Lease, service: HookService, operation: str) -> WorkspaceNotAppliedError:
        """Note in the lease that an export is not as the service said, and return the error."""
        self.registry.update(lease)
        return WorkspaceNotAppliedError(
            f"Check batch export {lease.batch_export_id} in the workspace: the service says that {operation} was done, "
            f"but {lease.state_of} showed it {lease.seen} for {service.consistency_time:g} s.",
            operation=operation,
            outcome=Outcome.UNKNOWN.value,
        )


def _of(lease: Lease) -> tuple[str, str | None]:
    return lease.batch_export_id, lease.state_of
