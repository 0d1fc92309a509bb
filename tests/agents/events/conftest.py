"""A site on SQLite and one on PostgreSQL, each with an event source and a writer process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agents.events.postgres import PostgresSource
from agents.events.sqlite import EventSource, SqliteSource
from agents.events.tail import Tail
from tests.support.site import Site, migrated_site


@dataclass
class Followed:
    """A site whose event log is followed."""

    site: Site
    tail: Tail
    make_source: Callable[[], EventSource]


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def followed(request: pytest.FixtureRequest) -> Followed:
    # Keep both sites: pytest would restart one whenever the parameter changes.
    found = request.getfixturevalue(f"followed_on_{request.param}")
    assert isinstance(found, Followed)
    return found


@pytest.fixture(scope="session")
def followed_on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Followed]:
    directory = tmp_path_factory.mktemp("site")
    yield from _followed(migrated_site(directory), lambda: _sqlite_source(directory))


@pytest.fixture(scope="session")
def followed_on_postgresql(
    tmp_path_factory: pytest.TempPathFactory, postgres_url: str
) -> Iterator[Followed]:
    site = migrated_site(tmp_path_factory.mktemp("site"), postgres_url)
    url = site.environment["DATABASE_URL"]
    yield from _followed(site, lambda: PostgresSource({"conninfo": url}))


def _sqlite_source(directory: Path) -> SqliteSource:
    return SqliteSource(str(directory / "site.sqlite3"))


def _followed(site: Site, make_source: Callable[[], EventSource]) -> Iterator[Followed]:
    site.do("make_user", name="olga")
    yield Followed(site, Tail(make_source), make_source)
    site.close()
