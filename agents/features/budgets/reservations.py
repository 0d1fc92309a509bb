"""Reserve the worst case of a model call before it is made, and settle it afterwards.

A call is made while each allowance that it counts in has something left. Reservations of calls in
progress count as used. Therefore one call at most exceeds an allowance, even if many runs use it in
parallel. All functions run in a transaction whose caller holds the run's clock. They lock
allowances after it, in the order of their ids, and then only rows that the clock protects.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from django.db import connection

from agents.events.append import EventDraft
from agents.features.budgets.events import BudgetWarning
from agents.features.budgets.models import Allowance, RunBudget
from agents.providers.prices import dollars

Kind = Literal["tokens", "cost", "price"]
"""The missing amount. `price`: a cost is limited, and the price of the call is unknown."""

WARN_AT = 80
"""Per cent of a limit."""

_ALLOWANCE = Allowance._meta.db_table


@dataclass(frozen=True, slots=True)
class Need:
    """The worst case of a call. `microusd` None: the model's price is unknown."""

    tokens: int
    microusd: int | None


@dataclass(frozen=True, slots=True)
class Reserved:
    """A reservation for the call in progress, and its allowances."""

    tokens: int
    microusd: int
    allowance_ids: tuple[int, ...]


class NoRoom(Exception):
    """An allowance does not admit the call now. The transaction must be rolled back.

    `is_used_up`: it is used up even if calls in progress use nothing.
    """

    def __init__(self, *, is_used_up: bool) -> None:
        super().__init__()
        self.is_used_up = is_used_up


@dataclass(frozen=True, slots=True)
class Shortage:
    """An allowance that is used up even if calls in progress use nothing."""

    allowance: Allowance
    kind: Kind


def reserve(run_id: str, allowances: Sequence[Allowance], need: Need) -> Reserved:
    """Reserve `need` for a run in each of `allowances`. Raises `NoRoom`."""
    reserved = take_room(allowances, need)
    note = {
        "reserved_tokens": reserved.tokens,
        "reserved_microusd": reserved.microusd,
        "reserved_from": ids_text(reserved.allowance_ids),
    }
    if not RunBudget.objects.filter(run=run_id).update(**note):
        RunBudget.objects.create(run_id=run_id, **note)
    return reserved


def take_room(allowances: Sequence[Allowance], need: Need) -> Reserved:
    """Add `need` to the reservations of each of `allowances`. Raises `NoRoom`."""
    is_priced = need.microusd is not None
    cost = need.microusd or 0
    with connection.cursor() as cursor:
        for allowance in allowances:
            # The check and the reservation are one statement on the row that all share.
            cursor.execute(
                f'UPDATE "{_ALLOWANCE}" SET reserved_tokens = reserved_tokens + %s,'  # noqa: S608
                " reserved_microusd = reserved_microusd + %s WHERE id = %s"
                " AND (max_tokens IS NULL"
                " OR used_tokens + reserved_tokens < max_tokens + extra_tokens)"
                " AND (max_microusd IS NULL OR ((allows_unpriced OR %s)"
                " AND used_microusd + reserved_microusd < max_microusd + extra_microusd))",
                [need.tokens, cost, allowance.pk, is_priced],
            )
            if cursor.rowcount != 1:
                now = Allowance.objects.filter(pk=allowance.pk).first()
                raise NoRoom(is_used_up=now is not None and shortage_of(now, need) is not None)
    return Reserved(need.tokens, cost, tuple(allowance.pk for allowance in allowances))


def ids_text(ids: Iterable[int]) -> str:
    """Return the ids of allowances as a reservation stores them."""
    return ",".join(map(str, ids))


def ids_of(text: str) -> tuple[int, ...]:
    """Return the ids in the text of `ids_text`."""
    return tuple(int(key) for key in text.split(",") if key)


def settle(
    run_id: str, reserved: Reserved | None, allowances: Iterable[int], tokens: int, microusd: int
) -> list[EventDraft]:
    """Replace a reservation by the real use of a call. Return the warnings to write.

    Args:
        run_id: The run of the call.
        reserved: The reservation of the call; None: it has none.
        allowances: Ids of allowances in which the use counts without a reservation.
        tokens: The tokens that the call has used.
        microusd: Its cost in millionths of a dollar.
    """
    if reserved is not None:
        RunBudget.objects.filter(run=run_id).update(
            reserved_tokens=0, reserved_microusd=0, reserved_from=""
        )
    drafts: list[EventDraft] = []
    for allowance_id, row in count_use(reserved, allowances, tokens, microusd):
        drafts += _warnings(allowance_id, row)
    return drafts


Counted = tuple[int, int | None, bool, int, int | None, bool]
"""Of an allowance: used tokens, limit, whether Vel has warned; and the same for the cost."""


def count_use(
    reserved: Reserved | None, allowances: Iterable[int], tokens: int, microusd: int
) -> list[tuple[int, Counted]]:
    """Replace a reservation by real use. Return the allowances that still exist.

    The arguments are those of `settle`.
    """
    held = reserved or Reserved(0, 0, ())
    counted: list[tuple[int, Counted]] = []
    for allowance_id in sorted({*allowances, *held.allowance_ids}):
        is_held = allowance_id in held.allowance_ids
        with connection.cursor() as cursor:
            cursor.execute(
                f'UPDATE "{_ALLOWANCE}" SET used_tokens = used_tokens + %s,'  # noqa: S608
                " used_microusd = used_microusd + %s, reserved_tokens = reserved_tokens - %s,"
                " reserved_microusd = reserved_microusd - %s WHERE id = %s"
                " RETURNING used_tokens, max_tokens + extra_tokens, warned_tokens,"
                " used_microusd, max_microusd + extra_microusd, warned_cost",
                [
                    tokens,
                    microusd,
                    held.tokens if is_held else 0,
                    held.microusd if is_held else 0,
                    allowance_id,
                ],
            )
            row = cursor.fetchone()
        if row is not None:  # else its budget was deleted
            counted.append((allowance_id, row))
    return counted


def release(run_id: str) -> None:
    """Release the reservation of an unfinished call, once.

    The use of an unfinished call is unknown, and does not count.
    """
    row = RunBudget.objects.filter(run=run_id).exclude(reserved_from="").first()
    if row is None:
        return
    reserved = Reserved(row.reserved_tokens, row.reserved_microusd, ids_of(row.reserved_from))
    settle(run_id, reserved, (), 0, 0)


def shortage_among(allowances: Iterable[Allowance], need: Need) -> Shortage | None:
    """Return the first of `allowances` that is used up for a call with this `need`, or None."""
    for allowance in allowances:
        kind = shortage_of(allowance, need)
        if kind is not None:
            return Shortage(allowance, kind)
    return None


def shortage_of(allowance: Allowance, need: Need) -> Kind | None:
    tokens, cost = allowance.token_limit, allowance.microusd_limit
    if tokens is not None and allowance.used_tokens >= tokens:
        return "tokens"
    if cost is not None and allowance.used_microusd >= cost:
        return "cost"
    if cost is not None and need.microusd is None and not allowance.allows_unpriced:
        return "price"
    return None


def is_near(used: int, limit: int | None) -> bool:
    return limit is not None and used * 100 >= limit * WARN_AT


def _warnings(allowance_id: int, row: Counted) -> list[EventDraft]:
    """Return a `budget.warning` for each limit that is nearly used up, once for each limit."""
    used_tokens, token_limit, warned_tokens, used_cost, cost_limit, warned_cost = row
    of_tokens = not warned_tokens and is_near(used_tokens, token_limit)
    of_cost = not warned_cost and is_near(used_cost, cost_limit)
    if not of_tokens and not of_cost:
        return []
    allowance = Allowance.objects.select_related("budget__agent", "budget__user").get(
        pk=allowance_id
    )
    scope = scope_word(allowance)
    drafts: list[EventDraft] = []
    if of_tokens:
        assert token_limit is not None
        drafts.append(
            BudgetWarning(
                kind="tokens",
                used=used_tokens,
                limit=token_limit,
                scope=scope,
                allowance=allowance.pk,
            )
        )
    if of_cost:
        assert cost_limit is not None
        drafts.append(
            BudgetWarning(
                kind="cost",
                used=dollars(used_cost),
                limit=dollars(cost_limit),
                scope=scope,
                allowance=allowance.pk,
            )
        )
    Allowance.objects.filter(pk=allowance_id).update(
        warned_tokens=warned_tokens or of_tokens, warned_cost=warned_cost or of_cost
    )
    return drafts


def scope_word(allowance: Allowance) -> str:
    """Return what the allowance limits: `run`, `day` or `month`."""
    return "run" if allowance.budget is None else allowance.budget.period
