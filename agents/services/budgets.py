"""Budgets as operators define them. A change holds for the next call of every run it concerns."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from agents.models import Allowance, ApprovalRequest, Budget, Run, RunClock
from agents.models.budget import OF_NOBODY, WITHOUT_LIMIT
from agents.selectors.usage import spent_since
from agents.services.audit import changes_between, fields_of, record
from agents.services.budget_answers import WaitersChanged
from agents.services.budget_scope import microusd, open_windows, window_name, window_start
from agents.services.errors import InvalidRequest, NotFound
from agents.services.reservations import is_near
from agents.services.wake import wake_run
from agents.states import ACTIVE_RUNS, ApprovalStatus, RunStatus, WaitReason


def save_budget(budget: Budget) -> Budget:
    """Store a budget, new or with other limits. Runs under way count in it from here on.

    What was spent in its present window before there was a budget counts, by the time zone of the
    settings. Whose budget it is, and its period, stay as they were made. Raises `InvalidRequest`,
    and `NotFound` for one that was removed meanwhile.
    """
    check_budget(budget)
    if not budget._state.adding:
        _again_if_somebody_came(_change, budget)
        return budget
    with transaction.atomic():
        budget.save()
        changes = changes_between(None, fields_of(budget, *_LIMITS, "period"))
        record("budget.created", budget, name=_name(budget), changes=changes)
        _begin(budget)
        # A run that was being made in that moment did not see the budget, nor this the run.
        transaction.on_commit(partial(_tell_runs, budget))
    return budget


def delete_budget(budget: Budget) -> None:
    """Remove a budget, if it is still there. Runs that wait for it go on."""
    _again_if_somebody_came(_remove, budget)


def _again_if_somebody_came(action: Callable[[Budget], None], budget: Budget) -> None:
    while True:
        try:
            with transaction.atomic():
                action(budget)
        except WaitersChanged:
            continue
        return


def check_budget(budget: Budget) -> None:
    """Raise `InvalidRequest` for a budget of nobody, or one that limits nothing."""
    if budget.agent_id is None and budget.user_id is None and budget.trigger is None:
        raise InvalidRequest(OF_NOBODY)
    if budget.max_tokens is None and budget.max_cost is None:
        raise InvalidRequest(WITHOUT_LIMIT)


def _begin(budget: Budget) -> None:
    # First the runs, then the sum: a reply is counted by the one or by the other.
    _tell_runs(budget)
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
def _tell_runs(budget: Budget) -> None:
    concerned = Run.objects.filter(status__in=ACTIVE_RUNS)
    if budget.agent_id is not None:
        concerned = concerned.filter(agent_version__agent=budget.agent_id)
    if budget.user_id is not None:
        concerned = concerned.filter(owner=budget.user_id)
    if budget.trigger is not None:
        concerned = concerned.filter(trigger=budget.trigger)
    # One by one, in the order of all lockers of clocks.
    for run_id in concerned.order_by("depth", "pk").values_list("pk", flat=True):
        RunClock.objects.filter(run=run_id, budgeted=False).update(budgeted=True)


_LIMITS = ("max_tokens", "max_cost")


def _name(budget: Budget) -> str:
    return f"{budget.of}, {budget.get_period_display()}"


def _change(budget: Budget) -> None:
    waiting, windows = _locked(budget)
    row = Budget.objects.filter(pk=budget.pk).first()
    if row is None:
        raise NotFound("This budget was removed meanwhile. Nothing was changed; make a new one.")
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
    # Whoever still finds nothing left parks again, and asks about the limit as it is now.
    for run in waiting:
        if run.clock.waits_for_id in changed:
            wake_run(run, "the budget was changed")
    _end_requests(Q(allowance__in=changed), ApprovalStatus.SUPERSEDED)


def _remove(budget: Budget) -> None:
    waiting, _ = _locked(budget)
    _end_requests(Q(allowance__budget=budget), ApprovalStatus.CANCELLED)
    for run in waiting:
        wake_run(run, "the budget was removed")
    deleted, _ = Budget.objects.filter(pk=budget.pk).delete()
    if deleted:  # else somebody else was faster
        record("budget.removed", budget, name=_name(budget))


def _locked(budget: Budget) -> tuple[list[Run], list[Allowance]]:
    """Runs that wait for a budget, with their clocks, and its windows, locked in this order.

    Raises `WaitersChanged` when another came meanwhile.
    """
    refers = RunClock.objects.filter(waits_for__budget=budget)
    concerned = list(refers.values_list("pk", flat=True))
    runs = list(
        Run.objects.select_for_update(no_key=True)
        .filter(pk__in=concerned, status__in=ACTIVE_RUNS)
        .order_by("depth", "pk")
    )
    clocks = RunClock.objects.select_for_update(no_key=True, of=("self",))
    by_run = {
        clock.pk: clock
        for clock in clocks.filter(pk__in=concerned).order_by("run__depth", "run_id")
    }
    windows = list(Allowance.objects.select_for_update().filter(budget=budget).order_by("id"))
    if refers.exclude(pk__in=by_run).exists():
        raise WaitersChanged
    waits = (RunStatus.WAITING, WaitReason.BUDGET)
    waiting = [run for run in runs if (run.status, run.wait_reason) == waits]
    for run in waiting:
        run.clock = by_run[run.pk]
    return waiting, windows


def _end_requests(which: Q, status: str) -> None:
    """What is asked is not what there is to decide any more."""
    ApprovalRequest.objects.filter(which, status=ApprovalStatus.PENDING).update(status=status)
