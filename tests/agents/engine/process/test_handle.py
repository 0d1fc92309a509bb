"""Sections in which a driver can be interrupted: nested, and in parallel."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from agents.engine.errors import Stopped, StopReason
from agents.engine.process.heartbeat import RunHandle
from tests.support.hang import HANG


def run(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scene, HANG))


def test_after_an_inner_stretch_the_outer_one_can_be_interrupted() -> None:
    handle = RunHandle("run")
    inner_is_over = asyncio.Event()

    async def drive() -> None:
        with handle.interruptible():
            with handle.interruptible():
                pass
            inner_is_over.set()
            await asyncio.Event().wait()

    async def scene() -> None:
        driver = asyncio.create_task(drive())
        await inner_is_over.wait()
        handle.stop(StopReason.CANCEL)
        with pytest.raises(Stopped) as stopped:
            await driver
        assert stopped.value.reason is StopReason.CANCEL
        assert not driver.cancelling()

    run(scene())


def test_a_stop_passes_everything_between_an_inner_and_the_outer_stretch() -> None:
    handle = RunHandle("run")
    begun = asyncio.Event()
    passed: list[str] = []

    async def drive() -> None:
        try:
            with handle.interruptible():
                try:
                    with handle.interruptible():
                        begun.set()
                        await asyncio.Event().wait()
                except Exception:  # noqa: BLE001  # a wrapper that treats every error as a failure
                    passed.append("swallowed")
                finally:
                    passed.append("finally")
        except Stopped:
            passed.append("stopped")

    async def scene() -> None:
        driver = asyncio.create_task(drive())
        await begun.wait()
        handle.stop(StopReason.LEASE_LOST)
        await driver
        assert passed == ["finally", "stopped"]

    run(scene())


def test_a_stretch_of_a_call_leaves_that_of_the_waiting_driver() -> None:
    handle = RunHandle("run")
    checked = asyncio.Event()

    async def call() -> None:
        with handle.interruptible():
            await asyncio.sleep(0)
        checked.set()
        await asyncio.Event().wait()  # the tool itself: the driver cancels it

    async def drive() -> None:
        task = asyncio.create_task(call())
        try:
            with handle.interruptible():
                await asyncio.wait([task])
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def scene() -> None:
        driver = asyncio.create_task(drive())
        await checked.wait()
        handle.stop(StopReason.CANCEL)
        with pytest.raises(Stopped):
            await driver

    run(scene())


def test_a_stop_interrupts_every_task_that_is_in_a_stretch() -> None:
    handle = RunHandle("run")

    async def wait() -> None:
        with handle.interruptible():
            await asyncio.Event().wait()

    async def scene() -> None:
        tasks = [asyncio.create_task(wait()) for _ in range(3)]
        await asyncio.sleep(0)
        handle.stop(StopReason.CANCEL)
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(each) for each in found] == [Stopped] * 3
        with pytest.raises(Stopped):
            await wait()

    run(scene())


def test_a_cancellation_that_is_not_a_stop_propagates() -> None:
    handle = RunHandle("run")

    async def wait() -> None:
        with handle.interruptible(), handle.interruptible():
            await asyncio.Event().wait()

    async def scene() -> None:
        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        with handle.interruptible():  # no interruption remains
            pass

    run(scene())
