"""`vel upgrade --check` names what an operator has to do, and changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.velproject.command import Vel, new_vel
from tests.velproject.conftest import database_url, prepared

__all__ = ["database_url", "prepared"]


@pytest.fixture
def vel() -> Iterator[Vel]:
    with new_vel() as command:
        yield command


def checked(vel: Vel, *words: str, **environment: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code, and the findings that are not all right by subject."""
    done = vel("upgrade", "--check", "--json", *words, **environment)
    assert done.stderr == ""
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert {one["subject"] for one in found} >= {"migrations", "settings", "defaults"}
    return done.returncode, {one["subject"]: one for one in found if one["level"] != "ok"}


def test_a_current_installation_needs_no_attention(vel: Vel) -> None:
    before = (vel.data / "vel.sqlite3").read_bytes()
    assert checked(vel) == (0, {})
    assert (vel.data / "vel.sqlite3").read_bytes() == before


def test_pending_migrations_are_named_and_not_applied(vel: Vel) -> None:
    vel.execute("DELETE FROM django_migrations WHERE app = 'vel_schedules'")
    before = (vel.data / "vel.sqlite3").read_bytes()
    code, found = checked(vel)
    assert (code, list(found)) == (1, ["migrations"])
    assert found["migrations"]["detail"] == "1 to apply: vel_schedules.0001_initial"
    assert "vel migrate" in found["migrations"]["mend"]
    assert (vel.data / "vel.sqlite3").read_bytes() == before


@pytest.mark.slow
def test_a_missing_database_is_not_created(vel: Vel) -> None:
    (vel.data / "vel.sqlite3").unlink()
    assert checked(vel) == (0, {})
    assert not (vel.data / "vel.sqlite3").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "detail"),
    [
        ("9999_tomorrow", "prepared by a newer Vel (agents.9999_tomorrow)"),
        ("0002_sandbox_options", "made by a development version before 0.1.0"),
    ],
)
def test_a_database_of_another_version_is_broken(vel: Vel, name: str, detail: str) -> None:
    vel.execute(
        "INSERT INTO django_migrations (app, name, applied)"
        f" VALUES ('agents', '{name}', '2026-11-22')"
    )
    code, found = checked(vel)
    assert (code, found["migrations"]["level"]) == (1, "broken")
    assert detail in found["migrations"]["detail"]


def test_an_unknown_setting_is_named_without_its_value(vel: Vel) -> None:
    code, found = checked(vel, VEL_WORKRES="sesame")
    assert code == 1
    assert "VEL_WORKRES has no effect. Did you mean VEL_WORKERS?" in found["settings"]["detail"]
    assert "sesame" not in str(found)


@pytest.mark.slow
def test_a_setting_that_prevents_the_start_is_broken(vel: Vel) -> None:
    code, found = checked(vel, VEL_SECRET_KEYS="short")
    assert (code, found["settings"]["level"]) == (1, "broken")


@pytest.mark.slow
def test_too_little_free_space_needs_attention(vel: Vel) -> None:
    code, found = checked(vel, VEL_RESERVE_BYTES=str(10**17))
    assert (code, found["space"]["mend"]) == (1, "Free some space first.")


@pytest.mark.slow
def test_control_characters_of_a_variable_do_not_reach_the_terminal(vel: Vel) -> None:
    done = vel("upgrade", "--check", **{"VEL_\x1b[2J": "1"})
    assert done.returncode == 1
    assert "VEL_\\x1b[2J" in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Add --check"),
        (("--check", "--from", "next"), "'next' is not a version"),
        (("--check", "--from", "1..2"), "'1..2' is not a version"),
        (("--check", "--from", ""), "'' is not a version"),
    ],
)
def test_wrong_usage_is_one_line(vel: Vel, words: tuple[str, ...], message: str) -> None:
    done = vel("upgrade", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_database_server_that_is_not_there_is_one_line(vel: Vel) -> None:
    done = vel("upgrade", "--check", DATABASE_URL="postgresql://vel:sesame@127.0.0.1:1/vel")
    assert done.returncode == 1
    assert "cannot be reached" in done.stderr
    assert "sesame" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.postgresql
def test_a_current_database_on_postgresql_needs_no_attention(vel: Vel, prepared: str) -> None:
    assert checked(vel, DATABASE_URL=prepared) == (0, {})
