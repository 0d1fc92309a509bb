"""The command in a new interpreter, as people start it. The other tests fork it."""

from __future__ import annotations

import os

import pytest

from tests.velproject.command import Vel, say
from tests.velproject.forked import can_fork

NOT_FOR_A_TASK = ("psycopg", "jsonschema", "sqlalchemy", "anthropic", "text_scanner.scanning")


@pytest.mark.slow
def test_a_forked_command_works_like_a_fresh_one(vel: Vel) -> None:
    script = vel.script(say("Bönen."))
    for arguments in (["--no-sandbox", *script, "count"], ["nosuch", "--flag"], ["runs", "x"]):
        forked, fresh = vel(*arguments), vel.fresh(*arguments)
        assert (forked.returncode, forked.stdout) == (fresh.returncode, fresh.stdout)
        assert forked.stderr == fresh.stderr
    assert [run["status"] for run in vel.runs()] == ["completed", "completed"]


def test_changes_of_interpreter_settings_prevent_a_fork() -> None:
    assert can_fork(["runs"], {"VEL_LOG_LEVEL": "INFO"})
    assert not can_fork(["runs"], {"PYTHONPATH": "/tmp"})
    assert not can_fork(["up"], {})


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["runs", "list"], ["--no-sandbox", "count"]])
def test_it_imports_only_necessary_modules(vel: Vel, arguments: list[str]) -> None:
    given = [*vel.script(say("Beans.")), *arguments] if "count" in arguments else arguments
    done = vel.fresh(*given, PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0, done.stderr
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "django.db.models.query" in imported
    assert not imported.intersection(NOT_FOR_A_TASK)


@pytest.mark.slow
def test_file_names_without_utf8_are_refused(vel: Vel) -> None:
    done = vel.fresh("runs", "list", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert done.returncode != 0
    assert done.stderr.startswith("vel: Vel needs UTF-8 for file names, and Python uses ascii: set")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("door", ["VEL_DATA_DIR", "--persist"])
def test_a_path_that_is_not_utf8_is_refused(vel: Vel, door: str) -> None:
    place = os.fsdecode(b"/var/tmp/vel-\xff")
    if door == "VEL_DATA_DIR":
        done = vel.fresh("runs", "list", VEL_DATA_DIR=place)
    else:
        done = vel.fresh("runs", "list", "--persist", place)
    assert done.returncode != 0
    (line,) = done.stderr.splitlines()
    assert "not UTF-8" in line
    assert "vel-\\udcff" in line
    assert "internal error" not in line
