"""Heartbeat of a web process: a thread that updates the process's row for the metrics."""

from __future__ import annotations

import atexit
import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable

from django.db import DatabaseError, connection

from agents.events.tail import tail
from agents.models import ProcessKind
from agents.services.machines.processes import PROCESS_HEARTBEAT_SECONDS, Reporter
from agents.telemetry.process import metrics_wanted

logger = logging.getLogger(__name__)

LAST_SECONDS = 5.0
"""The time for the last write of a process that ends; without it, the row expires later."""

_stop = threading.Event()


def start_web_heartbeat() -> None:
    """Start the heartbeat thread, unless metrics are turned off."""
    if metrics_wanted():
        heartbeat = threading.Thread(target=_heartbeat, name="vel-heartbeat", daemon=True)
        heartbeat.start()
        atexit.register(_end, heartbeat)


def _end(heartbeat: threading.Thread) -> None:
    _stop.set()
    heartbeat.join(LAST_SECONDS)


def _heartbeat() -> None:
    name = f"{socket.gethostname()[:40]}:{os.getpid()}:{secrets.token_hex(4)}"
    reporter = Reporter(ProcessKind.WEB, name)
    while not _stop.is_set():
        _say(lambda: reporter.report(streams=tail.watching))
        _stop.wait(PROCESS_HEARTBEAT_SECONDS)
    _say(reporter.retire)


def _say(what: Callable[[], None]) -> None:
    try:
        try:
            what()
        finally:
            connection.close()
    except DatabaseError as error:
        logger.warning("a web process could not write its heartbeat: %s", error)
    except Exception:  # the next heartbeat tries again
        logger.exception("a web process could not write its heartbeat")
