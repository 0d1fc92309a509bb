"""data-query: queries of a SQLite file, and that they cannot change it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.skills_app.builtin.desk import Desk
from tests.skills_app.builtin.samples import make_shop

pytestmark = pytest.mark.bubblewrap

QUERY = "data-query/query_sqlite.py"


@pytest.fixture
def shop(desk: Desk, tmp_path: Path) -> str:
    return desk.upload("shop.db", make_shop(tmp_path / "shop.db"))


@pytest.mark.slow
def test_tables_columns_and_rows(desk: Desk, shop: str) -> None:
    assert desk.json(QUERY, shop, "tables", "--json")["rows"] == [
        ["customers", "table", 3],
        ["orders", "table", 4],
        ["paid", "view", 2],
    ]
    described = desk.json(QUERY, shop, "describe", "ORDERS", "--json")
    columns = [dict(zip(described["columns"], row, strict=True)) for row in described["rows"]]
    assert columns[1]["refers to"] == "customers.id"
    assert (columns[3]["type"], columns[3]["nulls"]) == ("REAL", 1)
    schema = desk.script(QUERY, shop, "schema").stdout
    assert "CREATE VIEW paid" in schema
    sums = desk.script(
        QUERY, shop, "run", "SELECT c.name, sum(o.amount) FROM orders o JOIN customers c "
        "ON c.id = o.customer_id GROUP BY 1 ORDER BY 1",
    )  # fmt: skip
    assert sums.stdout.splitlines()[2:] == ["| Ann \\| Co | 150.5 |", "| Bo | 20.25 |"]
    saved = "/sandbox/outputs/rows.csv"
    desk.script(
        QUERY, shop, "run", "SELECT id, amount FROM orders", "--format", "csv", "--output", saved
    )
    assert desk.output("rows.csv") == "id,amount\n1,100.5\n2,50.0\n3,20.25\n4,\n"


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM orders",
        "UPDATE orders SET amount = 0",
        "CREATE TABLE t (a)",
        "DROP VIEW paid",
        "SELECT 1; DROP TABLE orders",
        "PRAGMA writable_schema = 1",
        "PRAGMA journal_mode = DELETE",
        "ATTACH '/sandbox/workspace/x.db' AS x",
        "VACUUM INTO '/sandbox/workspace/x.db'",
        "SELECT load_extension('/sandbox/workspace/x.so')",
        "WITH x AS (SELECT 1) INSERT INTO orders SELECT 9, 1, '', 1, '' FROM x",
        "BEGIN EXCLUSIVE",
        "",
        "SELEC 1",
        "SELECT * FROM nothing",
    ],
)
def test_a_statement_that_does_not_read_is_refused(desk: Desk, tmp_path: Path, sql: str) -> None:
    """This also holds for a writable file: the script must not depend on the mount."""
    desk.upload("shop.db", make_shop(tmp_path / "shop.db"))
    script = "/sandbox/skills/data-query/scripts/query_sqlite.py"
    desk.upload("q.sql", sql)
    result = desk.run(
        "cp /sandbox/user_uploads/shop.db mine.db; chmod u+w mine.db; sha256sum mine.db > before\n"
        f"python3 {script} mine.db run --sql-file /sandbox/user_uploads/q.sql; echo code $?\n"
        "sha256sum -c before; ls"
    )
    assert result.stdout == "code 2\nmine.db: OK\nbefore\nmine.db\n", result.stderr
    assert "Traceback" not in result.stderr


def test_a_query_without_an_end_is_interrupted(desk: Desk, shop: str) -> None:
    endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT max(n) FROM r"
    result = desk.script(QUERY, shop, "run", endless, "--timeout", "0.5")
    assert result.exit_code == 2
    assert "more than 0.5 s" in result.stderr


def test_too_many_rows_are_cut_with_a_note(desk: Desk, shop: str) -> None:
    many = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r LIMIT 9"
    found = desk.json(QUERY, shop, "run", many, "--limit", "5", "--json")
    assert found["rows"] == [[1], [2], [3], [4], [5]]
    assert "there are more" in found["notes"][0]
    assert desk.json(QUERY, shop, "run", many, "--limit", "9", "--json")["notes"] == []


def test_values_that_no_text_format_has(desk: Desk, shop: str) -> None:
    found = desk.json(
        QUERY,
        shop,
        "run",
        "SELECT x'00ff', 9e999, NULL, CAST(x'ff41' AS TEXT), 1 AS a, 2 AS a",
        "--json",
    )
    assert found["rows"] == [["<2 bytes>", "inf", None, "\ufffdA", 1, 2]]


def test_changes_that_were_not_written_back_are_seen(desk: Desk, tmp_path: Path) -> None:
    """The database is in WAL mode, and is copied while a program has it open."""
    connection = sqlite3.connect(tmp_path / "live.db")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (a)")
    connection.execute("INSERT INTO t VALUES (42)")
    connection.commit()
    path = desk.upload("live.db", (tmp_path / "live.db").read_bytes())
    desk.upload("live.db-wal", (tmp_path / "live.db-wal").read_bytes())
    connection.close()
    found = desk.json(QUERY, path, "run", "SELECT a FROM t", "--json")
    assert found["rows"] == [[42]]
    assert "live.db-wal" in found["notes"][0]


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"a,b\n1,2\n", "csv-analytics"), (b"SQLite format 3\0" + b"\7" * 5000, "damaged"),
     (b"", "not a SQLite")],
)  # fmt: skip
def test_a_file_that_is_not_a_database_is_refused(desk: Desk, content: bytes, words: str) -> None:
    result = desk.script(QUERY, desk.upload("f.db", content), "tables")
    assert result.exit_code == 3
    assert words in result.stderr
    assert "Traceback" not in result.stderr
