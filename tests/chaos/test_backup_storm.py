"""Backups in a storm: workers are killed while runs work, and each backup restores whole runs."""

from __future__ import annotations

import os
import secrets
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection

from tests.chaos.storm import Storm, storm
from tests.chaos.test_worker_death import any_seed, kill_a_worker
from tests.support.cluster import ROOT, database_url
from tests.support.hang import HANG
from tests.velproject.cli.commands.move.databases import WHOLE

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.bubblewrap,
    pytest.mark.both_databases,
]

AT_ONCE = 8
LEASE = 6.0
"""In seconds. With shorter leases, a busy machine loses a run so often that Vel ends it."""
BROKEN = {
    "a message refers to no run": """
        SELECT count(*) FROM agents_message m
        WHERE NOT EXISTS (SELECT 1 FROM agents_run r WHERE r.id = m.run_id)
    """,
    "a skill has a file without its content": """
        SELECT count(*) FROM skills_app_skillfile f
        WHERE NOT EXISTS (SELECT 1 FROM skills_app_skillblob b WHERE b.sha256 = f.blob_id)
    """,
    "a worker may continue a run": """
        SELECT count(*) FROM agents_run WHERE executor <> 'restored'
        AND (status IN ('queued', 'running', 'pending') OR wake_at IS NOT NULL)
    """,
    "a call is neither open nor ended": """
        SELECT count(*) FROM agents_toolcall
        WHERE (status IN ('pending', 'waiting', 'approved', 'started')) <> (finished_at IS NULL)
    """,
}
"""Counts that must be 0 in a restored database."""


def vel(*arguments: str, data: Path, url: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "velproject.cli", *arguments],
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "velproject.cli.settings",
            "VEL_DATA_DIR": str(data),
            "DATABASE_URL": url,
            "VEL_SECRET_KEY": "not-a-secret-only-for-tests",
            "VEL_RESERVE_BYTES": "0",
            "PYTHONPATH": str(ROOT),
        },
        cwd=data,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> None:
    said, _ = process.communicate(timeout=HANG)
    assert process.returncode == 0, said


@contextmanager
def empty_database(data: Path) -> Iterator[str]:
    """Return the URL of an empty database of the same kind as that of the storm."""
    if connection.vendor == "sqlite":
        yield f"sqlite:///{data}/vel.sqlite3"
        return
    server, name = os.environ["VEL_TEST_DATABASE_URL"], f"restored_{secrets.token_hex(4)}"
    with psycopg.connect(server, autocommit=True) as administrator:
        administrator.execute(f"CREATE DATABASE {name}")
        yield server.replace("/postgres?", f"/{name}?")
        administrator.execute(f"DROP DATABASE {name} WITH (FORCE)")


def rows(url: str, query: str) -> list[tuple[Any, ...]]:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database:
            return database.execute(query).fetchall()
    with psycopg.connect(url) as server:
        return server.execute(query.encode()).fetchall()


def check_restored(running: Storm, repository: Path, base: Path) -> int:
    """Restore the last backup, and check each run. Return how many were not finished."""
    data = base / f"restored-{secrets.token_hex(4)}"
    data.mkdir(mode=0o711)
    with empty_database(data) as url:
        finish(vel("restore", "latest", "--from", str(repository), data=data, url=url))
        whole = rows(url, WHOLE)
        assert len(whole) == rows(url, "SELECT count(*) FROM agents_run")[0][0]
        for run, seq, count, first, last in whole:
            assert (first, count, last) == (1, seq, seq), f"run {run} lacks events"
        for what, query in BROKEN.items():
            assert rows(url, query) == [(0,)], what
        states = rows(url, "SELECT thread_id, manifest FROM agents_workspacesnapshot")
        for thread, state in states:
            assert (data / "snapshots" / thread / "manifests" / state).is_file()
        unfinished = "SELECT count(*) FROM agents_run WHERE executor = 'restored'"
        return int(rows(url, unfinished)[0][0])


def back_up_in_a_storm(directory: Path, tmp_path: Path, count: int) -> None:
    repository, held = tmp_path / "backups", []
    with storm(directory, seed=any_seed(), lease=LEASE) as running:
        for _ in range(count):
            running.start_runs(AT_ONCE - len(running.unfinished()))
            running.wait_for_progress()
            backup = vel(
                "backup", "create", "--to", str(repository), data=directory, url=database_url()
            )
            kill_a_worker(running)
            finish(backup)
            held.append(check_restored(running, repository, tmp_path))
            print(f"{connection.vendor}: backup {len(held)} is whole", flush=True)
        running.wait_for_all()
        running.check()
    print(f"{connection.vendor}: {count} of {count} backups whole; unfinished runs in them: {held}")
    assert max(held) > 0, "no backup was taken while runs worked"


@pytest.mark.slow
def test_backups_in_a_short_storm_restore_whole_runs(directory: Path, tmp_path: Path) -> None:
    back_up_in_a_storm(directory, tmp_path, 2)


@pytest.mark.storm
def test_twenty_of_twenty_backups_in_a_storm_restore_whole_runs(
    directory: Path, tmp_path: Path
) -> None:
    back_up_in_a_storm(directory, tmp_path, 20)
