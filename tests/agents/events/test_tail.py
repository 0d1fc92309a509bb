"""Follow runs that other processes write, on both databases."""

from __future__ import annotations

import asyncio
import gc
import itertools
import threading
from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from typing import Any

import pytest

from agents.events import postgres
from agents.events.read import RunNotFound
from agents.events.sqlite import PAGE_EVENTS
from agents.events.tail import Tail
from tests.agents.events.conftest import Followed
from tests.agents.events.following import (
    deltas,
    do,
    take,
    take_all,
    wait_until_stopped,
)
from tests.support.hang import HANG


def test_a_watcher_gets_past_events_and_then_new_ones(followed: Followed) -> None:
    site, tail = followed.site, followed.tail
    run = site.do("make_run", owner="olga")
    site.do("append", run=run, events=deltas(1, 3))

    async def watch() -> None:
        async with aclosing(tail.follow(run)) as events:
            assert [event["seq"] for event in await take(events, 3)] == [1, 2, 3]
            for seq in range(4, 9):
                await do(site, "append", run=run, events=deltas(seq, seq))
                (event,) = await take(events, 1)
                assert event["seq"] == seq
                assert event["run_id"] == run
                assert event["type"] == "text.delta"
                assert event["data"] == {"part_id": "1.0", "text": f"{seq} "}

    asyncio.run(watch())


def test_a_watcher_that_has_seen_some_gets_the_rest(followed: Followed) -> None:
    site, tail = followed.site, followed.tail
    run = site.do("make_run", owner="olga")
    site.do("append", run=run, events=deltas(1, 9))
    site.do("append", run=run, events=[("run.completed", {})], status="completed")

    events = asyncio.run(take_all(tail.follow(run, after=7)))

    assert [event["seq"] for event in events] == [8, 9, 10]


def test_a_backlog_of_many_pages_comes_complete_and_in_order(followed: Followed) -> None:
    site, tail = followed.site, followed.tail
    run = site.do("make_run", owner="olga")
    count = 2 * PAGE_EVENTS
    site.do("append", run=run, events=deltas(1, count))
    site.do("append", run=run, events=[("run.completed", {})], status="completed")

    events = asyncio.run(take_all(tail.follow(run)))

    assert [event["seq"] for event in events] == list(range(1, count + 2))


def test_following_ends_with_the_run_even_without_further_events(
    followed: Followed,
) -> None:
    site, tail = followed.site, followed.tail
    run = site.do("make_run", owner="olga")
    last = site.do("append", run=run, events=[("run.cancelled", {})], status="cancelled")

    assert asyncio.run(take_all(tail.follow(run, after=last))) == []


def test_following_continues_after_a_resumed_failure(followed: Followed) -> None:
    site, tail = followed.site, followed.tail
    run = site.do("make_run", owner="olga")
    site.do("append", run=run, events=[("run.failed", {})], status="failed")
    site.do("append", run=run, events=[("run.resumed", {})], status="queued")
    site.do("append", run=run, events=[("run.completed", {})], status="completed")

    events = asyncio.run(take_all(tail.follow(run)))

    assert [event["type"] for event in events] == ["run.failed", "run.resumed", "run.completed"]


def test_a_page_may_wait_for_a_failed_run_to_continue(followed: Followed) -> None:
    site, tail = followed.site, followed.tail
    run = site.do("make_run", owner="olga")
    site.do("append", run=run, events=[("run.failed", {})], status="failed")

    async def watch() -> None:
        async with aclosing(tail.follow(run, until_end=False)) as events:
            await take(events, 1)
            await do(site, "append", run=run, events=[("run.resumed", {})], status="queued")
            (event,) = await take(events, 1)
            assert event["type"] == "run.resumed"

    asyncio.run(watch())


def test_watchers_of_several_runs_each_get_their_own(followed: Followed) -> None:
    site, tail = followed.site, followed.tail
    runs = [site.do("make_run", owner="olga") for _ in range(3)]

    async def watch(run: str, started: asyncio.Event) -> list[dict[str, Any]]:
        async with aclosing(tail.follow(run)) as events:
            first = await take(events, 1)
            started.set()
            return first + await take_all(events)

    async def everybody() -> None:
        for run in runs:
            await do(site, "append", run=run, events=[("run.started", {"thread_id": run})])
        flags = {run: [asyncio.Event() for _ in range(4)] for run in runs}
        watching = {
            run: [asyncio.create_task(watch(run, flag)) for flag in flags[run]] for run in runs
        }
        for run in runs:
            for flag in flags[run]:
                await flag.wait()
        for run in runs:
            await do(site, "append", run=run, events=deltas(2, 5))
        for run in runs:
            end = [("run.completed", {"finish_reason": run})]
            await do(site, "append", run=run, events=end, status="completed")
        for run in runs:
            for events in await asyncio.gather(*watching[run]):
                assert [event["seq"] for event in events] == [1, 2, 3, 4, 5, 6]
                assert {event["run_id"] for event in events} == {run}
                assert events[-1]["data"] == {"finish_reason": run}

    asyncio.run(everybody())


def test_news_that_comes_together_with_a_page_is_not_lost(followed: Followed) -> None:
    site = followed.site
    run = site.do("make_run", owner="olga")
    site.do("append", run=run, events=deltas(1, 1))
    woken = threading.Event()
    source = followed.make_source()
    wait, waits = source.wait, itertools.count()

    def wait_with_news(watched: Collection[str]) -> Collection[str]:
        turn = next(waits)
        if turn == 0:
            site.do("append", run=run, events=deltas(2, 2))
        else:
            woken.set()
        return wait(watched)

    source.wait = wait_with_news  # type: ignore[method-assign]

    async def watch() -> None:
        async with aclosing(Tail(lambda: source).follow(run)) as events:
            first = asyncio.create_task(anext(events))
            await asyncio.sleep(0)  # the watcher has requested a page
            # Block this loop until the page and the news are both ready.
            assert woken.wait(HANG)
            assert (await first)["seq"] == 1
            assert [event["seq"] for event in await take(events, 1)] == [2]

    asyncio.run(watch())


def test_the_thread_ends_with_its_last_watcher_and_comes_back_with_the_next(
    followed: Followed,
) -> None:
    site = followed.site
    tail = Tail(followed.make_source)
    run = site.do("make_run", owner="olga")
    site.do("append", run=run, events=deltas(1, 1))
    assert not tail.is_running

    async def look() -> None:
        async with aclosing(tail.follow(run)) as events:
            await take(events, 1)
            assert tail.is_running

    for _ in range(2):
        asyncio.run(look())
        wait_until_stopped(tail)


def test_the_last_watcher_does_not_leave_the_thread_waiting_for_news(followed: Followed) -> None:
    site = followed.site
    source = followed.make_source()
    interrupt, interrupts = source.interrupt, itertools.count(1)
    source.interrupt = lambda: (next(interrupts), interrupt())  # type: ignore[method-assign]
    run = site.do("make_run", owner="olga")
    site.do("append", run=run, events=deltas(1, 1))

    async def look() -> int:
        async with aclosing(Tail(lambda: source).follow(run)) as events:
            await take(events, 1)
            return next(interrupts)

    before_leaving = asyncio.run(look())
    assert next(interrupts) > before_leaving + 1


def test_a_loop_that_ends_without_goodbye_leaves_no_watcher_behind(followed: Followed) -> None:
    site = followed.site
    tail = Tail(followed.make_source)
    run = site.do("make_run", owner="olga")
    site.do("append", run=run, events=deltas(1, 1))
    forgotten: list[AsyncGenerator[dict[str, Any], None]] = []

    async def look() -> None:
        events = tail.follow(run)
        forgotten.append(events)
        await take(events, 1)

    asyncio.run(look())
    wait_until_stopped(tail)


def test_two_event_loops_share_one_thread(followed: Followed) -> None:
    site = followed.site
    tail = Tail(followed.make_source)
    run = site.do("make_run", owner="olga")
    site.do("append", run=run, events=deltas(1, 1))
    both_watch = threading.Barrier(3, timeout=HANG)
    seen: list[list[int]] = []

    async def watch() -> None:
        async with aclosing(tail.follow(run)) as events:
            await take(events, 1)
            await asyncio.to_thread(both_watch.wait)
            seen.append([event["seq"] for event in await take_all(events)])

    threads = [threading.Thread(target=asyncio.run, args=[watch()]) for _ in range(2)]
    for thread in threads:
        thread.start()
    both_watch.wait()
    assert [thread.name for thread in threading.enumerate()].count("vel-tail") == 1
    site.do("append", run=run, events=[("run.completed", {})], status="completed")
    for thread in threads:
        thread.join(HANG)

    assert seen == [[2], [2]]


def test_a_slow_watcher_keeps_at_most_one_page_in_memory(followed: Followed) -> None:
    site = followed.site
    tail = Tail(followed.make_source)
    run = site.do("make_run", owner="olga")
    site.do("append", run=run, events=deltas(1, 1))

    async def watch() -> None:
        async with aclosing(tail.follow_stored(run)) as events:
            await anext(events)
            for batch in range(5):
                first = 2 + batch * PAGE_EVENTS
                await do(site, "append", run=run, events=deltas(first, first + PAGE_EVENTS - 1))
            second = await anext(events)
            held = sum(type(event) is type(second) for event in gc.get_objects())
            assert held <= PAGE_EVENTS
            last = 1 + 5 * PAGE_EVENTS
            async with asyncio.timeout(HANG):
                rest = [(await anext(events)).seq for _ in range(last - 2)]
            assert rest == list(range(3, last + 1))

    asyncio.run(watch())


@pytest.mark.parametrize("run", ["nobody", "", "no such/run", "\x00", "\ud800", "x" * 27])
def test_a_run_that_is_not_there_is_an_error(followed: Followed, run: str) -> None:
    with pytest.raises(RunNotFound):
        asyncio.run(take_all(followed.tail.follow(run)))


@pytest.mark.parametrize("after", [-1, 2**63])
def test_an_impossible_place_is_an_error(followed: Followed, after: int) -> None:
    run = followed.site.do("make_run", owner="olga")
    with pytest.raises(ValueError, match="last seq you have"):
        asyncio.run(take_all(followed.tail.follow(run, after=after)))


def test_a_run_deleted_meanwhile_is_an_error(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    # PostgreSQL notifies of events but not of deletions, which the watcher looks for during
    # silence.
    monkeypatch.setattr(postgres, "SILENCE_SECONDS", 0.2)
    site, tail = followed.site, followed.tail
    run = site.do("make_run", owner="olga")
    site.do("append", run=run, events=deltas(1, 1))

    async def watch() -> None:
        async with aclosing(tail.follow(run)) as events:
            await take(events, 1)
            await do(site, "delete_run", run=run)
            with pytest.raises(RunNotFound):
                await take(events, 1)

    asyncio.run(watch())
