"""Installations with rows of all parts of Vel, and places for their backups."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.features.operations.backups.installation import Installation
from tests.velproject.cli.commands.move.conftest import filled, old, role
from tests.velproject.cli.commands.move.databases import Old
from tests.velproject.command import say
from tests.velproject.conftest import database_url

__all__ = ["database_url", "installation", "old", "role"]


@pytest.fixture(scope="session")
def template() -> Iterator[Old]:
    """Fill an installation once, with a run that writes a file. Tests change copies of it."""
    with filled() as found:
        write = ("write_file", {"path": "/sandbox/workspace/note.txt", "content": "Grüße 🌱\n"})
        flags = found.vel.script(say("I write.", write), say("Written."), name="write.json")
        done = found.vel(*flags, "write")
        assert done.returncode == 0, done.stderr
        yield found


@pytest.fixture
def installation(old: Old) -> Iterator[Installation]:
    """An installation on SQLite, with runs, files, schedules, memory and skills."""
    base = Path(tempfile.mkdtemp(prefix="vel-backup-", dir="/var/tmp"))
    base.chmod(0o711)
    try:
        yield Installation(old, base)
    finally:
        shutil.rmtree(base)
