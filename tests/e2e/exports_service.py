"""A service for batch exports that can be slow, refuse, or say that it did something else."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ExportsService:
    """
    Runs in a thread. Requests take effect even if the client has disconnected.

    :ivar paused: paused exports
    :ivar history: effects: time, ``pause`` or ``unpause``, export
    :ivar requests: requests, in the same form
    :ivar missing: exports that return 404
    """

    def __init__(self) -> None:
        self.paused: set[str] = set()
        self.history: list[tuple[float, str, str]] = []
        self.requests: list[tuple[float, str, str]] = []
        self.missing: set[str] = set()
        self._rules: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                *_, export, action, _slash = self.path.split("/")
                status, answer = service._carry_out(action, export)
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """Ignore disconnected clients."""

        self._server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def rule(
        self,
        action: str,
        export: str,
        *,
        times: int = 1,
        seconds: float = 0,
        status: int = 200,
        contradict: bool = False,
    ) -> None:
        """Set what happens to the next requests: delay, refusal or untrue response."""
        with self._lock:
            self._rules.append(
                {
                    "action": action,
                    "export": export,
                    "times": times,
                    "seconds": seconds,
                    "status": status,
                    "contradict": contradict,
                }
            )

    def count(self, action: str, export: str) -> int:
        """Return the number of requests."""
        return sum(1 for _, asked, asked_for in self.requests if (asked, asked_for) == (action, export))

    def _carry_out(self, action: str, export: str) -> tuple[int, Any]:
        with self._lock:
            self.requests.append((time.time(), action, export))
            rule = next(
                (
                    rule
                    for rule in self._rules
                    if (rule["action"], rule["export"]) == (action, export) and rule["times"]
                ),
                {},
            )
            if rule:
                rule["times"] -= 1
        time.sleep(rule.get("seconds", 0))
        if export in self.missing:
            return 404, {"type": "invalid_request", "code": "not_found", "detail": "Not found.", "attr": None}
        if rule.get("status", 200) != 200:
            detail = f"Invalid request to {action} a BatchExport could not be carried out"
            return rule["status"], {"type": "validation_error", "code": "invalid", "detail": detail, "attr": None}
        if rule.get("contradict"):
            return 200, {"paused": action != "pause"}
        with self._lock:
            (self.paused.add if action == "pause" else self.paused.discard)(export)
            self.history.append((time.time(), action, export))
        return 200, {"paused": action == "pause"}
