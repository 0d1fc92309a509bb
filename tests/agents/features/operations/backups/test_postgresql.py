"""Backups of PostgreSQL databases, with the `pg_dump` and `pg_restore` of this machine."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.agents.features.operations.backups.installation import (
    KEY,
    Installation,
    line_of,
    state_of,
)
from tests.velproject.cli.commands.move.databases import WHOLE, asked, tables_of

pytestmark = pytest.mark.postgresql


def test_a_backup_restores_into_an_empty_database(
    on_postgresql: Installation, database_url: str, empty: str
) -> None:
    whole = asked(database_url, WHOLE)
    assert len(whole) > 5
    on_postgresql.backup()
    vel = on_postgresql.restored(DATABASE_URL=empty)
    assert asked(empty, WHOLE) == whole
    assert tables_of(empty) == tables_of(database_url)
    held = "SELECT count(*) FROM agents_run WHERE executor = 'restored'"
    assert asked(empty, held) > [(0,)]
    enabled = "SELECT count(*) FROM vel_schedules_schedule WHERE is_enabled"
    assert asked(database_url, enabled) == [(1,)]
    assert asked(empty, enabled) == [(0,)]
    (request,) = vel.rows("approvals", "list")
    assert vel("approvals", "decide", request["id"], "approve").returncode == 0
    resumed = vel("runs", "resume", request["run"])
    assert (resumed.returncode, resumed.stdout) == (0, "Done.\n"), resumed.stderr


@pytest.mark.slow
def test_verify_compares_a_restored_database_and_deletes_it(
    on_postgresql: Installation, postgres_url: str
) -> None:
    on_postgresql.backup()
    done = on_postgresql.verify("--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["tables"] > 50
    assert found["rows"] > 500
    left = "SELECT datname FROM pg_database WHERE datname LIKE 'vel\\_verify%'"
    assert asked(postgres_url, left) == []


@pytest.mark.slow
def test_replace_keeps_the_old_schema(
    on_postgresql: Installation, database_url: str, empty: str
) -> None:
    on_postgresql.backup()
    vel = on_postgresql.restored(DATABASE_URL=empty)
    with psycopg.connect(empty) as database:
        database.execute("UPDATE auth_user SET first_name = 'changed'")
    line = line_of(on_postgresql.restore(vel))
    assert "not empty" in line
    done = on_postgresql.restore(vel, "--replace", "--json")
    assert done.returncode == 0, done.stderr
    changed = "SELECT count(*) FROM auth_user WHERE first_name = 'changed'"
    assert asked(empty, changed) == [(0,)]
    ((schema,),) = asked(
        empty, "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'before\\_restore%'"
    )
    assert any(schema in place for place in json.loads(done.stdout)["kept"])
    assert asked(empty, changed.replace("auth_user", f"{schema}.auth_user")) > [(0,)]


def test_a_restore_that_fails_late_brings_the_old_schema_back(
    on_postgresql: Installation, empty: str
) -> None:
    on_postgresql.backup()
    vel = on_postgresql.restored(DATABASE_URL=empty)
    with psycopg.connect(empty) as database:
        database.execute("UPDATE auth_user SET first_name = 'changed'")
    everything = "SELECT id, username, first_name FROM auth_user ORDER BY id"
    before, tables = asked(empty, everything), tables_of(empty)
    files = state_of(vel.data)
    on_postgresql.change_manifest(
        lambda body: body["database"]["tables"]["auth_user"].update(rows=99), KEY
    )
    line = line_of(on_postgresql.restore(vel, "--replace"))
    assert "The table auth_user differs" in line
    assert asked(empty, everything) == before
    assert tables_of(empty) == tables
    assert state_of(vel.data) == files
    schemas = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'before\\_restore%'"
    assert asked(empty, schemas) == [(0,)]


def test_a_sqlite_backup_is_not_restored_into_postgresql(
    installation: Installation, empty: str
) -> None:
    installation.backup()
    vel = installation.new(VEL_SECRET_KEY=KEY, DATABASE_URL=empty)
    line = line_of(installation.restore(vel))
    assert "is of a sqlite database" in line
    assert tables_of(empty) == []


@pytest.mark.slow
def test_a_role_that_may_not_create_databases_is_told_what_to_do(
    on_postgresql: Installation, postgres_url: str, role: str
) -> None:
    on_postgresql.backup()
    done = on_postgresql.verify(DATABASE_URL=role)
    assert "restoring the files" not in done.stderr
    line = line_of(done)
    name = urlsplit(role).username
    statement = f'ALTER ROLE "{name}" CREATEDB;'
    assert f"administrator of the server, run: {statement} Or" in line
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute(statement.encode())
    done = on_postgresql.verify(DATABASE_URL=role)
    assert done.returncode == 0, done.stderr
