"""The directory and the locks that all processes of a test run share."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def shared_directory() -> Path:
    """Return the directory of this run, which `tests.settings` has created."""
    # A pytest worker has its own VEL_DATA_DIR.
    return Path(os.environ.get("VEL_TEST_SHARED_DIR") or os.environ["VEL_DATA_DIR"])


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Let only one process at a time run the block with this name."""
    with open(shared_directory() / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
