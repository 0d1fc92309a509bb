"""Tasks of the queue. A task passes its work to the process's worker and returns immediately."""

from __future__ import annotations

import threading
from typing import Any

from agents.at_exit import before_threads_end
from agents.engine.worker import Worker

_worker: Worker | None = None
_lock = threading.Lock()
_options: dict[str, Any] = {}


def prepare_worker(**options: Any) -> None:
    """Set the options of this process's `Worker`. Call this before it is started."""
    _options.update(options)


def process_worker() -> Worker:
    """Return the worker of this process, and start it on the first call."""
    global _worker
    with _lock:
        if _worker is None:
            _worker = Worker(**_options)
            _worker.start()
            before_threads_end(_worker.stop)
        return _worker


def drive_run(run_id: str) -> None:
    """Drive a run. The task behind `agents.services.runs.wake.enqueue_run`."""
    process_worker().submit(run_id)


def finish_erasures() -> None:
    """Finish erasures. The task behind `agents.services.erasure.actions.erase_thread`."""
    process_worker().pruner.hurry()
