"""Limits of rows, bytes, time and connections; nothing runs forever or leaks."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from agents.features.databases.drivers import pools
from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.postgresql.session import pool_of
from agents.features.databases.drivers.target import DatabaseTarget
from sandbox.cancellation import Cancellation
from tests.agents.features.databases.drivers.shop import PASSWORD, PASSWORD_IN_URL, admin_of, ask
from tests.support.hang import HANG
from tests.support.runs import wait_until

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "

BOTH = pytest.mark.parametrize(
    "shop", ["sqlite_shop", pytest.param("postgres_shop", marks=pytest.mark.postgresql)]
)


@pytest.fixture
def target(shop: str, request: pytest.FixtureRequest) -> DatabaseTarget:
    found: DatabaseTarget = request.getfixturevalue(shop)
    return found


@BOTH
def test_rows_are_limited_and_the_cut_is_reported(target: DatabaseTarget) -> None:
    limited = replace(target, max_rows=120)
    result = ask(limited, ENDLESS + "SELECT x FROM n LIMIT 121")
    assert (result.row_count, result.truncated) == (120, True)
    assert "first 120 rows" in result.notes[0]
    exact = ask(limited, ENDLESS + "SELECT x FROM n LIMIT 120")
    assert (exact.row_count, exact.truncated, exact.notes) == (120, False, ())
    assert exact.values[-1] == (120,)


@BOTH
def test_an_endless_result_ends_at_the_limit(target: DatabaseTarget) -> None:
    if target.url.startswith("postgres"):
        # PostgreSQL collects a function in FROM first, but returns one in the select list row by
        # row.
        query = "SELECT generate_series(1, 2000000000)"
    else:
        query = ENDLESS + "SELECT x FROM n"
    result = ask(target, query)
    assert (result.row_count, result.truncated) == (10_000, True)


@BOTH
def test_bytes_are_limited(target: DatabaseTarget) -> None:
    text = "'" + "x" * 1000 + "'"
    query = f"SELECT {text} FROM customers a, customers b, customers c, customers d"
    result = ask(replace(target, max_bytes=5_500), query)
    assert (result.row_count, result.truncated) == (5, True)
    assert "5,500 bytes" in result.notes[0]


@BOTH
def test_a_first_row_that_is_too_long_is_an_error(target: DatabaseTarget) -> None:
    """An empty result would mean that there are no rows."""
    with pytest.raises(QueryFailed, match=r"The first row has 1,0\d\d bytes, and at most 500"):
        ask(replace(target, max_bytes=500), "SELECT '" + "x" * 1000 + "'")


@pytest.mark.slow
@BOTH
def test_a_statement_that_takes_too_long_is_stopped(target: DatabaseTarget) -> None:
    with pytest.raises(QueryFailed) as stopped:
        ask(replace(target, statement_seconds=0.2), ENDLESS + "SELECT count(*) FROM n")
    assert stopped.value.code == "timeout"


@pytest.mark.slow
@BOTH
def test_a_cancelled_call_ends_its_statement(target: DatabaseTarget) -> None:
    cancel = Cancellation()
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(ask, target, ENDLESS + "SELECT count(*) FROM n", cancel=cancel)
        cancel.cancel()
        with pytest.raises(QueryFailed):
            running.result(timeout=HANG)


@pytest.mark.slow
@BOTH
def test_twenty_concurrent_statements_succeed(target: DatabaseTarget) -> None:
    with ThreadPoolExecutor(20) as threads:
        results = threads.map(
            lambda number: ask(target, "SELECT :n + 0 * count(*) FROM orders", {"n": number}),
            range(20),
        )
        assert [result.values[0][0] for result in results] == list(range(20))


def test_sqlite_has_its_own_limits(sqlite_shop: DatabaseTarget) -> None:
    for query in (
        "SELECT length(replace(hex(zeroblob(600000)), '00', 'xxxx'))",
        "SELECT " + "(" * 400 + "1" + ")" * 400,
        " UNION ALL ".join(["SELECT 1"] * 200),
        "SELECT " + "-" * 200_000 + "\n1",
    ):
        with pytest.raises(QueryFailed):
            ask(sqlite_shop, query)


@pytest.mark.postgresql
class TestPostgresql:
    def sessions(self, target: DatabaseTarget, url: str, state: str) -> Callable[[], int]:
        def count() -> int:
            with admin_of(target, url) as admin:
                row = admin.execute(
                    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'vel'"
                    " AND datname = current_database() AND state LIKE %s",
                    (state,),
                ).fetchone()
                assert row is not None
                return int(row[0])

        return count

    @pytest.mark.slow
    @pytest.mark.parametrize("how", ["cancel", "time"])
    def test_no_statement_continues_on_the_server(
        self, how: str, postgres_shop: DatabaseTarget, postgres_url: str
    ) -> None:
        active = self.sessions(postgres_shop, postgres_url, "active")
        cancel = Cancellation()
        # A statement that turns its own timeout off.
        with admin_of(postgres_shop, postgres_url) as admin:
            admin.execute(
                "CREATE FUNCTION endless() RETURNS void STABLE LANGUAGE sql"
                " AS $$ SELECT set_config('statement_timeout', '0', false) $$"
            )
        query = "SELECT endless(), pg_sleep(x * 3600) FROM generate_series(0, 1) x"
        target = replace(postgres_shop, statement_seconds=60 if how == "cancel" else 2)
        with ThreadPoolExecutor(1) as threads:
            running = threads.submit(ask, target, query, cancel=cancel)
            wait_until(lambda: active() == 1)
            if how == "cancel":
                cancel.cancel()
            with pytest.raises(QueryFailed):
                running.result(timeout=HANG)
        wait_until(lambda: active() == 0)
        # The connection is closed: a late cancellation could otherwise hit the next statement.
        assert self.sessions(postgres_shop, postgres_url, "%")() == 0
        assert ask(postgres_shop, "SELECT 1").row_count == 1

    @pytest.mark.slow
    def test_connections_are_few_reused_and_closed_when_idle(
        self, postgres_shop: DatabaseTarget, postgres_url: str
    ) -> None:
        every = self.sessions(postgres_shop, postgres_url, "%")

        def one(_: int) -> object:
            return ask(postgres_shop, "SELECT pg_backend_pid(), pg_sleep(0.01)").values[0][0]

        with ThreadPoolExecutor(12) as threads:
            pids = set(threads.map(one, range(24)))
        assert every() == len(pids) <= pools.MAX_CONNECTIONS
        assert one(0) in pids
        pools.close_idle(older_than=3600)
        assert every() == len(pids)
        pools.close_idle(older_than=0)
        wait_until(lambda: every() == 0)
        assert ask(postgres_shop, "SELECT 1").row_count == 1

    def test_a_cancelled_connection_is_not_used_again(self, postgres_shop: DatabaseTarget) -> None:
        pool, cancel = pool_of(postgres_shop), Cancellation()
        with pool.connection(5, cancel) as first:
            cancel.cancel()
        assert first.closed
        with pool.connection(5, Cancellation()) as second:
            pass
        assert not second.closed

    @pytest.mark.slow
    def test_waiting_for_a_connection_can_be_cancelled(
        self, postgres_shop: DatabaseTarget, postgres_url: str
    ) -> None:
        active = self.sessions(postgres_shop, postgres_url, "active")
        cancel, waiting = Cancellation(), Cancellation()
        with ThreadPoolExecutor(8) as threads:
            busy = [
                threads.submit(ask, postgres_shop, "SELECT pg_sleep(60)", cancel=cancel)
                for _ in range(pools.MAX_CONNECTIONS)
            ]
            wait_until(lambda: active() == pools.MAX_CONNECTIONS)
            late = threads.submit(ask, postgres_shop, "SELECT 1", cancel=waiting)
            waiting.cancel()
            with pytest.raises(QueryFailed, match="cancelled"):
                late.result(timeout=HANG)
            cancel.cancel()
            for running in busy:
                with pytest.raises(QueryFailed):
                    running.result(timeout=HANG)

    def test_a_lost_connection_is_replaced(
        self, postgres_shop: DatabaseTarget, postgres_url: str
    ) -> None:
        pid = ask(postgres_shop, "SELECT pg_backend_pid()").values[0][0]
        with admin_of(postgres_shop, postgres_url) as admin:
            admin.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
        assert ask(postgres_shop, "SELECT pg_backend_pid()").values[0][0] != pid

    @pytest.mark.slow
    def test_errors_are_the_servers_without_secrets(self, postgres_shop: DatabaseTarget) -> None:
        with pytest.raises(QueryFailed, match='column "totl" does not exist') as failed:
            ask(postgres_shop, "SELECT totl FROM orders")
        assert "orders.total" in str(failed.value)
        broken = replace(postgres_shop, url=postgres_shop.url.replace("//reader_", "//nobody_"))
        with pytest.raises(QueryFailed) as failed:
            ask(broken, "SELECT 1")
        for secret in (PASSWORD, PASSWORD_IN_URL):
            assert secret not in str(failed.value) + repr(broken)
            assert failed.value.__cause__ is None


def test_errors_are_sqlites(sqlite_shop: DatabaseTarget, tmp_path: Path) -> None:
    with pytest.raises(QueryFailed, match="no such column: totl") as failed:
        ask(sqlite_shop, "SELECT totl FROM orders")
    assert str(tmp_path) not in str(failed.value)


@pytest.mark.parametrize("url", ["postgresql://h/x", "postgresql://ada:sesame@/x"])
def test_the_workers_own_account_is_not_used(url: str) -> None:
    with pytest.raises(QueryFailed, match="must name a host and a user"):
        ask(DatabaseTarget("x", url), "SELECT 1")
