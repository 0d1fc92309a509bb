"""The protocol of the harness processes: one JSON command a line, and one JSON result for each.

Uses only the standard library, because every harness runs in its own environment.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

NOTES = json.dumps(
    {"todos": [f"Step {number}: compare the notes with the list." for number in range(4)]}
)
"""About 200 bytes that the tool of every harness returns."""

T = TypeVar("T")
Command = Callable[..., Any]


@contextmanager
def measured(figures: dict[str, float]) -> Iterator[None]:
    """Measure the CPU seconds (all threads, user and system) and wall seconds of a `with` block."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        yield
    finally:
        figures["cpu_s"] = time.process_time() - cpu
        figures["wall_s"] = time.perf_counter() - wall


async def limited(work: Iterable[Coroutine[Any, Any, T]], at_once: int) -> list[T]:
    """Run coroutines, `at_once` at the same time (0: all), and return their results in order."""
    if not at_once:
        return list(await asyncio.gather(*work))
    room = asyncio.Semaphore(at_once)

    async def one(item: Coroutine[Any, Any, T]) -> T:
        async with room:
            return await item

    return list(await asyncio.gather(*map(one, work)))


def serve(commands: dict[str, Command]) -> None:
    """Execute commands until standard input ends."""
    # Libraries print to standard output, so their output goes to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print(json.dumps({"result": "ready"}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"result": commands[request.pop("do")](**request)}
        except Exception:  # noqa: BLE001  # the caller receives it
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)
