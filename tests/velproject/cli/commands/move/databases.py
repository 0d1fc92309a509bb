"""Databases of the tests of `vel database move`, seen without Vel."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import psycopg

from tests.velproject.command import Vel

WHOLE = """
SELECT agents_runclock.run_id, agents_runclock.seq, count(*), min(e.seq), max(e.seq)
FROM agents_runclock JOIN agents_runevent e ON e.run_id = agents_runclock.run_id
GROUP BY agents_runclock.run_id, agents_runclock.seq
ORDER BY agents_runclock.run_id
"""


@dataclass
class Old:
    """A filled installation on SQLite. `parked` is an approval request of its own user."""

    vel: Vel
    parked: str
    ended: str

    @property
    def file(self) -> str:
        return str(self.vel.data / "site.sqlite3")

    @property
    def url(self) -> str:
        return self.vel.environment["DATABASE_URL"]

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.file)) as database:
            return database.execute(query).fetchall()

    def change(self, statement: str, values: Sequence[object] = ()) -> None:
        with closing(sqlite3.connect(self.file)) as database, database:
            database.execute(statement, values)

    def dump(self) -> list[str]:
        """Return all contents of the database, as statements."""
        return dump(self.file)

    def move(self, url: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.vel("database", "move", "--to", url, **environment)

    def refused(self, url: str, **environment: str) -> str:
        """Return the line of a refused move, which must leave the old database as it was."""
        before = self.dump()
        done = self.move(url, **environment)
        assert done.returncode == 1, (done.stdout, done.stderr)
        assert done.stdout == ""
        assert self.dump() == before
        line = done.stderr.splitlines()[-1]
        assert "internal error" not in line
        return line


def dump(file: str) -> list[str]:
    with closing(sqlite3.connect(file)) as database:
        return list(database.iterdump())


def asked(url: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as database:
        return database.execute(query).fetchall()


def tables_of(url: str) -> list[str]:
    query = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
    return [name for (name,) in asked(url, query)]
