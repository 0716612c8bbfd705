"""The trigger for asset watchers: fires when a project, a member or a verified domain is new in an organization."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Literal

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Member
    from airflow_provider_workspace.hooks.workspace_async import WorkspaceAsyncHook

log = logging.getLogger(__name__)

# How long after an event its row counts as told: until then Airflow has stored the event.
STORED_SECONDS = 3.0


class WorkspaceArrivalTrigger(BaseEventTrigger):
    """
    Fires once for each new row, with ``{"what": …, "organization_id": …, "id": …, "name": …}``.

    What was told already is kept in the asset state store (Airflow 3.3), so that a restarted triggerer neither tells it
    again nor misses what came meanwhile. If the triggerer dies within a few seconds of an event, that event may come
    once more; it is never missed. Before 3.3 there is no such store: what arrives while no triggerer runs is missed.
    What is there when the watch begins for the first time is not told.

    :param what: ``project``, ``member`` or ``verified_domain``
    :param workspace_conn_id: connection to the service
    :param organization_id: organization; by default that of the connection
    :param poll_interval: seconds between two looks
    """

    def __init__(
        self,
        *,
        what: Literal["project", "member", "verified_domain"],
        workspace_conn_id: str = "workspace_default",
        organization_id: str | None = None,
        poll_interval: float = 60.0,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        if what not in ("project", "member", "verified_domain"):
            msg = f"what is {what!r}; expected 'project', 'member' or 'verified_domain'"
            raise ValueError(msg)
        self.what = what
        self.workspace_conn_id = workspace_conn_id
        self.organization_id = organization_id
        self.poll_interval = poll_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class and plain JSON."""
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "what": self.what,
                "workspace_conn_id": self.workspace_conn_id,
                "organization_id": self.organization_id,
                "poll_interval": self.poll_interval,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look again and again; a look that fails is logged and followed by the next one."""
        from airflow_provider_workspace.errors import WorkspaceError
        from airflow_provider_workspace.hooks.looking import LONGEST_PAUSE, backoff
        from airflow_provider_workspace.hooks.shared import gate
        from airflow_provider_workspace.hooks.workspace_async import WorkspaceAsyncHook

        told: set[str] | None = None
        failures = 0
        pause = self.poll_interval * random.random()  # noqa: S311 - jitter, not cryptography
        async with WorkspaceAsyncHook(self.workspace_conn_id, organization_id=self.organization_id) as hook:
            while True:
                await asyncio.sleep(pause)
                try:
                    organization_id = await hook.organization_or_default()
                    async with gate():
                        rows = await self.rows(hook)
                except WorkspaceError as error:
                    failures += 1
                    # A key that was revoked may be replaced: a watch goes on, but does not hammer.
                    pause = LONGEST_PAUSE if error.permanent else backoff(self.poll_interval, failures)
                    log.warning("Looking failed, again in %.0f s: %s", pause, error)
                    continue
                failures, pause = 0, self.poll_interval
                if told is None:
                    told = await self.remembered(organization_id)
                if told is None:
                    told = set(rows)
                    await self.remember(organization_id, told)
                new = [row_id for row_id in rows if row_id not in told]
                for row_id in new:
                    payload = {
                        "what": self.what,
                        "organization_id": organization_id,
                        "id": row_id,
                        "name": rows[row_id],
                    }
                    log.info("New: %s", payload)
                    yield TriggerEvent(payload)  # type: ignore[no-untyped-call]
                if new:
                    # Never forgotten: a service whose order is not stable may skip a row and show it again.
                    told.update(new)
                    await asyncio.sleep(STORED_SECONDS)
                    await self.remember(organization_id, told)

    async def rows(self, hook: WorkspaceAsyncHook) -> dict[str, str | None]:
        """Read the list: id -> name."""
        if self.what == "project":
            return {str(row.id): row.name async for row in hook.list_projects()}
        if self.what == "member":
            return {member_id(row): row.user.email if row.user else None async for row in hook.list_members()}
        return {str(row.id): row.domain async for row in hook.list_domains() if row.is_verified}

    async def remembered(self, organization_id: str) -> set[str] | None:
        """Return the ids told already; ``None`` if nothing is remembered."""
        store = getattr(self, "asset_state_store", None)
        if store is None:
            return None
        ids = await store.aget(self.cursor(organization_id))
        return set(ids) if isinstance(ids, list) else None

    async def remember(self, organization_id: str, told: set[str]) -> None:
        """Keep the ids told already."""
        store = getattr(self, "asset_state_store", None)
        if store is not None:
            await store.aset(self.cursor(organization_id), sorted(told))

    def cursor(self, organization_id: str) -> str:
        """Return the key in the asset state store."""
        return f"workspace_{self.what}_{organization_id}"


def member_id(row: Member) -> str:
    """Return the id of a member's user, by which the interface addresses members; else that of the membership."""
    return str(row.user.uuid if row.user and row.user.uuid else row.id)
