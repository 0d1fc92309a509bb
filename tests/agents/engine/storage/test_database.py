"""The engine's access to a database that is slow or fails."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from django.db import DatabaseError, connection, connections, transaction

from agents.engine.storage import database as engine_database
from agents.engine.storage.database import Database
from agents.models import Run
from agents.services.runs.wake import lock_run
from tests.agents.engine.by_hand import at_once, new_run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

T = TypeVar("T")

on_postgresql = pytest.mark.skipif("connection.vendor != 'postgresql'", reason="needs PostgreSQL")


def with_database(use: Callable[[Database], Awaitable[T]]) -> T:
    async def main() -> T:
        database = Database(asyncio.get_running_loop())
        try:
            return await use(database)
        finally:
            database.close()

    return asyncio.run(main())


def rename(run: Run, title: str) -> None:
    run.thread.title = title
    run.thread.save()


def fail(run: Run) -> None:
    rename(run, "never seen")
    raise ValueError("this one alone")


def title_of(run: Run) -> str:
    run.thread.refresh_from_db()
    return run.thread.title


@pytest.mark.slow
def test_one_of_many_that_share_a_transaction_fails_alone() -> None:
    runs = [new_run()[1] for _ in range(5)]

    async def use(database: Database) -> list[object]:
        jobs = [
            database.share(fail if number == 2 else rename, *arguments)
            for number, run in enumerate(runs)
            for arguments in [(run,) if number == 2 else (run, f"title {number}")]
        ]
        return await asyncio.gather(*jobs, return_exceptions=True)

    results = with_database(use)
    assert isinstance(results.pop(2), ValueError)
    assert results == [None] * 4
    assert [title_of(run) for run in runs] == ["title 0", "title 1", "Hello", "title 3", "title 4"]


def test_jobs_are_carried_out_in_the_order_in_which_they_were_asked_for() -> None:
    done: list[int] = []

    async def use(database: Database) -> None:
        ways = (database.share, database.run, database.share)
        await asyncio.gather(*(ways[number % 3](done.append, number) for number in range(60)))

    with_database(use)
    assert done == list(range(60))


def test_a_failure_after_the_callers_cancellation_is_one_line_without_a_traceback() -> None:
    """asyncio prints a traceback for a future whose exception is never retrieved."""
    begun, go_on = threading.Event(), threading.Event()
    complaints: list[str] = []

    def slow() -> None:
        begun.set()
        go_on.wait(30)
        raise DatabaseError("the server is gone")

    async def use(database: Database) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(str(context["message"])))
        task = asyncio.create_task(database.run(slow))
        await loop.run_in_executor(None, begun.wait, 30)
        task.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        del task
        await database.run(int)  # the thread releases its last job
        gc.collect()

    with_database(use)
    assert complaints == []


def test_a_cancelled_caller_waits_for_its_statement() -> None:
    _, run = new_run()
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        go_on.wait(30)
        rename(run, "done")

    async def use(database: Database) -> None:
        task = asyncio.create_task(database.run(slow))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    with_database(use)
    assert title_of(run) == "done"


def test_a_writer_that_finds_sqlite_locked_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("needs SQLite")
    monkeypatch.setattr(engine_database, "BUSY_SECONDS", 1)
    _, run = new_run()
    locked, tried = threading.Event(), threading.Event()

    class Told(engine_database.logging.Handler):
        def emit(self, record: engine_database.logging.LogRecord) -> None:
            tried.set()

    def hold() -> None:
        with transaction.atomic():
            Run.objects.update(source="held")
            locked.set()
            tried.wait(30)

    def write() -> str:
        locked.wait(30)

        async def use(database: Database) -> None:
            await database.run(rename, run, "written")

        with_database(use)
        return title_of(run)

    told = Told()
    engine_database.logger.addHandler(told)
    try:
        assert at_once(hold, write) == [None, "written"]
    finally:
        engine_database.logger.removeHandler(told)


@on_postgresql
def test_a_project_with_a_pool_has_its_own_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    default = connections.settings["default"]
    monkeypatch.setitem(default, "OPTIONS", {**default["OPTIONS"], "pool": True})

    async def count(database: Database) -> int:
        return await database.run(Run.objects.count)

    assert with_database(count) == 0


@on_postgresql
def test_a_lost_connection_affects_only_the_current_work() -> None:
    _, run = new_run()

    def backend() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            return int(cursor.fetchone()[0])

    def terminate(pid: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", [pid])
        connection.close()

    def lost() -> None:
        thread = threading.Thread(target=terminate, args=[backend()])
        thread.start()
        thread.join()
        rename(run, "never seen")

    async def use(database: Database) -> None:
        jobs = [database.run(lost), database.run(rename, run, "next"), database.share(backend)]
        results = await asyncio.gather(*jobs, return_exceptions=True)
        assert isinstance(results[0], DatabaseError)
        assert results[1] is None
        assert isinstance(results[2], int)

    with_database(use)
    assert title_of(run) == "next"


@pytest.mark.slow
@on_postgresql
def test_a_process_that_is_frozen_in_a_transaction_does_not_keep_its_locks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_database, "IDLE_SECONDS", 1)
    _, run = new_run()
    frozen, thawed = threading.Event(), threading.Event()

    def freeze() -> None:
        thawed.clear()
        lock_run(run.id)
        frozen.set()
        assert thawed.wait(30), "no other process got the lock"
        rename(run, "never seen")

    async def use(database: Database) -> None:
        # Twice: the second call uses the connection that Django opens after the loss.
        for _ in range(2):
            with pytest.raises(DatabaseError):
                await database.run(freeze)
        await database.run(rename, run, "next")

    def another() -> None:
        for _ in range(2):
            assert frozen.wait(30)
            frozen.clear()
            with transaction.atomic():
                lock_run(run.id)
            thawed.set()

    assert at_once(lambda: with_database(use), another) == [None, None]
    assert title_of(run) == "next"
