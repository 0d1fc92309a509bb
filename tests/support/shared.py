"""What all processes of a test run have in common."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def shared_directory() -> Path:
    """A directory of this run; `tests.settings` has made it."""
    # A worker's VEL_DATA_DIR is its own.
    return Path(os.environ.get("VEL_TEST_SHARED_DIR") or os.environ["VEL_DATA_DIR"])


@contextmanager
def alone(name: str) -> Iterator[None]:
    """What one process makes under this name, the others wait for."""
    with open(shared_directory() / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
