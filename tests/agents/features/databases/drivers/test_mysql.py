"""MySQL and MariaDB: values, limits, sessions, schemas, and connections."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from django.contrib.auth.models import User

from agents.features.databases.actions import save_connection, try_connection
from agents.features.databases.drivers import address, inspect, pools
from agents.features.databases.drivers.address import AddressRefused, address_of, checked_url
from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.mysql.read import pool_of, query_mysql, read_only_mysql
from agents.features.databases.drivers.params import marked
from agents.features.databases.drivers.target import DatabaseTarget
from agents.features.databases.drivers.write import try_sql
from agents.features.databases.models import DatabaseConnection
from agents.services.errors import Conflict
from sandbox.cancellation import Cancellation
from tests.agents.features.databases.drivers.mariadb_shop import root_of, target_of
from tests.agents.features.databases.drivers.shop import NOBODYS, PASSWORD, PASSWORD_IN_URL, ask
from tests.support import lasting_helpers
from tests.support.hang import HANG
from tests.support.mariadb import MariaDB
from tests.support.runs import wait_until

pytestmark = pytest.mark.mariadb

ENDLESS = "SELECT COUNT(*) FROM seq_1_to_1000000000 a, seq_1_to_1000000000 b"
SLOW = "SELECT BENCHMARK(100000000000, SHA2('x', 512))"


@pytest.fixture
def shop(mariadb: MariaDB) -> DatabaseTarget:
    return target_of(mariadb, "reader")


def sessions(server: MariaDB, command: str = "%") -> Callable[[], int]:
    def count() -> int:
        with root_of(server) as root:
            root.execute(
                "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'reader'"
                " AND COMMAND LIKE %s",
                (command,),
            )
            return int(root.fetchone()[0])

    return count


# Values ------------------------------------------------------------------------------------------


def test_rows_and_values(shop: DatabaseTarget) -> None:
    result = ask(
        shop,
        "SELECT 1 one, 1 one, 18446744073709551615 big, 1.50 exact, 0.5e0 inexact, NULL none,"
        " DATE '2026-01-02' day, TIME '-30:00:01' clock, x'00ff' bytes, b'101' bits, 'ö😀' text,"
        " JSON_ARRAY(1, 'ä') json, CAST('' AS CHAR) empty, YEAR('2026-01-02') year,"
        " ST_GeomFromText('POINT(1 2)') IS NULL geo",
    )
    assert result.columns[:3] == ("one", "one_2", "big")
    assert result.values == [
        (1, 1, 18446744073709551615, "1.50", 0.5, None, "2026-01-02", "-30:00:01", "\\x00ff",
         "\\x05", "ö😀", '[1, "ä"]', "", 2026, 0)
    ]  # fmt: skip


def test_statements_of_many_forms(shop: DatabaseTarget) -> None:
    for query, rows in {
        "SELECT id FROM orders ORDER BY total DESC LIMIT 1 ; ": [(10,)],
        "(SELECT 1) UNION (SELECT 2) ORDER BY 1 DESC": [(2,), (1,)],
        "WITH x AS (SELECT 7 AS y) SELECT y FROM x -- the end": [(7,)],
        "VALUES (1), (2)": [(1,), (2,)],
        "SELECT `id` FROM `shop`.`orders` WHERE id = 12 # the end": [(12,)],
        "SELECT id, COUNT(*) OVER () FROM customers ORDER BY id": [(1, 2), (2, 2)],
        "SELECT * FROM addresses ORDER BY 1": [("ada@example.org",), ("bob@example.org",)],
    }.items():
        assert ask(shop, query).values == rows


def test_params_are_values(shop: DatabaseTarget) -> None:
    evil = "x' OR 1=1 -- \\' \" ` ö😀\n"
    given = {"evil": evil, "n": 2, "f": 1.5, "no": None, "yes": True, "many": [1, "ä"], "e": ""}
    query = (
        "SELECT :evil, :n + :n, :f, :no, :yes, JSON_VALUE(:many, '$[1]'), :e = '', ':n', \":n\","
        " `:n` FROM (SELECT 'back\\':n' AS `:n`) x -- :n\n WHERE /* :n */ 1 # :n"
    )
    assert ask(shop, query, given).values == [
        (evil, 4, 1.5, None, 1, "ä", 1, ":n", ":n", "back':n")
    ]
    found = ask(shop, "SELECT name FROM latin WHERE name = :name", {"name": "müller"})
    assert found.values == [("Müller",)]  # for any character set and collation of the column
    assert ask(shop, "SELECT seq FROM seq_1_to_5 LIMIT :n", {"n": 1}).row_count == 1
    for query in ("SELECT :missing", "SELECT ?", "SELECT :n"):
        with pytest.raises(QueryFailed):
            ask(shop, query, {"n": float("nan")})


def test_marks() -> None:
    assert marked("a :x :y :x '::x' \\:x", {"x": 1}) == ("a ? :y ? '::x' \\?", [1, 1, 1])
    assert marked("1--:x", {"x": 2}) == ("1--?", [2])  # "--" without a space is minus


# Limits ------------------------------------------------------------------------------------------


def test_rows_and_bytes_are_limited(shop: DatabaseTarget) -> None:
    limited = replace(shop, max_rows=120)
    result = ask(limited, "SELECT seq FROM seq_1_to_121")
    assert (result.row_count, result.truncated) == (120, True)
    exact = ask(limited, "SELECT seq FROM seq_1_to_120")
    assert (exact.row_count, exact.truncated, exact.notes) == (120, False, ())
    query = "SELECT REPEAT('x', 1000) FROM seq_1_to_1000000000 LIMIT 1000000000"
    cut = ask(replace(shop, max_bytes=5_500), query)
    assert (cut.row_count, cut.truncated) == (5, True)
    assert "5,500 bytes" in cut.notes[0]
    # The row limit does not cut the catalogue.
    assert inspect.list_tables(replace(shop, max_rows=1), NOBODYS, Cancellation()).row_count > 3


def test_a_cut_statement_stops_on_the_server(shop: DatabaseTarget, mariadb: MariaDB) -> None:
    ask(shop, "SELECT seq FROM seq_1_to_1000000000 LIMIT 1000000000")
    wait_until(lambda: sessions(mariadb, "Execute")() + sessions(mariadb, "Query")() == 0)
    assert ask(shop, "SELECT 1").row_count == 1


@pytest.mark.slow_cases
@pytest.mark.parametrize("query", [SLOW, "SELECT SLEEP(100)", ENDLESS])
def test_a_statement_that_takes_too_long_is_stopped(
    query: str, shop: DatabaseTarget, mariadb: MariaDB
) -> None:
    with pytest.raises(QueryFailed) as stopped:
        ask(replace(shop, statement_seconds=0.2), query)
    assert stopped.value.code == "timeout"
    wait_until(lambda: sessions(mariadb, "Execute")() + sessions(mariadb, "Query")() == 0)


def test_a_statement_without_the_servers_time_out_is_stopped(
    shop: DatabaseTarget, mariadb: MariaDB
) -> None:
    """Vel kills the statement a second after the server's timeout."""
    begun = time.monotonic()
    with (
        pytest.raises(QueryFailed) as stopped,
        read_only_mysql(replace(shop, statement_seconds=0.1), Cancellation()) as session,
    ):
        session.execute(f"SET STATEMENT max_statement_time = 0 FOR {ENDLESS}")
    assert stopped.value.code == "timeout"
    assert time.monotonic() - begun > 1
    wait_until(lambda: sessions(mariadb, "Query")() == 0)


@pytest.mark.slow
def test_a_cancelled_call_ends_its_statement(shop: DatabaseTarget, mariadb: MariaDB) -> None:
    cancel = Cancellation()
    running_now = sessions(mariadb, "Query")
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(ask, shop, SLOW, cancel=cancel)
        wait_until(lambda: running_now() == 1)
        cancel.cancel()
        with pytest.raises(QueryFailed):
            running.result(timeout=HANG)
    wait_until(lambda: running_now() == 0)
    assert ask(shop, "SELECT 1").row_count == 1


@pytest.mark.slow
def test_connections_are_few_reused_and_closed_when_idle(
    shop: DatabaseTarget, mariadb: MariaDB
) -> None:
    pools.close_idle(older_than=0)
    lasting_helpers.end()
    every = sessions(mariadb)
    wait_until(lambda: every() == 0)

    def one(number: int) -> object:
        row = ask(shop, "SELECT CONNECTION_ID(), SLEEP(0.01), :n", {"n": number}).values[0]
        assert row[2] == number
        return row[0]

    with ThreadPoolExecutor(12) as threads:
        numbers = set(threads.map(one, range(24)))
    assert every() == len(numbers) <= pools.MAX_CONNECTIONS
    assert one(0) in numbers
    with root_of(mariadb) as root:
        for number in numbers:
            root.execute(f"KILL {number}")
    assert one(0) not in numbers  # a lost one is replaced
    pools.close_idle(older_than=0)
    wait_until(lambda: every() == 0)


def test_privileged_sessions_are_not_reused(shop: DatabaseTarget) -> None:
    assert pool_of(shop) is not pool_of(replace(shop, allow_privileged=True))


@pytest.mark.slow
def test_errors_are_the_servers_without_secrets(shop: DatabaseTarget) -> None:
    with pytest.raises(QueryFailed, match="Unknown column 'totl'"):
        ask(shop, "SELECT totl FROM orders")
    with pytest.raises(QueryFailed, match="near 'SELEC 1'") as failed:
        ask(shop, "SELEC 1")
    assert "Expected exactly one SELECT" in str(failed.value)
    broken = replace(shop, url=shop.url.replace("//reader", "//nobody"))
    with pytest.raises(QueryFailed, match="Access denied") as failed:
        ask(broken, "SELECT 1")
    for secret in (PASSWORD, PASSWORD_IN_URL):
        assert secret not in str(failed.value) + repr(broken)
    closed = replace(shop, url=re.sub(r":\d+/", ":9/", shop.url))
    with pytest.raises(QueryFailed) as failed:
        ask(closed, "SELECT 1")
    assert failed.value.code == "connection"


def test_writing_is_refused(mariadb: MariaDB) -> None:
    target = target_of(mariadb, "writer", allow_privileged=True, allow_writes=True)
    with pytest.raises(QueryFailed, match="only be read"):
        try_sql(target, "DELETE FROM orders", None, NOBODYS, Cancellation())


# Contents -------------------------------------------------------------------------------------


def test_the_schema_lists_tables_and_columns(shop: DatabaseTarget) -> None:
    cancel = Cancellation()
    tables = inspect.list_tables(shop, NOBODYS, cancel).values
    assert ("shop", "orders", "BASE TABLE") in tables
    assert ("shop", "addresses", "VIEW") in tables
    assert {schema for schema, _, _ in tables} == {"shop"}
    schema = {row[1:3]: row[3:] for row in inspect.get_schema(shop, NOBODYS, cancel).values}
    assert schema["orders", "customer_id"] == ("int(11)", "YES", "→ customers.id")
    assert schema["customers", "id"] == ("int(11)", "NO", "PK")
    for name in ("orders", "shop.orders"):
        described = inspect.describe_table(shop, name, NOBODYS, cancel)
        assert described.values[1:] == [
            ("customer_id", "int(11)", "YES", None, "→ customers.id"),
            ("total", "decimal(10,2)", "YES", "0.00", ""),
        ]
    with pytest.raises(QueryFailed, match="no table"):
        inspect.describe_table(shop, "other.secrets", NOBODYS, cancel)


def test_hidden_columns(shop: DatabaseTarget, mariadb: MariaDB) -> None:
    hidden = ("customers.email",)
    with pytest.raises(QueryFailed, match=r"shop\.customers\.email.*REVOKE") as refused:
        ask(replace(shop, hidden_columns=hidden), "SELECT 1")
    assert refused.value.code == "hidden_column"
    # The message asks for an account like this one.
    viewer = target_of(mariadb, "viewer", hidden_columns=hidden)
    assert ask(viewer, "SELECT name FROM customers WHERE id = 1").values == [("Ada",)]
    for query in ("SELECT * FROM customers", "SELECT 1 FROM customers WHERE email > 'a'"):
        with pytest.raises(QueryFailed, match="denied"):
            ask(viewer, query)
    schema = inspect.get_schema(viewer, NOBODYS, Cancellation()).values
    assert [row[2] for row in schema if row[1] == "customers"] == ["id", "name"]
    assert [row[2] for row in schema if row[1] == "addresses"] == ["address"]


# How they are reached ----------------------------------------------------------------------------


def test_addresses() -> None:
    url = "mysql://reader:s%40@db.example.org/shop?connect_timeout=5&sslmode=verify-full"
    stored = checked_url(url)
    assert stored == url.replace("mysql:", "mysql+pymysql:")
    assert str(address_of(stored)) == "mysql reader@db.example.org:3306/shop"
    assert address_of("mariadb://r@[::1]:3307/shop").dialect == "mariadb"
    for query in (
        "sslmode=prefer", "sslmode=allow", "ssl_ca=/etc/passwd", "local_infile=1", "charset=gbk",
        "read_default_file=/etc/my.cnf", "init_command=SET%20x=1", "unix_socket=/run/x",
        "application_name=x", "sslmode=require&sslmode=disable", "client_flag=65536",
    ):  # fmt: skip
        with pytest.raises(AddressRefused, match="parameter"):
            checked_url(f"mysql://r:hunter2@h/shop?{query}")
    for wrong in ("mysql://r@/shop", "mysql://h/shop", "mysql://r@h", "mysql+mysqldb://r@h/shop"):
        with pytest.raises(AddressRefused):
            checked_url(wrong)


def test_without_the_driver_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address, "find_spec", lambda name: None)
    with pytest.raises(AddressRefused, match=r"pip install 'vel\[mysql\]'"):
        checked_url("mysql://r@h/shop")
    monkeypatch.setitem(__import__("sys").modules, "pymysql", None)
    with pytest.raises(QueryFailed, match=r"pip install 'vel\[mysql\]'"):
        query_mysql(DatabaseTarget("shop", "mysql://r@h/shop"), "SELECT 1", None, Cancellation())


@pytest.mark.slow
@pytest.mark.django_db
def test_an_operator_defines_one_and_tests_it(shop: DatabaseTarget, mariadb: MariaDB) -> None:
    operator = User.objects.create_superuser("operator")
    row = save_connection(DatabaseConnection(name="shop"), url=shop.url, by=operator)
    assert row.dialect == "mariadb"  # as prompts name it
    try_connection(row, by=operator)
    writer = target_of(mariadb, "writer").url
    row = save_connection(DatabaseConnection(name="writer"), url=writer, by=operator)
    with pytest.raises(Conflict, match="has more permissions than reading"):
        try_connection(row, by=operator)


@pytest.mark.slow
def test_tls(shop: DatabaseTarget, mariadb: MariaDB, monkeypatch: pytest.MonkeyPatch) -> None:
    query = "SELECT VARIABLE_VALUE FROM information_schema.SESSION_STATUS WHERE VARIABLE_NAME = :n"

    def cipher(url: str) -> object:
        return ask(replace(shop, url=url), query, {"n": "SSL_CIPHER"}).values[0][0]

    named = shop.url.replace("127.0.0.1", "localhost")
    assert cipher(shop.url) == ""
    assert "TLS" in str(cipher(f"{shop.url}?sslmode=require"))
    assert "TLS" in str(cipher(f"{shop.url}?sslmode=require"))  # from the pool
    for mode in ("verify-ca", "verify-full"):
        with pytest.raises(QueryFailed, match=r"(?i)certificate"):
            cipher(f"{named}?sslmode={mode}")
    # OpenSSL's setting selects the trusted certificates.
    monkeypatch.setenv("SSL_CERT_FILE", mariadb.certificate)
    assert "TLS" in str(cipher(f"{named}?sslmode=verify-full"))
    assert "TLS" in str(cipher(f"{shop.url}?sslmode=verify-ca"))
    with pytest.raises(QueryFailed, match=r"(?i)mismatch"):
        cipher(f"{shop.url}?sslmode=verify-full")
