"""What a tool of the settings does in the project's database: whole or not at all."""

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
    """`call()` on a thread, in one transaction. What it did is undone if nobody waits any more."""
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
    """Coroutines share asgiref's thread and its connections, which may have died meanwhile."""

    async def fresh() -> Any:
        await sync_to_async(close_old_connections)()
        try:
            return await call()
        finally:
            await sync_to_async(close_old_connections)()

    return fresh
