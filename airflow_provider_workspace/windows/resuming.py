"""
Resume the exports of a window that is over; used by its closing task, its guard, and the sweep.

The order makes concurrent windows safe: write into the lease that a resume is about to be sent, read the leases of
other windows, and resume unless another active window has paused the export.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from airflow_provider_workspace.api.outcome import is_refused
from airflow_provider_workspace.api.timestamps import iso
from airflow_provider_workspace.errors import WorkspaceRequestError, WorkspaceStatusError
from airflow_provider_workspace.notes.leases import LeaseRegistry, Noted, WindowClosedError, window_of
from airflow_provider_workspace.version_compat import COMMAND
from airflow_provider_workspace.windows.requests import NotedRequests
from airflow_provider_workspace.windows.state import WORK_ENDED, WindowState, find_states, still_holding, window_state

if TYPE_CHECKING:
    from airflow_provider_workspace.notes.leases import Lease, Window

log = logging.getLogger(__name__)


@dataclass
class Closed:
    """
    The result of closing, by export.

    :ivar resumed: exports that were resumed
    :ivar held: exports that stay paused, and the other windows that hold them
    :ivar left_paused: exports that stay paused because of ``leave_paused``, or as they were before the window
    :ivar never_paused: exports that the window did not pause, and why if the service refused
    :ivar fields_refused: exports that were resumed without ``resume_fields``, and why the service refused these
    :ivar seen: what ``state_of`` showed after the resume
    :ivar failed: exports that could not be resumed
    :ivar wait_until: when to call again, because a request without an answer may take effect until then, or another
        task is resuming an export
    """

    resumed: list[str] = field(default_factory=list)
    held: dict[str, list[str]] = field(default_factory=dict)
    left_paused: list[str] = field(default_factory=list)
    never_paused: dict[str, str | None] = field(default_factory=dict)
    fields_refused: dict[str, str] = field(default_factory=dict)
    seen: dict[str, str] = field(default_factory=dict)
    failed: dict[str, Exception] = field(default_factory=dict)
    wait_until: float | None = None


@dataclass(frozen=True)
class Closer(NotedRequests):
    """
    Closes windows.

    :param name: the task and try that closes; must differ between tasks that may close the same window
    :ivar unproven: leases of exports that were resumed and have a ``state_of``, and the result that will say so
    """

    name: str
    unproven: dict[str, tuple[Lease, Closed]] = field(default_factory=dict, init=False)

    def close_all(self, leases: Iterable[Lease]) -> Closed:
        """Resume each export, then prove it; one that cannot be resumed does not stop the others."""
        done = self.resume_all(leases)
        self.prove_resumed()
        return done

    def resume_all(self, leases: Iterable[Lease]) -> Closed:
        """Resume each export. The result is complete after :meth:`prove_resumed`."""
        done = Closed()
        for lease in leases:
            with self._noting_failure(lease, done):
                self.close(lease, done)
        return done

    def prove_resumed(self) -> None:
        """Prove all exports together that were resumed and have a ``state_of``, and delete their leases."""
        for lease, found in self.prove([lease for lease, _ in self.unproven.values()], "running"):
            _, done = self.unproven.pop(lease.key)
            with self._noting_failure(lease, done):
                if isinstance(found, Exception):
                    raise found
                done.seen[lease.batch_export_id] = str(found.seen)
                done.resumed.append(lease.batch_export_id)
                self._finish(found, done)

    @contextmanager
    def _noting_failure(self, lease: Lease, done: Closed) -> Iterator[None]:
        try:
            yield
        except WindowClosedError:
            log.info("Batch export %s: another task resumes it. Checking later whether it did.", lease.batch_export_id)
            done.wait_until = max(self.clock() + self.service_for(lease).consistency_time, done.wait_until or 0.0)
        except Exception as error:
            log.exception("Batch export %s could not be resumed", lease.batch_export_id)
            done.failed[lease.batch_export_id] = error

    def close(self, lease: Lease, done: Closed) -> None:
        """
        Resume an export that no other window holds, and delete the lease, or leave it to :meth:`prove_resumed`.

        :param done: receives the result
        :raises WorkspaceError: if it could not be resumed; the lease stays
        """
        export_id = lease.batch_export_id
        current = self.registry.read(lease.key)
        if current is None:
            log.info("Batch export %s: another task has closed the window.", export_id)
            return
        lease = current
        now = self.clock()
        # An earlier try of this task has ended; another task may be waiting for a response. Send resume_fields once.
        if lease.resuming(now) and (lease.closer or "").rpartition("#")[0] != self.name.rpartition("#")[0]:
            self._wait(lease, done)
            return
        if lease.never_paused:
            done.never_paused[export_id] = lease.refused
            self.registry.remove(lease)
            return
        if lease.leave_paused or lease.paused_before:
            why = "as before the window" if lease.paused_before else "as asked for"
            log.info("Batch export %s stays paused, %s.", export_id, why)
            done.left_paused.append(export_id)
            self.registry.remove(lease)
            return
        if lease.resumed_at is not None and now < (lease.late_pause_until or 0.0):
            self._wait(lease, done)
            return
        service = self.service_for(lease)
        # A request of an earlier try may be in progress.
        unanswered = lease.late_resume_until if (lease.late_resume_until or 0.0) > now else None
        until = max(unanswered or 0.0, now + service.consistency_time)
        lease = self.registry.change(lease, closer=self.name, state="closing", late_resume_until=until)
        others = self.registry.read_all(self.registry.other_keys(lease))
        held_by = still_holding(self.registry, others, self.clock())
        late_pause = lease.late_pause_until if (lease.late_pause_until or 0.0) > self.clock() else None
        if held_by:
            done.held[export_id] = [str(other.window) for other in held_by]
            log.info("Batch export %s stays paused, held by %s.", export_id, ", ".join(done.held[export_id]))
            if lease.resume_fields and any(other.resume_fields != lease.resume_fields for other in held_by):
                log.warning("It will be resumed with the resume_fields of that window, not with those of this one.")
            lease = lease.model_copy(update={"late_resume_until": unanswered, "resumed_at": None})
        elif lease.resumed_at is None or lease.late_pause_until is not None:
            lease = self._resume(lease, unanswered, done)
            log.info("Resumed batch export %s.", export_id)
            lease = lease.model_copy(update={"resumed_at": self.clock()})
        else:
            lease = lease.model_copy(update={"late_resume_until": unanswered})
        lease = lease.model_copy(update={"late_pause_until": late_pause})
        if lease.state_of and late_pause is None and not held_by:
            # Until it is proven, it is this task that resumes it.
            self.registry.update(lease, late_resume_until=until)
            self.unproven[lease.key] = lease, done
            return
        if not held_by:
            done.resumed.append(export_id)
        self._finish(lease, done)

    def _finish(self, lease: Lease, done: Closed) -> None:
        """Delete a lease unless a request without an answer can still take effect."""
        lease = self.registry.update(lease)
        if max(lease.late_pause_until or 0.0, lease.late_resume_until or 0.0) > self.clock():
            self._wait(lease, done)
        else:
            self.registry.remove(lease)

    def _resume(self, lease: Lease, unanswered: float | None, done: Closed) -> Lease:
        """Resume, without the ``resume_fields`` if the service refuses them: a paused export is worse."""
        try:
            return self.send(lease, "late_resume_until", unanswered=unanswered)
        except WorkspaceStatusError as error:
            if not (lease.resume_fields and error.permanent and is_refused(error)):
                raise
            log.exception("Batch export %s is resumed without resume_fields", lease.batch_export_id)
            done.fields_refused[lease.batch_export_id] = str(error)
        lease = self.registry.update(lease, resume_fields=None)
        return self.send(lease, "late_resume_until", unanswered=unanswered)

    def _wait(self, lease: Lease, done: Closed) -> None:
        """Keep a lease until no request without an answer can take effect any more."""
        until = max(lease.late_pause_until or 0.0, lease.late_resume_until or 0.0)
        log.warning(
            "Batch export %s: a request without an answer yet may still take effect. Checking again at %s.",
            lease.batch_export_id,
            iso(until),
        )
        done.wait_until = max(until, done.wait_until or 0.0)


def sweep(closer: Closer, *, at_once: bool = False) -> tuple[list[dict[str, Any]], dict[str, Noted], dict[str, str]]:
    """
    Close the windows that are overdue or abandoned, never one that is open.

    :param at_once: whether to close also a window whose work has just ended, instead of waiting for its closing task
    :return: what was closed, each window with the reason and the results for its exports; what each window is, for
        its note; and the Variables that are no leases and that no closing task will repair, as far as is known, and why
    """
    registry = closer.registry
    swept: list[tuple[Window, WindowState, Closed]] = []
    states: dict[str, Noted] = {}
    noted = registry.last_sweep().windows

    def note(state: WindowState, lease: Lease) -> None:
        before = noted.get(lease.window.id)
        since = before.since if before and before.why == state.why else closer.clock()
        states[lease.window.id] = Noted(state=state.name, why=state.why, text=str(state), since=since, lease=lease)

    for state, leases in find_states(registry, closer.clock):
        window = leases[0].window
        note(state, leases[-1])
        if not (state.left or (at_once and state.why == WORK_ENDED)):
            continue
        # It may have closed itself after its leases were read, and its run may be over for that reason.
        left = registry.all(window=window, skip_failed=True)
        if not left:
            continue
        log.warning("The window %s is %s.", window, state)
        swept.append((window, state, closer.resume_all(left)))
    closer.prove_resumed()
    rows: list[dict[str, Any]] = []
    for window, state, done in swept:
        row: dict[str, Any] = {"window": str(window), **asdict(window), "state": state.name, "why": state.why}
        row |= vars(done)
        row["failed"] = {export_id: str(error) for export_id, error in done.failed.items()}
        until = row.pop("wait_until")
        rows.append({**row, "again_after": None if until is None else iso(until)})
    # Of a window without a readable lease the last sweep may know more.
    for name in {window_of(key) for key in registry.unreadable} & noted.keys() - states.keys():
        if lease := noted[name].lease:
            note(window_state(registry, [lease], closer.clock()), lease)
    at_work = [name for name, each in states.items() if each.state not in ("overdue", "abandoned")]
    return rows, states, {key: why for key, why in registry.unreadable.items() if window_of(key) not in at_work}


def describe_sweep(windows: Iterable[dict[str, Any]], unreadable: Mapping[str, str]) -> str:
    """Return the result of a sweep for people."""
    lines = []
    for row in windows:
        results = [
            f"resumed {', '.join(row['resumed'])}" if row["resumed"] else "",
            f"STILL PAUSED {', '.join(row['failed'])}" if row["failed"] else "",
            f"held by others {', '.join(row['held'])}" if row["held"] else "",
            f"left paused, as asked or as before, {', '.join(row['left_paused'])}" if row["left_paused"] else "",
            f"never paused {', '.join(row['never_paused'])}" if row["never_paused"] else "",
            f"seen {', '.join(f'{seen} {export}' for export, seen in row['seen'].items())}" if row["seen"] else "",
            f"to be resumed again after {row['again_after']}" if row["again_after"] else "",
        ]
        said = "; ".join(filter(None, results)) or "nothing left to resume"
        lines.append(f"Window {row['window']} ({WindowState(row['state'], row['why'])}): {said}.")
    return "\n".join([*lines, *(LeaseRegistry.describe_unreadable(key, why) for key, why in unreadable.items())])


def raise_still_paused(failed: Mapping[str, object], said: str = "") -> NoReturn:
    """
    Raise the error that names the exports still paused.

    The error is never permanent: every retry may succeed, for example after somebody has corrected the API key.

    :param said: text to append
    """
    named = "; ".join(f"{export_id}: {error}" for export_id, error in failed.items())
    msg = (
        f"STILL PAUSED. Correct the cause, then clear this task or run '{COMMAND} sweep': "
        f"{', '.join(failed)}. Without state_of this goes by the failed requests, because the interface cannot tell "
        f"whether an export is paused. {named} {said}"
    )
    raise WorkspaceRequestError(msg.strip(), operation="UnpauseBatchExport", problem="still-paused")


def marked_as_failed(
    ti: Any, outcome_task_id: str, setup_task_ids: Iterable[str], work_task_ids: Iterable[str]
) -> bool:
    """
    Return whether a person marked the run as failed, so that the outcome task was skipped.

    The mark fails what runs, and skips what waits, also for a retry: a setup of an open window, which never skips
    itself. A task of the work that was waiting for a retry looks like one that skipped itself.
    """
    setups, work = list(setup_task_ids), list(work_task_ids)
    mapped = ti.map_index is not None and ti.map_index >= 0
    states = ti.get_task_states(
        dag_id=ti.dag_id,
        run_ids=[ti.run_id],
        task_ids=[outcome_task_id, *setups, *work],
        map_index=ti.map_index if mapped else None,
    ).get(ti.run_id, {})
    index = f"_{ti.map_index}" if mapped else ""
    if states.get(f"{outcome_task_id}{index}") != "skipped":
        return False
    return "failed" in states.values() or any(states.get(f"{setup}{index}") == "skipped" for setup in setups)
