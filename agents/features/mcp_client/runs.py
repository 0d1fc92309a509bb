"""The MCP servers of a run while a driver has it: one connection for each, from its first call.

A parked run has no connections. A server that was lost starts again with the next call, up to
`MAX_STARTS` times.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import DatabaseError

from agents.features.mcp_client.actions import note_listing
from agents.features.mcp_client.connections import connection_to, hide, secrets_of, without_telling
from agents.features.mcp_client.models import McpServer, McpTransport
from agents.features.mcp_client.options import McpToolSpec
from agents.features.mcp_client.protocol.definitions import digests
from agents.features.mcp_client.protocol.errors import McpError
from agents.features.mcp_client.protocol.limits import MAX_STARTS, OPEN_SECONDS
from agents.features.mcp_client.queries import server_of_run
from agents.features.mcp_client.thread_state import (
    Erased,
    drop_states,
    forget_old_states,
    must_be_ours,
    record_own_state,
    store_state,
)
from agents.kernel.middleware import RunContext
from agents.middleware.context import ToolContext
from agents.settings import MachineSettings
from sandbox.directories.file_lock import LockTimeout
from sandbox.errors import SandboxError
from sandbox.workspace import Workspace

if TYPE_CHECKING:
    from agents.features.mcp_client.protocol.connection import Connection

T = TypeVar("T")

logger = logging.getLogger(__name__)

GRACE = 2.0
"""Seconds beyond a call's time in which the connection itself can report the end of the time."""
_REACHED_BY = (
    *("transport", "command", "arguments", "toolbox", "network", "allowed_hosts"),
    *("sees_files", "url", "secret_names"),
)


@dataclass
class _Server:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    row: McpServer | None = None
    connection: Connection | None = None
    digests: Mapping[str, str] = field(default_factory=dict)
    starts: int = 0


class RunServers:
    """The servers of one claim of a run: its connections live as long as a driver has the run."""

    def __init__(self) -> None:
        self._servers: dict[str, _Server] = {}
        self._workspace: Callable[[], Workspace] | None = None

    async def call(
        self, context: ToolContext, tool: McpToolSpec, arguments: Mapping[str, Any]
    ) -> Any:
        """Make one call, with all checks, and return its result in the protocol's format.

        The secrets of the server are left out. Raises `McpError`.
        """
        row = await _row(context, tool)
        server = self._servers.setdefault(tool.server, _Server())
        async with server.lock:
            connection = await self._connected(context, server, row)
            await _compare(context, server, connection, row, tool)
        call = connection.call(tool.tool, dict(arguments), context.deadline)
        result = await _over(context, connection, call, context.deadline + GRACE)
        secrets = await context.in_thread(secrets_of, row)
        return _without(result, tuple(secrets.values()))

    async def close(self, run: RunContext) -> None:
        """End all servers, and return when they have ended."""
        connections = [each.connection for each in self._servers.values() if each.connection]
        has_programs = any(
            each.row is not None and each.row.transport == McpTransport.STDIO
            for each in self._servers.values()
        )
        self._servers.clear()
        for connection in connections:
            connection.close()
        for connection in connections:
            await run.in_thread(connection.join)
        if has_programs and self._workspace and MachineSettings.now().pins_threads:
            await _store_state(run, self._workspace)

    async def _connected(self, context: ToolContext, server: _Server, row: McpServer) -> Connection:
        connection = server.connection
        if connection is not None and connection.is_alive and _is_same(server.row, row):
            return connection
        if connection is not None:
            await _end(context, connection)
            server.connection = None
        if server.starts >= MAX_STARTS:
            raise McpError(
                f"The MCP server {row.slug} was started {MAX_STARTS} times and has ended again: "
                "continue without it.",
                "closed",
            )
        server.starts += 1
        server.row, server.digests = row, {}
        if context.spec.sandbox:
            self._workspace = context.workspace
        opened: Connection = await context.in_thread(
            partial(connection_to, row, marker=context.marker, workspace=self._workspace)
        )
        server.connection = opened
        await _over(context, opened, opened.open(), OPEN_SECONDS + GRACE)
        return opened


async def _row(context: ToolContext, tool: McpToolSpec) -> McpServer:
    """Return the server as it is now. A tool that the agent has lost is not used again."""
    found = await context.in_database(server_of_run, context.agent_id, tool.server, tool.tool)
    if found is None:
        raise McpError(
            f"{tool.name} was removed from this agent, or its server was disabled: continue "
            "without it.",
            "not_allowed",
        )
    row, pinned = found
    if pinned["digest"] != tool.digest or pinned["effect"] != tool.effect:
        raise McpError(
            f"{tool.name} has another definition since this run started: it can be used again "
            "after the user's next message.",
            "changed",
        )
    return row


async def _compare(
    context: ToolContext,
    server: _Server,
    connection: Connection,
    row: McpServer,
    tool: McpToolSpec,
) -> None:
    """Refuse a tool if its server gives another description than a person has accepted."""
    if not server.digests or connection.list_changed:
        listing = await _over(context, connection, connection.listing(), OPEN_SECONDS + GRACE)
        server.digests = digests(listing)
        listing = await context.in_thread(partial(without_telling, listing, row))
        await context.in_database(note_listing, row.pk, listing)
    if server.digests.get(tool.tool) != tool.digest:
        raise McpError(
            f"{tool.name} was not called: its definition on the server differs from the accepted "
            "definition. An operator must accept it first; continue without it.",
            "changed",
        )


async def _over(
    context: ToolContext, connection: Connection, future: Future[T], seconds: float
) -> T:
    """Return the outcome of `future`. If it takes too long or is cancelled, end the server."""
    try:
        async with asyncio.timeout(seconds):
            return await asyncio.wrap_future(future)
    except TimeoutError:
        await _end(context, connection)
        raise McpError(
            f"The MCP server {connection.server} did not answer in time.", "timeout", unsure=True
        ) from None
    except McpError as problem:
        if problem.code == "timeout":
            await _end(context, connection)
        raise
    except asyncio.CancelledError:
        await _end(context, connection)
        raise


async def _end(context: ToolContext, connection: Connection) -> None:
    connection.close()
    await asyncio.shield(context.in_thread(connection.join))


async def _store_state(run: RunContext, open_workspace: Callable[[], Workspace]) -> None:
    """Store the state of programs for other hosts. After an error only this host has it."""
    try:
        workspace = await run.in_thread(open_workspace)
        stored = None if workspace.read_only else await run.in_thread(store_state, workspace)
        if stored is None:
            return
        thread_id = workspace.root.name
        try:
            await run.in_database(record_own_state, thread_id, stored)
        except Erased:
            await run.in_thread(drop_states, thread_id)
            return
        loop = asyncio.get_running_loop()

        def confirm() -> None:
            job = run.in_database(must_be_ours, thread_id)
            asyncio.run_coroutine_threadsafe(job, loop).result()

        await run.in_thread(forget_old_states, workspace, stored, confirm)
    except (SandboxError, LockTimeout, OSError, DatabaseError) as error:
        logger.error("the files of MCP programs are stored on this host only: %s", error)


def _is_same(before: McpServer | None, now: McpServer) -> bool:
    """Return whether the address of the server is the same."""
    if before is None or any(getattr(before, name) != getattr(now, name) for name in _REACHED_BY):
        return False
    return not now.secret_names or before.secrets.same_as(now.secrets)


def _without(value: Any, secrets: tuple[str, ...]) -> Any:
    """Return an answer without the server's own secrets."""
    if not secrets:
        return value
    if isinstance(value, str):
        return hide(value, secrets)
    if isinstance(value, list):
        return [_without(item, secrets) for item in value]
    if isinstance(value, dict):
        return {hide(key, secrets): _without(item, secrets) for key, item in value.items()}
    return value
