"""Changes of a tool of the settings are committed completely or not at all."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from django.contrib.auth.models import Group

from agents.kernel.beside import Beside
from agents.middleware.custom.calling import all_or_nothing
from tests.support.hang import HANG

pytestmark = pytest.mark.both_databases


@pytest.mark.django_db(transaction=True)
def test_changes_of_a_timed_out_tool_are_undone() -> None:
    beside, written, go_on = Beside("test"), threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    def slow() -> None:
        threads.append(threading.current_thread())
        Group.objects.create(name="late")
        written.set()
        go_on.wait(HANG)

    async def on_thread(call: Any) -> None:
        running = asyncio.ensure_future(beside.call(call, seconds=HANG))
        await asyncio.to_thread(written.wait, HANG)
        running.cancel()  # the call is cancelled
        await running

    async def main() -> None:
        with pytest.raises(asyncio.CancelledError):
            await all_or_nothing(slow, on_thread)

    asyncio.run(main())
    go_on.set()
    threads[0].join(HANG)
    assert not Group.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_changes_of_a_failed_tool_are_undone_and_of_a_successful_one_stay() -> None:
    beside = Beside("test")

    def make(name: str) -> str:
        Group.objects.create(name=name)
        if name == "bad":
            raise ValueError(name)
        return name

    async def call(name: str) -> Any:
        return await all_or_nothing(lambda: make(name), lambda f: beside.call(f, seconds=HANG))

    assert asyncio.run(call("good")) == "good"
    with pytest.raises(ValueError, match="bad"):
        asyncio.run(call("bad"))
    assert [group.name for group in Group.objects.all()] == ["good"]
