"""
Send requests to pause and resume, each noted in the lease first.

A request without an answer may take effect later: after a timeout, or after its process was killed. The note in the
lease says until when. It is removed when the service answers.
"""

from __future__ import annotations

import dataclasses
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_workspace.api.outcome import Outcome
from airflow_provider_workspace.api.retry import RetryPolicy
from airflow_provider_workspace.client import waits
from airflow_provider_workspace.errors import WorkspaceConfigError, WorkspaceError

if TYPE_CHECKING:
    from typing_extensions import Self

    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.state.leases import Lease, LeaseRegistry

log = logging.getLogger(__name__)

Note = Literal["late_pause_until", "late_resume_until"]


class HookService:
    """Pauses and resumes with a hook, one attempt at a time."""

    def __init__(self, hook: WorkspaceHook) -> None:
        from airflow_provider_workspace.client.client import WorkspaceClient

        settings = hook.client.settings
        self.hook = hook
        self.base_url = settings.base_url
        self.policy = RetryPolicy(settings.max_attempts, settings.max_retry_wait)
        self.consistency_time = settings.consistency_time
        # Each attempt is noted in the lease, so the client must not retry by itself.
        self._client = WorkspaceClient(settings.model_copy(update={"max_attempts": 1}), mask=hook.client.mask)

    def close(self) -> None:
        """Close the connections, those of the hook included."""
        self._client.close()
        self.hook.close()

    def pause(self, lease: Lease) -> None:
        """Send one request."""
        from airflow_provider_workspace.api.operations.batch_exports import PauseBatchExport

        self._check(lease)
        self._client.send(
            PauseBatchExport(organization_id=lease.organization_id, batch_export_id=lease.batch_export_id)
        )

    def resume(self, lease: Lease) -> None:
        """Send one request."""
        from airflow_provider_workspace.api.operations.batch_exports import UnpauseBatchExport

        self._check(lease)
        self._client.send(
            UnpauseBatchExport(
                organization_id=lease.organization_id,
                batch_export_id=lease.batch_export_id,
                resume_fields=lease.resume_fields,
            )
        )

    def _check(self, lease: Lease) -> None:
        if self.base_url != lease.service:
            raise WorkspaceConfigError(
                f"Set the host of connection '{lease.workspace_conn_id}' back to {lease.service}, where batch export "
                f"{lease.batch_export_id} was paused. Or delete the Variable '{lease.key}', and run 'airflow workspace "
                f"resume {lease.batch_export_id}' with a connection to that host. The connection now leads to "
                f"{self.base_url}. Nothing was sent."
            )


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

        ids = {"organization_id": lease.organization_id, "batch_export_id": lease.batch_export_id}
        try:
            return url_for(self(lease).hook.client.settings, "batch_export", ids)
        except WorkspaceConfigError:
            return ""


@dataclass(frozen=True)
class NotedRequests:
    """Sends requests to pause and resume, each noted in the lease first."""

    registry: LeaseRegistry
    clock: Callable[[], float] = field(default=time.time, kw_only=True)
    sleep: Callable[[float], None] = field(default=waits.sleep, kw_only=True)

    def send(self, lease: Lease, note: Note, service: HookService, *, unanswered: float | None) -> Lease:
        """
        Send a pause or resume, with retries, and note each attempt in the lease first.

        :param note: the field for the note, which also decides between pause and resume
        :param unanswered: time until which an earlier request without an answer may take effect
        :return: the lease without the note of the answered request; the caller writes it
        :raises WorkspaceError: if the service refuses, nothing can be sent, or no attempt was answered
        :raises WindowClosedError: if another task closes the window
        """
        request = service.pause if note == "late_pause_until" else service.resume
        policy = service.policy
        attempt = 0
        while True:
            attempt += 1
            until = max(unanswered or 0.0, self.clock() + service.consistency_time)
            lease = self.registry.update(lease, **{note: until})
            try:
                request(lease)
            except WorkspaceError as error:
                if getattr(error, "outcome", None) == Outcome.UNKNOWN.value:
                    unanswered = until
                else:
                    lease = self.registry.update(lease, **{note: unanswered})
                if attempt >= policy.max_attempts or not policy.permits(error, repeatable=True):
                    raise
                # Jitter, not cryptography.
                pause = policy.wait(attempt, error.retry_after, random.random())  # noqa: S311
                log.warning("Attempt %d of %d: %s Retrying in %.1f s.", attempt, policy.max_attempts, error, pause)
                self.sleep(pause)
            else:
                answered: dict[str, Any] = {note: unanswered}
                return dataclasses.replace(lease, **answered)
