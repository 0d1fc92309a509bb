"""A server as a process in the sandbox: one message a line, through pipes.

A thread starts the process and watches it, and the process ends with this thread. It always runs in
a sandbox, and sees of the host only the mounts of the sandbox.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from agents.features.mcp_client.protocol.limits import (
    CLOSE_SECONDS,
    MAX_MESSAGE_BYTES,
    MAX_PENDING_BYTES,
)
from agents.features.mcp_client.protocol.transport import Flood, Inbound, Streams
from sandbox.base import Execution
from sandbox.cancellation import Cancellation
from sandbox.errors import SandboxError
from sandbox.result import ExecutionResult

LAST_WORDS = 500
"""Characters of the end of stderr, for the reason why a server ended."""


class Start(Protocol):
    def __call__(
        self, stdin: int, on_stdout: Callable[[bytes], None], cancel: Cancellation
    ) -> Execution:
        """Start the server in its sandbox. Blocks for a moment. Raises `SandboxError`."""


class StdioTransport:
    """The transport of a program. `start` is called in the thread that then watches the process."""

    def __init__(self, start: Start) -> None:
        self.inbound = Inbound()
        self.problem = ""
        self._start = start
        self._cancel = Cancellation()
        self._lock = threading.Lock()
        self._buffer = bytearray()
        self._pending = 0
        self._last_write: asyncio.Future[bool] | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Streams]:
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        reading, self._stdin = os.pipe()
        started: asyncio.Future[None] = self._loop.create_future()
        watcher = threading.Thread(
            target=self._watch, args=(reading, started), name="vel-mcp-process"
        )
        watcher.start()
        try:
            await started
            to_session, from_server = anyio.create_memory_object_stream[Any](16)
            to_server, from_session = anyio.create_memory_object_stream[Any](16)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read, to_session)
                tasks.start_soon(self._write, from_session)
                try:
                    yield from_server, to_server
                finally:
                    tasks.cancel_scope.cancel()
                    for stream in (to_session, from_server, to_server, from_session):
                        stream.close()
        finally:
            self._cancel.cancel()
            # The watcher ends soon, and this loop has no other work.
            await asyncio.shield(asyncio.to_thread(watcher.join, CLOSE_SECONDS * 4))
            if self._last_write is not None:  # the write has failed by now: its reader has ended
                await asyncio.wait([self._last_write])
            os.close(self._stdin)

    # In the thread of the process --------------------------------------------------------------

    def _watch(self, reading: int, started: asyncio.Future[None]) -> None:
        problem: Exception | None = None
        try:
            try:
                execution = self._start(reading, self._take, self._cancel)
            finally:
                os.close(reading)
            self._tell(lambda: _settle(started, None))
            result = execution.wait()
            self._end(_last_words(result))
        except (SandboxError, OSError) as error:
            problem = error
            self._end(f"it could not be run: {error}")
        finally:
            self._tell(lambda: _settle(started, problem))

    def _take(self, data: bytes) -> None:
        self._buffer += data
        *lines, rest = self._buffer.split(b"\n")
        self._buffer = bytearray(rest)
        for line in lines:
            with self._lock:
                self._pending += len(line)
            self._tell(lambda line=bytes(line): self._lines.put_nowait(line))  # type: ignore[misc]
        if len(self._buffer) > MAX_MESSAGE_BYTES or any(
            len(line) > MAX_MESSAGE_BYTES for line in lines
        ):
            self._cut_off(f"it sent a message of over {MAX_MESSAGE_BYTES:,} bytes")
        elif self._pending > MAX_PENDING_BYTES:
            self._cut_off("it sends faster than can be read")

    def _cut_off(self, problem: str) -> None:
        self.problem = self.problem or problem
        self._buffer.clear()
        self._cancel.cancel()

    def _end(self, problem: str) -> None:
        self.problem = self.problem or problem
        self._tell(lambda: self._lines.put_nowait(None))

    def _tell(self, function: Callable[[], object]) -> None:
        try:
            self._loop.call_soon_threadsafe(function)
        except RuntimeError:
            return  # the loop is closed, and has no waiters

    # On the loop ------------------------------------------------------------------------------

    async def _read(self, to_session: Any) -> None:
        async with to_session:
            while (line := await self._lines.get()) is not None:
                with self._lock:
                    self._pending -= len(line)
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    self.inbound.unreadable += 1
                    message = None
                try:
                    if message is None:
                        self.inbound.count()
                    elif self.inbound.wanted(message):
                        await to_session.send(SessionMessage(message))
                except Flood:
                    self._cut_off("it sends messages without end")
                    return

    async def _write(self, from_session: Any) -> None:
        async with from_session:
            async for sent in from_session:
                text = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                # In a thread, since a server that does not read must not block the loop.
                self._last_write = asyncio.ensure_future(
                    asyncio.to_thread(_write_all, self._stdin, f"{text}\n".encode())
                )
                if not await asyncio.shield(self._last_write):
                    return  # the reading side reports that the server has ended


def _write_all(descriptor: int, data: bytes) -> bool:
    """Return False if the server does not read any more."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except BrokenPipeError:
        return False
    return True


def _settle(started: asyncio.Future[None], problem: Exception | None) -> None:
    if started.done():
        return
    if problem is None:
        started.set_result(None)
    else:
        started.set_exception(problem)


def _last_words(result: ExecutionResult) -> str:
    how = f"it ended with exit code {result.exit_code}"
    end = result.stderr.strip()[-LAST_WORDS:]
    return f"{how}: {end}" if end else how
