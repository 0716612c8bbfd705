"""What ends a task that only plans."""

from __future__ import annotations

from typing import Any


class WorkspaceWritePlannedError(Exception):
    """
    Ends a task that only plans where it would have written. It is no failure.

    :param operation: class name of the operation that was not sent
    :param request: its method and path
    :param fields: its body; ``None`` if it has none
    """

    def __init__(self, operation: str, request: str, fields: dict[str, Any] | None) -> None:
        super().__init__(f"{operation} ({request}) was planned and not sent.")
        self.operation = operation
        self.request = request
        self.fields = fields
        self.why = "the task says so"
