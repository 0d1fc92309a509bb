"""A loopback HTTP server that speaks the Messages API and checks requests as the real one does.

    with MessagesServer([Turn(tool_uses=[ToolUse("ls")]), Turn(text="Done.")]) as server:
        ...  # base_url=server.url
        assert not server.violations

`messages_process` runs it in a separate process, for benchmarks.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

from tests.support.hang import HANG
from tests.support.messages_memory import Memory, check_length
from tests.support.messages_script import (
    ERROR_TYPES,
    Fault,
    Request,
    Script,
    ScriptExhausted,
    Turn,
    in_order,
)
from tests.support.messages_stream import Reply, events, message, reply_blocks, sse
from tests.support.messages_validation import Refused, check_request, parse_body

MAX_BODY = 32 * 1024 * 1024


class ClientGone(Exception):
    """The client closed its connection before the answer was complete."""


class MessagesServer:
    """A context manager with one server on a free loopback port, in a separate thread.

    `script` is a function of the request, or turns to be played in the order of requests. `api_key`
    is the only accepted key (None: any key). `context_window` in tokens refuses longer prompts, and
    prompts that leave no room for `max_tokens`. `models` answers `GET /v1/models/{id}`, `listed`
    `GET /v1/models`. `light` neither checks nor records requests: for measurements.
    """

    def __init__(
        self,
        script: Script | Sequence[Turn],
        *,
        api_key: str | None = None,
        context_window: int | None = None,
        models: dict[str, dict[str, Any]] | None = None,
        listed: dict[str, Any] | None = None,
        light: bool = False,
        port: int = 0,
    ) -> None:
        self.requests: list[Request] = []
        self.replies: list[Reply] = []
        self.violations: list[str] = []
        self.models_asked: list[str] = []
        self.gone = 0
        """The number of clients that left before their answer was complete."""
        self.accepted = 0
        """The number of connections that were made."""
        self.closed = 0
        """The number of connections that have ended."""
        self._script = script if callable(script) else in_order(script)
        self._api_key = api_key
        self._context_window = context_window
        self._models = models or {}
        self._listed = listed
        self._light = light
        self._port = port
        self._count = 0
        self._memory = Memory()
        self._changed = threading.Condition()
        self._started = threading.Event()
        self._connections: set[asyncio.Task[None]] = set()

    def __enter__(self) -> MessagesServer:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def wait_for(
        self, *, requests: int = 0, gone: int = 0, closed: int = 0, timeout: float = HANG
    ) -> bool:
        """Wait for at least these numbers of requests, clients that left and ended connections.

        Returns False if they are not reached within `timeout` seconds.
        """
        with self._changed:
            return self._changed.wait_for(
                lambda: (
                    len(self.requests) >= requests and self.gone >= gone and self.closed >= closed
                ),
                timeout,
            )

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", self._port)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._started.set()
        await self._stop.wait()
        server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        self.accepted += 1
        try:
            while await self._serve(reader, writer):
                pass
        except (ClientGone, ConnectionError, asyncio.IncompleteReadError):
            with self._changed:
                self.gone += 1
        except asyncio.CancelledError:  # the server stops; asyncio.streams would log it
            pass
        finally:
            self._connections.discard(task)
            writer.close()
            with self._changed:
                self.closed += 1
                self._changed.notify_all()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request. Return False if the connection must be closed."""
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
        if method == "GET" and path.startswith("/v1/models/"):
            self._send_model(writer, path.removeprefix("/v1/models/"))
        elif (method, path) == ("GET", "/v1/models") and self._listed is not None:
            self.models_asked.append("")
            self._send_json(writer, 200, self._listed)
        elif method != "POST" or not self._serves(path):
            self._send_error(writer, Fault("status", 404, "not_found_error", f"no {path} here"))
        else:
            request = self._request(self._count, path, headers, body)
            self._count += 1
            return await self._answer(request, reader, writer)
        return True

    async def _answer(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        if not self._light:
            with self._changed:
                self.requests.append(request)
                self._changed.notify_all()
            refusal = self._refusal(request)
            if refusal is not None:
                self.violations.append(refusal.message)
                self._send_error(writer, refusal)
                return True
        try:
            turn = self._script(request)
        except ScriptExhausted as error:
            self.violations.append(str(error))
            self._send_error(writer, Fault("status", 400, "invalid_request_error", str(error)))
            return True
        fault = turn.fault
        if fault and fault.kind == "status":
            self._send_error(writer, fault)
        elif fault and fault.kind == "drop_before_headers":
            writer.transport.abort()
            return False
        elif fault and fault.kind == "hang_before_headers":
            await _hang(reader)
        elif not self._light and not request.json.get("stream"):
            self._send_json(writer, 200, message(self._reply(request, turn)))
        else:
            await self._stream(turn, self._reply(request, turn), reader, writer)
            return fault is None or fault.kind != "drop_mid_stream"
        return True

    def _refusal(self, request: Request) -> Fault | None:
        """Return the error of the real API if the request breaks a rule."""
        key = request.headers.get("x-api-key") or request.headers.get(
            "authorization", ""
        ).removeprefix("Bearer ")
        if not key:
            return Fault("status", 401, ERROR_TYPES[401], "x-api-key header is required")
        if self._api_key is not None and key != self._api_key:
            return Fault("status", 401, ERROR_TYPES[401], "invalid x-api-key")
        if len(request.body) > MAX_BODY:
            return Fault("status", 413, ERROR_TYPES[413], "Request exceeds the maximum size")
        try:
            if "anthropic-version" not in request.headers:
                raise Refused("anthropic-version: header is required")
            if request.headers.get("content-type") != "application/json":
                raise Refused("content-type: must be application/json")
            parsed = parse_body(request.body)
            check_request(parsed, request.headers["anthropic-version"])
            self._memory.check_thinking(parsed)
            if self._context_window:
                check_length(parsed, self._context_window)
        except Refused as error:
            return Fault("status", 400, ERROR_TYPES[400], str(error))
        return None

    def _reply(self, request: Request, turn: Turn) -> Reply:
        blocks, raw_inputs = reply_blocks(turn, request.number)
        usage = {"input_tokens": 1, "output_tokens": 1}
        model = "light"
        if not self._light:
            self._memory.sign(request.json, blocks)
            usage = self._memory.usage(request.json)
            usage["output_tokens"] = max(1, len(json.dumps(blocks)) // 4)
            model = request.json["model"]
        stop_reason = turn.stop_reason or ("tool_use" if turn.tool_uses else "end_turn")
        reply = Reply(
            f"msg_{request.number:05}", model, blocks, raw_inputs, stop_reason, usage | turn.usage
        )
        if not self._light:
            self.replies.append(reply)
        return reply

    async def _stream(
        self,
        turn: Turn,
        reply: Reply,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
            b"cache-control: no-cache\r\nrequest-id: req_%s\r\ntransfer-encoding: chunked\r\n\r\n"
            % reply.id.encode()
        )
        deltas = 0
        for event in self._events(reply, turn):
            is_delta = self._is_delta(event)
            if turn.fault and (deltas == 2 or self._is_end(event)):
                if turn.fault.kind == "drop_mid_stream":
                    return
                if turn.fault.kind == "hang_mid_stream":
                    await _hang(reader)
                writer.write(_chunk(self._broken(turn.fault)))
                break
            if turn.chunk_delay and is_delta:
                await _hang(reader, turn.chunk_delay)
            deltas += is_delta
            writer.write(_chunk(event))
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    # Differences of other protocols ------------------------------------------------------------

    def _serves(self, path: str) -> bool:
        return path == "/v1/messages"

    def _request(self, number: int, path: str, headers: dict[str, str], body: bytes) -> Request:
        return Request(number, headers, body)

    def _events(self, reply: Reply, turn: Turn) -> Iterator[bytes]:
        return events(reply, turn.pieces)

    def _is_delta(self, event: bytes) -> bool:
        """Return whether an event brings text to show. Faults follow the second one."""
        return event.startswith(b"event: content_block_delta")

    def _is_end(self, event: bytes) -> bool:
        """Return whether an event follows all text to show."""
        return event.startswith(b"event: message_delta")

    def _broken(self, fault: Fault) -> bytes:
        """Return the bytes that replace the rest of the stream."""
        if fault.kind == "malformed_stream":
            return b'event: content_block_delta\ndata: {"type": "content_block_delta", "ind\n\n'
        if fault.kind == "error_event":
            error = {"type": fault.error_type, "message": fault.message}
            return sse({"type": "error", "error": error})
        return b""

    def _send_model(self, writer: asyncio.StreamWriter, model: str) -> None:
        self.models_asked.append(model)
        if model in self._models:
            self._send_json(writer, 200, {"id": model, "type": "model"} | self._models[model])
        else:
            self._send_error(writer, Fault("status", 404, "not_found_error", f"model: {model}"))

    def _send_error(self, writer: asyncio.StreamWriter, fault: Fault) -> None:
        error = {"type": fault.error_type, "message": fault.message}
        body = {"type": "error", "error": error, "request_id": "req_failed"}
        self._send_json(writer, fault.status, body, fault.headers, fault.body)

    def _send_json(
        self,
        writer: asyncio.StreamWriter,
        status: int,
        value: dict[str, Any],
        headers: Sequence[tuple[str, str]] = (),
        raw: bytes | None = None,
    ) -> None:
        body = json.dumps(value).encode() if raw is None else raw
        content_type = "application/json" if raw is None else "text/html"
        lines = [
            f"HTTP/1.1 {status} X",
            f"content-type: {content_type}",
            f"content-length: {len(body)}",
        ]
        lines += [f"{name}: {value}" for name, value in headers]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data) if data else b""


async def _hang(reader: asyncio.StreamReader, seconds: float | None = None) -> None:
    """Wait, by default forever. Raises `ClientGone` as soon as the client closes."""
    try:
        await asyncio.wait_for(reader.read(1), seconds)
    except TimeoutError:
        return
    raise ClientGone
