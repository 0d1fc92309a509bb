"""The database addresses that Vel connects to."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as project

from agents.features.databases.drivers.address import (
    AddressRefused,
    address_of,
    checked_url,
    without_secrets,
)
from agents.features.databases.drivers.target import DatabaseTarget

SERVER = "postgresql://reader:hunter2@db.example.org/shop"


def made(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE t (x)")
    return path


def refused(url: str) -> str:
    with pytest.raises(AddressRefused) as raised:
        checked_url(url, resolve=True)
    assert "hunter2" not in str(raised.value)
    assert raised.value.__cause__ is None
    return str(raised.value)


@pytest.mark.parametrize(
    ("url", "stored"),
    [
        (SERVER, "postgresql+psycopg://reader:hunter2@db.example.org/shop"),
        (
            "postgresql+psycopg://u@127.0.0.1:6543/a-b?sslmode=verify-full&connect_timeout=5",
            "postgresql+psycopg://u@127.0.0.1:6543/a-b?connect_timeout=5&sslmode=verify-full",
        ),
        ("postgres://u:p%40ss@[::1]/n", "postgresql+psycopg://u:p%40ss@[::1]/n"),
    ],
)
def test_servers_are_stored_with_their_driver(url, stored):
    assert checked_url(url) == stored


def test_the_shown_address_has_no_password():
    assert str(address_of(SERVER)) == "postgresql reader@db.example.org:5432/shop"
    assert "hunter2" not in repr(address_of(SERVER))


@pytest.mark.parametrize(
    "query",
    [
        "options=-c%20default_transaction_read_only%3Doff",
        "options=-cstatement_timeout=0",
        "host=/run/postgresql",
        "host=other.example.org",
        "hostaddr=127.0.0.1",
        "port=1",
        "dbname=vel",
        "user=postgres",
        "password=hunter2",
        "service=admin",
        "servicefile=/tmp/x",
        "passfile=/root/.pgpass",
        "sslrootcert=/etc/shadow",
        "sslkey=/etc/ssl/private/key.pem",
        "sslcert=/tmp/x",
        "sslcrl=/tmp/x",
        "target_session_attrs=read-write",
        "load_balance_hosts=random",
        "replication=database",
        "gssencmode=prefer",
        "client_encoding=utf8",
        "SSLMODE=disable",
        "sslmode=none",
        "sslmode=require&sslmode=disable",
        "connect_timeout=0",
        "connect_timeout=6000",
        "application_name=x%0a",
        "prepare_threshold=0",
        "autocommit=1",
    ],
)
def test_parameters_that_weaken_or_redirect_are_refused(query):
    assert "parameter" in refused(f"{SERVER}?{query}")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "shop",
        "hunter2",
        "postgresql://",
        "postgresql://u:hunter2@/shop",
        "postgresql:///shop",
        "postgresql://u:hunter2@host",
        "postgresql://:hunter2@host/shop",
        "postgresql://host/shop",
        "postgresql://u:hunter2@a.example.org,b.example.org/shop",
        "postgresql://u:hunter2@%2Frun%2Fpostgresql/shop",
        "postgresql://u:hunter2@host/host=evil",
        "postgresql://u:hunter2@host/postgresql://evil",
        "postgresql://u:hunter2@host/a b",
        "postgresql://u:hunter2@host:hunter2/shop",
        "postgresql://u:hunter2@host:99999999/shop",
        "postgresql://u:hunter2@ho\nst/shop",
        "mysql+mysqldb://u:hunter2@host/shop",
        "postgresql+psycopg2://u:hunter2@host/shop",
        "postgresql+asyncpg://u:hunter2@host/shop",
        "oracle:////tmp/x",
        "file:///etc/passwd",
        "x" * 3000,
    ],
)
def test_only_plain_addresses_of_one_server_are_accepted(url):
    refused(url)


def test_a_file_is_named_by_its_real_path(tmp_path):
    there = made(tmp_path / "shop.db")
    (tmp_path / "link.db").symlink_to(there)
    expected = f"sqlite:///{there.resolve()}"
    assert checked_url(f"sqlite:///{tmp_path}/link.db") == expected
    assert checked_url(f"sqlite+pysqlite:///{there}") == expected


@pytest.mark.parametrize(
    "form",
    [
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///shop.db",
        "sqlite:///{place}?mode=rw",
        "sqlite:///{place}?uri=true",
        "sqlite:///file:{place}",
        "sqlite://user:hunter2@host/{place}",
        "sqlite:///{place}/nothing",
        "sqlite:///{directory}",
        "sqlite:////dev/null",
        "sqlite:////proc/self/mem/x",
    ],
)
def test_other_forms_of_sqlite_are_refused(tmp_path, form):
    refused(form.format(place=made(tmp_path / "shop.db"), directory=tmp_path))


def use_as_own(settings: Any, **database: str) -> None:
    """Set Vel's own database in the settings only; nothing connects to it."""
    for name, value in database.items():
        settings.DATABASES["default"][name] = value


@pytest.fixture(autouse=True)
def _own_as_before() -> Iterator[None]:
    before = dict(project.DATABASES["default"])
    yield
    project.DATABASES["default"].clear()
    project.DATABASES["default"].update(before)


@pytest.fixture
def own_file(settings: Any, tmp_path: Path) -> Path:
    own = made(tmp_path / "vel.sqlite3")
    use_as_own(settings, ENGINE="django.db.backends.sqlite3", NAME=str(own))
    return own


def test_vels_own_file_is_refused_by_every_name(own_file, tmp_path):
    (tmp_path / "soft").symlink_to(own_file)
    os.link(own_file, tmp_path / "hard")
    Path(f"{own_file}-wal").write_bytes(b"")
    for name in (
        "vel.sqlite3",
        "soft",
        "hard",
        "vel.sqlite3-wal",
        "./../" + tmp_path.name + "/soft",
    ):
        assert "Vel's own" in refused(f"sqlite:///{tmp_path}/{name}")


def test_nothing_below_the_data_directory_is_read(settings, tmp_path):
    data = Path(settings.VEL["DATA_DIR"])
    inside = made(data / "workspace.db")
    try:
        (tmp_path / "way").symlink_to(data)
        assert "data directory" in refused(f"sqlite:///{inside}")
        assert "data directory" in refused(f"sqlite:///{tmp_path}/way/workspace.db")
    finally:
        inside.unlink()


def test_a_file_that_was_replaced_by_a_link_to_vels_own_is_refused_when_it_is_used(
    own_file, tmp_path
):
    shop = made(tmp_path / "shop.db")
    stored = checked_url(f"sqlite:///{shop}")
    shutil.move(shop, tmp_path / "away.db")
    shop.symlink_to(own_file)  # as an agent could that works in this directory
    with pytest.raises(AddressRefused, match="Vel's own"):
        checked_url(stored)


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("db.example.org", "db.example.org"),
        ("DB.example.org.", "db.example.org"),
        ("localhost", ""),
        ("127.0.0.1", "/run/postgresql"),
        ("localhost", "127.0.0.1"),
        ("127.0.0.2", "127.0.0.2"),
        ("0.0.0.0", ""),
        ("127.1", ""),
        ("[::ffff:127.0.0.1]", "localhost"),
        ("[::]", "127.0.0.1"),
    ],
)
def test_vels_own_server_is_refused_by_its_names(settings, host, own):
    server = {"NAME": "vel", "HOST": own, "PORT": ""}
    use_as_own(settings, ENGINE="django.db.backends.postgresql", **server)
    assert "Vel's own" in refused(f"postgresql://u:hunter2@{host}:5432/vel")
    checked_url(f"postgresql://u:hunter2@{host}/shop")  # another database there is not Vel's


@pytest.mark.parametrize(
    ("password", "text", "shown"),
    [
        ("e", "The server closed the connection.", "The server closed the connection."),
        ("e", 'password="e" in user:e@host', 'password="***" in user:***@host'),
        ("abc", "abcd xabc ab_abc abc", "abcd xabc ab_abc ***"),
        ("abcd", "xabcdx", "x***x"),
        ("%C3%A9", "é is é, café", "*** is ***, café"),
        ("e", "postgresql://u:e@h/d failed", "*** failed"),
    ],
)
def test_a_short_password_is_hidden_as_a_word_but_not_inside_words(password, text, shown):
    target = DatabaseTarget("shop", f"postgresql://u:{password}@h/d")
    assert without_secrets(text, target) == shown
