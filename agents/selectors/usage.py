"""Usage: totals of ended runs, plus the replies of the others.

No turn stores its usage twice, and no page sums ended runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
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
    """Usage of one day, user, agent and model. `microusd` is None for an unknown price."""

    day: date
    agent: str
    user: str
    model: str
    calls: int
    tokens: int
    microusd: int | None


def zone_of(name: str) -> ZoneInfo:
    """Return the time zone `name`, or that of the settings if it is empty or unknown here."""
    try:
        return ZoneInfo(name or settings.TIME_ZONE)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo(settings.TIME_ZONE)


def spent_since(
    start: datetime, agent_id: str | None, user_id: int | None, trigger: str | None = None
) -> tuple[int, int]:
    """Return tokens and millionths of a dollar of the replies since `start`.

    `start` must be the start of a quarter of an hour. None means all agents, users or triggers.
    With `trigger`, replies of deleted runs are missing.
    """
    runs, totals = Run.every.all(), UsageTotal.objects.all()
    if agent_id is not None:
        runs, totals = runs.filter(agent_version__agent=agent_id), totals.filter(agent=agent_id)
    if user_id is not None:
        runs, totals = runs.filter(owner=user_id), totals.filter(owner=user_id)
    spent = {"tokens": Coalesce(Sum(TOKENS), 0), "cost": Coalesce(Sum("cost_microusd"), 0)}
    if trigger is not None:
        # Totals do not contain the trigger, so sum its replies. Deleted ones are missing.
        lately = runs.filter(Q(ended_at=None) | Q(ended_at__gte=start), trigger=trigger)
        found = _replies(lately, start).aggregate(**spent)
        return found["tokens"], found["cost"]
    # One statement, so that a reply that is counted at the same time is included once.
    there = _uncounted(runs, start).values_list("model").annotate(**spent).order_by()
    summed = (
        totals.filter(start__gte=start)
        .values_list("model")
        .annotate(all_tokens=Sum("tokens"), all_cost=Sum("microusd"))
        .order_by()
    )
    rows = list(there.union(summed, all=True))
    return sum(row[1] for row in rows), sum(row[2] for row in rows)


def usage_by_day(person: Person, days: int, zone: ZoneInfo, *, own: bool = False) -> list[DayUsage]:
    """Return the usage of runs that `person` can read in the last `days` days, latest day first.

    The days are those of the time zone `zone`. `own` limits the result to the person's own runs.
    """
    runs, totals = counted_runs_for(person), counted_totals_for(person)
    if own:
        runs, totals = runs.filter(owner=person.pk), totals.filter(owner=person.pk)
    today = timezone.now().astimezone(zone).date()
    start = datetime.combine(today - timedelta(days=days - 1), datetime.min.time(), tzinfo=zone)
    there = (
        _uncounted(runs, start)
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
    summed = (
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
    # One statement, so that a reply that is counted at the same time is included once.
    for day, agent, user, model, *numbers in there.union(summed, all=True):
        found = sums.setdefault((day, agent, user or REMOVED_USER, model), [0, 0, 0, 0])
        for position, number in enumerate(numbers):
            found[position] += number
    newest_first = sorted(sums.items(), key=lambda item: (-item[0][0].toordinal(), *item[0][1:]))
    return [
        DayUsage(*key, calls, tokens, None if unpriced else cost)
        for key, (calls, tokens, cost, unpriced) in newest_first
    ]


def _uncounted(runs: QuerySet[Run], start: datetime) -> QuerySet[Message]:
    """Return replies since `start` that are in no total, of open and recently ended runs."""
    # A range condition, because SQLite then expects fewer rows from this index.
    uncounted = runs.filter(uncounted_from__gte=1)
    return _replies(uncounted, start).filter(turn__gte=F("run__uncounted_from"))


def _replies(runs: QuerySet[Run], start: datetime) -> QuerySet[Message]:
    """Return replies by their runs. An index on their times would cost a page write per turn."""
    return Message.objects.filter(
        run__in=runs, role=MessageRole.ASSISTANT, turn__gt=0, created_at__gte=start
    )
