"""A model that answers only when a test allows it, so that keys arrive during a task for certain.

with at_work(vel, Turn("Done.")) as (terminal, answer):
    terminal.type("second\r")
    answer()
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tests.support.hang import HANG
from tests.support.messages_api import MessagesServer
from tests.support.messages_script import Request, Turn
from tests.velproject.command import Terminal, Vel

FLAGS = ("--provider", "anthropic")


@contextmanager
def held(vel: Vel, *turns: Turn) -> Iterator[Callable[..., None]]:
    """Answer the agents of `vel` with one of `turns` per reply, the last one again and again.

    Yields a function: `answer(2)` allows two answers, `answer()` one.
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


@contextmanager
def at_work(
    vel: Vel, *turns: Turn, flags: Sequence[str] = ()
) -> Iterator[tuple[Terminal, Callable[..., None]]]:
    """Yield a session whose agent works on the task `first`, and the function of `held`."""
    with held(vel, *turns) as answer:
        terminal = Terminal(vel, *FLAGS, *flags)
        terminal.expect("\x1b[?2004h")  # the prompt turns bracketed paste on
        terminal.type("first\r")
        terminal.expect("thinking")
        yield terminal, answer
