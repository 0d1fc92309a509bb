"""Thread of a process that finishes erasures, and deletes old data when that is due."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from django.db import DatabaseError, connection

from agents.services.background_jobs import take_background_job
from agents.services.erasure.actions import erasures_wait, finish_erasures
from agents.services.erasure.elsewhere import remove_erased_here
from agents.services.erasure.retention import Keep, prune
from agents.settings import RetentionSettings

logger = logging.getLogger(__name__)

BACKGROUND_JOB = "prune"
LOOK_SECONDS = 60.0
"""The interval of checks for unfinished erasures of other processes."""


class Pruner:
    """The pruner of a process, which does one task at a time.

    Any thread can call `look` and `hurry`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        # Not immediately: all workers of an installation start together, with more urgent work.
        self._next = time.monotonic() + LOOK_SECONDS
        self._asked = False
        self._is_working = False
        self._stopping = False

    def look(self) -> None:
        """Start due work, unless work is already running. Returns immediately."""
        with self._lock:
            if time.monotonic() >= self._next:
                self._begin()

    def hurry(self) -> None:
        """Start work now, because a thread has just been erased."""
        with self._lock:
            self._asked = True
            self._begin()

    def close(self) -> None:
        """Accept no new work, and end after the current transaction. Returns immediately."""
        with self._lock:
            self._stopping = True

    def join(self) -> None:
        """Wait until the thread has ended, after `close`."""
        if self._thread is not None:
            self._thread.join()

    def _begin(self) -> None:
        if self._stopping or self._is_working:
            return
        self._asked = True
        self._next = time.monotonic() + LOOK_SECONDS
        self._thread = threading.Thread(target=self._work, name="vel-pruner")
        self._thread.start()
        self._is_working = True

    def _work(self) -> None:
        while self._is_wanted():
            try:
                try:
                    _do_what_is_due(lambda: self._stopping)
                finally:
                    connection.close()
            except DatabaseError as error:
                # Erased threads stay hidden. The next check finds them again.
                logger.warning("pruning stopped: %s", error)
            except Exception:
                logger.exception("pruning stopped")

    def _is_wanted(self) -> bool:
        """Return whether there is work. If not, the pruner's thread ends after this call."""
        with self._lock:
            self._is_working = self._asked and not self._stopping
            self._asked = False
            return self._is_working


def _do_what_is_due(stop: Callable[[], bool]) -> None:
    hours = RetentionSettings.now().PRUNE_HOURS
    if hours and take_background_job(BACKGROUND_JOB, hours * 3600):
        removed = prune(Keep.of_settings(), stop)
        logger.info("pruned: %s", dict(removed))
    elif erasures_wait():
        finish_erasures(stop)
    remove_erased_here(stop)
