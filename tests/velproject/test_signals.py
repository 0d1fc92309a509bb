"""Signal handlers in an event loop, installed for a limited time."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from velproject.signals import handling

NUMBERS = (signal.SIGTERM, signal.SIGHUP)


def test_a_signal_in_the_last_moment_is_handled() -> None:
    handled: list[int] = []

    async def use() -> None:
        async with handling(NUMBERS, handled.append):
            os.kill(os.getpid(), signal.SIGTERM)

    asyncio.run(use())
    assert handled == [signal.SIGTERM]


def test_the_next_user_of_a_loop_gets_no_signal_of_the_one_before() -> None:
    handled: list[int] = []

    async def use() -> None:
        async with handling(NUMBERS, lambda number: None):
            os.kill(os.getpid(), signal.SIGTERM)
        async with handling(NUMBERS, handled.append):
            for _ in range(5):
                await asyncio.sleep(0)

    asyncio.run(use())
    assert handled == []


def test_a_signal_wakes_a_waiting_loop() -> None:
    async def use() -> int:
        came: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        async with handling(NUMBERS, came.set_result):
            asyncio.get_running_loop().call_later(0.01, os.kill, os.getpid(), signal.SIGHUP)
            return await came

    assert asyncio.run(use()) == signal.SIGHUP


@pytest.mark.parametrize("earlier", [signal.SIG_IGN, signal.SIG_DFL])
def test_the_earlier_handlers_are_restored(earlier: signal.Handlers) -> None:
    before = signal.signal(signal.SIGHUP, earlier)

    async def use() -> None:
        async with handling(NUMBERS, lambda number: None):
            assert signal.getsignal(signal.SIGHUP) != earlier

    try:
        asyncio.run(use())
        assert signal.getsignal(signal.SIGHUP) == earlier
    finally:
        signal.signal(signal.SIGHUP, before)
