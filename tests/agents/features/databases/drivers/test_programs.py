"""Writes from a program need no approval, and wait for each other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from agents.features.databases import middleware
from agents.features.databases.drivers.changes import Changes
from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.pools import close_idle
from agents.features.databases.drivers.target import DatabaseTarget
from agents.features.databases.drivers.write import write_now
from agents.sdk.components.databases import QueryResult
from sandbox.cancellation import Cancellation
from tests.agents.features.databases.drivers.shop import NOBODYS, ask, make_sqlite
from vel import DatabaseBackend, DatabaseMiddleware, SetupError

SHOPS = pytest.mark.parametrize(
    "shop",
    ["sqlite_shop", pytest.param("writer_shop", marks=pytest.mark.postgresql)],
    indirect=True,
)
ONE_ROW = "UPDATE orders SET total = total + 1 WHERE id = 10"


@pytest.fixture
def shop(request: pytest.FixtureRequest) -> DatabaseTarget:
    target: DatabaseTarget = request.getfixturevalue(request.param)
    return replace(target, allow_writes=True)


def write(target: DatabaseTarget, query: str) -> Changes:
    return write_now(target, query, None, NOBODYS, Cancellation())


def in_program(backend: DatabaseBackend, *queries: str) -> list[QueryResult]:
    """Run all queries at the same time."""

    async def run() -> list[QueryResult]:
        try:
            return await asyncio.gather(*(backend.execute(query) for query in queries))
        finally:
            await backend.close()
            close_idle(older_than=0)

    return asyncio.run(run())


@SHOPS
def test_a_missing_parameter_is_named_where_writing_is_possible(shop: DatabaseTarget) -> None:
    for query in ("UPDATE orders SET total = :a WHERE id = :b", "SELECT :a, :b"):
        with pytest.raises(QueryFailed, match=r"^params has no value for :b\.$") as refused:
            write_now(shop, query, {"a": 1}, NOBODYS, Cancellation())
        assert refused.value.code == "invalid"


@pytest.mark.django_db(transaction=True)
def test_a_program_gets_the_error_of_its_write(tmp_path: Path) -> None:
    url = make_sqlite(tmp_path / "shop.sqlite3").url
    backend = DatabaseBackend({"default": url}, read_only=False)
    (result,) = in_program(backend, "UPDATE orders SET total = 1 WHERE id = :b")
    assert result.error == "params has no value for :b."


@SHOPS
def test_statements_at_the_same_time_wait_for_each_other(shop: DatabaseTarget) -> None:
    inserts = [f"INSERT INTO customers VALUES ({n}, 'c', NULL)" for n in range(20, 24)]
    with ThreadPoolExecutor(8) as threads:
        done = list(threads.map(lambda query: write(shop, query), [ONE_ROW] * 4 + inserts))
    assert [changes.row_count for changes in done] == [1] * 8
    found = ask(shop, "SELECT total FROM orders WHERE id = 10")
    assert float(found.rows[0]["total"]) == pytest.approx(23.99)


@SHOPS
def test_a_statement_without_matching_rows_is_not_an_error(shop: DatabaseTarget) -> None:
    assert write(shop, "DELETE FROM orders WHERE id = 99").row_count == 0


@SHOPS
def test_a_refusal_names_the_possible_statements(shop: DatabaseTarget) -> None:
    with pytest.raises(QueryFailed, match="INSERT, UPDATE") as refused:
        write(shop, "CREATE TABLE q (i INT)")
    assert "exactly one SELECT, VALUES" not in str(refused.value)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_program_writes_at_the_same_time(tmp_path: Path) -> None:
    backend = DatabaseBackend({"shop": make_sqlite(tmp_path / "shop.sqlite3").url}, read_only=False)
    results = in_program(backend, *[ONE_ROW] * 5)
    assert [(result.error, result.row_count) for result in results] == [(None, 1)] * 5


@pytest.mark.django_db(transaction=True)
def test_a_program_gets_values_and_a_model_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import duckdb  # an extra

    monkeypatch.chdir(tmp_path)
    duckdb.connect("shop.duckdb").close()
    backend = DatabaseBackend({"shop": "duckdb:///shop.duckdb"})
    query = "SELECT 1.50 AS a, DATE '2026-03-04' AS b, [1, 2] AS c"
    (result,) = in_program(backend, query)
    assert result.rows == [{"a": Decimal("1.50"), "b": date(2026, 3, 4), "c": [1, 2]}]
    assert "| 1.50 | 2026-03-04 | [1, 2] |" in result.to_markdown_table()
    tools = DatabaseMiddleware(backend).get_tools()
    assert [tool.name for tool in tools] == [
        tool.name for tool in middleware.DatabaseMiddleware().every_tool()
    ]
    given = tools[0].signature.model.model_validate({"sql": query, "connection": "shop"})
    told = asyncio.run(tools[0](**given.model_dump()))
    assert told["rows"] == [{"a": "1.50", "b": "2026-03-04", "c": "[1, 2]"}]
    asyncio.run(backend.close())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda shop: shop.execute(None), "query must be a text, got None"),
        (lambda shop: shop.execute("SELECT 1", 5), "database must be a text, got 5"),
        (lambda shop: shop.execute("SELECT :a", params=[1]), "params must be a dictionary"),
        (lambda shop: shop.execute("SELECT :a", params={1: 2}), "params must be a dictionary"),
        (lambda shop: shop.get_schema(None), "database must be a text, got None"),
        (lambda shop: shop.describe_table(None), "table must be a text, got None"),
    ],
)
def test_a_wrong_argument_is_named(
    call: Callable[[DatabaseBackend], Coroutine[Any, Any, QueryResult]], message: str
) -> None:
    with pytest.raises(SetupError, match=message):
        asyncio.run(call(DatabaseBackend({"shop": "sqlite:///shop.sqlite3"})))


def test_a_cut_table_reports_more_rows() -> None:
    result = QueryResult(["a"], [{"a": 1}], 1, truncated=True)
    assert result.to_markdown_table().endswith("There are more rows, which were not read.")


@pytest.mark.django_db(transaction=True)
def test_a_program_learns_which_databases_can_only_be_read(tmp_path: Path) -> None:
    import duckdb  # an extra

    with closing(duckdb.connect(str(tmp_path / "shop.duckdb"))) as connection:
        connection.execute("CREATE TABLE t (a INT)")
    backend = DatabaseBackend({"shop": f"duckdb:///{tmp_path}/shop.duckdb"}, read_only=False)
    (result,) = in_program(backend, "INSERT INTO t VALUES (1)")
    assert "DuckDB databases can only be read." in str(result.error)
