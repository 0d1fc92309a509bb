"""Any sequence of actions of drivers and users leaves consistent rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Q
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from agents.engine.errors import FenceLost
from agents.engine.prompt.history import call_from_row, open_turn
from agents.engine.storage.finish import cancel_driven_run, complete_run, fail_run
from agents.engine.storage.journal import Call, Outcome, Writer, write_results
from agents.engine.storage.lease import hand_back
from agents.events.catalogue.tool_calls import ToolCompleted
from agents.models import ApprovalRequest, Run, RunClock, ToolCall
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.services.errors import Conflict, ServiceError
from agents.services.runs.control import cancel_run, resume_run
from agents.services.runs.start import RunRequest, create_run
from agents.services.runs.wake import wake_due
from agents.states import ACTIVE_RUNS, FINISHED_CALLS, ToolCallStatus
from tests.agents.engine.by_hand import HOUR, a_call, claim, committed, park, reply_with, start
from tests.agents.engine.families import park_for, spawn
from tests.agents.engine.invariants import check_family, check_run
from tests.agents.transition_guard import guarded_transitions
from tests.support.runs import make_agent, make_user

T = ToolCallStatus
PAST = 1_000_000.0
MOST_RUNS = 6
MOST_CHILDREN = 10
DECISIONS = ("approve", "approve", "edit", "reject", "respond")
OUTCOMES = (T.SUCCEEDED, T.FAILED, T.INTERRUPTED)
RUN_COLUMNS = ("pk", "parent_id", "thread_id", "status", "executor")
CLOCK_COLUMNS = tuple(f"clock__{field.name}" for field in RunClock._meta.concrete_fields)
pick = st.integers(min_value=0, max_value=10_000)
"""Choose an item: n modulo the number of items."""


class AnyHistory(RuleBasedStateMachine):
    """Two threads of one user, with subagents, decisions, and drivers that come, go and linger."""

    user: User

    @initialize()
    def begin(self) -> None:
        self.holders: dict[str, Writer] = {}
        self.replaced: list[Writer] = []
        self.ended: dict[str, str] = {}
        self.fences: dict[str, int] = defaultdict(int)
        self.results: dict[int, list[str]] = {}
        self.decisions: dict[str, str] = {}
        self.checked: dict[str, tuple[Any, ...]] = {}
        for key in ("one", "two"):
            run = create_run(RunRequest("tester", "Begin", key=key), owner=self.user).run
        self.claim(run)
        self.delegate(self.holders[run.id], ["read", "read"])

    # The state --------------------------------------------------------------------------------

    @staticmethod
    def one_of(rows: list[Any], number: int) -> Any:
        return rows[number % len(rows)] if rows else None

    def run_with(self, number: int, **conditions: Any) -> Run | None:
        return self.one_of(list(Run.objects.filter(**conditions).order_by("created_at")), number)

    def let_go(self, writer: Writer) -> None:
        del self.holders[writer.run_id]
        self.replaced.append(writer)

    # People ------------------------------------------------------------------------------------

    @rule(
        what=st.sampled_from(
            ["decide"] * 6 + ["send"] * 2 + ["cancel", "resume", "decide late"] + ["time"] * 2
        ),
        number=pick,
    )
    def a_person_acts(self, what: str, number: int) -> None:
        if what == "send":
            self.send(("one", "two")[number % 2], queue=number % 3 > 0)
        elif what == "cancel":
            self.cancel(number)
        elif what == "resume":
            self.resume(number)
        elif what == "time":
            self.wake()
        else:
            self.decide(number, late=what == "decide late")

    def send(self, key: str, *, queue: bool) -> None:
        if Run.objects.filter(parent=None).count() >= MOST_RUNS:
            return
        busy = Run.objects.filter(thread__key=key, status__in=[*ACTIVE_RUNS, "pending"]).exists()
        try:
            run = create_run(
                RunRequest("tester", "More", key=key, queue=queue), owner=self.user
            ).run
        except Conflict:
            assert busy
            assert not queue
        else:
            assert run.status == ("pending" if busy else "queued")

    def cancel(self, number: int) -> None:
        run = self.run_with(number)
        assert run is not None
        before = run.status
        driven = RunClock.objects.get(run=run).lease_until is not None and run.id in self.holders
        after = cancel_run(run.id, by="ada").status
        if before in ("completed", "failed", "cancelled") or (before == "running" and driven):
            assert after == before
        else:
            assert after == "cancelled"

    def decide(self, number: int, *, late: bool) -> None:
        requests = ApprovalRequest.objects.order_by("created_at", "id")
        pending = requests.filter(status="pending")
        request = self.one_of(list(requests if late else pending), number)
        if request is None:
            return
        decision = DECISIONS[number % len(DECISIONS)]
        answer = DecisionRequest(
            decision,
            request.digest,
            input={"path": "/edited", "content": "y"} if decision == "edit" else None,
            reason="because",
        )
        try:
            decide_approval(request.id, answer, by=self.user)
        except ServiceError:
            assert request.status != "pending"
        else:
            assert request.status == "pending"
            self.decisions[request.id] = decision

    def wake(self) -> None:
        """Wake parents as the sweeper does; here the time limit of every parent has passed."""
        due = Run.objects.filter(wake_at__isnull=False)
        while committed(wake_due):
            pass
        assert not due.exists()

    def resume(self, number: int) -> None:
        run = self.run_with(number)
        assert run is not None
        try:
            resume_run(run.id)
        except Conflict:
            return
        assert run.status in ("failed", "queued", "running")
        if run.status == "failed":
            self.ended.pop(run.id)

    # Drivers -----------------------------------------------------------------------------------

    @rule(
        what=st.sampled_from(["step"] * 12 + ["linger"] * 2 + ["claim", "die", "stop"]),
        number=pick,
        kinds=st.lists(st.sampled_from(["read", "write"]), max_size=3),
    )
    def a_driver_acts(self, what: str, number: int, kinds: list[str]) -> None:
        if what == "linger":
            self.linger(number)
            return
        run = self.run_with(number, status__in=["queued", "running"])
        if run is None:
            return
        writer = self.holders.get(run.id)
        if writer is None or what == "claim":
            self.claim(run)
        elif what == "step":
            self.step(writer, number, kinds)
        elif what == "die":
            self.die(writer)
        else:
            self.stop(writer, number)

    def claim(self, run: Run) -> None:
        won = claim(run)
        assert (won is None) == (run.id in self.holders)
        if won is not None:
            self.holders[run.id] = Writer(run.id, run.thread_id, won.fence, run.parent_id)

    def die(self, writer: Writer) -> None:
        RunClock.objects.filter(run=writer.run_id).update(lease_until=F("lease_until") - HOUR)
        self.let_go(writer)

    def step(self, writer: Writer, number: int, kinds: list[str]) -> None:
        """Do the next step of the driver: finish calls, start calls, request approval, or reply."""
        if RunClock.objects.get(run=writer.run_id).cancel_requested and number % 2:
            committed(cancel_driven_run, writer, 1)
            self.let_go(writer)
            return
        calls = open_turn(Run.objects.get(pk=writer.run_id))
        started = [call for call in calls if call.status == T.STARTED]
        approved = [call for call in calls if call.status == T.APPROVED]
        waiting = [call for call in calls if call.status in (T.PENDING, T.WAITING)]
        delegated = Run.objects.filter(parent=writer.run_id, parent_call__finished_at=None)
        if started and delegated.exists():
            self.wait(writer, list(delegated), number)
        elif started:
            outcome = OUTCOMES[number % len(OUTCOMES)]
            self.finish(writer, self.one_of(started, number), outcome)
        elif approved and self.start(writer, self.one_of(approved, number)):
            pass
        elif approved or waiting:
            committed(park, writer, *approved, *waiting)
            self.let_go(writer)
        elif number % 3 == 0 and kinds:
            self.delegate(writer, kinds)
        elif number % 3 == 1 and writer.parent_id is not None:
            self.reply(writer, [])
        else:
            self.reply(writer, kinds)

    def delegate(self, writer: Writer, kinds: list[str]) -> None:
        run = Run.objects.get(pk=writer.run_id)
        if run.depth > 1 or Run.objects.exclude(parent=None).count() >= MOST_CHILDREN:
            return
        self.reply(writer, ["read", *kinds])
        assert len(committed(spawn, writer, len(kinds))) == len(kinds)

    def wait(self, writer: Writer, children: list[Run], number: int) -> None:
        """Park for the children of the open call, or continue without waiting."""
        going = any(not child.has_ended for child in children)
        if going and number % 4:
            until = PAST if number % 2 else None
            assert committed(park_for, writer, children, until)
            self.let_go(writer)
        else:
            call = call_from_row(children[0].parent_call)
            self.finish(writer, call, OUTCOMES[number % len(OUTCOMES)])

    def finish(self, writer: Writer, call: Call, status: str) -> None:
        event = ToolCompleted(call_id=call.call_id, output="result")
        outcome = Outcome(call, status, '"result"', events=[event])
        committed(write_results, writer, [outcome])

    def start(self, writer: Writer, call: Call) -> bool:
        is_started = committed(start, writer, call)
        row = ToolCall.objects.get(run=writer.run_id, turn=call.turn, position=call.position)
        assert row.status == ("started" if is_started else "approved")
        decided = row.approvals.exclude(decided_by=None).latest("created_at")
        assert decided.status == ("decided" if is_started else "superseded")
        return is_started

    def reply(self, writer: Writer, kinds: list[str]) -> None:
        turn = RunClock.objects.get(run=writer.run_id).turn + 1
        calls = [
            a_call(place, turn=turn, effect=kind, status="started" if kind == "read" else "pending")
            for place, kind in enumerate(kinds)
        ]
        committed(reply_with, writer, calls, turn)
        if not calls:
            committed(complete_run, writer, "end_turn", 1)
            self.let_go(writer)

    def stop(self, writer: Writer, number: int) -> None:
        ends: list[Callable[[], Any]] = [
            lambda: committed(fail_run, writer, "code", "message", 1),
            lambda: committed(cancel_driven_run, writer, 1),
            lambda: committed(hand_back, writer),
        ]
        self.one_of(ends, number)()
        self.let_go(writer)

    def linger(self, number: int) -> None:
        """Let a replaced or released driver try to continue."""
        writer = self.one_of(self.replaced, number)
        if writer is None:
            return
        rows = ToolCall.objects.filter(run=writer.run_id)
        call = call_from_row(rows.first()) if rows.exists() else a_call(0)
        acts: list[Callable[[], Any]] = [
            lambda: committed(complete_run, writer, "end_turn", 1),
            lambda: committed(fail_run, writer, "code", "message", 1),
            lambda: committed(hand_back, writer),
            lambda: committed(reply_with, writer, [], 99),
            lambda: committed(write_results, writer, [Outcome(call, "failed", '"late"')]),
        ]
        with pytest.raises(FenceLost):
            self.one_of(acts, number // 7)()

    # Invariants -------------------------------------------------------------------------------

    @invariant()
    def rows_agree(self) -> None:
        rows = list(Run.objects.order_by("pk").values_list(*RUN_COLUMNS, *CLOCK_COLUMNS))
        states: dict[str | None, list[str]] = defaultdict(list)
        active: Counter[str] = Counter()
        for _, parent_id, thread_id, status, *_ in rows:
            states[parent_id].append(status)
            active[thread_id] += status in ACTIVE_RUNS
        assert set(active.values()) <= {0, 1}
        for run_id, *columns in rows:
            now = (*columns, *states[run_id])
            if self.checked.get(run_id) != now:  # every change of a run's rows changes this
                run = Run.objects.get(pk=run_id)
                check_run(run)
                check_family(run)
                self.checked[run_id] = now
                kinds = Counter(run.events.values_list("type", flat=True))
                assert kinds["run.suspended"] - kinds["run.resumed"] <= 1

    @invariant()
    def what_is_over_stays_over(self) -> None:
        ended = Run.objects.filter(ended_at__isnull=False)
        for run_id, status in ended.values_list("pk", "status"):
            assert self.ended.setdefault(run_id, status) == status
        finished = ToolCall.objects.filter(status__in=FINISHED_CALLS)
        for call_id, *now in finished.values_list("pk", "status", "result"):
            assert self.results.setdefault(call_id, now) == now
        decided = ApprovalRequest.objects.exclude(decided_at=None)
        for request_id, decision in decided.values_list("pk", "decision"):
            assert self.decisions[request_id] == decision

    @invariant()
    def fences_only_grow(self) -> None:
        for run_id, fence in RunClock.objects.values_list("run_id", "fence"):
            assert fence >= self.fences[run_id]
            self.fences[run_id] = fence

    @invariant()
    def nothing_waits_for_a_person_and_runs(self) -> None:
        waiting = Q(status="pending") & ~Q(run__status="waiting")
        assert not ApprovalRequest.objects.filter(waiting).exists()


class RolledBack(AnyHistory):
    """Runs each history in a transaction that is rolled back."""

    def __init__(self) -> None:
        super().__init__()
        self._atomic = transaction.atomic()
        self._atomic.__enter__()

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self._atomic.__exit__(None, None, None)


def tell_histories(count: int, steps: int) -> None:
    user = make_user()
    make_agent(
        user, interrupt_on={"write_file": True}, max_concurrent_subagents=2, subagent_depth=2
    )
    RolledBack.user = user
    with guarded_transitions():
        run_state_machine_as_test(
            RolledBack,
            settings=settings(
                max_examples=count,
                stateful_step_count=steps,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )


@pytest.mark.django_db(transaction=True)
def test_any_history_leaves_the_rows_in_order() -> None:
    tell_histories(5, 60)


@pytest.mark.storm
@pytest.mark.django_db(transaction=True)
def test_many_long_histories_leave_the_rows_in_order() -> None:
    tell_histories(200, 100)
