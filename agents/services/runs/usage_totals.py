"""Sums of the use by ended runs. Pages read few rows, and the sums remain after a deletion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import connection, transaction
from django.db.models import F, Max, QuerySet
from django.utils import timezone

from agents.kernel.row_hooks import RowHooks
from agents.models import QUARTER_SECONDS, Message, MessageRole, Run, UsageTotal

TOGETHER = 25
"""The number of runs that one transaction counts, while others wait for it."""

_KEY = ("start", "owner_id", "agent_id", "model")
_SUMS = ("calls", "tokens", "microusd", "unpriced")


@dataclass(slots=True)
class _Sum:
    agent_slug: str
    calls: int = 0
    tokens: int = 0
    microusd: int = 0
    unpriced: int = 0


def count_ended_runs() -> int:
    """Count the replies of some ended runs; return the number of runs, 0 if none is left.

    Runs that other processes are counting are skipped.
    """
    ended = Run.every.filter(ended_at__isnull=False, uncounted_from__isnull=False)
    with transaction.atomic():
        locked = ended.select_for_update(skip_locked=True, no_key=True, of=("self",))
        # The order of the index of uncounted runs.
        waiting = locked.order_by("owner_id", "uncounted_from")
        return _count(waiting.values_list("pk", flat=True)[:TOGETHER])


def count_runs_of(messages: Sequence[int]) -> None:
    """Count the runs of these messages, which the same transaction deletes, if still uncounted."""
    runs = Message.objects.filter(pk__in=messages).order_by().values("run")
    there = Run.every.filter(pk__in=runs, uncounted_from__isnull=False)
    _count(there.select_for_update(no_key=True).order_by("pk").values_list("pk", flat=True))


def count_new_replies(run: Run) -> None:
    """Prepare an ended run that continues, so that only its new replies are added to the sums.

    Sets `Run.uncounted_from`. The caller holds the run's lock, and saves the run.
    """
    if run.uncounted_from is None:
        replies = Message.objects.filter(run=run, role=MessageRole.ASSISTANT)
        run.uncounted_from = (replies.aggregate(last=Max("turn"))["last"] or 0) + 1


def count_reply(
    owner_id: int, agent_id: str, agent_slug: str, model: str, tokens: int, microusd: int | None
) -> None:
    """Add a reply outside of runs to the sums. `microusd` is None for an unknown price."""
    key = (_quarter(timezone.now()), owner_id, agent_id, model)
    _add(key, _Sum(agent_slug, 1, tokens, microusd or 0, int(microusd is None)))


def _count(locked: QuerySet[Run, str]) -> int:
    """Count these locked runs. The lock and `uncounted_from` prevent counting a run twice."""
    runs = list(locked)
    if not runs:
        return 0
    replies = Message.objects.filter(
        run__in=runs,
        role=MessageRole.ASSISTANT,
        turn__gte=F("run__uncounted_from"),
        run__is_copy=False,
    ).order_by()
    rows = replies.values_list(
        "created_at",
        "run__owner_id",
        "run__agent_version__agent_id",
        "model",
        "run__agent_version__agent__slug",
        F("input_tokens") + F("output_tokens") + F("cache_read_tokens") + F("cache_write_tokens"),
        "cost_microusd",
    )
    sums: dict[tuple[datetime, int, str, str], _Sum] = {}
    for created_at, owner, agent, model, slug, tokens, cost in rows:
        found = sums.setdefault((_quarter(created_at), owner, agent, model), _Sum(slug))
        found.calls += 1
        found.tokens += tokens
        found.microusd += cost or 0
        found.unpriced += cost is None
    for key in sorted(sums):
        _add(key, sums[key])
    Run.every.filter(pk__in=runs).update(uncounted_from=None)
    return len(runs)


def _quarter(moment: datetime) -> datetime:
    seconds = int(moment.timestamp())
    return datetime.fromtimestamp(seconds - seconds % QUARTER_SECONDS, UTC)


def _add(key: tuple[datetime, int, str, str], found: _Sum) -> None:
    """Add with one statement: concurrent additions to the same row both count."""
    table = UsageTotal._meta.db_table
    names = (*_KEY, "agent_slug", *_SUMS)
    columns = ", ".join(f'"{name}"' for name in names)
    added = ", ".join(f'"{name}" = "{table}"."{name}" + excluded."{name}"' for name in _SUMS)
    conflict = ", ".join(f'"{name}"' for name in _KEY)
    start, owner, agent, model = key
    with connection.cursor() as cursor:
        cursor.execute(
            f'INSERT INTO "{table}" ({columns}) VALUES ({", ".join(["%s"] * len(names))})'  # noqa: S608
            f" ON CONFLICT ({conflict}) DO UPDATE SET {added}",
            [
                connection.ops.adapt_datetimefield_value(start),
                owner,
                agent,
                model,
                found.agent_slug,
                *(getattr(found, name) for name in _SUMS),
            ],
        )


class UsageRows(RowHooks):
    """The new replies of a run that continues after its end are counted, too."""

    order = 500

    def resumed(self, run: Run, *, had_ended: bool) -> None:
        if had_ended:
            count_new_replies(run)
