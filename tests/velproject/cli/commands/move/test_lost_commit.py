"""A move that loses its target in the middle says which state the target has."""

from __future__ import annotations

import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from agents.features.operations.starting import TABLE
from tests.velproject.cli.commands.move.commit_proxy import losing_the_commit
from tests.velproject.cli.commands.move.databases import Old, asked
from tests.velproject.command import DEADLINE

EVENTS = "SELECT count(*) FROM agents_runevent"


@pytest.mark.postgresql
def test_a_commit_that_the_server_did_not_get_leaves_both_databases_as_before(
    old: Old, postgres_url: str, untouched: str
) -> None:
    with losing_the_commit(postgres_url, untouched, "before") as proxy:
        line = old.refused(proxy.url)
    assert proxy.was_used
    assert "was lost at the end of the move, before the copy was stored" in line
    assert "Both databases are as before. Try again." in line
    assert asked(untouched, EVENTS) == [(0,)]


@pytest.mark.slow
@pytest.mark.postgresql
def test_a_commit_whose_answer_is_lost_completes_the_move(
    old: Old, postgres_url: str, database_url: str
) -> None:
    with losing_the_commit(postgres_url, database_url, "after") as proxy:
        done = old.move(proxy.url)
    assert proxy.was_used
    assert done.returncode == 0, done.stderr
    assert "after the copy was stored: the copy is complete" in done.stderr
    assert asked(database_url, EVENTS) == old.rows(EVENTS)
    assert TABLE in "".join(old.dump())


@pytest.mark.slow
@pytest.mark.postgresql
def test_without_the_server_the_line_says_how_to_complete_the_move(
    old: Old, postgres_url: str, database_url: str
) -> None:
    moment = "after, and the server is gone"
    with losing_the_commit(postgres_url, database_url, moment) as proxy:
        line = old.refused(proxy.url)
    assert "It has either the whole copy or nothing, and the old database is as before" in line
    assert "repeat the command: it completes the move" in line
    assert f"PostgreSQL database '{urlsplit(database_url).path.lstrip('/')}'" in line
    done = old.move(database_url)
    assert done.returncode == 0, done.stderr
    assert "has the whole copy of an earlier move" in done.stderr
    assert asked(database_url, EVENTS) == old.rows(EVENTS)
    assert TABLE in "".join(old.dump())


@pytest.mark.postgresql
def test_a_full_disk_of_the_server_leaves_both_databases_as_before(old: Old, prepared: str) -> None:
    with psycopg.connect(prepared) as database:
        database.execute(
            "CREATE FUNCTION fill() RETURNS trigger AS $$BEGIN"
            " RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END$$"
            " LANGUAGE plpgsql"
        )
        database.execute(
            "CREATE TRIGGER fill BEFORE INSERT ON agents_message FOR EACH ROW"
            " EXECUTE FUNCTION fill()"
        )
    line = old.refused(prepared)
    assert "failed: could not extend file" in line
    assert "Check that the disk of the target has room. Both databases are as before." in line
    assert asked(prepared, EVENTS) == [(0,)]


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.97], ids=["in its tables", "in its rows"])
def test_a_file_that_cannot_grow_leaves_both_databases_as_before(
    old: Old, tmp_path: Path, share: float
) -> None:
    """The limit of the process stops a write as a full disk does."""
    blocks = int(Path(old.file).stat().st_size * share) // 512
    before = old.dump()
    move = old.vel.command("database", "move", "--to", f"sqlite:///{tmp_path}/new.sqlite3")
    done = subprocess.run(
        ["sh", "-c", 'ulimit -f "$1"; shift; exec "$@"', "sh", str(blocks), *move],
        env=old.vel.env(),
        cwd=old.vel.data,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    line = done.stderr.splitlines()[-1]
    assert f"The copy to the SQLite database {tmp_path}/new.sqlite3 failed: disk I/O error." in line
    assert "Check that the disk of the target has room. Both databases are as before." in line
    assert old.dump() == before
    assert list(tmp_path.iterdir()) == []
