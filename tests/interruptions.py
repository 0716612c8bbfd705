"""Code that runs before or after a request of a worker, such as a kill."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from requests.adapters import HTTPAdapter

from tests.task_instance import Killed

if TYPE_CHECKING:
    import pytest
    from requests import PreparedRequest, Response


def kill() -> None:
    """Simulate kill -9."""
    raise Killed


class Interruptions:
    """
    Runs code at requests of workers; each plan is for one request.

    :ivar sent: method and path of each request
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[str] = []
        self._planned: list[tuple[str, str, Callable[[], Any]]] = []
        send = HTTPAdapter.send
        interruptions = self

        def interrupted_send(adapter: HTTPAdapter, request: PreparedRequest, *args: Any, **kwargs: Any) -> Response:
            sent = f"{request.method} {request.path_url}"
            interruptions.sent.append(sent)
            interruptions._run("before", sent)
            response = send(adapter, request, *args, **kwargs)
            interruptions._run("after", sent)
            return response

        monkeypatch.setattr(HTTPAdapter, "send", interrupted_send)

    def before(self, request: str, run: Callable[[], Any] = kill) -> None:
        """Run code before the next request whose method and path contain a text; the default is a kill."""
        self._planned.append(("before", request, run))

    def after(self, request: str, run: Callable[[], Any] = kill) -> None:
        """Run code after the next such request has been answered, before its sender sees that."""
        self._planned.append(("after", request, run))

    def _run(self, moment: str, sent: str) -> None:
        for planned in self._planned:
            when, part, run = planned
            if when == moment and part in sent:
                self._planned.remove(planned)
                run()
                return
