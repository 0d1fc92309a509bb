"""A site on SQLite and one on PostgreSQL, each with its source and a process that writes to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agents.events.postgres import PostgresSource
from agents.events.source import EventSource
from agents.events.sqlite import SqliteSource
from agents.events.tail import Tail
from tests.support.site import Site, new_database


@dataclass
class Followed:
    """A site whose log is followed."""

    site: Site
    tail: Tail
    make_source: Callable[[], EventSource]


@pytest.fixture(
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)], scope="session"
)
def followed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Followed]:
    directory = tmp_path_factory.mktemp("site")
    if request.param == "postgresql":
        url = new_database(request.getfixturevalue("postgres_url"))
        yield from _followed(Site(directory, url), lambda: PostgresSource({"conninfo": url}))
    else:
        yield from _followed(Site(directory), lambda: _sqlite_source(directory))


def _sqlite_source(directory: Path) -> SqliteSource:
    return SqliteSource(str(directory / "site.sqlite3"))


def _followed(site: Site, make_source: Callable[[], EventSource]) -> Iterator[Followed]:
    site.migrate()
    site.do("make_user", name="olga")
    yield Followed(site, Tail(make_source), make_source)
    site.close()
