"""A model that answers only when a test allows it, so that keys arrive during a task for certain.

with held(vel, Turn("Done.")) as answer:
    terminal = prompted(vel, *FLAGS)
    ...
    answer()
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.support.hang import HANG
from tests.support.messages_api import MessagesServer
from tests.support.messages_script import Request, Turn
from tests.velproject.command import Vel

FLAGS = ("--provider", "anthropic")


@contextmanager
def held(vel: Vel, *turns: Turn) -> Iterator[Callable[..., None]]:
    """Answer the agents of `vel` with one of `turns` per reply, the last one again and again.

    Each call of the function that this yields allows this number of answers, one by default.
    """
    allowed = threading.Semaphore(0)

    def turn(request: Request) -> Turn:
        assert allowed.acquire(timeout=HANG), "the test did not allow the answer"
        return turns[min(request.replies, len(turns) - 1)]

    with MessagesServer(turn) as server:
        vel.environment |= {
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "test-key",
            "VEL_TITLE_MODEL": "off",
        }
        try:
            yield allowed.release
        finally:
            allowed.release(1000)
