"""Moves that `vel database move` refuses: one clear line, and nothing has changed."""

from __future__ import annotations

import os
import secrets
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tests.velproject.cli.commands.move.databases import Old, asked, tables_of
from tests.velproject.cli.commands.move.old_server import old_server
from tests.velproject.command import Vel

NOW = "(julianday('now') - 2440587.5) * 86400.0"
BAD_VALUES = {
    # What a program wrote into the file, and what the refusal says about it.
    "UPDATE agents_message SET content = 'a' || char(0) WHERE id = 1": (
        "agents_message, id 1: content contains a NUL character"
    ),
    "UPDATE agents_message SET content = CAST(x'61ed9f' AS TEXT) WHERE id = 2": (
        "agents_message, id 2: content is not valid UTF-8"
    ),
    "UPDATE agents_message SET content = x'6162' WHERE id = 3": (
        "agents_message, id 3: content is bytes instead of a text"
    ),
    "UPDATE auth_user SET first_name = substr(hex(zeroblob(200)), 1, 151) WHERE id = 1": (
        "auth_user, id 1: first_name has 151 characters; at most 150 are allowed"
    ),
    "UPDATE agents_message SET turn = 3000000000 WHERE id = 4": (
        "agents_message, id 4: turn is above 2147483647"
    ),
    "UPDATE auth_user SET date_joined = 'yesterday' WHERE id = 1": (
        "auth_user, id 1: date_joined is no date and time"
    ),
    "UPDATE agents_agentversion SET spec = json_set(spec, '$.x', char(0)) WHERE id = 1": (
        "agents_agentversion, id 1: spec contains a NUL character in JSON"
    ),
    """UPDATE agents_agentversion SET spec = '{"x": "\\ud800"}' WHERE id = 2""": (
        "agents_agentversion, id 2: spec contains a lone surrogate in JSON"
    ),
}


@pytest.mark.postgresql
def test_values_that_postgresql_refuses_are_named_before_anything_is_written(
    old: Old, database_url: str
) -> None:
    for statement in BAD_VALUES:
        old.change(statement)
    done = old.move(database_url)
    assert done.returncode == 1
    line = done.stderr.splitlines()[-1]
    for expected in BAD_VALUES.values():
        assert expected in line
    assert "PostgreSQL cannot store 8 values" in line
    assert "copying" not in done.stderr
    assert tables_of(database_url) == []


@pytest.mark.postgresql
def test_a_target_with_other_tables_or_rows_is_refused(old: Old, prepared: str) -> None:
    with psycopg.connect(prepared) as database:
        database.execute("INSERT INTO agents_backgroundjob VALUES ('mine', 1)")
    assert "is not empty: agents_backgroundjob has rows" in old.refused(prepared)
    with psycopg.connect(prepared) as database:
        database.execute("DELETE FROM agents_backgroundjob")
        database.execute("DELETE FROM django_migrations WHERE app = 'memory'")
    assert "has tables of other migrations" in old.refused(prepared)
    with psycopg.connect(prepared) as database:
        database.execute("CREATE TABLE invoices (id int)")
    assert "is not empty: it has the table invoices" in old.refused(prepared)


@pytest.mark.postgresql
@pytest.mark.parametrize(
    ("does", "says"),
    [
        ("NEW.content = NEW.content || 'x'; RETURN NEW", "values"),
        pytest.param("RETURN NULL", "rows", marks=pytest.mark.slow),
    ],
)
def test_a_copy_that_differs_is_rolled_back(old: Old, prepared: str, does: str, says: str) -> None:
    with psycopg.connect(prepared) as database:
        database.execute(
            f"CREATE FUNCTION spoil() RETURNS trigger AS $$BEGIN {does}; END$$ LANGUAGE plpgsql"
        )
        database.execute(
            "CREATE TRIGGER spoil BEFORE INSERT ON agents_message FOR EACH ROW"
            " EXECUTE FUNCTION spoil()"
        )
    assert f"agents_message has other {says} after the copy" in old.refused(prepared)
    assert asked(prepared, "SELECT count(*) FROM agents_run") == [(0,)]
    assert asked(prepared, "SELECT count(*) FROM auth_permission") != [(0,)]


@pytest.mark.slow
@pytest.mark.postgresql
def test_a_role_that_may_not_create_tables_gets_the_statement_for_it(old: Old, role: str) -> None:
    line = old.refused(role)
    assert "may not create tables in the schema public" in line
    assert 'GRANT CREATE ON SCHEMA "public" TO "reader_' in line
    assert tables_of(role) == []


@pytest.mark.slow
@pytest.mark.postgresql
def test_a_database_of_another_encoding_is_refused(old: Old, postgres_url: str) -> None:
    name = f"latin_{secrets.token_hex(4)}"
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
        try:
            line = old.refused(postgres_url.replace("/postgres?", f"/{name}?"))
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")
    assert "has the encoding LATIN1. Vel needs UTF8" in line


@pytest.mark.postgresql
def test_a_missing_database_or_server_is_named_without_the_password(
    old: Old, postgres_url: str
) -> None:
    url = postgres_url.replace("//vel@/postgres?", "//vel:hunter2@/nosuch?")
    line = old.refused(url)
    assert "Cannot connect to the PostgreSQL database 'nosuch'" in line
    assert "hunter2" not in line
    line = old.refused("postgresql://vel:hunter2@127.0.0.1:1/vel")
    assert "Cannot connect to the PostgreSQL database 'vel' on 127.0.0.1:1" in line
    assert "hunter2" not in line


@pytest.mark.slow
def test_an_old_version_of_postgresql_is_refused(old: Old) -> None:
    with old_server("12.4") as port:
        line = old.refused(f"postgresql://vel@127.0.0.1:{port}/vel?sslmode=disable")
    assert "is too old: PostgreSQL 14 or later is required (found 12.4)" in line


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("mysql://u:hunter2@h/n", "--to starts with 'mysql'"),
        pytest.param(
            "postgresql://u:hunter2@h:port/n",
            "--to has an invalid host or port",
            marks=pytest.mark.slow,
        ),
        pytest.param("sqlite:there.sqlite3", "needs an absolute path", marks=pytest.mark.slow),
        pytest.param(
            "sqlite:////no/such/directory/a.sqlite3",
            "/no/such/directory does not exist",
            marks=pytest.mark.slow,
        ),
        pytest.param("sqlite:////tmp", "/tmp is a directory", marks=pytest.mark.slow),
        ("sqlite:///{data}/secret.txt", "is no SQLite database"),
        ("sqlite:///{data}/link", "is a link"),
        ("sqlite:///{data}/site.sqlite3", "is the database to move"),
    ],
)
def test_an_unsuitable_target_is_refused(old: Old, url: str, says: str) -> None:
    secret = old.vel.data / "secret.txt"
    secret.write_text("not a database, but a text of some length " * 100)
    (old.vel.data / "link").symlink_to(secret)
    line = old.refused(url.format(data=old.vel.data))
    assert says in line
    assert "hunter2" not in line
    assert secret.read_text().startswith("not a database")


def test_a_disk_without_room_is_refused_before_anything_is_written(
    old: Old, tmp_path: Path
) -> None:
    line = old.refused(f"sqlite:///{tmp_path}/new.sqlite3", VEL_RESERVE_BYTES=str(10**17))
    assert "MB left, and the move needs up to 100,000,000," in line
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_reported_is_named(old: Old, tmp_path: Path) -> None:
    old.change(
        "INSERT INTO agents_serverprocess (name, kind, host, pid, version, started_at, seen_at,"
        " driven, capacity, streams, limits, counters)"
        f" VALUES ('w', 'worker', 'vel-1', 4711, '', 0, {NOW}, 0, 0, 0, '', '')"
    )
    old.change(
        "INSERT INTO agents_machine (name, identity, incarnation, shares_workspaces, is_draining,"
        f" joined_at, seen_at) VALUES ('vel-2', '', 1, 0, 0, 0, {NOW})"
    )
    old.change(
        f"UPDATE agents_runclock SET lease_until = {NOW} + 30, lease_holder = 'vel-3:77:x'"
        f" WHERE run_id = '{old.ended}'"
    )
    old.change(f"UPDATE agents_run SET status = 'running' WHERE id = '{old.ended}'")
    line = old.refused(f"sqlite:///{tmp_path}/new.sqlite3")
    assert "the worker process 4711 on vel-1 reported" in line
    assert "the host vel-2 reported" in line
    assert f"vel-3:77:x executes the run {old.ended}" in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_process_that_has_the_file_open_is_named(old: Old, tmp_path: Path) -> None:
    with closing(sqlite3.connect(old.file)) as other:
        other.execute("SELECT count(*) FROM agents_run").fetchone()
        done = old.move(f"sqlite:///{tmp_path}/new.sqlite3")
    assert done.returncode == 1
    assert f"Another process uses {old.file}: process {os.getpid()} (" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.postgresql
def test_a_session_that_locks_a_table_of_the_target_is_named(old: Old, prepared: str) -> None:
    with psycopg.connect(prepared, application_name="report") as other:
        other.execute("LOCK TABLE agents_run IN ACCESS SHARE MODE")
        line = old.refused(prepared)
    assert "Other sessions use the PostgreSQL database" in line
    assert "of vel report from" in line
    assert asked(prepared, "SELECT count(*) FROM agents_run") == [(0,)]


def test_a_missing_database_is_not_created(vel: Vel, tmp_path: Path) -> None:
    place = tmp_path / "nosuch.sqlite3"
    done = vel(
        *("database", "move", "--to", f"sqlite:///{tmp_path}/new.sqlite3"),
        DATABASE_URL=f"sqlite:///{place}",
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert f"There is no database {place}" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_database_of_another_version_is_refused(old: Old, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/new.sqlite3"
    old.change("INSERT INTO django_migrations (app, name, applied) VALUES ('agents', '9_new', '')")
    assert "A newer version of Vel has changed the database (agents.9_new)" in old.refused(url)
    old.change("DELETE FROM django_migrations WHERE app IN ('agents', 'memory')")
    assert "Run `vel migrate` first" in old.refused(url)


@pytest.mark.slow
def test_rows_of_a_disabled_feature_are_not_lost(old: Old, tmp_path: Path) -> None:
    line = old.refused(
        f"sqlite:///{tmp_path}/new.sqlite3", VEL_DISABLED_FEATURES="inbound_webhooks"
    )
    assert "vel_inbound_webhooks is not installed, and vel_inbound_webhooks_" in line
    assert "vel features remove vel_inbound_webhooks" in line


@pytest.mark.slow
def test_several_hosts_cannot_move_to_sqlite(old: Old, tmp_path: Path) -> None:
    line = old.refused(f"sqlite:///{tmp_path}/new.sqlite3", VEL_HOST="vel-1")
    assert "Several hosts (VEL_HOST) need PostgreSQL" in line


def test_wrong_usage_ends_with_2(vel: Vel) -> None:
    assert vel("database", "move").returncode == 2
    assert vel("database", "copy").returncode == 2
