"""
What runs in the triggerer: the waits of sensors, and what tells asset watchers.

On Airflow 3.3 the tasks that wait for the same subject in the same organization share a stream of polls: any number of
them cost one poll of one list. Before, each polls for itself.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Hashable
from typing import TYPE_CHECKING, Any, Literal

from airflow.triggers.base import BaseEventTrigger, TaskFailedEvent, TaskSuccessEvent, TriggerEvent

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Member
    from airflow_provider_workspace.hooks.workspace_async import WorkspaceAsyncHook
    from airflow_provider_workspace.procedures.snapshot import Snapshot
    from airflow_provider_workspace.triggers.polling import PollFailure

log = logging.getLogger(__name__)

# How long after an event its row counts as seen: until then Airflow has stored the event.
STORED_SECONDS = 3.0


class WorkspaceWaitTrigger(BaseEventTrigger):
    """
    Waits for a condition, and fires once: ``{"status": "done" | "timeout" | "failed", "message": …, "result": …}``.

    :param condition: one of :data:`~airflow_provider_workspace.procedures.conditions.CONDITIONS`
    :param arguments: fields of the condition
    :param workspace_conn_id: connection to the service
    :param organization_id: organization; by default that of the connection
    :param poll_interval: seconds between two polls
    :param end_at: when to give up, in seconds since 1970 by the wall clock; ``None`` for never
    :param ask_verification: for a domain: ask the service at each poll to verify it
    """

    def __init__(
        self,
        *,
        condition: str,
        arguments: dict[str, Any],
        workspace_conn_id: str = "workspace_default",
        organization_id: str | None = None,
        poll_interval: float = 60.0,
        end_at: float | None = None,
        ask_verification: bool = False,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.condition = condition
        self.arguments = arguments
        self.workspace_conn_id = workspace_conn_id
        self.organization_id = organization_id
        self.poll_interval = poll_interval
        self.end_at = end_at
        self.ask_verification = ask_verification

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class and plain JSON."""
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "condition": self.condition,
                "arguments": self.arguments,
                "workspace_conn_id": self.workspace_conn_id,
                "organization_id": self.organization_id,
                "poll_interval": self.poll_interval,
                "end_at": self.end_at,
                "ask_verification": self.ask_verification,
            },
        )

    def shared_stream_key(self) -> Hashable | None:
        """Return what makes two waits poll the same list at the same pace."""
        from airflow_provider_workspace.procedures.conditions import CONDITIONS

        subject = CONDITIONS[self.condition].subject
        return ("workspace", self.workspace_conn_id, self.organization_id, subject, float(self.poll_interval))

    @classmethod
    def open_shared_stream(cls, kwargs: dict[str, Any]) -> AsyncIterator[Snapshot | PollFailure]:
        """Take snapshot after snapshot; one that fails is yielded and does not end the stream."""
        from airflow_provider_workspace.procedures.conditions import CONDITIONS
        from airflow_provider_workspace.triggers.polling import snapshots

        return snapshots(
            CONDITIONS[kwargs["condition"]].subject,
            workspace_conn_id=kwargs["workspace_conn_id"],
            organization_id=kwargs["organization_id"],
            interval=float(kwargs["poll_interval"]),
        )

    async def filter_shared_stream(
        self, shared_stream: AsyncIterator[Snapshot | PollFailure]
    ) -> AsyncIterator[TriggerEvent]:
        """Evaluate snapshot after snapshot until the condition holds, the time is over, or polling is pointless."""
        from airflow_provider_workspace.procedures.conditions import build_condition, evaluate
        from airflow_provider_workspace.triggers.polling import PollFailure, until

        condition = build_condition(self.condition, self.arguments)
        message, result = "nothing was polled yet", dict[str, Any]()
        async for seen in until(shared_stream, self.end_at):
            if seen is None:
                yield _finished_event("timeout", message, result)
                return
            if isinstance(seen, PollFailure):
                if seen.permanent:
                    yield _finished_event("failed", seen.message, {})
                    return
                log.warning("Polling failed and will be retried: %s", seen.message)
                message = f"the last poll failed: {seen.message}"
                result = {}
            else:
                state = evaluate(condition, seen)
                if state.done:
                    yield _finished_event("done", state.message, state.result)
                    return
                if state.message != message:
                    log.info("Waiting: %s", state.message)
                message, result = state.message, state.result
            if self.end_at is not None and time.time() >= self.end_at:
                yield _finished_event("timeout", message, result)
                return
            refused = await self.ask() if self.ask_verification else None
            if refused:
                yield _finished_event("failed", refused, {})
                return

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait with a stream of its own, where Airflow does not share them."""
        async for event in self.filter_shared_stream(self.open_shared_stream(self.serialize()[1])):
            yield event

    async def ask(self) -> str | None:
        """
        Ask the service to verify the domain; if that is not for this kind of key, do not ask again.

        :return: why waiting is pointless; ``None`` if it is not
        """
        from airflow_provider_workspace.errors import WorkspaceAuthenticationError, WorkspaceError
        from airflow_provider_workspace.procedures.verification import ask_verification
        from airflow_provider_workspace.triggers.shared_hook import SharedHook

        try:
            async with SharedHook(self.workspace_conn_id) as shared:
                client = await shared.hook.client()
                organization_id = await shared.hook.organization_or_default(self.organization_id)
                self.ask_verification = await client.run(ask_verification(organization_id, self.arguments["domain_id"]))
        except WorkspaceAuthenticationError as error:
            log.warning("The request for verification failed: %s", error)  # the next poll tries a replaced key
        except WorkspaceError as error:
            return f"{type(error).__name__}: {error}"
        return None


class WorkspaceDomainVerifiedTrigger(WorkspaceWaitTrigger):
    """
    Waits for a verified domain in the place of a task: no worker begins or ends it.

    Airflow renders ``domain_id`` and ``organization_id`` before it starts the trigger (from 3.3).

    :param domain_id: domain (UUID)
    :param workspace_conn_id: connection to the service
    :param organization_id: organization; by default that of the connection
    :param poll_interval: seconds between two polls
    :param ask_verification: ask the service at each poll to verify the domain
    """

    def __init__(
        self,
        *,
        domain_id: str,
        workspace_conn_id: str = "workspace_default",
        organization_id: str | None = None,
        poll_interval: float = 60.0,
        ask_verification: bool = False,
    ) -> None:
        super().__init__(
            condition="domain_verified",
            arguments={"domain_id": domain_id},
            workspace_conn_id=workspace_conn_id,
            organization_id=organization_id,
            poll_interval=poll_interval,
            ask_verification=ask_verification,
        )
        self.domain_id = domain_id

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class and plain JSON."""
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "domain_id": self.domain_id,
                "workspace_conn_id": self.workspace_conn_id,
                "organization_id": self.organization_id,
                "poll_interval": self.poll_interval,
                "ask_verification": self.ask_verification,
            },
        )

    @classmethod
    def open_shared_stream(cls, kwargs: dict[str, Any]) -> AsyncIterator[Snapshot | PollFailure]:
        """Share the stream of those who wait for domains in the ordinary way."""
        return super().open_shared_stream({**kwargs, "condition": "domain_verified"})

    async def filter_shared_stream(self, shared_stream: AsyncIterator[Snapshot | PollFailure]) -> AsyncIterator[Any]:
        """End the task itself, as success with the result or as failed."""
        # Only now it is rendered.
        self.arguments = {"domain_id": str(self.domain_id).strip().lower()}
        async for event in super().filter_shared_stream(shared_stream):
            outcome = event.payload
            log.info("%s: %s", outcome["status"], outcome["message"])
            if outcome["status"] == "done":
                yield TaskSuccessEvent(xcoms={"return_value": outcome["result"]})
            else:
                yield TaskFailedEvent()


class WorkspaceArrivalTrigger(BaseEventTrigger):
    """
    Fires once for each new row, with ``{"what": …, "organization_id": …, "id": …, "name": …}``.

    What was reported already is kept in the asset state store (Airflow 3.3), so that a restarted triggerer neither
    reports it again nor misses what came meanwhile. If the triggerer dies within a few seconds of an event, that event
    may come once more; it is never missed. Before 3.3 there is no such store: what arrives while no triggerer runs is
    missed. What is there when the watch begins for the first time is not reported.

    :param what: ``project``, ``member`` or ``verified_domain``
    :param workspace_conn_id: connection to the service
    :param organization_id: organization; by default that of the connection
    :param poll_interval: seconds between two polls
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
        """Poll; a failure is logged and followed by the next poll."""
        from airflow_provider_workspace.client import waits
        from airflow_provider_workspace.triggers.polling import PollFailure, poll

        seen: set[str] | None = None
        async for polled in poll(self.read, workspace_conn_id=self.workspace_conn_id, interval=self.poll_interval):
            if isinstance(polled, PollFailure):
                log.warning("Polling failed and will be retried: %s", polled.message)
                continue
            organization_id, rows = polled
            if seen is None:
                seen = await self.remembered(organization_id)
            if seen is None:
                seen = set(rows)
                await self.remember(organization_id, seen)
            new = [row_id for row_id in rows if row_id not in seen]
            for row_id in new:
                payload = {"what": self.what, "organization_id": organization_id, "id": row_id, "name": rows[row_id]}
                log.info("New: %s", payload)
                yield TriggerEvent(payload)  # type: ignore[no-untyped-call]
            if new:
                # Never forgotten: a service whose order is not stable may skip a row and show it again.
                seen.update(new)
                await waits.async_sleep(STORED_SECONDS)
                await self.remember(organization_id, seen)

    async def read(self, hook: WorkspaceAsyncHook) -> tuple[str, dict[str, str | None]]:
        """Read the list once: the organization, and id -> name."""
        organization_id = await hook.organization_or_default(self.organization_id)
        return organization_id, await self.rows(hook, organization_id)

    async def rows(self, hook: WorkspaceAsyncHook, organization_id: str) -> dict[str, str | None]:
        """Read the list: id -> name."""
        if self.what == "project":
            return {str(row.id): row.name async for row in hook.list_projects(organization_id=organization_id)}
        if self.what == "member":
            members = hook.list_members(organization_id=organization_id)
            return {_member_id(row): row.user.email if row.user else None async for row in members}
        domains = hook.list_domains(organization_id=organization_id)
        return {str(row.id): row.domain async for row in domains if row.is_verified}

    async def remembered(self, organization_id: str) -> set[str] | None:
        """Return the ids reported already; ``None`` if nothing is remembered."""
        store = getattr(self, "asset_state_store", None)
        if store is None:
            return None
        ids = await store.aget(self.cursor(organization_id))
        return set(ids) if isinstance(ids, list) else None

    async def remember(self, organization_id: str, seen: set[str]) -> None:
        """Keep the ids reported already."""
        store = getattr(self, "asset_state_store", None)
        if store is not None:
            await store.aset(self.cursor(organization_id), sorted(seen))

    def cursor(self, organization_id: str) -> str:
        """Return the key in the asset state store."""
        return f"workspace_{self.what}_{organization_id}"


def _finished_event(status: str, message: str, result: dict[str, Any]) -> TriggerEvent:
    """Return the event that ends a wait."""
    return TriggerEvent({"status": status, "message": message, "result": result})  # type: ignore[no-untyped-call]


def _member_id(row: Member) -> str:
    """Return the id of a member's user, by which the interface addresses members; else that of the membership."""
    return str(row.user.uuid if row.user and row.user.uuid else row.id)
