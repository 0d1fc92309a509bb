"""Writes to PostgreSQL: the results and traces of a trial, and refused statements."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from agents.features.databases.drivers import operations, stopping
from agents.features.databases.drivers.errors import OutcomeUnknown, QueryFailed
from agents.features.databases.drivers.pools import close_idle
from agents.features.databases.drivers.postgresql import write as module
from agents.features.databases.drivers.target import DatabaseTarget
from agents.features.databases.drivers.write import NotAsShown, Preview, try_sql, write_sql
from sandbox.cancellation import Cancellation
from tests.agents.features.databases.drivers.shop import NOBODYS, admin_of, ask

pytestmark = pytest.mark.postgresql

MORE = """
CREATE TABLE items (id serial PRIMARY KEY, made timestamptz DEFAULT now(), name text UNIQUE,
    customer int REFERENCES customers ON DELETE CASCADE);
CREATE TABLE watched (id int PRIMARY KEY, what text);
CREATE TABLE called (id int PRIMARY KEY, what text DEFAULT 'x');
CREATE TABLE parts (id int, day date) PARTITION BY RANGE (day);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE TABLE late (id int PRIMARY KEY, of int REFERENCES customers DEFERRABLE INITIALLY DEFERRED);
CREATE FUNCTION fired() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO called VALUES (new.id, 'fired'); RETURN new; END $$;
CREATE TRIGGER tell AFTER UPDATE ON watched FOR EACH ROW EXECUTE FUNCTION fired();
CREATE FUNCTION louder(text) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT upper($1) $$;
CREATE FUNCTION equals(text, int) RETURNS boolean VOLATILE LANGUAGE plpgsql AS $$ BEGIN
    DELETE FROM orders; RETURN true; END $$;
CREATE OPERATOR === (LEFTARG = text, RIGHTARG = int, FUNCTION = equals);
CREATE TABLE ruled (id int);
CREATE RULE sneak AS ON INSERT TO ruled DO ALSO DELETE FROM orders;
ALTER TABLE called ALTER what SET DEFAULT sneaky()::text;
INSERT INTO items (name, customer) VALUES ('x', 1), ('y', 2);
INSERT INTO watched VALUES (1, 'a');
INSERT INTO parts VALUES (1, '2026-05-05');
"""

SHOWN: list[tuple[str, dict[str, tuple[int, int, int]]]] = [
    ("UPDATE orders SET total = 1 WHERE id = 10", {"orders": (0, 1, 0)}),
    ("DELETE FROM orders", {"orders": (0, 0, 3)}),
    ("DELETE FROM orders -- all of them", {"orders": (0, 0, 3)}),
    ("UPDATE addresses SET address = 'x' WHERE address LIKE 'a%'", {"customers": (0, 1, 0)}),
    ("INSERT INTO items (name, customer) VALUES ('z', 1) RETURNING id", {"items": (1, 0, 0)}),
    (
        "WITH d AS (DELETE FROM orders WHERE id = 12 RETURNING *) "
        "INSERT INTO orders SELECT id + 100, customer_id, total FROM d",
        {"orders": (1, 0, 1)},
    ),
    (
        "MERGE INTO orders o USING customers c ON o.customer_id = c.id "
        "WHEN MATCHED AND c.id = 1 THEN DELETE",
        {"orders": (0, 0, 2)},
    ),
    ("UPDATE parts SET day = '2026-06-06'", {"parts_1": (0, 1, 0)}),
    ("UPDATE customers SET name = louder(name) WHERE id = 1", {"customers": (0, 1, 0)}),
    ("INSERT INTO customers SELECT 5, 'e', pg_notify('x', 'y')::text", {"customers": (1, 0, 0)}),
    ("WITH x AS (DELETE FROM orders RETURNING id) SELECT sum(id) FROM x", {"orders": (0, 0, 3)}),
]

ROUTINES = [
    "UPDATE customers SET name = sneaky()::text",
    "UPDATE customers SET name = mighty()::text",
    "UPDATE customers SET name = (SELECT one FROM trap)::text",
    "UPDATE customers SET name = 'x' WHERE name === 1",
    "UPDATE watched SET what = 'b'",
    "INSERT INTO called (id) VALUES (1)",
    "UPDATE customers SET name = set_config('search_path', 'x', false)",
    "UPDATE customers SET name = U&\"set\\005fconfig\"('search_path', 'x', false)",
    "UPDATE customers SET name = pg_catalog . setval ('numbers', 7)::text",
    "UPDATE customers SET name = pg_sleep(0)::text",
    "UPDATE customers SET name = pg_advisory_lock(1)::text",
    "UPDATE customers SET name = pg_terminate_backend(pg_backend_pid())::text",
    "UPDATE customers SET name = pg_cancel_backend(pg_backend_pid())::text",
    "UPDATE customers SET name = pg_logical_emit_message(false, 'a', 'b')::text",
    "UPDATE customers SET name = lo_create(0)::text",
    "UPDATE customers SET name = query_to_xml('DELETE FROM orders', true, true, '')::text",
    "DELETE FROM orders WHERE EXISTS (SELECT sneaky())",
    "INSERT INTO customers SELECT 9, sneaky()::text, '' RETURNING mighty()",
]

REFUSED = [
    "SELECT 1",
    "SELECT sneaky()",
    "SELECT * INTO x FROM orders",
    "CREATE TABLE x AS SELECT * FROM orders",
    "CREATE TEMP TABLE x (y int)",
    "DROP TABLE orders",
    "TRUNCATE orders",
    "ALTER TABLE orders ADD x int",
    "GRANT ALL ON orders TO PUBLIC",
    "COPY orders TO STDOUT",
    "COPY orders FROM STDIN",
    "COPY orders TO PROGRAM 'touch /tmp/vel-was-here'",
    "DO $$ BEGIN DELETE FROM orders; END $$",
    "CALL purge()",
    "PREPARE x AS DELETE FROM orders",
    "EXECUTE x",
    "EXPLAIN ANALYZE DELETE FROM orders",
    "ANALYZE DELETE FROM orders",
    "VACUUM orders",
    "LOCK TABLE orders",
    "NOTIFY x",
    "LISTEN x",
    "SET search_path = x",
    "RESET ALL",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT x",
    "COMMIT AND CHAIN",
    "UPDATE orders SET total = 0; COMMIT",
    "UPDATE orders SET total = 0; DELETE FROM orders",
    "UPDATE orders SET total = 0; END; DELETE FROM orders; --",
    "UPDATE orders SET total = 0 /* ' */ ; COMMIT -- '",
    "DELETE FROM pg_catalog.pg_proc",
    "UPDATE pg_catalog.pg_settings SET setting = 'off' WHERE name = 'transaction_read_only'",
    "INSERT INTO ruled VALUES (1)",
    "UPDATE orders SET total = 1 WHERE id = 99",
    "INSERT INTO late VALUES (1, 99)",
    "UPDATE orders SET total = $1",
    "",
]


@pytest.fixture
def shop(writer_shop: DatabaseTarget, postgres_url: str, reader: str) -> Iterator[DatabaseTarget]:
    with admin_of(writer_shop, postgres_url) as admin:
        admin.execute(MORE)
        admin.execute(
            f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {reader};"
            f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {reader}"
        )
    yield replace(writer_shop, name="shop", allow_writes=True)
    close_idle(older_than=0)


def tried(target: DatabaseTarget, query: str, params: dict[str, Any] | None = None) -> Preview:
    return try_sql(target, query, params, NOBODYS, Cancellation())


def written(target: DatabaseTarget, query: str, approved: Preview) -> dict[str, Any]:
    changes = write_sql(target, query, None, NOBODYS, Cancellation(), approved)
    return {table.table: table.counts for table in changes.tables}


def written_here(target: DatabaseTarget, query: str) -> None:
    """Write in this process, not in a helper: for tests that act between its steps."""
    operations.write(target, query, None, NOBODYS, Cancellation(), lambda _: True)


def counts(preview: Preview) -> dict[str, tuple[int, int, int]]:
    return {
        table["table"]: (table["inserted"], table["updated"], table["deleted"])
        for table in preview["tables"]
    }


def state(target: DatabaseTarget, postgres_url: str) -> list[Any]:
    """Return all rows, sequences that must not change, functions, tables and locks."""
    with admin_of(target, postgres_url) as admin:
        tables = ("customers", "orders", "items", "watched", "called", "parts", "late", "ruled")
        found: list[Any] = [
            admin.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall() for table in tables
        ]
        for query in (
            "SELECT last_value, is_called FROM numbers",
            "SELECT count(*) FROM pg_class",
            "SELECT count(*) FROM pg_proc",
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'",
            "SELECT count(*) FROM pg_largeobject_metadata",
        ):
            found.append(admin.execute(query).fetchall())
        return found


@pytest.mark.slow
def test_a_trial_shows_all_that_changes_and_changes_nothing(
    shop: DatabaseTarget, postgres_url: str
) -> None:
    before = state(shop, postgres_url)
    for query, expected in SHOWN:
        assert counts(tried(shop, query)) == expected, query
    assert state(shop, postgres_url) == before


@pytest.mark.slow
@pytest.mark.parametrize(("query", "expected"), SHOWN)
def test_the_shown_change_is_made(
    shop: DatabaseTarget, query: str, expected: dict[str, Any]
) -> None:
    assert written(shop, query, tried(shop, query)) == expected


@pytest.mark.slow
def test_cascades_are_shown_with_their_rows(shop: DatabaseTarget) -> None:
    approved = tried(shop, "WITH x AS (DELETE FROM orders) DELETE FROM items")
    assert counts(approved) == {"items": (0, 0, 2), "orders": (0, 0, 3)}
    tried_ = tried(replace(shop), "INSERT INTO orders VALUES (77, 1, 1)")
    # The trial locks the referenced customer, but does not show it as changed.
    assert counts(tried_) == {"orders": (1, 0, 0)}
    both = "WITH x AS (INSERT INTO orders VALUES (77, 1, 1)) UPDATE customers SET name = 'z' "
    [customers, _] = tried(shop, f"{both} WHERE id = 2")["tables"]
    assert (len(customers["before"]), customers["note"]) == (1, "")


@pytest.mark.slow
def test_a_trial_runs_no_function_and_no_trigger(shop: DatabaseTarget, postgres_url: str) -> None:
    before = state(shop, postgres_url)
    for statement in ROUTINES:
        with pytest.raises(QueryFailed) as refused:
            tried(shop, statement)
        assert refused.value.code == "routine", (statement, str(refused.value))
    assert state(shop, postgres_url) == before


@pytest.mark.slow
def test_an_operator_may_allow_them(shop: DatabaseTarget, postgres_url: str) -> None:
    before = state(shop, postgres_url)
    open_shop = replace(shop, allow_routines=True)
    approved = tried(open_shop, "UPDATE watched SET what = 'b'")
    assert counts(approved) == {"watched": (0, 1, 0), "called": (1, 0, 0)}
    assert counts(tried(open_shop, "UPDATE customers SET name = sneaky()::text WHERE id = 1"))[
        "orders"
    ] == (0, 0, 3)
    assert state(shop, postgres_url) == before


@pytest.mark.slow
def test_a_trial_runs_only_changes_of_rows(shop: DatabaseTarget, postgres_url: str) -> None:
    before = state(shop, postgres_url)
    for statement in REFUSED:
        for target in (shop, replace(shop, allow_routines=True)):
            with pytest.raises(QueryFailed):
                tried(target, statement)
    assert state(shop, postgres_url) == before


@pytest.mark.slow
def test_time_dependent_values_are_marked(shop: DatabaseTarget) -> None:
    query = "INSERT INTO items (name) VALUES ('new')"
    approved = tried(shop, query)
    assert approved["unstable"] == [["items", "id"], ["items", "made"]]
    assert approved["tables"][0]["after"][0][:3] == [
        "⟨set when it runs⟩", "⟨set when it runs⟩", "'new'",
    ]  # fmt: skip
    assert written(shop, query, approved) == {"items": (1, 0, 0)}


@pytest.mark.slow
def test_others_wrote_since(shop: DatabaseTarget, postgres_url: str) -> None:
    query = "UPDATE orders SET total = total + 1 WHERE id = 10"
    approved = tried(shop, query)
    with admin_of(shop, postgres_url) as admin:
        admin.execute("UPDATE orders SET total = 5 WHERE id = 10")
    before = state(shop, postgres_url)
    with pytest.raises(NotAsShown):
        written(shop, query, approved)
    assert state(shop, postgres_url) == before


def test_others_write_while_it_is_made(
    shop: DatabaseTarget, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write between the snapshot and the statement makes the server refuse the changed row."""
    query = "UPDATE orders SET total = total + 1 WHERE id = 10"
    original = module._execute

    def late(*args: Any) -> Any:
        with admin_of(shop, postgres_url) as admin:
            admin.execute("UPDATE orders SET total = 5 WHERE id = 10")
        return original(*args)

    monkeypatch.setattr(module, "_execute", late)
    with pytest.raises(QueryFailed, match="could not serialize"):
        written_here(shop, query)
    with admin_of(shop, postgres_url) as admin:
        assert str(admin.execute("SELECT total FROM orders WHERE id = 10").fetchone()[0]) == "5.00"


HIDDEN = [
    "UPDATE customers SET name = 'x' WHERE email LIKE 'a%'",
    "UPDATE customers SET name = 'x'",
    "UPDATE customers SET name = 'x' RETURNING email",
    "DELETE FROM customers WHERE id = 7",
    "INSERT INTO customers (id, name, email) VALUES (7, 'x', 'ada@example.org')",
    "INSERT INTO customers (id, name) VALUES (7, 'x') ON CONFLICT DO NOTHING",
    "UPDATE orders SET total = 1 WHERE EXISTS (SELECT FROM customers WHERE email LIKE 'a%')",
    "UPDATE orders SET total = 1 FROM customers c NATURAL JOIN (SELECT 'a' AS email) x",
    "INSERT INTO watched SELECT 5, email FROM customers",
    "DELETE FROM orders USING addresses WHERE address LIKE 'a%'",
]


@pytest.mark.slow
def test_no_trial_reveals_a_hidden_column(
    shop: DatabaseTarget, postgres_url: str, reader: str
) -> None:
    with admin_of(shop, postgres_url) as admin:
        admin.execute(
            f"REVOKE ALL ON customers, addresses, late FROM {reader};"
            f"GRANT SELECT (id, name), INSERT, UPDATE, DELETE ON customers TO {reader};"
            "CREATE UNIQUE INDEX ON customers (email)"
        )
    hidden = replace(shop, hidden_columns=("customers.email",))
    before = state(shop, postgres_url)
    for statement in HIDDEN:
        with pytest.raises(QueryFailed) as refused:
            tried(hidden, statement)
        assert "example.org" not in str(refused.value), statement
        assert "unique" not in str(refused.value), statement
    assert state(shop, postgres_url) == before
    with pytest.raises(QueryFailed, match="hidden columns"):
        tried(replace(hidden, hidden_columns=("late.of",)), "DELETE FROM customers WHERE id = 7")


@pytest.mark.slow
def test_the_connection_limits_the_changed_rows(shop: DatabaseTarget, postgres_url: str) -> None:
    before = state(shop, postgres_url)
    many = "INSERT INTO customers SELECT n, repeat('x', 900) FROM generate_series(10, 5000) n"
    with pytest.raises(QueryFailed, match="more than 100 rows"):
        tried(replace(shop, max_rows=100), many)
    with pytest.raises(QueryFailed, match="bytes"):
        tried(shop, many)
    with pytest.raises(QueryFailed, match="returns more"):
        tried(
            replace(shop, max_rows=100),
            "WITH x AS (DELETE FROM orders) SELECT * FROM generate_series(1, 100000)",
        )
    with pytest.raises(QueryFailed, match=r"stopped|longer"):
        tried(
            replace(shop, statement_seconds=0.5),
            "WITH x AS (DELETE FROM orders) SELECT count(*) FROM generate_series(1, 100000000000)",
        )
    assert state(shop, postgres_url) == before


def test_the_server_dies_at_the_commit(
    shop: DatabaseTarget, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "DELETE FROM orders WHERE id = 10"
    original = module._commit

    def cut(connection: psycopg.Connection[Any], target: DatabaseTarget) -> None:
        with admin_of(shop, postgres_url) as admin:
            admin.execute("SELECT pg_terminate_backend(%s)", [connection.info.backend_pid])
        original(connection, target)

    monkeypatch.setattr(module, "_commit", cut)
    with pytest.raises(OutcomeUnknown, match="unknown"):
        written_here(shop, query)


@pytest.mark.slow
def test_a_commit_after_the_time_limit_is_not_a_failure(
    shop: DatabaseTarget, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = module._commit

    def slow(connection: psycopg.Connection[Any], target: DatabaseTarget) -> None:
        original(connection, target)
        time.sleep(target.statement_seconds + stopping._LATER + 0.2)

    monkeypatch.setattr(module, "_commit", slow)
    written_here(replace(shop, statement_seconds=1), "DELETE FROM orders WHERE id = 10")
    with admin_of(shop, postgres_url) as admin:
        assert admin.execute("SELECT id FROM orders WHERE id = 10").fetchone() is None


def test_a_connection_lost_after_the_commit_is_not_a_failure(
    shop: DatabaseTarget, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = module._commit

    def cut(connection: psycopg.Connection[Any], target: DatabaseTarget) -> None:
        original(connection, target)
        with admin_of(shop, postgres_url) as admin:
            admin.execute("SELECT pg_terminate_backend(%s)", [connection.info.backend_pid])

    monkeypatch.setattr(module, "_commit", cut)
    written_here(shop, "DELETE FROM orders WHERE id = 10")
    assert tried(shop, "DELETE FROM orders")["tables"][0]["deleted"] == 2


def test_a_cancelled_write_is_not_made(shop: DatabaseTarget, postgres_url: str) -> None:
    query = "DELETE FROM orders WHERE id = 10"
    approved = tried(shop, query)
    before = state(shop, postgres_url)
    cancel = Cancellation()
    with admin_of(shop, postgres_url) as admin:
        admin.execute("BEGIN; UPDATE orders SET total = total WHERE id = 10")
        threading.Timer(0.3, cancel.cancel).start()
        with pytest.raises(QueryFailed):
            write_sql(shop, query, None, NOBODYS, cancel, approved)
        admin.execute("ROLLBACK")
    assert state(shop, postgres_url) == before


@pytest.mark.slow
def test_reading_stays_reading(shop: DatabaseTarget, postgres_url: str) -> None:
    """A session that has written is clean for the next reader."""
    written(
        shop, "DELETE FROM orders WHERE id = 10", tried(shop, "DELETE FROM orders WHERE id = 10")
    )
    before = state(shop, postgres_url)
    for statement in ("DELETE FROM orders", "WITH x AS (DELETE FROM orders) SELECT 1"):
        with pytest.raises(QueryFailed):
            ask(shop, statement)
    with pytest.raises(QueryFailed, match="read-only"):
        ask(replace(shop, allow_routines=True), "SELECT sneaky()")
    assert state(shop, postgres_url) == before
