"""States of a custom middleware, one for each session, with exclusive access."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agents.custom.base_middleware import BaseMiddleware, State, name_of
from agents.custom.base_middleware import Middleware as CustomMiddleware
from agents.events.append import dump
from agents.middleware.base import ToolResult, error
from agents.middleware.context import ToolContext as EngineContext
from agents.services.runs.middleware_states import read_state, session_thread, store_state

MAX_STATE_BYTES = 1_000_000
RESERVE_SECONDS = 5.0


@dataclass(eq=False)
class StateKeeper:
    """The states of one middleware, by session. `begins_with` is the state of a new session."""

    middleware: CustomMiddleware
    name: str
    begins_with: State
    _known: dict[str, State] = field(default_factory=dict)
    """States by the session's thread, while this process executes a run of the session.

    They can be newer than the stored states.
    """
    _lock: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    @classmethod
    def of(cls, middleware: CustomMiddleware) -> StateKeeper | None:
        """Return a keeper for a middleware, or None if it has no state."""
        kind = type(middleware)
        if isinstance(middleware, BaseMiddleware) and kind.get_state is BaseMiddleware.get_state:
            return None
        return cls(middleware, name_of(middleware), copy.deepcopy(middleware.get_state()))

    def forget(self, thread_id: str) -> None:
        """Forget a session's state, because another process may have continued the session."""
        self._known.pop(thread_id, None)

    async def take(self, context: EngineContext) -> Turn:
        """Wait until no other call uses the middleware. Release it with `Turn.end`."""
        lock = self._lock_here()
        await lock.acquire()
        try:
            thread_id = await context.in_database(session_thread, context.thread_id)
            if thread_id not in self._known:
                stored = await context.in_database(read_state, thread_id, self.name)
                self._known[thread_id] = self.begins_with if stored is None else stored
        except BaseException:
            lock.release()
            raise
        return Turn(self, thread_id, asyncio.get_running_loop(), lock)

    async def reserve(self) -> Turn:
        """Return exclusive use of the middleware outside of a call. Raises `TimeoutError`.

        Each call loads the state of its session first, so the instance's state may change.
        """
        lock = self._lock_here()
        async with asyncio.timeout(RESERVE_SECONDS):
            await lock.acquire()
        return Turn(self, "", asyncio.get_running_loop(), lock)

    def _lock_here(self) -> asyncio.Lock:
        loop = asyncio.get_running_loop()
        if self._lock is None or self._lock[0] is not loop:
            self._lock = (loop, asyncio.Lock())
        return self._lock[1]


@dataclass(eq=False)
class Turn:
    """Exclusive use of a middleware for one call."""

    keeper: StateKeeper
    thread_id: str
    _loop: asyncio.AbstractEventLoop
    _lock: asyncio.Lock
    begun: bool = False
    """Whether the function was called. The function then ends the turn itself."""
    _text: str | None = None
    _over: bool = False

    def load(self) -> None:
        """Load the session's state into the middleware.

        Call this directly before the tool's function, in the thread of the function.
        """
        self.begun = True
        state = self.keeper._known[self.thread_id]
        self.keeper.middleware.load_state(copy.deepcopy(state))

    def read(self) -> None:
        """Keep the state that the middleware has now, for `add_to`.

        Call this directly after the tool's function, in the thread of the function. Raises an error
        if the state is not JSON.
        """
        self._text = dump(self.keeper.middleware.get_state())

    def end(self) -> None:
        """Release the middleware. Any thread may call this, also repeatedly."""
        if not self._over:
            self._over = True
            try:
                self._loop.call_soon_threadsafe(self._lock.release)
            except RuntimeError:
                return  # the engine's event loop is closed, so that no call waits

    def add_to(self, result: ToolResult) -> ToolResult:
        """Return the result together with the state, so that both are stored in one transaction."""
        if self._text is None:
            return result
        if len(self._text.encode()) > MAX_STATE_BYTES:
            return error(
                f"The call was made, but the state of {self.keeper.name} has become larger than "
                f"{MAX_STATE_BYTES:,} bytes and was not kept.",
                "state_too_large",
            )
        state: State = json.loads(self._text)
        self.keeper._known[self.thread_id] = state
        thread_id, name = self.thread_id, self.keeper.name
        result.commit = _both(result.commit, lambda: store_state(thread_id, name, state))
        return result


def _both(first: Callable[[], Any] | None, second: Callable[[], Any]) -> Callable[[], None]:
    def commit() -> None:
        if first is not None:
            first()
        second()

    return commit
