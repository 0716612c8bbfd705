"""
The triggers of sensors and asset watchers.

On Airflow 3.3 and later, tasks that wait for the same list of an organization share its polls. Before, each task polls
on its own.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import AsyncIterator, Hashable
from math import inf
from typing import TYPE_CHECKING, Any, Literal

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from airflow_provider_workspace.triggers.deadline import check_number, check_text, serialized
from airflow_provider_workspace.version_compat import AirflowNotFoundException, asset_stores, watchers_have_queues

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Member
    from airflow_provider_workspace.hooks.workspace_async import WorkspaceAsyncHook
    from airflow_provider_workspace.procedures.arrivals import ListedRow, SeenRows
    from airflow_provider_workspace.procedures.conditions import Condition, Result
    from airflow_provider_workspace.procedures.snapshot import Snapshot
    from airflow_provider_workspace.triggers.polling import PollFailure

log = logging.getLogger(__name__)

# Rows per event: each task of the run gets its events, and tasks can be mapped over as many.
MAX_ROWS = 1000
# Delay after an event until its rows are remembered; by then Airflow has stored the event.
STORED_SECONDS = 3.0
# Time between two log lines of a watcher that say what it sees.
ALIVE_SECONDS = 3600.0
# Within so many seconds after a poll, each of the waits that share it writes to its log, or ends.
SPREAD_SECONDS = 5.0


class WorkspaceWaitTrigger(BaseEventTrigger):
    """
    Waits for a condition, and fires once: ``{"status": "done" | "timeout" | "failed", "message": …, "result": …}``.

    :param condition: one of the names in ``procedures.conditions.CONDITIONS``
    :param arguments: fields of the condition
    :param workspace_conn_id: connection to the service
    :param organization_id: organization; by default that of the connection
    :param poll_interval: seconds between two polls
    :param end_at: timeout in seconds since 1970 by the wall clock; ``None`` for no timeout
    :param ask_verification: ask the service at each poll to verify the domain
    """

    # By default, event triggers do not inherit the queue of their task.
    supports_triggerer_queue = True
    trigger_queue_inherited_from_task = True  # Airflow 3.4

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
        check_number("poll_interval", poll_interval)
        if end_at is not None:
            check_number("end_at", end_at)
        self.condition = condition
        self.arguments = arguments
        self.workspace_conn_id = workspace_conn_id
        self.organization_id = organization_id
        self.poll_interval = poll_interval
        self.end_at = end_at
        self.ask_verification = ask_verification

    def serialize(self) -> tuple[str, dict[str, Any]]:
        names = ("workspace_conn_id", "organization_id", "poll_interval", "end_at", "ask_verification")
        return serialized(self, "condition", "arguments", *names)

    def shared_stream_key(self) -> Hashable | None:
        """Return the key that waits with the same list and interval share."""
        from airflow_provider_workspace.procedures.conditions import condition_class

        check_text("workspace_conn_id", self.workspace_conn_id)
        if self.organization_id is not None:
            check_text("organization_id", self.organization_id)
        subject = condition_class(self.condition).subject
        return ("workspace", self.workspace_conn_id, self.organization_id, subject, float(self.poll_interval))

    @classmethod
    def open_shared_stream(cls, kwargs: dict[str, Any]) -> AsyncIterator[Snapshot | PollFailure]:
        """Poll for snapshots; a failed poll is yielded and does not end the stream."""
        from airflow_provider_workspace.procedures.conditions import condition_class
        from airflow_provider_workspace.triggers.polling import snapshots

        return snapshots(
            condition_class(kwargs["condition"]).subject,
            workspace_conn_id=kwargs["workspace_conn_id"],
            organization_id=kwargs["organization_id"],
            interval=float(kwargs["poll_interval"]),
        )

    async def filter_shared_stream(
        self, shared_stream: AsyncIterator[Snapshot | PollFailure]
    ) -> AsyncIterator[TriggerEvent]:
        """Evaluate snapshots until the condition is met, the timeout is over, or polling fails permanently."""
        from airflow_provider_workspace.errors import with_problem
        from airflow_provider_workspace.procedures.conditions import RecordCheck, build_condition, evaluate
        from airflow_provider_workspace.triggers.polling import PollFailure, until

        condition = build_condition(self.condition, self.arguments)
        record_check = RecordCheck()
        began = inf
        message = "nothing was polled yet"
        at_end = _finished_event("timeout", message, {})
        async for seen in until(shared_stream, self.end_at):
            if seen is None:
                yield at_end
                return
            if isinstance(seen, PollFailure):
                await self._spread()
                if seen.permanent:
                    yield _finished_event("failed", seen.message, {})
                    return
                log.warning("Polling failed and will be retried: %s", seen.message)
                message = with_problem(f"the last poll failed: {seen.message}")
                at_end = _finished_event("failed" if seen.fails_at_end else "timeout", message, {})
            else:
                # The first poll counts: an invite may be accepted between the poll of the worker and this one.
                began = min(began, time.monotonic())
                state = evaluate(condition, seen, max(0.0, seen.read_at - began))
                if state.done or state.message != message:
                    await self._spread()
                if state.done:
                    yield _finished_event("done", state.message, state.result)
                    return
                if state.message != message:
                    log.info("Waiting: %s", state.message)
                message = state.message
                at_end = _finished_event("timeout", message, state.result)
                gone = await self.check_exists(condition, state) if record_check.is_due(state, seen) else None
                if gone:
                    yield _finished_event("failed", gone, {})
                    return
            if self.end_at is not None and time.time() >= self.end_at:
                yield at_end
                return
            refused = await self.ask() if self.ask_verification else None
            if refused:
                yield _finished_event("failed", refused, {})
                return

    async def _spread(self) -> None:
        """
        Wait a random time before the wait writes to its log or ends.

        Waits that share a poll would write at the same moment. While the triggerer sends many new triggers to the
        process that runs them, it does not read that process's log: after some hundred lines both would wait for each
        other for ever.
        """
        from airflow_provider_workspace.client import waits

        await waits.async_sleep(random.random() * min(self.poll_interval, SPREAD_SECONDS))  # noqa: S311

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait without a shared stream, before Airflow 3.3."""
        async for event in self.filter_shared_stream(self.open_shared_stream(self.serialize()[1])):
            yield event

    async def check_exists(self, condition: Condition, result: Result) -> str | None:
        """Return why the wait must fail if its record does not exist; ``None`` otherwise."""
        from airflow_provider_workspace.client import waits
        from airflow_provider_workspace.errors import WorkspaceError, WorkspaceInputError, with_class
        from airflow_provider_workspace.procedures.conditions import check_exists
        from airflow_provider_workspace.triggers.polling import POLL_TIMEOUT
        from airflow_provider_workspace.triggers.shared_hook import SharedHook

        async def read() -> None:
            async with SharedHook(self.workspace_conn_id) as shared:
                organization_id = await shared.hook.organization_or_default(self.organization_id)
                await shared.hook.run(check_exists, condition, organization_id, result)

        try:
            await waits.within(POLL_TIMEOUT, read())
        except WorkspaceInputError as error:
            return with_class(error)
        except (TimeoutError, WorkspaceError, AirflowNotFoundException) as error:
            log.warning("Reading what the list does not show failed: %s", error)  # the next polls show why
        return None

    async def ask(self) -> str | None:
        """
        Ask the service to verify the domain; stop asking if it refuses this kind of API key.

        :return: the reason if the wait must fail; ``None`` otherwise
        """
        from airflow_provider_workspace.client import waits
        from airflow_provider_workspace.errors import WorkspaceAuthenticationError, WorkspaceError, with_class
        from airflow_provider_workspace.procedures.conditions import ask_verification
        from airflow_provider_workspace.triggers.polling import POLL_TIMEOUT
        from airflow_provider_workspace.triggers.shared_hook import SharedHook

        async def send() -> bool:
            async with SharedHook(self.workspace_conn_id) as shared:
                organization_id = await shared.hook.organization_or_default(self.organization_id)
                return await shared.hook.run(ask_verification, organization_id, self.arguments["domain_id"])

        try:
            self.ask_verification = await waits.within(POLL_TIMEOUT, send())
        except TimeoutError:
            log.warning("The request for verification failed: it took longer than %g s", POLL_TIMEOUT)
        except (WorkspaceAuthenticationError, AirflowNotFoundException) as error:
            log.warning("The request for verification failed: %s", error)  # the next poll reads the connection again
        except WorkspaceError as error:
            return with_class(error)
        return None


class WorkspaceArrivalTrigger(BaseEventTrigger):
    """
    Fires once for each poll that finds new rows: ``{"what": …, "organization_id": …, "rows": [{"id": …, "name": …}]}``.

    An event lists at most 1,000 rows, oldest first; the next poll sends the others. All its values are plain JSON:
    ``name`` is ``None`` if the service shows none, all others are text.

    A row is new if no complete list has shown it, or only with an earlier time (``joined_at``, ``verified_at``):
    somebody who leaves and joins again is new, and a row that a list misses for one poll is not. Rows that exist when
    the watch starts for the first time are not reported, and an incomplete list reports nothing. Since Airflow 3.3, the
    rows are stored per asset in the asset state store, so a restart of the triggerer neither repeats nor misses events;
    only an event within seconds of a crash may be repeated. Before 3.3, rows that arrive while no triggerer runs are
    missed.

    The newest 2,000 rows are stored by id, in 24 bytes each; of older ones only the latest time is stored, so in a
    longer list a row that appears late with an earlier time is missed. Projects have no time in their list, so all of
    them are stored by id.

    Once an hour, the log of the triggerer says how many rows the list has, and how many were new.

    :param what: what to watch
    :param workspace_conn_id: the connection to the service
    :param organization_id: the organization; by default that of the connection
    :param poll_interval: seconds between two polls
    :param queue: triggerer queue, since Airflow 3.4; ``None`` for triggerers without ``--queues``
    :raises WorkspaceInputError: if ``what`` is invalid, or if ``queue`` is set before Airflow 3.4
    """

    def __init__(
        self,
        *,
        what: Literal["project", "member", "verified_domain"],
        workspace_conn_id: str = "workspace_default",
        organization_id: str | None = None,
        poll_interval: float = 60.0,
        queue: str | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        if queue is not None:
            check_text("queue", queue)
            if not watchers_have_queues():
                from airflow_provider_workspace.errors import WorkspaceInputError

                raise WorkspaceInputError(
                    "Before Airflow 3.4 only triggerers without --queues run watchers. Leave queue out, or upgrade"
                )
        self.queue = queue
        check_number("poll_interval", poll_interval)
        if what not in ("project", "member", "verified_domain"):
            from airflow_provider_workspace.errors import WorkspaceInputError, shown

            raise WorkspaceInputError(f"what is {shown(what)}; expected 'project', 'member' or 'verified_domain'")
        self.what = what
        self.workspace_conn_id = workspace_conn_id
        self.organization_id = organization_id
        self.poll_interval = poll_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        # Airflow shares triggers with equal arguments, so the queue is left out unless it is set.
        queue = () if self.queue is None else ("queue",)
        return serialized(self, "what", "workspace_conn_id", "organization_id", "poll_interval", *queue)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Poll forever and fire for new rows; failed polls are logged, and once an hour that others succeed."""
        from airflow_provider_workspace.api.timestamps import iso
        from airflow_provider_workspace.client import waits
        from airflow_provider_workspace.procedures.arrivals import SeenRows, unseen_rows
        from airflow_provider_workspace.triggers.polling import PollFailure, poll

        stores = asset_stores(self)
        known: list[SeenRows | None] = []
        watched = ""
        since = time.time()
        due = time.monotonic()
        found = 0
        async for polled in poll(self.read, workspace_conn_id=self.workspace_conn_id, interval=self.poll_interval):
            if isinstance(polled, PollFailure):
                log.warning("Polling failed and will be retried: %s", polled.message)
                continue
            organization_id, rows = polled
            key = f"workspace_{self.what}_{organization_id}"
            if key != watched:
                watched = key
                known = [SeenRows.from_json(await store.aget(key)) for store in stores]
            unseen = unseen_rows(rows, known)
            new = sorted(unseen, key=lambda row_id: rows[row_id].since or 0)[:MAX_ROWS]
            if new:
                listed = [{"id": row_id, "name": rows[row_id].name} for row_id in new]
                log.info("%d new rows, %d of them in this event: %s", len(unseen), len(new), listed)
                # One event: a second one would wait for the next arrival if Airflow is about to start a run.
                payload = {"what": self.what, "organization_id": organization_id, "rows": listed}
                yield TriggerEvent(payload)  # type: ignore[no-untyped-call]
                await waits.async_sleep(STORED_SECONDS)
            shown = SeenRows.of(rows, unseen.keys() - new, known)
            if any(seen != shown for seen in known):
                for store in stores:
                    await store.aset(watched, shown.to_json())
            known = [shown]
            found += len(new)
            if time.monotonic() >= due:
                what = f"{self.what}s of {organization_id}"
                then = iso(since, "seconds")
                log.info("Watching %s: %d rows, %d of them new since %s", what, len(rows), found, then)
                due = time.monotonic() + ALIVE_SECONDS
                since = time.time()
                found = 0

    async def read(self, hook: WorkspaceAsyncHook) -> tuple[str, dict[str, ListedRow]]:
        """
        Read the list; return the organization and the rows by id.

        :raises WorkspaceIncompleteListError: if the list is incomplete, since the rest would seem to arrive later
        :raises WorkspaceError: if it shows no member, since all of them would
        """
        from airflow_provider_workspace.api.timestamps import parse_timestamp
        from airflow_provider_workspace.errors import WorkspaceError
        from airflow_provider_workspace.procedures.arrivals import ListedRow
        from airflow_provider_workspace.procedures.snapshot import NO_MEMBERS

        def listed(name: str | None, since: str | None) -> ListedRow:
            seconds = parse_timestamp(since)
            return ListedRow(name, None if seconds is None else int(seconds))

        organization_id = await hook.organization_or_default(self.organization_id)
        if self.what == "project":
            projects = hook.list_projects(organization_id=organization_id)
            rows = {str(row.id): listed(row.name, None) async for row in projects}
        elif self.what == "member":
            members = hook.list_members(organization_id=organization_id)
            rows = {}
            async for row in members:
                email = row.user.email if row.user else None
                rows[_member_id(row)] = listed(email, row.joined_at)
            if not rows:
                raise WorkspaceError(NO_MEMBERS, problem="list-too-short", permanent=False)
        else:
            domains = hook.list_domains(organization_id=organization_id)
            rows = {str(row.id): listed(row.domain, row.verified_at) async for row in domains if row.is_verified}
        return organization_id, rows


def _finished_event(status: str, message: str, result: dict[str, Any]) -> TriggerEvent:
    return TriggerEvent({"status": status, "message": message, "result": result})  # type: ignore[no-untyped-call]


def _member_id(row: Member) -> str:
    """Return the id of the user, which identifies a member in the interface; else that of the membership."""
    if row.user and row.user.uuid:
        return str(row.user.uuid)
    return str(row.id)
