"""Model calls outside of runs count in the budgets of the agent, the user and the trigger.

No run waits for more: if a budget is used up, the call is not made. A warning is an event of a run,
so the next call of a run writes it.
"""

from __future__ import annotations

from django.utils import timezone

from agents.features.budgets.models import Allowance, OutsideReservation
from agents.features.budgets.reservations import (
    Need,
    NoRoom,
    Reserved,
    count_use,
    ids_of,
    ids_text,
    take_room,
)
from agents.features.budgets.scope import Scope, allowances_of
from agents.services.outside_calls import CallLimit, CallRefused, OutsideCall


class BudgetLimit(CallLimit):
    """Locks the reservation first, then the allowances in the order of their ids."""

    def reserve(self, call: OutsideCall) -> None:
        allowances = allowances_of(_scope(call))
        if not allowances:
            return
        try:
            reserved = take_room(allowances, Need(call.tokens, call.microusd))
        except NoRoom as refusal:
            raise CallRefused("a budget has no room for it", is_final=refusal.is_used_up) from None
        OutsideReservation.objects.create(
            key=call.key,
            reserved_tokens=reserved.tokens,
            reserved_microusd=reserved.microusd,
            reserved_from=ids_text(reserved.allowance_ids),
            until=call.until,
        )

    def settle(self, call: OutsideCall, tokens: int, microusd: int) -> None:
        reserved = _take_back(call.key)
        held = reserved.allowance_ids if reserved is not None else ()
        # A budget from after the reservation counts the call, too. Another window of a budget with
        # a reservation does not.
        known = set(Allowance.objects.filter(pk__in=held).values_list("budget", flat=True))
        new = [one.pk for one in allowances_of(_scope(call)) if one.budget_id not in known]
        count_use(reserved, new, tokens, microusd)

    def release(self, call: OutsideCall) -> None:
        count_use(_take_back(call.key), (), 0, 0)


def release_expired() -> bool:
    """Release one reservation whose process has died; return whether there was one."""
    locked = OutsideReservation.objects.select_for_update(skip_locked=True)
    row = locked.filter(until__lt=timezone.now()).order_by("until").first()
    if row is None:
        return False
    count_use(_take_back(row.key), (), 0, 0)
    return True


def _scope(call: OutsideCall) -> Scope:
    return Scope((), call.agent_id, call.owner_id, call.time_zone, call.trigger)


def _take_back(key: str) -> Reserved | None:
    """Delete the reservation, and return it for `count_use`. None if it was released before."""
    row = OutsideReservation.objects.select_for_update().filter(key=key).first()
    if row is None:
        return None
    row.delete()
    return Reserved(row.reserved_tokens, row.reserved_microusd, ids_of(row.reserved_from))


CALL_LIMITS = (BudgetLimit(),)
