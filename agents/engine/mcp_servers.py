"""The MCP servers of a run, while a driver has it: a connection each, from the first call on.

A parked run holds none. A server that was lost starts anew with the next call, some times.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from django.db import DatabaseError

from agents.engine.conversation import takes_images
from agents.engine.session import Session
from agents.mcp.connection import Connection
from agents.mcp.definitions import digests
from agents.mcp.errors import McpError
from agents.mcp.limits import MAX_STARTS, OPEN_SECONDS
from agents.middleware.context import McpAnswer
from agents.models import McpServer, McpTransport
from agents.selectors.mcp_servers import server_of_run
from agents.services.mcp_connections import connection_to, hide, without_telling
from agents.services.mcp_servers import secrets_of
from agents.services.mcp_state_moves import drop_states, forget_old_states, store_state
from agents.services.mcp_state_rows import Erased, must_be_ours, record_own_state
from agents.services.mcp_tools import note_listing
from agents.settings import MachineSettings
from agents.spec import McpToolSpec
from sandbox.errors import SandboxError
from sandbox.file_lock import LockTimeout

T = TypeVar("T")

logger = logging.getLogger(__name__)

GRACE = 2.0
"""Seconds that a connection gets beyond a call's time, to say itself that it is over."""
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


class RunMcpServers:
    """`agents.middleware.context.McpServers` of one session."""

    def __init__(self, session: Session, marker: str) -> None:
        self._session = session
        self._marker = marker
        self._servers: dict[str, _Server] = {}

    async def call(
        self, tool: McpToolSpec, arguments: Mapping[str, Any], seconds: float
    ) -> McpAnswer:
        row = await self._row(tool)
        server = self._servers.setdefault(tool.server, _Server())
        async with server.lock:
            connection = await self._connected(server, row)
            await self._compare(server, connection, row, tool)
        result = await self._over(
            connection, connection.call(tool.tool, dict(arguments), seconds), seconds + GRACE
        )
        secrets = await self._in_thread(secrets_of, row)
        shows = await takes_images(self._session.provider, self._session.spec.model)
        return McpAnswer(_without(result, tuple(secrets.values())), shows)

    async def close(self) -> None:
        """End all servers, and return when they are gone."""
        connections = [each.connection for each in self._servers.values() if each.connection]
        has_programs = any(
            each.row is not None and each.row.transport == McpTransport.STDIO
            for each in self._servers.values()
        )
        self._servers.clear()
        for connection in connections:
            connection.close()
        for connection in connections:
            await self._in_thread(connection.join)
        if has_programs and MachineSettings.now().pins_threads:
            await self._store_state()

    async def _store_state(self) -> None:
        """Put what programs keep where another host finds it. What fails stays on this one."""
        thread_id, run = self._session.files.location.thread_id, self._session.database.run
        try:
            workspace = await self._in_thread(self._session.files.workspace)
            stored = None if workspace.read_only else await self._in_thread(store_state, workspace)
            if stored is None:
                return
            try:
                await run(record_own_state, thread_id, stored)
            except Erased:
                await self._in_thread(drop_states, thread_id)
                return
            loop = asyncio.get_running_loop()

            def confirm() -> None:
                asyncio.run_coroutine_threadsafe(run(must_be_ours, thread_id), loop).result()

            await self._in_thread(forget_old_states, workspace, stored, confirm)
        except (SandboxError, LockTimeout, OSError, DatabaseError) as error:
            logger.error("what MCP programs keep is on this host only: %s", error)

    async def _row(self, tool: McpToolSpec) -> McpServer:
        """The server as it is now: what was taken away meanwhile is not used once more."""
        found = await self._session.database.run(
            server_of_run, self._session.agent_id, tool.server, tool.tool
        )
        if found is None:
            raise McpError(
                f"{tool.name} was taken from this agent, or its server was switched off: go on "
                "without it.",
                "not_allowed",
            )
        row, pinned = found
        if pinned["digest"] != tool.digest or pinned["effect"] != tool.effect:
            raise McpError(
                f"{tool.name} is described in another way since this run began: it can be used "
                "again from the user's next message on.",
                "changed",
            )
        return row

    async def _connected(self, server: _Server, row: McpServer) -> Connection:
        connection = server.connection
        if connection is not None and connection.is_alive and _is_same(server.row, row):
            return connection
        if connection is not None:
            await self._end(connection)
            server.connection = None
        if server.starts >= MAX_STARTS:
            raise McpError(
                f"The MCP server {row.slug} was started {MAX_STARTS} times and is gone again: go "
                "on without it.",
                "closed",
            )
        server.starts += 1
        server.row, server.digests = row, {}
        workspace = self._session.files.workspace if self._session.spec.sandbox else None
        opened: Connection = await self._in_thread(
            partial(connection_to, row, marker=self._marker, workspace=workspace)
        )
        server.connection = opened
        await self._over(opened, opened.open(), OPEN_SECONDS + GRACE)
        return opened

    async def _compare(
        self, server: _Server, connection: Connection, row: McpServer, tool: McpToolSpec
    ) -> None:
        """Refuse a tool that its server describes otherwise than what a person has accepted."""
        if not server.digests or connection.list_changed:
            listing = await self._over(connection, connection.listing(), OPEN_SECONDS + GRACE)
            server.digests = digests(listing)
            told = await self._in_thread(partial(without_telling, listing, row))
            await self._session.database.run(note_listing, row.pk, told)
        if server.digests.get(tool.tool) != tool.digest:
            raise McpError(
                f"{tool.name} was not called: the server describes it otherwise than what was "
                "accepted. An operator has to look at it first; go on without it.",
                "changed",
            )

    async def _over(self, connection: Connection, future: Future[T], seconds: float) -> T:
        """The outcome, in time. If nobody waits any more the server ends: nothing goes on."""
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            await self._end(connection)
            raise McpError(
                f"The MCP server {connection.server} did not answer in time.",
                "timeout",
                unsure=True,
            ) from None
        except McpError as problem:
            if problem.code == "timeout":
                await self._end(connection)
            raise
        except asyncio.CancelledError:
            await self._end(connection)
            raise

    async def _end(self, connection: Connection) -> None:
        connection.close()
        await asyncio.shield(self._in_thread(connection.join))

    async def _in_thread(self, function: Any, *arguments: Any) -> Any:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._session.threads, function, *arguments)


def _is_same(before: McpServer | None, now: McpServer) -> bool:
    """Whether it is still reached in the same way."""
    if before is None or any(getattr(before, name) != getattr(now, name) for name in _REACHED_BY):
        return False
    return not now.secret_names or before.secrets.same_as(now.secrets)


def _without(value: Any, secrets: tuple[str, ...]) -> Any:
    """An answer with the server's own secrets left out, should it repeat them."""
    if not secrets:
        return value
    if isinstance(value, str):
        return hide(value, secrets)
    if isinstance(value, list):
        return [_without(item, secrets) for item in value]
    if isinstance(value, dict):
        return {hide(key, secrets): _without(item, secrets) for key, item in value.items()}
    return value
