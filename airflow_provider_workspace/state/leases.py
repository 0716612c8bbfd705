"""Which maintenance windows hold a batch export, and resuming what none holds any more."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk import Variable

from airflow_provider_workspace.errors import WorkspaceError, WorkspaceRequestError

if TYPE_CHECKING:
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook

log = logging.getLogger(__name__)

# How often a window looks whether its entry in the Variable stayed, after how many seconds each.
LOOKS_AT_ENTRY = 2
SECONDS_BETWEEN_LOOKS = 0.7
MAX_WRITES = 20
# States of the closing task in which the window is open.
BEFORE_CLOSING = (None, "scheduled", "queued")


class LeaseRegistry:
    """
    Which windows hold an export, in the Airflow Variable ``workspace_windows_<organization>_<export>``.

    Variables know no compare-and-set. So a window writes its entry, looks a moment later whether it stayed, and writes
    it again if another window that opened at the same time has overwritten it. Entries are only hints: whether a window
    is open, the state of its closing task says.
    """

    def __init__(self, organization_id: str, batch_export_id: str) -> None:
        self.key = f"workspace_windows_{organization_id}_{batch_export_id}"

    def read(self) -> dict[str, dict[str, Any]]:
        """Return the entries."""
        entries = Variable.get(self.key, default=None, deserialize_json=True)
        return entries if isinstance(entries, dict) else {}

    def write(self, entries: dict[str, dict[str, Any]]) -> None:
        """Replace the entries."""
        Variable.set(self.key, entries, serialize_json=True)

    def add(self, dag_id: str, run_id: str, close_task_id: str, ends_at: float) -> None:
        """
        Remember a window, and forget those that are closed.

        :param ends_at: when it is over at the latest, in seconds since 1970
        :raises WorkspaceError: if other windows overwrite the entry again and again
        """
        name = window_name(dag_id, run_id, close_task_id)
        me = {"dag_id": dag_id, "run_id": run_id, "close_task_id": close_task_id, "ends_at": ends_at}
        stayed = 0
        for _ in range(MAX_WRITES):
            entries = self.read()
            if name in entries:
                stayed += 1
                if stayed > LOOKS_AT_ENTRY:
                    return
            else:
                stayed = 0
                kept = {key: entry for key, entry in entries.items() if window_open(entry)}
                self.write({**kept, name: me})
            # Windows that open at the same moment must not go on in step.
            time.sleep(SECONDS_BETWEEN_LOOKS * (0.5 + random.random()))  # noqa: S311
        msg = f"The Variable '{self.key}' is overwritten all the time: too many windows at once. Nothing was paused."
        raise WorkspaceError(msg)

    def others_open(self, dag_id: str, run_id: str, close_task_id: str) -> list[str]:
        """Return the names of the other windows that are open."""
        me = window_name(dag_id, run_id, close_task_id)
        return [name for name, entry in self.read().items() if name != me and window_open(entry)]

    def remove(self, dag_id: str, run_id: str, close_task_id: str) -> None:
        """Forget a window. If another one overwrites that, it does not matter: the window is closed."""
        entries = self.read()
        if entries.pop(window_name(dag_id, run_id, close_task_id), None) is not None:
            self.write(entries)


def window_name(dag_id: str, run_id: str, close_task_id: str) -> str:
    """Return what people call a window."""
    return f"{dag_id} / {run_id} / {close_task_id}"


def window_open(entry: dict[str, Any]) -> bool:
    """Tell whether the window of an entry is open; one that nobody closed in time does not count for ever."""
    return time.time() < entry["ends_at"] and is_open(entry["dag_id"], entry["run_id"], entry["close_task_id"])


def is_open(dag_id: str, run_id: str, close_task_id: str) -> bool:
    """
    Tell whether a window is open: its run goes on and its closing task has not begun.

    Runs in a task or in the triggerer, and asks Airflow's execution API.
    """
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    states = RuntimeTaskInstance.get_task_states(dag_id=dag_id, run_ids=[run_id], task_ids=[close_task_id])
    of_run = states.get(run_id, {})
    if close_task_id not in of_run or of_run[close_task_id] not in BEFORE_CLOSING:
        return False
    return RuntimeTaskInstance.get_dagrun_state(dag_id=dag_id, run_id=run_id) in ("queued", "running")


def resume(
    hook: WorkspaceHook,
    *,
    organization_id: str,
    export_ids: Collection[str],
    leave_paused: Collection[str],
    window: tuple[str, str, str],
) -> dict[str, Any]:
    """
    Resume what no other open window holds; one export that cannot be resumed does not keep the others paused.

    :param leave_paused: batch exports that stay paused
    :param window: the window that is over: its Dag, run and closing task
    :raises WorkspaceRequestError: naming the exports that are still paused
    """
    resumed: list[str] = []
    left: list[str] = []
    held: dict[str, list[str]] = {}
    failed: dict[str, WorkspaceError] = {}
    keep = {export_id.strip().lower() for export_id in leave_paused}
    for export_id in export_ids:
        holders = LeaseRegistry(organization_id, export_id)
        others = holders.others_open(*window)
        if export_id in keep:
            left.append(export_id)
            log.info("Batch export %s stays paused, as asked for.", export_id)
        elif others:
            held[export_id] = others
            log.warning(
                "Batch export %s stays paused: still open: %s. If that window is gone, delete the Variable '%s'.",
                export_id,
                ", ".join(others),
                holders.key,
            )
        else:
            try:
                hook.unpause_batch_export(batch_export_id=export_id, organization_id=organization_id)
            except WorkspaceError as error:
                log.exception("Batch export %s could not be resumed", export_id)
                failed[export_id] = error
                continue
            resumed.append(export_id)
            log.info("Resumed batch export %s.", export_id)
        holders.remove(*window)
    if failed:
        still_paused(failed)
    return {"resumed": resumed, "held": held, "left_paused": left}


def still_paused(failed: dict[str, WorkspaceError]) -> NoReturn:
    """
    Say which exports are still paused.

    Never permanent: a paused export is worth every retry, for somebody may mend the key meanwhile.
    """
    named = "; ".join(f"{export_id}: {error}" for export_id, error in failed.items())
    msg = (
        f"STILL PAUSED: {', '.join(failed)}. Resume by hand, or mend the cause and clear this task. The interface "
        f"cannot tell whether an export is paused, so this goes by the failed requests. {named}"
    )
    raise WorkspaceRequestError(msg, operation="UnpauseBatchExport", outcome="unknown")


def marked_as_failed(ti: Any, outcome_task_id: str, work_task_ids: Collection[str]) -> bool:
    """Tell whether a person ended the run: then its work has failed and what came after was skipped."""
    states = ti.get_task_states(dag_id=ti.dag_id, run_ids=[ti.run_id], task_ids=[outcome_task_id, *work_task_ids]).get(
        ti.run_id, {}
    )
    return states.get(outcome_task_id) == "skipped" and "failed" in states.values()
