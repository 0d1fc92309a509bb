"""Hidden columns stay hidden, or queries to the database are refused."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.inspect import describe_table, get_schema
from agents.features.databases.drivers.target import DatabaseTarget, is_hidden
from sandbox.cancellation import Cancellation
from tests.agents.features.databases.drivers.shop import NOBODYS, admin_of, ask

READS = [
    "SELECT email FROM customers",
    "SELECT * FROM customers",
    "SELECT main.customers.Email FROM customers",
    'SELECT "EMAIL" FROM customers AS c',
    "SELECT address FROM addresses",
    "SELECT id FROM customers WHERE email LIKE 'a%'",
    "SELECT id FROM customers ORDER BY email",
    "SELECT count(DISTINCT email) FROM customers",
    "SELECT count(*) FROM customers GROUP BY email",
    "SELECT name FROM customers INDEXED BY by_email WHERE email > ''",
    "WITH c(a, b, e) AS (SELECT * FROM customers) SELECT e FROM c",
    "SELECT (SELECT email FROM customers LIMIT 1)",
    "SELECT id FROM customers WHERE (1, 'Ada', 'x') = (SELECT * FROM customers LIMIT 1)",
    "SELECT json_group_array(email) FROM customers",
    "SELECT first_value(email) OVER () FROM customers",
    "SELECT 1 FROM customers UNION SELECT email FROM customers",
    "SELECT 1 FROM guesses NATURAL JOIN customers",
    "SELECT 1 FROM guesses JOIN customers USING (email)",
    "SELECT email FROM guesses FULL JOIN customers USING (email)",
    "SELECT email FROM guesses RIGHT JOIN customers USING (email)",
    "SELECT customers.id FROM customers LEFT JOIN guesses USING (email)",
    "SELECT email FROM (SELECT 'x' AS email) FULL JOIN customers USING (email)",
    "SELECT 1 FROM customers a JOIN customers b USING (name, email)",
    "SELECT * FROM sqlite_stat1",
]


@pytest.fixture
def hiding(sqlite_shop: DatabaseTarget, tmp_path: Path) -> DatabaseTarget:
    connection = sqlite3.connect(tmp_path / "shop.sqlite3")
    connection.executescript(
        "CREATE TABLE guesses (email); INSERT INTO guesses VALUES ('ada@example.org'); ANALYZE;"
    )
    connection.close()
    return replace(sqlite_shop, hidden_columns=("customers.email",))


@pytest.mark.parametrize("query", READS)
def test_sqlite_refuses_every_way_to_read_one(query: str, hiding: DatabaseTarget) -> None:
    with pytest.raises(QueryFailed):
        ask(hiding, query)
    if "sqlite_stat" not in query:
        # Only the setting refuses the query.
        assert ask(replace(hiding, hidden_columns=()), query) is not None


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, name FROM customers WHERE name = 'Ada'",
        "SELECT count(*) FROM customers",
        "SELECT name, sum(total) FROM customers JOIN orders ON customer_id = customers.id"
        " GROUP BY name ORDER BY name",
        "SELECT email FROM guesses",
        "SELECT name FROM customers WHERE id IN (SELECT customer_id FROM orders) ORDER BY name",
        "EXPLAIN SELECT name FROM customers",
    ],
)
def test_sqlite_lets_the_other_columns_be_read(query: str, hiding: DatabaseTarget) -> None:
    assert ask(hiding, query).row_count > 0


@pytest.mark.parametrize(
    "table",
    [
        "CREATE TABLE odd (email INTEGER PRIMARY KEY)",
        "CREATE TABLE odd (email TEXT PRIMARY KEY) WITHOUT ROWID",
        "CREATE TABLE odd (email TEXT, upper TEXT AS (upper(email)))",
    ],
)
def test_sqlite_is_not_queried_where_hiding_would_not_hold(
    table: str, hiding: DatabaseTarget, tmp_path: Path
) -> None:
    connection = sqlite3.connect(tmp_path / "shop.sqlite3")
    connection.execute(table)
    connection.close()
    with pytest.raises(QueryFailed, match="cannot be hidden"):
        ask(replace(hiding, hidden_columns=("email",)), "SELECT 1")


def test_with_hidden_columns_virtual_tables_are_closed(
    hiding: DatabaseTarget, tmp_path: Path
) -> None:
    connection = sqlite3.connect(tmp_path / "shop.sqlite3")
    connection.executescript(
        "CREATE VIRTUAL TABLE found USING fts5(name, email);"
        "INSERT INTO found SELECT name, email FROM customers;"
    )
    connection.close()
    for query in ("SELECT snippet(found, 1, '', '', '', 9) FROM found('ada')",
                  "SELECT c1 FROM found_content", "SELECT block FROM found_data"):  # fmt: skip
        assert ask(replace(hiding, hidden_columns=()), query).row_count
        with pytest.raises(QueryFailed):
            ask(hiding, query)


def test_listings_leave_them_out(hiding: DatabaseTarget) -> None:
    columns = {row[1:3] for row in get_schema(hiding, NOBODYS, Cancellation()).values}
    assert ("customers", "name") in columns
    assert ("customers", "email") not in columns
    described = describe_table(hiding, "customers", NOBODYS, Cancellation())
    assert [row[0] for row in described.values] == ["id", "name"]


@pytest.mark.parametrize(
    ("pattern", "hides"),
    [("email", True), ("EMAIL", True), ("customers.email", True), ("public.customers.email", True),
     ("*.email", True), ("customers.*", True), ("*", True), ("e*", True), ("orders.email", False),
     ("mail", False), ("other.customers.email", False), ("e?ail", False), ("[e]mail", False),
     ("a.b.c.email", False), ("", False)],
)  # fmt: skip
def test_patterns(pattern: str, hides: bool) -> None:
    target = DatabaseTarget("x", "sqlite://", hidden_columns=(pattern,))
    assert is_hidden(target, "public", "customers", "email") is hides


@pytest.mark.postgresql
def test_postgresql_is_queried_only_when_the_server_hides_them(
    postgres_shop: DatabaseTarget, postgres_url: str, reader: str
) -> None:
    target = replace(postgres_shop, hidden_columns=("customers.email", "addresses.*"))
    with pytest.raises(QueryFailed, match=r"public.addresses.address, public.customers.email"):
        ask(target, "SELECT 1")
    with admin_of(target, postgres_url) as admin:
        admin.execute(
            f"REVOKE SELECT ON customers, addresses FROM {reader};"
            f"GRANT SELECT (id, name) ON customers TO {reader}"
        )
    assert ask(target, "SELECT name FROM customers").row_count == 2
    for query in (
        "SELECT * FROM customers", "SELECT c FROM customers c",
        "SELECT customers::text FROM customers",
        "SELECT 1 FROM customers NATURAL JOIN (SELECT 'x' AS email) g",
        "SELECT query_to_xml('SELECT email FROM customers', true, true, '')",
        "SELECT table_to_xml('customers', true, true, '')", "SELECT * FROM addresses",
    ):  # fmt: skip
        with pytest.raises(QueryFailed, match=r"permission denied|volatile"):
            ask(target, query)
    columns = {row[1:3] for row in get_schema(target, NOBODYS, Cancellation()).values}
    assert ("customers", "name") in columns
    assert not {("customers", "email"), ("addresses", "address")} & columns
