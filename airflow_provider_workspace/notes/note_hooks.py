"""The hooks of notes: one for each connection, and only while it leads where it led."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from airflow_provider_workspace.errors import WorkspaceConfigError
from airflow_provider_workspace.version_compat import AirflowNotFoundException

if TYPE_CHECKING:
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.notes.note import EndingNote


class NoteHooks(ExitStack):
    """A context manager for the hooks of notes, one for each connection."""

    def __init__(self) -> None:
        super().__init__()
        self._hooks: dict[str, WorkspaceHook] = {}

    def open_hook(self, note: EndingNote, if_gone: str, problem: str | None = None) -> WorkspaceHook:
        """
        Return the hook for the connection of a note, wherever it leads now.

        :param if_gone: the message if the connection does not exist
        :param problem: that of the error
        :raises WorkspaceConfigError: if the connection does not exist
        """
        from airflow_provider_workspace.hooks.workspace import WorkspaceHook

        conn_id = note.workspace_conn_id
        if conn_id in self._hooks:
            return self._hooks[conn_id]
        hook = WorkspaceHook(conn_id)
        try:
            hook.client  # noqa: B018 - reads the connection
        except AirflowNotFoundException as error:
            raise WorkspaceConfigError(if_gone, problem=problem) from error
        self._hooks[conn_id] = self.enter_context(hook)
        return hook

    def hook_of(self, note: EndingNote, otherwise: str) -> WorkspaceHook:
        """
        Return the hook of a note, which leads where it led when it was noted.

        :param otherwise: what a person may do instead of correcting the connection, for messages
        :raises WorkspaceConfigError: if its connection does not exist, or leads to another service
        """
        conn_id = note.workspace_conn_id
        hook = self.open_hook(note, f"Connection '{conn_id}' does not exist any more. Add it again, {otherwise}")
        base_url = hook.client.settings.base_url
        if base_url != note.service:
            why = f"Connection '{conn_id}' leads to {base_url}, and not to {note.service}"
            raise WorkspaceConfigError(f"{why}. Set its host back, {otherwise}")
        return hook
