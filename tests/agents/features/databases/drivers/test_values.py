"""Returned values are exact and readable."""

from __future__ import annotations

import csv
import io
import sqlite3
from pathlib import Path

import pytest

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.inspect import describe_table, get_schema, list_tables
from agents.features.databases.drivers.table import QueryResult, unique_names
from agents.features.databases.drivers.target import DatabaseTarget
from sandbox.cancellation import Cancellation
from tests.agents.features.databases.drivers.shop import NOBODYS, ask


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


def test_columns_of_the_same_name_are_kept_apart(sqlite_shop: DatabaseTarget) -> None:
    result = ask(sqlite_shop, "SELECT a.id, b.id, a.name AS id_2 FROM customers a, customers b")
    assert result.columns == ("id", "id_3", "id_2")
    assert result.rows[1] == {"id": 1, "id_3": 2, "id_2": "Ada"}
    assert unique_names(["?", "?", "?"]) == ("?", "?_2", "?_3")


@pytest.mark.parametrize(
    "shop", ["sqlite_shop", pytest.param("postgres_shop", marks=pytest.mark.postgresql)]
)
def test_parameters_are_values_and_nothing_else(shop: str, request: pytest.FixtureRequest) -> None:
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


def test_the_table_is_one_line_a_row_and_says_what_it_leaves_out() -> None:
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
def test_the_schema_is_told(shop: str, schema: str, request: pytest.FixtureRequest) -> None:
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
