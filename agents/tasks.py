"""What workers are asked to do. A task hands it to the process's host and returns at once."""

from __future__ import annotations

import threading
from typing import Any

from agents.at_exit import before_threads_end
from agents.engine.host import Host

_host: Host | None = None
_lock = threading.Lock()
_options: dict[str, Any] = {}


def prepare_host(**options: Any) -> None:
    """Set the options of this process's `Host`. Call this before it is started."""
    _options.update(options)


def process_host() -> Host:
    """This worker process's host, started when it is first asked for."""
    global _host
    with _lock:
        if _host is None:
            _host = Host(**_options)
            _host.start()
            before_threads_end(_host.stop)
        return _host


def drive_run(run_id: str) -> None:
    """The q2 task behind `agents.services.wake.enqueue_run`."""
    process_host().submit(run_id)


def deliver_notifications(targets: list[str]) -> None:
    """The q2 task behind `agents.services.notifications.enqueue_deliveries`."""
    process_host().courier.send_to(targets)


def finish_erasures() -> None:
    """The q2 task behind `agents.services.erasure.erase_thread`."""
    process_host().pruner.hurry()
