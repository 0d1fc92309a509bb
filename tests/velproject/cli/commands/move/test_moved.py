"""Vel does not start on a database that was moved, until somebody reopens it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from agents.features.operations.starting import TABLE
from tests.velproject.cli.commands.move.databases import Old, asked, dump
from tests.velproject.command import Vel

STARTS = [("a task",), ("up", "--port", "0")]
OTHER_STARTS = [
    ("runs", "list"),
    ("migrate",),
    ("worker",),
    ("database", "move", "--to", "sqlite:////var/tmp/elsewhere.sqlite3"),
]


def refusals(vel: Vel, starts: Sequence[tuple[str, ...]], place: str) -> None:
    """Let each command try to start. All must print the same line."""
    for words in starts:
        done = vel(*words)
        assert (done.returncode, done.stdout) == (1, ""), words
        assert done.stderr == (
            f"vel: This database was moved to {place}. Set DATABASE_URL to the URL of that one. "
            "To use this one again instead, run: vel database reopen\n"
        ), words


def test_nothing_starts_on_a_moved_database_until_it_is_reopened(old: Old, fresh: Path) -> None:
    before = old.dump()
    assert old.move(f"sqlite:///{fresh}").returncode == 0
    refusals(old.vel, STARTS, f"the SQLite database {fresh}")
    assert old.vel("runs", "list", DATABASE_URL=f"sqlite:///{fresh}").returncode == 0
    reopened = old.vel("database", "reopen")
    assert reopened.returncode == 0
    assert f"on the SQLite database {fresh}: it would repeat" in reopened.stdout
    assert old.dump() == before
    assert old.vel("runs", "list").returncode == 0


@pytest.mark.slow
def test_other_commands_refuse_a_moved_database_and_the_doctor_reports_it(
    old: Old, fresh: Path
) -> None:
    assert old.move(f"sqlite:///{fresh}").returncode == 0
    refusals(old.vel, OTHER_STARTS, f"the SQLite database {fresh}")
    found = old.vel("doctor")
    assert "✗ moved database This database was moved to the SQLite database" in found.stdout


def test_a_database_that_was_not_moved_is_not_reopened(vel: Vel) -> None:
    done = vel("database", "reopen")
    assert (done.returncode, done.stdout, done.stderr) == (
        *(1, ""),
        "vel: This database was not moved, so Vel can use it.\n",
    )


def test_a_file_that_is_missing_is_not_created_to_reopen_it(vel: Vel, tmp_path: Path) -> None:
    done = vel("database", "reopen", DATABASE_URL=f"sqlite:///{tmp_path}/nosuch.sqlite3")
    assert (done.returncode, done.stdout) == (1, "")
    assert "There is no database" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.postgresql
@pytest.mark.parametrize(
    "form",
    [
        "vel:hunter2@|&password=hunter2",
        pytest.param("vel:%68unter2@", marks=pytest.mark.slow),
        pytest.param("vel@|&password=hunter2", marks=pytest.mark.slow),
    ],
)
def test_neither_the_mark_nor_the_line_has_the_password(old: Old, prepared: str, form: str) -> None:
    user, _, option = form.partition("|")
    done = old.move(prepared.replace("vel@", user) + option)
    assert done.returncode == 0, done.stderr
    line = old.vel("runs", "list").stderr
    name = urlsplit(prepared).path.lstrip("/")
    assert f"moved to the PostgreSQL database '{name}' on " in line
    assert TABLE in "".join(old.dump())
    for text in (line, done.stdout, done.stderr, *old.dump()):
        assert "hunter2" not in text


@pytest.mark.slow
@pytest.mark.postgresql
def test_a_database_of_postgresql_moves_to_another_one_and_is_marked(
    old: Old, database_url: str, other_url: str
) -> None:
    assert old.move(database_url).returncode == 0
    old.vel.environment["DATABASE_URL"] = database_url
    moved = old.move(other_url)
    assert moved.returncode == 0, moved.stderr
    for query in ("SELECT * FROM agents_runevent ORDER BY run_id, seq", "SELECT * FROM auth_user"):
        assert asked(other_url, query) == asked(database_url, query) != []
    line = old.vel("runs", "list").stderr
    assert "This database was moved to the PostgreSQL database" in line
    assert old.vel("runs", "list", DATABASE_URL=other_url).returncode == 0
    assert old.vel("database", "reopen").returncode == 0
    assert old.vel("runs", "list").returncode == 0


@pytest.mark.slow
@pytest.mark.postgresql
def test_a_database_that_cannot_be_marked_is_moved_with_a_warning(
    old: Old, prepared: str, role: str, tmp_path: Path
) -> None:
    reader = role.split("//")[1].partition("@")[0]
    with psycopg.connect(prepared) as database:
        database.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {reader}")
        database.execute(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {reader}")
    new = tmp_path / "new.sqlite3"
    done = old.vel("database", "move", "--to", f"sqlite:///{new}", DATABASE_URL=role)
    assert done.returncode == 0, done.stderr
    assert "could not be marked as moved (permission denied" in done.stderr
    assert "Do not start Vel with it again" in done.stderr
    assert "database reopen" not in done.stdout
    assert "agents_run" in "".join(dump(str(new)))
