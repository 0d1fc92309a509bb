"""Erasure of threads: first hide them in one transaction, then remove their data.

A marked thread (`Thread.erased_at`) is hidden at every door. Its files are removed, then its rows
(`erasure.rows`). Its own row is the last one, so the next call finds it after a crash.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django_q.tasks import async_task

from agents.models import IdempotencyKey, Run, Thread
from agents.services.audit import record
from agents.services.erasure.elsewhere import tell_machines
from agents.services.erasure.files import erase_files
from agents.services.erasure.rows import Removed, erase_rows
from agents.services.errors import Conflict, NotFound
from agents.services.placement import machine_name
from agents.settings import MachineSettings
from agents.states import ENDED_RUNS

logger = logging.getLogger(__name__)

FINISH_TASK = "agents.tasks.finish_erasures"
BUSY = "A run of this thread is at work or waits: cancel it first, then erase the thread."
TOGETHER = 25
"""The number of threads whose rows are deleted in the same statements."""
OTHER_HOST_HOURS = 24
"""The time during which another machine's threads are left to that machine, which has their
files."""


@dataclass(frozen=True, slots=True)
class Erasable:
    """The data of a thread. `answers` are ids of the idempotency keys whose answers mention it."""

    runs: int
    answers: frozenset[int]


def what_erasure_removes(thread: Thread) -> Erasable:
    """Return what `erase_thread` would remove now, for a person's thread. Raises `Conflict`."""
    family = Thread.objects.filter(Q(pk=thread.pk) | Q(root=thread.pk))
    runs = Run.objects.filter(thread__in=family)
    if runs.exclude(status__in=ENDED_RUNS).exists():
        raise Conflict(BUSY, code="thread_busy")
    run_rows = list(runs.only("pk"))
    return Erasable(len(run_rows), frozenset(_answers_about(thread, [*family, *run_rows])))


@transaction.atomic
def erase_thread(thread_id: str, *, by: AbstractBaseUser | None, days: int | None = None) -> int:
    """Mark a person's thread and its subagents' threads as erased: they are hidden from now on.

    Returns the number of deleted answers under idempotency keys. Raises `NotFound` (no such
    thread, or a subagent's), and `Conflict` if a run of it has not ended or, with `days`, if a run
    ended in the last `days` days. The caller has checked the rights of `by`. Data that features
    keep for others (`agents.kernel.erasure`) and entries of the audit log are kept.
    """
    family = Thread.objects.filter(Q(pk=thread_id) | Q(root=thread_id)).order_by("pk")
    # Lock runs before their threads, ancestors first: ids are in the order of creation.
    locked = Run.objects.select_for_update(no_key=True).order_by("pk")
    list(locked.filter(thread__in=[thread.pk for thread in family]).values("pk"))
    found = list(family.all().select_for_update(no_key=True))
    root = next((row for row in found if row.pk == thread_id and row.root_id is None), None)
    if root is None:
        raise NotFound(f"There is no thread {thread_id!r}.", code="unknown_thread")
    # A new subagent belongs to a run that has not ended.
    runs = Run.objects.filter(thread__in=[row.pk for row in found])
    if runs.exclude(status__in=ENDED_RUNS).exists():
        raise Conflict(BUSY, code="thread_busy")
    answers = 0
    if days is None:
        about = _answers_about(root, [*found, *runs])
        answers, _ = IdempotencyKey.objects.filter(pk__in=about).delete()
        why = "asked for"
    elif runs.filter(ended_at__gt=timezone.now() - timedelta(days=days)).exists():
        raise Conflict("The thread has been used meanwhile.", code="thread_busy")
    else:
        why = f"quiet for {days} days"
    total = runs.update(is_erased=True)
    # The owner can reuse the key immediately, and a title is the start of a message.
    Thread.objects.filter(pk__in=[row.pk for row in found]).update(
        erased_at=timezone.now(), key=None, title=""
    )
    tell_machines(row.pk for row in found)
    record("thread.erased", root, name=root.pk, by=by, changes={"runs": (total, 0)}, note=why)
    async_task(FINISH_TASK)
    return answers


def _answers_about(root: Thread, rows: Iterable[Thread | Run]) -> list[int]:
    """Return ids of the answers under idempotency keys that mention the thread or its runs."""
    names = [row.pk for row in rows]
    return [
        row.pk
        for row in answers_of(root.owner_id).only("answer", "location").iterator()
        if any(name in row.answer or name in row.location for name in names)
    ]


def answers_of(owner: int) -> QuerySet[IdempotencyKey]:
    """Return all stored answers of a user's requests."""
    return IdempotencyKey.objects.filter(owner=owner).exclude(answer="")


def erase_answers_of(owner: int) -> int:
    """Delete all stored answers of a user's requests, and return their number.

    The requests can then be made again.
    """
    deleted, _ = answers_of(owner).delete()
    return deleted


def erasures_wait() -> bool:
    """Return whether a marked thread still has rows. The query uses a small index."""
    return Thread.every.filter(erased_at__isnull=False).exists()


def finish_erasures(stop: Callable[[], bool] = lambda: False) -> Removed:
    """Remove files and rows of marked threads and their subagents. Call it again after a crash.

    Failures are logged. The threads stay hidden, and the next call tries again.
    """
    # Subagents' threads are removed with their first thread.
    marked = Thread.every.filter(erased_at__isnull=False, root=None).order_by("pk")
    if MachineSettings.now().pins_threads:
        late = timezone.now() - timedelta(hours=OTHER_HOST_HOURS)
        marked = marked.filter(Q(host__in=("", machine_name())) | Q(erased_at__lt=late))
    removed, after = Removed(), ""
    while not stop():
        batch = list(marked.filter(pk__gt=after).values_list("pk", flat=True)[:TOGETHER])
        if not batch:
            break
        after = batch[-1]
        removed += erase_rows([key for key in batch if _files_are_gone(key)], stop)
    _forget_log()
    return removed


def _files_are_gone(thread_id: str) -> bool:
    """Return whether the files of the thread and its subagents could be removed."""
    try:
        for below in Thread.every.filter(root=thread_id).values_list("pk", flat=True):
            erase_files(below)
        erase_files(thread_id)
    except OSError as error:
        logger.warning("files of thread %s cannot be erased: %s", thread_id, error)
        return False
    return True


def _forget_log() -> None:
    """Empty SQLite's write-ahead log, which keeps old pages. Other readers can delay this."""
    if connection.vendor == "sqlite" and not connection.in_atomic_block:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
