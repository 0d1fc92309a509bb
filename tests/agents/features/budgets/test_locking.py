"""Concurrent reservations, settlements, parks and decisions on budgets happen in order and once.

Like `test_locking` for one run and `test_family_locking` for parents and children.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db.models import Sum

from agents.engine.storage.finish import cancel_driven_run, complete_run, fail_run, stop_driving
from agents.engine.storage.journal import Writer
from agents.engine.storage.lease import claim_run
from agents.features.budgets.actions import delete_budget, save_budget
from agents.features.budgets.middleware import reserve_for, wait_for_budget
from agents.features.budgets.models import Allowance, Budget, RunBudget
from agents.features.budgets.reservations import Need, NoRoom, Reserved, settle
from agents.features.budgets.scope import scope_of
from agents.kernel.park import park
from agents.models import POOL, ApprovalRequest, Run, RunClock
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.services.runs.control import cancel_run
from agents.services.runs.wake import wake_due
from agents.spec import AgentSpec
from tests.agents.engine.by_hand import at_once, claimed, committed, let_lease_expire, reply_with
from tests.agents.engine.families import claimed_with_calls, new_parent, park_for, spawn
from tests.agents.engine.invariants import check_family, check_run
from tests.agents.engine.test_locking import REFUSALS, pairs, some
from tests.agents.transition_guard import guarded_transitions
from tests.support.runs import make_user

pytestmark = pytest.mark.django_db(transaction=True)

NEED = Need(100, 10)
PAST = 1_000_000.0


@pytest.fixture(autouse=True)
def _guarded(db: None) -> Iterator[None]:
    with guarded_transitions():
        yield


@dataclass
class Scene:
    """A parent that waits for three children; the first is parked because the budget is used up."""

    boss: User
    parent: Run
    children: list[Run]
    writers: dict[str, Writer]
    budget_id: str = ""

    @property
    def request(self) -> ApprovalRequest:
        return ApprovalRequest.objects.filter(run=self.parent).earliest("id")


def ask(writer: Writer) -> bool:
    run = Run.objects.get(pk=writer.run_id)
    spec = AgentSpec.model_validate(run.spec)
    return park(writer, wait_for_budget(scope_of(run), spec, NEED), 1, fail_run)


def reserve(writer: Writer) -> None:
    reserve_for(writer, scope_of(Run.objects.get(pk=writer.run_id)), NEED, None)


def reply(writer: Writer) -> None:
    """Store a reply and count its use, as a driver does."""
    clock = RunClock.objects.get(run=writer.run_id)
    reply_with(writer, [], turn=clock.turn + 1)
    row = RunBudget.objects.get(run=writer.run_id)
    ids = [int(key) for key in row.reserved_from.split(",") if key]
    held = Reserved(row.reserved_tokens, row.reserved_microusd, tuple(ids))
    settle(writer.run_id, held, ids, 12, 7)


Action = Callable[[Scene], object]


def driver(number: int, function: Callable[..., Any], *arguments: Any) -> Action:
    return lambda scene: committed(function, scene.writers[scene.children[number].pk], *arguments)


def decide(decision: str) -> Action:
    return lambda scene: decide_approval(
        scene.request.pk, DecisionRequest(decision, scene.request.digest), by=scene.boss
    )


def the_window_is_over(scene: Scene) -> object:
    while committed(wake_due):
        pass
    return None


def change(scene: Scene) -> object:
    budget = Budget.objects.filter(pk=scene.budget_id).first()
    if budget is None:
        return None
    budget.max_tokens = 5_000
    return save_budget(budget)


def remove(scene: Scene) -> object:
    budget = Budget.objects.filter(pk=scene.budget_id).first()
    return delete_budget(budget) if budget is not None else None


ACTIONS: dict[str, Action] = {
    "approve": decide("approve"),
    "reject": decide("reject"),
    "second reserves": driver(1, reserve),
    "second asks": driver(1, ask),
    "second ends": driver(1, complete_run, "end_turn", 1),
    "second fails": driver(1, fail_run, "code", "message", 1),
    "second ends cancelled": driver(1, cancel_driven_run, 1),
    "second is handed back": driver(1, stop_driving, 1),
    "third replies": driver(2, reply),
    "third fails": driver(2, fail_run, "code", "message", 1),
    "claim third": lambda scene: committed(claim_run, scene.children[2].pk, POOL, "another"),
    "cancel the parent": lambda scene: cancel_run(scene.parent.pk, by="ada"),
    "cancel first": lambda scene: cancel_run(scene.children[0].pk, by="ada"),
    "cancel third": lambda scene: cancel_run(scene.children[2].pk, by="ada"),
    "the window is over": the_window_is_over,
    "change": change,
    "remove": remove,
}
SECOND = {name for name in ACTIONS if name.startswith("second")}
THIRD = {name for name in ACTIONS if name.startswith("third")}


def scene(kind: str, *, third_lost: bool = False) -> Scene:
    boss = User.objects.filter(username="boss").first() or make_user("boss")
    for name in ("change_budget", "approve_toolcall"):
        boss.user_permissions.add(Permission.objects.get(codename=name))
    Budget.objects.all().delete()
    user, parent = new_parent()
    parent.refresh_from_db()
    writer = claimed_with_calls(parent)
    budget = None
    if kind == "run":
        allowance = Allowance.objects.create(run=parent, max_tokens=1_000)
    else:
        budget = save_budget(Budget(user=user, period="month", max_tokens=1_000))
        allowance = budget.windows.get()
        Allowance.objects.filter(pk=allowance.pk).update(used_tokens=0)  # of earlier scenes
    spec = parent.agent_version
    spec.spec = spec.spec | {"max_concurrent_subagents": 5}
    spec.save()
    parent = Run.objects.get(pk=parent.pk)
    children = committed(spawn, writer, 3)
    writers = {child.pk: claimed(child) for child in children}
    writers = {
        child.pk: Writer(child.pk, child.thread_id, writers[child.pk].fence, parent.pk)
        for child in children
    }
    assert committed(park_for, writer, children)
    # The third child has a call in progress. Then the budget is used up, and the first asks for
    # more.
    committed(reserve, writers[children[2].pk])
    Allowance.objects.filter(pk=allowance.pk).update(used_tokens=1_000)
    assert committed(ask, writers[children[0].pk])
    if kind == "window":
        Run.objects.filter(pk=children[0].pk).update(wake_at=PAST)
    if third_lost:
        let_lease_expire(children[2])
    return Scene(boss, parent, children, writers, budget.pk if budget else "")


def check(scene: Scene, names: tuple[str, str], answers: list[Any]) -> None:
    for name, answer in zip(names, answers, strict=True):
        expected = isinstance(answer, (*REFUSALS, NoRoom))
        if isinstance(answer, Exception) and not expected:
            raise AssertionError(f"{names}: {name} raised {answer!r}") from answer
    for run in [scene.parent, *scene.children]:
        check_run(run)
        assert run.events.filter(type="run.resumed", data__contains="given").count() <= 1
    check_family(Run.objects.get(pk=scene.parent.pk))
    rows = RunBudget.objects.filter(run__in=scene.children).exclude(reserved_from="")
    held = rows.aggregate(all=Sum("reserved_tokens"))["all"]
    for allowance in Allowance.objects.filter(pk__in=_allowances(scene)):
        assert allowance.reserved_tokens == (held or 0), names
        assert allowance.extra_tokens in (0, 1_000)


def _allowances(scene: Scene) -> list[int]:
    if scene.budget_id:
        return list(Allowance.objects.filter(budget=scene.budget_id).values_list("pk", flat=True))
    return list(Allowance.objects.filter(run=scene.parent).values_list("pk", flat=True))


def chosen(kind: str) -> list[tuple[str, str]]:
    """Return all pairs in which each driver does at most one step."""
    actions = [name for name in ACTIONS if kind == "window" or name not in ("change", "remove")]
    return [
        pair
        for pair in pairs(actions)
        if not SECOND.issuperset(pair)
        and not THIRD.issuperset(pair)
        # A lost driver has no fence to write with.
        and not ("claim third" in pair and THIRD.intersection(pair))
    ]


def both(kind: str, pair: tuple[str, str]) -> None:
    found = scene(kind, third_lost="claim third" in pair)
    answers = at_once(*(lambda act=ACTIONS[name]: act(found) for name in pair))
    check(found, pair, answers)


@pytest.mark.both_databases
@pytest.mark.parametrize("kind", ["run", "window"])
def test_two_concurrent_actions_leave_a_budget_consistent(kind: str) -> None:
    for pair in some(chosen(kind), times=1)[:: 1 if kind == "window" else 2]:
        both(kind, pair)


@pytest.mark.storm
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", ["run", "window"])
def test_any_two_concurrent_actions_leave_a_budget_consistent(kind: str) -> None:
    for pair in chosen(kind):
        both(kind, pair)
