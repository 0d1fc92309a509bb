"""A loopback server with a list of models, which accepts one key."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class ModelsServer:
    """`answer` replaces the usual answer: (status, headers, body)."""

    key: str
    url: str = ""
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """The path and the headers of each request."""
    answer: tuple[int, dict[str, str], bytes] | None = None

    def reply(self, path: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        self.asked.append((path, headers))
        if self.answer is not None:
            return self.answer
        sent = {
            headers.get("x-api-key"),
            headers.get("x-goog-api-key"),
            headers.get("authorization", "").removeprefix("Bearer "),
        }
        if self.key in sent:
            return 200, {}, b'{"data": []}'
        error = {"error": {"message": f"wrong key {' '.join(filter(None, sent))}"}}
        return 401, {}, json.dumps(error).encode()


@contextmanager
def models_server(key: str) -> Iterator[ModelsServer]:
    found = ModelsServer(key)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sent = {name.lower(): value for name, value in self.headers.items()}
            status, headers, body = found.reply(self.path, sent)
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: Any) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()
