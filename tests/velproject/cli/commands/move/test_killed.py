"""After `kill -9` between the copy and the mark of a move, the next try completes the move."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from agents.features.operations.starting import TABLE
from tests.velproject.cli.commands.move.databases import Old, asked, dump
from tests.velproject.command import DEADLINE

KILLED = """
import os, signal, sys
from django.db.backends.utils import CursorWrapper
from velproject.cli.main import main

execute = CursorWrapper.execute

def killed_before_the_mark(self, sql, params=None):
    if sql.startswith("CREATE TABLE vel_operations_moved"):
        os.kill(os.getpid(), signal.SIGKILL)
    return execute(self, sql, params)

CursorWrapper.execute = killed_before_the_mark
sys.exit(main())
"""
"""`vel`, killed after the new database has the copy, and before the old one is marked."""
COMPLETED = "has the whole copy of an earlier move, which is completed now"
USERS = "SELECT id, username, first_name FROM auth_user ORDER BY id"


def killed(old: Old, url: str) -> None:
    """Let a move be killed. The old database is as before, and Vel can start on it."""
    before = old.dump()
    done = subprocess.run(
        [sys.executable, "-P", "-c", KILLED, "database", "move", "--to", url],
        capture_output=True,
        text=True,
        env=old.vel.env(),
        cwd=old.vel.data,
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert old.dump() == before


def completed(old: Old, url: str) -> None:
    """Repeat the move, which must complete it without another copy."""
    done = old.move(url)
    assert done.returncode == 0, done.stderr
    assert COMPLETED in done.stderr
    assert "copying" not in done.stderr
    assert "Counts and hashes of all tables are equal." in done.stdout
    assert TABLE in "".join(old.dump())
    assert "This database was moved to" in old.vel("runs", "list").stderr
    assert old.vel("runs", "list", DATABASE_URL=url).returncode == 0


def test_the_next_try_completes_a_move_to_sqlite(old: Old, fresh: Path) -> None:
    url = f"sqlite:///{fresh}"
    killed(old, url)
    copy = dump(str(fresh))
    # A process that is killed a moment earlier leaves the second name of the complete file.
    second = fresh.with_name(f"{fresh.name}.moving-00000000")
    os.link(fresh, second)
    other = fresh.with_name(f"{fresh.name}.moving-11111111")
    other.write_text("the file of another move")
    completed(old, url)
    assert dump(str(fresh)) == copy
    assert not second.exists()
    assert other.exists()


@pytest.mark.postgresql
def test_the_next_try_completes_a_move_to_postgresql(old: Old, prepared: str) -> None:
    killed(old, prepared)
    users = asked(prepared, USERS)
    assert users == old.rows(USERS)
    completed(old, prepared)
    assert asked(prepared, USERS) == users


def test_a_copy_that_has_changed_since_is_refused(old: Old, fresh: Path) -> None:
    url = f"sqlite:///{fresh}"
    killed(old, url)
    old.change("UPDATE auth_user SET first_name = 'changed'")
    before = dump(str(fresh))
    assert "is not empty: " in old.refused(url)
    assert dump(str(fresh)) == before
    old.change("DELETE FROM agents_runevent WHERE seq = 1")
    done = old.move(url)
    assert "is not empty: " in done.stderr
    assert "checking" not in done.stderr  # the counts of rows were enough
    assert dump(str(fresh)) == before


@pytest.mark.slow
@pytest.mark.postgresql
def test_a_session_that_uses_the_copy_is_named(old: Old, prepared: str) -> None:
    killed(old, prepared)
    with psycopg.connect(prepared, application_name="report") as other:
        other.execute("LOCK TABLE agents_run IN ACCESS SHARE MODE")
        assert "Other sessions use the PostgreSQL database" in old.refused(prepared)
    completed(old, prepared)


@pytest.mark.slow
@pytest.mark.postgresql
def test_a_database_is_not_moved_to_itself(old: Old, database_url: str) -> None:
    assert "is the database to move" in old.refused(old.url)
    assert old.move(database_url).returncode == 0
    old.vel.environment["DATABASE_URL"] = database_url
    users = asked(database_url, USERS)
    other_name = database_url.replace("postgresql://", "postgres://")
    for url in (database_url, other_name):
        done = old.move(url)
        assert (done.returncode, done.stdout) == (1, "")
        assert "is the database to move. Name another one." in done.stderr
    assert asked(database_url, USERS) == users
    assert old.vel("runs", "list").returncode == 0
