"""Heartbeat of a web process: a thread that updates the process's row for the metrics.

It also reads the stored keys of providers, for the pages that show the default provider.
"""

from __future__ import annotations

import atexit
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from functools import partial

from django.db import DatabaseError, connection

from agents.events.tail import tail
from agents.models import ProcessKind
from agents.providers.stored_keys import refresh_stored_keys
from agents.services.machines.processes import PROCESS_HEARTBEAT_SECONDS, Reporter
from agents.telemetry.process import metrics_wanted

logger = logging.getLogger(__name__)

KEYS_SECONDS = 3.0
"""The interval between two reads of the stored keys."""
LAST_SECONDS = 5.0
"""The time for the last write of a process that ends; without it, the row expires later."""

_stop = threading.Event()


def start_web_heartbeat() -> None:
    """Start the heartbeat thread. It reports nothing if metrics are turned off."""
    heartbeat = threading.Thread(target=_heartbeat, name="vel-heartbeat", daemon=True)
    heartbeat.start()
    atexit.register(_end, heartbeat)


def _end(heartbeat: threading.Thread) -> None:
    _stop.set()
    heartbeat.join(LAST_SECONDS)


def _heartbeat() -> None:
    name = f"{socket.gethostname()[:40]}:{os.getpid()}:{secrets.token_hex(4)}"
    reporter = Reporter(ProcessKind.WEB, name) if metrics_wanted() else None
    due = time.monotonic()
    while not _stop.is_set():
        if reporter is not None and time.monotonic() >= due:
            due = time.monotonic() + PROCESS_HEARTBEAT_SECONDS
            _say(partial(reporter.report, streams=tail.watching))
        _say(refresh_stored_keys)
        _stop.wait(KEYS_SECONDS)
    if reporter is not None:
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
