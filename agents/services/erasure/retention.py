"""Retention periods, and the removal of older data.

Threads are removed completely, with their subagents (`erasure`): a model needs the whole
conversation of a thread that continues. Each other kind is deleted in small transactions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone
from django_q.models import Task

from agents.kernel.retention import feature_rows
from agents.models import (
    ApiToken,
    AuditEntry,
    IdempotencyKey,
    RequestCount,
    Run,
    Thread,
)
from agents.services.audit import Change, record
from agents.services.erasure.actions import delete_in_turns, erase_thread, finish_erasures
from agents.services.errors import Conflict, NotFound
from agents.services.idempotency import KEEP_DAYS
from agents.settings import RetentionSettings
from agents.states import ENDED_RUNS

TOGETHER = 200
REQUEST_MINUTES = 60
"""Rows of an older minute no longer limit requests."""

Stop = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Keep:
    """Retention periods in days. 0 means for ever."""

    threads: int
    tokens: int
    failed_tasks: int
    audit: int
    features: Mapping[str, int]
    """By the names of `OldRows`."""

    @classmethod
    def of_settings(cls) -> Keep:
        """Return the periods that the operator has set (`VEL_KEEP_…`)."""
        vel = RetentionSettings.now()
        return cls(
            threads=vel.KEEP_THREADS,
            tokens=vel.KEEP_TOKENS,
            failed_tasks=vel.KEEP_FAILED_TASKS,
            audit=vel.KEEP_AUDIT,
            features={each.name: each.days() for each in feature_rows()},
        )


def old_threads(days: int) -> QuerySet[Thread]:
    """Return people's threads that have not been used in the last `days` days.

    They were created earlier, and have no run that is open or ended since, nor have their
    subagents.
    """
    since = timezone.now() - timedelta(days=days)
    open_or_young = ~Q(status__in=ENDED_RUNS) | Q(ended_at__gt=since)
    own = Run.objects.filter(open_or_young, thread=OuterRef("pk"))
    below = Run.objects.filter(open_or_young, thread__root=OuterRef("pk"))
    threads = Thread.objects.filter(~Exists(own), ~Exists(below), root=None, created_at__lt=since)
    return threads.order_by("pk")


def what_is_old(keep: Keep) -> Counter[str]:
    """Return how many rows of each kind `prune` would remove, with all runs of the threads."""
    found: Counter[str] = Counter()
    if keep.threads:
        threads = old_threads(keep.threads)
        found["thread"] = threads.count()
        family = Q(thread__in=threads) | Q(thread__root__in=threads)
        found["run"] = Run.objects.filter(family).count()
    for name, rows in _old_rows(keep).items():
        found[name] = rows.count()
    if keep.audit:
        found["auditentry"] = _old_entries(keep.audit).count()
    return +found


def prune(keep: Keep, stop: Stop = lambda: False) -> Counter[str]:
    """Remove older data, finish interrupted erasures, and return the number of rows by kind.

    `stop` is called between transactions. Can be called again at any time.
    """
    removed: Counter[str] = Counter()
    for name, rows in _old_rows(keep).items():
        removed[name] += delete_in_turns(rows, stop)
    if keep.threads:
        _mark(keep.threads, stop)
    removed += finish_erasures(stop)
    if keep.audit and not stop():
        removed["auditentry"] += _forget_entries(keep.audit)
    if not stop():
        # The project may keep sessions in another place; each backend can remove expired ones.
        import_module(settings.SESSION_ENGINE).SessionStore.clear_expired()
    return +removed


def _mark(days: int, stop: Stop) -> None:
    """Mark each thread in a separate transaction, which checks it again under its locks."""
    after = ""
    while not stop():
        batch = list(old_threads(days).filter(pk__gt=after).values_list("pk", flat=True)[:TOGETHER])
        if not batch:
            return
        for thread_id in batch:
            try:
                erase_thread(thread_id, by=None, days=days)
            except (Conflict, NotFound):
                continue  # it has just been used or erased
        after = batch[-1]


def _old_rows(keep: Keep) -> dict[str, QuerySet[Any]]:
    now = timezone.now()

    def before(days: int) -> datetime:
        return now - timedelta(days=days)

    minute = int(now.timestamp() // 60) - REQUEST_MINUTES
    rows: dict[str, QuerySet[Any]] = {
        "idempotencykey": IdempotencyKey.objects.filter(created_at__lt=before(KEEP_DAYS)),
        "requestcount": RequestCount.objects.filter(minute__lt=minute),
    }
    for each in feature_rows():
        if days := keep.features.get(each.name, 0):
            rows[each.name] = each.rows(before(days))
    if keep.tokens:
        since = before(keep.tokens)
        gone = Q(expires_at__lt=since) | Q(revoked_at__lt=since)
        rows["apitoken"] = ApiToken.objects.filter(gone)
    if keep.failed_tasks:
        rows["task"] = Task.objects.filter(stopped__lt=before(keep.failed_tasks))
    return rows


def _old_entries(days: int) -> QuerySet[AuditEntry]:
    return AuditEntry.objects.filter(created_at__lt=timezone.now() - timedelta(days=days))


def _forget_entries(days: int) -> int:
    """Delete old entries, and add an entry about it: the only exception to the seal."""
    last = _old_entries(days).order_by("pk").last()
    if last is None:
        return 0
    with transaction.atomic(), connection.cursor() as cursor:
        # Ids start with the time.
        table = AuditEntry._meta.db_table
        cursor.execute(f'DELETE FROM "{table}" WHERE id <= %s', [last.pk])  # noqa: S608
        removed = cursor.rowcount
        changes: dict[str, Change] = {
            "entries": (removed, 0),
            "until": (None, last.created_at.isoformat()),
        }
        record("audit.pruned", last, name=f"older than {days} days", changes=changes)
    return removed
