"""A data directory that sandboxes can be reached in."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def directory() -> Iterator[Path]:
    """A data directory. pytest's own lies where the accounts of commands cannot walk."""
    made = Path(tempfile.mkdtemp(prefix="vel-chaos-", dir="/var/tmp"))
    made.chmod(0o711)
    yield made
    shutil.rmtree(made)
