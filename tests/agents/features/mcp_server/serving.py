"""A served site for MCP clients: the official client, and raw requests."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2

from agents.providers.transport import tls_context
from tests.support.hang import HANG
from tests.support.site import Site

# Every process of pytest imports this module, and `mcp` takes more than a second of CPU time.
if TYPE_CHECKING:
    from mcp.client.client import Client

LONG = "a-" * 40 + "long"
HIDDEN = "\U000e0041\u200b"
FORM = {
    "type": "object",
    "properties": {"total": {"$ref": "#/$defs/count"}},
    "required": ["total"],
    "$defs": {"count": {"type": "integer"}},
}
PLAN = {"name": "write_todos", "input": {"todos": [{"content": "Look", "status": "pending"}]}}
ERAS = ("auto", "legacy")
"""The protocol of 2026-07-28, and the older one that starts with `initialize`."""
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@dataclass(frozen=True)
class Served:
    site: Site

    @property
    def url(self) -> str:
        return f"{self.site.url}/mcp"

    def token(self, user: str = "olga", *scopes: str) -> str:
        return str(self.site.do("make_token", user=user, scopes=scopes or ["mcp"]))

    @asynccontextmanager
    async def client(self, token: str, mode: str = "auto") -> AsyncIterator[Client]:
        from mcp.client.client import Client
        from mcp.client.streamable_http import streamable_http_client

        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, verify=tls_context(), timeout=HANG) as http,
            Client(streamable_http_client(self.url, http_client=http), mode=mode) as client,
        ):
            yield client

    def post(
        self, message: Any, token: str = "", *, path: str = "", **headers: str
    ) -> httpx2.Response:
        """Send a raw request; `message` is JSON, or bytes that are sent unchanged."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        sign = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx2.post(
            self.url + path,
            content=body,
            headers={**JSON, **sign, **headers},
            verify=tls_context(),
            timeout=HANG,
        )

    def call(self, token: str, name: str, *, id: Any = 1, **arguments: Any) -> dict[str, Any]:
        """Return the result of a tool, with a raw request."""
        answer = self.post(call(name, id=id, **arguments), token)
        found = messages_in(answer)[-1]
        assert "result" in found, found
        return dict(found["result"])


def call(name: str, *, id: Any = 1, **arguments: Any) -> dict[str, Any]:
    return message("tools/call", id=id, name=name, arguments=arguments)


def message(method: str, *, id: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def messages_in(answer: httpx2.Response) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    if answer.headers["content-type"].startswith("application/json"):
        return [answer.json()]
    return list(_events(answer.text))


def _events(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))
