"""Erasure of threads: first hide them in one transaction, then remove their data.

A marked thread (`Thread.erased_at`) is hidden at every door. Its files are removed first, then its
rows, in short transactions. Rows that refer to another row are deleted before it, and the row of
the thread is the last one: after a crash, the next call finds the thread and continues. The
references are read from the models, so tables that are added later are included.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import IntegrityError, connection, models, transaction
from django.db.models import CASCADE, SET_NULL, Q, QuerySet
from django.utils import timezone
from django_q.tasks import async_task

from agents.models import IdempotencyKey, Message, Run, RunEvent, Thread
from agents.services.audit import record
from agents.services.erasure.elsewhere import tell_machines
from agents.services.erasure.files import erase_files
from agents.services.errors import Conflict, NotFound
from agents.services.placement import machine_name
from agents.services.runs.usage_totals import count_runs_of
from agents.settings import MachineSettings
from agents.states import ENDED_RUNS

BATCH = 500
"""The number of rows that one transaction deletes."""
WORK_SHARE = 0.5
"""The share of the time in which an erasure may hold SQLite's only write lock. After each
transaction it waits as long as the transaction took, so that other writers get the lock."""
Removed = Counter[str]
"""Numbers of rows by the name of their model."""


def erase_rows(threads: Sequence[str], stop: Callable[[], bool] = lambda: False) -> Removed:
    """Delete these threads, which must be marked (`erased_at`), with all rows that refer to them.

    The threads of their subagents are included. `stop` is called between transactions, and ends the
    work if it returns true. The next call finds the remaining rows.
    """
    removed: Removed = Counter()
    overwrite_deleted_bytes()
    for done in _delete(Thread, "pk", list(threads)):
        removed.update(done)
        if stop():
            break
    return removed


def delete_in_turns(rows: models.QuerySet[Any], stop: Callable[[], bool]) -> int:
    """Delete rows that no other rows refer to, and return their number.

    `stop` is called between transactions, and ends the work if it returns true.
    """
    removed = 0
    while not stop() and (batch := list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH])):
        part = rows.model._base_manager.filter(pk__in=batch)
        removed += _in_turn(partial(_raw_delete, part))
    return removed


def _delete(model: type[models.Model], field: str, keys: Sequence[Any]) -> Iterator[Removed]:
    """Delete the rows whose `field` is one of `keys`, after the rows that refer to them."""
    if model is RunEvent:
        yield from _delete_events(keys)
        return
    rows = model._base_manager.filter(**{f"{field}__in": keys})
    while batch := list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH]):
        for relation in _relations(model):
            other, name = relation.related_model, relation.field.name
            if relation.on_delete is CASCADE or name in getattr(other, "erased_with", ()):
                yield from _delete(other, name, batch)
            elif relation.on_delete is SET_NULL:
                yield from _let_go(other, name, batch)
        yield Counter(
            {model._meta.model_name or "": _in_turn(partial(_delete_batch, model, batch))}
        )


def _relations(model: type[models.Model]) -> list[models.ForeignObjectRel]:
    """Return all references to `model`, including those of many-to-many tables."""
    return [
        field
        for field in model._meta.get_fields(include_hidden=True)
        if isinstance(field, models.ManyToOneRel) and not field.related_model._meta.proxy
    ]


def _delete_batch(model: type[models.Model], keys: Sequence[Any]) -> int:
    rows = model._base_manager.filter(pk__in=keys)
    if model is Message:
        count_runs_of(keys)
    return _raw_delete(rows)


def _delete_events(runs: Sequence[Any]) -> Iterator[Removed]:
    """Delete events by ranges of their key: there are many, without references to them."""
    for run_id in runs:
        rows = RunEvent.objects.filter(run_id=run_id).order_by("seq")
        while seqs := list(rows.values_list("seq", flat=True)[:BATCH]):
            part = RunEvent.objects.filter(run_id=run_id, seq__lte=seqs[-1])
            yield Counter({"runevent": _in_turn(partial(_raw_delete, part))})


def _let_go(model: type[models.Model], field: str, keys: Sequence[Any]) -> Iterator[Removed]:
    rows = model._base_manager.filter(**{f"{field}__in": keys})
    while batch := list(rows.values_list("pk", flat=True)[:BATCH]):
        part = model._base_manager.filter(pk__in=batch)
        _in_turn(partial(part.update, **{field: None}))
        yield Counter()


def _raw_delete(rows: models.QuerySet[Any]) -> int:
    """Delete rows with one statement, without a search for references: these are gone."""
    return rows.order_by()._raw_delete(rows.db)


def _in_turn(work: Callable[[], int]) -> int:
    began = time.monotonic()
    with transaction.atomic():
        rows = work()
    if connection.vendor == "sqlite":
        time.sleep((time.monotonic() - began) * (1 - WORK_SHARE) / WORK_SHARE)
    return rows


def overwrite_deleted_bytes() -> None:
    """Let SQLite overwrite deleted bytes, which otherwise stay in the file until it reuses them."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA secure_delete = ON")


logger = logging.getLogger(__name__)

FINISH_TASK = "agents.tasks.finish_erasures"
BUSY = "A run of this thread is at work or waits: cancel it first, then erase the thread."
TOGETHER = 25
"""The number of threads whose rows are deleted in the same statements."""
OTHER_HOST_HOURS = 24
"""Until this age, threads of another machine are left to it, because it has their files."""


@dataclass(frozen=True, slots=True)
class Erasable:
    """What the erasure of a thread removes: its runs (their number), and stored answers.

    `answers` are the ids of the idempotency keys whose answers mention the thread.
    """

    runs: int
    answers: frozenset[int]


def what_erasure_removes(thread: Thread) -> Erasable:
    """Return what `erase_thread` would remove now, for a person's thread.

    Raises `Conflict` if a run of the thread has not ended.
    """
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
        raise Conflict("The thread has been used since. It was not erased.", code="thread_busy")
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

    With several hosts, threads that belong to another host are left to it for `OTHER_HOST_HOURS`.
    `stop` is called between transactions, and ends the work if it returns true. If files or rows
    cannot be removed, this is logged: the thread stays hidden, and the next call tries again.
    Returns the numbers of rows by model.
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
        removed += _erase_if_possible([key for key in batch if _files_are_gone(key)], stop)
    empty_log()
    return removed


def _erase_if_possible(threads: Sequence[str], stop: Callable[[], bool]) -> Removed:
    """Delete the rows of these threads, also if those of one of them cannot be deleted."""
    try:
        return erase_rows(threads, stop)
    except IntegrityError as error:
        if len(threads) == 1:
            logger.warning(
                "rows of thread %s cannot be erased, because a table that this process does not "
                "know refers to them. It belongs to a newer version, or to a removed feature: %s",
                threads[0],
                error,
            )
            return Removed()
    removed: Removed = Counter()
    for key in threads:
        if stop():
            break
        removed += _erase_if_possible([key], stop)
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


def empty_log() -> None:
    """Empty SQLite's write-ahead log, which keeps old pages. Other readers can delay this."""
    if connection.vendor == "sqlite" and not connection.in_atomic_block:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
