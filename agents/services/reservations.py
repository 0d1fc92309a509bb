"""Reserving what a model call may use before it is made, and settling it to what it used.

A call begins while something is left of every allowance that it counts in, where what calls under
way may still use counts as used. So an allowance is exceeded by one call at most, however many
runs draw on it at once. All functions run in a transaction whose caller holds the run's clock, and
lock allowances after it, in the order of their ids: nothing is locked after them but what hangs on
that clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from django.db import connection

from agents.events.append import EventDraft
from agents.events.catalogue.budgets import BudgetWarning
from agents.models import MICRO, Allowance, RunClock

Kind = Literal["tokens", "cost", "price"]
"""What is missing. `price`: a cost is limited, and that of the call cannot be told."""

WARN_AT = 80
"""Per cent of a limit."""

_ALLOWANCE = Allowance._meta.db_table
_CLOCK = RunClock._meta.db_table


@dataclass(frozen=True, slots=True)
class Need:
    """The worst that a call may use. `microusd` None: the model's price is not known."""

    tokens: int
    microusd: int | None


@dataclass(frozen=True, slots=True)
class Reserved:
    """What is reserved for the call under way, and from which allowances."""

    tokens: int
    microusd: int
    allowance_ids: tuple[int, ...]


class NoRoom(Exception):
    """An allowance does not admit the call now; the transaction is to be rolled back.

    `is_used_up`: not only by what calls under way may still use.
    """

    def __init__(self, *, is_used_up: bool) -> None:
        super().__init__()
        self.is_used_up = is_used_up


@dataclass(frozen=True, slots=True)
class Shortage:
    """An allowance that is used up, whatever calls under way turn out to use."""

    allowance: Allowance
    kind: Kind


def reserve(run_id: str, allowances: Sequence[Allowance], need: Need) -> Reserved:
    """Take `need` from each of `allowances`. Raises `NoRoom`."""
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
        ids = tuple(allowance.pk for allowance in allowances)
        cursor.execute(
            f'UPDATE "{_CLOCK}" SET reserved_tokens = %s, reserved_microusd = %s,'  # noqa: S608
            " reserved_from = %s WHERE run_id = %s",
            [need.tokens, cost, ",".join(map(str, ids)), run_id],
        )
    return Reserved(need.tokens, cost, ids)


def settle(
    run_id: str, reserved: Reserved | None, allowances: Iterable[int], tokens: int, microusd: int
) -> list[EventDraft]:
    """Count a call in `allowances` in place of what was reserved for it; warnings to be told.

    With `reserved` the caller has cleared the clock's own note of it in the same transaction.
    """
    held = reserved or Reserved(0, 0, ())
    drafts: list[EventDraft] = []
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
        if row is not None:  # else its budget was deleted meanwhile
            drafts += _warnings(allowance_id, row)
    return drafts


def release(run_id: str) -> None:
    """Give back what a call reserved that was not finished, whoever made it; once.

    What such a call used nobody knows, and it counts nowhere.
    """
    clock = RunClock.objects.select_for_update(no_key=True).get(run_id=run_id)
    if not clock.reserved_from:
        return
    RunClock.objects.filter(run_id=run_id).update(
        reserved_tokens=0, reserved_microusd=0, reserved_from=""
    )
    ids = tuple(int(key) for key in clock.reserved_from.split(","))
    settle(run_id, Reserved(clock.reserved_tokens, clock.reserved_microusd, ids), (), 0, 0)


def shortage_among(allowances: Iterable[Allowance], need: Need) -> Shortage | None:
    """The first of `allowances` that is used up for such a call."""
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


def _warnings(
    allowance_id: int, row: tuple[int, int | None, bool, int, int | None, bool]
) -> list[EventDraft]:
    """`budget.warning` for what has just come near its limit; each limit is warned of once."""
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
    """`run`, `day` or `month`."""
    return "run" if allowance.budget is None else allowance.budget.period


def dollars(microusd: int) -> str:
    """US dollars as people write them: two decimals, more where they say something."""
    whole, rest = divmod(microusd, MICRO)
    return f"{whole}.{f'{rest:06d}'[:2]}{f'{rest:06d}'[2:].rstrip('0')}"
