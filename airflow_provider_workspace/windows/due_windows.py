"""Windows that Airflow cannot close, as the sweep ends them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_workspace.errors import WorkspaceError
from airflow_provider_workspace.notes.due import Ended
from airflow_provider_workspace.notes.leases import SweepNote, window_of
from airflow_provider_workspace.windows.requests import LeaseServices
from airflow_provider_workspace.windows.resuming import Closer, describe_sweep, raise_still_paused, sweep
from airflow_provider_workspace.windows.state import WORK_ENDED, find_states

if TYPE_CHECKING:
    from airflow_provider_workspace.notes.leases import LeaseRegistry


@dataclass(frozen=True)
class AbandonedWindows:
    """
    Windows that are overdue or abandoned.

    :param by: who sweeps, as the leases note it
    :param at_once: whether to close also a window whose work has just ended
    :param is_noted: whether to write the note of the sweep, which says that one runs here
    """

    registry: LeaseRegistry
    by: str
    at_once: bool = False
    is_noted: bool = True
    kind: str = "windows"

    def end_due(self, *, dry_run: bool) -> Ended:
        """Close them, which resumes their exports."""
        if dry_run:
            return self._plan()
        with LeaseServices() as services:
            closer = Closer(self.registry, services, self.by)
            windows, states, stuck = sweep(closer, at_once=self.at_once)
        if self.is_noted:
            self.registry.note_sweep(SweepNote(at=time.time(), windows=states))
        report = {"windows": windows, "unreadable": self.registry.unreadable}
        text = describe_sweep(windows, self.registry.unreadable)
        failed: dict[str, object] = {}
        for row in windows:
            failed |= row["failed"]
        error = _still_paused(failed, text) if failed else None
        had_to_resume = any(row["resumed"] for row in windows)
        alarm = text if error is None and (had_to_resume or stuck) else ""
        return Ended(self.kind, report, text.splitlines(), error, alarm, is_left=bool(failed or stuck))

    def _plan(self) -> Ended:
        """Report what would be closed."""
        rows: list[dict[str, Any]] = []
        lines: list[str] = []
        at_work: set[str] = set()
        for state, leases in find_states(self.registry, time.time):
            window = leases[0].window
            if not state.left and not (self.at_once and state.why == WORK_ENDED):
                at_work.add(window.id)
                continue
            export_ids = [lease.batch_export_id for lease in leases]
            place = {"window": str(window), **asdict(window)}
            rows.append({**place, "state": state.name, "why": state.why, "batch_export_ids": export_ids})
            lines.append(f"Would close window {window} ({state}), which holds {', '.join(export_ids)}.")
        unreadable = self.registry.unreadable
        lines += [self.registry.describe_unreadable(key, why) for key, why in unreadable.items()]
        is_left = any(window_of(key) not in at_work for key in unreadable)
        return Ended(self.kind, {"windows": rows, "unreadable": unreadable}, lines, is_left=is_left)


def _still_paused(failed: Mapping[str, object], text: str) -> WorkspaceError:
    try:
        raise_still_paused(failed, text)
    except WorkspaceError as error:
        return error
