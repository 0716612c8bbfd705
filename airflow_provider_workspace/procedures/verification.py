"""Request the verification of a domain while a task waits for it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from airflow_provider_workspace.api.operations.domains import VerifyDomain
from airflow_provider_workspace.api.outcome import refuses_kind_of_key
from airflow_provider_workspace.errors import WorkspaceError

if TYPE_CHECKING:
    from airflow_provider_workspace.client.client import WorkspaceClient

log = logging.getLogger(__name__)

# Statuses that a service may return while the DNS has no challenge yet; the interface does not show them.
TOO_EARLY = (400, 409, 422)


def ask_verification(client: WorkspaceClient, organization_id: str, domain_id: str) -> bool:
    """
    Request the verification of a domain; the next poll shows the result. A refusal may only mean that it is too early.

    :return: whether to request it again; false if API keys may not, and the service verifies domains on its own
    :raises WorkspaceRequestError: if the refusal is permanent
    """
    verify = VerifyDomain(organization_id=organization_id, domain_id=domain_id)
    answer = client.attempt(verify, why="somebody waits for the domain")
    if refuses_kind_of_key(answer):
        log.warning("Waiting without requesting verification, which this kind of API key may not: %s", answer)
        return False
    if isinstance(answer, WorkspaceError):
        if answer.permanent and getattr(answer, "status", None) not in TOO_EARLY:
            raise answer
        log.warning("The request for verification failed: %s", answer)
    return True
