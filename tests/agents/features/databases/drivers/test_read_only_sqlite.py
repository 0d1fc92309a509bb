"""Agents cannot change anything in SQLite."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from pathlib import Path

import pytest

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.own_database import OwnDatabase
from agents.features.databases.drivers.sqlite.read import read_only_sqlite
from agents.features.databases.drivers.target import DatabaseTarget
from tests.agents.features.databases.drivers.shop import TABLES, ask, make_sqlite

ATTEMPTS = {
    "insert": "INSERT INTO customers VALUES (9, 'x', 'y')",
    "update": "UPDATE customers SET name = 'x'",
    "delete": "DELETE FROM orders",
    "replace": "REPLACE INTO customers VALUES (1, 'x', 'y')",
    "returning": "DELETE FROM orders RETURNING id",
    "cte": "WITH x AS (SELECT 1) DELETE FROM orders",
    "cte-insert": "WITH x(a, b, c) AS (VALUES (9, 'x', 'y')) INSERT INTO customers SELECT * FROM x",
    "upsert": "INSERT INTO customers VALUES (1, 'x', 'y') ON CONFLICT DO UPDATE SET name = 'x'",
    "drop": "DROP TABLE orders",
    "alter": "ALTER TABLE orders ADD COLUMN x",
    "create": "CREATE TABLE x (y)",
    "create-as": "CREATE TABLE x AS SELECT * FROM orders",
    "index": "CREATE INDEX x ON orders (total)",
    "view": "CREATE VIEW x AS SELECT 1",
    "trigger": "CREATE TRIGGER x AFTER INSERT ON orders BEGIN DELETE FROM orders; END",
    "temp-table": "CREATE TEMP TABLE x (y)",
    "temp-view": "CREATE TEMP VIEW x AS SELECT 1",
    "temp-trigger": "CREATE TEMP TRIGGER x AFTER INSERT ON orders BEGIN SELECT 1; END",
    "virtual-table": "CREATE VIRTUAL TABLE x USING fts5(y)",
    "several": "SELECT 1; DELETE FROM orders",
    "several-commented": "SELECT 1 /* ; */ ; DELETE FROM orders --",
    "comment-first": "/* SELECT */ DELETE FROM orders",
    "case": "dElEtE fRoM orders",
    "attach": "ATTACH '{beside}' AS x",
    "attach-memory": "ATTACH ':memory:' AS x",
    "attach-shared": "ATTACH 'file:{beside}?mode=rwc' AS x",
    "detach": "DETACH main",
    "vacuum": "VACUUM",
    "vacuum-into": "VACUUM INTO '{beside}'",
    "analyze": "ANALYZE",
    "reindex": "REINDEX",
    "begin": "BEGIN IMMEDIATE",
    "commit": "COMMIT",
    "rollback": "ROLLBACK",
    "savepoint": "SAVEPOINT x",
    "release": "RELEASE x",
    "query-only-off": "PRAGMA query_only = OFF",
    "query-only-function": "SELECT * FROM pragma_query_only(0)",
    "user-version": "PRAGMA user_version = 7",
    "user-version-call": "PRAGMA user_version(7)",
    "user-version-function": "SELECT * FROM pragma_user_version(7)",
    "application-id": "PRAGMA application_id = 7",
    "journal": "PRAGMA journal_mode = WAL",
    "journal-off": "PRAGMA journal_mode(OFF)",
    "writable-schema": "PRAGMA writable_schema = ON",
    "schema-version": "PRAGMA main.schema_version = 99",
    "checkpoint": "PRAGMA wal_checkpoint(TRUNCATE)",
    "optimize": "PRAGMA optimize",
    "vacuum-pragma": "PRAGMA incremental_vacuum",
    "locking": "PRAGMA locking_mode = EXCLUSIVE",
    "database-list": "PRAGMA database_list",
    "temp-directory": "PRAGMA temp_store_directory = '/'",
    "schema-row": "UPDATE sqlite_master SET sql = ''",
    "load-extension": "SELECT load_extension('{beside}')",
    "tokenizer": "SELECT fts3_tokenizer('simple', x'4141414141414141')",
    "writefile": "SELECT writefile('{beside}', 'x')",
    "readfile": "SELECT readfile('/etc/passwd')",
    "edit": "SELECT edit('x', 'touch {beside}')",
    "explain-write": "EXPLAIN DELETE FROM orders",
    "statistics": "SELECT * FROM dbstat",
    "unknown-function": "SELECT sqlite_compileoption_get(1)",
}  # fmt: skip


def contents(path: Path) -> str:
    """Return a checksum of the file and of its dump."""
    connection = sqlite3.connect(path)
    dump = "\n".join(connection.iterdump())
    connection.close()
    return hashlib.sha256(path.read_bytes() + dump.encode()).hexdigest()


@pytest.mark.parametrize("name", ATTEMPTS)
def test_no_attempt_changes_anything(
    name: str, sqlite_shop: DatabaseTarget, tmp_path: Path
) -> None:
    path = tmp_path / "shop.sqlite3"
    before, beside = contents(path), tmp_path / "beside"
    with pytest.raises(QueryFailed) as refused:
        ask(sqlite_shop, ATTEMPTS[name].replace("{beside}", str(beside)))
    assert str(tmp_path) not in str(refused.value)
    assert contents(path) == before
    assert os.listdir(tmp_path) == ["shop.sqlite3"]
    assert ask(sqlite_shop, "SELECT count(*) FROM orders").values == [(3,)]


def test_the_file_is_read_only_even_without_the_authorizer(sqlite_shop: DatabaseTarget) -> None:
    with read_only_sqlite(sqlite_shop, OwnDatabase()) as (connection, _):
        connection.set_authorizer(None)
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            connection.execute("DELETE FROM orders")
        connection.execute("PRAGMA query_only = OFF")
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            connection.execute("DELETE FROM orders")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM orders;",
        "SELECT 1 -- done",
        "  /* a */ WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 3) "
        "SELECT sum(x), group_concat(x) FROM n",
        "VALUES (1), (2)",
        "EXPLAIN QUERY PLAN SELECT * FROM orders",
        "PRAGMA table_info(orders)",
        "SELECT name FROM pragma_table_info('orders')",
        "SELECT 'DELETE FROM orders; DROP TABLE x'",
        "SELECT value FROM json_each('[1, 2]')",
        "SELECT rank() OVER (ORDER BY total), strftime('%Y', 'now') FROM orders",
        "SELECT upper(name), name LIKE 'a%', json_object('a', 1) ->> 'a' FROM customers",
    ],
)
def test_reading_statements_are_allowed(query: str, sqlite_shop: DatabaseTarget) -> None:
    assert ask(sqlite_shop, query).row_count > 0


def test_a_database_in_wal_mode_is_read_with_its_log(tmp_path: Path) -> None:
    path = tmp_path / "wal.sqlite3"
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.executescript(TABLES)
    writer.execute("DELETE FROM orders WHERE id = 12")
    assert (tmp_path / "wal.sqlite3-wal").stat().st_size > 0
    target = DatabaseTarget("wal", f"sqlite:///{path}")
    assert ask(target, "SELECT count(*) FROM orders").values == [(2,)]
    with pytest.raises(QueryFailed):
        ask(target, "DELETE FROM orders")
    assert writer.execute("SELECT count(*) FROM orders").fetchone() == (2,)
    writer.close()


def test_full_text_tables_are_searched_and_not_written(tmp_path: Path) -> None:
    path = tmp_path / "text.sqlite3"
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE VIRTUAL TABLE notes USING fts5(body); INSERT INTO notes VALUES ('beans'), ('tea');"
    )
    connection.close()
    target, before = DatabaseTarget("text", f"sqlite:///{path}"), path.read_bytes()
    found = ask(target, "SELECT snippet(notes, 0, '[', ']', '', 5) FROM notes('beans')")
    assert found.values == [("[beans]",)]
    for query in ("INSERT INTO notes(notes) VALUES ('rebuild')", "DELETE FROM notes_data"):
        with pytest.raises(QueryFailed):
            ask(target, query)
    assert path.read_bytes() == before


def test_each_statement_starts_with_a_clean_connection(sqlite_shop: DatabaseTarget) -> None:
    for _ in range(3):
        assert ask(sqlite_shop, "SELECT total_changes(), last_insert_rowid()").values == [(0, 0)]


@pytest.mark.parametrize(
    "url",
    ["sqlite://", "sqlite:///:memory:", "sqlite:///gone.sqlite3", "sqlite:///{shop}?mode=rwc",
     "sqlite:///file:{shop}?mode=rwc&uri=true", "sqlite:////dev/null", "sqlite:////tmp",
     "oracle://root@localhost/x", "not a url"],
)  # fmt: skip
def test_only_a_plain_file_that_is_there_is_opened(
    url: str, sqlite_shop: DatabaseTarget, tmp_path: Path
) -> None:
    shop = sqlite_shop.url.removeprefix("sqlite:///")
    with pytest.raises(QueryFailed) as refused:
        ask(DatabaseTarget("odd", url.replace("{shop}", shop)), "SELECT 1")
    assert refused.value.code == "configuration"
    assert os.listdir(tmp_path) == ["shop.sqlite3"]


def test_vels_own_database_is_refused_by_any_name(tmp_path: Path) -> None:
    path = tmp_path / "vel.sqlite3"
    make_sqlite(path)
    (tmp_path / "link").symlink_to(path)
    os.link(path, tmp_path / "hard")
    (tmp_path / "vel.sqlite3-wal").write_bytes(b"")
    own = OwnDatabase(path=str(path))
    for name in ("vel.sqlite3", "link", "hard", "../" + tmp_path.name + "/hard", "vel.sqlite3-wal"):
        with pytest.raises(QueryFailed, match="own database"):
            ask(DatabaseTarget("x", f"sqlite:///{tmp_path}/{name}"), "SELECT 1", own=own)
    other = make_sqlite(tmp_path / "other.sqlite3")
    assert ask(other, "SELECT 1", own=own).values == [(1,)]
