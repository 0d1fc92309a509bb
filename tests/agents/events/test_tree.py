"""Follow a run with all its subagents, on both databases."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from agents.events import tree
from agents.events.read import RunNotFound
from agents.events.tree import follow_tree
from tests.agents.events.conftest import Followed
from tests.agents.events.following import deltas, do, wait_until_stopped
from tests.support.hang import HANG

Seen = list[tuple[str, int, str]]


async def collect(followed: Followed, run: str, **options: Any) -> Seen:
    async with asyncio.timeout(HANG):
        events = follow_tree(run, source=followed.tail, **options)
        return [(event.run_id, event.seq, event.type) async for event in events]


def family(followed: Followed) -> tuple[str, str, str, str]:
    """Create a run, its two subagents, and a subagent of the first, all ended."""
    site = followed.site
    run = site.do("make_run", owner="olga")
    first, second = (site.do("make_child", parent=run, task=task) for task in ("a", "b"))
    deeper = site.do("make_child", parent=first, task="c", name="plan")
    site.do("end", run=deeper, status="completed", events=deltas(1, 250))
    site.do("end", run=second, status="failed", events=deltas(1, 3))
    site.do("end", run=first, status="completed", events=deltas(2, 5))
    site.do("append", run=run, events=[("run.completed", {})], status="completed")
    return run, first, second, deeper


def test_each_runs_events_come_once_and_between_its_beginning_and_its_end(
    followed: Followed,
) -> None:
    run, first, second, deeper = family(followed)
    seen = asyncio.run(collect(followed, run))
    for member, count in ((run, 5), (first, 7), (second, 4), (deeper, 251)):
        assert [seq for owner, seq, _ in seen if owner == member] == list(range(1, count + 1))
    for parent, child, began, ended in (
        (run, first, 1, 4),
        (run, second, 2, 3),
        (first, deeper, 1, 2),
    ):
        places = [place for place, (owner, _, _) in enumerate(seen) if owner == child]
        assert seen.index((parent, began, "subagent.started")) < min(places)
        assert max(places) < seen.index((parent, ended, "subagent.finished"))
    assert seen[-1] == (run, 5, "run.completed")


def test_the_brief_form_has_only_status_changes_of_subagents(followed: Followed) -> None:
    run, _, second, deeper = family(followed)
    seen = asyncio.run(collect(followed, run, brief=True))
    assert [kind for owner, _, kind in seen if owner == deeper] == ["run.completed"]
    assert [kind for owner, _, kind in seen if owner == second] == ["run.failed"]
    assert [seq for owner, seq, _ in seen if owner == run] == [1, 2, 3, 4, 5]


def test_a_subagent_that_one_may_not_see_is_left_out_with_all_below_it(
    followed: Followed,
) -> None:
    run, _, second, _ = family(followed)

    async def may_follow(run_id: str) -> bool:
        return run_id == second

    seen = asyncio.run(collect(followed, run, may_follow=may_follow))
    assert {owner for owner, _, _ in seen} == {run, second}


def test_subagents_that_start_later_are_followed_live(followed: Followed) -> None:
    site = followed.site
    run = site.do("make_run", owner="olga")

    async def watch() -> None:
        events = follow_tree(run, source=followed.tail)
        async with aclosing(events), asyncio.timeout(HANG):
            child = await do(site, "make_child", parent=run)
            started = await anext(events)
            assert (started.run_id, started.type) == (run, "subagent.started")
            await do(site, "append", run=child, events=deltas(1, 1))
            assert (await anext(events)).run_id == child
            await do(site, "end", run=child, status="completed", events=[])
            rest = [(await anext(events)).type for _ in range(2)]
            assert rest == ["run.completed", "subagent.finished"]

    asyncio.run(watch())
    wait_until_stopped(followed.tail)


def test_the_stream_ends_only_after_all_subagents(followed: Followed) -> None:
    """A subagent that a worker drives ends shortly after the run that started it."""
    site = followed.site
    run = site.do("make_run", owner="olga")
    child = site.do("make_child", parent=run)
    site.do("append", run=run, events=[("run.completed", {})], status="completed")

    async def watch() -> Seen:
        reading = asyncio.create_task(collect(followed, run))
        await do(site, "append", run=child, events=[("run.cancelled", {})], status="cancelled")
        return await reading

    assert (child, 1, "run.cancelled") in asyncio.run(watch())


def test_over_the_limit_only_parents_are_followed(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "MAX_FOLLOWED", 1)
    site = followed.site
    run = site.do("make_run", owner="olga")
    first, second = (site.do("make_child", parent=run, task=task) for task in ("a", "b"))
    site.do("end", run=second, status="completed", events=[])
    site.do("end", run=first, status="completed", events=[])
    site.do("append", run=run, events=[("run.completed", {})], status="completed")
    seen = asyncio.run(collect(followed, run))
    assert {owner for owner, _, _ in seen} == {run, first}
    assert [kind for owner, _, kind in seen if owner == run].count("subagent.finished") == 2


def test_a_run_that_is_not_there_is_an_error(followed: Followed) -> None:
    with pytest.raises(RunNotFound):
        asyncio.run(collect(followed, "01jb0000000000000000000000"))


def test_leaving_early_leaves_no_watcher_behind(followed: Followed) -> None:
    site = followed.site
    run = site.do("make_run", owner="olga")
    child = site.do("make_child", parent=run)
    site.do("append", run=child, events=deltas(1, 500))

    async def leave() -> None:
        events = follow_tree(run, source=followed.tail)
        async with aclosing(events), asyncio.timeout(HANG):
            await anext(events)
            await anext(events)

    asyncio.run(leave())
    wait_until_stopped(followed.tail)
