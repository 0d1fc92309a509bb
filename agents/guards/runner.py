"""Running an operator's code beside the engine: it may hang or raise, and the engine goes on.

Coroutines run on an event loop of their own in a daemon thread, so that a client that they keep
open stays usable; functions each on a daemon thread. A function cannot be killed: one that hangs
keeps its thread, and when too many do, no more are begun. Guardrails and hooks share nothing: a
hook that hangs must not let a guardrail fail, for that ends runs.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from django.db import connections

MAX_HANGING = 16
"""Functions of one kind that have outlived their time limit and hold a thread."""


class TooManyHang(Exception):
    """Nothing was called: earlier calls still hold all the threads there may be."""


class Beside:
    """A place for one kind of an operator's code. Threads are made when they are needed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: tuple[int, asyncio.AbstractEventLoop] | None = None
        self.hanging: set[threading.Thread] = set()

    async def call(self, function: Callable[..., Any], *arguments: Any, seconds: float) -> Any:
        """What `function(*arguments)` returns, or, if that is a coroutine, what it comes to.

        Raises what it raises, `TimeoutError` after `seconds`, and `TooManyHang`. When the caller
        is cancelled, so is a coroutine; a function goes on and nobody listens.
        """
        if inspect.iscoroutinefunction(function):
            running = _contained(function, arguments)
            future = asyncio.run_coroutine_threadsafe(running, self._side_loop())
            async with asyncio.timeout(seconds):
                return await asyncio.wrap_future(future)
        with self._lock:
            if len(self.hanging) >= MAX_HANGING:
                raise TooManyHang(f"{MAX_HANGING} earlier calls still hang: restart the worker")
        result: Future[Any] = Future()
        over = threading.Event()
        thread = threading.Thread(
            target=self._run,
            args=(function, arguments, result, over),
            name=f"vel-{self._name}",
            daemon=True,
        )
        thread.start()
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.wrap_future(result)
        except (TimeoutError, asyncio.CancelledError):
            with self._lock:
                if not over.is_set():
                    self.hanging.add(thread)
            raise

    def _run(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        result: Future[Any],
        over: threading.Event,
    ) -> None:
        try:
            value = function(*arguments)
        except BaseException as error:  # noqa: BLE001  # goes to the caller
            failure = error if isinstance(error, Exception) else _as_exception(error)
            _settle(result, error=failure)
        else:
            _settle(result, value=value)
        finally:
            for connection in connections.all(initialized_only=True):
                connection.close()
            with self._lock:
                over.set()
                self.hanging.discard(threading.current_thread())

    def _side_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._loop[0] != os.getpid():  # no thread survives a fork
                loop = asyncio.new_event_loop()
                name = f"vel-{self._name}-loop"
                threading.Thread(target=loop.run_forever, name=name, daemon=True).start()
                self._loop = (os.getpid(), loop)
            return self._loop[1]


async def _contained(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return await function(*arguments)
    except (SystemExit, KeyboardInterrupt) as error:
        # These would end the loop that all others share.
        raise _as_exception(error) from error


def _as_exception(error: BaseException) -> Exception:
    return RuntimeError(f"it raised {type(error).__name__}")


def _settle(result: Future[Any], *, value: Any = None, error: Exception | None = None) -> None:
    if not result.set_running_or_notify_cancel():
        return  # nobody listens any more
    if error is not None:
        result.set_exception(error)
    else:
        result.set_result(value)


GUARDRAILS = Beside("guardrail")
HOOKS = Beside("hook")
