"""Change budgets. A change applies to the next call of each run that counts in the budget."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from agents.features.budgets.models import (
    BUDGET,
    OF_NOBODY,
    WITHOUT_LIMIT,
    Allowance,
    Budget,
    RunBudget,
)
from agents.features.budgets.reservations import is_near
from agents.features.budgets.scope import microusd, open_windows, window_name, window_start
from agents.kernel.proposals import DecideAgain
from agents.models import ApprovalRequest, Run, RunClock
from agents.selectors.usage import spent_since
from agents.services.audit import changes_between, fields_of, record
from agents.services.errors import InvalidRequest, NotFound
from agents.services.runs.wake import wake_run
from agents.states import ACTIVE_RUNS, ApprovalStatus, RunStatus


def save_budget(budget: Budget) -> Budget:
    """Store a new budget, or other limits of a budget. Active runs count in it from now on.

    A new budget includes the earlier use in its current window, by the time zone of the settings.
    Its owner and its period cannot change. Raises `InvalidRequest`, and `NotFound` if the budget
    was removed.
    """
    check_budget(budget)
    if not budget._state.adding:
        _repeat(_change, budget)
        return budget
    with transaction.atomic():
        budget.save()
        changes = changes_between(None, fields_of(budget, *_LIMITS, "period"))
        record("budget.created", budget, name=_name(budget), changes=changes)
        _begin(budget)
        # A run that was created at the same time did not see the budget, nor this the run.
        transaction.on_commit(partial(_notify_runs, budget))
    return budget


def delete_budget(budget: Budget) -> None:
    """Remove a budget if it still exists. Runs that wait for it continue."""
    _repeat(_remove, budget)


def _repeat(action: Callable[[Budget], None], budget: Budget) -> None:
    while True:
        try:
            with transaction.atomic():
                action(budget)
        except DecideAgain:
            continue
        return


def check_budget(budget: Budget) -> None:
    """Raise `InvalidRequest` for a budget without an owner or without a limit."""
    if budget.agent_id is None and budget.user_id is None and budget.trigger is None:
        raise InvalidRequest(OF_NOBODY)
    if budget.max_tokens is None and budget.max_cost is None:
        raise InvalidRequest(WITHOUT_LIMIT)


def _begin(budget: Budget) -> None:
    # First the runs, then the sum: a reply is counted by the one or by the other.
    _notify_runs(budget)
    open_windows(iter([budget]), settings.TIME_ZONE)
    tokens, cost = spent_since(
        window_start(budget.period, settings.TIME_ZONE),
        budget.agent_id,
        budget.user_id,
        budget.trigger,
    )
    Allowance.objects.filter(
        budget=budget, window=window_name(budget.period, settings.TIME_ZONE)
    ).update(used_tokens=tokens, used_microusd=cost)


@transaction.atomic
def _notify_runs(budget: Budget) -> None:
    concerned = Run.objects.filter(status__in=ACTIVE_RUNS)
    if budget.agent_id is not None:
        concerned = concerned.filter(agent_version__agent=budget.agent_id)
    if budget.user_id is not None:
        concerned = concerned.filter(owner=budget.user_id)
    if budget.trigger is not None:
        concerned = concerned.filter(trigger=budget.trigger)
    # One by one, in the order of all lockers of clocks.
    for run_id in concerned.order_by("depth", "pk").values_list("pk", flat=True):
        RunClock.objects.filter(run=run_id).update(noticed=True)


_LIMITS = ("max_tokens", "max_cost")


def _name(budget: Budget) -> str:
    return f"{budget.of}, {budget.period}"


def _change(budget: Budget) -> None:
    waiting, windows = _locked(budget)
    row = Budget.objects.filter(pk=budget.pk).first()
    if row is None:
        raise NotFound("This budget has been deleted, so nothing was changed. Create a new budget.")
    stored = fields_of(row, *_LIMITS)
    Budget.objects.filter(pk=budget.pk).update(
        max_tokens=budget.max_tokens, max_cost=budget.max_cost
    )
    changes = changes_between(stored, fields_of(budget, *_LIMITS))
    record("budget.changed", budget, name=_name(budget), changes=changes)
    changed: set[int] = set()
    for window in windows:
        before = (window.max_tokens, window.max_microusd)
        window.max_tokens, window.max_microusd = budget.max_tokens, microusd(budget)
        if before == (window.max_tokens, window.max_microusd):
            continue
        window.warned_tokens = is_near(window.used_tokens, window.token_limit)
        window.warned_cost = is_near(window.used_microusd, window.microusd_limit)
        window.save()
        changed.add(window.pk)
    # A run that still has nothing left parks again, and asks about the new limit.
    for run in waiting:
        if run.budget.waits_for_id in changed:
            wake_run(run, "the budget was changed")
    _end_requests(Q(budget_request__allowance__in=changed), ApprovalStatus.SUPERSEDED)


def _remove(budget: Budget) -> None:
    waiting, _ = _locked(budget)
    _end_requests(Q(budget_request__allowance__budget=budget), ApprovalStatus.CANCELLED)
    for run in waiting:
        wake_run(run, "the budget was removed")
    deleted, _ = Budget.objects.filter(pk=budget.pk).delete()
    if deleted:  # else somebody else was faster
        record("budget.removed", budget, name=_name(budget))


def _locked(budget: Budget) -> tuple[list[Run], list[Allowance]]:
    """Lock runs that wait for a budget, their clocks, and its windows, in this order.

    Raises `DecideAgain` if another run waits by now.
    """
    refers = RunBudget.objects.filter(waits_for__budget=budget)
    concerned = list(refers.values_list("pk", flat=True))
    runs = list(
        Run.objects.select_for_update(no_key=True)
        .filter(pk__in=concerned, status__in=ACTIVE_RUNS)
        .order_by("depth", "pk")
    )
    clocks = RunClock.objects.select_for_update(no_key=True, of=("self",))
    list(clocks.filter(pk__in=concerned).order_by("run__depth", "run_id").values_list("pk"))
    windows = list(Allowance.objects.select_for_update().filter(budget=budget).order_by("id"))
    if refers.exclude(pk__in=concerned).exists():
        raise DecideAgain
    waits = (RunStatus.WAITING, BUDGET)
    waiting = [run for run in runs if (run.status, run.wait_reason) == waits]
    return waiting, windows


def _end_requests(which: Q, status: str) -> None:
    """End pending requests: the limit that they show is out of date."""
    ApprovalRequest.objects.filter(which, status=ApprovalStatus.PENDING).update(status=status)
