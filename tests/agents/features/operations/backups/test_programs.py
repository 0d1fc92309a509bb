"""Programs of PostgreSQL that are missing, fail or are too old: one clear line, nothing changed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import psycopg
import pytest

from tests.agents.features.operations.backups.installation import (
    KEY,
    Installation,
    line_of,
    state_of,
)
from tests.velproject.cli.commands.move.databases import asked, tables_of

pytestmark = pytest.mark.postgresql

OLD_DUMP = "pg_dump: error: aborting because of server version mismatch"
OLD_RESTORE = "pg_restore: error: unsupported version (1.99) in file header"
DUMPS = {
    # What `pg_dump` does, and what the line says.
    "": "pg_dump is not installed. Install the client programs of PostgreSQL",
    "#!/bin/sh\necho 'pg_dump: error: out of memory' >&2\nexit 1\n": (
        "pg_dump failed (exit code 1): pg_dump: error: out of memory."
    ),
    "#!/bin/sh\nkill -9 $$\n": "pg_dump failed (signal 9): it printed no reason.",
    f"#!/bin/sh\necho '{OLD_DUMP}' >&2\nexit 1\n": "pg_dump is older than the server",
    "#!/bin/sh\nexit 0\n": "pg_dump has ended without an error, and has written no dump",
    "#!/no/such/interpreter\n": "cannot be started",
}
RESTORES = {
    "": "pg_restore is not installed. Install the client programs of PostgreSQL",
    f"#!/bin/sh\necho '{OLD_RESTORE}' >&2\nexit 1\n": "pg_restore is older than the server or the",
    '#!/bin/sh\ncase "$*" in *--list*) exec "$REAL" "$@" ;; esac\n"$REAL" "$@"\nexit 1\n': (
        "pg_restore failed (exit code 1): it printed no reason."
    ),
}
CHANGED = "SELECT count(*) FROM auth_user WHERE first_name = 'changed'"


def path_with(directory: Path, program: str, text: str) -> str:
    """Return a PATH with this program only. An empty text: without it."""
    stub = directory / program
    stub.unlink(missing_ok=True)
    if text:
        stub.write_text(text)
        stub.chmod(0o755)
    return str(directory)


def test_a_pg_dump_that_does_not_work_makes_no_backup(
    on_postgresql: Installation, tmp_path: Path
) -> None:
    for text, expected in DUMPS.items():
        done = on_postgresql.vel.fresh(
            *("backup", "create", "--to", str(on_postgresql.repository)),
            PATH=path_with(tmp_path, "pg_dump", text),
        )
        assert expected in line_of(done)
        assert list((on_postgresql.repository / "snapshots").iterdir()) == []
        assert not [name for name in os.listdir(on_postgresql.vel.data) if name.startswith(".")]


@pytest.mark.slow
def test_a_pg_restore_that_does_not_work_brings_the_old_schema_back(
    on_postgresql: Installation, empty: str, tmp_path: Path
) -> None:
    on_postgresql.backup()
    real = shutil.which("pg_restore")
    assert real is not None
    vel = on_postgresql.new(VEL_SECRET_KEY=KEY, DATABASE_URL=empty, REAL=real)
    for text, expected in RESTORES.items():
        done = vel.fresh(
            *("restore", "latest", "--from", str(on_postgresql.repository)),
            PATH=path_with(tmp_path, "pg_restore", text),
        )
        assert expected in line_of(done)
        assert tables_of(empty) == []
        assert state_of(vel.data) == {}


def test_a_database_that_others_use_is_not_replaced(
    on_postgresql: Installation, empty: str
) -> None:
    on_postgresql.backup()
    vel = on_postgresql.restored(DATABASE_URL=empty)
    with psycopg.connect(empty) as database:
        database.execute("UPDATE auth_user SET first_name = 'changed'")
        database.execute(
            "INSERT INTO agents_serverprocess (name, kind, host, pid, version, started_at, seen_at,"
            " driven, capacity, streams, limits, counters) VALUES ('w', 'worker', 'here', 4242, '',"
            " 0, extract(epoch FROM now()), 0, 1, 0, '', '')"
        )
    before, files = asked(empty, CHANGED), state_of(vel.data)
    line = line_of(on_postgresql.restore(vel, "--replace"))
    assert "the worker process 4242 on here reported" in line
    with psycopg.connect(empty) as database:
        database.execute("DELETE FROM agents_serverprocess WHERE name = 'w'")
        database.commit()
        line = line_of(on_postgresql.restore(vel, "--replace"))
    assert "1 other sessions use the PostgreSQL database" in line
    assert asked(empty, CHANGED) == before != [(0,)]
    assert state_of(vel.data) == files
    schemas = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'before\\_restore%'"
    assert asked(empty, schemas) == [(0,)]
