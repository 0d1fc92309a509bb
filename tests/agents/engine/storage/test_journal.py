"""Invariants 2, 6 and 8: the journal is written once, in order, all or nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext

from agents.engine.errors import FenceLost
from agents.engine.storage.journal import (
    Outcome,
    Writer,
    write_events,
    write_results,
    write_started,
)
from agents.events.append import append_events
from agents.events.catalogue.approvals import ApprovalExpired
from agents.events.catalogue.messages import TextDelta
from agents.events.catalogue.tool_calls import ToolCompleted, ToolStarted
from agents.models import Message, Run, RunClock, RunEvent, StateFile, ToolCall
from tests.agents.engine.by_hand import (
    a_call,
    at_once,
    claimed,
    committed,
    new_run,
    reply_with,
    success,
    with_calls,
)

pytestmark = pytest.mark.django_db(transaction=True)


def journal(run: Run) -> list[tuple[str, str, int, str]]:
    calls = ToolCall.objects.filter(run=run)
    return [(call.call_id, call.status, call.attempt, call.result) for call in calls]


def log(run: Run) -> list[tuple[int, str]]:
    return list(RunEvent.objects.filter(run=run).values_list("seq", "type"))


def everything(run: Run) -> object:
    clock = RunClock.objects.filter(run=run).values().get()
    return clock, journal(run), log(run), Message.objects.filter(run=run).count()


# Journal before effect -------------------------------------------------------------------------


def test_a_reply_is_stored_with_its_calls_its_events_and_its_totals() -> None:
    _, run = new_run()
    writer = claimed(run)
    before = RunClock.objects.get(run=run)
    calls = [a_call(0), a_call(1, status="started", effect="read")]
    committed(reply_with, writer, calls)
    clock = RunClock.objects.get(run=run)
    assert [call[:3] for call in journal(run)] == [
        ("call_1_0", "pending", 0),
        ("call_1_1", "started", 1),
    ]
    assert (clock.turn, clock.seq - before.seq) == (before.turn + 1, 2)
    assert (clock.input_tokens, clock.output_tokens) == (10, 2)
    assert (clock.cost_microusd, clock.active_ms) == (7, 3)
    started = {call.position: call.started_at for call in ToolCall.objects.filter(run=run)}
    assert started[0] is None
    assert started[1] is not None


def test_a_reply_that_cannot_be_stored_whole_is_not_stored_at_all() -> None:
    _, run = new_run()
    writer = claimed(run)
    before = everything(run)
    twins = [a_call(0), a_call(0)]
    with pytest.raises(DatabaseError):
        committed(reply_with, writer, twins)
    assert everything(run) == before


def test_a_turn_is_answered_once() -> None:
    _, run = new_run()
    writer = with_calls(run, a_call(0))
    before = everything(run)
    with pytest.raises(DatabaseError):
        committed(reply_with, writer, [])
    assert everything(run) == before


@pytest.mark.both_databases
def test_a_call_is_started_once() -> None:
    _, run = new_run()
    writer = with_calls(run, a_call(0))
    committed(write_started, writer, a_call(0), [])
    before = everything(run)
    with pytest.raises(FenceLost):
        committed(write_started, writer, a_call(0), [])
    assert everything(run) == before


@pytest.mark.parametrize("effect", ["read", "write", "external"])
def test_only_calls_that_change_something_change_the_workspace_generation(effect: str) -> None:
    _, run = new_run()
    before = run.thread.workspace_generation
    call = a_call(0, effect=effect)
    committed(write_started, with_calls(run, call), call, [])
    run.thread.refresh_from_db()
    assert run.thread.workspace_generation == before + (effect != "read")


def test_a_result_is_written_once() -> None:
    _, run = new_run()
    call = a_call(0, status="started", effect="read")
    writer = with_calls(run, call)
    committed(write_results, writer, [success(call)])
    before = everything(run)
    late = Outcome(call, "failed", json.dumps("another"), is_error=True)
    with pytest.raises(FenceLost):
        committed(write_results, writer, [late])
    assert everything(run) == before


def test_results_are_stored_together_or_not_at_all() -> None:
    _, run = new_run()
    calls = [a_call(position, status="started", effect="read") for position in range(3)]
    writer = with_calls(run, *calls)
    committed(write_results, writer, [success(calls[1])])
    before = everything(run)
    with pytest.raises(FenceLost):
        committed(write_results, writer, [success(call) for call in calls])
    assert everything(run) == before


@pytest.mark.both_databases
def test_the_commit_of_a_tool_is_atomic_with_its_result() -> None:
    _, run = new_run()
    calls = [a_call(position, status="started", effect="read") for position in range(2)]
    writer = with_calls(run, *calls)

    def store(path: str) -> Callable[[], None]:
        return lambda: StateFile.objects.create(thread=run.thread, path=path, content=b"") and None

    good, bad = success(calls[0]), success(calls[1])
    good.commit, bad.commit = store("/a"), store("/b")
    committed(write_results, writer, [good])
    with pytest.raises(FenceLost):
        committed(write_results, writer, [bad, good])
    assert list(StateFile.objects.values_list("path", flat=True)) == ["/a"]
    assert [status for _, status, _, _ in journal(run)] == ["succeeded", "started"]


def test_the_journal_keeps_any_text() -> None:
    _, run = new_run()
    call = a_call(0, status="started", effect="read")
    writer = with_calls(run, call)
    text = "a\\0b 'quoted' %s \u202e \U0001f600 \ud83d"
    outcome = Outcome(call, "succeeded", json.dumps(text))
    outcome.events.append(ToolCompleted(call_id=call.call_id, output=text))
    committed(write_results, writer, [outcome])
    assert json.loads(ToolCall.objects.get(run=run).result) == text
    shown = json.loads(RunEvent.objects.filter(run=run).latest("seq").data)
    assert shown["output"] == text


# The event log ---------------------------------------------------------------------------------

DELTA = TextDelta(part_id="1.0", text="word ")
EXPIRED = ApprovalExpired(approval_id="a1")


@pytest.mark.both_databases
def test_events_of_drivers_and_of_others_share_one_sequence() -> None:
    _, run = new_run()
    writer = claimed(run)

    def driver() -> None:
        for _ in range(30):
            committed(write_events, writer, [DELTA, DELTA])

    def person() -> None:
        for _ in range(30):
            committed(append_events, run.id, [EXPIRED])

    assert at_once(driver, person, person) == [None] * 3
    seqs = [seq for seq, _ in log(run)]
    assert seqs == list(range(1, len(seqs) + 1))
    assert RunClock.objects.get(run=run).seq == len(seqs) == 1 + 30 * 4


@pytest.mark.slow
@pytest.mark.both_databases
def test_events_become_visible_in_order() -> None:
    _, run = new_run()
    writer = claimed(run)
    done: list[bool] = []
    looks: list[list[int]] = []

    def write(author: Callable[[], object]) -> None:
        for _ in range(40):
            author()
        done.append(True)

    def watch() -> None:
        while len(done) < 2:
            looks.append([seq for seq, _ in log(run)])

    errors = at_once(
        lambda: write(lambda: committed(write_events, writer, [DELTA])),
        lambda: write(lambda: committed(append_events, run.id, [EXPIRED])),
        watch,
    )
    assert errors == [None] * 3
    for seqs in looks:
        assert seqs == list(range(1, len(seqs) + 1)), "an event was missing when a later was there"


def test_an_event_log_belongs_to_one_run() -> None:
    _, one = new_run()
    _, other = new_run()
    writer = claimed(one)
    committed(write_events, writer, [DELTA] * 3)
    committed(write_events, claimed(other), [DELTA])
    assert [seq for seq, _ in log(one)] == [1, 2, 3, 4]
    assert [seq for seq, _ in log(other)] == [1, 2]


# Cost ------------------------------------------------------------------------------------------


def one_turn(writer: Writer, number: int) -> None:
    read, write = a_call(0, turn=number, status="started", effect="read"), a_call(1, turn=number)
    committed(reply_with, writer, [read, write], number)
    committed(write_started, writer, write, [ToolStarted(call_id=write.call_id, attempt=1)])
    started = replace(write, status="started")
    committed(write_results, writer, [success(read), success(started)])


def test_a_late_turn_needs_no_more_statements_than_an_early_one() -> None:
    _, run = new_run()
    writer = claimed(run)
    counts = []
    for number in range(1, 31):
        with CaptureQueriesContext(connection) as queries:
            one_turn(writer, number)
        counts.append(len(queries))
    assert counts[0] == counts[-1]
    assert max(counts) <= 25
    assert RunClock.objects.get(run=run).turn == 30
