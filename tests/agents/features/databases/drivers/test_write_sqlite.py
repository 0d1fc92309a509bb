"""Writes to SQLite: the results and traces of a trial, and refused statements."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.features.databases.drivers.changes import Changes
from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.sqlite import recorder as sqlite_recorder
from agents.features.databases.drivers.sqlite.write import try_sqlite, write_sqlite
from agents.features.databases.drivers.target import DatabaseTarget
from agents.features.databases.drivers.write import NotAsShown, Preview, try_sql, write_sql
from sandbox.cancellation import Cancellation
from tests.agents.features.databases.drivers.shop import NOBODYS, make_sqlite

MORE = """
CREATE TABLE items (id INTEGER PRIMARY KEY AUTOINCREMENT, made TEXT DEFAULT CURRENT_TIMESTAMP,
    name TEXT UNIQUE ON CONFLICT REPLACE, customer INT REFERENCES customers ON DELETE CASCADE);
CREATE TABLE log (id INTEGER PRIMARY KEY, what TEXT);
CREATE TRIGGER tell AFTER UPDATE ON orders BEGIN INSERT INTO log(what) VALUES ('u' || old.id); END;
CREATE TRIGGER angry AFTER INSERT ON log WHEN new.what = 'boom' BEGIN
    SELECT raise(ROLLBACK, 'over'); END;
CREATE VIEW easy AS SELECT id, name FROM customers;
CREATE TRIGGER easily INSTEAD OF UPDATE ON easy BEGIN
    UPDATE customers SET name = new.name WHERE id = old.id; END;
CREATE VIRTUAL TABLE texts USING fts5(body);
INSERT INTO items (name, customer) VALUES ('x', 1), ('y', 2);
"""

REFUSED = [
    "SELECT 1",
    "CREATE TABLE x (y)",
    "CREATE TEMP TABLE x (y)",
    "CREATE TRIGGER x AFTER INSERT ON log BEGIN DELETE FROM orders; END",
    "DROP TABLE orders",
    "DROP TRIGGER tell",
    "ALTER TABLE orders ADD x",
    "CREATE INDEX x ON orders (total)",
    "REINDEX",
    "ANALYZE",
    "VACUUM",
    "VACUUM INTO '{beside}'",
    "ATTACH '{beside}' AS x",
    "DETACH main",
    "PRAGMA user_version = 7",
    "PRAGMA writable_schema = ON",
    "PRAGMA foreign_keys = OFF",
    "PRAGMA journal_mode = WAL",
    "BEGIN",
    "COMMIT",
    "END",
    "ROLLBACK",
    "SAVEPOINT x",
    "RELEASE x",
    "UPDATE orders SET total = 0; COMMIT",
    "UPDATE orders SET total = 0; DELETE FROM log",
    "UPDATE sqlite_master SET sql = ''",
    "DELETE FROM sqlite_sequence",
    "UPDATE temp.sqlite_master SET sql = ''",
    "UPDATE log SET what = (SELECT sql FROM sqlite_temp_master)",
    "INSERT INTO texts VALUES ('x')",
    "INSERT INTO texts(texts) VALUES ('rebuild')",
    "DELETE FROM texts_data",
    "UPDATE log SET what = load_extension('x')",
    "UPDATE orders SET total = readfile('/etc/passwd')",
    "INSERT INTO log(what) VALUES ('boom')",
    "INSERT OR ROLLBACK INTO customers VALUES (1, 'x', 'y')",
    "UPDATE OR FAIL customers SET id = 1",
    "EXPLAIN DELETE FROM orders",
    "UPDATE easy SET name = 'x'",
    "UPDATE addresses SET address = 'x'",
    "WITH x AS (SELECT 1) SELECT * FROM x",
    "",
]

HIDDEN = [
    "UPDATE customers SET name = 'x' WHERE email LIKE 'a%'",
    "UPDATE customers SET name = email",
    "UPDATE customers SET name = 'x'",
    "UPDATE customers SET name = 'x' RETURNING *",
    "DELETE FROM customers WHERE email = 'ada@example.org'",
    "DELETE FROM customers",
    "INSERT INTO customers VALUES (7, 'x', 'ada@example.org')",
    "INSERT INTO customers (id, name) VALUES (7, 'x') RETURNING email",
    "UPDATE easy SET name = 'x'",
    "UPDATE orders SET total = (SELECT count(*) FROM customers WHERE email LIKE 'a%')",
    "UPDATE orders SET total = (SELECT count(*) FROM addresses WHERE address LIKE 'a%')",
    "UPDATE log SET what = email FROM customers",
    "INSERT INTO log SELECT id, email FROM customers",
    "INSERT INTO log(what) SELECT name FROM customers NATURAL JOIN (SELECT 'a@example.org' email)",
    "INSERT INTO log(what) SELECT 1 FROM customers JOIN (SELECT 'a' email) USING (email)",
    "UPDATE orders SET total = 1 FROM (SELECT id FROM customers NATURAL JOIN (SELECT 'a' email)) c"
    " WHERE orders.customer_id = c.id",
]


@pytest.fixture
def shop(tmp_path: Path) -> DatabaseTarget:
    target = make_sqlite(tmp_path / "shop.sqlite3")
    with closing(sqlite3.connect(tmp_path / "shop.sqlite3")) as database:
        database.executescript(MORE)
    return replace(target, allow_writes=True)


def tried(target: DatabaseTarget, query: str, params: dict[str, Any] | None = None) -> Preview:
    return try_sql(target, query, params, NOBODYS, Cancellation())


def written(target: DatabaseTarget, query: str, approved: Preview) -> Changes:
    return write_sql(target, query, None, NOBODYS, Cancellation(), approved)


def tables(preview: Preview) -> dict[str, tuple[int, int, int]]:
    return {
        table["table"]: (table["inserted"], table["updated"], table["deleted"])
        for table in preview["tables"]
    }


def fingerprint(directory: Path) -> tuple[list[str], bytes]:
    content = hashlib.sha256((directory / "shop.sqlite3").read_bytes()).digest()
    return sorted(os.listdir(directory)), content


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("UPDATE orders SET total = 1 WHERE id = 10", {"orders": (0, 1, 0), "log": (1, 0, 0)}),
        ("DELETE FROM orders", {"orders": (0, 0, 3)}),
        ("REPLACE INTO customers VALUES (1, 'x', 'y')",
         {"customers": (1, 0, 1), "items": (0, 0, 1)}),
        ("INSERT INTO items (name) VALUES ('x')", {"items": (1, 0, 1)}),
        ("WITH x AS (SELECT 10 AS id) DELETE FROM orders WHERE id IN x", {"orders": (0, 0, 1)}),
        ("INSERT INTO log VALUES (1, 'a') ON CONFLICT DO NOTHING", {"log": (1, 0, 0)}),
    ],
)  # fmt: skip
def test_a_trial_shows_all_that_changes_and_changes_nothing(
    shop: DatabaseTarget, tmp_path: Path, mode: str, query: str, expected: dict[str, Any]
) -> None:
    path = tmp_path / "shop.sqlite3"
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA journal_mode = {mode}")
        if query.startswith("REPLACE"):
            database.execute("DELETE FROM orders WHERE customer_id = 1")
            database.commit()
    before = fingerprint(tmp_path)
    approved = tried(shop, query)
    assert fingerprint(tmp_path) == before
    assert tables(approved) == expected
    changes = written(shop, query, approved)
    assert {table.table: table.counts for table in changes.tables} == expected
    with pytest.raises(QueryFailed):
        written(shop, query, approved)  # the second time it has another effect, or none


@pytest.mark.parametrize("statement", REFUSED)
def test_a_trial_runs_only_changes_of_rows(
    shop: DatabaseTarget, tmp_path: Path, statement: str
) -> None:
    before = fingerprint(tmp_path)
    with pytest.raises(QueryFailed):
        tried(shop, statement.format(beside=tmp_path / "beside"))
    assert fingerprint(tmp_path) == before


@pytest.mark.parametrize("statement", HIDDEN)
def test_no_trial_reveals_a_hidden_column(
    shop: DatabaseTarget, tmp_path: Path, statement: str
) -> None:
    before = fingerprint(tmp_path)
    with pytest.raises(QueryFailed) as refused:
        tried(replace(shop, hidden_columns=("customers.email",)), statement)
    assert "example.org" not in str(refused.value)
    assert "constraint" not in str(refused.value)
    assert fingerprint(tmp_path) == before


def test_the_target_of_a_hidden_column_cannot_be_written(shop: DatabaseTarget) -> None:
    hidden = replace(shop, hidden_columns=("orders.customer_id",))
    with pytest.raises(QueryFailed, match="not authorized"):
        tried(hidden, "DELETE FROM customers WHERE id = 1")  # it could show references
    assert tables(tried(hidden, "DELETE FROM items WHERE id = 1")) == {"items": (0, 0, 1)}


def test_a_statement_cannot_forge_the_preview(
    shop: DatabaseTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if it guesses the name of the function that reports changes."""
    monkeypatch.setattr(sqlite_recorder.secrets, "token_hex", lambda _: "known")
    [orders] = try_sqlite(shop, "DELETE FROM orders WHERE id = 10", {}, NOBODYS).tables
    assert (orders.table, orders.counts) == ("orders", (0, 0, 1))
    forged = "vel_known('log', 'INSERT', 1, 1, 'x')"
    for query in (
        f"UPDATE orders SET total = {forged}",
        f"WITH x AS (SELECT {forged}) DELETE FROM orders WHERE id = 10 AND 1 IN x",
    ):
        with pytest.raises(QueryFailed, match="not authorized"):
            try_sqlite(shop, query, {}, NOBODYS)


def test_time_dependent_values_are_marked_and_do_not_block_a_write(shop: DatabaseTarget) -> None:
    query = "INSERT INTO items (made, name) VALUES (hex(randomblob(8)), 'new')"
    approved = tried(shop, query)
    [table] = approved["tables"]
    assert table["after"][0][1] == "⟨set when it runs⟩"
    assert approved["unstable"] == [["items", "made"]]
    assert written(shop, query, approved).row_count == 1


def test_one_that_changes_other_rows_each_time_is_not_shown(shop: DatabaseTarget) -> None:
    def often() -> None:
        for _ in range(50):
            tried(shop, "DELETE FROM orders WHERE abs(random()) % 2 OR id = 10")

    with pytest.raises(QueryFailed, match="changed different rows"):
        often()


def test_others_wrote_between_the_last_look_and_the_write(
    shop: DatabaseTarget, tmp_path: Path
) -> None:
    query = "UPDATE orders SET total = total + 1 WHERE id = 10"
    approved = tried(shop, query)
    with closing(sqlite3.connect(tmp_path / "shop.sqlite3")) as database, database:
        database.execute("UPDATE orders SET total = 5 WHERE id = 10")
    before = fingerprint(tmp_path)
    with pytest.raises(NotAsShown):
        written(shop, query, approved)
    assert fingerprint(tmp_path) == before


@pytest.mark.slow
def test_the_connection_limits_the_changed_rows(shop: DatabaseTarget, tmp_path: Path) -> None:
    before = fingerprint(tmp_path)
    with pytest.raises(QueryFailed, match="change fewer"):
        tried(replace(shop, max_rows=2), "DELETE FROM orders")
    long = "UPDATE customers SET name = printf('%.*c', 900, 'x')"
    with pytest.raises(QueryFailed, match="change fewer"):
        tried(replace(shop, max_bytes=1_000), long)
    endless = "WITH RECURSIVE n(x) AS (SELECT 100 UNION ALL SELECT x + 1 FROM n) "
    endless += "INSERT INTO log SELECT x, 'y' FROM n RETURNING *"
    with pytest.raises(QueryFailed, match="stopped"):
        tried(replace(shop, statement_seconds=0.5), endless)
    assert fingerprint(tmp_path) == before


@pytest.mark.slow
def test_a_large_trial_leaves_the_file_alone(shop: DatabaseTarget, tmp_path: Path) -> None:
    large = replace(shop, max_rows=100_000, max_bytes=100_000_000)
    fill = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 20000) "
    fill += "INSERT INTO log SELECT x + 100, printf('%.*c', 900, 'x') FROM n"
    path = tmp_path / "shop.sqlite3"
    before = fingerprint(tmp_path)
    assert tried(large, fill)["rows_changed"] == 20_000
    assert fingerprint(tmp_path) == before
    meanwhile: list[int] = []

    def look(_: Changes) -> bool:
        meanwhile.append(path.stat().st_size)
        return False

    size = path.stat().st_size
    write_sqlite(large, fill, {}, NOBODYS, look)
    assert meanwhile == [size]  # as left by a process that dies in a trial
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_without_write_mode_a_trial_is_refused(shop: DatabaseTarget) -> None:
    with pytest.raises(QueryFailed, match="only be read"):
        tried(replace(shop, allow_writes=False), "DELETE FROM orders")


def test_a_cancelled_write_is_not_made(shop: DatabaseTarget, tmp_path: Path) -> None:
    query = "DELETE FROM orders WHERE id = 10"
    approved = tried(shop, query)
    cancel = Cancellation()
    cancel.cancel()
    before = fingerprint(tmp_path)
    with pytest.raises(QueryFailed):
        write_sql(shop, query, None, NOBODYS, cancel, approved)
    assert fingerprint(tmp_path) == before
