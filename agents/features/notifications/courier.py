"""Sends notifications in this process, away from its event loop and from the workers' tasks.

Each target that something is due to has a thread of its own for as long: a receiver that hangs
holds up its own messages, and neither the others nor any run.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from django.db import DatabaseError, connection

from agents.features.notifications.delivery import deliver_next
from agents.features.notifications.queue import due_targets
from agents.kernel.jobs import WorkerPart

logger = logging.getLogger(__name__)

THREADS = 8
"""Targets that are sent to at once; the others wait for one of them."""


_open: set[Courier] = set()
_lock = threading.Lock()


def open_couriers() -> list[Courier]:
    """Return the couriers of this process that are not closed: one for each worker."""
    with _lock:
        return list(_open)


class Courier(WorkerPart):
    """`send_to` may be called from any thread; it returns at once."""

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
        """Send these targets whatever is due to them."""
        with self._lock:
            if self._stopping:
                return
            for target in targets:
                if target not in self._busy:
                    self._busy.add(target)
                    self._threads.submit(self._serve, target)

    def close(self) -> None:
        """Begin no other message. Returns at once."""
        with _lock:
            _open.discard(self)
        with self._lock:
            self._stopping = True
        self._threads.shutdown(wait=False, cancel_futures=True)

    def join(self) -> None:
        """Wait for the messages under way, after `close`: some seconds at most."""
        self._threads.shutdown()

    def _serve(self, target: str) -> None:
        try:
            while not self._stopping and deliver_next(target):
                pass
        except DatabaseError as error:
            # The message stays claimed for a minute and is due again then.
            logger.warning("sending notifications failed: %s", error)
        except Exception:
            logger.exception("sending notifications failed", extra={"target": target})
        finally:
            connection.close()
            with self._lock:
                self._busy.discard(target)
