"""Returned values are exact and readable."""

from __future__ import annotations

import csv
import io
import sqlite3
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import pytest

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.inspect import describe_table, get_schema, list_tables
from agents.features.databases.drivers.table import QueryResult, unique_names
from agents.features.databases.drivers.target import DatabaseTarget
from sandbox.cancellation import Cancellation
from tests.agents.features.databases.drivers.mariadb_shop import target_of
from tests.agents.features.databases.drivers.shop import NOBODYS, ask

AT = datetime(2026, 3, 4, 3, 6, tzinfo=UTC)


def test_sqlites_values(sqlite_shop: DatabaseTarget) -> None:
    result = ask(sqlite_shop, "SELECT NULL, 1, 1.5, 'ä', x'00ff', 9e999, CAST(x'ff' AS TEXT)")
    assert result.values == [(None, 1, 1.5, "ä", "\\x00ff", "inf", "�")]


@pytest.mark.postgresql
def test_postgresqls_values(postgres_shop: DatabaseTarget) -> None:
    result = ask(
        postgres_shop,
        "SELECT NULL, 1::bigint, 1.5::float8, 'NaN'::float8, true,"
        " 12345678901234567890.10::numeric,"
        " date '2026-03-04', timestamp 'infinity', date '4713-01-01 BC', '\\x00ff'::bytea,"
        """ ARRAY[1, NULL], '{"a": [1]}'::jsonb, interval '1 day', 'ä'::text, int4range(1, 3)""",
    )
    assert result.values == [
        (None, 1, 1.5, "NaN", True, "12345678901234567890.10", "2026-03-04", "infinity",
         "4713-01-01 BC", "\\x00ff", "{1,NULL}", '{"a": [1]}', "1 day", "ä", "[1,3)")
    ]  # fmt: skip


NATIVE = {
    "sqlite": ("SELECT NULL, 1.5, x'00ff', 9e999", (None, 1.5, b"\x00\xff", float("inf"))),
    "postgresql": (
        """SELECT 1.50::numeric, date '2026-03-04', time '05:06', timestamptz '2026-03-04 05:06+02',
        interval '1 day', '\\x00ff'::bytea, ARRAY[1.5, NULL], ARRAY['a', 'b'], 'infinity'::float8,
        '{"\\u0001type": [1.5, {}]}'::jsonb, '00000000-0000-0000-0000-000000000001'::uuid,
        timestamp 'infinity', date '4713-01-01 BC', int4range(1, 3), 'NaN'::numeric = 'NaN'""",
        (
            Decimal("1.50"), date(2026, 3, 4), time(5, 6), AT, timedelta(days=1), b"\x00\xff",
            [Decimal("1.5"), None], ["a", "b"], float("inf"), {"\1type": [1.5, {}]}, UUID(int=1),
            "infinity", "4713-01-01 BC", "[1,3)", True,
        ),
    ),
    "mariadb": (
        """SELECT 1.50, DATE '2026-03-04', TIME '-01:02:03', TIMESTAMP '2026-03-04 05:06:00',
        x'00ff', 7, 1e0, NULL, CAST('0000-00-00' AS DATE), CAST(NULL AS DATE), JSON_ARRAY(1)""",
        (
            Decimal("1.50"), date(2026, 3, 4), -timedelta(hours=1, minutes=2, seconds=3),
            datetime(2026, 3, 4, 5, 6),  # noqa: DTZ001  # the type has no zone
            b"\x00\xff", 7, 1.0, None, "0000-00-00", None, "[1]",
        ),
    ),
    "duckdb": (
        """SELECT 1.50, DATE '2026-03-04', TIME '05:06', TIMESTAMPTZ '2026-03-04 05:06+02',
        INTERVAL 1 DAY, '\\x00\\xFF'::BLOB, [1.50, NULL], array_value(1, 2), MAP {7: ['a']},
        {'a': {'b': DATE '2026-03-04'}}, 1::HUGEINT << 100, true""",
        (
            Decimal("1.50"), date(2026, 3, 4), time(5, 6), AT, timedelta(days=1), b"\x00\xff",
            [Decimal("1.5"), None], [1, 2], {7: ["a"]}, {"a": {"b": date(2026, 3, 4)}}, 1 << 100,
            True,
        ),
    ),
}  # fmt: skip
"""For each database, a query, and the values of its row for a program."""


MARKS = {"postgresql": pytest.mark.postgresql, "mariadb": pytest.mark.mariadb}


@pytest.fixture
def any_shop(request: pytest.FixtureRequest, tmp_path: Path) -> DatabaseTarget:
    """One of the engines in `NATIVE`."""
    if request.param == "mariadb":
        return target_of(request.getfixturevalue("mariadb"), "reader")
    if request.param == "duckdb":
        duckdb.connect(str(tmp_path / "shop.duckdb")).close()
        return DatabaseTarget("shop", f"duckdb:///{tmp_path}/shop.duckdb")
    name = {"sqlite": "sqlite_shop", "postgresql": "postgres_shop"}[request.param]
    shop: DatabaseTarget = request.getfixturevalue(name)
    return shop


ENGINES = pytest.mark.parametrize(
    "any_shop", [pytest.param(name, marks=MARKS.get(name, ())) for name in NATIVE], indirect=True
)


@ENGINES
def test_a_program_gets_pythons_values(
    any_shop: DatabaseTarget, request: pytest.FixtureRequest
) -> None:
    query, expected = NATIVE[request.node.callspec.params["any_shop"]]
    (row,) = ask(replace(any_shop, native=True), query).values
    assert [(type(value), value) for value in row] == [(type(value), value) for value in expected]


SIMPLE = {
    Decimal("1.50"): "1.50", AT: "2026-03-04 03:06:00+00:00", date(2026, 3, 4): "2026-03-04",
    time(5, 6): "05:06:00", UUID(int=1): str(UUID(int=1)), b"\x00\xff": b"\x00\xff",
    -timedelta(hours=26, minutes=3, seconds=4, milliseconds=500): "-26:03:04.500000",
}  # fmt: skip
"""Values in databases with few types."""


@ENGINES
def test_the_values_of_rows_can_be_parameters(any_shop: DatabaseTarget) -> None:
    def back(value: Any) -> Any:
        return ask(replace(any_shop, native=True), "SELECT :a AS a", {"a": value}).values[0][0]

    has_types = any_shop.url.startswith(("postgresql", "duckdb"))
    assert [back(value) for value in SIMPLE] == list(SIMPLE if has_types else SIMPLE.values())
    nested = back({"a": [Decimal("1.50")]})
    assert nested in ({"a": [Decimal("1.50")]}, {"a": ["1.50"]}, '{"a": ["1.50"]}')
    with pytest.raises(QueryFailed, match="type object cannot be a parameter"):
        back([object()])


@ENGINES
def test_an_error_names_the_mistake(any_shop: DatabaseTarget) -> None:
    for query, params, expected in (
        ("SELECT :a + :b, ':c'", {"b": 1}, "params has no value for :a."),
        ("SELECT :a", None, "params has no value for :a."),
        ("INSERT INTO orders VALUES (1)", None, "INSERT is not allowed in read-only mode"),
        ("WITH a AS (SELECT 1) DELETE FROM b", None, "not allowed in read-only mode"),
        ("VACUUM", None, "VACUUM is not allowed in read-only mode"),
        ("-- nothing\n/* at all */ ;", None, "The statement is empty."),
    ):
        with pytest.raises(QueryFailed) as refused:
            ask(any_shop, query, params)
        assert expected in str(refused.value)


def test_columns_of_the_same_name_are_kept_apart(sqlite_shop: DatabaseTarget) -> None:
    result = ask(sqlite_shop, "SELECT a.id, b.id, a.name AS id_2 FROM customers a, customers b")
    assert result.columns == ("id", "id_3", "id_2")
    assert result.rows[1] == {"id": 1, "id_3": 2, "id_2": "Ada"}
    assert unique_names(["?", "?", "?"]) == ("?", "?_2", "?_3")


@pytest.mark.parametrize(
    "shop", ["sqlite_shop", pytest.param("postgres_shop", marks=pytest.mark.postgresql)]
)
def test_parameters_are_only_values(shop: str, request: pytest.FixtureRequest) -> None:
    target = request.getfixturevalue(shop)
    query = "SELECT name, ':name', '1:2' FROM customers WHERE name = :name OR id = :id -- :x"
    assert ask(target, query, {"name": "Ada", "id": 7}).values == [("Ada", ":name", "1:2")]
    hostile = "x' OR 1 = 1; DELETE FROM orders; --"
    assert ask(target, query, {"name": hostile, "id": 7}).values == []
    assert ask(target, "SELECT CAST(:a AS TEXT), :b + 1", {"a": None, "b": 2}).values[0][1] == 3
    with pytest.raises(QueryFailed):
        ask(target, query, {"name": "Ada"})


@pytest.mark.postgresql
def test_postgresql_takes_lists_and_casts(postgres_shop: DatabaseTarget) -> None:
    query = "SELECT count(*)::int FROM orders WHERE id = ANY(:ids)"
    assert ask(postgres_shop, query, {"ids": [10, 12, 99]}).values == [(2,)]
    assert ask(postgres_shop, "SELECT :j::jsonb ->> 'a', $$:j$$", {"j": {"a": "b"}}).values == [
        ("b", ":j")
    ]


def test_sqlite_takes_lists_as_json(sqlite_shop: DatabaseTarget) -> None:
    query = "SELECT count(*) FROM orders WHERE id IN (SELECT value FROM json_each(:ids))"
    assert ask(sqlite_shop, query, {"ids": [10, 12, 99]}).values == [(2,)]


def test_the_table_has_one_line_for_each_row_and_reports_omissions() -> None:
    values = [("a|b\nc", None, "x" * 500)] * 25
    result = QueryResult(("one", "two", "three"), values)
    lines = result.to_markdown_table(max_rows=3).splitlines()
    assert lines[:2] == ["| one | two | three |", "| --- | --- | --- |"]
    assert lines[2].startswith("| a\\|b c | NULL | xxx")
    assert lines[2].endswith("x… (500 characters) |")
    assert lines[-1] == "Showing 3 of 25 rows"
    assert QueryResult(("one",)).to_markdown_table().endswith("No rows")
    assert result.to_dict()["rows"][0]["three"] == "x" * 500
    assert set(result.to_dict()) == {
        "columns", "rows", "row_count", "truncated", "success", "error"
    }  # fmt: skip
    failed = QueryResult(error="no such table")
    assert failed.to_dict()["success"] is False
    assert failed.to_markdown_table() == "Error: no such table"


def test_the_csv_is_whole() -> None:
    values = [('a,"b"\n', None, "", 1.5, "ä"), ("\r", "x" * 500, " ", True, 7)]
    text = QueryResult(("a", "b", "c,d", "e", "f"), values).to_csv().decode()
    assert list(csv.reader(io.StringIO(text, newline=""))) == [
        ["a", "b", "c,d", "e", "f"],
        ['a,"b"\n', "", "", "1.5", "ä"],
        ["\r", "x" * 500, " ", "True", "7"],
    ]
    assert ',,"",' in text, "NULL and an empty text differ"


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("shop", "schema"),
    [
        ("sqlite_shop", "main"),
        pytest.param("postgres_shop", "public", marks=pytest.mark.postgresql),
    ],
)
def test_the_schema_is_described(shop: str, schema: str, request: pytest.FixtureRequest) -> None:
    target = request.getfixturevalue(shop)
    assert list_tables(target, NOBODYS, Cancellation()).values == [
        (schema, "addresses", "VIEW"),
        (schema, "customers", "BASE TABLE"),
        (schema, "orders", "BASE TABLE"),
    ]
    rows = get_schema(target, NOBODYS, Cancellation()).values
    assert (schema, "customers", "name", "TEXT", "NO", "") in rows
    assert (schema, "orders", "total", "NUMERIC(10, 2)", "YES", "") in rows
    for name in ("orders", f"{schema}.orders"):
        described = describe_table(target, name, NOBODYS, Cancellation())
        assert described.columns == (
            "column_name", "data_type", "is_nullable", "column_default", "key"
        )  # fmt: skip
        assert described.values[0][0::4] == ("id", "PK")
        assert described.values[1][0::4] == ("customer_id", "→ customers.id")
    for name in ("gone", "'; DELETE FROM orders; --", "sqlite_master"):
        with pytest.raises(QueryFailed, match="list_tables"):
            describe_table(target, name, NOBODYS, Cancellation())


def test_a_schema_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "odd.sqlite3"
    connection = sqlite3.connect(path)
    connection.executescript("CREATE TABLE a (b); CREATE VIEW c AS SELECT b FROM a; DROP TABLE a;")
    connection.close()
    with pytest.raises(QueryFailed, match="no such table"):
        get_schema(DatabaseTarget("odd", f"sqlite:///{path}"), NOBODYS, Cancellation())
