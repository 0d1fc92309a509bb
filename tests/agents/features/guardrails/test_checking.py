"""Guardrails in runs: blocked actions do not happen, and a failed check blocks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from agents.engine.crash_points import CrashPoint
from agents.features.guardrails import checking
from agents.kernel import beside
from agents.models import ApprovalRequest, Message, Run, RunEvent, StateFile, ToolCall
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.services.runs.control import cancel_run
from tests.agents.engine.test_model_faults import served
from tests.agents.engine.test_recovery import crash_once
from tests.agents.kernel.test_middleware import Fails, Install
from tests.agents.kernel.test_middleware import install as install
from tests.support.guards import WORD, HangsAsync, registered, seen
from tests.support.messages_prefix import assert_prefix_stable
from tests.support.messages_script import Turn
from tests.support.runs import (
    drive_to_end,
    event_types,
    events,
    make_agent,
    make_user,
    running_worker,
    script_file,
    start_run,
    wait_for_status,
    wait_until,
)

pytestmark = pytest.mark.django_db(transaction=True)

KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"


def call(tool: str, **given: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": tool, "input": given}]}


WRITE = call("write_file", path="/a", content=WORD)
DONE = {"text": "Done."}


def play(
    tmp_path: Path,
    turns: Sequence[dict[str, Any]],
    *guardrails: str,
    message: str = "Hello",
    **more: Any,
) -> Run:
    user = make_user()
    model = script_file(tmp_path, list(turns))
    make_agent(user, model=model, guardrails=list(guardrails), **more)
    return start_run(user, message)


def everything(run: Run) -> str:
    """Return all stored rows of a run, except for the guardrails' own events."""
    rows: list[Any] = list(RunEvent.objects.filter(run=run).values_list("data", flat=True))
    rows += Message.objects.filter(run=run).values_list("content", flat=True)
    rows += ToolCall.objects.filter(run=run).values_list("result", flat=True)
    return "\n".join(rows)


# Input ----------------------------------------------------------------------------------------


def test_a_blocked_message_never_reaches_a_model_not_even_later() -> None:
    user = make_user()
    with (
        registered(("NoWord",)),
        served([Turn(text="Hello.")]) as server,
    ):
        make_agent(user, provider="anthropic", model="claude-sonnet-5-5", guardrails=["no-word"])
        run = drive_to_end(start_run(user, f"Say {WORD}."))
        assert (run.status, run.error_code) == ("failed", "guardrail_input")
        assert "no-word blocked the message: it has the word" in run.error_message
        assert server.requests == []
        later = drive_to_end(start_run(user, "And now?", thread=run.thread_id))
        assert later.status == "completed", later.error_message
    assert server.violations == []
    assert WORD.encode() not in server.requests[0].body


def test_a_message_can_be_replaced_and_is_stored_so(tmp_path: Path) -> None:
    with registered(("Mask",)):
        run = drive_to_end(play(tmp_path, [DONE], "mask", message=f"It is {WORD}."))
    assert run.status == "completed"
    assert Message.objects.get(run=run, turn=0).text == "It is ****."
    assert events(run, "guard.replaced")[0]["stage"] == "input"
    assert WORD not in everything(run)


def test_a_message_that_is_blocked_after_a_crash_stays_blocked(tmp_path: Path) -> None:
    with registered(("NoWord",)):
        run = play(tmp_path, [DONE], "no-word", message=WORD)
        crash_once(run, CrashPoint.CLAIMED)
        run = drive_to_end(run)
    assert (run.status, run.error_code) == ("failed", "guardrail_input")


# Output ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_text_of_a_guarded_answer_is_not_streamed(tmp_path: Path) -> None:
    with registered(("NoWord",)):
        slowly = {**DONE, "delay": 0.3}
        run = drive_to_end(play(tmp_path, [slowly], "no-word"))
        make_agent(run.owner, slug="plain", model=run.spec["model"])
        plain = drive_to_end(start_run(run.owner, agent="plain"))
    assert "text.delta" not in event_types(run)
    assert "text.delta" in event_types(plain)
    assert events(run, "text.completed")[0]["text"] == "Done."


def test_a_blocked_answer_is_withheld_and_the_model_may_try_again() -> None:
    user = make_user()
    turns = [Turn(text=f"It is {WORD}."), Turn(thinking=f"Not {WORD}?", text="I may not say.")]
    with (
        registered(("NoWord",)),
        served(turns) as server,
    ):
        make_agent(user, provider="anthropic", model="claude-sonnet-5-5", guardrails=["no-word"])
        run = drive_to_end(start_run(user))
    assert run.status == "completed", run.error_message
    assert server.violations == []
    assert_prefix_stable(server.requests)
    assert [event["text"] for event in events(run, "text.completed")] == [
        "[withheld by the guardrail no-word: it has the word]",
        "I may not say.",
    ]
    thoughts = [event["text"] for event in events(run, "reasoning.completed")]
    assert thoughts == ["[withheld by the guardrail no-word: it has the word]"]
    shown = "".join(RunEvent.objects.filter(run=run).values_list("data", flat=True))
    assert WORD not in shown
    assert "withheld your answer" in server.requests[1].messages[-1]["content"][-1]["text"]


def test_an_answer_that_stays_blocked_fails_the_run(tmp_path: Path) -> None:
    with registered(("NoWord",), GUARDRAIL_ATTEMPTS=2):
        run = drive_to_end(play(tmp_path, [{"text": WORD}] * 5, "no-word"))
    assert (run.status, run.error_code) == ("failed", "guardrail")
    assert run.clock.turn == 2
    assert WORD not in everything(run)


@pytest.mark.slow_cases
@pytest.mark.parametrize("point", [CrashPoint.REPLIED, CrashPoint.REPLY_WRITTEN])
@pytest.mark.parametrize("after", [0, 1])
def test_blocked_answers_are_counted_over_crashes(
    tmp_path: Path, point: CrashPoint, after: int
) -> None:
    with registered(("NoWord",)):
        run = play(tmp_path, [{"text": WORD}] * 9, "no-word")
        crash_once(run, point, after=after)
        run = drive_to_end(run)
    assert (run.status, run.error_code) == ("failed", "guardrail")
    assert run.clock.turn == 3
    assert Message.objects.filter(run=run, role="user", turn__gt=0).count() == 2
    assert WORD not in everything(run)


def test_text_next_to_tool_calls_is_checked_too(tmp_path: Path) -> None:
    first = {"text": f"Between us: {WORD}.", **call("ls", path="/")}
    with registered(("NoWord",)):
        run = drive_to_end(play(tmp_path, [first, DONE], "no-word"))
    assert run.status == "completed"
    assert WORD not in everything(run)
    assert [entry[3] for entry in seen if entry[0] == "output"] == [False, True]
    assert ToolCall.objects.get(run=run).status == "succeeded"


def test_an_answer_that_cannot_be_checked_ends_the_run(tmp_path: Path) -> None:
    with registered(("HangsAsync",)):
        run = drive_to_end(play(tmp_path, [{"text": "Secret."}], "hangs-async"))
    assert (run.status, run.error_code) == ("failed", "guardrail")
    assert "no decision within 0.05 s" in run.error_message
    assert "Secret." not in everything(run)


def test_a_guardrail_that_exits_ends_the_run_not_the_worker(tmp_path: Path) -> None:
    with registered(("Raises",)):
        run = drive_to_end(play(tmp_path, [{"text": "Secret."}], "raises"))
        assert (run.status, run.error_code) == ("failed", "guardrail")
        again = drive_to_end(start_run(run.owner, "Again"))
    assert again.error_code == "guardrail"
    assert "not to be told" not in everything(run) + run.error_message


# Tools ----------------------------------------------------------------------------------------


def test_a_blocked_call_is_not_made_and_reported_to_the_model(tmp_path: Path) -> None:
    with registered(("NoWord",)):
        run = drive_to_end(play(tmp_path, [WRITE, DONE], "no-word"))
    assert run.status == "completed"
    made = ToolCall.objects.get(run=run)
    assert (made.status, made.code, made.attempt) == ("denied", "guardrail", 0)
    assert "blocked this call; it was not made: it has the word" in made.result
    assert not StateFile.objects.filter(thread=run.thread).exists()
    assert events(run, "guard.blocked")[0]["call_id"] == made.call_id


def test_a_call_that_reads_is_blocked_though_it_was_started_with_the_reply(tmp_path: Path) -> None:
    with registered(("NoWord",)):
        run = drive_to_end(play(tmp_path, [call("glob", pattern=WORD), DONE], "no-word"))
    made = ToolCall.objects.get(run=run)
    assert (made.status, made.code) == ("failed", "guardrail")
    assert "it was not made" in made.result
    assert "result" not in [entry[0] for entry in seen], "it was made"


def test_a_blocked_call_makes_no_request(tmp_path: Path) -> None:
    with registered(("NoWord",)):
        run = drive_to_end(
            play(tmp_path, [WRITE, DONE], "no-word", interrupt_on={"write_file": True})
        )
    assert run.status == "completed"
    assert not ApprovalRequest.objects.exists()


def test_an_edited_call_is_checked_as_well(tmp_path: Path) -> None:
    with registered(("NoWord",)):
        turns = [call("write_file", path="/a", content="fine"), DONE]
        run = play(tmp_path, turns, "no-word", interrupt_on={"write_file": True})
        drive_to_end(run, until=("waiting",))
        request = ApprovalRequest.objects.get()
        edited = {"path": "/a", "content": WORD}
        answer = DecisionRequest("edit", request.digest, input=edited)
        decide_approval(request.pk, answer, by=run.owner)
        run = drive_to_end(run)
    assert ToolCall.objects.get(run=run).status == "denied"
    assert not StateFile.objects.filter(thread=run.thread).exists()


@pytest.mark.parametrize(("name", "slug"), [("Raises", "raises"), ("Hangs", "hangs")])
def test_a_call_that_cannot_be_checked_is_not_made(tmp_path: Path, name: str, slug: str) -> None:
    """The block is the result of the call, so the model may try another action."""
    with registered((name,)):
        turns = [call("write_file", path="/a", content="x"), {"text": " "}]
        run = drive_to_end(play(tmp_path, turns, slug))
    made = ToolCall.objects.filter(run=run).first()
    assert made is not None
    assert (made.tool, made.status, made.code) == ("write_file", "denied", "guardrail")
    assert "it failed (" in made.result
    assert "not to be told" not in everything(run)
    assert not StateFile.objects.filter(thread=run.thread).exists()


def test_hanging_guardrails_use_a_limited_number_of_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beside, "MAX_HANGING", 2)
    calls = [{"name": "write_file", "input": {"path": f"/{n}", "content": ""}} for n in range(4)]
    with registered(("Hangs",)):
        run = drive_to_end(play(tmp_path, [{"tool_calls": calls}, DONE], "hangs"))
        assert run.status == "completed"
        results = [json.loads(row.result) for row in ToolCall.objects.filter(run=run)]
        assert ["TooManyHang" in result for result in results] == [False, False, True, True]
    wait_until(lambda: not checking.BESIDE.hanging, "the end of the hanging thread")


def test_a_result_is_withheld_before_it_is_stored(tmp_path: Path) -> None:
    with registered(("NoWord",)):
        run = play(tmp_path, [call("read_file", path="/a"), DONE], "no-word")
        StateFile.objects.create(thread=run.thread, path="/a", content=f"It is {WORD}.".encode())
        run = drive_to_end(run)
    made = ToolCall.objects.get(run=run)
    assert (made.status, made.code) == ("failed", "guardrail")
    assert WORD not in everything(run)
    assert "withholds its result" in made.result


def test_a_result_can_be_replaced(tmp_path: Path) -> None:
    with registered(("Mask",)):
        run = play(tmp_path, [call("read_file", path="/a"), DONE], "mask")
        StateFile.objects.create(thread=run.thread, path="/a", content=f"It is {WORD}.".encode())
        run = drive_to_end(run)
    made = ToolCall.objects.get(run=run)
    assert made.status == "succeeded"
    assert "It is ****." in made.result
    assert WORD not in everything(run)


def test_errors_of_a_middleware_around_a_call_are_checked(tmp_path: Path, install: Install) -> None:
    """The error may contain the result of the call."""
    install(Fails(after=True, message=f"It says {WORD}."), order={"fails": 600})
    with registered(("NoWord",)):
        run = drive_to_end(play(tmp_path, [call("ls", path="/"), DONE], "no-word"))
    made = ToolCall.objects.get(run=run)
    assert (run.status, made.status, made.code) == ("completed", "failed", "guardrail")
    assert "withholds its result" in made.result
    assert WORD not in everything(run)


def test_a_call_cannot_be_changed_in_secret(tmp_path: Path) -> None:
    with registered(("ChangesCalls",)):
        run = drive_to_end(play(tmp_path, [WRITE, DONE], "changes-calls"))
    assert ToolCall.objects.get(run=run).status == "denied"


def test_a_check_that_returns_nothing_blocks(tmp_path: Path) -> None:
    with registered(("SaysNothing",)):
        run = drive_to_end(play(tmp_path, [DONE], "says-nothing"))
    assert run.error_code == "guardrail_input"
    assert "it returned NoneType, not a Decision" in run.error_message


# All of it ------------------------------------------------------------------------------------


def test_a_driver_that_dies_between_a_block_and_its_result_blocks_again(tmp_path: Path) -> None:
    with registered(("NoWord",)):
        run = play(tmp_path, [WRITE, DONE], "no-word")
        crash_once(run, CrashPoint.BLOCKED)
        assert ToolCall.objects.get(run=run).status == "pending"
        run = drive_to_end(run)
        assert len([entry for entry in seen if entry[0] == "call"]) == 2
    assert run.status == "completed"
    assert ToolCall.objects.get(run=run).status == "denied"
    assert len(events(run, "guard.blocked")) == 1


def test_an_unregistered_guardrail_stops_the_run(tmp_path: Path) -> None:
    with registered(("NoWord",)):
        run = play(tmp_path, [DONE], "no-word")
    run = drive_to_end(run)
    assert (run.status, run.error_code) == ("failed", "guardrail")
    assert "'no-word', which is not registered" in run.error_message
    assert run.clock.turn == 0


@pytest.mark.parametrize("wrong", [{"guardrails": ("Nothing",)}, {"hooks": ("Nothing",)}])
def test_no_process_drives_runs_with_wrong_settings(
    tmp_path: Path, wrong: dict[str, tuple[str, ...]]
) -> None:
    run = play(tmp_path, [DONE])
    with (
        registered(**wrong),
        pytest.raises(ImproperlyConfigured, match="Nothing cannot be used"),
    ):
        drive_to_end(run)
    run.refresh_from_db()
    assert run.status == "queued"
    assert drive_to_end(run).status == "completed"


def test_a_guardrail_for_every_agent_needs_no_choice(tmp_path: Path) -> None:
    with registered(("Everywhere",)):
        run = drive_to_end(play(tmp_path, [WRITE, DONE]))
    assert ToolCall.objects.get(run=run).status == "denied"


def test_a_run_can_be_cancelled_while_a_guardrail_decides(tmp_path: Path) -> None:
    with registered(("HangsAsync",)), pytest.MonkeyPatch.context() as patch:
        patch.setattr(HangsAsync, "seconds", 50.0)
        run = play(tmp_path, [DONE], "hangs-async")
        with running_worker() as running:
            running.submit(run.id)
            wait_until(lambda: "step.started" in event_types(run), "the model call")
            cancel_run(run.id, by="ada")
            run = wait_for_status(run, "cancelled")


def test_the_tools_of_an_agent_without_guardrails_are_not_looked_at(tmp_path: Path) -> None:
    with registered(("NoWord", "Mask")):
        run = drive_to_end(play(tmp_path, [WRITE, {"text": WORD}]))
    assert run.status == "completed"
    assert seen == []


# The built-in ones ----------------------------------------------------------------------------


def test_secrets_are_masked_in_answers(tmp_path: Path) -> None:
    run = drive_to_end(play(tmp_path, [{"text": f"The key is {KEY}, use it."}], "secrets"))
    assert run.status == "completed"
    assert events(run, "text.completed")[0]["text"] == "The key is [secret withheld], use it."
    assert KEY not in everything(run)


def test_secrets_in_pieces_pass(tmp_path: Path) -> None:
    """`secrets` cannot find these, as its documentation says."""
    turns = [{"text": KEY[:15], **call("ls", path="/")}, {"text": " ".join(KEY[15:])}]
    run = drive_to_end(play(tmp_path, turns, "secrets"))
    said = "".join(event["text"] for event in events(run, "text.completed")).replace(" ", "")
    assert KEY in said


def test_an_answer_that_is_too_long_is_written_again() -> None:
    user = make_user()
    with served([Turn(text="x" * 30_000), Turn(text="Short.")]):
        make_agent(user, provider="anthropic", model="claude-sonnet-5-5", guardrails=["max_length"])
        run = drive_to_end(start_run(user))
    assert run.status == "completed", run.error_message
    assert "may have 20,000: shorten it" in events(run, "guard.blocked")[0]["reason"]
    assert "x" * 100 not in everything(run)
