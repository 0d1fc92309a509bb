"""Checks of skill directories: unsafe ones are refused, unusable ones are reported."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.core.checks import run_checks
from pytest_django.fixtures import Settings

from skills_app.checks import store_problem
from skills_app.doctor import check_skills
from tests.support.skills import write_skill
from velproject.doctor.findings import Level

IDS = {"vel.E009", "vel.E010", "vel.E016", "vel.W005"}


def found() -> list[str]:
    return [str(message.id) for message in run_checks() if message.id in IDS]


@pytest.fixture
def directory(tmp_path: Path, settings: Settings) -> Path:
    """A correct directory of skills; each test breaks one property."""
    directory = tmp_path / "skills"
    write_skill(directory, "beans")
    directory.chmod(0o755)
    settings.VEL_SKILLS = {"DIRECTORIES": (str(directory),), "STORE": str(tmp_path / "store")}
    return directory


def test_a_directory_as_it_should_be_passes(directory: Path) -> None:
    assert found() == []


@pytest.mark.parametrize("place", [".", "beans", "beans/SKILL.md", ".."])
def test_a_world_writable_directory_is_refused(directory: Path, place: str) -> None:
    (directory / place).chmod(0o777)
    assert found() == ["vel.E010"]


def test_a_sticky_parent_directory_is_accepted(directory: Path) -> None:
    directory.parent.chmod(0o1777)
    assert found() == []
    directory.chmod(0o1777)
    assert found() == ["vel.E010"], "everybody may add a skill"


def test_a_link_is_checked_at_its_target(directory: Path, settings: Settings) -> None:
    link = directory.parent / "link"
    link.symlink_to(directory)
    settings.VEL_SKILLS = {"DIRECTORIES": (str(link),)}
    assert found() == []
    directory.chmod(0o777)
    assert found() == ["vel.E010"]


def test_a_missing_directory_is_reported(directory: Path, settings: Settings) -> None:
    settings.VEL_SKILLS = {
        "DIRECTORIES": (str(directory / "gone"), str(directory / "beans/SKILL.md"))
    }
    assert found() == ["vel.E016", "vel.E016"]


def test_an_unknown_key_is_refused(settings: Settings) -> None:
    settings.VEL_SKILLS = {"DIRECTORY": "/srv/skills"}
    assert found() == ["vel.E009"]


def test_a_store_that_cannot_be_created_is_reported(directory: Path, settings: Settings) -> None:
    settings.VEL_SKILLS = {"STORE": str(directory / "beans/SKILL.md/store")}
    assert found() == ["vel.W005"]
    (broken,) = [finding for finding in check_skills() if finding.level is Level.BROKEN]
    assert "cannot be unpacked" in broken.detail


@pytest.mark.root
def test_a_store_of_somebody_else_cannot_be_written(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        os.setresuid(65534, 65534, 65534)
        os._exit(0 if "may not write" in store_problem(Path("/usr/lib/vel-store")) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_doctor_names_omitted_skills(directory: Path) -> None:
    write_skill(directory, "broken", text="no head\n")
    told = [finding for finding in check_skills() if finding.level is Level.NOTE]
    assert [f"{directory}/broken" in finding.detail for finding in told] == [True]
    fine = [finding.detail for finding in check_skills() if finding.level is Level.OK]
    assert f"{directory}: 1" in fine
