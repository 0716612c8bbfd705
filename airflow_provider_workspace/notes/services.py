"""The hooks of notes: one for each connection, and only while it leads where it led."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from airflow_provider_workspace.errors import WorkspaceConfigError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.version_compat import AirflowNotFoundException

if TYPE_CHECKING:
    from airflow_provider_workspace.notes.note import EndingNote


class NoteServices(ExitStack):
    """A context manager for the hooks of notes, one for each connection."""

    def __init__(self) -> None:
        super().__init__()
        self._hooks: dict[str, WorkspaceHook] = {}

    def hook_of(self, note: EndingNote, otherwise: str) -> WorkspaceHook:
        """
        Return the hook of a note.

        :param otherwise: what a person may do instead of correcting the connection, for messages
        :raises WorkspaceConfigError: if its connection does not exist, or leads to another service
        """
        conn_id = note.workspace_conn_id
        if conn_id not in self._hooks:
            self._hooks[conn_id] = self.enter_context(WorkspaceHook(conn_id))
        hook = self._hooks[conn_id]
        try:
            base_url = hook.client.settings.base_url
        except AirflowNotFoundException as error:
            raise WorkspaceConfigError(f"Add connection '{conn_id}' again, {otherwise}. {error}") from None
        if base_url != note.service:
            cure = f"Set the host of connection '{conn_id}' back to {note.service}, {otherwise}"
            raise WorkspaceConfigError(f"{cure}. It now leads to {base_url}")
        return hook
