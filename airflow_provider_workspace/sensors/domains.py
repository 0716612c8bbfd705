"""Sensors for domains."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import StartTriggerArgs

from airflow_provider_workspace.sensors.base import WorkspaceSensor

if TYPE_CHECKING:
    from collections.abc import Collection

    from airflow_provider_workspace.hooks.workspace import WorkspaceHook

# What a service may answer that finds no challenge in the DNS yet; the interface does not show it.
TOO_EARLY = (400, 409, 422)


class WorkspaceDomainVerifiedSensor(WorkspaceSensor):
    """
    Wait until a domain is verified. Scope ``organization:read``.

    The result is ``{"domain_id": …, "domain": …, "verified_at": …}``.

    :param domain_id: domain (UUID)
    :param organization_id: organization; by default that of the connection
    :param ask_verification: whether to ask the service at each look to verify the domain now; without, it is only
        looked whether somebody or something else got it verified. The interface shows no scope for asking
    :param start_from_trigger: whether the triggerer begins and ends the wait, so that it never takes a worker slot.
        Templates in the ids need Airflow 3.3; ``timeout`` then begins anew when the triggerer restarts
    """

    template_fields: Collection[str] = ("workspace_conn_id", "organization_id", "domain_id")

    def __init__(
        self,
        *,
        domain_id: str,
        organization_id: str | None = None,
        ask_verification: bool = True,
        start_from_trigger: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.domain_id = domain_id
        self.organization_id = organization_id
        self.ask_verification = ask_verification
        if start_from_trigger:
            self.start_from_trigger = True
            self.start_trigger_args = StartTriggerArgs(
                trigger_cls="airflow_provider_workspace.triggers.waiting.WorkspaceDomainVerifiedTrigger",
                trigger_kwargs={
                    "domain_id": domain_id,
                    "organization_id": organization_id,
                    "workspace_conn_id": self.workspace_conn_id,
                    "poll_interval": self.poke_interval,
                    "ask_verification": ask_verification,
                },
                next_method="execute_complete",
                timeout=timedelta(seconds=self.timeout),
            )

    def waits_for(self) -> tuple[str, dict[str, Any]]:
        """Return the condition."""
        return "domain_verified", {"domain_id": str(self.domain_id).strip().lower()}

    def shows(self) -> tuple[str, dict[str, Any]]:
        """Return the domain."""
        return "domain", {"domain_id": self.domain_id}

    def retrieve(self, hook: WorkspaceHook) -> None:
        """Ask for the domain."""
        hook.get_domain(domain_id=self.domain_id)

    def ask(self, hook: WorkspaceHook) -> None:
        """Ask for verification; whether it worked, the look tells. A refusal may only mean that it is too early."""
        from airflow_provider_workspace.errors import WorkspaceRequestError

        try:
            hook.verify_domain(domain_id=self.domain_id)
        except WorkspaceRequestError as error:
            if error.permanent and getattr(error, "status", None) not in TOO_EARLY:
                raise
            self.log.warning("Asking for verification failed: %s", error)
