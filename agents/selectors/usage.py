"""What was used: the totals of runs that have ended, and the replies of the others.

No turn has to write down a second time what it used, and no page adds up what has ended.
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
    """One day's replies of one user, agent and model. `microusd` None: some price is not known."""

    day: date
    agent: str
    user: str
    model: str
    calls: int
    tokens: int
    microusd: int | None


def zone_of(name: str) -> ZoneInfo:
    """A thread's time zone, or that of the settings where this machine does not know it."""
    try:
        return ZoneInfo(name or settings.TIME_ZONE)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo(settings.TIME_ZONE)


def spent_since(
    start: datetime, agent_id: str | None, user_id: int | None, trigger: str | None = None
) -> tuple[int, int]:
    """(tokens, millionths of a dollar) of the replies since `start`; None means all.

    `start` begins a quarter of an hour.
    """
    runs, totals = Run.every.all(), UsageTotal.objects.all()
    if agent_id is not None:
        runs, totals = runs.filter(agent_version__agent=agent_id), totals.filter(agent=agent_id)
    if user_id is not None:
        runs, totals = runs.filter(owner=user_id), totals.filter(owner=user_id)
    spent = {"tokens": Coalesce(Sum(TOKENS), 0), "cost": Coalesce(Sum("cost_microusd"), 0)}
    if trigger is not None:
        # Totals do not know the trigger: its replies are added up, but for those that are gone.
        lately = runs.filter(Q(ended_at=None) | Q(ended_at__gte=start), trigger=trigger)
        found = _replies(lately, start).aggregate(**spent)
        return found["tokens"], found["cost"]
    # One statement: a reply that is counted meanwhile is seen in one place.
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
    """The runs that `person` may read, over so many days up to now, the latest day first.

    `own`: only those that the person began, whatever else the person may read.
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
    # One statement: a reply that is counted meanwhile is seen in one place.
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
    """Replies since `start` that are in no total: those of open runs, and of the last to end."""
    # As an order, for SQLite: it then expects fewer rows of this index than of others.
    uncounted = runs.filter(uncounted_from__gte=1)
    return _replies(uncounted, start).filter(turn__gte=F("run__uncounted_from"))


def _replies(runs: QuerySet[Run], start: datetime) -> QuerySet[Message]:
    """Found by their runs: an index of the replies' own times would be a page more each turn."""
    return Message.objects.filter(
        run__in=runs, role=MessageRole.ASSISTANT, turn__gt=0, created_at__gte=start
    )
