"""Token and cost limits: reserve before a call, settle after it, and request more at the limit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from agents.features.budgets.models import Allowance
from agents.features.budgets.reservations import Need, NoRoom, reserve
from agents.models import Agent, ApprovalRequest, Message, Run, RunClock
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.services.errors import Conflict, InvalidRequest, NotAllowed
from agents.services.runs.control import cancel_run, resume_run
from tests.agents.engine.test_model_faults import ANSWER, LOOK, served
from tests.support.messages_script import Turn
from tests.support.runs import drive_to_end, event_types, events, make_agent, make_user, start_run

pytestmark = pytest.mark.django_db(transaction=True)

SONNET = {"provider": "anthropic", "model": "claude-sonnet-5-5"}
PAUSE = ("completed", "failed", "cancelled", "waiting")
USED = {"input_tokens": 50, "output_tokens": 50, "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 0}  # fmt: skip
LOOK_100 = Turn(**{**LOOK.__dict__, "usage": USED})
ANSWER_100 = Turn(**{**ANSWER.__dict__, "usage": USED})


def limited(**fields: Any) -> tuple[User, Run]:
    user = make_user()
    make_agent(user, **{**SONNET, **fields})
    return user, start_run(user)


def pending(run: Run) -> ApprovalRequest:
    return ApprovalRequest.objects.get(run=run, status="pending")


def answer(request: ApprovalRequest, by: User, decision: str, **fields: Any) -> ApprovalRequest:
    return decide_approval(request.pk, DecisionRequest(decision, request.digest, **fields), by=by)


def settled(allowance: Allowance) -> tuple[int, int, int]:
    allowance.refresh_from_db()
    return allowance.used_tokens, allowance.reserved_tokens, allowance.reserved_microusd


@pytest.mark.slow
def test_at_its_limit_a_run_parks_and_asks_for_the_same_again() -> None:
    with served([LOOK_100] * 4 + [ANSWER_100]):
        user, run = limited(max_tokens=200)
        run = drive_to_end(run, until=PAUSE)
        assert (run.status, run.wait_reason) == ("waiting", "budget")
        request = pending(run)
        assert request.kind == "budget"
        assert request.input == {
            "limit_of": "run",
            "used_tokens": 200,
            "limit_tokens": 200,
            "more_tokens": 200,
        }
        assert settled(run.allowance) == (200, 0, 0)
        assert events(run, "run.suspended")[-1]["approval_ids"] == [request.pk]
        answer(request, user, "approve")
        run = drive_to_end(run, until=PAUSE)
        assert (run.status, settled(run.allowance)) == ("waiting", (400, 0, 0))
        answer(pending(run), user, "edit", input={"more_tokens": 1_000_000})
        run = drive_to_end(run, until=PAUSE)
    assert (run.status, run.error_message) == ("completed", "")
    assert settled(run.allowance) == (500, 0, 0)
    assert event_types(run)[-1] == "run.completed"


def test_a_rejection_ends_the_run_with_the_reason_and_resuming_asks_again() -> None:
    with served([LOOK_100] * 4 + [ANSWER_100]):
        user, run = limited(max_tokens=100)
        run = drive_to_end(run, until=PAUSE)
        answer(pending(run), user, "reject", reason="enough is enough")
        run = drive_to_end(run, until=PAUSE)
        assert (run.status, run.error_code) == ("failed", "limit_tokens")
        assert "enough is enough" in run.error_message
        assert "100" in run.error_message
        resume_run(run.pk)
        run = drive_to_end(run, until=PAUSE)
        assert run.status == "waiting"
        assert pending(run).input["more_tokens"] == 100


@pytest.mark.both_databases
@pytest.mark.parametrize("limit", ["max_tokens", "max_microusd"])
def test_a_call_in_progress_counts_as_used(limit: str) -> None:
    _, run = limited()
    allowance = Allowance.objects.create(run=run, **{limit: 100})
    need = Need(tokens=100, microusd=100)
    with transaction.atomic():
        reserve(run.pk, [allowance], need)
    with pytest.raises(NoRoom) as refused, transaction.atomic():
        reserve(run.pk, [allowance], need)
    assert not refused.value.is_used_up


def test_a_cost_limit_asks_in_dollars() -> None:
    with served([LOOK_100] * 4 + [ANSWER_100]):
        user, run = limited(max_cost=Decimal("0.000001"))
        run = drive_to_end(run, until=PAUSE)
        request = pending(run)
        # 50 tokens in and 50 out, at 2 and 10 dollars a million; twice the limit has to be passed.
        assert request.input["used_cost"] == "0.0006"
        assert request.input["more_cost"] == "0.0006"
        for wrong in ({}, {"more_cost": "-1"}, {"more_cost": "x"}, {"more_tokens": 5},
                      {"more_cost": "1", "limit_cost": "9"}, {"more_cost": "NaN"}):  # fmt: skip
            with pytest.raises(InvalidRequest):
                answer(request, user, "edit", input=wrong)
        answer(request, user, "edit", input={**request.input, "more_cost": "1.50"})
        run = drive_to_end(run, until=PAUSE)
    assert run.status == "completed"
    assert settled(run.allowance) == (500, 0, 0)
    assert run.allowance.used_microusd == run.clock.cost_microusd == 5 * 600
    costs = Message.objects.filter(run=run, role="assistant").values_list("cost_microusd")
    assert list(costs) == [(600,)] * 5


@pytest.mark.both_databases
def test_without_a_price_a_cost_limit_is_not_considered_kept() -> None:
    with served([ANSWER_100]) as server:
        user, run = limited(model="claude-fable-5-2", max_cost=Decimal("5"))
        run = drive_to_end(run, until=PAUSE)
        request = pending(run)
        assert len(server.requests) == 0
        assert "the price of the model claude-fable-5-2 is not known" in request.prompt
        assert request.allowed_decisions == ["approve", "reject"]
        answer(request, user, "approve")
        run = drive_to_end(run, until=PAUSE)
    assert run.status == "completed"
    assert RunClock.objects.get(run=run).cost is None


def test_the_scripted_model_costs_nothing() -> None:
    user = make_user()
    make_agent(user, max_cost=Decimal("0.000001"))
    run = drive_to_end(start_run(user), until=PAUSE)
    assert run.status == "completed"
    assert run.allowance.used_microusd == 0


def test_a_warning_comes_once_at_eighty_per_cent() -> None:
    with served([LOOK_100] * 4 + [ANSWER_100]):
        _, run = limited(max_tokens=500)
        run = drive_to_end(run, until=PAUSE)
    assert run.status == "completed"
    [warning] = events(run, "budget.warning")
    assert (warning["kind"], warning["used"], warning["limit"]) == ("tokens", 400, 500)
    assert event_types(run)[-1] == "run.completed"


def test_a_cancelled_run_withdraws_its_question() -> None:
    with served([LOOK_100] * 2):
        user, run = limited(max_tokens=100)
        run = drive_to_end(run, until=PAUSE)
    request = pending(run)
    cancel_run(run.pk, by="ada")
    request.refresh_from_db()
    assert request.status == "cancelled"
    with pytest.raises(Conflict):
        answer(request, user, "approve")
    assert Allowance.objects.get(run=run).extra_tokens == 0


def test_of_two_answers_the_second_is_refused() -> None:
    with served([LOOK_100] * 2):
        user, run = limited(max_tokens=100)
        run = drive_to_end(run, until=PAUSE)
    request = pending(run)
    answer(request, user, "approve")
    for decision in ("approve", "reject"):
        with pytest.raises(Conflict):
            answer(request, user, decision)
    run.refresh_from_db()
    assert run.status == "queued"
    assert Allowance.objects.get(run=run).extra_tokens == 100
    assert event_types(run).count("run.resumed") == 1


def test_a_person_who_may_not_approve_own_calls_cannot_raise_an_own_budget() -> None:
    with served([LOOK_100] * 2):
        user, run = limited(max_tokens=100, self_approval=False)
        run = drive_to_end(run, until=PAUSE)
    with pytest.raises(NotAllowed):
        answer(pending(run), user, "approve")
    bob = make_user("bob")
    bob.user_permissions.add(Permission.objects.get(codename="approve_toolcall"))
    answer(pending(run), bob, "approve")


@contextmanager
def statements() -> Iterator[list[str]]:
    """Collect the statements of all connections that are opened in this context."""
    seen: list[str] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        seen.append(sql)
        return execute(sql, params, many, context)

    def watch(*, connection: BaseDatabaseWrapper, **kwargs: object) -> None:
        connection.execute_wrappers.append(note)

    connection_created.connect(watch)
    try:
        yield seen
    finally:
        connection_created.disconnect(watch)


def statements_a_turn(turns: int = 10, **limits: Any) -> tuple[list[str], float]:
    """Return all statements of a run with `turns` turns, and the number of writes for each turn."""
    counts: list[int] = []
    for number in (2, 2 + turns):
        Run.objects.all().delete()
        with served([LOOK_100] * number + [ANSWER_100]), statements() as seen:
            agent = Agent.objects.filter(slug="tester").first()
            user = agent.owner if agent else make_user()
            if agent is None:
                make_agent(user, **SONNET, **limits)
            run = drive_to_end(start_run(user))
            assert run.status == "completed"
        counts.append(sum("UPDATE" in sql or "INSERT" in sql or "DELETE" in sql for sql in seen))
    return seen, (counts[1] - counts[0]) / turns


@pytest.mark.slow
def test_a_run_without_limits_has_no_overhead_for_budgets() -> None:
    seen, _ = statements_a_turn()
    tables = ("vel_budgets_allowance", "vel_budgets_budget", "vel_budgets_runbudget")
    about = [sql for sql in seen if any(table in sql for table in tables)]
    # Three at the claim and one at the end; none in its twelve turns.
    assert len(about) <= 4, about
