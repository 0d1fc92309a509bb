"""Call a function when the process ends, while its thread pools still work."""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401  # must register its own function first
import threading
from collections.abc import Callable


def before_threads_end(function: Callable[[], object]) -> None:
    """Call `function` once the main thread has ended, before Python closes thread pools.

    `concurrent.futures` closes all thread pools of a process before other threads end and before
    `atexit` calls its functions. At that time an active run could not finish its tools and could
    not be released: it would fail. `multiprocessing.util.Finalize` runs early enough only up to
    Python 3.12.

    This uses the private `threading._register_atexit`, as `concurrent.futures` does. The function
    that was registered last is called first.
    """
    threading._register_atexit(function)  # type: ignore[attr-defined]
