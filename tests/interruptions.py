"""Code that runs before or after a request of a worker, such as a kill."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.task_instance import Killed

if TYPE_CHECKING:
    import pytest


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
        request, response = http.client.HTTPConnection.putrequest, http.client.HTTPConnection.getresponse
        interruptions = self

        def putrequest(connection: Any, method: str, url: str, *arguments: Any, **options: Any) -> Any:
            connection.interrupted = f"{method} {url}"
            if "/_sandbox/" not in url:
                interruptions.sent.append(connection.interrupted)
            interruptions._run("before", connection.interrupted)
            return request(connection, method, url, *arguments, **options)

        def getresponse(connection: Any, *arguments: Any, **options: Any) -> Any:
            answer = response(connection, *arguments, **options)
            interruptions._run("after", connection.interrupted)
            return answer

        monkeypatch.setattr(http.client.HTTPConnection, "putrequest", putrequest)
        monkeypatch.setattr(http.client.HTTPConnection, "getresponse", getresponse)

    def before(self, request: str, run: Callable[[], Any] = kill) -> None:
        """Run code before the next request whose method and path contain a text; the default is a kill."""
        self._planned.append(("before", request, run))

    def after(self, request: str, run: Callable[[], Any] = kill) -> None:
        """Run code after the next such request has been answered, before its sender sees that."""
        self._planned.append(("after", request, run))

    def _run(self, moment: str, sent: str) -> None:
        for planned in list(self._planned):
            if planned[0] == moment and planned[1] in sent and "/_sandbox/" not in sent:
                self._planned.remove(planned)
                planned[2]()
                return
