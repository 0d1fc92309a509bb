"""MCP servers over HTTP on the loopback: a real one, and a hand-written one that can be hostile."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def real_server() -> Iterator[str]:
    """Start a server of the package `mcp` with a tool `add`. Yield its URL."""
    import uvicorn
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("sums")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(server.streamable_http_app(), log_level="critical", lifespan="on")
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    finally:
        running.should_exit = True
        thread.join()
        listening.close()


@dataclass
class Asked:
    """The requests that the hand-written server received."""

    url: str = ""
    methods: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}


@contextmanager
def plain_http_server(mode: str = "", elsewhere: str = "") -> Iterator[Asked]:
    """Start a server that answers with JSON. `mode` is its misbehaviour when a tool is called."""
    asked = Asked()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None: ...

        def do_POST(self) -> None:
            said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            method = said.get("method", "")
            asked.methods.append(method)
            asked.headers.append({name.lower(): value for name, value in self.headers.items()})
            if "id" not in said:
                self.send_response(202)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if method == "initialize" and mode == "redirect":
                self.send_response(307)
                self.send_header("Location", elsewhere)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            result: dict[str, Any] | None = None
            if method == "initialize":
                result = {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "plain", "version": "1"},
                }
            elif method == "tools/list":
                result = {"tools": [{"name": "say", "description": "Says.", "inputSchema": SCHEMA}]}
            elif method == "tools/call":
                if mode and mode != "redirect":
                    return self._misbehave(said["id"])
                result = {"content": [{"type": "text", "text": "said"}]}
            answer: dict[str, Any] = {"jsonrpc": "2.0", "id": said["id"]}
            answer |= {"result": result} if result else {"error": {"code": -32601, "message": "?"}}
            self._send("application/json", json.dumps(answer).encode())

        def _send(self, kind: str, body: bytes, **headers: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(body)

        def _misbehave(self, number: Any) -> None:
            event = b'event: message\ndata: {"jsonrpc": "2.0", "method": "notifications/x"}\n\n'
            self.close_connection = True
            try:
                if mode == "zipped":
                    self._send("application/json", b"\x1f\x8b", Content_Encoding="gzip")
                    return
                self.send_response(200)
                kind = "application/json" if mode == "huge" else "text/event-stream"
                self.send_header("Content-Type", kind)
                self.send_header("Connection", "close")
                self.end_headers()
                while True:
                    self.wfile.write(b" " * 65536 if mode == "huge" else event)
                    if mode == "silent":
                        self.rfile.read(1)
                        return
            except OSError:
                return  # the client has closed the connection

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    asked.url = f"http://127.0.0.1:{server.server_address[1]}/mcp"
    try:
        yield asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
