"""Installations with rows of all parts of Vel, and places for their backups."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.features.operations.backups.installation import Installation
from tests.velproject.cli.commands.move.conftest import environment_of, filled, old, other_url, role
from tests.velproject.cli.commands.move.databases import Old
from tests.velproject.command import Vel, say
from tests.velproject.conftest import database_url

__all__ = ["database_url", "installation", "old", "other_url", "role"]


@pytest.fixture(scope="session")
def template() -> Iterator[Old]:
    """Fill an installation once, with a run that writes a file. Tests change copies of it."""
    shared = filled()
    directory = Path(tempfile.mkdtemp(prefix="vel-filled-", dir="/var/tmp"))
    try:
        shutil.copytree(shared.vel.data, directory, dirs_exist_ok=True)
        directory.chmod(0o711)
        vel = Vel(directory, environment_of(directory))
        write = ("write_file", {"path": "/sandbox/workspace/note.txt", "content": "Grüße 🌱\n"})
        flags = vel.script(say("I write.", write), say("Written."), name="write.json")
        done = vel(*flags, "write")
        assert done.returncode == 0, done.stderr
        yield Old(vel, shared.parked, shared.ended)
    finally:
        shutil.rmtree(directory)


@pytest.fixture
def installation(old: Old) -> Iterator[Installation]:
    """An installation on SQLite, with runs, files, schedules, memory and skills."""
    base = Path(tempfile.mkdtemp(prefix="vel-backup-", dir="/var/tmp"))
    base.chmod(0o711)
    try:
        yield Installation(old, base)
    finally:
        shutil.rmtree(base)


@pytest.fixture
def on_postgresql(installation: Installation, database_url: str) -> Installation:
    """The installation, moved to PostgreSQL."""
    done = installation.old.move(database_url)
    assert done.returncode == 0, done.stderr
    installation.vel.environment["DATABASE_URL"] = database_url
    return installation


@pytest.fixture
def empty(other_url: str) -> str:
    """Return the URL of another empty database."""
    return other_url


@pytest.fixture(scope="module")
def made(template: Old, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """A backup that tests copy."""
    installation = Installation(template, tmp_path_factory.mktemp("made"))
    installation.backup()
    return installation


@pytest.fixture
def copied(made: Installation, tmp_path: Path) -> Installation:
    """A copy of the backup, which a test may change."""
    mine = Installation(made.old, tmp_path)
    shutil.copytree(made.repository, mine.repository)
    return mine
