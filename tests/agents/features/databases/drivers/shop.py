"""A small shop, the same in SQLite and PostgreSQL, and functions to query it."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg

from agents.features.databases.drivers.own_database import OwnDatabase
from agents.features.databases.drivers.table import QueryResult
from agents.features.databases.drivers.target import DatabaseTarget
from agents.features.databases.drivers.write import execute_sql
from sandbox.cancellation import Cancellation

NOBODYS = OwnDatabase()
"""Vel's own database, for tests in which it has no effect."""
PASSWORD = "sesame/öffne:dich"
PASSWORD_IN_URL = "sesame%2F%C3%B6ffne%3Adich"

TABLES = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers (id), total NUMERIC(10, 2)
);
CREATE INDEX by_email ON customers (email);
CREATE INDEX by_name ON customers (name, email);
CREATE VIEW addresses AS SELECT email AS address FROM customers;
INSERT INTO customers VALUES (1, 'Ada', 'ada@example.org'), (2, 'Bob', 'bob@example.org');
INSERT INTO orders VALUES (10, 1, 19.99), (11, 1, 5.00), (12, 2, 7.50);
"""


def ask(
    target: DatabaseTarget,
    query: str,
    params: Mapping[str, Any] | None = None,
    own: OwnDatabase = NOBODYS,
    cancel: Cancellation | None = None,
) -> QueryResult:
    return execute_sql(target, query, params, own, cancel or Cancellation())


def make_sqlite(path: Path) -> DatabaseTarget:
    connection = sqlite3.connect(path)
    connection.executescript(TABLES)
    connection.close()
    return DatabaseTarget("shop", f"sqlite:///{path}")


def admin_of(target: DatabaseTarget, admin_url: str) -> psycopg.Connection[Any]:
    """Open a superuser's session on the target's database."""
    database = target.url.partition("?")[0].rpartition("/")[2]
    return psycopg.connect(admin_url, dbname=database, autocommit=True)
