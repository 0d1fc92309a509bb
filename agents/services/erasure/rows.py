"""Deletion of a thread with all dependent rows, in short transactions.

The dependencies are read from the models, so tables that are added later are included. Leaves are
deleted first: after a crash the next call finds the remaining rows from the same thread.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from django.db import connection, models, transaction
from django.db.models import CASCADE, SET_NULL

from agents.models import Message, RunEvent, Thread
from agents.services.runs.usage_totals import count_runs_of

BATCH = 500
"""The number of rows that one transaction deletes."""
WORK_SHARE = 0.5
"""The share of the time in which an erasure may hold SQLite's only write lock. After each
transaction it waits as long as the transaction took, so that other writers get the lock."""
Removed = Counter[str]
"""Numbers of rows by the name of their model."""


def erase_rows(threads: Sequence[str], stop: Callable[[], bool] = lambda: False) -> Removed:
    """Delete these threads, which must be marked (`erased_at`), with their families.

    `stop` is called between transactions. The next call finds the remaining rows.
    """
    removed: Removed = Counter()
    _forget_what_is_deleted()
    for done in _delete(Thread, "pk", list(threads)):
        removed.update(done)
        if stop():
            break
    return removed


def delete_in_turns(rows: models.QuerySet[Any], stop: Callable[[], bool]) -> int:
    """Delete rows that have no references to them, and return their number."""
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


def _forget_what_is_deleted() -> None:
    """Let SQLite overwrite deleted bytes, which otherwise stay in the file until it reuses them."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA secure_delete = ON")
