"""Erased threads on the disks of all hosts that they may have been on.

A thread goes from host to host and leaves directories behind. Each host removes what it is told
of here, and nothing else: of a directory whose thread it does not find it cannot know whether
that was erased, or whether this is another database.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from agents.models import ErasedFiles, Machine
from agents.services.erasure.files import erase_files_here
from agents.settings import MachineSettings

logger = logging.getLogger(__name__)


def tell_machines(threads: Iterable[str]) -> None:
    """In the transaction that erases: every host that there is, also a dead one, has to look.

    Whoever erases, also a program that is on none of them.
    """
    apart = Machine.objects.filter(shares_workspaces=False)
    hosts = list(apart.order_by("name").values_list("name", flat=True))
    rows = [ErasedFiles(host=host, thread=thread) for thread in threads for host in hosts]
    ErasedFiles.objects.bulk_create(rows, ignore_conflicts=True)


def remove_erased_here(stop: Callable[[], bool] = lambda: False) -> int:
    """Remove what was erased from this host's disk; returns how many threads are done.

    What fails is logged and tried again by the next call. A host that counts as dead waits until
    it has stopped all that it drove, and has joined anew.
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
    """The host is gone for good, and its disk with it."""
    ErasedFiles.objects.filter(host=host).delete()
