"""What was used: by the replies themselves, so that no turn has to write it down a second time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from django.contrib.auth import get_user_model
from django.db.models import Count, F, Q, Sum
from django.db.models.functions import Coalesce, TruncDate
from django.utils import timezone

from agents.models import Message, MessageRole
from agents.selectors.visible import Person, runs_for

UTC_ZONE = ZoneInfo("UTC")
USERNAME = get_user_model().USERNAME_FIELD
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


def spent_since(start: datetime, agent_id: str | None, user_id: int | None) -> tuple[int, int]:
    """(tokens, millionths of a dollar) of the replies since `start`; None means all."""
    replies = Message.objects.filter(role=MessageRole.ASSISTANT, turn__gt=0, created_at__gte=start)
    if agent_id is not None:
        replies = replies.filter(run__agent_version__agent=agent_id)
    if user_id is not None:
        replies = replies.filter(run__owner=user_id)
    found = replies.aggregate(
        tokens=Coalesce(Sum(TOKENS), 0), cost=Coalesce(Sum("cost_microusd"), 0)
    )
    return found["tokens"], found["cost"]


def usage_by_day(person: Person, days: int, zone: ZoneInfo, *, own: bool = False) -> list[DayUsage]:
    """The runs that `person` may read, over so many days up to now, the latest day first.

    `own`: only those that the person began, whatever else the person may read.
    """
    runs = runs_for(person)
    if own:
        runs = runs.filter(owner=person.pk)
    today = timezone.now().astimezone(zone).date()
    start = datetime.combine(today - timedelta(days=days - 1), datetime.min.time(), tzinfo=zone)
    rows = (
        Message.objects.filter(
            run__in=runs,
            role=MessageRole.ASSISTANT,
            turn__gt=0,
            created_at__gte=start,
        )
        .annotate(day=TruncDate("created_at", tzinfo=zone))
        .values("day", "run__agent_version__agent__slug", f"run__owner__{USERNAME}", "model")
        .annotate(
            calls=Count("id"),
            tokens=Sum(TOKENS),
            cost=Coalesce(Sum("cost_microusd"), 0),
            unpriced=Count("id", filter=Q(cost_microusd=None)),
        )
        .order_by("-day", "run__agent_version__agent__slug", f"run__owner__{USERNAME}", "model")
    )
    return [
        DayUsage(
            row["day"],
            row["run__agent_version__agent__slug"],
            row[f"run__owner__{USERNAME}"],
            row["model"],
            row["calls"],
            row["tokens"],
            None if row["unpriced"] else row["cost"],
        )
        for row in rows
    ]
