"""Budgets for a day or a month: waiting runs, higher limits, and the end of a window."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.utils import timezone

from agents.features.budgets.actions import delete_budget, save_budget
from agents.features.budgets.models import Allowance, Budget, Period
from agents.features.budgets.run_requests import review_of
from agents.features.budgets.scope import window_end, window_name, window_start
from agents.models import Agent, Run, RunClock
from agents.services.errors import InvalidRequest, NotAllowed
from tests.agents.engine.test_model_faults import served
from tests.agents.features.budgets.test_limits import (
    ANSWER_100,
    LOOK_100,
    PAUSE,
    SONNET,
    answer,
    pending,
    settled,
)
from tests.support.messages_script import Fault, Turn
from tests.support.runs import (
    drive_to_end,
    event_types,
    make_agent,
    make_user,
    running_worker,
    start_run,
    wait_for_status,
    wait_until,
)

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("frequent_looks"),
    pytest.mark.both_databases,
]


def scene(**budget: Any) -> tuple[User, Agent, Budget]:
    """Create a user without permissions, an agent, and a budget of the user's."""
    user = make_user()
    agent = make_agent(user, **SONNET)
    return user, agent, save_budget(Budget(**{"user": user, "period": Period.DAY, **budget}))


def operator() -> User:
    user = make_user("oscar")
    user.user_permissions.add(Permission.objects.get(codename="change_budget"))
    return user


def parked(user: User, **fields: Any) -> Run:
    return drive_to_end(start_run(user, **fields), until=PAUSE)


@pytest.mark.slow
def test_runs_of_all_threads_count_in_one_window_and_one_decision_wakes_all() -> None:
    with served([ANSWER_100] * 8):
        user, _, budget = scene(max_tokens=200)
        assert parked(user).status == "completed"
        assert parked(user).status == "completed"
        first, second = parked(user), parked(user)
        assert {run.wait_reason for run in (first, second)} == {"budget"}
        [window] = Allowance.objects.filter(budget=budget)
        assert settled(window) == (200, 0, 0)
        asked = pending(first)
        assert (asked.input["limit_of"], asked.input["window"]) == ("day", window.window)
        for decision in ("approve", "edit"):
            given = {"input": {"more_tokens": 10**6}} if decision == "edit" else {}
            with pytest.raises(NotAllowed, match="permission to change budgets"):
                answer(asked, user, decision, **given)
        other = pending(second)
        answer(asked, operator(), "edit", input={"more_tokens": 1_000})
        other.refresh_from_db()
        assert other.status == "superseded"
        for run in (first, second):
            run.refresh_from_db()
            assert run.status == "queued"
            assert event_types(run).count("run.resumed") == 1
            run = drive_to_end(run, until=PAUSE)
            assert run.status == "completed"
    assert settled(window) == (400, 0, 0)


@pytest.mark.slow
def test_a_rejection_in_a_shared_window_ends_only_the_run_that_asked() -> None:
    with served([ANSWER_100] * 8):
        user, _, _ = scene(max_tokens=100)
        parked(user)
        first, second = parked(user), parked(user)
        [note] = review_of(pending(first).input).notes
        assert note.text == (
            "A rejection ends the run, and its parents and subagents that wait for the same limit."
        )
        answer(pending(first), user, "reject")
        first = drive_to_end(first, until=PAUSE)
        second.refresh_from_db()
        assert (first.status, first.error_code) == ("failed", "limit_tokens")
        assert second.status == "waiting"
        # A rejected run ends, even if another gets a higher limit before it is claimed.
        third = parked(user)
        answer(pending(third), user, "reject")
        answer(pending(second), operator(), "approve")
        third = drive_to_end(third, until=PAUSE)
        assert third.status == "failed"


def test_a_new_window_continues_waiting_runs_automatically() -> None:
    with served([ANSWER_100] * 8):
        user, _, budget = scene(max_tokens=100)
        parked(user)
        run = parked(user)
        asked = pending(run)
        tomorrow = window_end("day", "UTC").timestamp()
        assert run.wake_at == tomorrow
        # The day is over: the old window has yesterday's name.
        Allowance.objects.filter(budget=budget).update(window="2026-01-01")
        Run.objects.filter(pk=run.pk).update(wake_at=1.0)
        with running_worker():
            wait_for_status(run, "completed")
    asked.refresh_from_db()
    assert asked.status == "cancelled"
    assert sorted(Allowance.objects.values_list("window", "used_tokens")) == [
        ("2026-01-01", 100),
        (window_name("day", "UTC"), 100),
    ]


def test_a_limit_that_is_lowered_holds_for_the_next_call_of_a_run_under_way() -> None:
    with served([LOOK_100] * 2 + [Turn(text="Slow", fault=Fault("hang_mid_stream"))]):
        user, _, budget = scene(max_tokens=10_000_000)
        run = start_run(user)
        with running_worker() as running:
            running.submit(run.pk)
            wait_until(lambda: Allowance.objects.filter(used_tokens=200).exists())
            budget.max_tokens = 150
            save_budget(budget)
            window = Allowance.objects.get()
            assert window.max_tokens == 150
            running.stop(grace=0)  # in the middle of its third call
        # The next call requests approval.
        run = drive_to_end(run, until=PAUSE)
        assert (run.status, run.wait_reason) == ("waiting", "budget")
    assert settled(window) == (200, 0, 0)
    budget.max_tokens = 100_000
    save_budget(budget)
    run.refresh_from_db()
    assert run.status == "queued"


def test_a_budget_created_during_a_run_counts_past_and_later_usage() -> None:
    """Every reply is counted once: in the sum at the creation, or when it is written."""
    slow = Turn(**{**LOOK_100.__dict__, "chunk_delay": 0.02})
    with served([slow] * 12 + [ANSWER_100]):
        user = make_user()
        agent = make_agent(user, **SONNET)
        run = start_run(user)
        with running_worker() as running:
            running.submit(run.pk)
            wait_until(lambda: RunClock.objects.filter(run=run, turn__gte=3).exists())
            budget = save_budget(Budget(agent=agent, period=Period.MONTH, max_tokens=10_000))
            wait_for_status(run, "completed", "failed", "waiting")
    assert run.status == "completed"
    [window] = budget.windows.all()
    assert settled(window) == (1_300, 0, 0)


def test_a_budget_without_owner_or_limit_is_refused() -> None:
    user = make_user()
    for wrong in ({"max_tokens": 5}, {"user": user}):
        with pytest.raises(InvalidRequest):
            save_budget(Budget(**wrong))


def test_removing_a_budget_continues_waiting_runs() -> None:
    with served([ANSWER_100] * 8):
        user, _, budget = scene(max_tokens=100)
        parked(user)
        run = parked(user)
        assert run.status == "waiting"
        delete_budget(budget)
        run = drive_to_end(run, until=PAUSE)
    assert run.status == "completed"


@pytest.mark.slow
def test_usage_of_others_does_not_count() -> None:
    with served([ANSWER_100] * 8):
        user, agent, _ = scene(max_tokens=100)
        other = make_user("bob")
        agent.everyone = True
        agent.save()
        save_budget(Budget(user=other, agent=agent, period=Period.DAY, max_tokens=100))
        assert parked(user).status == "completed"
        assert parked(other).status == "completed"
        assert parked(user).status == "waiting"
        assert parked(other).status == "waiting"
    assert set(Allowance.objects.values_list("used_tokens", flat=True)) == {100}


def test_windows_follow_the_calendar_of_the_thread() -> None:
    now = timezone.now()
    for zone in ("Pacific/Kiritimati", "America/Los_Angeles", "Europe/Berlin", "no such zone"):
        for period in Period.values:
            start, end = window_start(period, zone), window_end(period, zone)
            assert start <= now < end
            assert (start.hour, end.hour) == (0, 0)
            form = "%Y-%m-%d" if period == "day" else "%Y-%m"
            assert window_name(period, zone) == start.strftime(form)
