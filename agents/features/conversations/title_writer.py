"""Write titles in this process, on a thread outside the event loop of the runs."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor

from django.db import DatabaseError, connection

from agents.features.conversations.settings import titles_wanted
from agents.kernel.features import WorkerPart
from agents.kernel.lazy_modules import lazy_modules

with lazy_modules:
    # Commands never write titles: 5 modules.
    from agents.features.conversations import title_calls, titles

logger = logging.getLogger(__name__)

JOIN_SECONDS = 5.0
"""The time that a call in progress has when the worker stops."""


class TitleWriter(WorkerPart):
    """Writes the titles that are due, one after the other."""

    finds = "titles"

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="vel-titles")
        self._lock = threading.Lock()
        self._is_busy = False
        self._is_stopping = False
        self._call: title_calls.TitleCall | None = None
        self._is_over = False

    @property
    def is_busy(self) -> bool:
        """Whether titles are being written."""
        return self._is_busy

    def look(self) -> None:
        """Write what is due."""
        if titles_wanted() and not self._is_busy and titles.has_due_title():
            self.write_due()

    def write_due(self) -> None:
        """Write the titles that are due, on the thread. Does not block."""
        with self._lock:
            if not self._is_stopping and not self._is_busy:
                self._is_busy = True
                self._threads.submit(self._serve)

    def close(self) -> None:
        """Start no other call. Does not block."""
        with self._lock:
            self._is_stopping = True
        self._threads.shutdown(wait=False)

    def join(self) -> None:
        """Wait a few seconds for the call in progress, after `close`, and then end it."""
        if self._is_busy:
            timer = threading.Timer(JOIN_SECONDS, self._cancel_call)
            timer.start()
            self._threads.shutdown()
            timer.cancel()

    def _cancel_call(self) -> None:
        with self._lock:
            self._is_over = True
            if self._call is not None:
                self._call.cancel()

    def _serve(self) -> None:
        try:
            while not self._is_stopping and (task := titles.take_title()) is not None:
                call = title_calls.TitleCall(task)
                with self._lock:
                    self._call = call
                    if self._is_over:
                        call.cancel()
                call.write()
        except DatabaseError as error:
            # The title stays taken for some time and is then due again.
            logger.warning("writing titles failed: %s", error)
        except Exception:
            logger.exception("writing titles failed")
        finally:
            connection.close()
            with self._lock:
                self._is_busy = False
