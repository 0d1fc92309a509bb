"""Subagents in the background: waiting, cancelling, and the end of the parent."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

from agents.engine.storage.finish import cancel_driven_run, fail_run
from agents.models import POOL, Run, ToolCall
from agents.services.errors import Conflict
from agents.services.runs.control import cancel_run, resume_orphaned_family, resume_run
from agents.states import ENDED_RUNS
from tests.agents.engine.by_hand import claim, committed, let_lease_expire
from tests.agents.engine.invariants import check_family, check_run
from tests.agents.engine.test_family_locking import driven_family, parked_family
from tests.agents.engine.test_model_faults import served
from tests.chaos.family_story import first_message
from tests.support.messages_script import Request, ToolUse, Turn, http_error
from tests.support.runs import (
    drive_to_end,
    events,
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
]


SUBAGENT_ID = re.compile(rb'id[\\]*": ?[\\]*"([0-9a-z]{26})')


@dataclass
class Story:
    """The turns of a parent, with a child that works until `children_may_end`.

    In a parent's inputs `$0` is the id of the first subagent that it has started.
    """

    parent: list[Turn]
    children_may_end: bool = True
    end_before_turn: int = 0
    """The children may end from this turn of the parent on."""
    asked: Counter[int] = field(default_factory=Counter)

    def __call__(self, request: Request) -> Turn:
        if "Child" in first_message(request):
            return self._child(request.replies)
        self.asked[request.replies] += 1
        if self.end_before_turn and request.replies >= self.end_before_turn:
            self.children_may_end = True
        turn = self.parent[min(request.replies, len(self.parent) - 1)]
        uses = [ToolUse(use.name, _filled(use.input, request)) for use in turn.tool_uses]
        return Turn(text=turn.text, tool_uses=uses, fault=turn.fault)

    def _child(self, replies: int) -> Turn:
        if self.children_may_end:
            return Turn(text="I have it.")
        todo = {"todos": [{"content": f"Look again ({replies})", "status": "in_progress"}]}
        return Turn(tool_uses=[ToolUse("write_todos", todo)], chunk_delay=0.02)


def _filled(given: Any, request: Request) -> Any:
    text = json.dumps(given)
    if "$0" in text:
        found = SUBAGENT_ID.search(request.body)
        assert found is not None
        text = text.replace("$0", found[1].decode())
    return json.loads(text)


def spawns(count: int) -> Turn:
    tasks = [{"task": f"Child {number}"} for number in range(count)]
    return Turn(tool_uses=[ToolUse("spawn_parallel", {"tasks": tasks})])


def waits(timeout: float) -> Turn:
    return Turn(tool_uses=[ToolUse("wait_subagent", {"id": "$0", "timeout": timeout})])


ANSWER = Turn(text="That is all.")


def a_parent(**fields: Any) -> Run:
    user = make_user()
    values = {"max_concurrent_subagents": 2, "background_subagents": True, **fields}
    make_agent(user, provider="anthropic", model="claude-sonnet-5-5", **values)
    return start_run(user, "Be a parent.")


def result_of(run: Run, turn: int) -> Any:
    content = ToolCall.objects.get(run=run, turn=turn).result_content
    return json.loads(content) if isinstance(content, str) else content


def all_ended() -> bool:
    return not Run.objects.exclude(status__in=ENDED_RUNS).exists()


def check_everything() -> None:
    for run in Run.objects.all():
        check_run(run)
        check_family(run)


def test_a_wait_ends_with_its_time_and_another_gets_the_answer() -> None:
    story = Story([spawns(1), waits(0.3), waits(60), ANSWER], False, end_before_turn=2)
    with served(story):
        run = drive_to_end(a_parent())
    assert run.status == "completed", run.error_message
    early, late = result_of(run, 2), result_of(run, 3)
    assert early["status"] in ("queued", "running")
    assert "result" not in early
    assert (late["status"], late["result"]) == ("completed", "I have it.")
    assert events(run, "run.resumed")[0]["reason"] == "the time is over"
    assert Counter(story.asked.values()) == {1: 4}, "the model was asked once for each turn"
    check_everything()


@pytest.mark.slow
@pytest.mark.both_databases
def test_the_next_worker_answers_a_wait_that_ended_without_a_worker() -> None:
    story = Story([spawns(1), waits(1), ANSWER], False)
    with served(story):
        run = a_parent()
        with running_worker() as running:
            running.submit(run.pk)
            # Not the status: on a busy machine the second may have passed before the check.
            wait_until(lambda: events(run, "run.suspended"), "the wait of the parent")
        with running_worker():
            wait_for_status(run, "completed", "failed")
            wait_until(all_ended, "the end of its child")
    assert run.status == "completed", run.error_message
    assert result_of(run, 2)["status"] in ("queued", "running")


@pytest.mark.slow
@pytest.mark.both_databases
def test_a_subagent_is_cancelled_by_its_parent() -> None:
    cancels = Turn(tool_uses=[ToolUse("cancel_subagent", {"id": "$0"})])
    story = Story([spawns(1), cancels, waits(60), ANSWER], False)
    with served(story):
        run = drive_to_end(a_parent())
    assert run.status == "completed", run.error_message
    assert result_of(run, 2)["status"] == "cancelled"
    late = result_of(run, 3)
    assert late["status"] == "cancelled"
    assert "its parent" in late["error"]
    check_everything()


@pytest.mark.slow
def test_a_parent_that_fails_leaves_no_subagent_behind() -> None:
    """Six subagents: two are driven and four are queued."""
    story = Story([spawns(6), ANSWER], False)
    with served(story), running_worker() as running:
        run = a_parent(max_turns=1)
        running.submit(run.pk)
        wait_for_status(run, "failed")
        assert run.error_code == "limit_turns"
        wait_until(all_ended, "the end of its children")
    children = Run.objects.filter(parent=run)
    assert set(children.values_list("status", flat=True)) == {"cancelled"}
    assert children.filter(started_at=None).count() >= 4
    check_everything()


@pytest.mark.slow_cases
@pytest.mark.parametrize("turns", [[spawns(3), waits(60), ANSWER], [spawns(3), ANSWER]])
def test_a_parent_that_is_cancelled_takes_its_subagents_with_it(turns: list[Turn]) -> None:
    """The parent waits for its subagents in one case, and is driven in the other."""
    busy = Turn(tool_uses=[ToolUse("write_todos", {"todos": []})])
    story = Story(turns if len(turns) == 3 else [spawns(3), *[busy] * 1000], False)
    with served(story), running_worker() as running:
        run = a_parent(max_turns=2000)
        running.submit(run.pk)
        wait_until(lambda: Run.objects.filter(parent=run, status="running").count() == 2)
        if len(turns) == 3:
            wait_for_status(run, "waiting")
        cancel_run(run.pk, by="ada")
        wait_until(all_ended, "the end of the family")
    assert set(Run.objects.values_list("status", flat=True)) == {"cancelled"}
    check_everything()


@pytest.mark.slow
def test_a_stopping_process_hands_back_the_family_and_another_continues() -> None:
    story = Story([spawns(3), waits(60), ANSWER], False)
    with served(story):
        run = a_parent()
        with running_worker() as running:
            running.submit(run.pk)
            wait_for_status(run, "waiting")
            wait_until(lambda: Run.objects.filter(parent=run, status="running").count() == 2)
        assert not Run.objects.filter(status="running").exists()
        story.children_may_end = True
        run = drive_to_end(run)
    assert run.status == "completed", run.error_message
    assert result_of(run, 2)["result"] == "I have it."
    assert len(events(run, "run.resumed")) == 1
    check_everything()


@pytest.mark.slow
@pytest.mark.both_databases
def test_a_command_that_ends_its_run_ends_the_whole_family() -> None:
    """Only the process of the command can drive them."""
    story = Story([spawns(5), ANSWER], False)
    with served(story):
        run = a_parent()
        Run.objects.update(executor="here:1:one")
        run.refresh_from_db()
        run = drive_to_end(run)  # the host stops when the run ends
    assert run.status == "completed"
    assert set(run.children.values_list("executor", flat=True)) == {"here:1:one"}
    assert set(run.children.values_list("status", flat=True)) == {"cancelled"}
    check_everything()


# A command that was killed ------------------------------------------------------------------------

GONE = "elsewhere:1:gone"


@pytest.mark.slow
@pytest.mark.both_databases
def test_the_family_of_a_killed_command_is_taken_over_with_the_parent_that_waits_for_it() -> None:
    family = parked_family()
    Run.objects.update(executor=GONE)
    with pytest.raises(Conflict) as refused:
        resume_orphaned_family(family.parent.pk, executor=POOL)
    assert refused.value.code == "driven"
    for child in family.children[:2]:
        let_lease_expire(child)
    resume_orphaned_family(family.parent.pk, executor=POOL)
    assert set(Run.objects.values_list("executor", flat=True)) == {POOL}
    for child in family.children[:2]:
        assert claim(child) is not None
    check_everything()


@pytest.mark.slow
@pytest.mark.both_databases
def test_a_run_that_is_resumed_brings_its_subagents() -> None:
    family = driven_family()
    Run.objects.update(executor=GONE)
    for run in (family.parent, family.children[0]):
        let_lease_expire(run)
    resume_run(family.parent.pk)
    assert set(Run.objects.values_list("executor", flat=True)) == {POOL}
    assert claim(family.children[0]) is not None
    check_everything()


@pytest.mark.both_databases
def test_a_killed_commands_family_is_cancelled_for_good() -> None:
    """A child with a requested cancellation and a dead driver is ended by the next process."""
    family = parked_family()
    Run.objects.update(executor=GONE)
    cancel_run(family.parent.pk, by="ada")
    child = family.children[0]
    child.refresh_from_db()
    assert child.status == "running"
    for row in family.children[:2]:
        let_lease_expire(row)
    with running_worker():
        wait_until(all_ended, "the end of the family")
    check_everything()


# A parent that failed -----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_resumed_parent_delegates_again() -> None:
    broken = Turn(fault=http_error(400, "not today"))
    story = Story([spawns(2), broken, ANSWER], False)
    with served(story), running_worker() as running:
        run = a_parent()
        running.submit(run.pk)
        wait_for_status(run, "failed")
        wait_until(all_ended, "the end of its children")
        old = set(run.children.values_list("pk", flat=True))
        story.parent[1:] = [spawns(1), ANSWER]
        resume_run(run.pk)
        running.submit(run.pk)
        wait_for_status(run, "completed", "failed")
        assert run.status == "completed", run.error_message
        wait_until(all_ended, "the end of its children")
    assert len(old) == 2
    assert run.children.count() == 3
    assert set(run.children.filter(pk__in=old).values_list("status", flat=True)) == {"cancelled"}


@pytest.mark.slow
@pytest.mark.both_databases
@pytest.mark.parametrize("ends_first", [True, False])
def test_a_parent_reports_the_end_of_a_driven_subagent_once(ends_first: bool) -> None:
    family = driven_family()
    committed(fail_run, family.writers[family.parent.pk], "code", "message", 1)
    child = family.children[0]
    told = events(family.parent, "subagent.finished")
    assert [row["child_run_id"] for row in told][-1] == child.pk
    if ends_first:
        committed(cancel_driven_run, family.writers[child.pk], 1)
        resume_run(family.parent.pk)
    else:
        resume_run(family.parent.pk)
        committed(cancel_driven_run, family.writers[child.pk], 1)
    assert events(family.parent, "subagent.finished") == told
    assert len(told) == len({row["child_run_id"] for row in told}) == 3
    check_everything()
    check_everything()


@pytest.mark.both_databases
def test_a_subagent_is_not_resumed_alone() -> None:
    family = parked_family()
    with pytest.raises(Conflict):
        resume_run(family.children[0].pk)
    with pytest.raises(Conflict):
        resume_run(family.parent.pk)
    committed(check_run, family.parent)
