"""The services of the engine that a tool can use during its call."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from agents.engine.calls.delegation import CallSubagents
from agents.engine.prompt.conversation import takes_images
from agents.engine.session import Session
from agents.engine.storage.journal import Call
from agents.events.catalogue.tool_calls import ToolProgress
from agents.ids import run_marker
from agents.middleware.run_parts import Part
from sandbox.backends.protocol import FileBackend
from sandbox.base import BaseSandbox
from sandbox.workspace import Workspace

logger = logging.getLogger(__name__)

T = TypeVar("T")


def _log_late_failure(future: asyncio.Future[Any]) -> None:
    """Log the error of a call that nobody waits for, such as a call of a run that has ended."""
    if not future.cancelled() and (error := future.exception()) is not None:
        logger.info("a call that was given up failed: %s: %s", type(error).__name__, error)


class CallContext:
    """Implementation of `agents.middleware.context.ToolContext` for one call."""

    def __init__(self, session: Session, call: Call, deadline: float) -> None:
        self._session = session
        self._loop = asyncio.get_running_loop()
        self.run_id = session.writer.run_id
        self.thread_id = session.writer.thread_id
        self.agent_id = session.agent_id
        self.owner_id: int = session.run.owner_id
        self.call_id = call.call_id
        self.spec = session.spec
        self.deadline = deadline
        self.subagents = CallSubagents(session, call)
        self.approved = session.gate.approved_preview(call)
        self.marker = run_marker(self.run_id)
        self._is_closed = False

    def part(self, kind: type[Part]) -> Part:
        return self._session.parts.get(kind)

    def tools_left(self) -> frozenset[str] | None:
        left: frozenset[str] | None = None
        for part in self._session.parts:
            narrowed = part.tools_left(self._session.known_tools)
            if narrowed is not None:
                left = narrowed if left is None else left & narrowed
        return left

    def state(self, kind: type[T]) -> T:
        return self._session.context.state(kind)

    def workspace(self) -> Workspace:
        return self._session.files.workspace()

    async def takes_images(self) -> bool:
        return await takes_images(self._session.provider, self._session.spec.model)

    def files(self) -> FileBackend:
        return self._session.files.backend()

    def sandbox(self, timeout: float) -> BaseSandbox:
        return self._session.files.sandbox(timeout)

    async def in_thread(
        self,
        function: Callable[..., T],
        *arguments: object,
        on_cancel: Callable[[], None] | None = None,
    ) -> T:
        future = self._loop.run_in_executor(self._session.threads, function, *arguments)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            future.add_done_callback(_log_late_failure)
            if on_cancel is not None:
                on_cancel()
            await asyncio.wait([future])
            raise

    async def in_database(self, function: Callable[..., T], *arguments: object) -> T:
        return await self._session.database.run(function, *arguments)

    def progress(self, text: str) -> None:
        self._loop.call_soon_threadsafe(self._add_progress, text)

    def close(self) -> None:
        """Ignore later progress, because a thread of the tool may continue after the call."""
        self._is_closed = True

    def _add_progress(self, text: str) -> None:
        if not self._is_closed:
            self._session.stream.add(ToolProgress, self.call_id, text)
