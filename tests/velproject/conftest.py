"""A `vel` for each test, and databases on PostgreSQL."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.support.migrated import copy_postgres
from tests.velproject.command import Vel, new_vel


@pytest.fixture
def vel() -> Iterator[Vel]:
    with new_vel() as command:
        yield command


@pytest.fixture
def database_url(postgres_url: str) -> Iterator[str]:
    """Create a database and remove it afterwards."""
    name = f"vel_cli_{secrets.token_hex(4)}"
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        yield postgres_url.replace("/postgres?", f"/{name}?")
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def prepared(postgres_url: str, database_url: str) -> str:
    """Create a database with all migrations."""
    copy_postgres(postgres_url, urlsplit(database_url).path.lstrip("/"))
    return database_url
