"""The shop on a MariaDB server, with accounts that have more or fewer rights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pymysql

from agents.features.databases.drivers.target import DatabaseTarget
from tests.agents.features.databases.drivers.shop import PASSWORD, PASSWORD_IN_URL
from tests.support.mariadb import MariaDB

_SHOP = f"""
CREATE DATABASE shop CHARACTER SET utf8mb4;
CREATE DATABASE other;
USE shop;
CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(80) NOT NULL, email VARCHAR(80));
CREATE TABLE orders (id INT PRIMARY KEY, customer_id INT, total DECIMAL(10, 2) DEFAULT 0,
 FOREIGN KEY (customer_id) REFERENCES customers (id));
CREATE TABLE old (id INT PRIMARY KEY) ENGINE = MyISAM;
CREATE TABLE latin (name VARCHAR(20)) CHARACTER SET latin1 COLLATE latin1_german1_ci;
CREATE VIEW addresses AS SELECT email AS address FROM customers;
CREATE SEQUENCE numbers;
INSERT INTO customers VALUES (1, 'Ada', 'ada@example.org'), (2, 'Bob', 'bob@example.org');
INSERT INTO orders VALUES (10, 1, 19.99), (11, 1, 5.00), (12, 2, 7.50);
INSERT INTO old VALUES (1);
INSERT INTO latin VALUES ('Müller');
CREATE TABLE other.secrets (id INT PRIMARY KEY);
CREATE FUNCTION sneaky() RETURNS INT BEGIN DELETE FROM orders; RETURN 1; END;
CREATE FUNCTION sneaky_old() RETURNS INT BEGIN INSERT INTO old VALUES (2); RETURN 1; END;
CREATE FUNCTION mighty() RETURNS INT BEGIN
 SET SESSION tx_read_only = 0; DELETE FROM orders; RETURN 1; END;
CREATE FUNCTION honest() RETURNS INT DETERMINISTIC NO SQL BEGIN DELETE FROM orders; RETURN 1; END;
CREATE FUNCTION later() RETURNS INT BEGIN
 SET SESSION tx_read_only = 0, SESSION max_statement_time = 0, SESSION sql_mode = 'ANSI_QUOTES',
 @left = 'behind'; RETURN 1; END;
CREATE PROCEDURE emptied() BEGIN COMMIT; SET SESSION tx_read_only = 0; DELETE FROM orders; END;
CREATE VIEW trap AS SELECT sneaky() AS one;
CREATE ROLE clerk;
GRANT ALL ON shop.* TO clerk;
CREATE USER reader IDENTIFIED BY '{PASSWORD}';
GRANT SELECT ON shop.* TO reader;
GRANT clerk TO reader;
SET DEFAULT ROLE clerk FOR reader;
CREATE USER writer IDENTIFIED BY '{PASSWORD}';
GRANT ALL ON *.* TO writer WITH GRANT OPTION;
CREATE USER viewer IDENTIFIED BY '{PASSWORD}';
GRANT SELECT (id, name) ON shop.customers TO viewer;
GRANT SELECT ON shop.orders TO viewer;
GRANT SELECT ON shop.addresses TO viewer;
"""


@contextmanager
def root_of(server: MariaDB) -> Iterator[Any]:
    """Return a cursor of the server's root, in the shop's database if it exists."""
    connection = pymysql.connect(
        unix_socket=server.socket, user="root", autocommit=True, charset="utf8mb4"
    )
    with connection, connection.cursor() as cursor:
        cursor.execute("SHOW DATABASES LIKE 'shop'")
        if cursor.rowcount:
            cursor.execute("USE shop")
        yield cursor


def make_shop(server: MariaDB) -> None:
    statements, routine = [], ""
    for line in _SHOP.strip().split(";\n"):
        routine += line + ";\n"
        # A routine of several statements ends with END.
        if "BEGIN" not in routine or routine.rstrip().endswith("END;"):
            statements.append(routine)
            routine = ""
    with root_of(server) as root:
        for statement in statements:
            root.execute(statement.rstrip().rstrip(";"))


def target_of(server: MariaDB, account: str, **changes: Any) -> DatabaseTarget:
    url = f"mariadb://{account}:{PASSWORD_IN_URL}@127.0.0.1:{server.port}/shop"
    return DatabaseTarget("shop", url, **changes)
