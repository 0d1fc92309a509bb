"""The shop in a SQLite file, and in a PostgreSQL database with a read-only role."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from agents.features.databases.drivers.pools import close_idle
from agents.features.databases.drivers.target import DatabaseTarget
from tests.agents.features.databases.drivers.mariadb_shop import make_shop
from tests.agents.features.databases.drivers.shop import (
    PASSWORD,
    PASSWORD_IN_URL,
    TABLES,
    admin_of,
    make_sqlite,
)
from tests.support import lasting_helpers
from tests.support.mariadb import MariaDB, mariadb_server
from tests.support.site import new_database


@pytest.fixture
def sqlite_shop(tmp_path: Path) -> DatabaseTarget:
    return make_sqlite(tmp_path / "shop.sqlite3")


@pytest.fixture(scope="session")
def reader(postgres_url: str) -> Iterator[str]:
    """Create a role that may connect and read granted tables."""
    name = f"reader_{secrets.token_hex(4)}"
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'")
    yield name
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        # The databases are deleted with the test server. On a permanent server the role remains.
        admin.execute(f"ALTER ROLE {name} NOLOGIN")


@pytest.fixture
def postgres_shop(postgres_url: str, reader: str) -> Iterator[DatabaseTarget]:
    yield _postgres_shop(postgres_url, reader)
    lasting_helpers.release()


@pytest.fixture
def writer_shop(postgres_shop: DatabaseTarget, postgres_url: str, reader: str) -> DatabaseTarget:
    """The same shop with a role that has all rights: only the session prevents writes."""
    return _writer_shop(postgres_shop, postgres_url, reader)


@pytest.fixture(scope="module")
def lasting_writer_shop(postgres_url: str, reader: str) -> DatabaseTarget:
    """One shop for all tests of a module that do not change it: a new database costs 0.1 s."""
    return _writer_shop(_postgres_shop(postgres_url, reader), postgres_url, reader)


def _postgres_shop(postgres_url: str, reader: str) -> DatabaseTarget:
    url = new_database(postgres_url).replace("//vel@", f"//{reader}:{PASSWORD_IN_URL}@", 1)
    target = DatabaseTarget("shop", url)
    with admin_of(target, postgres_url) as admin:
        admin.execute(TABLES)
        admin.execute("CREATE SEQUENCE numbers")
        admin.execute(
            f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {reader};"
            f"GRANT ALL ON SEQUENCE numbers TO {reader}"
        )
    return target


def _writer_shop(postgres_shop: DatabaseTarget, postgres_url: str, reader: str) -> DatabaseTarget:
    with admin_of(postgres_shop, postgres_url) as admin:
        admin.execute(
            f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {reader};"
            f"GRANT ALL ON SCHEMA public TO {reader};"
            f"GRANT TEMPORARY, CREATE ON DATABASE {admin.info.dbname} TO {reader}"
        )
        admin.execute(
            "CREATE FUNCTION sneaky() RETURNS int LANGUAGE plpgsql AS $$ BEGIN "
            "DELETE FROM orders; RETURN 1; END $$;"
            "CREATE FUNCTION mighty() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN "
            "SET LOCAL transaction_read_only = off; DELETE FROM orders; RETURN 1; END $$;"
            "CREATE FUNCTION honest() RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN "
            "PERFORM set_config('transaction_read_only', 'off', false); "
            "DELETE FROM orders; RETURN 1; END $$;"
            "CREATE PROCEDURE purge() LANGUAGE sql AS $$ DELETE FROM orders $$;"
            "CREATE VIEW trap AS SELECT sneaky() AS one;"
        )
        admin.execute(f"GRANT SELECT ON trap TO {reader}")
    return replace(postgres_shop, name="writer")


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDB]:
    """A MariaDB server with the shop."""
    with mariadb_server() as server:
        make_shop(server)
        yield server
        close_idle(older_than=0)
