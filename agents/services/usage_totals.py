"""Keeping what was used when the replies themselves go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import connection
from django.db.models import F

from agents.models import QUARTER_SECONDS, Message, MessageRole, UsageTotal

_KEY = ("start", "owner_id", "agent_id", "model")
_SUMS = ("calls", "tokens", "microusd", "unpriced")


@dataclass(slots=True)
class _Sum:
    agent_slug: str
    calls: int = 0
    tokens: int = 0
    microusd: int = 0
    unpriced: int = 0


def add_to_totals(keys: Sequence[int]) -> None:
    """Count these messages, which the same transaction deletes, in the totals of their quarters.

    Their rows are locked first: of two that delete the same ones only one finds them there.
    """
    there = Message.objects.select_for_update().filter(pk__in=keys).order_by("pk")
    replies = Message.objects.filter(
        pk__in=list(there.values_list("pk", flat=True)),
        role=MessageRole.ASSISTANT,
        turn__gt=0,
        run__is_copy=False,
    )
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


def _quarter(moment: datetime) -> datetime:
    seconds = int(moment.timestamp())
    return datetime.fromtimestamp(seconds - seconds % QUARTER_SECONDS, UTC)


def _add(key: tuple[datetime, int, str, str], found: _Sum) -> None:
    """One statement, so that two that add to the same row both count."""
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
