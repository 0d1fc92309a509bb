"""The allowances that the model calls of a run count in: its own, its ancestors', and windows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet
from django.utils import timezone

from agents.features.budgets.models import Allowance, Budget, Period
from agents.features.budgets.options import BudgetOptions
from agents.models import Run, RunClock
from agents.providers.prices import MICRO
from agents.selectors.usage import zone_of
from agents.spec import AgentSpec


@dataclass(frozen=True, slots=True)
class Scope:
    """`run_ids` are the run's ancestors, the highest first, and the run itself."""

    run_ids: tuple[str, ...]
    agent_id: str
    owner_id: int
    time_zone: str
    trigger: str | None = None


def scope_of(run: Run) -> Scope:
    """Return the scope of a run, with one query for each ancestor."""
    chain = [run]
    while (parent := chain[0].parent) is not None:
        chain.insert(0, parent)
    return Scope(
        tuple(member.pk for member in chain),
        run.agent_version.agent_id,
        run.owner_id,
        run.thread.time_zone,
        run.trigger,
    )


def open_budget(run: Run, spec: AgentSpec) -> Scope | None:
    """Return the scope of `run`, or None if no limit applies to the run.

    Makes the allowance of a run whose agent limits it. The caller holds the run's clock.
    """
    scope = scope_of(run)
    limits = spec.option(BudgetOptions)
    if limits.max_tokens is not None or limits.max_cost is not None:
        _own_allowance(run, limits)
        return scope
    if run.parent_id is not None and Allowance.objects.filter(run__in=scope.run_ids).exists():
        return scope
    return scope if budgets_of(scope).exists() else None


def _own_allowance(run: Run, limits: BudgetOptions) -> None:
    cost = limits.max_cost
    clock = RunClock.objects.get(run=run)
    Allowance.objects.get_or_create(
        run=run,
        defaults={
            "max_tokens": limits.max_tokens,
            "max_microusd": None if cost is None else round(cost * MICRO),
            # A run that started under an earlier release.
            "used_tokens": clock.total_tokens,
            "used_microusd": clock.cost_microusd,
        },
    )


def budgets_of(scope: Scope) -> QuerySet[Budget]:
    """Return the budgets that calls of the scope count in."""
    return Budget.objects.filter(
        Q(agent=None) | Q(agent=scope.agent_id),
        Q(user=None) | Q(user=scope.owner_id),
        Q(trigger=None) | Q(trigger=scope.trigger),
    )


def allowances_of(scope: Scope) -> list[Allowance]:
    """Return the allowances of the scope in their lock order. Create those of new windows."""
    budgets = list(budgets_of(scope))
    windows = {budget.pk: window_name(budget.period, scope.time_zone) for budget in budgets}
    found = list(_allowances(scope, windows))
    missing = windows.keys() - {allowance.budget_id for allowance in found}
    if missing:
        open_windows((budget for budget in budgets if budget.pk in missing), scope.time_zone)
        found = list(_allowances(scope, windows))
    return found


def open_windows(budgets: Iterator[Budget], time_zone: str) -> None:
    """Create the current windows of `budgets` that do not exist."""
    Allowance.objects.bulk_create(
        (
            Allowance(
                budget=budget,
                window=window_name(budget.period, time_zone),
                max_tokens=budget.max_tokens,
                max_microusd=microusd(budget),
            )
            for budget in budgets
        ),
        ignore_conflicts=True,
    )


def _allowances(scope: Scope, windows: dict[str, str]) -> QuerySet[Allowance]:
    wanted = Q(run__in=scope.run_ids)
    for budget_id, window in windows.items():
        wanted |= Q(budget=budget_id, window=window)
    return Allowance.objects.filter(wanted).order_by("id")


def microusd(budget: Budget) -> int | None:
    return None if budget.max_cost is None else int(budget.max_cost * MICRO)


def window_name(period: str, time_zone: str) -> str:
    """Return the current window: `2026-11-22`, or `2026-11`.

    Each date has one window for all time zones, so that another zone does not bring a second one.
    """
    now = timezone.now().astimezone(zone_of(time_zone))
    return now.strftime("%Y-%m-%d" if period == Period.DAY else "%Y-%m")


def window_start(period: str, time_zone: str) -> datetime:
    now = timezone.now().astimezone(zone_of(time_zone))
    first = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return first if period == Period.DAY else first.replace(day=1)


def window_end(period: str, time_zone: str) -> datetime:
    """Return the end of the current window in this time zone."""
    start = window_start(period, time_zone)
    if period == Period.DAY:
        # By the calendar, not by hours: a day may have 23 or 25.
        return (start.replace(tzinfo=None) + timedelta(days=1)).replace(tzinfo=start.tzinfo)
    return (start + timedelta(days=32)).replace(day=1)


def spent_budget(
    agent_id: str, owner_id: int, *, time_zone: str = "", trigger: str | None = None
) -> Budget | None:
    """Return a used-up budget that a new run with these values would count in, or None.

    `trigger` is the id of the schedule or webhook that starts the run, None without one.

    This is one query if no budget fits. It reserves nothing, so a new run can still park and ask.
    """
    scope = Scope((), agent_id, owner_id, time_zone, trigger)
    for budget in budgets_of(scope).select_related("agent", "user"):
        name = window_name(budget.period, time_zone)
        window = Allowance.objects.filter(budget=budget, window=name).first()
        if window is not None and _is_used_up(window):
            return budget
    return None


def _is_used_up(window: Allowance) -> bool:
    tokens, cost = window.token_limit, window.microusd_limit
    return (tokens is not None and window.used_tokens >= tokens) or (
        cost is not None and window.used_microusd >= cost
    )
