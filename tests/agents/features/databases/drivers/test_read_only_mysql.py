"""Agents cannot change anything in MariaDB, not even the session of the next agent."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest

from agents.features.databases.drivers.errors import QueryFailed
from agents.features.databases.drivers.mysql.read import powers, read_only_mysql
from agents.features.databases.drivers.pools import close_idle
from sandbox.cancellation import Cancellation
from tests.agents.features.databases.drivers.mariadb_shop import root_of, target_of
from tests.agents.features.databases.drivers.shop import ask
from tests.support.mariadb import MariaDB

pytestmark = pytest.mark.mariadb

REFUSED = {
    "insert": "INSERT INTO customers VALUES (9, 'x', 'y')",
    "replace": "REPLACE INTO old VALUES (1)",
    "update": "UPDATE customers SET name = 'x'",
    "delete": "DELETE FROM orders",
    "returning": "DELETE FROM orders RETURNING id",
    "cte-delete": "WITH x AS (DELETE FROM orders RETURNING 1) SELECT * FROM x",
    "cte-main": "WITH x AS (SELECT 1) DELETE FROM orders",
    "truncate": "TRUNCATE orders",
    "drop": "DROP TABLE old",
    "create": "CREATE TABLE x (y INT)",
    "create-as": "CREATE TABLE x AS SELECT * FROM orders",
    "temporary": "CREATE TEMPORARY TABLE x (y INT)",
    "create-user": "CREATE USER x",
    "grant": "GRANT ALL ON *.* TO viewer",
    "alter": "ALTER TABLE orders ADD x INT",
    "rename": "RENAME TABLE old TO older",
    "event": "CREATE EVENT x ON SCHEDULE EVERY 1 SECOND DO DELETE FROM orders",
    "several": "SELECT 1; DELETE FROM orders",
    "several-commit": "SELECT 1; COMMIT; DELETE FROM orders",
    "several-commented": "SELECT 1 /* ' */ ; DELETE FROM orders -- '",
    "parenthesis": "SELECT 1); DELETE FROM orders; SELECT (1",
    "parenthesis-exists": "SELECT 1) OR EXISTS (SELECT 1",
    "parenthesis-into": "SELECT 1) INTO OUTFILE '{beside}' -- ",
    "parenthesis-hash": "SELECT 1) INTO OUTFILE '{beside}' #",
    "parenthesis-comment": "SELECT 1) INTO OUTFILE '{beside}' /*",
    "comment-first": "/* SELECT */ DELETE FROM orders",
    "comment-run": "/*! DELETE FROM orders */",
    "comment-version": "/*!50000 DELETE */ FROM orders",
    "comment-mariadb": "SELECT 1 /*M! INTO OUTFILE '{beside}' */",
    "comment-into": "SELECT 1 /*!50000 INTO OUTFILE '{beside}' */",
    "read-write": "SET SESSION TRANSACTION READ WRITE",
    "read-only-off": "SET tx_read_only = 0",
    "start": "START TRANSACTION READ WRITE",
    "commit": "COMMIT",
    "commit-chain": "COMMIT AND CHAIN",
    "rollback": "ROLLBACK",
    "set-global": "SET GLOBAL general_log = 1",
    "set-statement": "SET STATEMENT max_statement_time = 0 FOR SELECT 1",
    "set-role": "SET ROLE clerk",
    "set-password": "SET PASSWORD = PASSWORD('x')",
    "load-data": "LOAD DATA INFILE '/etc/passwd' INTO TABLE customers",
    "load-local": "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE customers",
    "load-xml": "LOAD XML INFILE '/etc/passwd' INTO TABLE customers",
    "outfile": "SELECT * FROM orders INTO OUTFILE '{beside}'",
    "outfile-middle": "SELECT * INTO OUTFILE '{beside}' FROM orders",
    "outfile-union": "SELECT 1 UNION SELECT 2 INTO OUTFILE '{beside}'",
    "outfile-nested": "SELECT * FROM (SELECT 1 INTO OUTFILE '{beside}') x",
    "dumpfile": "SELECT 'x' INTO DUMPFILE '{beside}'",
    "into-variable": "SELECT 1 INTO @x",
    "handler": "HANDLER orders OPEN",
    "lock-tables": "LOCK TABLES orders WRITE",
    "flush": "FLUSH TABLES WITH READ LOCK",
    "flush-logs": "FLUSH LOGS",
    "kill": "KILL 1",
    "shutdown": "SHUTDOWN",
    "call": "CALL emptied()",
    "prepare": "PREPARE x FROM 'DELETE FROM orders'",
    "execute": "EXECUTE vel_rows",
    "execute-immediate": "EXECUTE IMMEDIATE 'DELETE FROM orders'",
    "deallocate": "DEALLOCATE PREPARE vel_rows",
    "compound": "BEGIN NOT ATOMIC DELETE FROM orders; END",
    "if": "IF 1 THEN DELETE FROM orders; END IF",
    "do": "DO sneaky()",
    "analyze": "ANALYZE FORMAT=JSON DELETE FROM orders",
    "analyze-table": "ANALYZE TABLE orders",
    "optimize": "OPTIMIZE TABLE old",
    "repair": "REPAIR TABLE old",
    "install": "INSTALL SONAME 'auth_ed25519'",
    "function-so": "CREATE FUNCTION x RETURNS INT SONAME 'x.so'",
    "use": "USE other",
    "show": "SHOW GRANTS",
    "procedure-analyse": "SELECT id FROM orders PROCEDURE ANALYSE()",
    "function": "SELECT sneaky()",
    "function-myisam": "SELECT sneaky_old()",
    "function-read-write": "SELECT mighty()",
    "function-deterministic": "SELECT honest()",
    "function-in-view": "SELECT * FROM trap",
    "nextval": "SELECT NEXTVAL(numbers)",
    "setval": "SELECT SETVAL(numbers, 99)",
    "row-locks": "SELECT * FROM orders FOR UPDATE",
    "empty": "",
    "nothing": "-- nothing",
}  # fmt: skip

UNDONE = {
    "lock": "SELECT GET_LOCK('x', 0)",
    "variable": "SELECT @left := 'behind'",
    "settings": "SELECT later()",
    "row-locks-shared": "SELECT * FROM orders LOCK IN SHARE MODE",
}
"""The server runs these, and undoes them at the end of the transaction or of the session."""


def contents(server: MariaDB) -> tuple[object, ...]:
    """Return the server's data, its settings, and the files of its directories."""
    asked = (
        "CHECKSUM TABLE customers, orders, old, latin, numbers, mysql.global_priv, mysql.proc",
        "SELECT TABLE_SCHEMA, TABLE_NAME, CREATE_TIME FROM information_schema.TABLES"
        " WHERE TABLE_SCHEMA NOT IN ('information_schema', 'performance_schema')",
        "SELECT * FROM information_schema.GLOBAL_VARIABLES WHERE VARIABLE_NAME NOT IN"
        " ('GTID_BINLOG_POS')",
        "SELECT PLUGIN_NAME, PLUGIN_STATUS FROM information_schema.PLUGINS",
        "SELECT IS_USED_LOCK('x')",
    )
    with root_of(server) as root:
        found: list[object] = []
        for query in asked:
            root.execute(query)
            found.append(sorted(root.fetchall(), key=repr))
    return (*found, sorted(os.listdir(server.directory / "tmp")),
            sorted(os.listdir(server.directory / "data" / "shop")))  # fmt: skip


@pytest.fixture(scope="module")
def before(mariadb: MariaDB) -> tuple[object, ...]:
    """Return the contents before the first attempt, to compare them after each attempt."""
    return contents(mariadb)


def left_behind(target: Any) -> tuple[object, ...]:
    """Return the state of the session as the next agent finds it."""
    query = (
        "SELECT CURRENT_ROLE(), @left, @@SESSION.tx_read_only, @@SESSION.max_statement_time,"
        " @@SESSION.sql_mode = @@GLOBAL.sql_mode, IS_USED_LOCK('x'), @@in_transaction, DATABASE()"
    )
    return ask(target, query).values[0]


CLEAN = (None, None, 1, 30.0, 1, None, 1, "shop")


@pytest.mark.parametrize("name", [*REFUSED, *UNDONE])
def test_no_attempt_changes_anything(
    name: str, mariadb: MariaDB, before: tuple[object, ...]
) -> None:
    """Even with a privileged account that an operator has allowed."""
    writer = target_of(mariadb, "writer", allow_privileged=True)
    query = {**REFUSED, **UNDONE}[name].format(beside=mariadb.directory / "tmp" / "beside")
    if name in UNDONE:
        ask(writer, query)
    else:
        with pytest.raises(QueryFailed):
            ask(writer, query)
    assert contents(mariadb) == before
    assert left_behind(writer) == CLEAN


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM orders", "INSERT INTO old VALUES (3)", "CREATE TABLE x (y INT)",
        "DROP TABLE old", "TRUNCATE orders", "ALTER TABLE orders ADD x INT",
        "RENAME TABLE old TO older",
        "CREATE VIEW x AS SELECT 1", "CREATE DATABASE x", "DO sneaky()",
        "LOAD DATA INFILE '/etc/passwd' INTO TABLE customers",
        "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE customers",
        "SELECT 1; DELETE FROM orders",
    ],
)  # fmt: skip
def test_the_read_only_transaction_alone_prevents_writes(
    statement: str, mariadb: MariaDB, before: tuple[object, ...]
) -> None:
    """Even without the check of the statement's kind, DDL cannot commit.

    A procedure can COMMIT, so only that check excludes CALL.
    """
    writer = target_of(mariadb, "writer", allow_privileged=True)
    with pytest.raises(QueryFailed), read_only_mysql(writer, Cancellation()) as session:
        session.execute(statement)
    assert contents(mariadb) == before


def test_files_are_out_of_reach_of_accounts_that_read(mariadb: MariaDB) -> None:
    reader = target_of(mariadb, "reader")
    assert ask(reader, "SELECT LOAD_FILE('/etc/passwd')").values == [(None,)]
    with pytest.raises(QueryFailed, match=r"(?i)denied"):
        ask(reader, "SELECT * FROM other.secrets")
    # Its role has write rights, and is off.
    assert left_behind(reader) == CLEAN


@pytest.mark.parametrize(
    ("grant", "says"),
    [
        ("INSERT ON shop.*", "INSERT"),
        ("UPDATE (name) ON shop.customers", "UPDATE"),
        ("EXECUTE ON FUNCTION shop.sneaky", "EXECUTE"),
        ("CREATE TEMPORARY TABLES ON shop.*", "CREATE TEMPORARY TABLES"),
        ("FILE ON *.*", "FILE"),
        ("SUPER ON *.*", "SUPER"),
        ("PROCESS ON *.*", "PROCESS"),
        ("ALL ON shop.*", "ALL PRIVILEGES"),
        ("SELECT ON *.*", r"mysql\.\*"),
        ("SELECT ON mysql.global_priv", r"mysql\.\*"),
        ("PROXY ON root@localhost", "PROXY"),
        ("SELECT ON shop.* TO granting WITH GRANT OPTION", "GRANT OPTION"),
    ],
)
def test_accounts_that_may_do_more_are_refused(grant: str, says: str, mariadb: MariaDB) -> None:
    with root_of(mariadb) as root:
        root.execute("CREATE OR REPLACE USER granting IDENTIFIED BY 'sesame/öffne:dich'")
        root.execute("GRANT SELECT ON shop.* TO granting")
        target = target_of(mariadb, "granting")
        assert ask(target, "SELECT 1").row_count == 1
        root.execute(f"GRANT {grant}" + ("" if " TO " in grant else " TO granting"))
    if "*.*" in grant:
        close_idle(older_than=0)  # the server applies these to new sessions
    with pytest.raises(QueryFailed, match=says) as refused:
        ask(target, "SELECT 1")
    assert refused.value.code == "privileged"
    assert "CREATE USER" in str(refused.value)
    assert ask(replace(target, allow_privileged=True), "SELECT 1").row_count == 1


def test_a_grant_to_all_accounts_is_named_with_the_statement_that_removes_it(
    mariadb: MariaDB,
) -> None:
    """mariadb-install-db grants PUBLIC nearly everything on `test` and `test_…`."""
    place = r"`test\_%`.*"
    with root_of(mariadb) as root:
        root.execute("CREATE OR REPLACE USER granting IDENTIFIED BY 'sesame/öffne:dich'")
        root.execute("GRANT SELECT ON shop.* TO granting")
        root.execute(f"GRANT SELECT, INSERT, CREATE ON {place} TO PUBLIC")
        try:
            close_idle(older_than=0)
            target = target_of(mariadb, "granting")
            with pytest.raises(QueryFailed) as refused:
                ask(target, "SELECT 1")
            assert refused.value.code == "privileged"
            assert f"All accounts have rights on {place}" in str(refused.value)
            assert "CREATE USER" not in str(refused.value)

            statement = str(refused.value).partition("as an administrator: ")[2].rstrip(";")
            assert statement.endswith(f"ON {place} FROM PUBLIC")
            root.execute(statement)
            assert ask(target, "SELECT 1").row_count == 1

            root.execute(f"GRANT INSERT ON {place} TO PUBLIC")
            root.execute("GRANT UPDATE ON shop.* TO granting")
            with pytest.raises(QueryFailed, match=r"CREATE USER") as refused:
                ask(target, "SELECT 1")
            assert "FROM PUBLIC" in str(refused.value)
        finally:
            root.execute(f"GRANT INSERT ON {place} TO PUBLIC")
            root.execute(f"REVOKE ALL PRIVILEGES ON {place} FROM PUBLIC")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("GRANT USAGE ON *.* TO `r`@`%` IDENTIFIED BY PASSWORD '*B6'", set()),
        ("GRANT SELECT (`a`, `insert`), SHOW VIEW ON `x`.`y` TO `r`@`%`", set()),
        ("GRANT SELECT ON ` TO ``x`.* TO `r`@`%`", set()),
        ("GRANT `clerk`@`%` TO `r`@`%`", set()),
        ("SET DEFAULT ROLE `clerk` FOR `r`@`%`", set()),
        ("GRANT SELECT, FILE ON *.* TO `r`@`%`", {"FILE"}),
        ("GRANT BACKUP_ADMIN,CLONE_ADMIN ON *.* TO `r`@`%`", {"BACKUP_ADMIN", "CLONE_ADMIN"}),
        ("GRANT UPDATE (`a`), SELECT ON `x`.`y` TO `r`@`%`", {"UPDATE"}),
        ("GRANT PROXY ON ``@`%` TO 'r'@'%' WITH GRANT OPTION", {"PROXY", "GRANT OPTION"}),
        ("REVOKE SELECT ON `mysql`.* FROM `r`@`%`", set()),
        ("GRANT FILE ON `x`.`y`", {"an unknown privilege"}),
        ("ALLOW WRITE TO x", {"an unknown privilege"}),
    ],
)
def test_grants_are_parsed_into_privileges(line: str, expected: set[str]) -> None:
    assert powers(line) == expected
