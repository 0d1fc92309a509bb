"""Removal of erased threads from the disks of all hosts that may have them.

A thread that moves between hosts leaves directories behind. Each host removes only the threads
recorded here: if a directory's thread is not in the database, it may be erased, but the directory
may also belong to another database.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from agents.models import ErasedFiles, Machine
from agents.services.erasure.files import erase_files_here
from agents.settings import MachineSettings

logger = logging.getLogger(__name__)


def tell_machines(threads: Iterable[str]) -> None:
    """Record erased threads for every known host, including dead ones.

    Call this in the transaction that erases, also in a program that runs on no host.
    """
    apart = Machine.objects.filter(shares_workspaces=False)
    hosts = list(apart.order_by("name").values_list("name", flat=True))
    rows = [ErasedFiles(host=host, thread=thread) for thread in threads for host in hosts]
    ErasedFiles.objects.bulk_create(rows, ignore_conflicts=True)


def remove_erased_here(stop: Callable[[], bool] = lambda: False) -> int:
    """Remove erased threads from this host's disk, and return the number of completed threads.

    Failures are logged, and the next call tries again. A host that was declared dead waits until it
    has stopped all its drivers and joined again.
    """
    settings = MachineSettings.now()
    if not settings.pins_threads:
        return 0
    if not Machine.objects.filter(name=settings.HOST, dead_at=None).exists():
        return 0
    done = 0
    for row in ErasedFiles.objects.filter(host=settings.HOST):
        if stop():
            break
        try:
            erase_files_here(row.thread)
        except OSError as error:
            logger.warning("files of thread %s cannot be erased: %s", row.thread, error)
            continue
        row.delete()
        done += 1
    return done


def forget_erased_of(host: str) -> None:
    """Delete the records of a host that is gone for good, with its disk."""
    ErasedFiles.objects.filter(host=host).delete()
