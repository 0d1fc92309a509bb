"""Database transactions and connections of tools from the settings."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.db import close_old_connections, transaction


async def all_or_nothing(
    call: Callable[[], Any], on_thread: Callable[[Callable[[], Any]], Awaitable[Any]]
) -> Any:
    """Run `call()` in a thread, in one transaction.

    It is rolled back if the caller has given up.
    """
    given_up = threading.Event()

    def whole() -> Any:
        with transaction.atomic():
            value = call()
            if given_up.is_set():
                transaction.set_rollback(True)
            return value

    try:
        return await on_thread(whole)
    except (TimeoutError, asyncio.CancelledError):
        given_up.set()
        raise


def with_fresh_connections(call: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[Any]]:
    """Wrap a coroutine function: it shares asgiref's thread, whose connections may be broken."""

    async def fresh() -> Any:
        await sync_to_async(close_old_connections)()
        try:
            return await call()
        finally:
            await sync_to_async(close_old_connections)()

    return fresh
