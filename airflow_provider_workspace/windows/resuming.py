"""
Resume the exports of a window that is over; used by its closing task, its guard, and the sweep.

The order makes concurrent windows safe: write into the lease that a resume is about to be sent, read the leases of
other windows, and resume unless another active window has paused the export.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.api.outcome import is_refused
from airflow_provider_workspace.api.timestamps import iso
from airflow_provider_workspace.errors import WorkspaceRequestError, WorkspaceStatusError
from airflow_provider_workspace.notes.leases import WindowClosedError
from airflow_provider_workspace.version_compat import COMMAND
from airflow_provider_workspace.windows.requests import NotedRequests
from airflow_provider_workspace.windows.window_state import holders_of

if TYPE_CHECKING:
    from airflow_provider_workspace.notes.leases import Lease

log = logging.getLogger(__name__)

FIELDS_IN_DOUBT = (
    "a request to resume had no answer, and if it was carried out, the resume_fields of the next one had no effect. "
    "Look in the workspace whether the missed intervals are exported."
)


@dataclass
class Closed:
    """
    The result of closing, by export.

    :ivar resumed: exports that were resumed
    :ivar held: exports that stay paused, and the other windows that hold them
    :ivar left_paused: exports that stay paused because of ``leave_paused``, or as they were before the window
    :ivar never_paused: exports that the window did not pause, and why if the service refused
    :ivar fields_refused: exports that were resumed without ``resume_fields``, and why the service refused these
    :ivar fields_in_doubt: exports that were resumed, perhaps by an earlier request without an answer: then the service
        did not read the ``resume_fields`` of the one that it answered
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
    fields_in_doubt: list[str] = field(default_factory=list)
    seen: dict[str, str] = field(default_factory=dict)
    failed: dict[str, Exception] = field(default_factory=dict)
    wait_until: float | None = None

    def added_to(self, earlier: Closed) -> Closed:
        """Return this result together with that of earlier tries, which may have resumed other exports."""
        resumed = [*earlier.resumed, *self.resumed]
        left_paused = [*earlier.left_paused, *self.left_paused]
        fields_in_doubt = [*earlier.fields_in_doubt, *self.fields_in_doubt]
        return replace(
            self,
            resumed=_without_duplicates(resumed),
            left_paused=_without_duplicates(left_paused),
            held={**earlier.held, **self.held},
            never_paused={**earlier.never_paused, **self.never_paused},
            fields_refused={**earlier.fields_refused, **self.fields_refused},
            fields_in_doubt=_without_duplicates(fields_in_doubt),
        )

    @property
    def without_fields(self) -> list[str]:
        """The exports whose ``resume_fields`` had no effect, or perhaps none."""
        return _without_duplicates([*self.fields_refused, *self.fields_in_doubt])

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        failed = {export_id: str(error) for export_id, error in self.failed.items()}
        again_after = None if self.wait_until is None else iso(self.wait_until)
        return {
            "resumed": self.resumed,
            "held": self.held,
            "left_paused": self.left_paused,
            "never_paused": self.never_paused,
            "fields_refused": self.fields_refused,
            "fields_in_doubt": self.fields_in_doubt,
            "seen": self.seen,
            "failed": failed,
            "again_after": again_after,
        }

    def call_again_after(self, until: float) -> None:
        """Have the caller call again at a time, or later if it has to anyway."""
        self.wait_until = max(until, self.wait_until or 0.0)


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
        leases = [lease for lease, _ in self.unproven.values()]
        for lease, found in self.prove(leases, "running"):
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
            done.call_again_after(self.clock() + self.service_for(lease).consistency_time)
        except Exception as error:
            log.exception("Batch export %s could not be resumed", lease.batch_export_id)
            done.failed[lease.batch_export_id] = error

    def close(self, lease: Lease, done: Closed) -> None:
        """
        Resume an export that no other window holds, and delete the lease, or leave it to :meth:`prove_resumed`.

        :param done: receives the result
        :raises WorkspaceError: if it could not be resumed; the lease stays
        """
        current = self.registry.read(lease.key)
        if current is None:
            log.info("Batch export %s: another task has closed the window.", lease.batch_export_id)
            return
        now = self.clock()
        if self._is_resumed_by_another(current, now):
            self._wait(current, done)
            return
        if current.never_paused:
            done.never_paused[current.batch_export_id] = current.refused
            self.registry.remove(current)
            return
        if current.stays_paused:
            self._leave_paused(current, done)
            return
        if current.resumed_at is not None and now < (current.late_pause_until or 0.0):
            self._wait(current, done)
            return
        self._resume_unless_held(current, done, now)

    def _is_resumed_by_another(self, lease: Lease, now: float) -> bool:
        """
        Return whether another task may be waiting for the response to a resume, so that resume_fields are sent once.

        An earlier try of this task has ended.
        """
        if not lease.resuming(now):
            return False
        other_task, _, _ = (lease.closer or "").rpartition("#")
        this_task, _, _ = self.name.rpartition("#")
        return other_task != this_task

    def _leave_paused(self, lease: Lease, done: Closed) -> None:
        reason = "as before the window" if lease.paused_before else "as asked for"
        log.info("Batch export %s stays paused, %s.", lease.batch_export_id, reason)
        done.left_paused.append(lease.batch_export_id)
        self.registry.remove(lease)

    def _resume_unless_held(self, lease: Lease, done: Closed, now: float) -> None:
        """Become the closer of a lease; then resume its export, or leave it to the windows that hold it."""
        service = self.service_for(lease)
        # A request of an earlier try may be in progress.
        unanswered = _if_ahead(lease.late_resume_until, now)
        until = max(unanswered or 0.0, now + service.consistency_time)
        in_doubt = lease.resume_in_doubt or lease.late_resume_until is not None
        lease = self.registry.change(
            lease, closer=self.name, state="closing", late_resume_until=until, resume_in_doubt=in_doubt
        )
        holders = holders_of(self.registry, lease, self.clock)
        late_pause = _if_ahead(lease.late_pause_until, self.clock())
        if holders:
            _leave_to_holders(lease, holders, done)
            changes = {"late_resume_until": unanswered, "resumed_at": None, "late_pause_until": late_pause}
            self._finish(lease.model_copy(update=changes), done)
            return
        if lease.resumed_at is None or lease.late_pause_until is not None:
            lease = self._resume(lease, unanswered, done)
            log.info("Resumed batch export %s.", lease.batch_export_id)
            if lease.resume_fields and lease.resume_in_doubt:
                log.warning("Batch export %s: %s", lease.batch_export_id, FIELDS_IN_DOUBT)
                done.fields_in_doubt.append(lease.batch_export_id)
            lease = lease.model_copy(update={"resumed_at": self.clock(), "late_pause_until": late_pause})
        else:
            lease = lease.model_copy(update={"late_resume_until": unanswered})
        if lease.state_of and late_pause is None:
            # Until it is proven, it is this task that resumes it.
            self.registry.update(lease, late_resume_until=until)
            self.unproven[lease.key] = lease, done
            return
        done.resumed.append(lease.batch_export_id)
        self._finish(lease, done)

    def _finish(self, lease: Lease, done: Closed) -> None:
        """Delete a lease unless a request without an answer can still take effect."""
        lease = self.registry.update(lease)
        if lease.late_until > self.clock():
            self._wait(lease, done)
        else:
            self.registry.remove(lease)

    def _resume(self, lease: Lease, unanswered: float | None, done: Closed) -> Lease:
        """Resume, without the ``resume_fields`` if the service refuses them: a paused export is worse."""
        try:
            return self.send(lease, "late_resume_until", unanswered=unanswered)
        except WorkspaceStatusError as error:
            are_fields_refused = error.permanent and is_refused(error)
            if not lease.resume_fields or not are_fields_refused:
                raise
            log.exception("Batch export %s is resumed without resume_fields", lease.batch_export_id)
            done.fields_refused[lease.batch_export_id] = str(error)
        without_fields = self.registry.update(lease, resume_fields=None)
        try:
            return self.send(without_fields, "late_resume_until", unanswered=unanswered)
        except WorkspaceStatusError:  # it is not the fields that the service refuses
            del done.fields_refused[lease.batch_export_id]
            self.registry.update(without_fields, resume_fields=lease.resume_fields)
            raise

    def _wait(self, lease: Lease, done: Closed) -> None:
        """Keep a lease until no request without an answer can take effect any more."""
        log.warning(
            "Batch export %s: a request without an answer yet may still take effect. Checking again at %s.",
            lease.batch_export_id,
            iso(lease.late_until, "seconds"),
        )
        done.call_again_after(lease.late_until)


def _without_duplicates(export_ids: list[str]) -> list[str]:
    return list(dict.fromkeys(export_ids))


def _if_ahead(until: float | None, now: float) -> float | None:
    """Return a time if it is still ahead."""
    return until if until is not None and until > now else None


def _leave_to_holders(lease: Lease, holders: list[Lease], done: Closed) -> None:
    windows = [str(holder.window) for holder in holders]
    done.held[lease.batch_export_id] = windows
    log.info("Batch export %s stays paused, held by %s.", lease.batch_export_id, ", ".join(windows))
    if lease.resume_fields and any(holder.resume_fields != lease.resume_fields for holder in holders):
        log.warning("It will be resumed with the resume_fields of that window, not with those of this one.")


def still_paused_error(
    failed: Mapping[str, object], resumed: Collection[str], details: str = ""
) -> WorkspaceRequestError:
    """
    Return the error that names the exports still paused, and those that run and whose lease is left.

    It is never permanent: every retry may succeed, for example after somebody has corrected the API key.

    :param failed: the error of each export
    :param resumed: exports that were resumed, also if their lease could not be changed afterwards
    :param details: text to append
    """
    unnoted = {export_id: error for export_id, error in failed.items() if export_id in resumed}
    failed = {export_id: error for export_id, error in failed.items() if export_id not in resumed}
    if unnoted:
        export_ids = ", ".join(unnoted)
        details = (
            f"Resumed, but still noted as paused: {count_exports(unnoted)}, {export_ids}. "
            f"{first_reason(unnoted)} {details}"
        )
    if not failed:
        return WorkspaceRequestError(details.strip(), operation="UnpauseBatchExport", problem="note-not-kept")
    msg = (
        f"STILL PAUSED: {count_exports(failed)}. {first_reason(failed)} Correct the cause, then clear this task or run "
        f"'{COMMAND} sweep'. {ids_and_other_reasons(failed)} Without state_of this goes by the failed requests, "
        f"because the interface cannot tell whether an export is paused. {details}"
    )
    return WorkspaceRequestError(msg.strip(), operation="UnpauseBatchExport", problem="still-paused")


def count_exports(export_ids: Collection[str]) -> str:
    """Return how many batch exports there are, for people."""
    return "1 batch export" if len(export_ids) == 1 else f"{len(export_ids)} batch exports"


def first_reason(reasons: Mapping[str, object]) -> str:
    """Return the reason of the first export as a sentence: a message begins with it."""
    reason = str(next(iter(reasons.values())))
    return reason if reason.endswith(".") else f"{reason}."


def ids_and_other_reasons(reasons: Mapping[str, object]) -> str:
    """Return the ids of all exports, and the reasons of those after the first one: the end of a message."""
    export_ids = ", ".join(reasons)
    lines = [f"{export_id}: {reason}" for export_id, reason in reasons.items()]
    return " ".join([f"Batch exports: {export_ids}.", *lines[1:]])
