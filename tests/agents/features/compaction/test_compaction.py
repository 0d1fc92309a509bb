"""Conversations longer than the model's window are compacted, and the runs continue."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.db.models import F
from django.test import override_settings

from agents.engine import crash_points
from agents.engine.crash_points import CrashPoint
from agents.engine.prompt.history import limit_at, thread_turns
from agents.features.budgets.models import Allowance
from agents.models import Compaction, Epoch, Message, Run, RunClock, StateFile, ToolCall
from agents.selectors.transcript import search_thread
from agents.services.runs.control import resume_run
from tests.agents.engine.test_recovery import crash_once
from tests.support import runs
from tests.support.hang import HANG
from tests.support.long_results import long_results
from tests.support.messages_api import MessagesServer
from tests.support.messages_prefix import assert_prefix_stable
from tests.support.messages_script import Fault, Request, ToolUse, Turn
from tests.support.runs import (
    drive_to_end,
    events,
    make_agent,
    make_user,
    running_worker,
    start_run,
    wait_until,
)

pytestmark = pytest.mark.django_db(transaction=True)

WINDOW = 20_000
"""With results of 4,000 bytes, the conversation is clipped at turn 11 and summarised at turn 18."""
SUMMARY = "The notes: seven beans were counted, the plan is to count on."


def is_summary(request: Request) -> bool:
    return "You keep the notes" in json.dumps(request.json.get("system", ""))


def fetching(size: int, mark: str = "m", **given: Any) -> Turn:
    return Turn(
        text="I fetch.", tool_uses=[ToolUse("fetch", {"size": size, "mark": mark, **given})]
    )


@contextmanager
def served(
    script: Any, *, window: int = WINDOW, told: bool = True, **vel: Any
) -> Iterator[MessagesServer]:
    """Serve a model with a window of `window` tokens. The models endpoint reports it if `told`."""
    models = {"small": {"max_input_tokens": window, "max_tokens": 4_000}} if told else {}
    with MessagesServer(script, context_window=window, models=models) as server, long_results():
        values = {
            **settings.VEL,
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "test-key",
            "RETRY_BASE_SECONDS": 0.01,
            **vel,
        }
        with override_settings(VEL=values):
            yield server


def conversation(turns: list[Turn], summary: Turn | None = None) -> Any:
    """Return a script that plays the turns in order; requests for a summary get `summary`."""
    played = iter(turns)

    def script(request: Request) -> Turn:
        if is_summary(request):
            return summary or Turn(text=SUMMARY)
        return next(played)

    return script


def a_run(message: str = "Count the beans, and call nothing else a bean.", **fields: Any) -> Run:
    user = make_user()
    make_agent(user, provider="anthropic", model="small", **fields)
    return start_run(user, message)


def main_requests(server: MessagesServer) -> list[Request]:
    return [request for request in server.requests if not is_summary(request)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "count", [16, pytest.param(500, marks=[pytest.mark.storm, pytest.mark.timeout(900)])]
)
def test_a_conversation_of_long_results_in_a_small_window_never_fails(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "HANG", HANG + count)
    turns = [fetching(1_000_000, f"m{number}") for number in range(count)]
    with served(conversation([*turns, Turn(text="Done.")]), RESULT_BYTES=1_000_000) as server:
        run = drive_to_end(a_run(max_turns=count + 1))
    assert run.status == "completed", run.error_message
    assert server.violations == []
    assert ToolCall.objects.filter(run=run, status="succeeded").count() == count
    compacted = events(run, "context.compacted")
    assert compacted
    assert all(event["after"] < event["before"] for event in compacted)
    assert Epoch.objects.count() == 1 + len(compacted)


def test_the_model_gets_the_summary_and_the_latest_turns() -> None:
    todos = [
        {"content": "count the black beans", "status": "in_progress"},
        {"content": "open the sack", "status": "completed"},
    ]
    turns = [
        Turn(tool_uses=[ToolUse("write_todos", {"todos": todos})]),
        Turn(tool_uses=[ToolUse("write_file", {"path": "/beans.txt", "content": "7"})]),
        *(fetching(4_000, f"m{number}") for number in range(20)),
        Turn(text="Done."),
    ]
    with served(conversation(turns)) as server:
        run = drive_to_end(a_run())
    assert run.status == "completed", run.error_message
    assert server.violations == []
    row = Compaction.objects.exclude(opening="").order_by("number").last()
    assert row is not None
    assert row.by == "model"
    assert "Count the beans, and call nothing else a bean." in row.opening
    assert SUMMARY in row.opening
    assert "- [~] count the black beans" in row.opening
    assert "open the sack" not in row.opening
    assert "- /beans.txt" in row.opening
    last = main_requests(server)[-1]
    assert last.messages[0]["content"][0]["text"] == row.opening
    names = [tool["name"] for tool in last.json["tools"]]
    assert "search_transcript" in names
    assert "search_transcript" not in json.dumps(main_requests(server)[0].json)
    event = events(run, "context.compacted")[-1]
    assert set(event) == {"seq", "type", "before", "after", "summary_ref", "by", "clipped"}
    # The transcript is complete.
    assert Message.objects.filter(run=run, role="assistant").count() == len(turns)


@pytest.mark.slow
def test_within_an_epoch_each_request_starts_with_the_previous_one() -> None:
    turns = [fetching(4_000, f"m{number}") for number in range(20)]
    with served(conversation([*turns, Turn(text="Done.")])) as server:
        run = drive_to_end(a_run())
    assert run.status == "completed", run.error_message
    requests = main_requests(server)
    by_prompt: dict[str, list[Request]] = {}
    for request in requests:
        by_prompt.setdefault(json.dumps(request.messages[0]), []).append(request)
    # A clipped epoch keeps the first message.
    stretches: list[list[Request]] = [[requests[0]]]
    for before, request in pairwise(requests):
        grown = len(request.body) > len(before.body)
        if grown:
            stretches[-1].append(request)
        else:
            stretches.append([request])
    assert len(stretches) == Epoch.objects.count()
    for stretch in stretches:
        if len(stretch) > 1:
            assert_prefix_stable(stretch)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "after", "count"),
    [
        (CrashPoint.SUMMARISED, 0, 20),
        (CrashPoint.SUMMARISED, 1, 37),
        (CrashPoint.COMPACTED, 0, 13),
        (CrashPoint.COMPACTED, 1, 20),
    ],
)
def test_a_crash_around_a_compaction(point: CrashPoint, after: int, count: int) -> None:
    turns = [fetching(4_000, f"m{number}") for number in range(count)]
    with served(conversation([*turns, Turn(text="Done.")])) as server:
        run = a_run()
        crash_once(run, point, after=after)
        rows = Compaction.objects.count()
        run = drive_to_end(run)
    assert run.status == "completed", run.error_message
    assert server.violations == []
    assert Compaction.objects.count() > rows or point is CrashPoint.COMPACTED
    assert ToolCall.objects.filter(run=run, status="succeeded").count() == count
    assert len(events(run, "context.compacted")) == Compaction.objects.count()
    assert Epoch.objects.count() == 1 + Compaction.objects.count()


@pytest.mark.slow
def test_a_reload_sends_the_model_the_same_bytes() -> None:
    """A new driver sends the same request as the previous driver."""
    turns = [fetching(4_000, f"m{number}") for number in range(20)]
    with served(conversation([*turns, Turn(text="Done."), Turn(text="Again.")])) as server:
        run = a_run()
        crash_once(run, CrashPoint.RESULTS_WRITTEN, after=18)
        sent = main_requests(server)[-1]
        run = drive_to_end(run)
        again = drive_to_end(start_run(run.owner, "And again?", thread=run.thread_id))
    assert again.status == "completed", again.error_message
    assert server.violations == []
    assert_prefix_stable([sent, main_requests(server)[-3]])
    assert_prefix_stable(main_requests(server)[-2:])


def test_a_compaction_limits_only_the_turns_before_it() -> None:
    compaction = Compaction(
        clip_run=1, clip_turn=2, clip_bytes=10, until_run=1, until_turn=5, kept_bytes=20
    )
    limits = [limit_at(compaction, (1, turn)) for turn in (1, 2, 4, 5, 6)]
    assert limits == [10, 20, 20, None, None]


@pytest.mark.slow
@pytest.mark.parametrize("window", [20_000, 12_000])
def test_an_unknown_window_is_learned_from_the_error(window: int) -> None:
    turns = [fetching(40_000, f"m{number}") for number in range(12)]
    script = conversation([*turns, Turn(text="Done.")])
    with served(script, window=window, told=False, EVICT_BYTES=30_000) as server:
        run = drive_to_end(a_run())
    assert run.status == "completed", run.error_message
    assert server.violations
    assert all("prompt is too long" in text or "exceed" in text for text in server.violations)
    # A known window is respected.
    assert len(server.violations) <= 2


def test_an_overflow_that_names_no_window_is_survived() -> None:
    fault = Turn(
        fault=Fault("status", 413, "request_too_large", "Request exceeds the maximum size")
    )
    turns = [fetching(4_000, "a"), fetching(4_000, "b"), fault, fault, Turn(text="Done.")]
    with served(conversation(turns)) as server:
        run = drive_to_end(a_run())
    assert run.status == "completed", run.error_message
    sizes = [len(request.body) for request in main_requests(server)]
    assert sizes[2] > sizes[3] > sizes[4]
    assert [event["reason"] for event in events(run, "step.reset")] == [
        "the conversation is made shorter"
    ] * 2


@pytest.mark.parametrize("compact_at", [None, 0.1])
def test_an_agent_has_its_own_threshold(compact_at: float | None) -> None:
    turns = [*(fetching(4_000, f"m{number}") for number in range(3)), Turn(text="Done.")]
    with served(conversation(turns)):
        run = drive_to_end(a_run(compact_at=compact_at))
    assert run.status == "completed", run.error_message
    assert bool(events(run, "context.compacted")) is (compact_at is not None)


def test_an_agent_without_context_management_shortens_nothing() -> None:
    fault = Turn(fault=Fault("status", 400, "invalid_request_error", "prompt is too long"))
    with served(conversation([fetching(4_000, "a"), fault])) as server:
        run = drive_to_end(a_run(context_management=False))
    assert (run.status, run.error_code) == ("failed", "model_context_window")
    assert len(main_requests(server)) == 2
    assert not Compaction.objects.exists()


def test_an_overflow_that_stays_fails_the_run_which_may_be_resumed() -> None:
    fault = Turn(fault=Fault("status", 400, "invalid_request_error", "prompt is too long"))
    turns = [fetching(4_000, "a"), *[fault] * 5, Turn(text="Done.")]
    with served(conversation(turns)) as server:
        run = drive_to_end(a_run())
        assert (run.status, run.error_code) == ("failed", "model_context_window")
        assert "resume the run" in run.error_message
        assert events(run, "run.failed")[0]["retryable"] is True
        assert len(main_requests(server)) == 6
        run = drive_to_end(resume_run(run.pk))
    assert run.status == "completed", run.error_message


def test_a_reply_that_the_windows_end_has_torn_is_made_again_and_paid() -> None:
    torn = Turn(text="The answer is", stop_reason="model_context_window_exceeded")
    with served(conversation([fetching(4_000, "a"), torn, Turn(text="Done.")])) as server:
        run = drive_to_end(a_run())
    assert run.status == "completed", run.error_message
    texts = [message.text for message in Message.objects.filter(run=run, role="assistant")]
    assert texts == ["I fetch.", "Done."]
    clock = RunClock.objects.get(run=run)
    assert clock.turn == 2
    sent = [reply.usage["output_tokens"] for reply in server.replies]
    assert clock.output_tokens == sum(sent)


@pytest.mark.slow_cases
@pytest.mark.parametrize("text", ["word " * 200_000, "数豆子。" * 80_000, "0f9a3c" * 160_000])
def test_a_message_larger_than_the_window(text: str) -> None:
    with served(conversation([fetching(100, "a"), Turn(text="Done.")])) as server:
        run = drive_to_end(a_run(message=text))
    assert run.status == "completed", run.error_message
    # Digits need more tokens than estimated; in that case the server reports an overflow.
    assert len(server.violations) <= text.startswith("0f")
    row = Compaction.objects.get(number=1)
    path = row.message_files["1"]
    stored = StateFile.objects.get(thread=run.thread, path=path)
    assert bytes(stored.content).decode() == text
    shown = main_requests(server)[-1].messages[0]["content"][0]["text"]
    assert path in shown
    assert len(shown.encode()) < 20_000


@pytest.mark.parametrize("size", [22_000, 32_000])
def test_a_message_that_fits_is_read_whole(size: int) -> None:
    """The second is too long for the threshold, but not for the window."""
    text = ("bean " * size)[:size]
    with served(conversation([Turn(text="Aha."), Turn(text="Done.")])) as server:
        run = drive_to_end(a_run(message="Earlier. " * 1_800))
        again = drive_to_end(start_run(run.owner, text, thread=run.thread_id))
    assert again.status == "completed", again.error_message
    assert server.violations == []
    assert events(again, "context.compacted")
    assert main_requests(server)[-1].messages[-1]["content"][-1]["text"] == text


def test_many_calls_in_one_turn_that_are_too_much_together() -> None:
    uses = [ToolUse("fetch", {"size": 4_000, "mark": f"m{number}"}) for number in range(40)]
    with served(conversation([Turn(tool_uses=uses), Turn(text="Done.")])) as server:
        run = drive_to_end(a_run())
    assert run.status == "completed", run.error_message
    assert server.violations == []
    assert ToolCall.objects.filter(status="succeeded").count() == 40


def test_inputs_that_are_too_much() -> None:
    big = Turn(tool_uses=[ToolUse("write_file", {"path": "/a", "content": "word " * 12_000})])
    with served(conversation([big, fetching(100, "a"), Turn(text="Done.")])) as server:
        run = drive_to_end(a_run())
    assert run.status == "completed", run.error_message
    assert server.violations == []
    assert len(bytes(StateFile.objects.get(path="/a").content)) == 60_000


@pytest.mark.parametrize(
    ("summary", "by"),
    [
        (Turn(fault=Fault("status", 400, "invalid_request_error", "no")), "journal"),
        (
            Turn(fault=Fault("status", 400, "invalid_request_error", "prompt is too long")),
            "journal",
        ),
        (Turn(text="I will not.", stop_reason="refusal"), "journal"),
        (Turn(tool_uses=[ToolUse("ls", {})]), "journal"),
        (Turn(text="word " * 100_000), "model"),
    ],
)
def test_a_summariser_that_fails_or_babbles(summary: Turn, by: str) -> None:
    turns = [fetching(4_000, f"m{number}") for number in range(20)]
    with served(conversation([*turns, Turn(text="Done.")], summary)) as server:
        run = drive_to_end(a_run())
    assert run.status == "completed", run.error_message
    told = [event for event in events(run, "context.compacted") if event["summary_ref"]]
    assert {event["by"] for event in told} == {by}
    assert [text for text in server.violations if text != "no"] == []
    row = Compaction.objects.exclude(opening="").first()
    assert row is not None
    if by == "journal":
        assert "1.15 fetch {" in row.opening
        assert "made from the journal" in row.opening
    assert len(row.opening) < 15_000


@pytest.mark.slow
def test_summaries_are_paid_for() -> None:
    turns = [fetching(4_000, f"m{number}") for number in range(20)]
    with served(conversation([*turns, Turn(text="Done.")])) as server:
        run = drive_to_end(a_run())
    asked = [request for request in server.requests if is_summary(request)]
    assert asked
    clock = RunClock.objects.get(run=run)
    assert clock.turn == 21
    keys = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    sent = sum(reply.usage[key] for reply in server.replies for key in keys)
    assert clock.input_tokens + clock.cache_read_tokens + clock.cache_write_tokens == sent
    assert clock.output_tokens == sum(reply.usage["output_tokens"] for reply in server.replies)


@pytest.mark.slow
def test_a_follow_up_builds_on_the_compaction() -> None:
    turns = [fetching(4_000, f"m{number}") for number in range(20)]
    with served(conversation([*turns, Turn(text="Done."), Turn(text="Again.")])) as server:
        run = drive_to_end(a_run())
        again = drive_to_end(start_run(run.owner, "And again?", thread=run.thread_id))
    assert again.status == "completed", again.error_message
    assert server.violations == []
    last = main_requests(server)[-1]
    row = Compaction.objects.order_by("number").last()
    assert row is not None
    assert last.messages[0]["content"][0]["text"] == row.opening
    assert last.messages[-1]["content"][-1]["text"] == "And again?"


@pytest.mark.slow
def test_a_long_run_reads_its_rows_from_the_compaction_on() -> None:
    turns = [fetching(4_000, f"m{number}") for number in range(50)]
    with served(conversation([*turns, Turn(text="Done.")])):
        run = drive_to_end(a_run())
    assert run.status == "completed", run.error_message
    row = Compaction.objects.order_by("number").last()
    assert row is not None
    assert row.from_turn > 20
    turns_read = list(thread_turns(run, (row.from_run, row.from_turn)))
    assert len(turns_read) < 30


@pytest.mark.both_databases
def test_the_transcript_is_searched_in_this_thread_only() -> None:
    asks = Turn(tool_uses=[ToolUse("search_transcript", {"query": "needle-m3 some"})])
    turns = [fetching(4_000, f"m{number}") for number in range(20)]
    with served(conversation([*turns, asks, Turn(text="Done.")])) as server:
        run = drive_to_end(a_run())
    assert run.status == "completed", run.error_message
    assert server.violations == []
    call = ToolCall.objects.get(tool="search_transcript")
    found = json.loads(json.loads(call.result))["matches"]
    assert [(item["run"], item["turn"], item["who"]) for item in found] == [(1, 4, "fetch")]
    assert "NEEDLE-m3" in found[0]["excerpt"]
    assert len(found[0]["excerpt"]) <= 402
    other = start_run(run.owner, "needle-m3 some")
    assert search_thread(other.thread_id, "needle-m3 some", 10)[0].who == "user"
    assert len(search_thread(other.thread_id, "needle-m3 some", 10)) == 1


def test_a_prompt_that_leaves_no_room_is_reported() -> None:
    with served(conversation([Turn(text="Done.")]), window=2_000):
        run = drive_to_end(a_run(system_prompt="word " * 2_000))
    assert (run.status, run.error_code) == ("failed", "model_context_window")
    assert "prompt and tools alone" in run.error_message


@pytest.mark.slow
@pytest.mark.both_databases
def test_a_driver_that_lost_the_run_compacts_nothing() -> None:
    turns = [fetching(4_000, f"m{number}") for number in range(60)]
    lost: list[CrashPoint] = []

    def take_over(point: CrashPoint) -> None:
        if point == CrashPoint.SUMMARISED and not lost:
            lost.append(point)
            thread = threading.Thread(target=raise_fence)
            thread.start()
            thread.join()

    def raise_fence() -> None:
        RunClock.objects.filter(run=run).update(fence=F("fence") + 1)
        connection.close()

    with served(conversation(turns)):
        run = a_run()
        crash_points.crash_at(take_over)
        try:
            with running_worker() as running:
                running.submit(run.id)
                wait_until(lambda: lost and not running.running, "the driver to stop")
                rows, epochs = Compaction.objects.count(), Epoch.objects.count()
        finally:
            crash_points.crash_at(None)
    told = events(run, "context.compacted")
    assert (rows, epochs) == (len(told), 1 + len(told))
    assert not Compaction.objects.exclude(opening="").exists()


@pytest.mark.slow
def test_summaries_count_in_budgets() -> None:
    turns = [fetching(4_000, f"m{number}") for number in range(60)]
    with served(conversation([*turns, Turn(text="Done.")])) as server:
        run = drive_to_end(a_run(max_tokens=300_000), until=("waiting", "completed"))
    assert run.status == "waiting"
    assert server.violations == []
    assert [request for request in server.requests if is_summary(request)]
    allowance = Allowance.objects.get(run=run)
    clock = RunClock.objects.get(run=run)
    assert allowance.used_tokens == clock.total_tokens
    assert allowance.reserved_tokens == run.budget.reserved_tokens == 0
    assert clock.total_tokens < 300_000 + WINDOW


@pytest.mark.slow
def test_a_blocked_message_is_not_summarized() -> None:
    turns = [fetching(4_000, f"m{number}") for number in range(20)]
    with served(conversation([*turns, Turn(text="Done.")])) as server:
        user = make_user()
        make_agent(user, provider="anthropic", model="small")
        blocked = start_run(user, "The secret is xyzzy.")
        Run.objects.filter(pk=blocked.pk).update(status="failed", message_refused=True)
        run = drive_to_end(start_run(user, "Count.", thread=blocked.thread_id))
    assert run.status == "completed", run.error_message
    assert Compaction.objects.exclude(opening="").exists()
    assert all(b"xyzzy" not in request.body for request in server.requests)
    assert search_thread(run.thread_id, "xyzzy", 10) == []
