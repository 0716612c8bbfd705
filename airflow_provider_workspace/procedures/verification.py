"""Ask the service to verify a domain, while somebody waits for it."""

from __future__ import annotations

import logging

from airflow_provider_workspace.api.operations.domains import VerifyDomain
from airflow_provider_workspace.api.outcome import refuses_kind_of_key
from airflow_provider_workspace.api.procedure import Procedure, Send
from airflow_provider_workspace.errors import WorkspaceError

log = logging.getLogger(__name__)

# What a service may answer that finds no challenge in the DNS yet; the interface does not show it.
TOO_EARLY = (400, 409, 422)


def ask_verification(organization_id: str, domain_id: str) -> Procedure[bool]:
    """
    Ask the service to verify a domain; whether it did, the next poll tells. A refusal may only mean that it is early.

    :return: whether to ask again; a service that takes no such question from a key may still verify by itself
    :raises WorkspaceRequestError: if the service refuses for good
    """
    verify = VerifyDomain(organization_id=organization_id, domain_id=domain_id)
    (answer,) = yield Send([verify], why="somebody waits for the domain")
    if refuses_kind_of_key(answer):
        log.warning("Waiting without asking for verification, which this kind of API key may not do: %s", answer)
        return False
    if isinstance(answer, WorkspaceError):
        if answer.permanent and getattr(answer, "status", None) not in TOO_EARLY:
            raise answer
        log.warning("The request for verification failed: %s", answer)
    return True
