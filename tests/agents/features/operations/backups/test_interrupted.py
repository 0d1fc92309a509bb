"""After `kill -9` during a restore, one line says how to bring the old installation back."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
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
from tests.velproject.command import DEADLINE, Vel

KILLED = """
import os, signal, sys
from velproject.cli.main import main

left = [int(sys.argv.pop(1))]

def killed_before(function, counts):
    def call(*arguments, **more):
        left[0] -= counts(str(arguments[0]))
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **more)
    return call

os.rename = killed_before(os.rename, lambda path: True)
os.unlink = killed_before(os.unlink, lambda path: path.endswith("restoring.json"))
sys.exit(main())
"""
"""`vel`, killed before one of its renames or before it deletes the list of them (`argv[1]`)."""
REFUSED = "vel: A restore is not complete."


def killed(
    installation: Installation, vel: Vel, call: int, *more: str
) -> subprocess.CompletedProcess[str]:
    """Restore the last backup, and kill the process before the call with this number."""
    arguments = ["restore", "latest", "--from", str(installation.repository), "--replace", *more]
    return subprocess.run(
        [sys.executable, "-P", "-c", KILLED, str(call), *arguments],
        capture_output=True,
        text=True,
        env=vel.env(),
        cwd=vel.data,
        timeout=DEADLINE,
        check=False,
    )


def used(installation: Installation) -> Vel:
    """Return an installation whose rows and files differ from those of the last backup."""
    installation.backup()
    vel = installation.restored()
    with closing(sqlite3.connect(vel.data / "vel.sqlite3")) as database, database:
        database.execute("UPDATE auth_user SET first_name = 'changed'")
    (vel.data / "workspaces" / "mine").mkdir()
    (vel.data / "workspaces" / "mine" / "file").write_text("mine")
    return vel


def entries(vel: Vel) -> dict[str, bytes | str | None]:
    """Return the files of the installation, and the rows of its users.

    The bytes of a SQLite file change when it is read.
    """
    ours = ("workspaces", "snapshots", "archives", "set-aside", "secret_key", "before-restore-")
    found = state_of(vel.data)
    kept = {name: found[name] for name in found if name.startswith(ours)}
    files = [name for name in found if name.startswith(("vel.sqlite3", "restoring"))]
    return {**kept, **dict.fromkeys(files), **users_of(vel)}


def users_of(vel: Vel) -> dict[str, str]:
    file = vel.data / "vel.sqlite3"
    if not file.exists():
        return {}
    with closing(sqlite3.connect(file)) as database:
        return dict(database.execute("SELECT username, first_name FROM auth_user").fetchall())


def is_refused(vel: Vel) -> bool:
    done = vel("runs", "list", "--all")
    if done.returncode == 0:
        return False
    assert line_of(done).startswith(REFUSED)
    return True


def test_a_restore_that_was_killed_during_its_renames_can_be_undone(
    installation: Installation,
) -> None:
    vel = used(installation)
    before = entries(vel)
    assert killed(installation, vel, 5).returncode == -signal.SIGKILL
    assert entries(vel) != before
    assert line_of(vel("runs", "list", "--all")).startswith(REFUSED)
    assert line_of(
        installation.vel(
            "backup",
            "create",
            VEL_DATA_DIR=str(vel.data),
            DATABASE_URL="",
            VEL_BACKUP_TO=str(installation.repository),
        )
    ).startswith(REFUSED)
    assert "✗ restore" in vel("doctor").stdout
    done = vel("restore", "--undo")
    assert (done.returncode, done.stdout) == (0, "The installation is as before the restore.\n")
    assert entries(vel) == before
    assert "No restore was interrupted" in line_of(vel("restore", "--undo"))


@pytest.mark.slow
def test_the_next_restore_first_brings_back_what_a_killed_one_has_renamed(
    installation: Installation,
) -> None:
    vel = used(installation)
    before = entries(vel)
    assert killed(installation, vel, 5).returncode == -signal.SIGKILL
    assert "not empty" in line_of(installation.restore(vel))
    assert entries(vel) == before
    assert killed(installation, vel, 5).returncode == -signal.SIGKILL
    done = installation.restore(vel, "--replace")
    assert done.returncode == 0, done.stderr
    assert vel.value("SELECT count(*) FROM auth_user WHERE first_name = 'changed'") == 0
    (kept,) = (place for place in vel.data.glob("before-restore-*"))
    assert (kept / "workspaces" / "mine" / "file").read_text() == "mine"


@pytest.mark.slow
def test_a_restore_can_be_undone_wherever_it_was_killed(installation: Installation) -> None:
    vel = used(installation)
    before = entries(vel)
    refused = []
    for call in range(1, 50):
        done = killed(installation, vel, call)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        refused.append(is_refused(vel))
        assert vel("restore", "--undo").returncode == (0 if refused[-1] else 1)
        assert entries(vel) == before
    assert sum(refused) > 5
    assert refused[-1]
    assert vel.value("SELECT count(*) FROM auth_user WHERE first_name = 'changed'") == 0
    assert not [name for name in entries(vel) if ".restoring-" in name]


OPENED = """
import atexit, os, subprocess, sys
from velproject.cli.main import main

database, others, real = sys.argv.pop(1), [], os.open

def opened(path, *arguments, **more):
    if ".restoring-" in str(path) and not others:
        with open(database) as file:
            others.append(subprocess.Popen(["sleep", "600"], stdin=file))
        atexit.register(others[0].kill)
    return real(path, *arguments, **more)

os.open = opened
sys.exit(main())
"""
"""`vel`, with another process that opens a file (`argv[1]`) when the database is restored."""


def test_a_process_that_opens_the_old_database_during_the_restore_stops_it(
    installation: Installation,
) -> None:
    vel = used(installation)
    before = entries(vel)
    file = str(vel.data / "vel.sqlite3")
    restore = ("restore", "latest", "--from", str(installation.repository), "--replace")
    done = subprocess.run(
        [sys.executable, "-P", "-c", OPENED, file, *restore],
        capture_output=True,
        text=True,
        env=vel.env(),
        cwd=vel.data,
        timeout=DEADLINE,
        check=False,
    )
    assert f"Another process has opened {file} during the restore: process" in line_of(done)
    assert entries(vel) == before
    assert not [path.name for path in vel.data.iterdir() if path.name.startswith(".")]


def test_two_restores_do_not_work_in_one_installation(installation: Installation) -> None:
    vel = used(installation)
    with subprocess.Popen(
        ["flock", vel.data / "restore.lock", "sh", "-c", "echo locked; read end"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        assert "Another `vel restore` works" in line_of(installation.restore(vel, "--replace"))
        assert "Another `vel restore` works" in line_of(vel("restore", "--undo"))
        other.communicate()


# PostgreSQL --------------------------------------------------------------------------------------

EVERYTHING = "SELECT id, username, first_name FROM auth_user ORDER BY id"
SCHEMAS = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'before\\_restore%'"


@pytest.mark.postgresql
def test_a_restore_into_postgresql_that_was_killed_can_be_undone(
    on_postgresql: Installation, empty: str, tmp_path: Path
) -> None:
    on_postgresql.backup()
    vel = on_postgresql.restored(DATABASE_URL=empty)
    with psycopg.connect(empty) as database:
        database.execute("UPDATE auth_user SET first_name = 'changed'")
    before, tables, files = asked(empty, EVERYTHING), tables_of(empty), entries(vel)

    def check_and_undo() -> None:
        assert asked(empty, SCHEMAS) == [(1,)]
        assert line_of(vel("runs", "list", "--all")).startswith(REFUSED)
        done = vel("restore", "--undo")
        assert done.returncode == 0, done.stderr
        assert asked(empty, EVERYTHING) == before
        assert tables_of(empty) == tables
        assert entries(vel) == files
        assert asked(empty, SCHEMAS) == [(0,)]

    assert killed(on_postgresql, vel, 4).returncode == -signal.SIGKILL
    assert entries(vel) != files
    check_and_undo()
    # While pg_restore works.
    stub = tmp_path / "pg_restore"
    stub.write_text('#!/bin/sh\ncase "$*" in *--list*) exec "$REAL" "$@" ;; esac\nkill -9 $PPID\n')
    stub.chmod(0o755)
    real = subprocess.run(["which", "pg_restore"], capture_output=True, text=True, check=True)
    path = f"{tmp_path}:{os.environ['PATH']}"
    place = str(on_postgresql.repository)
    done = vel.fresh(
        "restore", "latest", "--from", place, "--replace", PATH=path, REAL=real.stdout.strip()
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    check_and_undo()


@pytest.mark.slow
@pytest.mark.postgresql
def test_a_killed_restore_into_an_empty_postgresql_database_leaves_it_empty(
    on_postgresql: Installation, empty: str
) -> None:
    on_postgresql.backup()
    vel = on_postgresql.new(VEL_SECRET_KEY=KEY, DATABASE_URL=empty)
    assert killed(on_postgresql, vel, 2).returncode == -signal.SIGKILL
    assert line_of(vel("runs", "list", "--all")).startswith(REFUSED)
    assert vel("restore", "--undo").returncode == 0
    assert tables_of(empty) == []
    assert asked(empty, "SELECT current_schema()") == [("public",)]
    assert entries(vel) == {}
