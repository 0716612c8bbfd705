"""From an Airflow connection to the settings of a client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal
from uuid import UUID

from airflow_provider_workspace.client.settings import Settings, read_settings
from airflow_provider_workspace.errors import WorkspaceConfigError, WorkspaceInputError

if TYPE_CHECKING:
    from airflow.sdk import Connection


def read_connection(connection: Connection, conn_id: str) -> Settings:
    """
    Check a connection.

    The extra is parsed here and not by Airflow, which takes broken JSON for an empty extra.

    :raises WorkspaceConfigError: naming the part that is wrong and what is expected there
    """
    return read_settings(
        host=connection.host,
        password=connection.password,
        extra=connection.extra,
        port=connection.port,
        source=f"connection '{conn_id}'",
    )


def pick(
    name: Literal["organization_id", "project_id"],
    given: str | int | None,
    default: str | int | None,
    settings: Settings,
) -> str:
    """
    Return the id to use: that of the call, else that of the hook, else that of the connection.

    :raises WorkspaceInputError: if what is given is no id
    :raises WorkspaceConfigError: if none names one
    """
    for value in (given, default, getattr(settings, name)):
        if isinstance(value, bool) or not isinstance(value, str | int | UUID | None):
            msg = f"{name} must be an id, not something of type {type(value).__name__}. Nothing was sent."
            raise WorkspaceInputError(msg)
        if value is not None:
            try:
                return str(value)
            except ValueError:  # more digits than Python writes out
                msg = f"{name} is a number too large for an id. Nothing was sent."
                raise WorkspaceInputError(msg) from None
    msg = f"No {name}: pass {name}=…, or set it in the extra of {settings.source}."
    raise WorkspaceConfigError(msg)
