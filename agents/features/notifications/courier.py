"""Send notifications in this process, outside its event loop and the workers' tasks.

Each target with due messages has its own thread. A slow receiver delays its own messages, but not
other targets or runs.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from django.db import DatabaseError, connection

from agents.features.notifications.queue import due_targets
from agents.kernel.features import WorkerPart
from agents.kernel.lazy_modules import lazy_modules

with lazy_modules:
    # Mail and HTTP take 8 ms, and most commands send nothing.
    from agents.features.notifications import delivery

logger = logging.getLogger(__name__)

THREADS = 8
"""Number of targets that can be served in parallel; the others wait."""


_open: set[Courier] = set()
_lock = threading.Lock()


def open_couriers() -> list[Courier]:
    """Return the couriers of this process that are not closed: one for each worker."""
    with _lock:
        return list(_open)


class Courier(WorkerPart):
    """A sender of due messages. `send_to` may be called from any thread and does not block."""

    finds = "notifications"

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="vel-courier")
        self._lock = threading.Lock()
        self._busy: set[str] = set()
        self._stopping = False
        with _lock:
            _open.add(self)

    def look(self) -> None:
        """Send what is due."""
        self.send_to(due_targets())

    def send_to(self, targets: Iterable[str]) -> None:
        """Send the due messages of these targets."""
        with self._lock:
            if self._stopping:
                return
            for target in targets:
                if target not in self._busy:
                    self._busy.add(target)
                    self._threads.submit(self._serve, target)

    def close(self) -> None:
        """Start no other message. Does not block."""
        with _lock:
            _open.discard(self)
        with self._lock:
            self._stopping = True
        self._threads.shutdown(wait=False, cancel_futures=True)

    def join(self) -> None:
        """Wait a few seconds for the messages in progress, after `close`."""
        self._threads.shutdown()

    def _serve(self, target: str) -> None:
        try:
            while not self._stopping and delivery.deliver_next(target):
                pass
        except DatabaseError as error:
            # The message stays claimed for a minute and is then due again.
            logger.warning("sending notifications failed: %s", error)
        except Exception:
            logger.exception("sending notifications failed", extra={"target": target})
        finally:
            connection.close()
            with self._lock:
                self._busy.discard(target)
