"""What was used: by the replies themselves, so that no turn has to write it down a second time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from django.contrib.auth import get_user_model
from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import Coalesce, TruncDate
from django.utils import timezone

from agents.models import Message, MessageRole, Run, UsageTotal
from agents.selectors.visible import Person, counted_runs_for, counted_totals_for

UTC_ZONE = ZoneInfo("UTC")
USERNAME = get_user_model().USERNAME_FIELD
REMOVED_USER = "(removed)"
TOKENS = F("input_tokens") + F("output_tokens") + F("cache_read_tokens") + F("cache_write_tokens")


@dataclass(frozen=True, slots=True)
class DayUsage:
    """One day's replies of one user, agent and model. `microusd` None: some price is not known."""

    day: date
    agent: str
    user: str
    model: str
    calls: int
    tokens: int
    microusd: int | None


def spent_since(
    start: datetime, agent_id: str | None, user_id: int | None, hook_id: str | None = None
) -> tuple[int, int]:
    """(tokens, millionths of a dollar) of the replies since `start`; None means all."""
    runs, totals = Run.every.all(), UsageTotal.objects.filter(start__gte=start)
    if agent_id is not None:
        runs, totals = runs.filter(agent_version__agent=agent_id), totals.filter(agent=agent_id)
    if user_id is not None:
        runs, totals = runs.filter(owner=user_id), totals.filter(owner=user_id)
    if hook_id is not None:  # of replies that were removed nobody knows the webhook any more
        runs, totals = runs.filter(hook=hook_id), totals.none()
    there = _replies_since(start, runs).aggregate(
        tokens=Coalesce(Sum(TOKENS), 0), cost=Coalesce(Sum("cost_microusd"), 0)
    )
    gone = totals.aggregate(tokens=Coalesce(Sum("tokens"), 0), cost=Coalesce(Sum("microusd"), 0))
    return there["tokens"] + gone["tokens"], there["cost"] + gone["cost"]


def _replies_since(start: datetime, runs: QuerySet[Run]) -> QuerySet[Message]:
    """Found by their runs: an index of the replies' own times would be a page more each turn."""
    lately = runs.filter(Q(ended_at=None) | Q(ended_at__gte=start))
    return Message.objects.filter(
        run__in=lately, role=MessageRole.ASSISTANT, turn__gt=0, created_at__gte=start
    )


def usage_by_day(person: Person, days: int, zone: ZoneInfo, *, own: bool = False) -> list[DayUsage]:
    """The runs that `person` may read, over so many days up to now, the latest day first.

    `own`: only those that the person began, whatever else the person may read.
    """
    runs, totals = counted_runs_for(person), counted_totals_for(person)
    if own:
        runs, totals = runs.filter(owner=person.pk), totals.filter(owner=person.pk)
    today = timezone.now().astimezone(zone).date()
    start = datetime.combine(today - timedelta(days=days - 1), datetime.min.time(), tzinfo=zone)
    there = (
        _replies_since(start, runs)
        .annotate(day=TruncDate("created_at", tzinfo=zone))
        .values_list("day", "run__agent_version__agent__slug", f"run__owner__{USERNAME}", "model")
        .annotate(
            calls=Count("id"),
            tokens=Sum(TOKENS),
            cost=Coalesce(Sum("cost_microusd"), 0),
            unpriced=Count("id", filter=Q(cost_microusd=None)),
        )
        .order_by()
    )
    gone = (
        totals.filter(start__gte=start)
        .annotate(day=TruncDate("start", tzinfo=zone))
        .values_list("day", "agent_slug", f"owner__{USERNAME}", "model")
        .annotate(
            all_calls=Sum("calls"),
            all_tokens=Sum("tokens"),
            all_cost=Sum("microusd"),
            all_unpriced=Sum("unpriced"),
        )
        .order_by()
    )
    sums: dict[tuple[date, str, str, str], list[int]] = {}
    for day, agent, user, model, *numbers in (*there, *gone):
        found = sums.setdefault((day, agent, user or REMOVED_USER, model), [0, 0, 0, 0])
        for place, number in enumerate(numbers):
            found[place] += number
    newest_first = sorted(sums.items(), key=lambda item: (-item[0][0].toordinal(), *item[0][1:]))
    return [
        DayUsage(*key, calls, tokens, None if unpriced else cost)
        for key, (calls, tokens, cost, unpriced) in newest_first
    ]
