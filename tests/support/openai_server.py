"""The common base of the loopback servers of OpenAI's two protocols; see `MessagesServer`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from tests.support.messages_api import MAX_BODY, MessagesServer
from tests.support.messages_script import Fault, Request, Turn
from tests.support.messages_stream import Reply, reply_blocks
from tests.support.messages_validation import Refused, parse_body

BYTES_PER_TOKEN = 4
CACHED_FROM = 256
"""The minimal size in tokens of a cached prefix. The real one requires 1,024."""


class OpenAIServer(MessagesServer):
    """The base of both servers. The cache compares the list that `_units` returns."""

    path: str

    def _serves(self, path: str) -> bool:
        return path == self.path

    def _refusal(self, request: Request) -> Fault | None:
        key = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not key:
            return self._error(401, "You didn't provide an API key.", None)
        if self._api_key is not None and key != self._api_key:
            words = f"Incorrect API key provided: {key}. You can find your API key at …"
            return self._error(401, words, "invalid_api_key")
        if len(request.body) > MAX_BODY:
            return self._error(413, "Request exceeds the maximum size", None)
        try:
            if request.headers.get("content-type") != "application/json":
                raise Refused("Unsupported content type.")
            parsed = parse_body(request.body)
            self._check(parsed)
        except Refused as error:
            return self._error(400, str(error), None)
        tokens = len(request.body) // BYTES_PER_TOKEN
        if self._context_window and tokens > self._context_window:
            words = (
                f"This model's maximum context length is {self._context_window} tokens. However, "
                f"your messages resulted in {tokens} tokens."
            )
            return self._error(400, words, "context_length_exceeded")
        return None

    @staticmethod
    def _error(status: int, message: str, code: str | None) -> Fault:
        return Fault("status", status, "invalid_request_error", message, code=code)

    def _check(self, parsed: dict[str, Any]) -> None:
        """Raise `Refused` for the first rule that the request breaks."""
        raise NotImplementedError

    def _units(self, parsed: dict[str, Any]) -> list[object]:
        """Return the parts of the prompt that a cache compares."""
        raise NotImplementedError

    def _reply(self, request: Request, turn: Turn) -> Reply:
        blocks, raw_inputs = reply_blocks(turn, request.number)
        stop_reason = turn.stop_reason or ("tool_use" if turn.tool_uses else "end_turn")
        usage = self._cache_usage(request.json)
        usage["output"] = max(1, len(json.dumps(blocks)) // BYTES_PER_TOKEN)
        usage["reasoning"] = len(turn.thinking or "") // BYTES_PER_TOKEN
        reply = Reply(
            f"resp_{request.number:05}",
            request.json["model"],
            blocks,
            raw_inputs,
            stop_reason,
            usage | turn.usage,
        )
        self.replies.append(reply)
        return reply

    def _cache_usage(self, parsed: dict[str, Any]) -> dict[str, int]:
        """Count the tokens of the prompt: all (`input`), and those sent before (`cache_read`)."""
        digest, end, read = b"", 0, 0
        known = self.__dict__.setdefault("_cached", set())
        for unit in self._units(parsed):
            data = json.dumps(unit).encode()
            digest = hashlib.blake2b(digest + data).digest()
            end += len(data)
            if digest in known:
                read = end
            known.add(digest)
        read //= BYTES_PER_TOKEN
        return {
            "input": end // BYTES_PER_TOKEN,
            "cache_read": read if read >= CACHED_FROM else 0,
            "cache_write": 0,
        }

    def _send_error(self, writer: Any, fault: Fault) -> None:
        body = {"error": self._told(fault)}
        self._send_json(writer, fault.status, body, fault.headers, fault.body)

    @staticmethod
    def _told(fault: Fault) -> dict[str, Any]:
        return {
            "message": fault.message,
            "type": fault.error_type or "invalid_request_error",
            "param": None,
            "code": fault.code,
        }


def cut(text: str, pieces: int) -> Iterator[str]:
    size = max(1, -(-len(text) // pieces))
    for start in range(0, len(text), size):
        yield text[start : start + size]


def sse_data(value: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()
