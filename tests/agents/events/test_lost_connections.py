"""Watchers of a tail that loses its connection or fails get a delay or the error."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from contextlib import aclosing, suppress

import psycopg
import pytest

from agents.events import tail as tail_module
from agents.events.postgres import APPLICATION_NAME
from agents.events.read import Page
from agents.events.sqlite import EventSource
from agents.events.tail import Tail
from tests.agents.events.conftest import Followed
from tests.agents.events.following import deltas, do, take, take_all, wait_until_stopped


class FailingSource:
    """A source whose methods raise the errors in `due`, by the name of the method."""

    def __init__(
        self,
        source: EventSource,
        due: dict[str, list[Exception]],
        closing: Callable[[EventSource], object] = lambda source: None,
    ) -> None:
        self.closing = closing
        self._source = source
        self._due = due
        self.errors = source.errors
        self.interrupt = source.interrupt

    def open(self) -> None:
        self._fail("open")
        self._source.open()

    def wait(self, watched: Collection[str]) -> Collection[str]:
        self._fail("wait")
        return self._source.wait(watched)

    def read_page(self, run_id: str, after: int) -> Page | None:
        self._fail("read_page")
        return self._source.read_page(run_id, after)

    def close(self) -> None:
        self.closing(self)
        self._source.close()

    def _fail(self, method: str) -> None:
        if self._due.get(method):
            raise self._due[method].pop(0)


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail_module, "RECONNECT_SECONDS", 0.01)


@pytest.mark.parametrize("method", ["open", "wait", "read_page"])
def test_a_lost_connection_loses_no_event(
    followed: Followed, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    site = followed.site
    due: dict[str, list[Exception]] = {}
    tail = Tail(lambda: FailingSource(followed.make_source(), due))
    run = site.do("make_run", owner="olga")
    lost = followed.make_source().errors[0]
    due[method] = [lost("gone"), lost("gone again")]

    async def watch() -> None:
        async with aclosing(tail.follow(run)) as events:
            for seq in range(1, 6):
                await do(site, "append", run=run, events=deltas(seq, seq))
                (event,) = await take(events, 1)
                assert event["seq"] == seq
        assert not due[method]

    with caplog.at_level(logging.WARNING, logger="agents.events.tail"):
        asyncio.run(watch())
    assert [record.getMessage().rpartition(": ")[2] for record in caplog.records] == [
        "gone",
        "gone again",
    ]


def test_a_bug_reaches_the_watchers_and_does_not_persist(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("threading.excepthook", lambda args: None)
    site = followed.site
    due: dict[str, list[Exception]] = {"read_page": [ZeroDivisionError("a bug")]}
    tail = Tail(lambda: FailingSource(followed.make_source(), due))
    run = site.do("make_run", owner="olga")
    site.do("append", run=run, events=[("run.completed", {})], status="completed")

    with pytest.raises(ZeroDivisionError, match="a bug"):
        asyncio.run(take_all(tail.follow(run)))

    assert len(asyncio.run(take_all(tail.follow(run)))) == 1


@pytest.mark.parametrize("fault", ["a bug", "a lost connection", "nobody watches"])
def test_a_source_is_closed_even_without_a_loop_to_interrupt_it(
    followed: Followed, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr("threading.excepthook", lambda args: None)
    site = followed.site
    lost = followed.make_source().errors[0]
    errors = {"a bug": [ZeroDivisionError("a bug")], "a lost connection": [lost("gone")]}
    due: dict[str, list[Exception]] = {"read_page": errors.get(fault, [])}
    reachable: list[bool] = []

    def closing(source: EventSource) -> None:
        reachable.append(tail._source is source)

    tail = Tail(lambda: FailingSource(followed.make_source(), due, closing))
    run = site.do("make_run", owner="olga")
    site.do("append", run=run, events=[("run.completed", {})], status="completed")
    with suppress(ZeroDivisionError):
        asyncio.run(take_all(tail.follow(run)))
    wait_until_stopped(tail)
    assert reachable == [False] * (2 if fault == "a lost connection" else 1)


def test_a_bug_while_waiting_releases_all_watchers(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("threading.excepthook", lambda args: None)
    site = followed.site
    due: dict[str, list[Exception]] = {}
    tail = Tail(lambda: FailingSource(followed.make_source(), due))
    run = site.do("make_run", owner="olga")

    appended = 0
    taken: list[int] = []

    async def watch() -> None:
        nonlocal appended
        async with aclosing(tail.follow(run, after=len(taken))) as events:
            while len(taken) < 5:
                if appended == len(taken):
                    appended += 1
                    await do(site, "append", run=run, events=deltas(appended, appended))
                (event,) = await take(events, 1)
                taken.append(event["seq"])
                # The start causes the first rounds; the next one waits for news.
                if len(taken) == 3:
                    due["wait"] = [ZeroDivisionError("a bug")]

    # If the watcher is waiting for news, it does not notice the error. If it is asking for a page,
    # it gets the error and may ask again.
    try:
        asyncio.run(watch())
    except ZeroDivisionError:
        asyncio.run(watch())
    assert taken == [1, 2, 3, 4, 5]
    assert due == {"wait": []}


@pytest.mark.postgresql
@pytest.mark.parametrize("followed", ["postgresql"], indirect=True)
def test_a_listener_that_the_server_ends_comes_back(followed: Followed) -> None:
    site, tail = followed.site, followed.tail
    run = site.do("make_run", owner="olga")

    async def watch() -> None:
        async with aclosing(tail.follow(run)) as events:
            await do(site, "append", run=run, events=deltas(1, 1))
            await take(events, 1)
            for seq in (2, 3):
                assert await asyncio.to_thread(end_listeners, site.environment["DATABASE_URL"]) == 1
                await do(site, "append", run=run, events=deltas(seq, seq))
                (event,) = await take(events, 1)
                assert event["seq"] == seq

    asyncio.run(watch())


def end_listeners(url: str) -> int:
    """End the tail's connections, as a restart of the server does; return their number."""
    with psycopg.connect(url) as connection:
        ended = connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = %s AND datname = current_database()",
            [APPLICATION_NAME],
        ).fetchall()
    return len(ended)
