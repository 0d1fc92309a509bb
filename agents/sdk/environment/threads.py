"""Run blocking work outside the event loop, in a temporary thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from django.conf import settings
from django.db import connections

T = TypeVar("T")


def begin_in_thread(function: Callable[..., T], *arguments: object) -> Future[T]:
    """Call a function in a new thread and return its future.

    The thread closes its database connections at the end.
    """
    future: Future[T] = Future()

    # Make cancellation impossible: the work continues even if the caller is cancelled.
    future.set_running_or_notify_cancel()

    def work() -> None:
        try:
            value = function(*arguments)
        except BaseException as error:  # noqa: BLE001  # raised in the caller
            future.set_exception(error)
        else:
            future.set_result(value)
        finally:
            if settings.configured:
                connections.close_all()

    threading.Thread(target=work, name="vel-harness", daemon=True).start()
    return future


async def in_thread(function: Callable[..., T], *arguments: object) -> T:
    return await asyncio.wrap_future(begin_in_thread(function, *arguments))
