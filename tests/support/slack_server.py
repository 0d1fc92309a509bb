"""A loopback server that speaks the part of Slack's Web API which Vel uses.

with slack_server() as slack:
    settings.VEL = {…, "SLACK_URL": slack.url}
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

TOKEN = "xoxb-111111111111-222222222222-AbCdEfGhIjKlMnOpQrStUvWx"
SCOPES = "channels:read,groups:read,chat:write"


class SlackServer:
    """The state of the server, the requests that it received, and its faults."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/api/"
        self.tokens = {TOKEN}
        self.scopes = SCOPES
        self.channels = [
            {"id": f"C{number:09}", "name": f"room-{number}", "is_private": number % 2 == 1}
            for number in range(3)
        ]
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.sent: list[dict[str, str]] = []
        self.errors: dict[str, str] = {}
        """The error code of each method that refuses requests."""
        self.statuses: dict[str, int] = {}
        self.cut_after_work: set[str] = set()
        """Methods that do their work and then close the connection without a response."""
        self.before: Callable[[], None] = lambda: None

    def answer(self, method: str, token: str, given: dict[str, str]) -> dict[str, Any]:
        self.asked.append((method, given))
        self.before()
        if token not in self.tokens:
            return {"ok": False, "error": "invalid_auth"}
        if method in self.errors:
            return {"ok": False, "error": self.errors[method], "needed": "chat:write"}
        if method == "auth.test":
            return {"ok": True, "team": "ACME", "user": "vel-bot"}
        if method == "conversations.list":
            return self._page(int(given["limit"]), int(given.get("cursor") or 0))
        if method == "conversations.info":
            for channel in self.channels:
                if channel["id"] == given["channel"]:
                    return {"ok": True, "channel": channel}
            return {"ok": False, "error": "channel_not_found"}
        if method == "chat.postMessage":
            if given["channel"] not in {channel["id"] for channel in self.channels}:
                return {"ok": False, "error": "channel_not_found"}
            self.sent.append(given)
            return {
                "ok": True,
                "ts": f"1700000000.{len(self.sent):06}",
                "channel": given["channel"],
            }
        return {"ok": False, "error": "unknown_method"}

    def _page(self, limit: int, start: int) -> dict[str, Any]:
        end = start + min(limit, 2)  # Slack may return fewer than requested
        cursor = str(end) if end < len(self.channels) else ""
        return {
            "ok": True,
            "channels": self.channels[start:end],
            "response_metadata": {"next_cursor": cursor},
        }


@contextmanager
def slack_server() -> Iterator[SlackServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            if "json" in self.headers.get("Content-Type", ""):
                given = {key: str(value) for key, value in json.loads(body or "{}").items()}
            else:
                given = {key: values[0] for key, values in parse_qs(body).items()}
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            method = self.path.rsplit("/", 1)[-1]
            said = json.dumps(slack.answer(method, token, given)).encode()
            if method in slack.cut_after_work:
                self.close_connection = True
                return
            self.send_response(slack.statuses.get(method, 200))
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(said)))
            self.send_header("x-oauth-scopes", slack.scopes)
            self.end_headers()
            self.wfile.write(said)

        do_GET = do_POST

        def log_message(self, *arguments: Any) -> None:
            """Log no requests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    slack = SlackServer(server.server_port)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield slack
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
