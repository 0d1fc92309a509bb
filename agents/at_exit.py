"""Call a function when the process ends, while its thread pools still work."""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401  # must register its own function first
import threading
from collections.abc import Callable


def before_threads_end(function: Callable[[], object]) -> None:
    """Call `function` once the main thread has ended, before Python closes thread pools.

    `concurrent.futures` closes all thread pools of a process before other threads end and before
    the functions of `atexit` are called. A run that is driven then could neither finish its tools
    nor be handed back: it would fail. `multiprocessing.util.Finalize` is early enough only up to
    Python 3.12.

    The function of `threading` is private. It is the one that `concurrent.futures` itself uses, and
    the functions are called in the reverse order of their registration.
    """
    threading._register_atexit(function)  # type: ignore[attr-defined]
