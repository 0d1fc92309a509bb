"""Model calls outside of runs, for example for titles: reserve, count and release them.

A feature lists instances of `CallLimit` in its `outside_calls.CALL_LIMITS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from agents.kernel.features import collect
from agents.providers.base import Reply
from agents.providers.prices import cost_microusd
from agents.services.runs.usage_totals import count_reply


@dataclass(frozen=True, slots=True)
class OutsideCall:
    """One model call outside of runs, before it is made."""

    key: str
    """Unique for each attempt."""
    agent_id: str
    agent_slug: str
    owner_id: int
    """The user for whom the call is made."""
    time_zone: str
    trigger: str | None
    """The id of the trigger that started the run about which the call is, if any."""
    provider: str
    model: str
    tokens: int
    """The most tokens that the call can use: prompt and reply."""
    microusd: int | None
    """The most that it can cost, in millionths of a US dollar. None: its price is unknown."""
    until: datetime
    """The end of the attempt. After this time, its reservations are released."""


class CallRefused(Exception):
    """A limit does not admit the call now. `is_final`: it will not admit it soon, either."""

    def __init__(self, message: str, *, is_final: bool) -> None:
        super().__init__(message)
        self.is_final = is_final


class CallLimit(ABC):
    """A limit of model calls outside of runs. Its methods are called in a transaction."""

    @abstractmethod
    def reserve(self, call: OutsideCall) -> None:
        """Reserve the most that `call` can use. Raises `CallRefused`, and must be rolled back."""

    @abstractmethod
    def settle(self, call: OutsideCall, tokens: int, microusd: int) -> None:
        """Replace the reservation of `call` by its real use.

        Without a reservation, which may have been released after `call.until`, the use counts all
        the same.
        """

    @abstractmethod
    def release(self, call: OutsideCall) -> None:
        """Release the reservation of a call without a reply, if it still exists."""


@transaction.atomic
def reserve_call(call: OutsideCall) -> None:
    """Reserve the most that `call` can use, before it is made. Raises `CallRefused`."""
    for limit in _limits():
        limit.reserve(call)


@transaction.atomic
def settle_call(call: OutsideCall, reply: Reply) -> None:
    """Count a reply in the totals and in all limits."""
    tokens, cost = reply.usage.total, cost_microusd(call.model, reply.usage)
    for limit in _limits():
        limit.settle(call, tokens, cost or 0)
    count_reply(call.owner_id, call.agent_id, call.agent_slug, reply.model, tokens, cost)


@transaction.atomic
def release_call(call: OutsideCall) -> None:
    """Release what is reserved for a call without a reply. Its use is unknown, and not counted."""
    for limit in _limits():
        limit.release(call)


def _limits() -> list[CallLimit]:
    return [limit for _, limit in collect("outside_calls", "CALL_LIMITS")]
