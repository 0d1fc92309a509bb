"""One connection to one server, in a separate thread and event loop.

A server that floods or stalls blocks this thread, not the engine's loop. Requests of the server to
its client, for example to call a model or to ask the user, are refused.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import mcp_types as types
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT
from pydantic import TypeAdapter

from agents.features.mcp_client.protocol.definitions import Listing, read_listing
from agents.features.mcp_client.protocol.errors import McpError
from agents.features.mcp_client.protocol.http import HttpTransport
from agents.features.mcp_client.protocol.limits import (
    CLOSE_SECONDS,
    MAX_PAGES,
    MAX_TOOLS,
    OPEN_SECONDS,
)
from agents.features.mcp_client.protocol.stdio import Start, StdioTransport
from agents.features.mcp_client.protocol.transport import HttpTarget, Transport
from sandbox.errors import SandboxError

T = TypeVar("T")
_ABOUT = types.Implementation(name="vel", version="1")
"""How Vel presents itself to servers."""


class Connection:
    """`open` it before other calls. All methods can be called from any thread.

    `server` is its slug. The methods return a `Future` of `concurrent.futures`, which raises
    `McpError`.
    """

    def __init__(self, server: str, transport: Transport) -> None:
        self.server = server
        self._transport = transport
        self._thread = threading.Thread(target=self._run, name=f"vel-mcp {server}", daemon=True)
        self._ready: Future[None] = Future()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._closed = False

    @property
    def is_alive(self) -> bool:
        return not self._closed and not self._transport.problem

    @property
    def list_changed(self) -> bool:
        """Whether the server has reported a change of its list since the last `listing`."""
        return self._transport.inbound.list_changed

    def open(self) -> Future[None]:
        """Connect. The future is done when the server has answered."""
        self._thread.start()
        return self._ready

    def listing(self) -> Future[Listing]:
        return self._submit(self._list)

    def call(self, tool: str, arguments: dict[str, Any], seconds: float) -> Future[dict[str, Any]]:
        """Call a tool.

        The result has the protocol's format: `content`, `structuredContent`, `isError`.
        """
        return self._submit(lambda: self._call(tool, arguments, seconds))

    def close(self) -> None:
        """End the server, or the session with it. It does not wait; `join` waits."""
        with self._lock:
            self._closed = True
            loop, stop = self._loop, self._stop
        if loop is not None and stop is not None:
            try:
                loop.call_soon_threadsafe(stop.set)
            except RuntimeError:
                return  # it has ended

    def join(self) -> None:
        """Wait until the server has ended. Blocks for some seconds at most."""
        if self._thread.ident is not None:
            self._thread.join(CLOSE_SECONDS * 5)

    # In the connection's thread ----------------------------------------------------------------

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:  # noqa: BLE001  # the waiters get it
            self._fail(error)
        finally:
            self._closed = True
            self._fail(McpError(self._closed_message(), "closed"))

    def _fail(self, error: BaseException) -> None:
        if not self._ready.done():
            self._ready.set_exception(self._as_mcp_error(error))

    async def _main(self) -> None:
        with self._lock:
            self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
            if self._closed:
                return
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(OPEN_SECONDS):
                    client = Client(
                        self._transport.open(), mode="auto", cache=None, client_info=_ABOUT
                    )
                    # After a failed handshake, the transport's own error is kept.
                    await stack.enter_async_context(client)
            except TimeoutError:
                raise McpError(
                    f"The MCP server {self.server} did not answer within {OPEN_SECONDS:g} s.",
                    "timeout",
                ) from None
            self._session = client.session
            self._ready.set_result(None)
            await self._stop.wait()
            await _within(stack.aclose(), CLOSE_SECONDS * 4)

    def _submit(self, job: Callable[[], Any]) -> Future[Any]:
        loop = self._loop
        if loop is None or self._closed:
            failed: Future[Any] = Future()
            failed.set_exception(McpError(self._closed_message(), "closed"))
            return failed
        coroutine = self._run_job(job)
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, loop)
        except RuntimeError:
            coroutine.close()
            failed = Future()
            failed.set_exception(McpError(self._closed_message(), "closed"))
            return failed

    async def _run_job(self, job: Callable[[], Any]) -> Any:
        self._transport.inbound.begin()
        try:
            return await job()
        except McpError:
            raise
        except Exception as error:  # noqa: BLE001  # any error is the server's failure
            raise self._as_mcp_error(error) from None

    async def _list(self) -> Listing:
        self._transport.inbound.list_changed = False
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        async with asyncio.timeout(OPEN_SECONDS):
            for _ in range(MAX_PAGES):
                params = types.PaginatedRequestParams(cursor=cursor) if cursor else None
                page = await self._session.list_tools(params=params)
                found += [tool.model_dump(by_alias=True, exclude_unset=True) for tool in page.tools]
                cursor = page.next_cursor
                if not cursor or len(found) > MAX_TOOLS:
                    break
            else:
                raise McpError("The server's list of tools does not end.", "too_many_tools")
        return read_listing(self.server, found)

    async def _call(self, tool: str, arguments: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Call a tool without the session's own `call_tool`.

        That method checks the answer against a schema of the server, with patterns that can take
        very long.
        """
        kinds: Any = types.CallToolResult | types.InputRequiredResult
        request = types.CallToolRequest(
            params=types.CallToolRequestParams(name=tool, arguments=arguments)
        )
        result = await self._session.send_request(
            request, TypeAdapter(kinds), request_read_timeout_seconds=seconds
        )
        if isinstance(result, types.InputRequiredResult):
            raise McpError(
                f"The MCP server {self.server} requests input from the user or a model, which is "
                "not supported.",
                "input_required",
            )
        found: dict[str, Any] = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        return found

    def _as_mcp_error(self, error: BaseException) -> McpError:
        """Return an error of the package as `McpError`."""
        if isinstance(error, McpError):
            return error
        if isinstance(error, BaseExceptionGroup):
            first = next(iter(error.exceptions))
            return self._as_mcp_error(first)
        if isinstance(error, SandboxError):
            return McpError(f"The MCP server {self.server} could not be run: {error}", "sandbox")
        if self._transport.problem:
            return McpError(self._closed_message(), "closed", unsure=True)
        if isinstance(error, TimeoutError):
            return McpError(f"The MCP server {self.server} did not answer.", "timeout", unsure=True)
        return _of_protocol(self.server, error)

    def _closed_message(self) -> str:
        reason = self._transport.problem or "the connection was closed"
        return f"The MCP server {self.server} is gone: {reason}."


def _of_protocol(server: str, error: BaseException) -> McpError:
    if not isinstance(error, MCPError):
        return McpError(
            f"The MCP server {server} sent an answer that is not valid MCP "
            f"({type(error).__name__}).",
            "protocol",
            unsure=True,
        )
    if error.code == REQUEST_TIMEOUT:
        return McpError(f"The MCP server {server} did not answer in time.", "timeout", unsure=True)
    if error.code == CONNECTION_CLOSED:
        return McpError(f"The MCP server {server} closed the connection.", "closed", unsure=True)
    return McpError(f"The MCP server {server} refused the call: {error.message}", "refused")


async def _within(job: Any, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await job
    except TimeoutError:
        return  # the loop, its thread and the program of the thread end together


def over_http(server: str, target: HttpTarget) -> Connection:
    """Return a connection to a server over streamable HTTP, which is not opened yet."""
    return Connection(server, HttpTransport(target))


def to_program(server: str, start: Start) -> Connection:
    """Return a connection to a program that `start` starts, which is not opened yet."""
    return Connection(server, StdioTransport(start))
