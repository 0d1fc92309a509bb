"""Measuring the free disk space, and recognising the errors of a full disk."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from django.db import DatabaseError, OperationalError, connection, transaction
from pytest_django.fixtures import Settings

from agents import disk_space
from agents.admin.runs import run_tag
from agents.disk_space import forget_room, full_disk, is_short, is_used_up, room
from agents.engine.worker import Worker
from agents.features.mcp_server.waiting import answer_of
from agents.models import Run
from agents.services.tokens import authenticate_token, create_token
from agents.states import RunStatus
from sandbox.backends.oserrors import as_file_errors
from sandbox.errors import FileError
from tests.agents.api.rows import make_agent, make_run, make_user
from velproject.cli.commands.runs.runs import status_words


@pytest.fixture(autouse=True)
def _now() -> None:
    forget_room()


def reserve(settings: Settings, size: int) -> None:
    settings.VEL = {**settings.VEL, "RESERVE_BYTES": size}


def full_sqlite(directory: Path) -> Exception:
    """Return the error of SQLite if its file cannot grow."""
    with closing(sqlite3.connect(directory / "full.sqlite3")) as database:
        database.execute("CREATE TABLE t (a)")
        database.execute("PRAGMA max_page_count = 2")
        with pytest.raises(sqlite3.OperationalError) as raised:
            database.execute("INSERT INTO t VALUES (zeroblob(100000))")
    return raised.value


def full_device() -> OSError:
    with (
        pytest.raises(OSError, match="No space") as raised,
        open("/dev/full", "wb", buffering=0) as file,
    ):
        file.write(b"x")
    return raised.value


def wrapped(error: Exception, outer: Exception) -> Exception:
    outer.__cause__ = error
    return outer


@pytest.mark.parametrize(
    "error",
    [
        full_sqlite,
        lambda directory: wrapped(full_sqlite(directory), OperationalError("database or disk…")),
        lambda directory: full_device(),
        lambda directory: OSError(errno.ENOSPC, "No space left on device"),
    ],
)
def test_a_full_disk_is_reported_with_the_free_space(
    settings: Settings, tmp_path: Path, error: Callable[[Path], Exception]
) -> None:
    reserve(settings, 10**18)
    megabytes = room().free // 1_000_000
    told = full_disk(error(tmp_path))
    assert told.startswith(f"The disk of the data directory is full ({megabytes:,} MB left). ")


def test_a_disk_that_is_not_the_data_directorys(settings: Settings) -> None:
    reserve(settings, 0)
    told = full_disk(full_device())
    assert told.startswith("A disk of this server has no room")
    assert "the disk of the data directory has" in told


def test_an_error_of_the_file_tools_is_known_by_its_cause() -> None:
    with pytest.raises(FileError) as raised, as_file_errors("/a"):
        raise full_device()
    assert full_disk(raised.value)


def test_a_quota_is_reported_as_a_quota() -> None:
    assert "quota" in full_disk(OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)))


@pytest.mark.django_db
@pytest.mark.parametrize(
    "error",
    [
        OperationalError("database is locked"),
        PermissionError(errno.EACCES, "Permission denied"),
        RuntimeError("database or disk is full"),
    ],
)
def test_other_errors_are_not_full_disks(error: Exception) -> None:
    assert full_disk(error) == ""


@pytest.mark.both_databases
@pytest.mark.django_db
def test_the_disk_of_postgresql_is_another() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("needs PostgreSQL")
    full = (
        "DO $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device'"
        " USING ERRCODE = 'disk_full'; END $$"
    )
    with (
        pytest.raises(DatabaseError) as raised,
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(full)
    assert full_disk(raised.value).startswith("The disk of the database server is full.")


def test_two_thresholds(settings: Settings) -> None:
    free = room().free
    for size, short, used_up in (
        (0, False, False),
        (2 * free, True, False),
        (9 * free, True, True),
    ):
        reserve(settings, size)
        assert (is_short(), is_used_up()) == (short, used_up)
    reserve(settings, 1)
    assert is_short(adding=2 * free)


def test_the_file_system_is_asked_once_a_second(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    real = os.statvfs

    def counted(path: Path) -> os.statvfs_result:
        asked.append(path)
        return real(path)

    now = [1000.0]
    monkeypatch.setattr(disk_space.os, "statvfs", counted)
    monkeypatch.setattr(disk_space.time, "monotonic", lambda: now[0])
    for _ in range(100):
        is_short()
        is_used_up()
    assert len(asked) == 1
    now[0] += 1.0
    is_short()
    assert len(asked) == 2


def test_a_database_on_its_own_disk_counts(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = dict(disk_space._places())
    assert names.pop("the data directory") == settings.VEL["DATA_DIR"]
    monkeypatch.setitem(connection.settings_dict, "NAME", str(tmp_path / "elsewhere.sqlite3"))
    monkeypatch.setitem(connection.settings_dict, "ENGINE", "django.db.backends.sqlite3")
    assert dict(disk_space._places())["the database"] == tmp_path


def test_a_data_directory_that_is_not_made_yet(settings: Settings, tmp_path: Path) -> None:
    settings.VEL = {**settings.VEL, "DATA_DIR": tmp_path / "a" / "b"}
    assert room().free > 0


@pytest.mark.django_db(transaction=True)
def test_a_worker_leaves_runs_while_the_disk_is_full_and_reports_it_once(
    settings: Settings,
) -> None:
    told: list[str] = []
    reserve(settings, 10**18)
    worker = Worker(executor="tests", on_disk_full=told.append)
    assert [worker.waits_for_room() for _ in range(3)] == [True] * 3
    assert len(told) == 1
    assert "waits for disk space" in told[0]
    reserve(settings, 0)
    assert not worker.waits_for_room()
    reserve(settings, 10**18)
    assert worker.waits_for_room()
    assert len(told) == 2


@pytest.mark.django_db
def test_a_token_signs_in_on_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    _, secret = create_token(make_user("ann"))
    with connection.execute_wrapper(refuse_updates):
        found = authenticate_token(secret)
    assert found is not None


def refuse_updates(execute, sql, params, many, context):  # type: ignore[no-untyped-def]
    if sql.startswith("UPDATE"):
        raise wrapped(OSError(errno.ENOSPC, "full"), OperationalError("full"))
    return execute(sql, params, many, context)


@pytest.mark.django_db
def test_an_mcp_client_gets_the_reason(settings: Settings) -> None:
    make_agent()
    run = make_run(make_user("ann"))
    assert "waits_for" not in answer_of(run)["structuredContent"]
    reserve(settings, 10**18)
    answer = answer_of(run)
    assert answer["structuredContent"]["waits_for"] == "space"
    assert "This run waits for disk space" in answer["content"][0]["text"]
    Run.objects.filter(pk=run.pk).update(status=RunStatus.COMPLETED)
    run.refresh_from_db()
    assert "waits_for" not in answer_of(run)["structuredContent"]


@pytest.mark.django_db
def test_the_command_line_and_the_admin_show_it(settings: Settings) -> None:
    make_agent()
    run = make_run(make_user("ann"))
    reserve(settings, 10**18)
    assert status_words(run) == "queued (waiting for disk space)"
    assert "This run waits for disk space" in run_tag(run)
