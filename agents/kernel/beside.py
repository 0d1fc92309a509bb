"""Run third-party code outside the engine. It can hang or raise, and the engine continues.

Coroutines run on an event loop in a daemon thread, so that a client which they keep open remains
usable. Each function runs on a daemon thread. A function cannot be killed: if it hangs, it keeps
its thread, and if too many hang, no other function is started. Each kind of code has its own
`Beside`, so code that hangs does not affect other kinds.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from typing import Any

from django.db import connections

from sandbox.cancellation import Cancellation

MAX_HANGING = 16
"""The maximum number of functions of one kind that hang: they exceed their time and hold a thread.
"""


Here = Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]]
"""Awaits a coroutine function in the task that called `Beside.run`."""


class TooManyHang(Exception):
    """The function was not called, because earlier calls hold all threads."""


class Beside:
    """Runs one kind of code. Its threads and its event loop are created when they are needed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: tuple[int, asyncio.AbstractEventLoop] | None = None
        self.hanging: set[threading.Thread] = set()

    async def call(self, function: Callable[..., Any], *arguments: Any, seconds: float) -> Any:
        """Return the result of `function(*arguments)`, awaited for a coroutine function.

        If the caller is cancelled, or after a `TimeoutError`, a coroutine is cancelled. Any other
        function continues, and its result is lost.

        Raises:
            TimeoutError: The call took longer than `seconds`.
            TooManyHang: Too many earlier functions hang. A coroutine function never raises this.
            Exception: The exception of the function. `RuntimeError` replaces `SystemExit`.
        """
        if inspect.iscoroutinefunction(function):
            running = _contained(function, arguments)
            future = asyncio.run_coroutine_threadsafe(running, self._side_loop())
            async with asyncio.timeout(seconds):
                return await asyncio.wrap_future(future)
        result, over, thread = self._start(function, arguments)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.wrap_future(result)
        except (TimeoutError, asyncio.CancelledError):
            self._give_up(over, thread)
            raise

    def wait(
        self, function: Callable[[], Any], *, seconds: float, cancel: Cancellation | None = None
    ) -> Any:
        """Call `function()`, block until it ends, and return the result.

        `cancel` ends the wait from another thread. Raises the function's exception, `TooManyHang`,
        and `TimeoutError` after `seconds` or a cancellation. After such a `TimeoutError`, the
        function continues, and its result is lost.
        """
        result, over, thread = self._start(function, ())
        forget = cancel.on_cancel(lambda: _cancel(result)) if cancel else None
        try:
            return result.result(seconds)
        except TimeoutError:
            if result.done() and not result.cancelled():
                raise  # the function's own
            self._give_up(over, thread)
            raise TimeoutError(
                f"it took longer than {seconds:g} s, and may still be running"
            ) from None
        except CancelledError:
            self._give_up(over, thread)
            raise TimeoutError("the call was cancelled") from None
        finally:
            if forget is not None:
                forget()

    def _start(
        self, function: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> tuple[Future[Any], threading.Event, threading.Thread]:
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
        return result, over, thread

    def _give_up(self, over: threading.Event, thread: threading.Thread) -> None:
        with self._lock:
            if not over.is_set():
                self.hanging.add(thread)

    async def run(
        self,
        function: Callable[[Here], Awaitable[Any]],
        *,
        seconds: float,
        visible: tuple[type[Exception], ...] = (),
    ) -> Any:
        """Await `function(here)` on the event loop of this kind of code, and return the result.

        `await here(make)` awaits `make()` in the task of the caller, and returns its result. If
        `make()` raises an exception of the types `visible`, the function receives it. Any other
        exception is raised here and cancels the function. Also raises the function's own
        exceptions, and `TimeoutError` after `seconds`. The time of `make()` does not count.
        """
        loop = asyncio.get_running_loop()
        requests: asyncio.Queue[tuple[Callable[[], Awaitable[Any]], Future[Any]]] = asyncio.Queue()

        async def here(make: Callable[[], Awaitable[Any]]) -> Any:
            result: Future[Any] = Future()
            loop.call_soon_threadsafe(requests.put_nowait, (make, result))
            return await asyncio.wrap_future(result)

        running = asyncio.run_coroutine_threadsafe(_contained(function, (here,)), self._side_loop())
        ended = asyncio.wrap_future(running)
        left = seconds
        try:
            while True:
                request = loop.create_task(requests.get())
                began = loop.time()
                try:
                    both = {ended, request}
                    await asyncio.wait(both, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                    if ended.done():
                        return ended.result()
                    if not request.done():
                        raise TimeoutError
                    make, result = request.result()
                finally:
                    request.cancel()
                left -= loop.time() - began
                try:
                    value = await make()
                except visible as error:
                    _settle(result, error=error)
                else:
                    _settle(result, value=value)
        finally:
            running.cancel()

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
        # Convert exceptions that would end the event loop, which all others share.
        raise _as_exception(error) from error


def _as_exception(error: BaseException) -> Exception:
    return RuntimeError(f"it raised {type(error).__name__}")


def _cancel(result: Future[Any]) -> None:
    result.cancel()


def _settle(result: Future[Any], *, value: Any = None, error: Exception | None = None) -> None:
    if not result.set_running_or_notify_cancel():
        return  # the caller no longer waits
    if error is not None:
        result.set_exception(error)
    else:
        result.set_result(value)
