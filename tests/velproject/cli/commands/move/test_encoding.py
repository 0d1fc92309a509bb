"""Vel does not start on a database that cannot store all texts."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import psycopg
import pytest

from tests.velproject.cli.commands.move.databases import tables_of
from tests.velproject.command import Vel

pytestmark = pytest.mark.postgresql


@pytest.fixture(params=["SQL_ASCII", "LATIN1"])
def other_encoding(request: pytest.FixtureRequest, postgres_url: str) -> Iterator[tuple[str, str]]:
    """Create a database with another encoding. Yield its URL and the encoding."""
    name = f"vel_encoding_{secrets.token_hex(4)}"
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute(
            f"CREATE DATABASE {name} ENCODING '{request.param}' LC_COLLATE 'C' LC_CTYPE 'C'"
            " TEMPLATE template0"
        )
        yield postgres_url.replace("/postgres?", f"/{name}?"), request.param
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.slow_cases
def test_nothing_starts_on_a_database_with_another_encoding_than_utf8(
    vel: Vel, other_encoding: tuple[str, str]
) -> None:
    url, encoding = other_encoding
    for words in (("runs", "list"), ("up", "--port", "0"), ("migrate",)):
        done = vel(*words, DATABASE_URL=url)
        assert (done.returncode, done.stdout) == (1, ""), words
        assert f"has the encoding {encoding}. Vel needs UTF8. Create another" in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert tables_of(url) == []
