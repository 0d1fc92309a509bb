"""A web process's sign of life, where metrics are scraped: a thread that writes its row."""

from __future__ import annotations

import atexit
import logging
import os
import secrets
import socket
import threading

from django.db import DatabaseError, connection

from agents.events.tail import tail
from agents.models import ProcessKind
from agents.services.processes import BEAT_SECONDS, Reporter
from agents.telemetry.wanted import metrics_wanted

logger = logging.getLogger(__name__)

_stop = threading.Event()


def start_web_beat() -> None:
    """Nothing where nobody may scrape metrics."""
    if metrics_wanted():
        threading.Thread(target=_beat, name="vel-beat", daemon=True).start()
        atexit.register(_stop.set)


def _beat() -> None:
    name = f"{socket.gethostname()[:40]}:{os.getpid()}:{secrets.token_hex(4)}"
    reporter = Reporter(ProcessKind.WEB, name)
    while True:
        try:
            reporter.report(streams=tail.watching)
        except DatabaseError as error:
            logger.warning("a web process could not say that it lives: %s", error)
        finally:
            connection.close()
        if _stop.wait(BEAT_SECONDS):
            return
