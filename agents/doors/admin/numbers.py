"""Formats of times and costs for operators."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext

from agents.models import Run, RunClock
from agents.providers.prices import dollars


def span(length: timedelta) -> str:
    """Return a duration in its two largest units: 0.4 s, 12 s, 3 min 5 s, 2 h 4 min, 3 d 1 h."""
    seconds = length.total_seconds()
    if seconds < 10:
        return f"{number_format(round(max(seconds, 0), 1), 1)} s"
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3_600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86_400:
        return f"{whole // 3_600} h {whole % 3_600 // 60} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3_600} h"


def between(start: datetime | None, end: datetime | None) -> str:
    """Return the time from `start` to `end`, or to now if it has not ended; "" without a start."""
    return span((end or timezone.now()) - start) if start else ""


def run_duration(run: Run) -> str:
    return between(run.started_at, run.ended_at)


def usd(microusd: int) -> str:
    """Return US dollars with two decimals, and more if they are not zero."""
    return f"${number_format(dollars(microusd))}"


def cost(clock: RunClock) -> str:
    """Return the cost in US dollars with four decimals, or a note that a price is unknown."""
    found = clock.cost
    if found is None:
        return gettext("price not known")
    return f"${number_format(round(found, 4), 4)}"
