"""Import numpy without its threads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "OPENBLAS_NUM_THREADS"


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit a numpy that is imported in the `with` block to the calling thread.

    The threads of OpenBLAS mostly wait for each other if matrices are small, which takes five times
    the processor time. OpenBLAS reads the environment variable when it is loaded, so this has no
    effect if numpy is already imported. A variable that is already set keeps its value.
    """
    is_set = VARIABLE in os.environ
    os.environ.setdefault(VARIABLE, "1")
    try:
        yield
    finally:
        if not is_set:
            del os.environ[VARIABLE]
