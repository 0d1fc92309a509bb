"""A data directory that sandboxes can use."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def directory() -> Iterator[Path]:
    """Create a data directory. The accounts of the sandbox cannot traverse pytest's own."""
    made = Path(tempfile.mkdtemp(prefix="vel-chaos-", dir="/var/tmp"))
    made.chmod(0o711)
    yield made
    shutil.rmtree(made)
