"""Import numpy without its threads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "OPENBLAS_NUM_THREADS"


@contextmanager
def one_thread() -> Iterator[None]:
    """Let a numpy that is imported here compute in the calling thread.

    For small matrices, its threads mostly wait for each other in loops, which takes five times the
    processor time. OpenBLAS reads the variable when it is loaded. A numpy that is imported already,
    and a variable that is set, are left as they are.
    """
    is_set = VARIABLE in os.environ
    os.environ.setdefault(VARIABLE, "1")
    try:
        yield
    finally:
        if not is_set:
            del os.environ[VARIABLE]
