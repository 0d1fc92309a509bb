"""Databases and directories that do not work: one line, exit code 1, no traceback."""

from __future__ import annotations

import sqlite3
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.migrated import copy_sqlite
from tests.support.postgres import postgres_server
from tests.velproject.cli.test_usage import one_line_of
from tests.velproject.command import DEADLINE, Vel, say

IMPATIENT = {"DJANGO_SETTINGS_MODULE": "tests.velproject.impatient"}


def test_a_file_that_is_no_database(vel: Vel) -> None:
    (vel.data / "notes.txt").write_text("not a database, " * 100)
    done = vel("runs", "list", "--persist", "notes.txt")
    assert done.returncode == 1
    assert "no SQLite database" in one_line_of(done)


@pytest.mark.parametrize(
    "command",
    [
        ("migrate",),
        ("runs", "list"),
        ("--provider", "scripted", "--model", "echo", "hello"),
        ("up", "--port", "0"),
        ("worker",),
    ],
    ids=" ".join,
)
def test_a_database_of_a_development_version_is_refused_and_not_changed(
    vel: Vel, command: tuple[str, ...]
) -> None:
    vel.execute("DELETE FROM django_migrations WHERE app = 'agents' AND name = '0002_links'")
    vel.execute(
        "INSERT INTO django_migrations (app, name, applied)"
        " VALUES ('agents', '0002_sandbox_options', '2026-11-22')"
    )
    before = (vel.data / "vel.sqlite3").read_bytes()
    done = vel(*command)
    assert done.returncode == 1
    assert "development version before 0.1.0" in one_line_of(done)
    assert (vel.data / "vel.sqlite3").read_bytes() == before


def test_a_database_server_that_is_not_there(vel: Vel) -> None:
    url = "postgresql://vel:sesame@127.0.0.1:1/vel"
    done = vel("runs", "list", DATABASE_URL=url)
    assert done.returncode == 1
    assert "cannot be reached" in one_line_of(done)
    assert "sesame" not in done.stderr


def test_a_database_url_that_means_nothing(vel: Vel) -> None:
    done = vel("runs", "list", DATABASE_URL="mysql://host/name")
    assert done.returncode == 1
    assert "DATABASE_URL begins with 'mysql'" in one_line_of(done)


def test_a_database_that_another_process_keeps_locked(vel: Vel) -> None:
    with sqlite3.connect(vel.data / "vel.sqlite3", isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        echo = ("--provider", "scripted", "--model", "echo")
        done = vel(*echo, "hi", **IMPATIENT, VEL_TEST_LOCK="1")
        other.execute("ROLLBACK")
    assert done.returncode == 1
    assert "locked" in one_line_of(done)


def test_a_data_directory_that_is_a_file(vel: Vel) -> None:
    (vel.data / "file").write_text("")
    done = vel("runs", "list", VEL_DATA_DIR=str(vel.data / "file"))
    assert done.returncode == 1
    assert "VEL_DATA_DIR" in one_line_of(done)


@pytest.mark.bubblewrap
@pytest.mark.parametrize("given", ["", "~/vel"])
def test_an_account_without_a_home_directory(vel: Vel, given: str) -> None:
    environment = vel.env(VEL_DATA_DIR=given, VEL_SECRET_KEY="k" * 50)
    environment.pop("HOME", None)
    environment.pop("XDG_DATA_HOME", None)
    done = subprocess.run(
        ["unshare", "--user", "--map-user=54321", *vel.command("runs", "list")],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 1
    assert "set VEL_DATA_DIR" in one_line_of(done)


@pytest.mark.root
def test_a_data_directory_that_this_account_may_not_write(vel: Vel) -> None:
    # The interpreter may lie where only root can go, so the check runs inside this process.
    program = (
        "import os, sys\n"
        "from velproject.cli.main import run_command_line\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "sys.exit(run_command_line(['migrate']))\n"
    )
    empty = vel.data / "empty"
    empty.mkdir(mode=0o755)
    done = subprocess.run(
        [vel.command()[0], "-P", "-c", program],
        capture_output=True,
        text=True,
        env=vel.env(VEL_DATA_DIR=str(empty), VEL_SECRET_KEY="k" * 50),
        check=False,
    )
    if "ModuleNotFoundError" in done.stderr or "No module named" in done.stderr:
        pytest.skip("needs an interpreter that every account can read")
    assert done.returncode == 1
    assert "VEL_DATA_DIR" in one_line_of(done) or "cannot be opened" in one_line_of(done)


@pytest.mark.root
def test_a_full_disk(vel: Vel) -> None:
    listing = vel.command("runs", "list", "--persist", str(vel.data / "small.sqlite3"))
    mounted = "mount -t tmpfs -o size=300k vel-test . && exec "
    try:
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", f'cd "$0" && {mounted}"$@"', str(vel.data), *listing],
            capture_output=True,
            text=True,
            env=vel.env(VEL_SECRET_KEY="k" * 50),
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("needs unshare")
    if "unshare:" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"needs permission to mount: {done.stderr}")
    assert done.returncode == 1
    assert "the disk is full" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


@pytest.mark.root
def test_a_disk_that_is_full_in_the_middle_of_a_run(vel: Vel, tmp_path: Path) -> None:
    write = ("write_file", {"path": "/big.txt", "content": "0123456789" * 100_000})
    script = vel.script(*[say("", write) for _ in range(20)], say("done"))
    small = tmp_path / "small"
    small.mkdir()
    copy_sqlite(tmp_path / "migrated.sqlite3")
    mount = (
        f"mount -t tmpfs -o size=8m vel-test {small} && "
        f"cp -p {tmp_path}/migrated.sqlite3 {small}/db.sqlite3 && exec "
    )
    task = vel.command("--persist", str(small / "db.sqlite3"), "--no-sandbox", *script, "task")
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", f'{mount}"$@"', "sh", *task],
        capture_output=True,
        text=True,
        # The run cannot be handed back either, so that it is tried again when its lease has ended.
        env=vel.env(VEL_SECRET_KEY="k" * 50, **IMPATIENT, VEL_TEST_LEASE="2"),
        check=False,
    )
    if "unshare:" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"needs permission to mount: {done.stderr}")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "the disk is full" in last
    assert "vel runs resume" in last
    assert "Traceback" not in done.stderr


@pytest.mark.postgresql
def test_a_database_server_that_goes_in_the_middle_of_a_run(vel: Vel) -> None:
    with ExitStack() as server:
        url = server.enter_context(postgres_server())
        slow = vel.script(say("thinking", ("ls", {"path": "/"})), say("done", delay=600.0))
        run = vel.start("--no-sandbox", *slow, "task", DATABASE_URL=url)
        assert run.stdout is not None
        shown = ""
        while "ls" not in shown:
            line = run.stdout.readline()
            assert line, shown
            shown += line
        server.close()
        rest, _ = run.communicate(timeout=DEADLINE)
    assert run.returncode == 1
    last = rest.splitlines()[-1]
    assert last.startswith("vel: the database "), rest
    assert "vel runs resume" in last
    assert "Traceback" not in rest


def test_a_database_of_a_new_installation_is_prepared_once_by_many_starts(vel: Vel) -> None:
    path = str(vel.data / "new.sqlite3")
    starts = [vel.start("runs", "list", "--persist", path) for _ in range(3)]
    outputs = [process.communicate()[0] for process in starts]
    assert [process.returncode for process in starts] == [0, 0, 0], outputs
    assert sum("preparing the database" in output for output in outputs) == 1
