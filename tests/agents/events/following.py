"""Steps that the tests of the tail repeat."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

from agents.events.tail import Tail
from tests.support.hang import HANG
from tests.support.site import Site

Event = dict[str, Any]


async def take(events: AsyncIterator[Event], count: int) -> list[Event]:
    """Return the next `count` events."""
    async with asyncio.timeout(HANG):
        return [await anext(events) for _ in range(count)]


async def take_all(events: AsyncIterator[Event]) -> list[Event]:
    async with asyncio.timeout(HANG):
        return [event async for event in events]


async def do(site: Site, command: str, **arguments: Any) -> Any:
    return await asyncio.to_thread(site.do, command, **arguments)


def deltas(first: int, last: int) -> list[tuple[str, Event]]:
    """Return deltas whose text is their expected seq."""
    return [("text.delta", {"part_id": "1.0", "text": f"{n} "}) for n in range(first, last + 1)]


def wait_until_stopped(tail: Tail) -> None:
    for thread in threading.enumerate():
        if thread.name == "vel-tail":
            thread.join(HANG)
    assert not tail.is_running
