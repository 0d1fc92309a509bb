"""Each reply counts once: its row until its run is counted, then the totals."""

from __future__ import annotations

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.db.models import Sum
from django.utils import timezone

from agents.models import Message, MessageRole, Run, UsageTotal
from agents.selectors.usage import spent_since, usage_by_day
from agents.services.runs.control import resume_run
from agents.services.runs.usage_totals import TOGETHER, count_ended_runs
from agents.states import RunStatus
from tests.agents.api.rows import make_agent, make_run, make_user
from tests.agents.engine.by_hand import at_once

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ann() -> User:
    make_agent(sandbox=False)
    return make_user("ann")


def reply(run: Run, turn: int, cost: int | None = 7) -> None:
    Message.objects.create(
        run=run,
        turn=turn,
        role=MessageRole.ASSISTANT,
        content="[]",
        model="m",
        input_tokens=10,
        output_tokens=5,
        cost_microusd=cost,
    )


def end(run: Run, status: str = RunStatus.COMPLETED) -> None:
    Run.objects.filter(pk=run.pk).update(status=status, ended_at=timezone.now())


def used(owner: User) -> tuple[int, int, int | None]:
    """Return (calls, tokens, microusd), from both queries. Midnight may have passed in between."""
    rows = usage_by_day(owner, 2, ZoneInfo("UTC"), own=True)
    calls, tokens = sum(row.calls for row in rows), sum(row.tokens for row in rows)
    costs = [row.microusd for row in rows if row.microusd is not None]
    cost = sum(costs) if len(costs) == len(rows) else None
    start = timezone.now() - timedelta(days=1)
    assert spent_since(start, None, owner.pk) == (tokens, cost or 0)
    return calls, tokens, cost


def calls_in_totals() -> int:
    """Return the sum of the totals: each quarter of an hour has its own, so there may be two."""
    calls = UsageTotal.objects.aggregate(all=Sum("calls"))["all"]
    return calls or 0


def uncounted() -> int:
    return Run.every.filter(ended_at__isnull=False, uncounted_from__isnull=False).count()


def test_ended_runs_are_in_the_totals_and_open_runs_are_not(ann: User) -> None:
    ended, is_open = make_run(ann), make_run(ann)
    for run in (ended, is_open):
        reply(run, 1)
        reply(run, 2)
    end(ended)
    assert used(ann) == (4, 60, 28)
    assert count_ended_runs() == 1
    assert count_ended_runs() == 0
    assert calls_in_totals() == 2
    assert used(ann) == (4, 60, 28)


def test_replies_of_counted_runs_are_not_read_again(ann: User) -> None:
    run = make_run(ann)
    reply(run, 1)
    end(run)
    count_ended_runs()
    Message.objects.filter(run=run, turn=1).update(input_tokens=1_000_000)
    assert used(ann) == (1, 15, 7)


def test_a_resumed_run_counts_only_new_replies(ann: User) -> None:
    run = make_run(ann)
    reply(run, 1)
    end(run, RunStatus.FAILED)
    count_ended_runs()
    resume_run(run.pk)
    assert used(ann) == (1, 15, 7)
    reply(run, 2)
    assert used(ann) == (2, 30, 14)
    end(run, RunStatus.FAILED)
    resume_run(run.pk)  # before it was counted
    reply(run, 3)
    end(run)
    count_ended_runs()
    assert used(ann) == (3, 45, 21)
    assert calls_in_totals() == 3


def test_prices_that_are_not_known_stay_unknown(ann: User) -> None:
    run = make_run(ann)
    reply(run, 1, cost=None)
    end(run)
    assert used(ann) == (1, 15, None)
    count_ended_runs()
    assert used(ann) == (1, 15, None)


def test_copies_of_a_fork_cost_nothing_twice(ann: User) -> None:
    run, copy = make_run(ann), make_run(ann)
    for one in (run, copy):
        reply(one, 1)
        end(one)
    Run.objects.filter(pk=copy.pk).update(is_copy=True)
    count_ended_runs()
    assert used(ann) == (1, 15, 7)
    assert uncounted() == 0


@pytest.mark.slow
def test_concurrent_counters_count_each_reply_once(ann: User) -> None:
    for _ in range(TOGETHER + 5):
        run = make_run(ann)
        reply(run, 1)
        end(run)
    outcomes = at_once(*[count_ended_runs] * 4)
    assert all(isinstance(outcome, int) for outcome in outcomes)
    while count_ended_runs():
        pass
    assert uncounted() == 0
    assert used(ann) == (TOGETHER + 5, 15 * (TOGETHER + 5), 7 * (TOGETHER + 5))
    assert calls_in_totals() == TOGETHER + 5
