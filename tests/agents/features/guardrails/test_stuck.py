"""Runs that repeat themselves are detected, get a note, and end if the agent is set to it."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.engine.crash_points import CrashPoint
from agents.engine.storage.journal import Call
from agents.events.append import dump
from agents.features.guardrails.stuck import Progress, Turn, find_stuck, turn_of, window
from agents.models import Message, Run
from tests.agents.engine.test_model_faults import served
from tests.agents.engine.test_recovery import crash_once
from tests.support.messages_prefix import assert_prefix_stable
from tests.support.messages_script import ToolUse
from tests.support.messages_script import Turn as Reply
from tests.support.runs import (
    drive_to_end,
    events,
    make_agent,
    make_user,
    script_file,
    start_run,
)

LOOK = {"tool_calls": [{"name": "ls", "input": {"path": "/"}}]}
MISSING = {"tool_calls": [{"name": "read_file", "input": {"path": "/none"}}]}
DONE = {"text": "Done."}


def turn_named(name: str) -> Turn:
    """Return a turn named by a letter.

    A capital letter is a failed call, always with the same error.
    """
    return Turn(ord(name), frozenset({1} if name.isupper() else ()), (name,))


def found(names: str, repeats: int = 3) -> list[tuple[int, str, int, int]]:
    """Return (turn, kind, count, strike) of all findings in turns named by letters."""
    turns: list[Turn] = []
    results = []
    for number, name in enumerate(names, start=1):
        turns.append(turn_named(name))
        if (stuck := find_stuck(turns[-window(repeats) :], repeats)) is not None:
            results.append((number, stuck.kind, stuck.count, stuck.strike))
    return results


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("aa", []),
        ("aaa", [(3, "same_call", 3, 1)]),
        ("aabaab", []),
        ("aaaaaaaaaaaaaaa", [(3, "same_call", 3, 1), (6, "same_call", 6, 2)]),
        ("aaabaaa", [(3, "same_call", 3, 1), (7, "same_call", 3, 1)]),
        ("ababa", []),
        ("ababab", [(6, "ping_pong", 3, 1)]),
        ("ababacabab", []),
        ("cababab", [(7, "ping_pong", 3, 1)]),
        ("ab" * 12, [(6, "ping_pong", 3, 1), (12, "ping_pong", 6, 2)]),
        ("abcabcabc", []),
        ("ABC", [(3, "same_error", 3, 1)]),
        ("AbCDE", [(5, "same_error", 3, 1)]),
        ("ABBAAB", [(3, "same_error", 3, 1), (6, "same_error", 6, 2)]),
    ],
)
def test_repetitions_are_found_in_consecutive_turns(
    names: str, expected: list[tuple[int, str, int, int]]
) -> None:
    assert found(names) == expected


def test_the_window_gives_the_same_result_as_the_whole_run() -> None:
    """A driver with the whole history and a new one with a window find the same repetition."""
    for names in ("ab" * 20, "a" * 30, "aabbab" * 5, "Ab" * 15, "A" * 20, "abababa" * 4):
        for repeats in (2, 3, 4):
            turns = [
                Turn(ord(name), frozenset({1} if name.isupper() else ()), ()) for name in names
            ]
            for end in range(1, len(turns) + 1):
                whole = find_stuck(turns[:end], repeats)
                assert find_stuck(turns[max(0, end - window(repeats)) : end], repeats) == whole


def a_call(call_id: str = "a", given: Any = None, result: str = '"x"', tool: str = "ls") -> Call:
    return Call(
        1, 0, call_id, tool, dump(given or {"a": 1, "b": 2}), "read", "succeeded", result=result
    )


def test_calls_are_equal_regardless_of_ids_and_the_order_of_keys() -> None:
    one = turn_of([a_call("a", {"a": 1, "b": 2}, '"kept in /results/a.txt"')])
    other = turn_of([a_call("b", {"b": 2, "a": 1}, '"kept in /results/b.txt"')])
    assert one == other
    assert turn_of([a_call(given={"a": 2})]) != turn_of([a_call(given={"a": 1})])
    assert turn_of([a_call(result='"y"')]) != turn_of([a_call()])
    assert turn_of([a_call(tool="read_todos")]) is None
    assert turn_of([a_call(), a_call(tool="wait_subagent")]) == turn_of([a_call()])


def play(tmp_path: Path, turns: Sequence[dict[str, Any]], **fields: Any) -> Run:
    user = make_user()
    make_agent(user, model=script_file(tmp_path, list(turns)), **fields)
    return start_run(user)


def notes(run: Run) -> list[tuple[int, str]]:
    rows = Message.objects.filter(run=run, role="user", turn__gt=0).order_by("turn")
    return [(row.turn, row.text) for row in rows]


def told(run: Run) -> list[tuple[str, int, str]]:
    found = events(run, "guard.stuck")
    return [(event["kind"], event["count"], event["action"]) for event in found]


@pytest.mark.django_db(transaction=True)
def test_the_model_gets_two_notes_and_the_run_continues(tmp_path: Path) -> None:
    run = drive_to_end(play(tmp_path, [LOOK] * 9 + [DONE]))
    assert run.status == "completed"
    assert [turn for turn, _ in notes(run)] == [3, 6]
    assert "same call with the same result 3 times in a row (ls)" in notes(run)[0][1]
    told = [
        (event["kind"], event["count"], event["action"]) for event in events(run, "guard.stuck")
    ]
    assert told == [("same_call", 3, "note"), ("same_call", 6, "note")]


@pytest.mark.django_db(transaction=True)
def test_an_agent_may_end_its_runs_when_telling_did_not_help(tmp_path: Path) -> None:
    run = drive_to_end(play(tmp_path, [MISSING] * 9 + [DONE], on_stuck="end"))
    assert (run.status, run.error_code) == ("failed", "stuck")
    assert "calls with the same error 6 times in a row (read_file)" in run.error_message
    assert run.clock.turn == 6
    told = [
        (event["kind"], event["count"], event["action"]) for event in events(run, "guard.stuck")
    ]
    assert told == [("same_error", 3, "note"), ("same_error", 6, "end")]


@pytest.mark.django_db(transaction=True)
def test_repeated_calls_of_polling_tools_are_not_stuck(tmp_path: Path) -> None:
    poll = {"tool_calls": [{"name": "read_todos", "input": {}}]}
    run = drive_to_end(play(tmp_path, [poll] * 8 + [DONE], on_stuck="end"))
    assert run.status == "completed"
    assert events(run, "guard.stuck") == []


@pytest.mark.django_db(transaction=True)
def test_without_the_setting_runs_are_not_checked(tmp_path: Path, settings: Any) -> None:
    settings.VEL = {**settings.VEL, "STUCK_REPEATS": 0}
    run = drive_to_end(play(tmp_path, [LOOK] * 8 + [{}], on_stuck="end"))
    assert run.status == "completed"
    assert notes(run) == []


@pytest.mark.django_db(transaction=True)
def test_an_empty_reply_is_asked_about_some_times() -> None:
    """Also for a reply with only thinking blocks, which the API does not accept back."""
    user = make_user()
    look = Reply(tool_uses=[ToolUse("ls", {"path": "/"})])
    silent = [Reply(), Reply(thinking="Hm.")]
    with served([look, *silent, Reply(text="Done.")]) as server:
        make_agent(user, provider="anthropic", model="claude-sonnet-5-5")
        run = drive_to_end(start_run(user))
    assert run.status == "completed", run.error_message
    assert server.violations == []
    assert_prefix_stable(server.requests)
    assert [turn for turn, text in notes(run) if "Your reply was empty" in text] == [2, 3]
    assert Message.objects.filter(run=run, role="assistant").last().text == "Done."  # type: ignore[union-attr]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("policy", "status"), [("note", "completed"), ("end", "failed")])
def test_a_model_that_stays_silent_is_given_up(tmp_path: Path, policy: str, status: str) -> None:
    run = drive_to_end(play(tmp_path, [{}] * 9, on_stuck=policy))
    assert run.status == status
    assert run.error_code == ("stuck" if policy == "end" else "")
    assert run.clock.turn == 3


@pytest.mark.django_db(transaction=True)
def test_the_note_stays_at_its_place_in_later_requests() -> None:
    """Invariant 5, over the wire."""
    look = Reply(tool_uses=[ToolUse("ls", {"path": "/"})])
    user = make_user()
    with served([look] * 4 + [Reply(text="Done.")]) as server:
        make_agent(user, provider="anthropic", model="claude-sonnet-5-5")
        run = drive_to_end(start_run(user))
        assert run.status == "completed", run.error_message
    assert server.violations == []
    assert_prefix_stable(server.requests)
    told = [
        block["text"]
        for block in server.requests[3].messages[-1]["content"]
        if block["type"] == "text"
    ]
    assert len(told) == 1
    assert "3 times in a row" in told[0]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("point", "after"),
    [
        (CrashPoint.REPLY_WRITTEN, 2),
        (CrashPoint.TOOL_DONE, 2),
        (CrashPoint.RESULTS_WRITTEN, 2),
        (CrashPoint.REPLIED, 3),  # right after the note
        (CrashPoint.RESULTS_WRITTEN, 4),
    ],
)
def test_another_driver_records_the_same_finding_once(
    tmp_path: Path, point: CrashPoint, after: int
) -> None:
    run = play(tmp_path, [LOOK] * 7 + [DONE])
    crash_once(run, point, after=after)
    run = drive_to_end(run)
    assert run.status == "completed"
    assert [turn for turn, _ in notes(run)] == [3, 6]
    assert len(events(run, "guard.stuck")) == 2


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_another_driver_reads_whole_turns_however_many_calls_they_have(tmp_path: Path) -> None:
    many = {"tool_calls": LOOK["tool_calls"] * 40}
    run = play(tmp_path, [many] * 7 + [DONE])
    crash_once(run, CrashPoint.REPLY_WRITTEN, after=5)
    run = drive_to_end(run)
    assert run.status == "completed"
    assert [turn for turn, _ in notes(run)] == [3, 6]
    assert told(run) == [("same_call", 3, "note"), ("same_call", 6, "note")]


@pytest.mark.django_db(transaction=True)
def test_the_next_run_of_the_thread_restarts_the_count(tmp_path: Path) -> None:
    run = drive_to_end(play(tmp_path, [LOOK] * 2 + [DONE] + [LOOK] * 2 + [DONE]))
    later = drive_to_end(start_run(run.owner, "Again", thread=run.thread_id))
    assert later.status == "completed"
    assert notes(run) == notes(later) == []


def test_finding_nothing_costs_microseconds() -> None:
    progress = Progress()
    calls = [
        replace(
            a_call(f"call_{number}", {"path": f"/{number}"}, json.dumps("x" * 2000)), turn=number
        )
        for number in range(1, 1001)
    ]
    start = time.process_time()
    for call in calls:
        assert progress.add([call])
        find_stuck(progress.turns, 3)
    assert (time.process_time() - start) / 1000 < 0.0005  # measured: 0.00002
