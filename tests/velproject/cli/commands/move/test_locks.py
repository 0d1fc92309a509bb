"""The locks of a move: nobody writes to the old database, or prepares the new one, meanwhile."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from psycopg.errors import LockNotAvailable
from pytest_django.plugin import DjangoDbBlocker

from agents.doors.database_schema import MIGRATION_LOCK
from agents.features.operations.database_move.errors import MoveRefused
from agents.features.operations.database_move.postgresql import PostgresqlSide
from agents.features.operations.database_move.sqlite import SqliteSide
from agents.features.operations.database_move.tables import tables
from agents.settings.data import database
from tests.support.migrated import copy_sqlite

ADD = "INSERT INTO agents_backgroundjob (name, due_at) VALUES ('other', 1)"


@pytest.fixture(autouse=True)
def _own_databases(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Allow connections: these tests do not use the database of Django's test runner."""
    with django_db_blocker.unblock():
        yield


def test_no_other_connection_can_use_a_sqlite_file_during_its_move(tmp_path: Path) -> None:
    file = tmp_path / "vel.sqlite3"
    copy_sqlite(file)
    with closing(SqliteSide("move_source", database(f"sqlite:///{file}", tmp_path))) as side:
        with side.locked(), closing(sqlite3.connect(file, timeout=0)) as other:
            for statement in (ADD, "SELECT count(*) FROM agents_run"):
                with pytest.raises(sqlite3.OperationalError, match="locked"):
                    other.execute(statement)
        side.connection.close()
        with closing(sqlite3.connect(file, timeout=0)) as other, other:
            other.execute(ADD)


@pytest.mark.slow
@pytest.mark.postgresql
def test_others_can_only_read_a_postgresql_database_during_its_move(
    prepared: str, tmp_path: Path
) -> None:
    with (
        closing(PostgresqlSide("move_source", database(prepared, tmp_path))) as side,
        side.locked(),
        psycopg.connect(prepared, autocommit=True) as other,
    ):
        other.execute("SET lock_timeout = '50ms'")
        assert other.execute("SELECT count(*) FROM agents_run").fetchone() == (0,)
        with pytest.raises(LockNotAvailable):
            other.execute(ADD)
    with psycopg.connect(prepared) as other:
        other.execute(ADD)


@pytest.mark.postgresql
def test_two_processes_do_not_create_the_tables_at_the_same_time(
    database_url: str, tmp_path: Path
) -> None:
    with (
        closing(PostgresqlSide("move_target", database(database_url, tmp_path))) as side,
        psycopg.connect(database_url, autocommit=True) as other,
    ):
        other.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
        with (
            pytest.raises(MoveRefused, match="Another process of Vel prepares"),
            side.writing(tables(), set()),
        ):
            pytest.fail("it must not be called")
