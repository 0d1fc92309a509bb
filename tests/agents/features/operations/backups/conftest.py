"""Installations with rows of all parts of Vel, and places for their backups."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.features.operations.backups.installation import Installation
from tests.velproject.cli.commands.move.conftest import old, template
from tests.velproject.cli.commands.move.databases import Old
from tests.velproject.command import say

__all__ = ["installation", "old", "template"]


@pytest.fixture(scope="module", autouse=True)
def _files(template: Old) -> None:
    """Let a run write a file, of which Vel takes a snapshot."""
    write = ("write_file", {"path": "/sandbox/workspace/note.txt", "content": "Grüße 🌱\n"})
    flags = template.vel.script(say("I write.", write), say("Written."), name="write.json")
    done = template.vel(*flags, "write")
    assert done.returncode == 0, done.stderr


@pytest.fixture
def installation(old: Old) -> Iterator[Installation]:
    """An installation on SQLite, with runs, files, schedules, memory and skills."""
    base = Path(tempfile.mkdtemp(prefix="vel-backup-", dir="/var/tmp"))
    base.chmod(0o711)
    try:
        yield Installation(old, base)
    finally:
        shutil.rmtree(base)
