"""A loopback HTTP server that speaks the Gemini API and checks requests as the real one does.

    with GoogleServer([Turn(tool_uses=[ToolUse("ls")]), Turn(text="Done.")]) as server:
        ...  # base_url=server.url
        assert not server.violations

Scripts are those of `messages_script`. Models of the third generation give IDs to calls and sign
their replies, as the real ones do. Earlier models do neither.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from tests.support.google_validation import Signatures, check_request, generation
from tests.support.messages_api import MAX_BODY, MessagesServer
from tests.support.messages_script import Fault, Request, Turn
from tests.support.messages_stream import Reply, reply_blocks
from tests.support.messages_validation import Refused, parse_body

STATUS = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}  # fmt: skip
EVENTS = {"overloaded_error": 503, "rate_limit_error": 429, "invalid_request_error": 400}
ENDINGS = {"refusal": "SAFETY", "max_tokens": "MAX_TOKENS", "end_turn": "STOP", "tool_use": "STOP"}
BYTES_PER_TOKEN = 4
CACHED_FROM = 256
"""The minimal size in tokens of a cached prefix. The real one requires 1,024 and more."""
_PATH = re.compile(r"/v1beta/models/([^:/?]+):streamGenerateContent\?alt=sse")
_MODEL = re.compile(r'"role"\s*:\s*"model"')


class GoogleRequest(Request):
    """A request. `json` includes the values from the URL: the model, and that it streams."""

    path = ""

    @cached_property
    def json(self) -> dict[str, Any]:
        found = _PATH.fullmatch(self.path)
        assert found is not None
        return {"model": found[1], "stream": True, **json.loads(self.body)}

    @property
    def model(self) -> str:
        return str(self.json["model"])

    @property
    def replies(self) -> int:
        return len(_MODEL.findall(self.body.decode()))


class GoogleServer(MessagesServer):
    """A server like `MessagesServer`. `models` answers `GET /v1beta/models/{id}`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.signatures = Signatures()
        self.keys_seen: set[str] = set()
        self._cached: set[bytes] = set()
        self._parts: dict[str, list[dict[str, Any]]] = {}

    def __enter__(self) -> GoogleServer:
        super().__enter__()
        return self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return False
        request_line, *lines = head.decode("latin-1").rstrip().split("\r\n")
        method, path, _ = request_line.split(" ")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.keys_seen.add(headers.get("x-goog-api-key", ""))
        if method == "GET" and path.startswith("/v1beta/models/"):
            self._send_model(writer, path.removeprefix("/v1beta/models/"))
        elif method != "POST" or not self._serves(path):
            self._send_error(writer, Fault("status", 404, message=f"no {path} here"))
        else:
            request = self._request(self._count, path, headers, body)
            self._count += 1
            return await self._answer(request, reader, writer)
        return True

    def _serves(self, path: str) -> bool:
        return _PATH.fullmatch(path) is not None

    def _request(self, number: int, path: str, headers: dict[str, str], body: bytes) -> Request:
        request = GoogleRequest(number, headers, body)
        request.path = path
        return request

    def _refusal(self, request: Request) -> Fault | None:
        assert isinstance(request, GoogleRequest)
        key = request.headers.get("x-goog-api-key", "")
        if not key:
            return Fault("status", 403, message="Method doesn't allow unregistered callers")
        if self._api_key is not None and key != self._api_key:
            return Fault("status", 400, message="API key not valid.", code="API_KEY_INVALID")
        if len(request.body) > MAX_BODY:
            return Fault("status", 413, message="Request exceeds the maximum size")
        try:
            if request.headers.get("content-type") != "application/json":
                raise Refused("content-type: must be application/json")
            parsed = parse_body(request.body)
            check_request(parsed, request.model)
            self.signatures.check(parsed["contents"], request.model)
            tokens = len(request.body) // BYTES_PER_TOKEN
            if self._context_window and tokens > self._context_window:
                raise Refused(
                    f"The input token count ({tokens}) exceeds the maximum number of tokens "
                    f"allowed ({self._context_window})."
                )
        except Refused as error:
            return Fault("status", 400, message=str(error))
        return None

    def _reply(self, request: Request, turn: Turn) -> Reply:
        assert isinstance(request, GoogleRequest)
        usage = {
            **self._cache_usage(request.json),
            "output_tokens": max(1, len(turn.text) // BYTES_PER_TOKEN),
            "thoughts": len(turn.thinking or "") // BYTES_PER_TOKEN,
            **turn.usage,
        }
        blocks, raw_inputs = reply_blocks(turn, request.number)
        stop_reason = turn.stop_reason or ("tool_use" if turn.tool_uses else "end_turn")
        reply = Reply(f"r{request.number}", request.model, blocks, raw_inputs, stop_reason, usage)
        self._parts[reply.id] = self._said(turn, request)
        self.replies.append(reply)
        return reply

    def _said(self, turn: Turn, request: GoogleRequest) -> list[dict[str, Any]]:
        """Return the parts of a reply. Inputs of calls that are not valid JSON stay text."""
        signs = generation(request.model) >= 3
        parts: list[dict[str, Any]] = []
        for piece in _cut(turn.thinking or "", turn.pieces):
            parts.append({"text": piece, "thought": True})
        parts += [{"text": piece} for piece in _cut(turn.text, turn.pieces)]
        for number, use in enumerate(turn.tool_uses):
            call: dict[str, Any] = {"name": use.name, "args": use.input}
            if use.id or signs:
                call["id"] = use.id or f"call{request.number}x{number}"
            parts.append({"functionCall": call})
        if signs and turn.tool_uses:
            self.signatures.sign(parts[-len(turn.tool_uses)])
        elif signs and turn.text:
            parts.append({"text": ""})
            self.signatures.sign(parts[-1])
        return parts

    def _cache_usage(self, parsed: dict[str, Any]) -> dict[str, int]:
        """Count the new part of the prompt (`input_tokens`) and the part sent before."""
        digest, end, read = b"", 0, 0
        parts = [part for content in parsed["contents"] for part in content["parts"]]
        for unit in [parsed.get("tools"), parsed.get("systemInstruction"), *parts]:
            data = json.dumps(unit).encode()
            digest = hashlib.blake2b(digest + data).digest()
            end += len(data)
            if digest in self._cached:
                read = end
            self._cached.add(digest)
        read //= BYTES_PER_TOKEN
        read = read if read >= CACHED_FROM else 0
        return {"input_tokens": end // BYTES_PER_TOKEN - read, "cache_read_tokens": read}

    def _events(self, reply: Reply, turn: Turn) -> Iterator[bytes]:
        told = reply.usage
        usage = {
            "promptTokenCount": told["input_tokens"] + told["cache_read_tokens"],
            "cachedContentTokenCount": told["cache_read_tokens"],
            "candidatesTokenCount": told["output_tokens"],
            "thoughtsTokenCount": told["thoughts"],
        }
        same = {"modelVersion": reply.model, "responseId": reply.id}
        if turn.stop_reason == "BLOCKED":
            yield _sse({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, **same})
            return
        parts = self._parts[reply.id]
        some = {"promptTokenCount": usage["promptTokenCount"]}
        ending = ENDINGS.get(reply.stop_reason, reply.stop_reason)
        if any(isinstance(part.get("functionCall", {}).get("args"), str) for part in parts):
            parts, ending = [], "MALFORMED_FUNCTION_CALL"
        for part in parts:
            content = {"parts": [part], "role": "model"}
            candidate = {"content": content, "index": 0}
            yield _sse({"candidates": [candidate], "usageMetadata": some, **same})
        last = {"finishReason": ending, "index": 0}
        yield _sse({"candidates": [last], "usageMetadata": usage, **same})

    def _is_delta(self, event: bytes) -> bool:
        return b'"parts"' in event

    def _is_end(self, event: bytes) -> bool:
        return b'"finishReason"' in event

    def _broken(self, fault: Fault) -> bytes:
        if fault.kind == "malformed_stream":
            return b'data: {"candidates": [{"content": {"par\r\n\r\n'
        if fault.kind == "error_event":
            status = fault.status if fault.code else EVENTS.get(fault.error_type, 500)
            return _sse({"error": _error(status, fault)})
        return b""

    def _send_model(self, writer: asyncio.StreamWriter, model: str) -> None:
        self.models_asked.append(model)
        if model in self._models:
            self._send_json(writer, 200, {"name": f"models/{model}"} | self._models[model])
        else:
            self._send_error(writer, Fault("status", 404, message=f"models/{model} is not found"))

    def _send_error(self, writer: asyncio.StreamWriter, fault: Fault) -> None:
        body = {"error": _error(fault.status, fault)}
        self._send_json(writer, fault.status, body, fault.headers, fault.body)


def _error(status: int, fault: Fault) -> dict[str, Any]:
    told = {"code": status, "message": fault.message, "status": STATUS.get(status, "UNKNOWN")}
    if fault.code and fault.code.startswith("API_KEY"):
        kind = "type.googleapis.com/google.rpc.ErrorInfo"
        return {**told, "details": [{"@type": kind, "reason": fault.code}]}
    return {**told, "status": fault.code} if fault.code else told


def _cut(text: str, count: int) -> list[str]:
    size = max(1, -(-len(text) // max(1, count)))
    return [text[at : at + size] for at in range(0, len(text), size)]


def _sse(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\r\n\r\n"
