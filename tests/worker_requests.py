"""What happens between two requests of a worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from requests.adapters import HTTPAdapter

if TYPE_CHECKING:
    import pytest
    from requests import PreparedRequest


def before_each(patch: pytest.MonkeyPatch, act: Callable[[PreparedRequest], object]) -> None:
    """Call a function before each request of a worker leaves its process; it may raise."""
    send = HTTPAdapter.send

    def act_and_send(self: HTTPAdapter, request: PreparedRequest, *args: Any, **options: Any) -> Any:
        act(request)
        return send(self, request, *args, **options)

    patch.setattr(HTTPAdapter, "send", act_and_send)


def is_bulk(request: PreparedRequest) -> bool:
    """Return whether a request invites people."""
    return request.method == "POST" and str(request.url).endswith("/bulk/")
