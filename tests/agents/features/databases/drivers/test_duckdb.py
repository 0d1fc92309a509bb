"""DuckDB is read-only: no write to the file, and no access outside of it."""

from __future__ import annotations

import hashlib
import os
import threading
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from agents.features.databases.drivers import inspect
from agents.features.databases.drivers.address import AddressRefused, address_of, checked_url
from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.own_database import OwnDatabase
from agents.features.databases.drivers.target import DatabaseTarget
from sandbox.cancellation import Cancellation
from tests.agents.features.databases.drivers.shop import NOBODYS, ask

ENDLESS = (
    "SELECT count(*) FROM range(100000000000) a, range(100000) b WHERE a.range % 7 = b.range % 5"
)

REFUSED = [
    "INSERT INTO orders VALUES (1, 1, 1)",
    "UPDATE orders SET total = 0",
    "DELETE FROM orders",
    "WITH x AS (SELECT 1) DELETE FROM orders",
    "CREATE TABLE x (y INT)",
    "CREATE TEMP TABLE x (y INT)",
    "CREATE TEMP MACRO f(x) AS x",
    "CREATE SECRET (TYPE s3, KEY_ID 'x')",
    "DROP TABLE orders",
    "TRUNCATE orders",
    "ATTACH '{beside}'",
    "ATTACH ':memory:' AS x",
    "ATTACH '/etc/passwd' AS x (TYPE sqlite)",
    "DETACH shop",
    "USE memory",
    "COPY orders TO '{beside}'",
    "COPY orders FROM '{there}'",
    "COPY (SELECT 1) TO '{beside}' (FORMAT parquet)",
    "EXPORT DATABASE '{beside}'",
    "IMPORT DATABASE '{beside}'",
    "SELECT * FROM read_csv('{there}')",
    "SELECT * FROM read_text('{there}')",
    "SELECT * FROM read_blob('/etc/passwd')",
    "SELECT * FROM read_parquet('{there}')",
    "SELECT * FROM '{there}'",
    "SELECT * FROM glob('/*')",
    "SELECT * FROM sniff_csv('{there}')",
    "SELECT * FROM parquet_metadata('{there}')",
    "SELECT * FROM read_csv('http://127.0.0.1:9/x')",
    "SELECT * FROM sqlite_scan('{there}', 'x')",
    "SELECT * FROM query('ATTACH ''x'' AS y')",
    "SELECT * FROM query('COPY orders TO ''{beside}''')",
    "SELECT getenv('HOME')",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '{there}'",
    "UPDATE EXTENSIONS",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "RESET lock_configuration",
    "SET memory_limit = '100GB'",
    "PRAGMA profiling_output = '{beside}'",
    "PRAGMA database_list",
    "CALL enable_logging()",
    "CALL pragma_version()",
    "CHECKPOINT",
    "FORCE CHECKPOINT",
    "VACUUM",
    "BEGIN",
    "COMMIT",
    "PREPARE x AS DELETE FROM orders",
    "EXPLAIN ANALYZE SELECT 1",
    "SELECT 1; SELECT 2",
    "SELECT 1; DELETE FROM orders",
    "",
    "-- nothing",
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> DatabaseTarget:
    path = tmp_path_factory.mktemp("duckdb") / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE customers (id INT PRIMARY KEY, name TEXT NOT NULL);"
            "CREATE TABLE orders (id INT PRIMARY KEY, customer_id INT REFERENCES customers (id),"
            " total DECIMAL(10, 2));"
            "CREATE VIEW totals AS SELECT sum(total) AS total FROM orders;"
            "INSERT INTO customers VALUES (1, 'Ada');"
            "INSERT INTO orders VALUES (10, 1, 19.99), (11, 1, 5);"
        )
    return DatabaseTarget("shop", f"duckdb:///{path}")


def place_of(shop: DatabaseTarget) -> Path:
    return Path(shop.url.removeprefix("duckdb:///"))


@pytest.mark.parametrize("statement", REFUSED)
def test_only_reading_is_possible(shop: DatabaseTarget, statement: str) -> None:
    path = place_of(shop)
    there = path.parent / "there.csv"
    there.write_text("a,b\n1,2\n")
    before, files = hashlib.sha256(path.read_bytes()).digest(), sorted(os.listdir(path.parent))
    query = statement.format(beside=path.parent / "beside", there=there)
    with pytest.raises(QueryFailed):
        ask(shop, query)
    assert hashlib.sha256(path.read_bytes()).digest() == before
    assert sorted(os.listdir(path.parent)) == files


def test_rows_and_values(shop: DatabaseTarget) -> None:
    query = "SELECT id, total, id > 10 AS late, NULL AS none, DATE '2026-01-02' AS day FROM orders"
    result = ask(shop, f"{query} WHERE id >= :least ORDER BY id", {"least": 10})
    assert result.columns == ("id", "total", "late", "none", "day")
    assert result.values == [
        (10, "19.99", False, None, "2026-01-02"),
        (11, "5.00", True, None, "2026-01-02"),
    ]
    cut = ask(replace(shop, max_rows=1), "FROM orders")
    assert (cut.row_count, cut.truncated) == (1, True)


def test_a_time_with_a_zone_is_read(shop: DatabaseTarget) -> None:
    result = ask(shop, "SELECT TIMESTAMPTZ '2026-01-02 03:04:05+00' AS at")
    assert str(result.values[0][0]).startswith("2026-01-0")


def test_the_schema_lists_tables_and_columns(shop: DatabaseTarget) -> None:
    cancel = Cancellation()
    tables = inspect.list_tables(shop, NOBODYS, cancel)
    assert ("main", "totals", "VIEW") in tables.values
    keys = {row[1:3]: row[5] for row in inspect.get_schema(shop, NOBODYS, cancel).values}
    assert keys["orders", "customer_id"] == "→ customers.id"
    assert keys["orders", "id"] == "PK"
    assert inspect.describe_table(shop, "orders", NOBODYS, cancel).row_count == 3
    with pytest.raises(QueryFailed, match="no table"):
        inspect.describe_table(shop, "x", NOBODYS, cancel)


@pytest.mark.slow
def test_a_statement_ends_in_time_and_when_it_is_cancelled(shop: DatabaseTarget) -> None:
    with pytest.raises(QueryFailed, match="stopped") as late:
        ask(replace(shop, statement_seconds=0.3), ENDLESS)
    assert late.value.code == "timeout"
    cancel = Cancellation()
    threading.Timer(0.3, cancel.cancel).start()
    with pytest.raises(QueryFailed, match="cancelled"):
        ask(shop, ENDLESS, cancel=cancel)


@pytest.mark.slow
def test_memory_is_bounded_and_nothing_is_spilled(shop: DatabaseTarget) -> None:
    files = sorted(os.listdir(place_of(shop).parent))
    with pytest.raises(QueryFailed, match=r"(?i)memory"):
        ask(shop, "SELECT list(range) FROM range(400000000)")
    assert sorted(os.listdir(place_of(shop).parent)) == files


def test_hidden_columns_cannot_be_read(shop: DatabaseTarget) -> None:
    with pytest.raises(QueryFailed, match="hide columns"):
        ask(replace(shop, hidden_columns=("customers.name",)), "SELECT 1")


def test_addresses(shop: DatabaseTarget) -> None:
    assert checked_url(shop.url) == shop.url
    assert str(address_of(shop.url)) == f"duckdb {place_of(shop)}"
    for path in ("/relative", "/:memory:", "h/x", f"/{place_of(shop)}?x=1"):
        url = f"duckdb://{path}"
        with pytest.raises(AddressRefused):
            checked_url(url)
    with pytest.raises(AddressRefused, match=r"PostgreSQL.*MySQL.*SQLite.*DuckDB"):
        checked_url("oracle://user@host/name")
    with pytest.raises(QueryFailed, match="own database"):
        ask(shop, "SELECT 1", own=OwnDatabase(path=str(place_of(shop))))
