"""One connection to one server, on a thread and an event loop of its own.

A server that floods or stalls keeps this thread busy, not the engine's loop. What the server asks
of its client, as to call a model or to ask the user, is refused: it has none of these rights.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from agents.mcp.definitions import Listing, read_listing
from agents.mcp.errors import McpError, McpMissing
from agents.mcp.limits import CLOSE_SECONDS, MAX_PAGES, MAX_TOOLS, OPEN_SECONDS
from agents.mcp.transport import Transport
from sandbox.errors import SandboxError

T = TypeVar("T")


class Connection:
    """Opened by the first `listing`. All methods may be called from any thread.

    `server` is its slug. What comes out of the methods is a `Future` of `concurrent.futures`,
    which raises `McpError`.
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
        """Whether the server has said so since the last `listing`."""
        return self._transport.inbound.list_changed

    def open(self) -> Future[None]:
        """Begin, and be done when the server has answered. Raises in the future."""
        self._thread.start()
        return self._ready

    def listing(self) -> Future[Listing]:
        return self._ask(self._list)

    def call(self, tool: str, arguments: dict[str, Any], seconds: float) -> Future[dict[str, Any]]:
        """The result as the protocol has it: `content`, `structuredContent`, `isError`."""
        return self._ask(lambda: self._call(tool, arguments, seconds))

    def close(self) -> None:
        """End the server, or the session with it. Returns at once; `join` waits."""
        with self._lock:
            self._closed = True
            loop, stop = self._loop, self._stop
        if loop is not None and stop is not None:
            try:
                loop.call_soon_threadsafe(stop.set)
            except RuntimeError:
                return  # it has ended

    def join(self) -> None:
        """Return when the server is gone. Blocks for seconds at most."""
        if self._thread.ident is not None:
            self._thread.join(CLOSE_SECONDS * 5)

    # On the own thread ------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:  # noqa: BLE001  # the thread's last door: whoever waits is told
            self._fail(error)
        finally:
            self._closed = True
            self._fail(McpError(self._gone(), "closed"))

    def _fail(self, error: BaseException) -> None:
        if not self._ready.done():
            self._ready.set_exception(self._told(error))

    async def _main(self) -> None:
        with self._lock:
            self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
            if self._closed:
                return
        client_type, about = _client()
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(OPEN_SECONDS):
                    client = client_type(
                        self._transport.open(), mode="auto", cache=None, client_info=about
                    )
                    # Of a failed handshake the transport is left with its own failure.
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

    def _ask(self, job: Callable[[], Any]) -> Future[Any]:
        loop = self._loop
        if loop is None or self._closed:
            failed: Future[Any] = Future()
            failed.set_exception(McpError(self._gone(), "closed"))
            return failed
        coroutine = self._answered(job)
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, loop)
        except RuntimeError:
            coroutine.close()
            failed = Future()
            failed.set_exception(McpError(self._gone(), "closed"))
            return failed

    async def _answered(self, job: Callable[[], Any]) -> Any:
        self._transport.inbound.begin()
        try:
            return await job()
        except McpError:
            raise
        except Exception as error:  # noqa: BLE001  # a server may cause any, and each is its failure
            raise self._told(error) from None

    async def _list(self) -> Listing:
        import mcp_types as types  # noqa: PLC0415

        self._transport.inbound.list_changed = False
        said: list[dict[str, Any]] = []
        cursor: str | None = None
        async with asyncio.timeout(OPEN_SECONDS):
            for _ in range(MAX_PAGES):
                params = types.PaginatedRequestParams(cursor=cursor) if cursor else None
                page = await self._session.list_tools(params=params)
                said += [tool.model_dump(by_alias=True, exclude_unset=True) for tool in page.tools]
                cursor = page.next_cursor
                if not cursor or len(said) > MAX_TOOLS:
                    break
            else:
                raise McpError("The server's list of tools does not end.", "too_many_tools")
        return read_listing(self.server, said)

    async def _call(self, tool: str, arguments: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Not by the session's own `call_tool`: that checks the answer against a schema of the
        server's, with patterns that may take for ever."""
        import mcp_types as types  # noqa: PLC0415
        from pydantic import TypeAdapter  # noqa: PLC0415

        kinds: Any = types.CallToolResult | types.InputRequiredResult
        request = types.CallToolRequest(
            params=types.CallToolRequestParams(name=tool, arguments=arguments)
        )
        result = await self._session.send_request(
            request, TypeAdapter(kinds), request_read_timeout_seconds=seconds
        )
        if isinstance(result, types.InputRequiredResult):
            raise McpError(
                f"The MCP server {self.server} wants to ask the user or a model something before "
                "it goes on, which is not allowed here.",
                "input_required",
            )
        found: dict[str, Any] = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        return found

    def _told(self, error: BaseException) -> McpError:
        """Whatever the package raised, as one of ours."""
        if isinstance(error, McpError):
            return error
        if isinstance(error, BaseExceptionGroup):
            first = next(iter(error.exceptions))
            return self._told(first)
        if isinstance(error, SandboxError):
            return McpError(f"The MCP server {self.server} could not be run: {error}", "sandbox")
        if self._transport.problem:
            return McpError(self._gone(), "closed", unsure=True)
        if isinstance(error, TimeoutError):
            return McpError(f"The MCP server {self.server} did not answer.", "timeout", unsure=True)
        return _of_protocol(self.server, error)

    def _gone(self) -> str:
        reason = self._transport.problem or "the connection was closed"
        return f"The MCP server {self.server} is gone: {reason}."


def _client() -> tuple[Any, Any]:
    """The client of the package, and what servers are told of us. Raises `McpMissing`."""
    try:
        from mcp.client.client import Client  # noqa: PLC0415
        from mcp_types import Implementation  # noqa: PLC0415
    except ImportError:
        raise McpMissing from None
    return Client, Implementation(name="vel", version="1")


def _of_protocol(server: str, error: BaseException) -> McpError:
    from mcp.shared.exceptions import MCPError  # noqa: PLC0415
    from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT  # noqa: PLC0415

    if not isinstance(error, MCPError):
        return McpError(
            f"The MCP server {server} answered with what is no MCP ({type(error).__name__}).",
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
        return  # the thread ends with the loop, and what it started with the thread
