"""How a harness is told what to do: one JSON object a line on standard input, one answer each.

Standard library only: every harness has an environment of its own.
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
"""About 200 bytes: what the tool of every harness returns."""

T = TypeVar("T")
Command = Callable[..., Any]


@contextmanager
def measured(figures: dict[str, float]) -> Iterator[None]:
    """Note the CPU seconds (all threads, user and system) and wall seconds of a stretch."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        yield
    finally:
        figures["cpu_s"] = time.process_time() - cpu
        figures["wall_s"] = time.perf_counter() - wall


async def limited(work: Iterable[Coroutine[Any, Any, T]], at_once: int) -> list[T]:
    """Results in order, of `at_once` coroutines side by side; 0: all."""
    if not at_once:
        return list(await asyncio.gather(*work))
    room = asyncio.Semaphore(at_once)

    async def one(item: Coroutine[Any, Any, T]) -> T:
        async with room:
            return await item

    return list(await asyncio.gather(*map(one, work)))


def serve(commands: dict[str, Command]) -> None:
    """Carry out commands until standard input ends."""
    # Libraries print; the answers keep the real standard output to themselves.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print(json.dumps({"result": "ready"}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"result": commands[request.pop("do")](**request)}
        except Exception:  # noqa: BLE001  # goes to the one who asked
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)
