"""Many watchers of one run, over its socket and over server-sent events, in one event loop."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from websockets.asyncio.client import connect

from tests.support.hang import HANG
from tests.support.site import Site

PER_PERSON = 25


@dataclass
class Watched:
    """The events that one watcher received: their seqs in order, and their delays in seconds."""

    door: str
    seqs: list[int] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)

    def note(self, event: dict[str, Any]) -> bool:
        """Record an event. Return whether more will follow."""
        self.seqs.append(event["seq"])
        self.delays.append(time.time() - datetime.fromisoformat(event["ts"]).timestamp())
        return bool(event["type"] != "run.completed")


def watch_one_run(
    site: Site, count: int, *, batches: int, size: int, pause: float = 0.05
) -> list[Watched]:
    """Watch a run of another process with `count` watchers; every second one uses a socket.

    The other process starts to write when all have connected. The site must be served.
    """
    run = site.do("make_run", owner="olga")
    site.do("append", run=run, events=[("run.started", {})])
    tokens = []
    for number in range(-(-count // PER_PERSON)):
        name = f"watcher-{run}-{number}"
        site.do("make_user", name=name)
        site.do("allow", user=name, permissions=["view_all_runs"])
        tokens.append(site.do("make_token", user=name, scopes=["read"]))
    return asyncio.run(_watch(site, run, tokens, count, (batches, size, pause)))


async def _watch(
    site: Site, run: str, tokens: Sequence[str], count: int, pouring: tuple[int, int, float]
) -> list[Watched]:
    watchers = []
    ready = asyncio.Semaphore(0)
    async with asyncio.timeout(HANG), asyncio.TaskGroup() as group:
        for number in range(count):
            watch = _over_socket if number % 2 else _over_http
            watching = watch(site, run, tokens[number // PER_PERSON], ready)
            watchers.append(group.create_task(watching))
        for _ in range(count):
            await ready.acquire()
        batches, size, pause = pouring
        await asyncio.to_thread(site.do, "pour", run=run, batches=batches, size=size, pause=pause)
    return [watcher.result() for watcher in watchers]


async def _over_socket(site: Site, run: str, token: str, ready: asyncio.Semaphore) -> Watched:
    watched = Watched("socket")
    headers = {"Authorization": f"Bearer {token}"}
    address = f"ws://localhost:{site.port}/ws/runs/{run}/?after=0"
    async with connect(address, additional_headers=headers, open_timeout=HANG) as client:
        async for text in client:
            more = watched.note(json.loads(text))
            if len(watched.seqs) == 1:
                ready.release()
            if not more:
                break
    return watched


async def _over_http(site: Site, run: str, token: str, ready: asyncio.Semaphore) -> Watched:
    watched = Watched("http")
    reader, writer = await asyncio.open_connection("localhost", site.port)
    head = f"GET /api/v1/runs/{run}/events/stream HTTP/1.0\r\nHost: localhost:{site.port}\r\n"
    writer.write(f"{head}Authorization: Bearer {token}\r\n\r\n".encode())
    async for line in reader:
        if line.startswith(b'data: {"run_id"'):
            watched.note(json.loads(line[6:]))
            if len(watched.seqs) == 1:
                ready.release()
    writer.close()
    return watched
