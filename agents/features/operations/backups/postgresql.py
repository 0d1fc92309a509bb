"""Copies of a PostgreSQL database with `pg_dump`, and their contents."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from django.db import connections
from psycopg import sql
from psycopg.conninfo import make_conninfo

from agents.doors.cli.terminal import one_line
from agents.features.operations.backups.errors import BackupRefused
from agents.features.operations.backups.manifest import TableContent
from agents.features.operations.starting import RESTORING

ENGINE = "postgresql"
_PARAMETERS = ("dbname", "user", "host", "port", "passfile", "service", "options", "hostaddr")
_MAGIC = b"PGDMP"
"""The first bytes of a dump with `--format=custom`."""
_PASSWORD = "PGPASSWORD"  # noqa: S105  # the name of a variable
_FORMS = (
    "SET DateStyle = 'ISO, YMD'",
    "SET IntervalStyle = 'postgres'",
    "SET TimeZone = 'UTC'",
    "SET bytea_output = 'hex'",
    "SET extra_float_digits = 1",
    "SET client_encoding = 'UTF8'",
)
"""Settings that change how values are written. The hashes must not depend on them."""
_TABLES = """
SELECT c.oid, c.relname
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = current_schema() AND c.relkind = 'r' AND c.relname <> %s
ORDER BY c.relname COLLATE "C"
"""
_COLUMNS = """
SELECT a.attname, a.attcollation <> 0, array_position(i.indkey::int2[], a.attnum)
FROM pg_attribute a LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
ORDER BY a.attnum
"""


class PostgresqlServer:
    """The database of a Django alias, for connections and for the programs of PostgreSQL."""

    def __init__(self, alias: str = "default", dbname: str = "") -> None:
        given = connections[alias].get_connection_params()
        self.parameters: dict[str, Any] = {
            key: value
            for key, value in given.items()
            if value not in (None, "") and (key in _PARAMETERS or key.startswith("ssl"))
        }
        if dbname:
            self.parameters["dbname"] = dbname
        self._password = given.get("password") or ""

    @property
    def name(self) -> str:
        return f"the PostgreSQL database {self.parameters.get('dbname', '')!r}"

    def connect(self, **options: Any) -> psycopg.Connection[tuple[Any, ...]]:
        """Open a connection. Raises `BackupRefused`."""
        secret: dict[str, Any] = {"password": self._password} if self._password else {}
        try:
            return psycopg.connect(**self.parameters, **secret, **options)
        except psycopg.Error as error:
            raise BackupRefused(
                f"Cannot connect to {self.name}: {one_line(str(error), 300)} Check DATABASE_URL, "
                "and that the server runs."
            ) from error

    def run(self, program: str, *arguments: str) -> None:
        """Run a program of PostgreSQL on this database. Raises `BackupRefused`."""
        found = _program(program)
        # The password is in the environment: other accounts can read arguments.
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        if self._password:
            environment[_PASSWORD] = self._password
        database = f"--dbname={make_conninfo(**self.parameters)}"
        _run(program, [found, *arguments, database, "--no-password"], environment)


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise BackupRefused(
            f"{name} is not installed. Install the client programs of PostgreSQL, of the version "
            "of the server or a later one."
        )
    return found


def _run(name: str, command: list[str], environment: dict[str, str] | None = None) -> bytes:
    """Run a program of PostgreSQL, and return its output. Raises `BackupRefused`."""
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise BackupRefused(
            f"{command[0]} cannot be started: {error.strerror}. Install the client programs of "
            "PostgreSQL again."
        ) from error
    if done.returncode != 0:
        said = one_line(done.stderr.decode("utf-8", "replace"), 300).rstrip(".")
        raise BackupRefused(_explained(name, said, done.returncode))
    return done.stdout


def _explained(program: str, said: str, code: int) -> str:
    if "server version mismatch" in said or "unsupported version" in said:
        return (
            f"{program} is older than the server or the backup: {said}. Install the client "
            "programs of the same or a later version of PostgreSQL."
        )
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return f"{program} failed ({how}): {said or 'it printed no reason'}."


@contextmanager
def one_moment(server: PostgresqlServer) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """Yield a connection that sees the database as of one moment."""
    with server.connect() as connection:
        for each in _FORMS:
            connection.execute(each)
        connection.commit()
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        yield connection
        connection.rollback()


def dump(
    server: PostgresqlServer, connection: psycopg.Connection[tuple[Any, ...]], target: Path
) -> None:
    """Let `pg_dump` write what the connection sees to the new file `target`."""
    (snapshot,) = _first(connection, "SELECT pg_export_snapshot()")
    (schema,) = _first(connection, "SELECT current_schema()")
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    quoted = str(schema).replace('"', '""')
    server.run(
        "pg_dump",
        "--format=custom",
        "--compress=0",
        "--no-owner",
        "--no-privileges",
        f'--schema="{quoted}"',
        f"--snapshot={snapshot}",
        f"--file={target}",
    )
    with target.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise BackupRefused(
                "pg_dump has ended without an error, and has written no dump. Install the client "
                "programs of PostgreSQL again."
            )


def load(server: PostgresqlServer, file: Path) -> None:
    """Let `pg_restore` fill the empty database from a dump, completely or not at all."""
    listed = _list_of(file)
    chosen = file.with_name(f"{file.name}.list")
    # The schema exists already.
    lines = [line for line in listed.splitlines() if " SCHEMA - " not in line]
    chosen.write_text("\n".join(lines), "utf-8", "surrogateescape")
    server.run(
        "pg_restore",
        "--exit-on-error",
        "--single-transaction",
        "--no-owner",
        "--no-privileges",
        f"--use-list={chosen}",
        str(file),
    )


def _list_of(file: Path) -> str:
    listed = _run("pg_restore", [_program("pg_restore"), "--list", str(file)])
    return listed.decode("utf-8", "surrogateescape")


def version(connection: psycopg.Connection[Any]) -> str:
    (found,) = _first(connection, "SHOW server_version")
    return str(found).partition(" ")[0]


def major(text: str) -> int:
    """Return the major version of PostgreSQL. Raises `BackupRefused` for other texts."""
    first = text.partition(".")[0]
    if not first.isdecimal():
        raise BackupRefused(f"{text!a} is no version of PostgreSQL.")
    return int(first)


def contents(connection: psycopg.Connection[tuple[Any, ...]]) -> dict[str, TableContent]:
    """Return the contents of all tables of the current schema, without the mark of a restore."""
    found = {}
    for oid, name in connection.execute(_TABLES, [RESTORING]).fetchall():
        columns = connection.execute(_COLUMNS, [oid]).fetchall()
        digest, rows = hashlib.sha256(), 0
        with (
            connection.cursor() as cursor,
            cursor.copy(
                sql.SQL("COPY (SELECT {} FROM {} ORDER BY {}) TO STDOUT").format(
                    sql.SQL(", ").join(sql.Identifier(column) for column, *_ in columns),
                    sql.Identifier(name),
                    _order(columns, name),
                )
            ) as copy,
        ):
            for block in copy:
                digest.update(block)
                rows += bytes(block).count(b"\n")
        found[name] = TableContent(rows, digest.hexdigest())
    return found


def _order(columns: list[tuple[Any, ...]], table: str) -> sql.Composable:
    """Return the order of the primary key, by code points in every locale."""
    keys = sorted((each for each in columns if each[2] is not None), key=lambda each: each[2])
    if not keys:
        return sql.SQL('{}::text COLLATE "C"').format(sql.Identifier(table))
    return sql.SQL(", ").join(
        sql.SQL('{} COLLATE "C"' if collates else "{}").format(sql.Identifier(name))
        for name, collates, _ in keys
    )


def _first(connection: psycopg.Connection[Any], query: str) -> Mapping[int, Any] | Any:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row
