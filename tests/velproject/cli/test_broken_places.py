"""Databases and directories that do not work: one line, exit code 1, no traceback."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.migrated import copy_sqlite
from tests.support.network import forwarding
from tests.support.small_disk import MB, small_disk
from tests.velproject.cli.test_usage import one_line_of
from tests.velproject.command import DEADLINE, Vel, say
from tests.velproject.forked import PROGRAM

IMPATIENT = {"DJANGO_SETTINGS_MODULE": "tests.velproject.impatient"}


def test_a_file_that_is_not_a_database_is_reported(vel: Vel) -> None:
    (vel.data / "notes.txt").write_text("not a database, " * 100)
    done = vel("runs", "list", "--persist", "notes.txt")
    assert done.returncode == 1
    assert "no SQLite database" in one_line_of(done)


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    "command",
    [
        ("migrate",),
        ("runs", "list"),
        ("--provider", "scripted", "--model", "echo", "hello"),
        ("up", "--port", "0"),
    ],
    ids=" ".join,
)
def test_a_database_of_a_development_version_is_refused_and_not_changed(
    vel: Vel, command: tuple[str, ...]
) -> None:
    vel.execute("DELETE FROM django_migrations WHERE app = 'agents' AND name <> '0001_initial'")
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
    assert "DATABASE_URL starts with 'mysql'" in one_line_of(done)


@pytest.mark.slow
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


@pytest.mark.slow
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
    # The interpreter may be in a directory of root, so the change of account is in this process.
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


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_a_full_disk(vel: Vel, tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", 300_000) as disk:
        listing = vel.command("runs", "list", "--persist", str(disk.place / "small.sqlite3"))
        done = subprocess.run(
            [*disk.inside, *listing],
            capture_output=True,
            text=True,
            env=vel.env(VEL_SECRET_KEY="k" * 50),
            check=False,
        )
    assert done.returncode == 1
    assert "The disk of the database is full (0 MB left)" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_a_disk_that_is_full_in_the_middle_of_a_run(vel: Vel, tmp_path: Path) -> None:
    write = ("write_file", {"path": "/big.txt", "content": "0123456789" * 100_000})
    script = vel.script(*[say("", write) for _ in range(20)], say("done"))
    copy_sqlite(tmp_path / "migrated.sqlite3")
    with small_disk(tmp_path / "small", 8 * MB) as disk:
        shutil.copyfile(tmp_path / "migrated.sqlite3", disk.seen / "db.sqlite3")
        place = str(disk.place / "db.sqlite3")
        task = vel.command("--persist", place, "--no-sandbox", *script, "task")
        done = subprocess.run(
            [*disk.inside, *task],
            capture_output=True,
            text=True,
            # Without a reserve, storing fails with the error of the database. The run cannot be
            # handed back either, so it is tried again after its lease.
            env=vel.env(
                VEL_SECRET_KEY="k" * 50, VEL_RESERVE_BYTES="0", **IMPATIENT, VEL_TEST_LEASE="2"
            ),
            check=False,
        )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "The disk of the database is full (0 MB left)" in last
    assert "vel runs resume" in last
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.postgresql
def test_a_database_server_that_goes_in_the_middle_of_a_run(vel: Vel, prepared: str) -> None:
    database = urlsplit(prepared)
    (directory,) = parse_qs(database.query)["host"]
    with ExitStack() as server:
        port = server.enter_context(forwarding(f"{directory}/.s.PGSQL.5432"))
        url = f"postgresql://vel@127.0.0.1:{port}{database.path}"
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


@pytest.mark.slow
def test_a_database_of_a_new_installation_is_prepared_once_by_many_starts(vel: Vel) -> None:
    path = str(vel.data / "new.sqlite3")
    vel("runs", "list")  # starts the process that forks the others
    with ThreadPoolExecutor(3) as threads:
        starts = [threads.submit(vel, "runs", "list", "--persist", path) for _ in range(3)]
        done = [start.result() for start in starts]
    assert [each.returncode for each in done] == [0, 0, 0], done
    assert sum("preparing the database" in each.stderr for each in done) == 1


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("variable", "path"),
    [
        # One function reads these.
        ("VEL_HOOKS", "broken.Own"),
        ("VEL_HOOKS", "leaving.Own"),
        ("VEL_GUARDRAILS", "fine.Nothing"),
        # Another function reads these.
        ("VEL_TOOLS", "broken.Own"),
        ("VEL_TOOLS", "leaving.Own"),
    ],
)
def test_registered_code_that_cannot_be_used_is_refused_before_a_run(
    vel: Vel, variable: str, path: str
) -> None:
    (vel.data / "broken.py").write_text("def broken(:\n")
    (vel.data / "fine.py").write_text("")
    (vel.data / "leaving.py").write_text("raise SystemExit")
    echo = ("--provider", "scripted", "--model", "echo")
    done = vel(*echo, "hi", **{PROGRAM: "tests.velproject.own_modules", variable: path})
    assert done.returncode == 1
    assert f"{path} cannot be used" in one_line_of(done)
    assert vel.runs() == []


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("command", "variable", "value"),
    [
        (("hi",), "VEL_PROVIDER", "opnai"),
        (("hi",), "VEL_MODEL", "claude-nope"),
        (("hi",), "VEL_SKILLS_DIRS", "/nowhere/skills"),
        # These two share one check of the settings.
        (("up", "--port", "0"), "VEL_MODEL", "claude-nope"),
        (("worker",), "VEL_SKILLS_DIRS", "/nowhere/skills"),
    ],
)
def test_a_model_or_a_directory_that_is_not_there_is_refused_before_a_run(
    vel: Vel, variable: str, value: str, command: tuple[str, ...]
) -> None:
    done = vel(*command, **{variable: value})
    assert done.returncode == 1
    message = one_line_of(done)
    assert variable in message
    assert repr(value) in message
    assert vel.count("agents_run") == 0
