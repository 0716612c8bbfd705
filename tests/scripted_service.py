"""A service that responds to each request as a test says."""

from __future__ import annotations

from tests.raw_server import RawServer, Scene, answer


class Recorder(RawServer):
    """
    A service that responds to each request alike.

    :ivar answer: status, headers and body
    """

    def __init__(self) -> None:
        super().__init__(Scene(lambda _: self._response()))
        self.answer: tuple[int, dict[str, str], bytes] = (200, {}, b"{}")

    def _response(self) -> bytes:
        status, headers, body = self.answer
        scene = answer(status, body, packed=False, **headers)
        assert isinstance(scene.answer, bytes)
        return scene.answer

    @property
    def received(self) -> list[bytes]:
        """The text of every request."""
        return [repr(request).encode() for request in self.requests]
