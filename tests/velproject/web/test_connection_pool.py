"""The web process shares its connections to PostgreSQL, and recovers when all are lost."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import psycopg
import pytest

from tests.support.site import Site, migrated_site

pytestmark = [pytest.mark.postgresql]


@pytest.fixture
def site(tmp_path: Path, postgres_url: str) -> Iterator[Site]:
    site = migrated_site(tmp_path, postgres_url)
    try:
        site.do("make_user", name="olga")
        site.start_server()
        yield site
    finally:
        site.close()
        with psycopg.connect(postgres_url, autocommit=True) as server:
            server.execute(f'DROP DATABASE "{_name(site)}" WITH (FORCE)')


def _name(site: Site) -> str:
    return urlsplit(site.environment["DATABASE_URL"]).path.lstrip("/")


def _ask(site: Site, token: str) -> int:
    request = Request(f"{site.url}/api/v1/runs", headers={"Authorization": f"Token {token}"})
    try:
        with urlopen(request, timeout=60) as answer:
            return int(answer.status)
    except HTTPError as error:
        with error:
            return error.code


@pytest.mark.slow
def test_requests_share_connections_and_get_over_their_loss(site: Site, postgres_url: str) -> None:
    token = site.do("make_token", user="olga", scopes=["read"])
    web = site.server_pid

    def connections(server: psycopg.Connection[tuple[int]]) -> set[int]:
        rows = server.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()",
            [_name(site)],
        )
        return {row[0] for row in rows}

    with psycopg.connect(postgres_url, autocommit=True) as server:
        assert _ask(site, token) == 200
        before = connections(server)
        assert [_ask(site, token) for _ in range(10)] == [200] * 10
        assert connections(server) == before

        for pid in before:
            server.execute("SELECT pg_terminate_backend(%s)", [pid])
        assert [_ask(site, token) for _ in range(5)] == [200] * 5

        name = _name(site)
        server.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        for pid in connections(server):
            server.execute("SELECT pg_terminate_backend(%s)", [pid])
        began = time.monotonic()
        assert _ask(site, token) == 503
        assert time.monotonic() - began < 30  # psycopg's own timeout would be that long
        server.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
        deadline = time.monotonic() + 60
        while _ask(site, token) != 200:
            assert time.monotonic() < deadline
    os.kill(web, 0)  # the same process all the time
